"""Checks that a transaction coordinator would have written the records of ``__transaction_state`` in this order.

The states that may precede each other are those of Kafka's ``TransactionState``. A coordinator writes a record again
when it did not learn whether the first one was written, so that a state may follow itself. Cleaning removes a record
only together with all earlier ones of its transactional id: the records that are left of one id follow each other.

A coordinator takes the state of a record when all replicas in sync have it. If they do not within the timeout of the
transaction, the coordinator keeps the state that it had, and the record stays in the log
(``TransactionStateManager.appendTransactionToLog``): a partition whose addition timed out is not in the decision. A
record may therefore follow from an earlier one than the last, from which all records between them follow as well. Only
completed transactions are certain: their record is written until all have it.
"""

from __future__ import annotations

from typing import NamedTuple

from kraftlog.topics import TopicPartition
from kraftlog.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    NONE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    StateRecord,
)

_NAMES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
_COMPLETE = (COMPLETE_COMMIT, COMPLETE_ABORT)
_ENDED = (EMPTY, *_COMPLETE)
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


class _State(NamedTuple):
    """A state that a coordinator may have; without a record, an unknown one."""

    offset: int = NONE
    record: StateRecord | None = None


class TransitionCheck:
    """Goes through the records of ``__transaction_state``.

    Attributes
    ----------
    odd : list of OddRecord
    """

    def __init__(self) -> None:
        self.odd: list[OddRecord] = []
        self._ends: dict[TopicPartition, int] = {}
        self._is_whole: dict[TopicPartition, bool] = {}
        self._states: dict[tuple[TopicPartition, str], list[_State]] = {}  # since the last one that is certain

    def add(self, of: TopicPartition, offset: int, record: StateRecord) -> None:
        """Take the next record of a partition."""
        self._is_whole[of] = self._is_whole.get(of, True) and offset == self._ends.get(of, 0)
        self._ends[of] = offset + 1
        key = of, record.transactional_id
        if record.status is None:
            self._states.pop(key, None)
            return
        states = self._states.setdefault(key, [] if self._is_whole[of] else [_State()])
        what = _contradiction(states[-1], record) if states else ""
        if what:
            states[:] = _possible(states, record)
            if not states:
                self.odd.append(OddRecord(of, offset, f"{record.transactional_id}: {what}"))
        if record.status in _COMPLETE:
            states.clear()
        states.append(_State(offset, record))


def _possible(states: list[_State], record: StateRecord) -> list[_State]:
    """Return the states from which a record and all records before it follow."""
    possible, later = [], [record]
    for state in reversed(states):
        if all(_follows(state, one) for one in later):
            possible.append(state)
        if state.record is not None:
            later.append(state.record)
    return possible[::-1]


def _follows(state: _State, record: StateRecord) -> bool:
    """Whether a record follows from a state, and is of the same transaction or begins one."""
    if state.record is None or _contradiction(state, record):
        return state.record is None
    start = record.last_update if state.record.status in _ENDED else state.record.start
    return record.status == EMPTY or record.start == start


def _contradiction(state: _State, record: StateRecord) -> str:
    """Return why a record does not follow from a state; empty if it does."""
    what = "" if state.record is None else _difference(state.record, record)
    return what and f"{what} at offset {state.offset}"


def _difference(last: StateRecord, record: StateRecord) -> str:
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
