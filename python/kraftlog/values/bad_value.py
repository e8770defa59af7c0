"""A value that does not fit its format or schema."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BadValue:
    """A value that does not fit: its row, and why.

    Attributes
    ----------
    is_in_part : bool
        Whether the fields that fit are kept; else it is null.
    """

    row: int
    reason: str
    is_in_part: bool = False
