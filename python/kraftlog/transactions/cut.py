"""``Cut``: end offsets of partitions between which no transaction and no committed input offset is torn.

A transaction is whole at a cut when its markers lie before the ends of all its partitions, or of none. The offsets that
it committed must not point past the ends of their partitions. Cuts form a lattice: of two cuts, the lesser end of each
partition is a cut, and so is the greater one. So there is one greatest cut below any offsets, and one least cut above.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import itemgetter
from typing import NamedTuple

from kraftlog.times import TimestampLike, milliseconds
from kraftlog.topics import TopicPartition
from kraftlog.transactions.transaction import COMMITTED, OPEN, Transaction

Offsets = Mapping[TopicPartition, int]
OffsetsOfPartitions = Iterable[tuple[TopicPartition, int]]


class Side(Enum):
    """On which side of a time a cut lies."""

    AT_OR_BEFORE = "at-or-before"
    AT_OR_AFTER = "at-or-after"
    END = "end"


class CutTime(NamedTuple):
    """Which cut is asked for.

    Attributes
    ----------
    side : Side
    timestamp : int
        In milliseconds; 0 for ``Side.END``.

    Examples
    --------
    >>> from kraftlog.transactions.cut import CutTime
    >>> CutTime.of("at-or-before:1970-01-01T00:00:01Z")
    CutTime(side=<Side.AT_OR_BEFORE: 'at-or-before'>, timestamp=1000)
    >>> CutTime.of("end").side
    <Side.END: 'end'>
    """

    side: Side
    timestamp: int = 0

    @classmethod
    def of(cls, text: str) -> CutTime:
        """Read ``end``, ``at-or-before:TIME`` or ``at-or-after:TIME``.

        Raises
        ------
        ValueError
        """
        name, colon, time = text.partition(":")
        sides = {side.value for side in Side}
        if name not in sides or bool(colon) == (name == Side.END.value) or bool(colon) != bool(time):
            raise ValueError(f"cut {text!r} is not end, at-or-before:TIME or at-or-after:TIME")
        return cls(Side(name)) if name == Side.END.value else cls.at(Side(name), time)

    @classmethod
    def at(cls, side: Side, time: TimestampLike) -> CutTime:
        """Return the cut on a side of a time."""
        return cls(side, milliseconds(time))

    def __str__(self) -> str:
        return self.side.value if self.side is Side.END else f"{self.side.value}:{self.timestamp}"


class WholeTransaction(NamedTuple):
    """What a cut must not tear of one transaction.

    Attributes
    ----------
    name : str
        As messages show it.
    markers : tuple of (TopicPartition, int)
        Offsets of its markers.
    is_ending : bool
        Whether a partition still lacks its marker, so that no cut holds all of them.
    input_offsets : tuple of (TopicPartition, int)
        The offsets that it committed.
    """

    name: str
    markers: tuple[tuple[TopicPartition, int], ...]
    is_ending: bool = False
    input_offsets: tuple[tuple[TopicPartition, int], ...] = ()

    @classmethod
    def of(cls, transaction: Transaction, input_offsets: OffsetsOfPartitions = ()) -> WholeTransaction:
        """Return what a cut must not tear of a transaction.

        A marker that is missing from a log that goes on is no reason to wait for it: no cut could mend that.
        """
        markers = tuple((part.of, part.marker_offset) for part in transaction.parts if part.has_ended)
        is_ending = bool(markers) and any(part.state == OPEN for part in transaction.parts)
        name = f"{transaction.producer_id}:{transaction.producer_epoch}"
        return cls(name, markers, is_ending, tuple(input_offsets) if transaction.decision == COMMITTED else ())


@dataclass(frozen=True)
class Cut:
    """End offsets at which nothing is torn.

    Attributes
    ----------
    ends : mapping of TopicPartition to int
        Of each partition the offset at which it ends.
    asked : mapping of TopicPartition to int
        Where partitions would end by the time alone.
    unknown : tuple of str
        What the files do not tell of transactions.
    open_from : mapping of TopicPartition to int
        The first offset of transactions that are open at the cut, of partitions that have some; only of a cut at the
        end of logs.
    """

    ends: Offsets
    asked: Offsets = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    open_from: Offsets = field(default_factory=dict)

    def notes(self) -> Iterator[str]:
        """Return how far partitions lie from the time that was asked for, and what is not known."""
        for of, end in sorted(self.ends.items()):
            moved = end - self.asked.get(of, end)
            if moved:
                count = f"{abs(moved)} offset{'s' if abs(moved) > 1 else ''}"
                where = "before" if moved < 0 else "after"
                yield f"{of}: ends at offset {end}, {count} {where} the time, so that no transaction is torn"
        yield from self.unknown


def greatest_cut(ends: Offsets, transactions: Iterable[WholeTransaction]) -> dict[TopicPartition, int]:
    """Return the greatest cut whose ends are not greater than some offsets.

    Parameters
    ----------
    ends : mapping of TopicPartition to int
        Of each partition; what lies in others is not looked at.
    transactions : iterable of WholeTransaction

    Returns
    -------
    dict of TopicPartition to int
    """
    cut = dict(ends)
    every = list(transactions)
    markers = _linked((one.markers, one) for one in every)
    inputs = _linked((one.input_offsets, one) for one in every)
    waiting = deque(cut)

    def leave_out(transaction: WholeTransaction) -> None:
        for of, offset in transaction.markers:
            if offset < cut.get(of, offset):
                cut[of] = offset
                waiting.append(of)

    for transaction in every:
        if transaction.is_ending:
            leave_out(transaction)
    while waiting:
        of = waiting.popleft()
        while markers[of] and markers[of][-1][0] >= cut[of]:
            leave_out(markers[of].pop()[1])
        while inputs[of] and inputs[of][-1][0] > cut[of]:
            leave_out(inputs[of].pop()[1])
    return cut


def least_cut(
    begins: Offsets,
    ends: Offsets,
    transactions: Iterable[WholeTransaction],
    batch_end: Callable[[TopicPartition, int], int] = lambda _, offset: offset,
) -> dict[TopicPartition, int]:
    """Return the least cut whose ends are not less than some offsets.

    Parameters
    ----------
    begins : mapping of TopicPartition to int
    ends : mapping of TopicPartition to int
        Where the logs end.
    transactions : iterable of WholeTransaction
    batch_end : callable
        Returns the end of the batch that holds the record before an offset.

    Returns
    -------
    dict of TopicPartition to int

    Raises
    ------
    ValueError
        When there is none: a transaction has not ended in all its partitions, or a log ends before an offset that was
        committed.
    """
    cut = dict(begins)
    markers = _linked(((one.markers, one) for one in transactions), descending=True)
    waiting = deque(cut)

    def take(transaction: WholeTransaction) -> None:
        if transaction.is_ending:
            raise ValueError(f"no cut: transaction {transaction.name} has not ended in all its partitions")
        for of, offset in transaction.markers:
            reach(of, offset + 1)
        for of, offset in transaction.input_offsets:
            if of in cut and offset > ends[of]:
                committed = f"transaction {transaction.name} committed offset {offset}"
                raise ValueError(f"no cut: {committed} of {of}, which ends at offset {ends[of]}")
            if offset > cut.get(of, offset):
                reach(of, batch_end(of, offset))

    def reach(of: TopicPartition, offset: int) -> None:
        if offset > cut.get(of, offset):
            cut[of] = offset
            waiting.append(of)

    while waiting:
        of = waiting.popleft()
        while markers[of] and markers[of][-1][0] < cut[of]:
            take(markers[of].pop()[1])
    return cut


Linked = dict[TopicPartition, list[tuple[int, WholeTransaction]]]
"""Transactions by the offset at which a partition has them, in order."""


def _linked(each: Iterable[tuple[OffsetsOfPartitions, WholeTransaction]], *, descending: bool = False) -> Linked:
    linked: Linked = defaultdict(list)
    for offsets, transaction in each:
        for of, offset in offsets:
            linked[of].append((offset, transaction))
    for some in linked.values():
        some.sort(key=itemgetter(0), reverse=descending)
    return linked
