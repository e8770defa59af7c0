"""Transactions of producers: all or nothing, once, and never of a producer that is fenced."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk
from kraftlog import LogStore
from kraftlog.errors import RecordTooLargeError
from kraftlog.log_store import cluster
from kraftlog.log_store.errors import (
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTransactionError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
    UnknownTopicOrPartitionError,
)
from kraftlog.log_store.partition import BatchOptions, Partition
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.transaction_coordinator import EXPIRATION_MS, TransactionCoordinator
from kraftlog.log_store.transaction_state import COMPLETE_COMMIT, LAST_EPOCH, TransactionState
from kraftlog.server.client_transactions import ClientProducer
from standing_clock import StandingClock

Opened = Callable[..., LogStore]
ROWS = pa.table({"key": ["a", "b", "c", "d"], "value": ["1", "2", "3", "4"]})


@pytest.fixture
def store(opened: Opened) -> LogStore:
    store = opened()
    store.create_topic("orders", 3)
    return store


def committed(store: LogStore, topic: str = "orders") -> list[bytes]:
    """Return the values that another reader of the directory finds committed."""
    log = kraftlog.open(store.path, topics=[topic])
    return sorted(log.records(["value"], isolation_level="read_committed").to_table()["value"].to_pylist())


def states(path: Path) -> list[tuple[int, int, str, int]]:
    rows = kraftlog.open(path, topics=["orders"]).partition_transactions().to_pylist()
    return sorted((row["producer_epoch"], row["partition"], row["state"], row["records_count"]) for row in rows)


def test_all_partitions_or_none(store: LogStore):
    producer = store.producer("etl")
    producer.begin_transaction()
    producer.send("orders", ROWS)
    assert committed(store) == []
    producer.commit_transaction()
    assert committed(store) == [b"1", b"2", b"3", b"4"]
    producer.begin_transaction()
    producer.send("orders", ROWS)
    producer.abort_transaction()
    assert committed(store) == [b"1", b"2", b"3", b"4"]
    partitions = {state[1] for state in states(store.path)}
    assert len(partitions) > 1
    assert [state[2] for state in states(store.path)] == ["committed"] * len(partitions) + ["aborted"] * len(partitions)


def test_a_block_that_raises(store: LogStore):
    producer = store.producer("etl")

    def fail() -> None:
        with producer.transaction():
            producer.send("orders", ROWS)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with producer.transaction():
        producer.send("orders", value="after", key="a")
    assert committed(store) == [b"after"]


def test_markers_have_the_epoch_behind_that_of_the_data(store: LogStore):
    """As transaction version 2 has it; each transaction begins with sequence 0."""
    producer = store.producer("etl")
    for _ in range(3):
        with producer.transaction():
            producer.send("orders", value="x", partition=1)
            producer.send("orders", pa.table({"value": ["y", "z"]}), partition=1)
    batches = kraftlog.open(store.path / "orders-1").batches().to_pylist()
    assert [(row["producer_epoch"], row["base_sequence"], row["control_type"]) for row in batches] == [
        row for epoch in range(3) for row in [(epoch, 0, None), (epoch, 1, None), (epoch + 1, -1, "COMMIT")]
    ]
    assert kraftlog.open(store.path).errors().to_pylist() == []


def test_sequences_begin_anew_with_each_epoch(store: LogStore):
    """Also where the partition has forgotten the producer, such as one of a topic that was made again."""
    store.create_topic("again")
    producer = store.producer("etl")
    with producer.transaction():
        producer.send("again", pa.table({"value": ["x", "y"]}))
    store.delete_topic("again")
    store.create_topic("again")
    with producer.transaction():
        producer.send("again", pa.table({"value": ["z"]}))
    first, _ = kraftlog.open(store.path / "again-0").batches().to_pylist()
    assert (first["producer_epoch"], first["base_sequence"]) == (1, 0)


def test_ids_are_in_the_partitions_in_which_a_broker_looks_for_them(opened: Opened):
    codes = {"a": 97, "b": 98, "etl": 100_765}  # of Java's hashCode
    with opened(transaction_log_partitions=50) as store:
        for each in codes:
            store.producer(each)
    for each, code in codes.items():
        found = kraftlog.open(store.path / f"__transaction_state-{code % 50}").transactional_ids()
        assert found["transactional_id"].to_pylist() == [each]


def test_nothing_is_written_of_an_empty_transaction(store: LogStore):
    producer = store.producer("etl")
    before = store.transactional_ids()
    with producer.transaction():
        pass
    producer.begin_transaction()
    producer.abort_transaction()
    assert store.transactional_ids() == before
    assert not list(store.path.glob("orders-*"))


def test_a_second_producer_fences_the_first(store: LogStore):
    first = store.producer("etl")
    first.begin_transaction()
    first.send("orders", ROWS)
    second = store.producer("etl")
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch + 2)
    with pytest.raises(ProducerFencedError):
        first.commit_transaction()
    for call in (lambda: first.send("orders", value="x"), first.begin_transaction, first.abort_transaction):
        with pytest.raises(ProducerFencedError):
            call()
    with second.transaction():
        second.send("orders", value="second")
    assert committed(store) == [b"second"]
    first.init_transactions()
    with first.transaction():
        first.send("orders", value="first")
    assert committed(store) == [b"first", b"second"]


def test_a_fenced_producer_cannot_write(store: LogStore):
    """Nor to a partition that its transaction has already: the marker there has raised the epoch."""
    first = store.producer("etl")
    first.begin_transaction()
    first.send("orders", pa.table({"value": ["x"]}), partition=0)
    store.producer("etl")
    with pytest.raises(ProducerFencedError):
        first.send("orders", pa.table({"value": ["y"]}), partition=1)
    assert not (store.path / "orders-1").exists()


def test_a_transaction_that_takes_too_long(store: LogStore, clock: StandingClock):
    slow, other = store.producer("slow", transaction_timeout_ms=1000), store.producer("other")
    slow.begin_transaction()
    slow.send("orders", pa.table({"value": ["x"]}), partition=0)
    clock.now += 1001
    with other.transaction():
        other.send("orders", value="y", partition=0)
    assert committed(store) == [b"y"]
    with pytest.raises(ProducerFencedError):
        slow.commit_transaction()
    assert [state[2] for state in states(store.path)] == ["aborted", "committed"]


def test_partitions_that_are_added_do_not_put_the_timeout_off(store: LogStore, clock: StandingClock):
    slow = store.producer("slow", transaction_timeout_ms=1000)
    slow.begin_transaction()
    for partition in range(3):
        slow.send("orders", pa.table({"value": ["x"]}), partition=partition)
        clock.now += 500
    with pytest.raises(ProducerFencedError):
        slow.commit_transaction()
    assert committed(store) == []


def test_a_transaction_that_ends_while_others_wait_for_its_id(
    store: LogStore, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
):
    """They found that it had taken too long: its commit, which has the lock of the id, ends it first."""
    slow, coordinator, looked = store.producer("slow", transaction_timeout_ms=1000), store._parts.transactions, Event()
    with slow.transaction():
        slow.send("orders", value="first", partition=0)
    slow.begin_transaction()
    slow.send("orders", pa.table({"value": ["second"]}), partition=0)
    known, settle = coordinator._known, coordinator._settle

    def looks(name: str) -> object:
        if current_thread() is not main_thread():
            looked.set()
        return known(name)

    def waits(*arguments: object) -> None:
        if not looked.is_set():
            clock.now += 1001
            others.append(pool.submit(coordinator.abort_timed_out))
            assert looked.wait(60)
        settle(*arguments)

    others: list[Future[None]] = []
    monkeypatch.setattr(coordinator, "_known", looks)
    monkeypatch.setattr(coordinator, "_settle", waits)
    with ThreadPoolExecutor(1) as pool:
        slow.commit_transaction()
        (other,) = others
        other.result(60)
    with slow.transaction():
        slow.send("orders", value="third", partition=0)
    assert committed(store) == [b"first", b"second", b"third"]


def test_a_commit_comes_too_late(store: LogStore, clock: StandingClock):
    """Nobody else has used the store since: the transaction is aborted all the same, and not forgotten."""
    slow = store.producer("slow", transaction_timeout_ms=1000)
    slow.begin_transaction()
    slow.send("orders", pa.table({"value": ["x"]}), partition=0)
    clock.now += EXPIRATION_MS + 1
    assert store._parts.transactions.expire() == []
    with pytest.raises(ProducerFencedError):
        slow.commit_transaction()
    assert [state[2] for state in states(store.path)] == ["aborted"]


def test_a_transaction_that_no_id_knows_of(opened: Opened, store: LogStore):
    """It is aborted under the epoch of its producer's id: a batch that comes late as well is refused then."""
    with store.producer("etl") as old, store.producer("etl") as new:
        assert (old.producer_epoch, new.producer_epoch) == (0, 1)
        late = Stamp(old.producer_id, 0, 0, is_transactional=True)
        rows = pa.record_batch({"value": ["late"]})
        for partition in (0, 2):
            store._open_partition(("orders", partition)).append_rows(rows, late, BatchOptions(), timestamp_ms=1)
    store._abandon()
    with opened() as again:
        for partition in (0, 2):
            batches = kraftlog.open(again.path / f"orders-{partition}").batches().to_pylist()
            assert [(row["producer_epoch"], row["control_type"]) for row in batches] == [(0, None), (1, "ABORT")]


@pytest.mark.parametrize("timeout", [0, -1, 900_001])
def test_refused_timeouts(store: LogStore, timeout: int):
    with pytest.raises(InvalidTransactionTimeoutError, match=f"{timeout} ms is not between 1 and 900000"):
        store.producer("etl", transaction_timeout_ms=timeout)


def test_an_administrator_aborts(store: LogStore):
    producer = store.producer("etl")
    producer.begin_transaction()
    producer.send("orders", pa.table({"value": ["x"]}))
    store.abort_transaction("etl")
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    for name in ("etl", "never"):
        with pytest.raises(InvalidTransactionError, match="no transaction under way"):
            store.abort_transaction(name)


def test_epochs_run_out(opened: Opened, store: LogStore):
    """At the last epoch of an id the coordinator goes on with a new one; nothing is lost, nothing twice."""
    producer = store.producer("etl")
    parts = store._parts.transactions
    known = parts._ids["etl"]
    assert known.state is not None
    known.state = producer._state = replace(known.state, producer_epoch=LAST_EPOCH - 2)
    producer.producer_epoch = LAST_EPOCH - 2
    seen = []
    for value in ("one", "two", "three"):
        seen.append((producer.producer_id, producer.producer_epoch))
        with producer.transaction():
            producer.send("orders", value=value)
    assert seen == [(0, LAST_EPOCH - 2), (0, LAST_EPOCH - 1), (1, 0)]
    store.close()
    with opened() as again:
        (state,) = again.transactional_ids()
        assert (state.producer_id, state.producer_epoch, state.status) == (1, 1, COMPLETE_COMMIT)
        assert committed(again) == [b"one", b"three", b"two"]
        assert kraftlog.open(again.path).errors().to_pylist() == []


def test_a_producer_begins_with_an_id_whose_epochs_have_run_out(store: LogStore):
    store.producer("etl")
    known = store._parts.transactions._ids["etl"]
    assert known.state is not None
    known.state = replace(known.state, producer_epoch=LAST_EPOCH - 1)
    producer = store.producer("etl")
    assert (producer.producer_id, producer.producer_epoch) == (1, 0)
    with producer.transaction():
        producer.send("orders", value="x")
    assert committed(store) == [b"x"]


def test_ids_expire(opened: Opened, store: LogStore, clock: StandingClock):
    producer = store.producer("etl")
    with producer.transaction():
        producer.send("orders", value="x")
    store.close()
    clock.now += EXPIRATION_MS + 1
    with opened() as again:
        assert again.transactional_ids() == []
        assert kraftlog.open(again.path).transactional_ids().num_rows == 0  # a tombstone says so to a broker
        new = again.producer("etl")
        assert (new.producer_id, new.producer_epoch) == (1000, 0)
        with pytest.raises(InvalidProducerIdMappingError):
            again._parts.transactions.add_partitions(producer._state, frozenset({("orders", 0)}))


def test_ids_that_are_not_in_use_take_no_memory(store: LogStore, clock: StandingClock, monkeypatch: pytest.MonkeyPatch):
    parts = store._parts.transactions
    producer = ClientProducer("etl", 0, 0)
    with pytest.raises(InvalidProducerIdMappingError):
        parts.add_partitions(producer, frozenset({("orders", 0)}))
    with pytest.raises(InvalidProducerIdMappingError):
        parts.end(producer, is_commit=True)
    with pytest.raises(InvalidTransactionError):
        parts.abort("etl")
    assert parts.state("etl") is None
    assert not parts.has_decided(producer)
    assert not parts.includes(producer, frozenset())
    assert parts._ids == {}
    with monkeypatch.context() as failing:
        failing.setattr(type(parts._runtime), "next_producer_id", raising(OSError("no id")))
        with pytest.raises(OSError, match="no id"):
            parts.init_producer_id("etl", 1000)
    assert parts._ids == {}
    parts.init_producer_id("etl", 1000)
    clock.now += EXPIRATION_MS
    assert parts.expire() == []
    clock.now += 1
    assert parts.expire() == ["etl"]
    assert parts._ids == {}


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_a_producer_begins_while_its_id_expires(
    opened: Opened, store: LogStore, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
):
    """What it waits for is the id no longer when it gets it: the next producer would wait for something else."""
    parts, looked = store._parts.transactions, Event()
    parts.init_producer_id("etl", 1000)
    known, settle, entry = parts._id, parts._settle, parts._ids["etl"]

    def looks(name: str) -> object:
        found = known(name)
        looked.set()
        return found

    def waits(*arguments: Any) -> None:
        if not looked.is_set():
            others.append(pool.submit(parts.init_producer_id, "etl", 1000))
            assert looked.wait(60)
        settle(*arguments)

    others: list[Future[TransactionState]] = []
    monkeypatch.setattr(parts, "_id", looks)
    monkeypatch.setattr(parts, "_settle", waits)
    clock.now += EXPIRATION_MS + 1
    with ThreadPoolExecutor(1) as pool:
        assert parts.expire() == ["etl"]
        state = others[0].result(60)
    assert (state.producer_id, state.producer_epoch) == (1, 0)
    assert parts._ids["etl"] is not entry
    assert parts.state("etl") == state
    store.close()
    with opened() as again:
        assert again.transactional_ids() == [state]


def test_a_restart_aborts_what_is_under_way(opened: Opened, store: LogStore):
    producer = store.producer("etl")
    with producer.transaction():
        producer.send("orders", ROWS)
    producer.begin_transaction()
    producer.send("orders", ROWS)
    store._abandon()
    with opened() as again:
        assert committed(again) == [b"1", b"2", b"3", b"4"]
        assert {state[2] for state in states(again.path)} == {"committed", "aborted"}
        assert kraftlog.open(again.path).hanging_transactions().num_rows == 0


def test_closing_aborts_what_is_under_way(opened: Opened, store: LogStore):
    producer = store.producer("etl")
    producer.begin_transaction()
    producer.send("orders", ROWS)
    store.close()
    with opened() as again:
        assert committed(again) == []
        assert {state[2] for state in states(again.path)} == {"aborted"}


def test_a_topic_deleted_inside_of_a_transaction(store: LogStore):
    store.create_topic("gone")
    producer = store.producer("etl")
    with producer.transaction():
        producer.send("orders", value="x")
        producer.send("gone", pa.table({"value": ["y"]}))
        store.delete_topic("gone")
    assert committed(store) == [b"x"]


@pytest.mark.parametrize("topic", ["nowhere"])
def test_topics_that_are_not_there(store: LogStore, topic: str):
    producer = store.producer("etl")
    with pytest.raises(UnknownTopicOrPartitionError), producer.transaction():
        producer.send(topic, value="x")
    with pytest.raises(UnknownTopicOrPartitionError, match="has 3 partitions, and no 3"), producer.transaction():
        producer.send("orders", ROWS, partition=3)
    with producer.transaction():
        producer.send("orders", value="x")
    assert committed(store) == [b"x"]


def test_work_outside_of_transactions(store: LogStore):
    producer, plain = store.producer("etl"), store.producer()
    with pytest.raises(InvalidTransactionError, match="call begin_transaction first"):
        producer.send("orders", value="x")
    for call in (producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(InvalidTransactionError, match="is not in a transaction"):
            call()
    with pytest.raises(InvalidTransactionError, match="require a transactional id"):
        plain.begin_transaction()
    producer.begin_transaction()
    with pytest.raises(InvalidTransactionError, match="is already in a transaction"):
        producer.begin_transaction()


def test_offsets_count_with_the_transaction(opened: Opened, store: LogStore):
    producer = store.producer("etl")
    with producer.transaction():
        producer.send_offsets_to_transaction({("orders", 0): 5, ("orders", 1): 7}, "g")
        assert store.committed("g") == {}
    found = {key: each.offset for key, each in store.committed("g").items()}
    assert found == {("orders", 0): 5, ("orders", 1): 7}
    producer.begin_transaction()
    producer.send_offsets_to_transaction({("orders", 0): 99}, "g")
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({("orders", 1): 99}, "g")
    store._abandon()
    with opened() as again:
        assert {key: each.offset for key, each in again.committed("g").items()} == found
        rows = kraftlog.open(again.path).offsets().to_pylist()
        assert sorted((row["partition"], row["offset"], row["state"]) for row in rows) == [
            (0, 5, "committed"),
            (1, 7, "committed"),
        ]


def test_an_older_transaction_version(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With version 0 markers have the epoch of the data, sequences go on, and records are of version 0."""
    monkeypatch.setitem(cluster.FEATURES, "transaction.version", 0)
    with opened() as store:
        store.create_topic("orders")
        producer = store.producer("etl")
        for _ in range(2):
            with producer.transaction():
                producer.send("orders", pa.table({"value": ["x", "y"]}))
    batches = kraftlog.open(tmp_path / "store/orders-0").batches().to_pylist()
    assert [(row["producer_epoch"], row["base_sequence"]) for row in batches] == [(0, 0), (0, -1), (0, 2), (0, -1)]
    log = kraftlog.open(tmp_path / "store", topics=["__transaction_state"])
    assert set(log.messages(["value_version"]).to_table()["value_version"].to_pylist()) == {0}


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("version", [0, 2])
def test_the_next_transaction_begins_behind_the_end_of_the_last(
    opened: Opened, without_waiting: FaultyDisk, monkeypatch: pytest.MonkeyPatch, version: int, is_commit: bool
):
    """On disk it is complete; then the log says that one is under way, for a broker that opens it, before its data.

    With a transaction version below 2 a marker that is written again would end the next transaction. From 2 on the end
    gives out an epoch: a crash behind an abort may give it out again, as no record has it before the end is on disk.
    """
    monkeypatch.setitem(cluster.FEATURES, "transaction.version", version)
    with opened(transaction_log_partitions=1) as store:
        store.create_topic("orders")
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("orders", pa.table({"value": ["x"]}))
        (producer.commit_transaction if is_commit else producer.abort_transaction)()
        before = len(without_waiting.steps)
        producer.begin_transaction()
        producer.send("orders", value="y")
        producer.flush()
        written = [(step.name, step.path.parent.name) for step in without_waiting.steps[before:]]
        under_way = kraftlog.open(store.path).transactional_ids().to_pylist()
        producer.abort_transaction()
    state = "__transaction_state-0"
    logs = [each for each in written if each[1] in ("orders-0", state) and each[0] in ("append", "sync")]
    markers_on_disk, complete = ("sync", "orders-0"), [("append", state), ("sync", state)]
    assert logs[:5] == [markers_on_disk, *complete, ("append", state), ("append", "orders-0")]
    assert [(row["status"], row["partitions"]) for row in under_way] == [
        ("Ongoing", [{"topic": "orders", "partitions": [0]}])
    ]


def test_a_late_batch_of_a_fenced_producer(store: LogStore):
    """To a partition that its transaction named, but had not written to: the marker there refuses it."""
    first = store.producer("etl")
    first.begin_transaction()
    first._add({("orders", 0), ("orders", 1)})
    store.producer("etl")
    late = Stamp(first.producer_id, first.producer_epoch, 0, is_transactional=True)
    with pytest.raises(InvalidProducerEpochError, match="orders-1: producer 0: epoch 0 is stale; current epoch is 1"):
        store._parts.partition_of(("orders", 1)).append_rows(
            pa.record_batch({"value": [b"late"]}), late, BatchOptions(), timestamp_ms=1
        )
    assert kraftlog.open(store.path).errors().num_rows == 0


def test_a_transaction_that_lacks_records_cannot_be_committed(store: LogStore):
    """Behind a failed send it can only be aborted; a ``with`` block does that."""
    producer = store.producer("etl", max_batch_bytes=1000)
    producer.begin_transaction()
    with pytest.raises(RecordTooLargeError):
        producer.send("orders", pa.table({"value": ["small", "x" * 2000], "partition": [0, 1]}))
    for call in (producer.commit_transaction, lambda: producer.send("orders", value="more")):
        with pytest.raises(InvalidTransactionError, match="it can only be aborted"):
            call()
    producer.abort_transaction()

    def write() -> None:
        with producer.transaction():
            producer.send("orders", value="small")
            producer.send("orders", value="x" * 2000)

    with pytest.raises(RecordTooLargeError):
        write()
    with producer.transaction():
        producer.send("orders", value="fine")
    assert committed(store) == [b"fine"]


def test_a_fenced_producer_and_a_topic_that_was_made_again(store: LogStore):
    """The marker that fences it had no partition to go to."""
    first = store.producer("etl")
    first.begin_transaction()
    first.send("orders", pa.table({"value": ["old"]}), partition=0)
    store.delete_topic("orders")
    second = store.producer("etl")
    store.create_topic("orders", 3)
    with pytest.raises(ProducerFencedError):
        first.send("orders", pa.table({"value": ["late"]}), partition=0)
    with second.transaction():
        second.send("orders", value="new", partition=0)
    assert committed(store) == [b"new"]


def test_offsets_of_a_topic_that_was_deleted_meanwhile(store: LogStore):
    producer = store.producer("etl")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({("orders", 0): 9, ("other", 0): 3}, "g")
    store.delete_topic("orders")
    store.create_topic("orders")
    producer.commit_transaction()
    assert {key: each.offset for key, each in store.committed("g").items()} == {("other", 0): 3}


DELETED_AT = [
    (TransactionCoordinator, "end"),
    (TransactionCoordinator, "_move"),
    (TransactionCoordinator, "_complete"),
    (TransactionCoordinator, "_settle"),
    (Partition, "append_marker"),
    (Partition, "sync"),
    (LogStore, "flush"),
]


@pytest.mark.parametrize("is_created_again", [False, True])
@pytest.mark.parametrize("sync_threads", [0, 4])
@pytest.mark.parametrize(("kind", "name"), DELETED_AT)
def test_a_topic_deleted_while_a_commit_ends(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, sync_threads: int, is_created_again: bool
):
    """Between any two steps of a commit and of what follows: nobody waits for the topic, and the others are whole."""
    store = opened(sync_threads=sync_threads)
    for topic in ("gone", "orders"):
        store.create_topic(topic, 2)
    producer, once = store.producer("etl"), []
    real = getattr(kind, name)

    def deletes_first(self: object, *args: object, **options: object) -> object:
        if not once:
            once.append(name)
            store.delete_topic("gone")
            if is_created_again:
                store.create_topic("gone", 2)
        return real(self, *args, **options)

    producer.begin_transaction()
    for topic in ("gone", "orders"):
        producer.send(topic, pa.table({"value": ["a", "b"], "partition": [0, 1]}))
    with monkeypatch.context() as patches:
        patches.setattr(kind, name, deletes_first)
        producer.commit_transaction()
        store.flush()
    assert once
    with producer.transaction():
        producer.send("orders", value="c")
    with store.producer("etl") as other, other.transaction():
        other.send("orders", value="d")
    assert committed(store) == [b"a", b"b", b"c", b"d"]
    store.close()
    with opened() as again:
        assert committed(again) == [b"a", b"b", b"c", b"d"]
        assert [state.status for state in again.transactional_ids()] == [COMPLETE_COMMIT]
    assert kraftlog.open(store.path).errors().num_rows == 0


@pytest.mark.parametrize("work", ["rows", "marker", "records"])
def test_a_deleted_partition_takes_nothing(store: LogStore, work: str):
    """Of those that had it when its topic was deleted, none writes to its files, or fails the disk."""
    with store.producer("etl") as producer:
        producer.begin_transaction()
        producer.send("orders", pa.table({"value": ["not on disk"]}), partition=0)
        partition = store._parts.partition_of(("orders", 0))
        assert not partition.is_synced
        store.delete_topic("orders")
    partition.sync()
    assert partition.is_synced
    stamp = Stamp(7, 0, 0)
    if work == "marker":
        partition.append_marker(7, 0, is_commit=True, raises_epoch=False, timestamp_ms=0)
    elif work == "rows":
        with pytest.raises(UnknownTopicOrPartitionError, match="deleted"):
            partition.append_rows(pa.record_batch({"value": ["a"]}), stamp, BatchOptions(), 0)
    else:
        with pytest.raises(UnknownTopicOrPartitionError, match="deleted"):
            partition.append_records(lambda base_offset, leader_epoch: b"")
    assert not partition.has_failed


def test_the_topics_that_are_there_say_how_many_partitions_coordinators_have(tmp_path: Path):
    """Options are for new topics: an id and a group stay in their partitions."""
    for count in (2, 50):
        with LogStore(tmp_path / "log", transaction_log_partitions=count, offsets_partitions=count) as store:
            if count == 2:
                store.create_topic("orders")
            for number in range(5):
                producer = store.producer(f"id-{number}")
                producer.begin_transaction()
                producer.send("orders", value=f"{number}")
                producer.commit_transaction()
                consumer = store.consumer(f"group-{number}")
                consumer.subscribe(["orders"])
                consumer.poll()
                consumer.commit()
    internal = ("__transaction_state", "__consumer_offsets")
    folders = {path.name for path in (tmp_path / "log").iterdir() if path.name.startswith(internal)}
    assert folders == {f"{topic}-{number}" for topic in internal for number in (0, 1)}


def test_partitions_that_a_transaction_includes(opened: Opened):
    """They are included when the record that says so is on disk, and for the producer whose transaction it is."""
    one, both = frozenset([("orders", 0)]), frozenset([("orders", 0), ("orders", 1)])
    with opened(transaction_log_partitions=1, continues_transactions=True) as store:
        store.create_topic("orders", 2)
        coordinator = store._parts.transactions
        begun = coordinator.init_producer_id("t", 60_000)
        producer = ClientProducer("t", begun.producer_id, begun.producer_epoch)
        assert not coordinator.includes(ClientProducer("unknown", 0, 0), frozenset())
        assert not coordinator.includes(producer, frozenset())
        coordinator.add_partitions(producer, one)
        assert coordinator.includes(producer, one)
        assert not coordinator.includes(producer, both)
        assert not coordinator.includes(replace(producer, producer_epoch=producer.producer_epoch + 1), one)
        assert not coordinator.includes(replace(producer, producer_id=producer.producer_id + 1), one)
        coordinator.end(producer, is_commit=True)
        assert not coordinator.includes(producer, one)


@pytest.mark.parametrize("step", ["append", "sync"])
def test_partitions_whose_record_is_not_on_disk(opened: Opened, monkeypatch: pytest.MonkeyPatch, step: str):
    partitions, failed, seen = frozenset([("orders", 0)]), list[str](), list[bool]()
    with opened(transaction_log_partitions=1, continues_transactions=True) as store:
        store.create_topic("orders")
        coordinator = store._parts.transactions
        begun = coordinator.init_producer_id("t", 60_000)
        producer = ClientProducer("t", begun.producer_id, begun.producer_epoch)
        name = {"append": "append_records", "sync": "sync"}[step]
        real = getattr(Partition, name)

        def looks_first(partition: Partition, *arguments: object) -> object:
            if not failed:
                failed.append(step)
                raise KeyboardInterrupt
            seen.append(coordinator.includes(producer, partitions))
            return real(partition, *arguments)

        monkeypatch.setattr(Partition, name, looks_first)
        with pytest.raises(KeyboardInterrupt):
            coordinator.add_partitions(producer, partitions)
        assert not coordinator.includes(producer, partitions)
        coordinator.add_partitions(producer, partitions)
        store.flush()
        assert seen[0] is False
        assert coordinator.includes(producer, partitions)
