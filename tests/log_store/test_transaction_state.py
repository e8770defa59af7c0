"""The states of transactional ids: those that Kafka's coordinator wrote, and each refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from golden_files import GOLDEN
from kraftlog.log_store.errors import InvalidProducerIdMappingError, InvalidTransactionError, ProducerFencedError
from kraftlog.log_store.transaction_records import transaction_record
from kraftlog.log_store.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    LAST_EPOCH,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    AddPartitions,
    Complete,
    EndTransaction,
    Event,
    Fence,
    InitProducerId,
    TransactionState,
    transition,
)
from kraftlog.tables.open_log import open as open_log

ORDERS = frozenset({("orders", 0)})


def states_of(row: dict) -> TransactionState:
    return TransactionState(
        row["transactional_id"],
        row["producer_id"],
        row["producer_epoch"],
        row["transaction_timeout_ms"],
        row["transaction_status"],
        frozenset(
            (topic["topic"], number)
            for topic in row["transaction_partitions"] or ()
            for number in topic["partition_ids"]
        ),
        row["transaction_start_timestamp_ms"],
        row["transaction_last_update_timestamp_ms"],
        row["previous_producer_id"],
        row["next_producer_id"],
        row["client_transaction_version"],
    )


def golden_rows(case: str) -> list[dict]:
    log = open_log(GOLDEN / case / "log", topics=["__transaction_state"])
    return log.messages(type="TransactionLog").to_table().to_pylist()


def event_between(before: TransactionState | None, after: TransactionState) -> Event:
    """Return the event that must have come: what a record says is new in it."""
    now = after.last_update_timestamp
    if after.status == EMPTY:
        return InitProducerId(after.timeout_ms, now, after.producer_id)
    if after.status == ONGOING:
        assert before is not None
        return AddPartitions(
            before.producer_id, before.producer_epoch, after.partitions, now, after.transaction_version
        )
    if after.status in (COMPLETE_COMMIT, COMPLETE_ABORT):
        return Complete(now)
    assert before is not None
    is_commit = after.status == PREPARE_COMMIT
    if after.transaction_version < 2 and after.producer_epoch > before.producer_epoch:
        return Fence(now)
    return EndTransaction(before.producer_id, before.producer_epoch, is_commit, now)


@pytest.mark.parametrize("case", ["transactions", "transactions_tv0"])
def test_each_record_of_kafka_is_a_transition(case: str):
    """All records of its coordinator, in order: from each state the next one follows."""
    last: dict[str, TransactionState] = {}
    seen = set()
    for row in golden_rows(case):
        after = states_of(row)
        before = last.get(after.transactional_id)
        found = transition(after.transactional_id, before, event_between(before, after))
        if case == "transactions_tv0":  # version 0 of the record has no such fields
            found = replace(found, previous_producer_id=-1, transaction_version=0)
        assert found == after, (before, after)
        last[after.transactional_id] = after
        seen.add(after.status)
    assert seen == {EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT}


@pytest.mark.parametrize(("case", "version"), [("transactions", 2), ("transactions_tv0", 0)])
def test_each_record_is_written_as_kafka_writes_it(case: str, version: int):
    log = open_log(GOLDEN / case / "log", topics=["__transaction_state"])
    rows = log.messages(["offset", "partition", "raw_key", "raw_value"]).to_table().to_pylist()
    golden = {(row["partition"], row["offset"]): (row["raw_key"], row["raw_value"]) for row in rows}
    typed = golden_rows(case)
    assert len(typed) == len(golden) > 50
    for row in typed:
        record, (key, value) = transaction_record(states_of(row), version), golden[row["partition"], row["offset"]]
        assert record.key == key
        if len(row["transaction_partitions"] or ()) < 2:
            assert record.value == value
        else:  # topics come in the order of Java's hash table there
            assert record.value is not None
            assert sorted(record.value) == sorted(value)


def begun(epoch: int = 0, status: int = ONGOING, version: int = 2) -> TransactionState:
    return TransactionState("etl", 7, epoch, 1000, status, ORDERS, 5, 5, 7, -1, version)


def test_the_last_epoch_brings_a_new_producer_id():
    """An epoch ends each transaction; when none is left, the completed state has another producer id."""
    state = begun(LAST_EPOCH - 1)
    prepared = transition("etl", state, EndTransaction(7, LAST_EPOCH - 1, True, 6, new_producer_id=9))
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (7, LAST_EPOCH, 9)
    complete = transition("etl", prepared, Complete(7))
    assert (complete.producer_id, complete.producer_epoch) == (9, 0)
    assert (complete.previous_producer_id, complete.next_producer_id, complete.status) == (7, -1, COMPLETE_COMMIT)
    with pytest.raises(ProducerFencedError):
        transition("etl", complete, AddPartitions(7, LAST_EPOCH, ORDERS, 8, 2))
    going_on = transition("etl", complete, AddPartitions(9, 0, ORDERS, 8, 2))
    assert (going_on.status, going_on.producer_id) == (ONGOING, 9)


def test_a_new_producer_of_an_exhausted_id():
    state = begun(LAST_EPOCH - 1, COMPLETE_COMMIT, version=1)
    found = transition("etl", state, InitProducerId(1000, 9, new_producer_id=12))
    assert (found.producer_id, found.producer_epoch, found.previous_producer_id) == (12, 0, 7)


def test_a_new_producer_brings_its_own_timeout():
    found = transition("etl", begun(3, EMPTY), InitProducerId(2000, 9))
    assert (found.timeout_ms, found.producer_epoch, found.status, found.start_timestamp) == (2000, 4, EMPTY, -1)


def test_a_fenced_transaction_of_the_last_epoch():
    fenced = transition("etl", begun(LAST_EPOCH - 1), Fence(6))
    assert (fenced.status, fenced.producer_epoch) == (PREPARE_ABORT, LAST_EPOCH)
    complete = transition("etl", fenced, Complete(7))
    found = transition("etl", complete, InitProducerId(1000, 9, new_producer_id=12))
    assert (found.producer_id, found.producer_epoch) == (12, 0)
    assert transition("etl", begun(LAST_EPOCH), Fence(6)).producer_epoch == LAST_EPOCH  # a larger one fits no record


def test_events_that_come_twice_change_nothing():
    state = begun()
    assert transition("etl", state, AddPartitions(7, 0, ORDERS, 9, 2)) is state
    complete = transition("etl", transition("etl", state, Fence(6)), Complete(7))
    assert transition("etl", complete, Complete(8)) is complete


@pytest.mark.parametrize(
    ("state", "event", "error", "says"),
    [
        (
            None,
            AddPartitions(7, 0, ORDERS, 1, 2),
            InvalidProducerIdMappingError,
            "no producer id; it is unknown or expired",
        ),
        (begun(), AddPartitions(8, 0, ORDERS, 1, 2), InvalidProducerIdMappingError, "belongs to producer 7, not 8"),
        (begun(3), AddPartitions(7, 2, ORDERS, 1, 2), ProducerFencedError, "epoch 2 of producer 7 is fenced"),
        (begun(3), AddPartitions(7, 4, ORDERS, 1, 2), ProducerFencedError, "epoch 4 of producer 7 is fenced"),
        (begun(3), EndTransaction(7, 2, True, 1), ProducerFencedError, "has epoch 3 of producer 7"),
        (begun(0, EMPTY), EndTransaction(7, 0, True, 1), InvalidTransactionError, "no open transaction"),
        (begun(0, COMPLETE_ABORT), Fence(1), InvalidTransactionError, "no open transaction"),
        (begun(0, PREPARE_COMMIT), AddPartitions(7, 0, ORDERS, 1, 2), InvalidTransactionError, "about to end"),
        (begun(), InitProducerId(1, 1), InvalidTransactionError, "still has an open transaction; end it first"),
    ],
)
def test_refusals(state: TransactionState | None, event: Event, error: type[Exception], says: str):
    with pytest.raises(error, match=says):
        transition("etl", state, event)
