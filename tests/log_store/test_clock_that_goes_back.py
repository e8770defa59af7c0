"""A clock that is set back beneath a store, as by NTP: nothing is lost by it, and nothing goes early."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.errors import ProducerFencedError
from standing_clock import StandingClock

Opened = Callable[..., LogStore]
HOUR = 3_600_000
PARTITIONS = 2
CONFIGS = {"internal.segment.bytes": 1500, "retention.ms": HOUR}


@dataclass
class Sent:
    """A record, as it has to be seen."""

    partition: int
    timestamp: int
    value: bytes


def shown(path: Path, **options: object) -> list[Sent]:
    log = kraftlog.open(path, topics=["t"])
    columns = ["partition", "timestamp_ms", "value"]
    rows = log.records(columns, isolation_level="read_committed", strict=True, **options).to_table().to_pylist()
    return [Sent(row["partition"], row["timestamp_ms"], row["value"]) for row in rows]


def by_partition(sent: list[Sent]) -> list[Sent]:
    return sorted(sent, key=lambda one: one.partition)


@pytest.mark.parametrize("seed", range(2))
def test_random_work(opened: Opened, clock: StandingClock, seed: int):
    """Timestamps are those of the clock; who looks for a time finds all that a plain reading finds."""
    dice, expected = random.Random(seed), list[Sent]()
    store = opened()
    store.create_topic("t", PARTITIONS, CONFIGS)
    for number in range(40):
        clock.now += dice.choice([-HOUR, -1000, -1, 0, 1, 1000, HOUR])
        if dice.random() < 0.15:
            store.close() if dice.random() < 0.5 else store._abandon()
            store = opened()
        producer = store.producer(f"etl-{dice.randrange(3)}", transaction_timeout_ms=900_000)
        producer.begin_transaction()
        sent = []
        for part in range(dice.randint(1, 3)):
            partition, value = dice.randrange(PARTITIONS), f"{number}.{part} {'x' * 150}"
            producer.send("t", pa.table({"value": [value]}), partition=partition)
            producer.flush()
            sent.append(Sent(partition, clock.now, value.encode()))
            clock.now -= dice.choice([0, 0, 5, HOUR])
        if dice.random() < 0.7:
            producer.commit_transaction()
            expected += sent
        else:
            producer.abort_transaction()
    store.close()
    path = store.path
    assert by_partition(shown(path)) == by_partition(expected)
    log = kraftlog.open(path)
    assert list(log.verify()) == []
    assert len(log.found.segments) > 2 * PARTITIONS
    for bound in {one.timestamp + more for one in dice.sample(expected, 5) for more in (-1, 0, 1)}:
        later = [one for one in expected if one.timestamp >= bound]
        assert by_partition(shown(path, start_timestamp=bound)) == by_partition(later)


def test_segments_are_as_old_as_their_latest_record(opened: Opened, clock: StandingClock):
    """Retention removes nothing while the clock is behind, and later what it would have removed."""
    with opened() as store:
        store.create_topic("t", configs=CONFIGS)
        latest = clock.now
        with store.producer() as producer:
            for number in range(30):
                producer.send("t", pa.table({"value": [f"{number} {'x' * 150}"]}))
                clock.now = latest - (number % 3) * HOUR
        before = shown(store.path)
        assert len(before) == 30
        for now in latest - 2 * HOUR, latest, latest + HOUR:
            clock.now = now
            store.apply_retention(["t"])
            assert shown(store.path) == before
        clock.now = latest + HOUR + 1
        store.apply_retention(["t"])
        left = shown(store.path)
        assert 0 < len(left) < 10
        assert left == before[-len(left) :]
        assert list(kraftlog.open(store.path).verify()) == []


def test_a_transaction_has_the_time_that_its_clock_tells(opened: Opened, clock: StandingClock):
    """It is not aborted before, and when the clock is behind by an hour it has an hour more, as in Kafka."""
    with opened() as store:
        store.create_topic("t", PARTITIONS)
        slow, other = store.producer("slow", transaction_timeout_ms=1000), store.producer("other")
        began = clock.now
        slow.begin_transaction()
        slow.send("t", pa.table({"value": ["slow"]}), partition=0)
        for now in began - HOUR, began - 1, began + 1000:
            clock.now = now
            with other.transaction():
                other.send("t", value="other", partition=1)
            assert slow._is_in_transaction
            slow.send("t", pa.table({"value": ["slow"]}), partition=0)
        slow.commit_transaction()
        assert [one.value for one in shown(store.path) if one.partition == 0] == [b"slow"] * 4
        slow.begin_transaction()
        slow.send("t", pa.table({"value": ["late"]}), partition=0)
        clock.now -= HOUR
        slow.send("t", pa.table({"value": ["late"]}), partition=1)
        clock.now += HOUR + 1001
        with other.transaction():
            other.send("t", value="other", partition=1)
        with pytest.raises(ProducerFencedError):
            slow.commit_transaction()
        assert b"late" not in {one.value for one in shown(store.path)}


def test_a_restart_behind(opened: Opened, clock: StandingClock):
    """States, producers and offsets of a run whose clock was ahead are those of the next one."""
    with opened() as store:
        store.create_topic("t")
        producer = store.producer("etl")
        with producer.transaction():
            producer.send("t", value="one")
            producer.send_offsets_to_transaction({("source", 0): 5}, "g")
        producer.begin_transaction()
        producer.send("t", value="left open")
        producer.flush()
        store._abandon()
    clock.now -= 30 * 24 * HOUR
    for number in range(2):
        with opened() as store:
            assert store.committed("g")[("source", 0)].offset == 5 + number
            producer = store.producer("etl")
            with producer.transaction():
                producer.send("t", value=f"again {number}")
                producer.send_offsets_to_transaction({("source", 0): 6 + number}, "g")
    assert [one.value for one in shown(store.path)] == [b"one", b"again 0", b"again 1"]
    assert list(kraftlog.open(store.path).verify()) == []
