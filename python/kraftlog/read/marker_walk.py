"""Ranges to read, and the ranges between and after them in which only markers may matter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kraftlog.codec.options import READ_COMMITTED
from kraftlog.layout.segment import Segment
from kraftlog.read.committed_ranges import ranges_with_transactions
from kraftlog.read.log_pass import Pass
from kraftlog.read.ranges import Range, plan


class Stretch(NamedTuple):
    """A range of a partition's log.

    Attributes
    ----------
    part : Range
    is_wanted : bool
        Whether it can contain records within the bounds; in other ranges only the ends of transactions matter.
    """

    part: Range
    is_wanted: bool


def stretches(segments: Sequence[Segment], read: Pass) -> Iterator[Stretch]:
    """Return the log of a partition from the first range within the bounds on, in order, without gaps.

    Parameters
    ----------
    segments : sequence of Segment
        Live segments of one partition, in order.
    read : Pass
        With ``read_committed`` the selected ranges end at the last stable offset, and a note gives it. Faults are those
        of transactions.
    """
    numbers = {segment.path: number for number, segment in enumerate(segments)}
    if read.options.isolation_level == READ_COMMITTED:
        parts = ranges_with_transactions(list(segments), [], read)
    else:
        parts = plan(list(segments), read.options, None)
    reached: tuple[int, int] | None = None  # number of the segment, and byte in it
    for part in parts:
        number = numbers[part.segment.path]
        if reached is not None:
            yield from _between(segments, reached, (number, part.start))
        yield Stretch(part, is_wanted=True)
        reached = number, min(part.end, part.segment.size)
    if reached is not None:
        yield from _between(segments, reached, (len(segments), 0))


def _between(segments: Sequence[Segment], first: tuple[int, int], end: tuple[int, int]) -> Iterator[Stretch]:
    for number in range(first[0], min(end[0] + 1, len(segments))):
        segment = segments[number]
        start = first[1] if number == first[0] else 0
        stop = end[1] if number == end[0] else segment.size
        if start < stop:
            yield Stretch(Range(segment, start, stop), is_wanted=False)
