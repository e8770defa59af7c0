"""Sums over transactions in bounded memory: counts, times of their ends, the longest and the last aborted ones."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog.transactions.producer import ABORTED, NONE, OPEN, STATES, Transactions

LONGEST = 12  # ended transactions to show
LAST_ABORTED = 12
OPEN_KEPT = 200
MOST_BINS = 512
FIRST_WIDTH, WIDER = 1000, 4  # initial milliseconds of a time bin, and the factor by which bins grow

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Transaction:
    """A transaction of a producer in one partition; times are milliseconds, -1 where unknown.

    Attributes
    ----------
    end_timestamp : int
        Timestamp of the marker, or of the last batch of an open transaction.
    """

    topic: str | None
    partition: int | None
    producer_id: int
    state: str
    first_offset: int
    last_offset: int
    records_count: int
    size_in_bytes: int
    start_timestamp: int
    end_timestamp: int

    @property
    def duration(self) -> int | None:
        """Milliseconds from the first batch to the marker, or to the last batch of an open one."""
        if self.start_timestamp < 0 or self.end_timestamp < self.start_timestamp:
            return None
        return self.end_timestamp - self.start_timestamp

    @property
    def key(self) -> tuple[str | None, int | None, int]:
        """Topic, partition and producer, which has at most one open transaction there."""
        return self.topic, self.partition, self.producer_id

    @property
    def name(self) -> str:
        """Of its partition."""
        return "file" if self.topic is None else f"{self.topic}-{self.partition}"


class TimeBins:
    """Counts of ended transactions in time bins, which grow wider if there would be too many."""

    def __init__(self) -> None:
        self.width = FIRST_WIDTH
        self.counts: dict[int, tuple[int, int]] = {}  # committed and aborted, by time divided by width

    def add(self, timestamps: Numbers, is_aborted: npt.NDArray[np.bool_]) -> None:
        """Count transactions by the time of their markers."""
        bins, at = np.unique(timestamps // self.width, return_inverse=True)
        aborted = np.bincount(at, is_aborted, len(bins)).astype(int).tolist()
        every = np.bincount(at, minlength=len(bins)).tolist()
        self._take(dict(zip(bins.tolist(), zip(every, aborted, strict=True), strict=True)))

    def join(self, other: TimeBins) -> None:
        """Add the counts of another object."""
        while self.width < other.width:
            self._widen()
        by = self.width // other.width
        for at, (every, aborted) in other.counts.items():
            self._take({at // by: (every + aborted, aborted)})

    def _take(self, found: dict[int, tuple[int, int]]) -> None:
        for at, (every, aborted) in found.items():
            committed, known = self.counts.get(at, (0, 0))
            self.counts[at] = committed + every - aborted, known + aborted
        while len(self.counts) > MOST_BINS:
            self._widen()

    def _widen(self) -> None:
        counts, self.counts = self.counts, {}
        self.width *= WIDER
        for at, (committed, aborted) in counts.items():
            one, other = self.counts.get(at // WIDER, (0, 0))
            self.counts[at // WIDER] = one + committed, other + aborted


class TransactionSums:
    """Transactions of one partition, or of many.

    Attributes
    ----------
    counts : dict
        Counts by state, as in the table ``partition_transactions``.
    open, longest, aborted : list of Transaction
        Open transactions, those that took longest to end, and the last aborted ones; as many as are shown.
    bins : TimeBins
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(STATES, 0)
        self.open: list[Transaction] = []
        self.longest: list[Transaction] = []
        self.aborted: list[Transaction] = []
        self.bins = TimeBins()

    @property
    def count(self) -> int:
        """Number of transactions."""
        return sum(self.counts.values())

    def add(self, topic: str | None, partition: int | None, rows: Transactions) -> None:
        """Add transactions that ended, or are open at the end of the log."""
        if not len(rows):
            return
        counts = np.bincount(rows["state"], minlength=len(STATES)).tolist()
        self.counts = {name: self.counts[name] + counts[code] for code, name in enumerate(STATES)}
        is_open, is_aborted = rows["state"] == OPEN, rows["state"] == ABORTED

        def named(chosen: Transactions) -> list[Transaction]:
            return [_transaction(topic, partition, row) for row in chosen]

        self.open += named(rows[is_open][: OPEN_KEPT - len(self.open)])
        has_data = rows["first_offset"] != NONE
        duration = np.where(has_data & ~is_open, rows["end_timestamp"] - rows["start_timestamp"], -1)
        longest = np.argsort(-duration, kind="stable")[:LONGEST]
        self.longest = _longest([*self.longest, *named(rows[longest[duration[longest] >= 0]])])
        aborted = np.flatnonzero(is_aborted)
        self.aborted = _latest([*self.aborted, *named(rows[aborted[-LAST_ABORTED:]])])
        ended = ~is_open & (rows["end_timestamp"] >= 0)
        if ended.any():
            self.bins.add(rows["end_timestamp"][ended], is_aborted[ended])

    def join(self, other: TransactionSums) -> None:
        """Add the sums of another partition."""
        self.counts = {name: count + other.counts[name] for name, count in self.counts.items()}
        self.open += other.open[: OPEN_KEPT - len(self.open)]
        self.longest = _longest([*self.longest, *other.longest])
        self.aborted = _latest([*self.aborted, *other.aborted])
        self.bins.join(other.bins)


def _longest(some: list[Transaction]) -> list[Transaction]:
    return heapq.nlargest(LONGEST, some, key=lambda one: one.duration or 0)


def _latest(some: list[Transaction]) -> list[Transaction]:
    return heapq.nlargest(LAST_ABORTED, some, key=lambda one: one.end_timestamp)


def _transaction(topic: str | None, partition: int | None, row: Any) -> Transaction:
    end = "last_timestamp" if row["state"] == OPEN else "end_timestamp"
    numbers = {name: int(row[name]) for name in ("producer_id", "first_offset", "last_offset", "records_count")}
    return Transaction(
        topic,
        partition,
        **numbers,
        state=STATES[row["state"]],
        size_in_bytes=int(row["size_in_bytes"]),
        start_timestamp=int(row["start_timestamp"]),
        end_timestamp=int(row[end]),
    )
