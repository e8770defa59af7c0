"""Checks that a transaction coordinator would have written the records of ``__transaction_state`` in this order.

The states that may precede each other are those of Kafka's ``TransactionState``. A coordinator writes a record again
when it did not learn whether the first one was written, so that a state may follow itself. Cleaning removes a record
only together with all earlier ones of its transactional id: the records that are left of one id follow each other.
"""

from __future__ import annotations

from typing import NamedTuple

from kraftlog.topics import TopicPartition
from kraftlog.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    StateRecord,
)

_NAMES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
_ENDED = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
_BEFORE = {
    EMPTY: _ENDED,
    ONGOING: _ENDED,
    PREPARE_COMMIT: (ONGOING,),
    PREPARE_ABORT: (ONGOING, *_ENDED),  # with transaction version 2 a client may abort what it has not begun
    COMPLETE_COMMIT: (PREPARE_COMMIT,),
    COMPLETE_ABORT: (PREPARE_ABORT,),
}


class OddRecord(NamedTuple):
    """A record that does not follow from the one before it, and the reason."""

    of: TopicPartition
    offset: int
    what: str


class TransitionCheck:
    """Goes through the records of ``__transaction_state``.

    Attributes
    ----------
    odd : list of OddRecord
    """

    def __init__(self) -> None:
        self.odd: list[OddRecord] = []
        self._last: dict[tuple[TopicPartition, str], tuple[int, StateRecord]] = {}

    def add(self, of: TopicPartition, offset: int, record: StateRecord) -> None:
        """Take the next record of a partition."""
        key = of, record.transactional_id
        if record.status is None:
            self._last.pop(key, None)
            return
        if key in self._last:
            at, last = self._last[key]
            what = _contradiction(last, record)
            if what:
                self.odd.append(OddRecord(of, offset, f"{record.transactional_id}: {what} at offset {at}"))
        self._last[key] = offset, record


def _contradiction(last: StateRecord, record: StateRecord) -> str:
    before, now = last.status, record.status
    assert before is not None
    assert now is not None
    if record.producer_id == last.producer_id and record.producer_epoch < last.producer_epoch:
        return f"producer_epoch {record.producer_epoch} after {last.producer_epoch}"
    if now != before and now in _BEFORE and before in _BEFORE and before not in _BEFORE[now]:
        return f"{_NAMES[now]} after {_NAMES[before]}"
    if now == ONGOING and before in _ENDED and _producer_of(record) != _producer_of(last):
        began = "producer_id {}, epoch {}".format(*_producer_of(record))
        return f"Ongoing of {began}, which no record initializes after {_NAMES[before]} of epoch {last.producer_epoch}"
    # a record of the same transaction may be written again, at another time, and after a fence with another epoch
    is_next = record.start != last.start and record.producer_epoch != last.producer_epoch
    if now == before and now in (PREPARE_COMMIT, PREPARE_ABORT) and is_next:
        return f"{_NAMES[now]} of another transaction than"
    is_other = (record.start, record.last_update) != (last.start, last.last_update)
    if now == before and now in (COMPLETE_COMMIT, COMPLETE_ABORT) and is_other:  # Kafka writes only the same one again
        return f"{_NAMES[now]} of another transaction than"
    if now != before and now in (PREPARE_COMMIT, PREPARE_ABORT):  # which adds no partitions
        added = sorted(str(one) for one in record.partitions - (last.partitions if before == ONGOING else frozenset()))
        if added:
            return f"{_NAMES[now]} with {', '.join(added)}, which the transaction does not have in the record"
    if before == ONGOING and now in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT) and record.start == last.start:
        left_out = sorted(str(one) for one in last.partitions - record.partitions)
        if left_out:
            return f"{_NAMES[now]} without {', '.join(left_out)}, which the transaction has in the record"
    return ""


def _producer_of(record: StateRecord) -> tuple[int, int]:
    return record.producer_id, record.producer_epoch
