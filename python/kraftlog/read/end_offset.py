"""The end of a partition's log, from the headers of its last batches."""

from __future__ import annotations

import numpy as np

from kraftlog.codec.headers import last_offsets
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import as_listed, segment_headers

_AT_THE_END = ReadOptions(start_offset=NO_BOUND, include_deleted=True)


def end_offset(segment: Segment, faults: list[Fault], *, check_crc: bool = False) -> int:
    """Return the offset after the last batch of a segment; its base offset if it has none.

    Only headers after the last entry of the index file are read.

    Parameters
    ----------
    segment : Segment
    faults : list of Fault
        Receives faults in headers, and one ``unreadable_file`` if the file cannot be read.
    check_crc : bool
        Whether to read these batches and ignore those with wrong checksums.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.read.end_offset import end_offset
    >>> end_offset(kraftlog.open("tests/golden/codecs/log/codec-lz4-0").found.segments[-1], [])
    751
    """
    last = last_header(segment, faults, check_crc=check_crc)
    base = segment.base_offset or 0
    return base if last is None else max(base, int(last["base_offset"] + last["last_offset_delta"]) + 1)


def last_header(segment: Segment, faults: list[Fault], *, check_crc: bool = False) -> np.void | None:
    """Return the header of the batch with the last offset of a segment; None if it has no batch.

    Parameters are as in ``end_offset``.
    """
    start = 0
    try:
        with as_listed(segment) as file:
            start, _ = seek(segment, file, _AT_THE_END)
    except OSError:
        pass  # the walk says so
    faults_count = len(faults)
    header = _walked(segment, faults, start, check_crc=check_crc)
    if header is None and start and check_crc:
        del faults[faults_count:]
        header = _walked(segment, faults, 0, check_crc=True)
    return header


def _walked(segment: Segment, faults: list[Fault], start: int, *, check_crc: bool) -> np.void | None:
    """Return the header with the last offset of the batches that start at or after a position."""
    header: np.void | None = None
    most = -1
    for headers in segment_headers(segment, faults, start=start, check_crc=check_crc):
        counted = headers[headers["crc_ok"] != 0] if check_crc else headers
        last = last_offsets(counted)
        if last.max(initial=-1) > most:
            header, most = counted[int(last.argmax())].copy(), int(last.max())
    return header
