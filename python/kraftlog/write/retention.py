"""Which segments retention removes, by the rules of Kafka's ``UnifiedLog.deleteOldSegments``."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlog.layout.segment import Segment
from kraftlog.transactions.producer_state import NONE
from kraftlog.write.log_cleaner import largest_timestamp


def doomed_segments(
    segments: Sequence[tuple[Segment, int]],
    size: int,
    now: int,
    *,
    log_start_offset: int,
    retention_ms: int | None,
    retention_bytes: int | None,
) -> list[Segment]:
    """Return the segments that are removed, from the first one on.

    Parameters
    ----------
    segments : sequence of (Segment, int)
        The closed ones of a partition, all of whose transactions have ended, in order; each with the offset behind it.
    size : int
        Bytes of all its segments.
    now : int
        In milliseconds.
    log_start_offset : int
        What lies before it goes in any case.
    retention_ms, retention_bytes : int or None
        What is older, or more, goes; None is no limit.
    """
    found = []
    for segment, end in segments:
        stamp = NONE if retention_ms is None else largest_timestamp(segment)
        is_old = retention_ms is not None and (0 <= stamp < now - retention_ms or segment.size == 0)
        is_large = retention_bytes is not None and retention_bytes <= size - segment.size
        if not (end <= log_start_offset or is_old or is_large):
            break
        size -= segment.size
        found.append(segment)
    return found
