"""The offset for a time, like an answer to ListOffsets."""

from __future__ import annotations

from dataclasses import dataclass

from kraftlog.codec.headers import NO_TIMESTAMP

Time = str | int
"""One of ``TIMES``, or milliseconds since the epoch."""


@dataclass(frozen=True)
class Found:
    """An offset, and the timestamp of its record if requested."""

    offset: int | None = None
    timestamp: int = NO_TIMESTAMP
