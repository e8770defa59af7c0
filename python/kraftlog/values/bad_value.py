"""A value that does not fit its format or schema."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BadValue:
    """A value that does not fit: its row, and why."""

    row: int
    reason: str
