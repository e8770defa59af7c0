"""Where a partition's log ends, which epoch it is in, and what its producers have done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.mapping import map_file
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES
from kraftlog.layout.discover import discover
from kraftlog.layout.leader_epochs import LeaderEpochs
from kraftlog.layout.names import parse_partition_folder, parse_segment_file, transition_of
from kraftlog.layout.small_files import read_producer_snapshot
from kraftlog.read.index_interval import shown_interval
from kraftlog.transactions.producer_state import ProducerStates
from kraftlog.write.log_appender import LogAppender
from kraftlog.write.segment_tail import read_segment


@dataclass(frozen=True)
class LogEnd:
    """The end of a partition's log.

    Attributes
    ----------
    next_offset : int
        Of the record that is appended next.
    leader_epoch : int
        The last one; 0 when there was none.
    interval_bytes : int
        Kafka's ``index.interval.bytes``, as the last segment shows it.
    """

    next_offset: int = 0
    leader_epoch: int = 0
    interval_bytes: int = INDEX_INTERVAL_BYTES


def partition_folders(log_directory: Path) -> dict[str, list[int]]:
    """Return the partitions of each topic that have a folder."""
    found: dict[str, list[int]] = {}
    for entry in log_directory.iterdir():
        parsed = parse_partition_folder(entry.name)
        if parsed is not None and transition_of(entry.name) is None and entry.is_dir():
            found.setdefault(parsed[0], []).append(parsed[1])
    return {topic: sorted(partitions) for topic, partitions in sorted(found.items())}


def base_offsets(folder: Path, kind: str = "log") -> list[int]:
    """Return the base offsets of the files of a kind, in order."""
    parsed = [parse_segment_file(path.name) for path in folder.iterdir()]
    return sorted(file.base_offset for file in parsed if file and file.kind == kind and not file.state)


def segment_file(folder: Path, base_offset: int, kind: str = "log") -> Path:
    """Return the path of a file of a segment."""
    return folder / f"{base_offset:020d}.{kind}"


def close_log(folder: Path) -> LogEnd:
    """Find the end of a log, cut a torn tail of its last segment off and complete its index files.

    Raises
    ------
    CorruptRecordError
        When the last segment has damage with sound batches behind it.
    """
    bases = base_offsets(folder) if folder.exists() else []
    if not bases:
        return LogEnd()
    last = segment_file(folder, bases[-1])
    interval_bytes = shown_interval(discover(last).segments)
    state = read_segment(last, bases[-1], interval_bytes)
    LogAppender(
        folder,
        bases[-1],
        state,
        segment_bytes=2**31 - 1,
        index_interval_bytes=interval_bytes,
        fsync="close",
    ).close()
    epochs = LeaderEpochs(folder, state.next_offset + 1, state.epochs)
    if not epochs.is_in_file:
        for base in bases[:-1]:
            epochs.add(read_segment(segment_file(folder, base), base, interval_bytes).epochs)
        epochs.write()
    return LogEnd(state.next_offset, max(epochs.last, 0), interval_bytes)


def producers_at(folder: Path, offset: int) -> ProducerStates:
    """Return the producers of a log before an offset: those of the last snapshot, and what the log says since then."""
    start, producers = _last_snapshot(folder, offset)
    for path in _segments_between(folder, start, offset):
        for headers in HeaderScan(map_file(path)).headers():
            producers.add(headers[(headers["base_offset"] >= start) & (headers["base_offset"] < offset)])
    return producers


def _last_snapshot(folder: Path, offset: int) -> tuple[int, ProducerStates]:
    for base in reversed(base_offsets(folder, "snapshot")):
        if base <= offset:
            try:
                return base, ProducerStates(read_producer_snapshot(segment_file(folder, base, "snapshot")))
            except CorruptRecordError:  # Kafka goes on to the one before, too
                continue
    return 0, ProducerStates()


def _segments_between(folder: Path, start: int, end: int) -> Iterator[Path]:
    bases = [base for base in base_offsets(folder) if base < end]
    for base, following in pairwise([*bases, end]):
        if following > start:
            yield segment_file(folder, base)
