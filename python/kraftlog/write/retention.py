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
        The closed segments of a partition, in order, whose transactions have all ended; each with its end offset.
    size : int
        Bytes of all its segments.
    now : int
        In milliseconds.
    log_start_offset : int
        Segments before it are removed in any case.
    retention_ms, retention_bytes : int or None
        Limits of age and size; None is unlimited.
    """
    doomed = []
    for segment, end in segments:
        stamp = NONE if retention_ms is None else largest_timestamp(segment)
        is_old = retention_ms is not None and (0 <= stamp < now - retention_ms or segment.size == 0)
        is_large = retention_bytes is not None and retention_bytes <= size - segment.size
        if not (end <= log_start_offset or is_old or is_large):
            break
        size -= segment.size
        doomed.append(segment)
    return doomed
