"""Options for writing a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from kraftlog.write.producers import EVER

Fsync = Literal["commit", "batch", "close"]
FSYNC = get_args(Fsync)
LARGEST_SEGMENT_BYTES = 2**31 - 1


@dataclass(frozen=True)
class LogOptions:
    """Options for writing a log.

    Attributes
    ----------
    segment_bytes : int
        Kafka's ``segment.bytes``.
    fsync : {"commit", "batch", "close"}
        When to wait for the disk: at each commit, after each batch as well, or only when a segment is closed.
    allows_gaps : bool
        Whether there may be gaps between batches, as in a compacted log.
    least_timestamp : int
        Producers without a write since this time, in milliseconds, are left out of new ``.snapshot`` files.
    """

    segment_bytes: int = LARGEST_SEGMENT_BYTES
    fsync: str = "commit"
    allows_gaps: bool = False
    least_timestamp: int = EVER
