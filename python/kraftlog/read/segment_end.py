"""The end of a closed segment: the batches that are missing there.

Part of a batch shows that its file was truncated. If the file ends with a whole batch, or is empty, a cleaner may have
removed the batches up to the next segment. They were not removed if an index file has entries for them, as a cleaner
writes new index files, or if no cleaner has been there. A cleaner replaces files before it notes how far it came; one
that was killed between leaves an older checkpoint for good, and empty index files. So the checkpoint only proves that
after a clean shutdown, where there are no index files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import ReadableFile
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.index_files import PREALLOCATED, read_index
from kraftlog.layout.names import LARGEST_OFFSET
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import Replica, is_metadata
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.read.segment_reader import located

CUT_OFF = "batch_cut_off"
MISSING_BATCHES = "missing_batches"
OFFSET_AND_LENGTH = 12  # bytes: what says how long a batch is


class BatchWalk(Protocol):
    """A walk over the batches of a file, as by ``RecordDecoder`` and ``HeaderScan``."""

    @property
    def torn_at(self) -> int:
        """Byte at which a torn tail starts; -1 when there is none."""

    @property
    def reached(self) -> tuple[int, int]:
        """End of the last whole batch, in bytes, and the offset after it; -1 before the first batch."""


def end_fault(
    segment: Segment,
    walk: BatchWalk,
    faults: Sequence[Fault],
    file: ReadableFile,
    options: ReadOptions = ReadOptions(),  # noqa: B008  (frozen)
) -> Fault | None:
    """Return the fault that batches are missing at the end of a closed segment; None if none are known to be.

    Parameters
    ----------
    segment : Segment
    walk : BatchWalk
        After its end.
    faults : sequence of Fault
        Faults of this walk: damage at the end of the file explains what is missing.
    file : ReadableFile
    options : ReadOptions
        Batches outside of its offsets are not missed.
    """
    if segment.end_offset is None:
        return None
    return _cut_off_batch(segment, walk.torn_at, file) or _missing_batches(segment, walk, faults, file, options)


def _cut_off_batch(segment: Segment, torn_at: int, file: ReadableFile) -> Fault | None:
    """Return the partial batch at the end of a closed segment: its records are missing, and those of later batches.

    In the last segment a batch may be partly written, now or when a broker stopped. Zeros are preallocated.
    """
    if torn_at < 0:
        return None
    header = file.read(torn_at, min(torn_at + OFFSET_AND_LENGTH, file.size))
    if not any(header):
        return None
    bytes_left = file.size - torn_at
    message = (
        f"batch at byte {torn_at}: expected a whole batch before the next segment, found {bytes_left} bytes of one"
    )
    return located(segment, Fault(CUT_OFF, message, torn_at, bytes_left))


def _missing_batches(
    segment: Segment, walk: BatchWalk, faults: Sequence[Fault], file: ReadableFile, options: ReadOptions
) -> Fault | None:
    """Return the fault that batches between the end of the file and the next segment are missing."""
    position, next_offset = walk.reached
    is_at_end = walk.torn_at >= 0 or position == file.size == segment.size
    is_damaged = any((fault.position or 0) + (fault.size_in_bytes or 0) >= position for fault in faults)
    if not is_at_end or is_damaged or (next_offset < 0 and position):
        return None
    first_offset, end_offset = max(next_offset, segment.base_offset or 0), segment.end_offset or 0
    options = options.from_log_start(segment.log_start_offset)
    if not (first_offset < end_offset and first_offset < options.end_offset and options.start_offset < end_offset):
        return None
    evidence = evidence_of_batches(segment, first_offset, end_offset, is_empty=not position)
    if evidence is None:
        return None
    last_offset = end_offset - 1
    offsets = f"offset {first_offset}" if first_offset == last_offset else f"offsets {first_offset} to {last_offset}"
    where = f"at byte {position}, the end of the file" if position else "in an empty file"
    message = f"expected batches with {offsets} before the next segment, found none {where}: {evidence}"
    return located(segment, Fault(MISSING_BATCHES, message, position, 0, first_offset))


def evidence_of_batches(segment: Segment, first_offset: int, end_offset: int, *, is_empty: bool) -> str | None:
    """Return what shows that a segment had batches with some offsets; None if nothing does.

    After the recovery point, index files of a log that was cleaned may be older than the cleaning. Without the
    cleaner's checkpoint, before it is written, and beside index files without entries, an empty file may be what a
    cleaner left.
    """
    cleaner_offset = None if segment.is_swap else _cleaner_offset(segment)
    is_cleaned = segment.is_swap or (cleaner_offset is not None and cleaner_offset >= end_offset)
    if end_offset <= segment.settled_offset or not is_cleaned:
        entries = list(_last_entries(segment, first_offset, end_offset))
        if entries:
            return ", and ".join(entries)
    was_clean = segment.settled_offset == LARGEST_OFFSET
    has_index = any(kind in _files_beside(segment) for kind in PREALLOCATED)
    is_untouched = is_empty and was_clean and not has_index and cleaner_offset is not None and not is_cleaned
    return "no cleaner has been there" if is_untouched else None


def _files_beside(segment: Segment) -> dict[str, LogPath]:
    return {**segment.beside, **dict(segment.stored)}


def _cleaner_offset(segment: Segment) -> int | None:
    """Return the offset up to which a cleaner has read a log; None if that is unknown."""
    return 0 if is_metadata(segment) else ReplicaCheckpoints([]).cleaner_offset(Replica([segment]))


def _last_entries(segment: Segment, first_offset: int, end_offset: int) -> Iterator[str]:
    """Return the last entry of each index file for batches with some offsets."""
    files, base_offset = _files_beside(segment), segment.file_base_offset
    for kind in PREALLOCATED:
        path = files.get(kind)
        if path is None or base_offset is None:
            continue
        faults: list[Fault] = []
        try:
            columns = read_index(path, kind, base_offset, faults)
        except OSError:
            continue  # other checks report it
        offsets, timestamps = columns["offset"], columns.get("timestamp", columns["offset"])
        inside = np.flatnonzero((offsets >= first_offset) & (offsets < end_offset) & (timestamps != NO_TIMESTAMP))
        if len(inside) and not faults:
            at = int(inside[-1])
            what = f"byte {columns['position'][at]}" if kind == "index" else f"timestamp {timestamps[at]}"
            yield f"{path.name} has offset {offsets[at]} at {what}"
