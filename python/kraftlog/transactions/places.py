"""Places in a log: the number of a segment and a byte of it, as one number that rises along the log."""

from __future__ import annotations

PLACE_BITS = 40  # of the byte: files of up to 1 TiB


def place_of(number: int, position: int = 0) -> int:
    """Return the place of a byte of a segment."""
    return (number << PLACE_BITS) + position
