"""Start and end positions in a segment for bounds of offset and timestamp.

Index files only speed up the search: the batch at an entry's position is compared with the entry. If it differs, or a
file is missing, the whole segment is read. The property of a time index that no earlier record is later than its entry
cannot be verified from one batch: it is trusted before the recovery point, where the file is known to be synced. There,
the last entry of a closed segment is its largest timestamp, as for a broker, and no batch is compared.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, ends, indexed_batch
from kraftlog.codec.headers import last_offsets
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.index_files import read_index, time_span
from kraftlog.layout.segment import Segment
from kraftlog.types import Buffer, InputFile

Stretch = tuple[int, int]
"""Batches that start at bytes [start, end)."""

HEADERS_PER_LOOK = 64  # an index entry stands for 4 KiB of log by default
MOST_BEHIND_ENTRY = 16 << 20  # behind the last entry lie 4 KiB and a batch; of a follower a fetch, of up to 10 MiB


def seek(segment: Segment, file: Buffer | InputFile, options: ReadOptions) -> tuple[int, int]:
    """Return the bytes [start, end) of a log file that can contain records within the bounds.

    Only headers to which index entries point are read.
    """
    options = options.from_log_start(segment.log_start_offset)
    start_offset = options.start_offset
    if options.start_timestamp != -NO_BOUND:
        start_offset = max(start_offset, _offset_before(segment, file, options.start_timestamp) + 1)
    start, end = 0, NO_BOUND
    if not options.bounds_offsets and start_offset <= 0:
        return start, end
    index = index_entries(segment)
    if index is None:
        return start, end
    offsets, positions = index
    at = int(np.searchsorted(offsets, start_offset, side="right")) - 1
    if at >= 0 and indexed_batch(file, offsets, positions, at) is not None:
        start = int(positions[at])
    at = int(np.searchsorted(offsets, options.end_offset, side="left"))
    for number in range(at, min(at + 2, len(offsets))):  # of a follower, the next one is behind the bound
        batch = indexed_batch(file, offsets, positions, number)
        if batch is not None and last_offsets(batch)[0] >= options.end_offset:
            end = int(ends(batch)[0])
            break
    return start, end


def bounds_within(segment: Segment, options: ReadOptions) -> ReadOptions | None:
    """Return the options with the bounds that may cut a segment; None if they leave no record of it.

    Only the time index is opened. It does not tell where an end lies.
    """
    if not options.bounds_timestamps:
        return options
    start, any_time = options.start_timestamp, replace(options, start_timestamp=-NO_BOUND, end_timestamp=NO_BOUND)
    path = segment.beside.get("timeindex")
    if start == -NO_BOUND or path is None or segment.base_offset is None or not segment.settled_offset:
        return any_time
    try:
        span = time_span(path, segment.base_offset)
    except OSError:
        return any_time
    if span is None:  # of an active segment, which has room for more entries
        return options if segment.end_offset is None else any_time
    is_closed = segment.end_offset is not None and span.last_offset < segment.end_offset <= segment.settled_offset
    if is_closed and span.last_timestamp < start:
        return None
    is_before = span.first_timestamp < start and span.first_offset < segment.settled_offset
    return replace(options, end_timestamp=NO_BOUND) if is_before else any_time


def index_entries(segment: Segment) -> tuple[np.ndarray, np.ndarray] | None:
    """Return offsets and positions of an ``.index``; None if it is missing, unreadable or out of order."""
    return _entries(segment, "index")


def cut_at_entries(
    segment: Segment, file: Buffer | InputFile, within: Stretch, range_bytes: int
) -> list[Stretch] | None:
    """Divide a stretch at batches in the ``.index`` that are at least a number of bytes after the previous one.

    None without an index. After a damaged length, an entry can name a batch that the walk over the headers does not
    reach.
    """
    index = index_entries(segment)
    if index is None:
        return None
    (offsets, positions), (start, end) = index, within
    cuts = [start]
    at = int(np.searchsorted(positions, start + range_bytes))
    while at < len(positions) and positions[at] < min(end, segment.size):
        position = int(positions[at])
        if indexed_batch(file, offsets, positions, at) is not None:
            cuts.append(position)
        at = int(np.searchsorted(positions, position + range_bytes))
    return list(pairwise([*cuts, end]))


def _entries(segment: Segment, kind: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return offsets and the values mapped to them; None if the file is missing, unreadable or out of order."""
    path = segment.beside.get(kind)
    if path is None or segment.base_offset is None:
        return None
    faults: list[Fault] = []
    try:
        columns = read_index(path, kind, segment.base_offset, faults)
    except OSError:
        return None
    if faults:
        return None
    return columns["offset"], columns["position" if kind == "index" else "timestamp"]


def _offset_before(segment: Segment, file: Buffer | InputFile, timestamp: int) -> int:
    """Return an offset up to which all timestamps are less, by the time index; -1 if unknown."""
    times = _entries(segment, "timeindex")
    index = index_entries(segment)
    if times is None or index is None:
        return -1
    settled = int(np.searchsorted(times[0], segment.settled_offset))
    offsets, stamps = times[0][:settled], times[1][:settled]
    at = int(np.searchsorted(stamps, timestamp, side="left")) - 1
    if at < 0:
        return -1
    offset, stamp = int(offsets[at]), int(stamps[at])
    index_at = int(np.searchsorted(index[0], offset, side="right")) - 1
    start = 0 if index_at < 0 else int(index[1][index_at])
    if index_at >= 0 and indexed_batch(file, *index, index_at) is None:
        return -1
    behind = index[1][index_at + 2 :]  # of a follower, an offset before that of the next entry may lie behind its byte
    end = int(behind[0]) if len(behind) else int(index[1].max(initial=0)) + MOST_BEHIND_ENTRY
    for headers in HeaderScan(file, start, end).headers(HEADERS_PER_LOOK):
        holds = (headers["base_offset"] <= offset) & (offset <= last_offsets(headers))
        if holds.any():
            return offset if int(headers[holds][0]["max_timestamp"]) == stamp else -1
    return -1
