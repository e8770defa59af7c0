"""A real KRaft broker opens the directory of a ``LogStore``, and a ``LogStore`` that of a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from jvm import Jvm
from kafka_broker import Broker

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.options import milliseconds_now
from kraftlog.log_store.transaction_coordinator import TransactionCoordinator

ROWS = pa.table({"key": ["a", "b", "c"], "value": ["one", "two", "three"], "partition": [0, 1, 2]})
VALUES = sorted(["one", "two", "three"])


class StoppedError(Exception):
    """The process is gone."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def logs(home: Path) -> Path:
    return home / "logs"


def values(lines: list[dict]) -> list[str]:
    return sorted(bytes.fromhex(line["value"]).decode() for line in lines)


def committed(logs: Path, topic: str = "orders") -> list[str]:
    rows = kraftlog.open(logs, topics=[topic]).records(["value"], isolation_level="read_committed").to_table()
    return sorted(value.decode() for value in rows["value"].to_pylist())


def send(broker: Broker, transactional_id: str, *values: str) -> None:
    """Let Kafka's producer commit records in one transaction."""
    record = {"topic": "orders", "partition": 0, "timestamp": milliseconds_now(), "key": None, "headers": []}
    lines = [{**record, "value": value.encode().hex()} for value in values]
    producer = {"producer": {"transactional.id": transactional_id}}
    broker.produce([producer, {"transaction": "begin"}, *lines, {"transaction": "commit"}])


@pytest.fixture
def stored(logs: Path) -> Iterator[Path]:
    """Write what a broker is to find: committed, aborted, offsets, configs."""
    with LogStore(logs, transaction_log_partitions=3, offsets_partitions=2) as store:
        store.create_topic("orders", 3, {"retention.ms": -1, "segment.bytes": 1 << 20})
        store.create_topic("empty", 2, {"cleanup.policy": "compact"})
        producer = store.producer("etl", compression="zstd")
        with producer.transaction():
            producer.send("orders", ROWS)
            producer.send_offsets_to_transaction({("source", 0): 5}, "group-1")
        producer.begin_transaction()
        producer.send("orders", ROWS)
        producer.abort_transaction()
        with store.consumer("group-2") as consumer:
            consumer.subscribe(["orders"])
            consumer.poll()
            consumer.commit()
        with store.producer("other") as other, other.transaction():
            other.send("orders", value="late", partition=0)
    return logs


def test_a_broker_opens_a_store(java: Jvm, home: Path, stored: Path):
    with Broker(java, home) as broker:
        shown, ends = broker.consume_at("read_committed", ["orders", "empty"])
        everything = broker.consume_at("read_uncommitted", ["orders"])[0]
        producers, ids = broker.transactions(["orders"])
        groups = {line["group"]: line["offsets"] for line in broker.groups()}
        exists = broker.try_to_create({"name": name, "partitions": 1, "configs": {}} for name in ("orders", "empty"))
        errors = broker.errors()
    assert values(shown) == sorted([*VALUES, "late"])
    assert values(everything) == sorted([*VALUES, *VALUES, "late"])
    assert ends == {("orders", 0): 6, ("orders", 1): 4, ("orders", 2): 4, ("empty", 0): 0, ("empty", 1): 0}
    found = {line["transactional_id"]: (line["producer_id"], line["producer_epoch"], line["state"]) for line in ids}
    assert found == {"etl": (0, 2, "CompleteAbort"), "other": (1, 1, "CompleteCommit")}
    assert all(line["current_transaction_first_offset"] is None for line in producers)
    assert groups == {
        "group-1": [["source", 0, 5, None, ""]],
        "group-2": [["orders", 0, 4, None, ""], ["orders", 1, 4, None, ""], ["orders", 2, 4, None, ""]],
    }
    assert exists == {"orders": "TopicExistsException", "empty": "TopicExistsException"}
    assert errors == []


def test_they_take_turns(java: Jvm, home: Path, stored: Path):
    """Producers of both go on with one transactional id: each raises the epoch of the other."""
    broker = Broker(java, home)
    for turn in range(2):
        with broker:
            send(broker, "etl", f"broker {turn}")
        with LogStore(stored) as store:
            assert store.topics["orders"].configs == {"retention.ms": "-1", "segment.bytes": "1048576"}
            producer = store.producer("etl")
            with producer.transaction():
                producer.send("orders", value=f"store {turn}", partition=1)
            with store.producer() as plain:
                plain.send("orders", value=f"plain {turn}", partition=2)
    written = ["late", *(f"{who} {turn}" for turn in range(2) for who in ("broker", "store", "plain"))]
    with broker:
        assert values(broker.consume_at("read_committed", ["orders"])[0]) == sorted([*VALUES, *written])
        assert values(broker.consume_at("read_committed", ["orders"])[0]) == committed(stored)
    assert kraftlog.open(stored).errors().to_pylist() == []


def test_a_broker_completes_what_a_store_has_decided(java: Jvm, home: Path, logs: Path):
    """A commit is decided when PrepareCommit is on disk: the broker writes the markers."""
    store = LogStore(logs)
    store.create_topic("orders", 3)
    producer = store.producer("etl")
    producer.begin_transaction()
    producer.send("orders", ROWS)
    producer.send_offsets_to_transaction({("source", 0): 5}, "group-1")
    with mock.patch.object(TransactionCoordinator, "_complete", side_effect=StoppedError), pytest.raises(StoppedError):
        producer.commit_transaction()
    store._abandon()
    assert committed(logs) == []
    with Broker(java, home) as broker:
        (line,) = broker.ended_transactions(["orders"], known=["etl"])
        assert (line["state"], line["producer_epoch"]) == ("CompleteCommit", 1)
        assert values(broker.consume_at("read_committed", ["orders"])[0]) == VALUES
        assert {line["group"]: line["offsets"] for line in broker.groups()} == {"group-1": [["source", 0, 5, None, ""]]}


def test_a_coordinator_waits_for_the_node_of_a_store(java: Jvm, logs: Path):
    """It loads its transactions before or after the broker registers.

    Before that it must find no broker to send markers to, and wait. Where it finds no leader at all, it takes the
    partitions for deleted, and completes their transactions without markers.
    """

    def leaders() -> dict[str, list[str]]:
        lines = map(json.loads, java.run("Image", str(logs / "__cluster_metadata-0"), "log"))
        return {line["name"]: line["leaders"] for line in lines}

    with mock.patch.object(Cluster, "_registration", return_value=pa.array([], pa.binary())), LogStore(logs) as store:
        store.create_topic("orders", 2)
    assert leaders() == {"orders": ["none"] * 2}
    with LogStore(logs):
        assert leaders() == {"orders": ["unknown"] * 2}


def test_a_store_completes_what_a_broker_has_decided(java: Jvm, home: Path, logs: Path):
    """A broker that is gone between PrepareCommit and the markers: these, and CompleteCommit, are cut off."""
    broker = Broker(java, home, {"transaction.state.log.num.partitions": "1"})
    with broker:
        broker.create([{"name": "orders", "partitions": 3, "configs": {}}])
        send(broker, "etl", *VALUES)
    for folder, control_type in (("orders-0", "COMMIT"), ("__transaction_state-0", None)):
        last = kraftlog.open(logs / folder).batches().to_pylist()[-1]
        assert last["control_type"] == control_type
        path = logs / folder / "00000000000000000000.log"
        path.write_bytes(path.read_bytes()[: last["position"]])
        for snapshot in (logs / folder).glob("*.snapshot"):
            snapshot.unlink()
    (logs / ".kafka_cleanshutdown").unlink()
    (logs / "recovery-point-offset-checkpoint").unlink()
    assert committed(logs) == []
    with LogStore(logs) as store:
        (state,) = store.transactional_ids()
        assert (state.transactional_id, state.producer_epoch, state.is_pending) == ("etl", 1, False)
    assert committed(logs) == VALUES
    with broker:
        assert values(broker.consume_at("read_committed", ["orders"])[0]) == VALUES
        send(broker, "etl", "more")
        assert values(broker.consume_at("read_committed", ["orders"])[0]) == sorted([*VALUES, "more"])
