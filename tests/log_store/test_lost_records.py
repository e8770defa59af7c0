"""Single records of which some cannot be written: those alone are lost, and the producer says so from then on."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable

import pyarrow as pa
import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.errors import InvalidRecordError, RecordTooLargeError
from kraftlog.log_store.errors import InvalidTransactionError, LostRecordsError, UnknownTopicOrPartitionError

Opened = Callable[..., LogStore]
TOO_LARGE = b"B" * 5000
KINDS = ("fine", "too large", "no key", "deleted")


def rows(value: str) -> pa.Table:
    return pa.table({"value": [value]})


def values(store: LogStore, topic: str) -> list[bytes]:
    return kraftlog.open(store.path, topics=[topic]).records(["value"]).to_table()["value"].to_pylist()


@pytest.mark.parametrize("seed", range(6))
def test_only_what_is_refused_is_lost(opened: Opened, seed: int):
    """Whatever is refused among whatever else, the others are written, in their order, and the producer goes on."""
    dice = random.Random(seed)
    with opened() as store:
        for topic, configs in (("x", {}), ("compacted", {"cleanup.policy": "compact"}), ("deleted", {})):
            store.create_topic(topic, configs={"max.message.bytes": 2000, **configs})
        producer = store.producer()
        expected: dict[str, list[bytes]] = {"x": [], "compacted": []}
        lost, refusals = 0, (RecordTooLargeError, InvalidRecordError, UnknownTopicOrPartitionError)
        for number in range(200):
            kind = dice.choices(KINDS, [90, 4, 4, 2])[0]
            topic = {"no key": "compacted", "deleted": "deleted"}.get(kind) or dice.choice(["x", "compacted"])
            value = TOO_LARGE if kind == "too large" else str(number).encode()
            producer.send(topic, key=None if kind == "no key" else "k", value=value)
            if kind == "fine":
                expected[topic].append(value)
            lost += kind != "fine"
        store.delete_topic("deleted")
        for _ in range(2):
            with pytest.raises(LostRecordsError) as told:
                producer.flush()
            assert told.value.count == lost
            assert isinstance(told.value.first, refusals)
        assert {topic: values(store, topic) for topic in expected} == expected
        producer.send("x", value="after")
        with pytest.raises(LostRecordsError, match=f"^{lost} records"):
            producer.flush()
        assert values(store, "x") == [*expected["x"], b"after"]
        producer.init_transactions()  # it begins anew
        producer.flush()
        producer.send("x", value=TOO_LARGE)
        with pytest.raises(LostRecordsError, match="1 records"):
            producer.close()
    with opened():
        assert kraftlog.open(store.path).errors().num_rows == 0


def test_rows_come_behind_what_is_lost(opened: Opened):
    with opened() as store:
        store.create_topic("x", configs={"max.message.bytes": 2000})
        producer = store.producer()
        producer.send("x", value=TOO_LARGE)
        producer.send("x", rows("table"))
        assert values(store, "x") == [b"table"]
        with pytest.raises(LostRecordsError):
            producer.close()


def test_a_transaction_lacks_no_records(opened: Opened):
    with opened() as store:
        store.create_topic("x", configs={"max.message.bytes": 2000})
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("x", value="small")
        producer.send("x", value=TOO_LARGE)
        with pytest.raises(RecordTooLargeError):
            producer.commit_transaction()
        with pytest.raises(InvalidTransactionError):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send("x", value="next")
        shown = kraftlog.open(store.path, topics=["x"]).records(["value"], isolation_level="read_committed").to_table()
        assert shown["value"].to_pylist() == [b"next"]


def test_it_is_no_loss_when_a_topic_is_deleted_behind_its_records(opened: Opened):
    with opened() as store:
        store.create_topic("x")
        store.create_topic("y")
        with store.producer() as producer:
            producer.send("x", rows("x"))
            producer.send("y", rows("y"))
            store.delete_topic("x")
            producer.flush()
        assert values(store, "y") == [b"y"]


def test_the_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(LostRecordsError(3, RecordTooLargeError("large"))))
    assert (error.count, str(error.first)) == (3, "large")
