"""The segments that a broker recovers, reading them completely, when it loads a log (``LogLoader``)."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlog.layout.index_files import is_sane_txnindex
from kraftlog.layout.segment import Segment


def first_unflushed(segments: Sequence[Segment], recovery_point: int) -> int:
    """Return the index of the first segment that a broker recovers after a crash: the one with the recovery point.

    Parameters
    ----------
    segments : sequence of Segment
        In the order of the log.
    recovery_point : int
        Everything before it is on disk.
    """
    at_most = [n for n, segment in enumerate(segments) if (segment.base_offset or 0) <= recovery_point]
    return max(at_most, default=0)


def is_taken_as_it_is(segment: Segment) -> bool:
    """Whether a broker skips the recovery of a segment that is on disk, since its index files are sane."""
    if "index" not in segment.beside:
        return False
    txnindex = segment.beside.get("txnindex")
    return txnindex is None or is_sane_txnindex(txnindex, segment.base_offset or 0)
