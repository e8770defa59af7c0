"""Ranges whose readers find out by themselves what is known of the transactions of their records.

Whoever plans them needs to know only what is open at the borders of segments. A range comes with the segments behind
its own in which transactions end that are open at its end, and with those transactions that never end. The rest is in
the headers: see ``kraftlog.read.resolve``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.disk.in_order import SEGMENTS_AT_ONCE, in_order
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Segment
from kraftlog.read.open_transactions import Opened, OpenTransactions
from kraftlog.read.ranges import Range, plan, relevant


@dataclass(frozen=True)
class StandaloneRange(Range):
    """A range whose transactions can be told without the rest of the log, in any order and by any process.

    Attributes
    ----------
    following : tuple of Segment
        Behind its own, up to the one in which the last transaction ends that is open at the end of its own.
    opened : frozenset of tuple
        Producer id and first offset of transactions that are open where its segment starts.
    hanging : frozenset of tuple
        Of those that have begun when its segment ends, and are open at the end of the log.
    """

    following: tuple[Segment, ...] = ()
    opened: Opened = frozenset()
    hanging: Opened = frozenset()


def standalone_ranges(
    segments: list[Segment], options: ReadOptions, range_bytes: int | None, faults: list[Fault]
) -> Iterator[StandaloneRange]:
    """Return the ranges to read of one partition, in order.

    Parameters
    ----------
    segments : list of Segment
        In order. Of each file as many bytes count as it had when it was listed.
    options : ReadOptions
        With ``read_committed`` ranges end at the last stable offset.
    range_bytes : int, optional
        Bytes of log in a range; by default a segment is one. Only larger segments are gone over to be cut.
    faults : list of Fault
        Receives snapshots that could not be read.

    Raises
    ------
    CorruptRecordError
        With ``strict``, when a snapshot cannot be read.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.codec.options import ReadOptions
    >>> from kraftlog.read.standalone import standalone_ranges
    >>> segments = kraftlog.open("tests/golden/compaction/log/cpt-open-0").found.segments
    >>> ranges = standalone_ranges(segments, ReadOptions(isolation_level="read_committed"), 64 << 20, [])
    >>> [(one.segment.base_offset, len(one.following)) for one in ranges]
    [(0, 0), (104, 0)]
    """
    opened = OpenTransactions(segments, faults)
    wanted = list(relevant(segments, options))
    hanging = opened.before(len(segments)) if wanted else frozenset()
    stable = opened.last_stable_place() if wanted and options.isolation_level == READ_COMMITTED else None
    numbers = {segment.path: number for number, segment in enumerate(segments)}
    if stable is not None:
        wanted = [segment for segment in wanted if numbers[segment.path] <= stable[0]]
    cuts = in_order(lambda segment: list(plan([segment], options, range_bytes)), wanted, SEGMENTS_AT_ONCE)
    for segment, ranges in zip(wanted, cuts, strict=True):
        number = numbers[segment.path]
        begun = opened.before(number + 1)
        following = _following(segments, number, begun - hanging, opened)
        if faults and options.strict:
            raise error_from_fault(faults[0])
        end = stable[1] if stable is not None and stable[0] == number else NO_BOUND
        for one in ranges:
            if one.start < end:
                yield StandaloneRange(
                    segment,
                    one.start,
                    min(one.end, end),
                    one.is_first,
                    following=following,
                    opened=opened.before(number),
                    hanging=begun & hanging,
                )


def _following(segments: list[Segment], number: int, waiting: Opened, opened: OpenTransactions) -> tuple[Segment, ...]:
    """Return the segments behind one in which transactions end that wait for their end there."""
    last = number + 1
    while last < len(segments) and waiting & opened.before(last):
        last += 1
    return tuple(replace(segment, beside={}) for segment in segments[number + 1 : last])
