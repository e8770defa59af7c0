"""What producers take: single records in order, columns of every type of text, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.errors import RecordTooLargeError
from kraftlog.log_store.errors import UnknownTopicOrPartitionError

Opened = Callable[..., LogStore]


@pytest.fixture
def store(opened: Opened) -> Iterator[LogStore]:
    with opened() as store:
        store.create_topic("t", 2)
        store.create_topic("one")
        yield store


def rows(store: LogStore, topic: str, *columns: str) -> list[dict]:
    return kraftlog.open(store.path, topics=[topic]).records(list(columns)).to_table().to_pylist()


def test_single_records_keep_their_order(store: LogStore):
    with store.producer() as producer:
        producer.send("one", value="1")
        producer.send("one", value="2", partition=0)
        producer.send("one", pa.table({"value": ["3"]}))
        producer.send("one", value="4")
    assert [row["value"] for row in rows(store, "one", "value")] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"value": 5}, TypeError),
        ({"value": "x", "partition": 2}, UnknownTopicOrPartitionError),
        ({"value": "x", "partition": -1}, UnknownTopicOrPartitionError),
        ({"value": "x", "timestamp_ms": -5}, ValueError),
        ({"value": "x", "headers": [("h", 5)]}, (TypeError, pa.ArrowTypeError)),
    ],
)
def test_a_record_that_is_refused_takes_no_other_with_it(store: LogStore, given: dict, error: type[Exception]):
    producer = store.producer()
    producer.send("t", value="good")
    with pytest.raises(error):
        producer.send("t", **given)
    producer.flush()
    assert [row["value"] for row in rows(store, "t", "value")] == [b"good"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None]),
        pa.array(["x", None], pa.large_string()),
        pa.array(["x", None]).dictionary_encode(),
        pa.array(["x", None], pa.string_view()),
        pa.array([b"x", None], pa.binary_view()),
        pa.array([b"x", None], pa.binary(1)),
    ],
    ids=lambda column: str(column.type),
)
def test_types_of_values(store: LogStore, column: pa.Array):
    with store.producer() as producer:
        producer.send("one", pa.table({"value": column}))
    assert [row["value"] for row in rows(store, "one", "value")] == [b"x", None]


@pytest.mark.parametrize("partition", [None, 0])
def test_a_row_without_a_timestamp_gets_the_time(store: LogStore, partition: int | None):
    stamps = pa.array([None, 5], pa.timestamp("ms", "UTC"))
    with store.producer() as producer:
        producer.send("one", pa.table({"value": ["a", "b"], "timestamp": stamps}), partition=partition)
    found = [row["timestamp_ms"] for row in rows(store, "one", "timestamp_ms")]
    assert found[0] > 1_600_000_000_000
    assert found[1] == 5


def test_what_was_written_before_a_refusal_is_flushed(store: LogStore):
    producer = store.producer(max_batch_bytes=1000)
    with pytest.raises(RecordTooLargeError):
        producer.send("t", pa.table({"value": ["small", "x" * 2000], "partition": [0, 1]}))
    producer.flush()
    assert store._open_partition(("t", 0)).is_synced
    assert [row["value"] for row in rows(store, "t", "value")] == [b"small"]


def test_options_are_checked_at_once(store: LogStore):
    with pytest.raises(ValueError, match="compression"):
        store.producer("etl", compression="zip")
    assert store.transactional_ids() == []


def test_records_as_large_as_a_broker_takes(store: LogStore):
    with store.producer() as producer:
        producer.send("one", value=b"x" * 1_000_000)
    assert len(rows(store, "one", "value")[0]["value"]) == 1_000_000


@pytest.mark.parametrize("record", [{}, {"partition": 0}, {"key": b"k", "partition": 0}, {"timestamp_ms": 5}])
def test_a_single_record_costs_few_calls(store: LogStore, record: dict):
    """Calls are what a record costs, and do not depend on how busy the machine is; rows of Arrow are made at once."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    producer = store.producer()
    producer.send("one", value=b"v" * 100, **record)
    sends = 1000
    sys.setprofile(profile)
    try:
        for _ in range(sends):
            producer.send("one", value=b"v" * 100, **record)
        producer.flush()
    finally:
        sys.setprofile(None)
    assert count / sends < 22
    assert len(rows(store, "one", "value")) == sends + 1
