"""Groups: generations that fence members, topics that come and go, and the order of committed offsets."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog import LogStore, process
from kraftlog.log_store.consumer import Consumer
from kraftlog.log_store.errors import (
    CommitFailedError,
    IllegalGenerationError,
    InvalidProducerEpochError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.producer_entries import Stamp
from standing_clock import StandingClock

Opened = Callable[..., LogStore]
HERE = ("orders", 0)


@pytest.fixture
def store(opened: Opened) -> Iterator[LogStore]:
    with opened() as store:
        store.create_topic("orders", 4)
        store.create_topic("out")
        yield store


def send(store: LogStore, *values: str, topic: str = "orders", partition: int = 0) -> None:
    with store.producer() as producer:
        producer.send(topic, pa.table({"value": list(values)}), partition=partition)


def polled(consumer: Consumer) -> list[bytes]:
    return consumer.poll()["value"].to_pylist()


def member(store: LogStore, group: str | None = "g", topics: object = ("orders",), **options: object) -> Consumer:
    consumer = store.consumer(group, isolation_level="read_committed", **options)  # type: ignore[arg-type]
    consumer.subscribe(topics)  # type: ignore[arg-type]
    return consumer


# generations


def test_an_older_generation_commits_nothing(store: LogStore):
    send(store, "a", "b")
    first = member(store)
    assert polled(first) == [b"a", b"b"]
    second = member(store)
    with pytest.raises(IllegalGenerationError, match="generation 1 of 'consumer-1' is stale; 2 has begun") as raised:
        first.commit()
    assert raised.value.kafka_code == 22
    assert store.committed("g") == {}
    assert polled(first) == [b"a", b"b"]  # as nothing was committed, its own partitions are read again
    first.commit()
    assert store.committed("g")[HERE].offset == 2
    second.close()
    with pytest.raises(CommitFailedError):
        first.commit()


def test_who_is_no_member_commits_for_an_empty_group_alone(store: LogStore):
    other = store.consumer("g")
    other.assign([HERE])
    other.commit({HERE: 1})
    first = member(store)
    with pytest.raises(UnknownMemberIdError, match="has 1 members") as raised:
        other.commit({HERE: 2})
    assert raised.value.kafka_code == 25
    left = first.group_metadata()
    first.close()
    other.commit({HERE: 3})
    producer = store.producer("etl")
    producer.begin_transaction()
    with pytest.raises(UnknownMemberIdError, match="'consumer-1' is no longer a member"):
        producer.send_offsets_to_transaction({HERE: 4}, left)
    producer.abort_transaction()
    assert store.committed("g") == {HERE: OffsetAndMetadata(3)}


def test_a_transaction_of_an_older_generation(store: LogStore):
    """It is refused and can only be aborted; by its name alone a group is not checked, as with Kafka."""
    first, producer = member(store), store.producer("etl")
    producer.begin_transaction()
    old = first.group_metadata()
    assert old == GroupMetadata("g", 1, "consumer-1")
    second = member(store)
    with pytest.raises(IllegalGenerationError):
        producer.send_offsets_to_transaction({HERE: 1}, old)
    producer.abort_transaction()
    with producer.transaction():
        producer.send_offsets_to_transaction({HERE: 1}, "g")
    with producer.transaction():
        producer.send_offsets_to_transaction({HERE: 2}, second.group_metadata())
    assert store.committed("g") == {HERE: OffsetAndMetadata(2)}


def test_the_sequence_of_offsets_in_a_transaction(opened: Opened, store: LogStore):
    """A coordinator does not check it; Kafka's writes 0 for each. The store knows the same when it is opened again."""

    def sequences(log: Path) -> list[int]:
        rows = kraftlog.open(log, topics=["__consumer_offsets"]).batches().to_pylist()
        return [row["base_sequence"] for row in rows if row["is_transactional"] and not row["is_control"]]

    assert set(sequences(GOLDEN / "transactions" / "log")) == {0}
    producer = store.producer("etl")
    for offset in (1, 2):
        with producer.transaction():
            producer.send_offsets_to_transaction({HERE: offset}, "g")
            producer.send_offsets_to_transaction({("orders", 1): offset}, "g")
    assert sequences(store.path) == [0] * 4
    store.close()
    with opened() as again:
        producer = again.producer("etl")
        with producer.transaction():
            producer.send_offsets_to_transaction({HERE: 3}, "g")
    assert sequences(store.path) == [0] * 5


def test_a_partition_waits_for_the_transaction_that_commits_its_offset(store: LogStore):
    send(store, "a", "b", "c")
    first, producer = member(store), store.producer("etl")
    first.poll()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({HERE: 2}, first.group_metadata())
    first.close()
    second = member(store)
    assert (polled(second), len(second.assignment()), len(second.position())) == ([], 4, 3)
    uncommitted = store.consumer("g")
    uncommitted.subscribe(["orders"])
    second.close()
    assert polled(uncommitted) == [b"a", b"b", b"c"]  # read_uncommitted does not wait
    uncommitted.close()
    third = member(store)
    producer.commit_transaction()
    assert polled(third) == [b"c"]


def test_two_calls_of_process_at_once(store: LogStore):
    """The second one takes over half of the partitions; what the first one had under way is not there twice."""
    for at in range(4):
        send(store, f"{at} a", f"{at} b", partition=at)
    seen: list[int] = []

    def outer(rows: pa.Table) -> pa.Table:
        seen.append(rows.num_rows)
        if len(seen) == 1:
            assert process(store, "orders", outer, "out", group="g", transactional_id="two") == 4
        return rows.select(["value"])

    assert process(store, "orders", outer, "out", group="g", transactional_id="one") == 4
    assert seen == [8, 4, 4]
    log = kraftlog.open(store.path, topics=["out"])
    found = log.records(["value"], isolation_level="read_committed").to_table()["value"].to_pylist()
    assert sorted(found) == [f"{at} {each}".encode() for at in range(4) for each in "ab"]


def test_threads_that_process(tmp_path: Path):
    """Each record comes out once, however the threads come and go."""
    with LogStore(tmp_path) as store:
        store.create_topic("orders", 4)
        store.create_topic("out", 2)
        start = Barrier(4)

        def write() -> None:
            with store.producer() as producer:
                for number in range(60):
                    rows = {"value": [f"{number} {at}" for at in range(4)], "partition": [0, 1, 2, 3]}
                    producer.send("orders", pa.table(rows))

        def work(number: int) -> int:
            start.wait(timeout=60)
            done = 0
            for _ in range(6):
                how = {"group": "g", "transactional_id": f"worker {number}", "max_records": 20}
                done += process(store, "orders", lambda rows: rows.select(["value"]), "out", **how)
            return done

        write()
        with ThreadPoolExecutor(4) as pool:
            counts = sum(pool.map(work, range(4)))
        counts += process(
            store, "orders", lambda rows: rows.select(["value"]), "out", group="g", transactional_id="last"
        )
    log = kraftlog.open(tmp_path, topics=["out"])
    found = log.records(["value"], isolation_level="read_committed").to_table()["value"].to_pylist()
    assert counts == 240
    assert sorted(found) == sorted(f"{number} {at}".encode() for number in range(60) for at in range(4))


# order of committed offsets


def test_the_later_record_counts(opened: Opened):
    """A commit beside a transaction that was appended behind it stays, in memory as in a store that is opened again."""
    with opened() as store:
        producer, consumer = store.producer("etl"), store.consumer("g")
        producer.begin_transaction()
        producer.send_offsets_to_transaction({("t", 0): 10, ("t", 1): 10}, "g")
        consumer.commit({("t", 0): 5})
        producer.commit_transaction()
        expected = {("t", 0): OffsetAndMetadata(5), ("t", 1): OffsetAndMetadata(10)}
        assert store.committed("g") == expected
        producer.begin_transaction()
        producer.send_offsets_to_transaction({("t", 0): 20}, "g")
        producer.send_offsets_to_transaction({("t", 0): 21}, "g")
        producer.commit_transaction()
        expected["t", 0] = OffsetAndMetadata(21)
        assert store.committed("g") == expected
    rows = kraftlog.open(store.path).offsets().to_pylist()
    assert {(row["topic"], row["partition"]): row["offset"] for row in rows} == {("t", 0): 21, ("t", 1): 10}
    with opened() as store:
        assert store.committed("g") == expected


def test_a_deleted_topic_takes_offsets_that_wait_with_it(opened: Opened):
    with opened() as store:
        store.create_topic("t")
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send_offsets_to_transaction({("t", 0): 10, ("u", 0): 1}, "g")
        store.delete_topic("t")
        producer.commit_transaction()
        assert store.committed("g") == {("u", 0): OffsetAndMetadata(1)}
    with opened() as store:
        assert store.committed("g") == {("u", 0): OffsetAndMetadata(1)}


def test_offsets_that_come_behind_the_marker(store: LogStore):
    """They are refused, and do not wait for the producer's next transaction."""
    producer = store.producer("etl")
    producer.begin_transaction()
    producer.send_offsets_to_transaction({HERE: 1}, "g")
    old = Stamp(producer.producer_id, producer.producer_epoch, is_transactional=True)
    store.abort_transaction("etl")
    with pytest.raises(InvalidProducerEpochError):
        store._parts.groups.commit_in_transaction(GroupMetadata("g"), {HERE: OffsetAndMetadata(2)}, old)
    producer.init_transactions()
    with producer.transaction():
        producer.send_offsets_to_transaction({("orders", 1): 3}, "g")
    assert store.committed("g") == {("orders", 1): OffsetAndMetadata(3)}


# topics that come and go, positions that are out of range


def test_a_deleted_topic_is_told_once(store: LogStore):
    send(store, "a")
    consumer = member(store, topics=["orders", "out"])
    assert len(consumer.assignment()) == 5
    store.delete_topic("out")
    with pytest.raises(UnknownTopicOrPartitionError, match="out: deleted"):
        consumer.poll()
    assert polled(consumer) == [b"a"]
    assert len(consumer.assignment()) == 4
    store.create_topic("out", 2)
    send(store, "new", topic="out", partition=1)
    assert b"new" in polled(consumer)
    assert len(consumer.assignment()) == 6


def test_a_pattern_sees_new_topics(store: LogStore):
    consumer = member(store, None, re.compile("or.*s|log"))
    assert {topic for topic, _ in consumer.assignment()} == {"orders"}
    assert consumer.subscription == re.compile("or.*s|log")
    send(store, "a")
    assert polled(consumer) == [b"a"]
    store.create_topic("log")
    store.create_topic("logs")
    send(store, "b", topic="log")
    assert polled(consumer) == [b"b"]  # and no "a" once more
    store.delete_topic("log")
    assert polled(consumer) == []
    assert {topic for topic, _ in consumer.assignment()} == {"orders"}


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_topic_that_was_created_again(store: LogStore, reset: str):
    """It is another topic: positions of the first one mean nothing, even where it has such offsets."""
    send(store, "a", "b")
    consumer = store.consumer("g", auto_offset_reset=reset)
    consumer.assign([HERE])
    consumer.seek(HERE, 1)
    assert polled(consumer) == [b"b"]
    store.delete_topic("orders")
    store.create_topic("orders")
    send(store, "c", "d", "e")
    with pytest.raises(UnknownTopicOrPartitionError, match="was recreated"):
        consumer.commit()
    assert polled(consumer) == ([b"c", b"d", b"e"] if reset == "earliest" else [])
    assert consumer.position() == {HERE: 3}


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_position_behind_the_end(store: LogStore, reset: str):
    send(store, "a", "b")
    store.consumer("g").commit({HERE: 100})
    consumer = member(store, auto_offset_reset=reset)
    assert polled(consumer) == ([b"a", b"b"] if reset == "earliest" else [])
    send(store, "c")
    assert polled(consumer) == [b"c"]


def test_a_log_that_starts_later(opened: Opened):
    with opened() as store:
        store.create_topic("orders", 2)
        send(store, *"abcdef")
    (store.path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    with opened() as store:
        lone = store.consumer()
        lone.assign([HERE])
        assert (lone.position(), lone.lag()) == ({HERE: 4}, {HERE: 2})
        lone.seek(HERE, 1)
        assert lone.lag() == {HERE: 2}
        assert polled(lone) == [b"e", b"f"]
        store.consumer("g").commit({HERE: 1})
        assert polled(member(store)) == [b"e", b"f"]


def test_a_transaction_that_times_out_lets_go_of_its_offsets(opened: Opened, clock: StandingClock):
    with opened() as store:
        store.create_topic("orders")
        send(store, "a")
        first, producer = member(store), store.producer("etl", transaction_timeout_ms=1000)
        first.poll()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({HERE: 1}, first.group_metadata())
        second = member(store)
        first.close()
        assert polled(second) == []
        clock.now += 2000
        assert polled(second) == [b"a"]


# members that are gone


@pytest.mark.parametrize("holds_iterator", [False, True])
def test_a_consumer_that_nobody_has_leaves_its_group(store: LogStore, holds_iterator: bool):
    """As a notebook that runs its cell again leaves it; the next member reads all partitions."""
    send(store, "a", "b")
    consumer = member(store)
    if holds_iterator:
        assert polled(consumer) == [b"a", b"b"]
        consumer.commit()
        send(store, "c")
    del consumer
    gc.collect()
    following = member(store)
    assert len(following.assignment()) == 4
    assert polled(following) == ([b"c"] if holds_iterator else [b"a", b"b"])
    following.commit()


def test_a_finalizer_waits_for_nobody(store: LogStore):
    """The garbage collector may run it in a thread that holds the lock of the members."""
    kept, dropped = member(store), member(store)
    members = store._parts.members
    with members._lock:
        del dropped
        gc.collect()
    assert len(kept.assignment()) == 4


def test_members_that_do_not_poll_lose_their_partitions_to_others(store: LogStore, clock: StandingClock):
    send(store, "a", "b")
    slow, other = member(store, max_poll_interval_ms=1000), member(store, max_poll_interval_ms=10**6)
    assert polled(slow) == [b"a", b"b"]
    assert len(other.assignment()) == 2
    clock.now += 1000
    assert len(other.assignment()) == 2
    clock.now += 1
    assert len(other.assignment()) == 4
    with pytest.raises(UnknownMemberIdError):
        slow.commit()
    assert polled(other) == [b"a", b"b"]
    other.commit()
    assert polled(slow) == []  # it joins again
    assert len(slow.assignment()) == len(other.assignment()) == 2
    slow.commit()


def test_a_member_that_is_alone_may_take_its_time(store: LogStore, clock: StandingClock):
    send(store, "a")
    alone = member(store, max_poll_interval_ms=1000)
    assert polled(alone) == [b"a"]
    clock.now += 10**9
    alone.commit()
    assert store.committed("g")[HERE].offset == 1
    with pytest.raises(ValueError, match="max_poll_interval_ms 0"):
        store.consumer("g", max_poll_interval_ms=0)
