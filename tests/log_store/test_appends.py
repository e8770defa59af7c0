"""Listeners learn of each append to a partition, also of markers and of the coordinators' records."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlog
from kraftlog.log_store.errors import OffsetOutOfRangeError, PolicyViolationError


def test_every_append_is_told(tmp_path: Path):
    told: list[tuple[str, int]] = []
    with kraftlog.LogStore(tmp_path) as store:
        store.create_topic("orders", partitions=2)
        store.parts.appends.listen(told.append)

        def since() -> list[tuple[str, int]]:
            keys = [key for key in told if not key[0].startswith("__")]
            told.clear()
            return keys

        with store.producer() as producer:
            producer.send("orders", value="one", partition=1)
        assert since() == [("orders", 1)]
        producer = store.producer("t")
        producer.begin_transaction()
        producer.send("orders", value="two", partition=0)
        producer.flush()
        assert since() == [("orders", 0)]
        producer.commit_transaction()
        assert since() == [("orders", 0)]  # the marker
        store.parts.appends.forget(told.append)
        producer.begin_transaction()
        producer.send("orders", value="three", partition=0)
        producer.abort_transaction()
        assert since() == []


def test_a_listener_sees_what_was_appended(tmp_path: Path):
    with kraftlog.LogStore(tmp_path) as store:
        store.create_topic("orders")
        ends: list[int] = []
        store.parts.appends.listen(lambda key: ends.append(store.parts.partition_of(key).next_offset))
        with store.producer() as producer:
            for _ in range(3):
                producer.send("orders", value="one")
                producer.flush()
        assert ends == [1, 2, 3]


def test_records_that_are_deleted(tmp_path: Path):
    """The new start survives a process that is killed, and segments before it go with the next retention."""
    store = kraftlog.LogStore(tmp_path)
    store.create_topic("orders", configs={"internal.segment.bytes": 1024, "retention.ms": -1})
    producer = store.producer()
    for number in range(40):
        producer.send("orders", value=f"{number:04}" * 25)
        producer.flush()
    assert store.delete_records("orders", 0, 30) == 30
    assert store.delete_records("orders", 0, 7) == 30  # it never moves back
    with pytest.raises(OffsetOutOfRangeError, match="offset 41 is not between 0 and 40"):
        store.delete_records("orders", 0, 41)
    store._abandon()
    with kraftlog.LogStore(tmp_path) as store:
        before = len(list((tmp_path / "orders-0").glob("*.log")))
        with store.consumer() as consumer:
            consumer.subscribe(["orders"])
            assert consumer.poll()["offset"].to_pylist() == list(range(30, 40))
        store.apply_retention()
        assert len(list((tmp_path / "orders-0").glob("*.log"))) < before
        assert store.delete_records("orders", 0, -1) == 40
        store.create_topic("tables", configs={"cleanup.policy": "compact"})
        with pytest.raises(PolicyViolationError, match="compacted"):
            store.delete_records("tables", 0, -1)
    assert kraftlog.open(tmp_path, topics=["orders"]).records(["offset"]).to_table().num_rows == 0
