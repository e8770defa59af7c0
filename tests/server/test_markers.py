"""Markers that an administrator asks for, as ``kafka-transactions.sh abort`` does, and those that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_client import END, BrokerClient, batch, check, values_of
from test_broker_transactions import NEW, OLD, add_partitions, commit_offsets, fetch_offset, in_log, named, of
from test_frames import until

import kraftlog
from kraftlog.log_store.partition import Partition
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker

WRITE_MARKERS, DESCRIBE_PRODUCERS = 27, 61
FENCED, STALE = ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.fixture
def odd_broker(tmp_path: Path) -> Iterator[Broker]:
    """Run a broker in whose log an audit may find markers that belong to no transaction of its coordinator."""
    with kraftlog.LogStore(tmp_path / "log", offsets_partitions=3) as store:
        store.create_topic("orders")
        producer = store.producer("first")
        with producer.transaction():
            producer.send_offsets_to_transaction({("orders", 0): 0}, "first")
    with Broker(tmp_path / "log") as running:
        yield running
    assert kraftlog.open(running.path).errors().to_pylist() == []


@pytest.fixture
def broker(odd_broker: Broker) -> Iterator[Broker]:
    yield odd_broker
    odd_broker.close()
    check(odd_broker.path)


def marker(begun: dict[str, Any], bump: int = 0, **others: Any) -> dict[str, Any]:
    topics = others.pop("topics", [{"name": "orders", "partition_indexes": [0]}])
    fields = {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"] + bump}
    return fields | {"coordinator_epoch": 0, "transaction_result": False, "topics": topics} | others


def write(client: BrokerClient, *markers: dict[str, Any], version: int = 2) -> list[tuple[int, str, int, int]]:
    """Return producer id, topic, partition and error code of each answer."""
    answer = client.ask(WRITE_MARKERS, version, {"markers": list(markers)})
    return [
        (one["producer_id"], topic["name"], each["partition_index"], each["error_code"])
        for one in answer["markers"]
        for topic in one["topics"]
        for each in topic["partitions"]
    ]


def codes(client: BrokerClient, *markers: dict[str, Any], version: int = 2) -> list[int]:
    return [code for _, _, _, code in write(client, *markers, version=version)]


def coordinator_epochs(client: BrokerClient) -> list[int]:
    topics = [{"name": "orders", "partition_indexes": [0]}]
    answer = client.ask(DESCRIBE_PRODUCERS, 0, {"topics": topics})["topics"][0]["partitions"][0]
    return [one["coordinator_epoch"] for one in answer["active_producers"]]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_commit", [False, True])
def test_a_marker_ends_a_transaction_in_a_partition(broker: Broker, is_commit: bool, version: int):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        assert add_partitions(client, begun, "orders") == [0]
        assert client.produce(of(begun, "open", sequence=0), version=OLD, transactional_id="t")["error_code"] == 0
        client.produce(batch("after"))
        assert client.fetch(0, isolation_level=1)["last_stable_offset"] == 0
        asked = marker(begun, transaction_result=is_commit)
        assert codes(client, asked, version=version) == [0]
        fetched = client.fetch(0, isolation_level=1)
        assert (fetched["last_stable_offset"], fetched["high_watermark"]) == (3, 3)
        assert [one["first_offset"] for one in fetched["aborted_transactions"]] == ([] if is_commit else [0])
        assert values_of(fetched["records"]) == ["open", "after"]
        assert codes(client, asked, version=version) == [0]  # again: it is there
        assert client.fetch(0)["high_watermark"] == 3
        assert coordinator_epochs(client) == [0]
        assert client.ask(END, 4, named(begun, committed=is_commit))["error_code"] == 0
        assert client.fetch(0)["high_watermark"] == 3
    assert in_log(broker) == [("open", "committed" if is_commit else "aborted"), ("after", None)]


def test_stale_epochs_of_producers(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        begun = client.init("t")
        client.produce(of(begun, "one", sequence=0), version=NEW, transactional_id="t")
        assert codes(client, marker(begun, -1)) == [STALE]
        # a marker of transaction version 2 has a greater epoch than the data (KIP-890)
        assert codes(client, marker(begun, transaction_version=2)) == [STALE]
        assert client.fetch(0)["high_watermark"] == 1
        assert codes(client, marker(begun, 1, transaction_version=2)) == [0]
        assert codes(client, marker(begun, 1, transaction_version=2)) == [0]  # again: it is there
        assert client.fetch(0)["high_watermark"] == 2
        late = client.produce(of(begun, "late", sequence=1), version=NEW, transactional_id="t")
        assert late["error_code"] == STALE
        assert client.ask(END, 5, named(begun, committed=False))["error_code"] == 0
    assert in_log(broker) == [("one", "aborted")]


def test_stale_epochs_of_coordinators(broker: Broker):
    """Also after the broker has started again, from the markers in the log."""
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        assert add_partitions(client, begun, "orders") == [0]
        client.produce(of(begun, "one", sequence=0), version=OLD, transactional_id="t")
        assert codes(client, marker(begun, coordinator_epoch=5)) == [0]
        assert coordinator_epochs(client) == [5]
        client.produce(of(begun, "two", sequence=1), version=OLD, transactional_id="t")
        assert codes(client, marker(begun, coordinator_epoch=4)) == [FENCED]
        assert codes(client, marker(begun, -1, coordinator_epoch=4)) == [STALE]  # both: as Kafka answers
        assert client.fetch(0)["high_watermark"] == 3
        assert codes(client, marker(begun, coordinator_epoch=5)) == [0]
        assert client.fetch(0)["high_watermark"] == 4
        assert client.ask(END, 4, named(begun, committed=False))["error_code"] == 0
    broker.restart()
    with BrokerClient(broker) as client:
        assert coordinator_epochs(client) == [5]
        assert codes(client, marker(begun, coordinator_epoch=4)) == [FENCED]
        assert codes(client, marker(begun, coordinator_epoch=6)) == [0]
    assert in_log(broker) == [("one", "aborted"), ("two", "aborted")]


def test_a_producer_that_the_partition_does_not_know(odd_broker: Broker):
    """As in Kafka it gets a marker, which fences what its producer sends later with an older epoch."""
    with BrokerClient(odd_broker) as client:
        client.create("orders")
        begun = client.init()
        assert codes(client, marker(begun, 3)) == [0]
        stale = batch("late", producer_id=begun["producer_id"], producer_epoch=2, base_sequence=0)
        assert client.produce(stale)["error_code"] == STALE
        assert client.fetch(0)["high_watermark"] == 1


def test_partitions_and_markers_that_are_not_possible(odd_broker: Broker):
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    with BrokerClient(odd_broker) as client:
        client.create("orders")
        topics = [
            {"name": "nothing", "partition_indexes": [0]},
            {"name": "orders", "partition_indexes": [1, -1, 0]},
            {"name": "__transaction_state", "partition_indexes": [0]},
            {"name": "__cluster_metadata", "partition_indexes": [0]},
        ]
        one, other = {"producer_id": 70, "producer_epoch": 0}, {"producer_id": 71, "producer_epoch": 0}
        assert write(client, marker(one, topics=topics), marker(other), marker(one, 1)) == [
            (70, "nothing", 0, unknown),
            (70, "orders", 1, unknown),
            (70, "orders", -1, unknown),
            (70, "orders", 0, 0),
            (70, "__transaction_state", 0, invalid),
            (70, "__cluster_metadata", 0, invalid),
            (70, "orders", 0, 0),  # one answer for each producer
            (71, "orders", 0, 0),
        ]
        assert codes(client, marker({"producer_id": -1, "producer_epoch": 0})) == [
            ErrorCode.INVALID_PRODUCER_ID_MAPPING
        ]
        for producer_id in (70, 72):  # the second one is unknown
            assert codes(client, marker({"producer_id": producer_id, "producer_epoch": -1})) == [STALE]
        assert write(client) == []
        assert client.fetch(0)["high_watermark"] == 3


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("is_commit", [False, True])
def test_offsets_of_a_group(odd_broker: Broker, is_commit: bool, is_new: bool):
    """A marker in the group's partition decides about offsets that wait for it, and only about those."""
    with BrokerClient(odd_broker) as client:
        client.create("orders")
        begun = client.init("t")
        if not is_new:
            client.ask(25, 4, named(begun, group_id="g"))
        assert commit_offsets(client, begun, 5 if is_new else 4, 5) == 0
        _, own = odd_broker.store.parts.groups.partition_for("g")
        others = [number for number in range(3) if number != own]
        bump, version = int(is_new), 2 if is_new else 0
        options = {"transaction_result": is_commit, "transaction_version": version}
        elsewhere = [{"name": "__consumer_offsets", "partition_indexes": others}]
        assert codes(client, marker(begun, bump, topics=elsewhere, **options)) == [0, 0]
        assert fetch_offset(client, require_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        here = [{"name": "__consumer_offsets", "partition_indexes": [own]}]
        assert codes(client, marker(begun, bump, topics=here, **options)) == [0]
        expected = (0, 5 if is_commit else -1)
        assert fetch_offset(client, require_stable=True) == expected
        assert client.ask(END, 5 if is_new else 4, named(begun, committed=is_commit))["error_code"] == 0
        assert fetch_offset(client, require_stable=True) == expected
    odd_broker.restart()
    with BrokerClient(odd_broker) as client:
        assert fetch_offset(client) == expected


def test_offsets_of_the_next_transaction_wait(odd_broker: Broker, monkeypatch: pytest.MonkeyPatch):
    """Also when they come while a marker of the transaction before is written once more."""
    sync, asked = Partition.sync, list[int]()

    def commit_and_sync(partition: Partition) -> None:
        if partition.key == key and not asked:
            asked.append(0)
            with BrokerClient(odd_broker) as other:
                asked.append(commit_offsets(other, ended, 5, 7))
        sync(partition)

    with BrokerClient(odd_broker) as client:
        client.create("orders")
        begun = client.init("t")
        assert commit_offsets(client, begun, 5, 5) == 0
        ended = client.ask(END, 5, named(begun, committed=True))
        assert fetch_offset(client, require_stable=True) == (0, 5)
        key = odd_broker.store.parts.groups.partition_for("g")
        monkeypatch.setattr(Partition, "sync", commit_and_sync)
        topics = [{"name": key[0], "partition_indexes": [key[1]]}]
        assert codes(client, marker(ended, topics=topics, transaction_result=True, transaction_version=2)) == [0]
        until(lambda: len(asked) == 2)  # the upkeep syncs, too, and may have been first
        assert asked == [0, 0]
        assert fetch_offset(client) == (0, 5)
        assert client.ask(END, 5, named(ended, committed=False))["error_code"] == 0


def test_a_marker_is_on_disk_before_the_answer(odd_broker: Broker, monkeypatch: pytest.MonkeyPatch):
    with BrokerClient(odd_broker) as client:
        client.create("orders")
        synced: list[str] = []
        sync = Partition.sync
        monkeypatch.setattr(Partition, "sync", lambda self: (synced.append(self.key[0]), sync(self))[1])
        assert codes(client, marker(client.init())) == [0]
        assert synced == ["orders"]


def test_a_log_that_is_only_read_has_no_such_request():
    golden = Path(__file__).parents[1] / "golden" / "transactions" / "log"
    with kraftlog.LogServer(golden) as server, BrokerClient(server) as client:  # type: ignore[arg-type]
        client.send(client.frame(WRITE_MARKERS, 1, {"markers": []}))
        assert client.is_closed()
