"""Limits of a store: sizes of batches, idle producers and ids, open files, disks that fail, records that wait."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, Step
from kraftlog import LogStore
from kraftlog.errors import RecordTooLargeError
from kraftlog.log_store.errors import (
    InvalidProducerIdMappingError,
    LostRecordsError,
    ProducerFencedError,
    StorageError,
    StoreError,
)
from kraftlog.log_store.partition import PRODUCER_EXPIRATION_MS
from kraftlog.log_store.transaction_coordinator import EXPIRATION_MS
from kraftlog.write.recovery_points import read_recovery_points
from standing_clock import StandingClock

Opened = Callable[..., LogStore]


def values(path: Path, topic: str = "orders", level: str = "read_committed") -> list[bytes]:
    log = kraftlog.open(path, topics=[topic])
    return log.records(["value"], isolation_level=level).to_table()["value"].to_pylist()


# max.message.bytes


def test_batches_are_split_to_what_the_topic_takes(opened: Opened):
    with opened() as store:
        store.create_topic("orders", configs={"max.message.bytes": 1000})
        with store.producer() as producer:
            producer.send("orders", pa.table({"value": [b"x" * 90] * 50}))
    sizes = kraftlog.open(store.path / "orders-0").batches()["size_in_bytes"].to_pylist()
    assert len(sizes) > 4
    assert max(sizes) <= 1000
    assert values(store.path) == [b"x" * 90] * 50


def test_a_record_that_the_topic_does_not_take(opened: Opened):
    with opened() as store:
        store.create_topic("orders", configs={"max.message.bytes": 1000})
        store.create_topic("least", configs={"max.message.bytes": 0})
        producer = store.producer()
        with pytest.raises(
            RecordTooLargeError, match=r"orders-0: record 1: .* takes 1\d+ bytes.*MESSAGE_TOO_LARGE"
        ) as no:
            producer.send("orders", pa.table({"value": [b"y", b"x" * 1000]}))
        assert no.value.kafka_code == 10
        with pytest.raises(RecordTooLargeError):
            producer.send("least", pa.table({"value": ["x"]}))
        producer.send("orders", pa.table({"value": ["kept"]}))
        producer.close()
        with store.producer(compression="zstd") as packed:
            packed.send("orders", pa.table({"value": [b"x" * 5000]}))  # what counts is what is written
    assert values(store.path) == [b"kept", b"x" * 5000]


def test_a_batch_that_does_not_shrink_enough(opened: Opened):
    noise = bytes((at * at * 7919 >> 5) % 256 for at in range(3000))
    with opened() as store:
        store.create_topic("orders", configs={"max.message.bytes": 1000})
        with store.producer(compression="gzip") as producer:
            with pytest.raises(RecordTooLargeError, match="MESSAGE_TOO_LARGE"):
                producer.send("orders", pa.table({"value": [noise]}))
            producer.send("orders", pa.table({"value": [noise[:500], noise[500:1000], noise[1000:1500]]}))
    assert [len(value) for value in values(store.path)] == [500] * 3


# what is idle goes


def test_idle_producers_go(opened: Opened, clock: StandingClock):
    with opened() as store:
        store.create_topic("orders", configs={"internal.segment.bytes": 2000})
        for _ in range(30):
            with store.producer() as producer:
                producer.send("orders", value="x")
        partition = store._open_partition(("orders", 0))
        assert len(partition.producers) == 30
        clock.now += PRODUCER_EXPIRATION_MS + 1
        with store.producer() as producer:
            for _ in range(40):
                producer.send("orders", pa.table({"value": ["x" * 50]}))
        assert len(partition.producers) == 1
        assert len(partition._log.producer_states()) == 1
    assert kraftlog.open(store.path).errors().num_rows == 0


def test_ids_expire_while_the_store_is_open(opened: Opened, clock: StandingClock):
    with opened() as store:
        store.create_topic("orders")
        idle, busy = store.producer("idle"), store.producer("busy")
        with idle.transaction():
            idle.send("orders", value="x")
        clock.now += EXPIRATION_MS
        with busy.transaction():
            busy.send("orders", value="y")
        clock.now += 3_600_001
        with busy.transaction():
            busy.send("orders", value="z")
        assert [state.transactional_id for state in store.transactional_ids()] == ["busy"]
        idle.begin_transaction()
        with pytest.raises(InvalidProducerIdMappingError):
            idle.send("orders", pa.table({"value": ["late"]}))
    assert values(store.path) == [b"x", b"y", b"z"]


def test_recovery_points_of_deleted_topics_go(opened: Opened):
    with opened() as store:
        store.create_topic("orders", 2)
        store.create_topic("kept")
        with store.producer() as producer:
            producer.send("orders", pa.table({"value": ["a", "b"], "partition": [0, 1]}))
            producer.send("kept", value="c")
        store.delete_topic("orders")
        points = read_recovery_points(store.path)
        assert [key for key in points if key[0] in ("orders", "kept")] == [("kept", 0)]


# disks that fail


def test_an_abort_that_fails_is_of_its_own_id(opened: Opened, clock: StandingClock, without_waiting: FaultyDisk):
    """The disk under a transaction that has timed out fails; a producer with another id goes on."""
    store = opened()
    store.create_topic("broken")
    store.create_topic("orders")
    first, second = store.producer("first", transaction_timeout_ms=1000), store.producer("second")
    first.begin_transaction()
    first.send("broken", pa.table({"value": ["x"]}))
    clock.now += 2000

    def fails(step: Step) -> OSError | None:
        return OSError(errno.EIO, "gone") if "broken-0" in str(step.path) and step.name == "append" else None

    without_waiting.fails = fails
    with second.transaction():
        second.send("orders", pa.table({"value": ["fine"]}))
    with pytest.raises(StorageError, match="gone"):
        first.init_transactions()
    with pytest.raises(StorageError, match="gone"):
        first.init_transactions()
    with suppress(StoreError):
        store.close()
    without_waiting.fails = lambda step: None
    with opened() as again:
        assert not any(state.is_pending for state in again.transactional_ids())
    assert values(store.path) == [b"fine"]
    assert values(store.path, "broken") == []


def test_init_transactions_ends_what_is_prepared(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    """Markers that could not be written when a transaction was decided are written then."""
    with opened() as store:
        store.create_topic("orders")
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("orders", value="decided")
        partition = store._open_partition(("orders", 0))
        with monkeypatch.context() as patched:

            def refuse(*_: object, **__: object) -> None:
                raise StorageError("no files are left")

            patched.setattr(partition, "append_marker", refuse)
            with pytest.raises(StorageError, match="no files are left"):
                producer.commit_transaction()
        producer.init_transactions()
        with producer.transaction():
            producer.send("orders", value="next")
    assert values(store.path) == [b"decided", b"next"]


def test_too_many_open_files(opened: Opened, without_waiting: FaultyDisk):
    with opened() as store:
        store.create_topic("orders")
        producer = store.producer()
        without_waiting.fails = lambda step: OSError(errno.EMFILE, "Too many open files", str(step.path))
        with pytest.raises(StorageError, match=r"Too many open files.*lower open_files.*ulimit -n"):
            producer.send("orders", pa.table({"value": ["x"]}))
        without_waiting.fails = lambda step: None
        producer.init_transactions()
        producer.send("orders", value="y")
    assert values(store.path) == [b"y"]


def test_partitions_close_their_files(opened: Opened, tmp_path: Path):
    def is_open(at: int) -> bool:
        return store._open_partition(("orders", at))._log._segment._file is not None

    with opened(open_files=3) as store:
        store.create_topic("orders", 8)
        producer = store.producer("etl")
        for number in range(3):
            with producer.transaction():
                producer.send("orders", pa.table({"value": [f"{number}"] * 8, "partition": list(range(8))}))
            assert sum(map(is_open, range(8))) <= 3
        assert is_open(7)
    log = kraftlog.open(tmp_path / "store", topics=["orders"])
    assert log.records(isolation_level="read_committed").to_table().num_rows == 24
    assert log.errors().num_rows == 0


# records that wait


def test_closing_a_store_writes_what_waits(opened: Opened):
    store = opened()
    store.create_topic("orders")
    plain, other = store.producer(), store.producer("etl")
    plain.send("orders", value="waits")
    other.begin_transaction()
    other.send("orders", value="aborted")
    store.close()
    assert values(store.path, level="read_uncommitted") == [b"waits"]


def test_closing_a_store_says_what_could_not_be_written(opened: Opened):
    store = opened()
    store.create_topic("orders")
    store.create_topic("kept")
    first, second = store.producer(), store.producer()
    first.send("kept", value="a")
    second.send("orders", value="b")
    store.delete_topic("orders")
    with pytest.raises(LostRecordsError, match="topic 'orders'"):
        store.close()
    with opened():  # it was closed nevertheless
        assert values(store.path, "kept") == [b"a"]


def test_a_fenced_producer_writes_nothing_that_waits(opened: Opened):
    with opened() as store:
        store.create_topic("orders")
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("orders", value="late")
        with store.producer("etl") as other, other.transaction():
            other.send("orders", value="kept")
        with pytest.raises(ProducerFencedError):
            producer.flush()
    assert values(store.path, level="read_uncommitted") == [b"kept"]


@pytest.mark.parametrize("fsync", ["commit", "close"])
def test_files_that_were_closed_are_synced(opened: Opened, without_waiting: FaultyDisk, fsync: str):
    """All that a partition holds is synced when the store is closed, also of one whose file is not open."""
    with opened(open_files=1, fsync=fsync) as store:
        store.create_topic("orders", 3)
        producer = store.producer()
        for number in range(3):
            producer.send("orders", pa.table({"value": ["x"]}), partition=number)
            producer.send("orders", pa.table({"value": ["y"]}), partition=number)
    for number in range(3):
        path = store.path / f"orders-{number}" / f"{0:020d}.log"
        names = [step.name for step in without_waiting.steps if step.path == path]
        assert "append" in names
        assert "sync" in names[len(names) - names[::-1].index("append") :]
