"""Where in a segment to start and stop reading for bounds of offset and timestamp.

Index files only say where to look: what they point at is compared with the batch that is there, and when it is not what
they say, or a file is missing, the whole segment is read.
"""

from __future__ import annotations

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.remote_map import RemoteMap
from kraftlog.errors import Fault
from kraftlog.layout.discover import Segment
from kraftlog.layout.index_files import read_index
from kraftlog.types import Buffer

HEADERS_PER_LOOK = 64  # an index entry stands for 4 KiB of log by default


def seek(segment: Segment, buffer: Buffer | RemoteMap, options: ReadOptions) -> tuple[int, int]:
    """Return the bytes [start, end) of a log file that can hold records within the bounds.

    Of a remote file only the headers are fetched that index entries point at.
    """
    start_offset = options.start_offset
    if options.start_timestamp != -NO_BOUND:
        start_offset = max(start_offset, _offset_before(segment, buffer, options.start_timestamp) + 1)
    start, end = 0, NO_BOUND
    if not options.bounds_offsets and start_offset <= 0:
        return start, end
    index = index_entries(segment)
    if index is None:
        return start, end
    offsets, positions = index
    at = int(np.searchsorted(offsets, start_offset, side="right")) - 1
    if at >= 0 and batch_with(buffer, int(positions[at]), int(offsets[at])) is not None:
        start = int(positions[at])
    at = int(np.searchsorted(offsets, options.end_offset, side="left"))
    if at < len(offsets):
        batch = batch_with(buffer, int(positions[at]), int(offsets[at]))
        if batch is not None:
            end = int(ends(batch)[0])
    return start, end


def index_entries(segment: Segment) -> tuple[np.ndarray, np.ndarray] | None:
    """Return offsets and positions of an ``.index``; None when it is missing, unreadable or out of order."""
    return _entries(segment, "index")


def _entries(segment: Segment, kind: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return offsets and what they are mapped to; None when the file is missing, unreadable or out of order."""
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


def batch_with(buffer: Buffer | RemoteMap, position: int, offset: int) -> Headers | None:
    """Return the header at a position if that batch holds the offset."""
    if isinstance(buffer, RemoteMap):
        buffer = buffer.batches_between(position, position)
    if not 0 <= position < memoryview(buffer).nbytes:
        return None
    for headers in HeaderScan(buffer, position, position + 1).headers(1):
        found = headers[0]["position"] == position and headers[0]["base_offset"] <= offset <= last_offsets(headers)[0]
        return headers if found else None
    return None


def _offset_before(segment: Segment, buffer: Buffer | RemoteMap, timestamp: int) -> int:
    """Return an offset up to which every timestamp is less, by the time index; -1 when it does not say."""
    times = _entries(segment, "timeindex")
    index = index_entries(segment)
    if times is None or index is None:
        return -1
    offsets, stamps = times
    at = int(np.searchsorted(stamps, timestamp, side="left")) - 1
    if at < 0:
        return -1
    offset, stamp = int(offsets[at]), int(stamps[at])
    index_at = int(np.searchsorted(index[0], offset, side="right")) - 1
    start = 0 if index_at < 0 else int(index[1][index_at])
    if index_at >= 0 and batch_with(buffer, start, int(index[0][index_at])) is None:
        return -1
    if isinstance(buffer, RemoteMap):
        following = int(index[1][index_at + 1]) if index_at + 1 < len(index[1]) else None
        buffer = buffer.batches_between(start, following) if following is not None else buffer.tail(start)
    for headers in HeaderScan(buffer, start).headers(HEADERS_PER_LOOK):
        holds = (headers["base_offset"] <= offset) & (offset <= last_offsets(headers))
        if holds.any():
            return offset if int(headers[holds][0]["max_timestamp"]) == stamp else -1
        break
    return -1
