"""Representations of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from kraftlog.disk.remote_path import RemotePath
from kraftlog.read.partitions import Partition

NAMES = ("topic", "partition", "segments", "bytes", "start offset", "end offset")
SHOWN = 10


def summary(partitions: Sequence[Partition]) -> str:
    """Return one line with the number of partitions and their sizes."""
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
    """Return the texts of a partition; the end of remote logs is not read."""
    end = None if isinstance(partition.folder, RemotePath) else partition.end_offset
    name = partition.segments[0].file_name if partition.topic is None else partition.topic
    values = (partition.partition, len(partition.segments), partition.size_in_bytes, partition.start_offset, end)
    return name, *("-" if value is None else str(value) for value in values)


def _rest(partitions: Sequence[Partition]) -> list[str]:
    return [f"and {len(partitions) - SHOWN} more partitions"] if len(partitions) > SHOWN else []


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
