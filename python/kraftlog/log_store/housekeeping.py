"""Retention and compaction of a store's partitions, on request; a broker runs them by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.layout.checkpoints import CLEANER_OFFSETS, read_offset_checkpoint
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.segment import Segment
from kraftlog.log_store.partition import Partition
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner, largest_timestamp
from kraftlog.write.offset_checkpoint import set_offsets
from kraftlog.write.replaced_segments import remove_segment, replace_segments, write_cleaned
from kraftlog.write.retention import doomed_segments

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Freed:
    """The effect of retention or compaction on a partition.

    Attributes
    ----------
    topic, partition : str, int
    size_before, size_after : int
        Bytes of its log files.
    """

    topic: str
    partition: int
    size_before: int
    size_after: int


def clean(partition: Partition, log_directory: Path, now: int, *, roll: bool) -> Freed | None:
    """Clean a partition of a compacted topic: its closed segments up to the last stable offset.

    Parameters
    ----------
    partition : Partition
    log_directory : Path
    now : int
        In milliseconds.
    roll : bool
        Whether to begin a new segment first, so that all that is stable is cleaned.
    """
    topic = partition.topic
    if "compact" not in topic.cleanup_policy:
        return None
    with partition.housekeeping():
        if roll:
            partition.roll()
        before = _size(partition)
        segments = _within(_stable(partition), now - topic.min_compaction_lag_ms)
        path = log_directory / CLEANER_OFFSETS
        dirty = read_offset_checkpoint(path).get(partition.key, 0) if disk().entry(path) is not None else 0
        options = CleanOptions(now, topic.delete_retention_ms, topic.segment_bytes, dirty)
        following = PartitionFolder.of(partition.folder).segments[len(segments) :]
        cleaner = LogCleaner(segments, following, partition.producer_states(), options)
        for group in cleaner.groups():
            cleaned = write_cleaned(partition.folder, group[0].base_offset or 0, cleaner.cleaned(group))
            if len(group) == 1 and _holds_the_same(cleaned, group[0].local_path):
                disk().unlink(cleaned)
            else:
                with partition.replacing():
                    replace_segments(partition.folder, cleaned, group)
        if segments:
            set_offsets(path, {partition.key: _end(partition, segments)})
        return Freed(*partition.key, before, _size(partition))


def apply_retention(partition: Partition, now: int) -> Freed | None:
    """Remove segments by retention time and size; never the last one, nor unstable records."""
    topic = partition.topic
    with partition.housekeeping():
        before = _size(partition)
        doomed = _doomed(partition, now)
        for segment, following in doomed:
            partition.move_log_start(following)  # first, so that no reader starts there
            with partition.replacing():
                remove_segment(partition.folder, segment.base_offset or 0)
        return Freed(*partition.key, before, _size(partition)) if doomed or "delete" in topic.cleanup_policy else None


def _doomed(partition: Partition, now: int) -> list[tuple[Segment, int]]:
    """Return the segments to be removed, each with the base offset of the next one."""
    topic, segments = partition.topic, _stable(partition)
    if not segments:
        return []
    following = [*(segment.base_offset or 0 for segment in segments[1:]), _end(partition, segments)]
    deletes = "delete" in topic.cleanup_policy
    doomed = doomed_segments(
        list(zip(segments, following, strict=True)),
        _size(partition),
        now,
        log_start_offset=partition.log_start_offset,
        retention_ms=topic.retention_ms if deletes and topic.retention_ms >= 0 else None,
        retention_bytes=topic.retention_bytes if deletes and topic.retention_bytes >= 0 else None,
    )
    return list(zip(doomed, following, strict=False))


def _stable(partition: Partition) -> list[Segment]:
    """Return the closed segments all of whose transactions have ended."""
    segments = PartitionFolder.of(partition.folder).segments
    bases = [segment.base_offset or 0 for segment in segments]
    most = min(partition.last_stable_offset, partition.last_base_offset)
    return [segment for segment, end in zip(segments, bases[1:], strict=False) if end <= most]


def _end(partition: Partition, segments: list[Segment]) -> int:
    """Return the base offset of the segment after a list of segments."""
    last = segments[-1].base_offset or 0
    bases = [segment.base_offset or 0 for segment in PartitionFolder.of(partition.folder).segments]
    return min((base for base in bases if base > last), default=partition.last_base_offset)


def _within(segments: Iterable[Segment], newest: int) -> list[Segment]:
    """Return the segments before the first one that has newer records."""
    partitions = []
    for segment in segments:
        if largest_timestamp(segment) > newest:
            break
        partitions.append(segment)
    return partitions


def _holds_the_same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes, comparing piece by piece."""
    files = disk().open(one), disk().open(other)
    try:
        size = files[0].size
        pieces = ((at, min(at + _PIECE_BYTES, size)) for at in range(0, size, _PIECE_BYTES))
        return size == files[1].size and all(files[0].read(*piece) == files[1].read(*piece) for piece in pieces)
    finally:
        for file in files:
            file.close()


def _size(partition: Partition) -> int:
    return sum(segment.size for segment in PartitionFolder.of(partition.folder).segments)
