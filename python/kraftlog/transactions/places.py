"""Places in a log: segment number and byte position, combined into one number that increases along the log."""

from __future__ import annotations

PLACE_BITS = 40  # bits of the byte position: files of up to 1 TiB


def place_of(number: int, position: int = 0) -> int:
    """Return the place of a byte of a segment."""
    return (number << PLACE_BITS) + position


def number_of(place: int) -> int:
    """Return the segment number of a place."""
    return place >> PLACE_BITS
