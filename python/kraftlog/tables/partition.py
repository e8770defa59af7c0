"""``Partition``: what the files of one partition are, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.end_offset import end_offset
from kraftlog.read.partitions import by_partition

NAMES = ("topic", "partition", "segments", "bytes", "start offset", "end offset")
SHOWN = 10


@dataclass(frozen=True)
class Partition:
    """The segments of one partition in one folder; or one file that lies in no partition's folder.

    Attributes
    ----------
    topic : str or None
    partition : int or None
    folder : Path or RemotePath
    segments : sequence of Segment
        In the order of the log; segments in other states stand alone.
    """

    topic: str | None
    partition: int | None
    folder: LogPath
    segments: Sequence[Segment]

    @property
    def size_in_bytes(self) -> int:
        """Of the log files, as they were listed."""
        return sum(segment.size for segment in self.segments)

    @property
    def start_offset(self) -> int | None:
        """The first offset that a consumer sees: of the first segment, or the log start offset; None when unknown."""
        base = self.segments[0].base_offset
        return None if base is None else max(base, self.segments[0].log_start_offset)

    @property
    def end_offset(self) -> int:
        """The offset behind the last batch.

        It is read from the last batch headers each time. Where the last segment cannot be read, it is that of what can.
        """
        return end_offset(self.segments[-1], list[Fault]())

    def __repr__(self) -> str:
        name = self.segments[0].file_name if self.topic is None else f"{self.topic}-{self.partition}"
        return f"<Partition {name}: {_count(len(self.segments), 'segment')}, {self.size_in_bytes} bytes>"


def partitions_of(segments: Iterable[Segment]) -> list[Partition]:
    """Return segments by partition; what is no live segment of a log stands alone."""
    groups = by_partition(segments)
    return [Partition(group[0].topic, group[0].partition, group[0].folder, tuple(group)) for group in groups]


def summary(partitions: Sequence[Partition]) -> str:
    """Return one line that says how much there is."""
    topics = {partition.topic for partition in partitions if partition.topic is not None}
    parts = (_count(len(topics), "topic"), _count(len(partitions), "partition"))
    count = _count(sum(len(partition.segments) for partition in partitions), "segment")
    return f"{', '.join(parts)}, {count}, {sum(partition.size_in_bytes for partition in partitions)} bytes"


def as_text(partitions: Sequence[Partition]) -> str:
    """Return the first partitions as lines of text."""
    rows = [NAMES, *map(_cells, partitions[:SHOWN])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *values in rows:
        numbers = [value.rjust(width) for value, width in zip(values, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *numbers]))
    return "\n".join([*lines, *_rest(partitions)])


def as_html(partitions: Sequence[Partition]) -> str:
    """Return the first partitions as an HTML table."""
    head = "".join(f"<th>{name}</th>" for name in NAMES)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(partition))}</tr>"
        for partition in partitions[:SHOWN]
    )
    rest = "".join(f"<p>{line}</p>" for line in _rest(partitions))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def _cells(partition: Partition) -> tuple[str, ...]:
    """Return texts of a partition; of what is not mounted the end is not read."""
    end = None if isinstance(partition.folder, RemotePath) else partition.end_offset
    name = partition.segments[0].file_name if partition.topic is None else partition.topic
    values = (partition.partition, len(partition.segments), partition.size_in_bytes, partition.start_offset, end)
    return name, *("-" if value is None else str(value) for value in values)


def _rest(partitions: Sequence[Partition]) -> list[str]:
    return [f"and {len(partitions) - SHOWN} more partitions"] if len(partitions) > SHOWN else []


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
