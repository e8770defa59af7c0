"""Which segments a broker recovers when it loads a log, as ``LogLoader``: it reads the whole of them again."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlog.layout.index_files import is_sane_txnindex
from kraftlog.layout.segment import Segment


def first_unflushed(segments: Sequence[Segment], recovery_point: int) -> int:
    """Return the number of the first segment that a broker recovers because it was not closed: that of an offset.

    Parameters
    ----------
    segments : sequence of Segment
        In the order of the log.
    recovery_point : int
        What lies before it is on disk.
    """
    at_most = [n for n, segment in enumerate(segments) if (segment.base_offset or 0) <= recovery_point]
    return max(at_most, default=0)


def is_taken_as_it_is(segment: Segment) -> bool:
    """Whether a broker does not recover a segment whose log file is on disk: it has sane index files."""
    if "index" not in segment.beside:
        return False
    txnindex = segment.beside.get("txnindex")
    return txnindex is None or is_sane_txnindex(txnindex, segment.base_offset or 0)
