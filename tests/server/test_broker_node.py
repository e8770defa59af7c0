"""Administrators of a broker: its node, and what a cluster of one node has no use for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_client import BrokerClient, batch, check
from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient
from test_connections import Client

import kraftlog
from kraftlog.metadata.uuids import uuid_bytes
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker

LIMIT = 30.0
ACLS, LOG_DIRS, ELECT, REASSIGNMENTS, QUOTAS, SCRAM, QUORUM, TOPIC_PARTITIONS = 29, 35, 43, 46, 48, 50, 55, 75
METADATA = 3
GOLDEN = Path(__file__).parents[1] / "golden" / "transactions" / "log"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        yield running
    check(running.path)


def test_the_log_directory_has_the_sizes_of_its_files(broker: Broker):
    broker.store.create_topic("orders", 2)
    broker.store.create_topic("unused", 1)
    with BrokerClient(broker) as client:
        client.produce(batch(*"abc"), partition=1)

        def described(topics: Any, version: int = 5) -> dict[str, Any]:
            (directory,) = client.ask(LOG_DIRS, version, {"topics": topics})["results"]
            return directory

        every = described(None)
        volume = os.statvfs(broker.path)
        assert (every["error_code"], every["log_dir"]) == (0, str(broker.path))
        assert every["total_bytes"] == volume.f_blocks * volume.f_frsize
        assert 0 < every["usable_bytes"] <= every["total_bytes"]
        sizes = {
            (topic["name"], one["partition_index"]): one["partition_size"]
            for topic in every["topics"]
            for one in topic["partitions"]
        }
        assert sizes == {
            ("orders", 0): 0,
            ("orders", 1): sum(file.stat().st_size for file in (broker.path / "orders-1").glob("*.log")),
            ("unused", 0): 0,
        }
        assert sizes["orders", 1] > 0
        some = described([{"topic": "orders", "partitions": [1, 2, -1]}, {"topic": "nothing", "partitions": [0]}])
        (topic,) = some["topics"]
        assert (topic["name"], [one["partition_index"] for one in topic["partitions"]]) == ("orders", [1])
        assert described(None, version=1)["total_bytes"] == -1


def test_the_quorum_is_the_node_at_the_end_of_its_metadata_log(broker: Broker):
    broker.store.create_topic("orders")
    requested = [
        {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}, {"partition_index": 1}]},
        {"topic_name": "orders", "partitions": [{"partition_index": 0}]},
    ]
    with BrokerClient(broker) as client:
        answer = client.ask(QUORUM, 2, {"topics": requested})
    assert answer["error_code"] == 0
    assert answer["nodes"] == [{"node_id": 1, "listeners": []}]
    (metadata, other), (orders,) = (one["partitions"] for one in answer["topics"])
    batches = kraftlog.open(broker.path / "__cluster_metadata-0").batches().to_pylist()
    assert (metadata["error_code"], metadata["leader_id"]) == (0, 1)
    assert metadata["leader_epoch"] == batches[-1]["partition_leader_epoch"]
    assert metadata["high_watermark"] == batches[-1]["last_offset"] + 1
    (voter,) = metadata["current_voters"]
    assert (voter["replica_id"], voter["log_end_offset"]) == (1, metadata["high_watermark"])
    (directory,) = re.findall(r"directory\.id=(\S+)", (broker.path / "meta.properties").read_text())
    assert voter["replica_directory_id"] == uuid_bytes(directory)
    assert other["error_code"] == orders["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [0, 1])
def test_the_quorum_without_ids_of_directories(broker: Broker, version: int):
    requested = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    with BrokerClient(broker) as client:
        answer = client.ask(QUORUM, version, {"topics": requested})
    ((metadata,),) = (one["partitions"] for one in answer["topics"])
    assert (answer["error_code"], metadata["error_code"], metadata["leader_id"]) == (0, 0, 1)
    assert [one["replica_id"] for one in metadata["current_voters"]] == [1]


def test_no_election_is_needed(broker: Broker):
    broker.store.create_topic("orders", 2)
    topics = [{"topic": "orders", "partitions": [1, 2, -1]}, {"topic": "nothing", "partitions": [0]}]
    with BrokerClient(broker) as client:
        for kind in (0, 1):
            answer = client.ask(ELECT, 2, {"election_type": kind, "topic_partitions": topics})
            codes = {
                (one["topic"], each["partition_id"]): each["error_code"]
                for one in answer["replica_election_results"]
                for each in one["partition_result"]
            }
            unknown = dict.fromkeys(
                [("orders", 2), ("orders", -1), ("nothing", 0)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            assert codes == {("orders", 1): ErrorCode.ELECTION_NOT_NEEDED, **unknown}
        every = client.ask(ELECT, 2, {"election_type": 0, "topic_partitions": None})
        assert (every["error_code"], every["replica_election_results"]) == (0, [])
        odd = client.ask(ELECT, 2, {"election_type": 7, "topic_partitions": None})
        assert odd["error_code"] == ErrorCode.INVALID_REQUEST
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert admin.elect_leaders(ElectionType.PREFERRED).result(LIMIT) == {}


def test_what_one_node_without_security_does_not_have(broker: Broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert admin.describe_user_scram_credentials().result(LIMIT) == {}
    with BrokerClient(broker) as client:
        answer = client.ask(ACLS, 3, {"resource_type_filter": 1, "operation": 1, "permission_type": 1})
        assert answer["error_code"] == ErrorCode.SECURITY_DISABLED
        assert answer["error_message"] == "No Authorizer is configured."
        (user,) = client.ask(SCRAM, 0, {"users": [{"name": "someone"}]})["results"]
        assert (user["user"], user["error_code"]) == ("someone", ErrorCode.RESOURCE_NOT_FOUND)
        assert client.ask(REASSIGNMENTS, 0, {"topics": None})["topics"] == []
        assert client.ask(QUOTAS, 1, {"components": [], "strict": False})["entries"] == []


def test_pages_of_partitions_are_all_partitions(broker: Broker):
    for name, partitions in (("a", 3), ("b", 1), ("c", 2)):
        broker.store.create_topic(name, partitions)
    with BrokerClient(broker) as client:

        def page(limit: int, cursor: Any = None, topics: tuple[str, ...] = ()) -> tuple[list[Any], Any]:
            values = {"topics": [{"name": one} for one in topics], "response_partition_limit": limit, "cursor": cursor}
            answer = client.ask(TOPIC_PARTITIONS, 0, values)
            rows = [
                (topic["name"], one["partition_index"]) for topic in answer["topics"] for one in topic["partitions"]
            ]
            assert all(topic["partitions"] for topic in answer["topics"])
            return rows, answer["next_cursor"]

        every = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]
        assert page(2000) == (every, None)
        for limit in range(1, 8):
            rows, cursor = page(limit)
            while cursor is not None:
                more, cursor = page(limit, cursor)
                assert 0 < len(more) <= limit
                assert len(rows) < len(every)
                rows += more
            assert rows == every
        assert page(0)[0] == every[:1]
        assert page(9, {"topic_name": "b", "partition_index": 1}) == (every[4:], None)
        assert page(9, {"topic_name": "bb", "partition_index": 1}) == (every[4:], None)
        assert page(9, topics=("c", "a")) == ([*every[:3], *every[4:]], None)
        missing = client.ask(TOPIC_PARTITIONS, 0, {"topics": [{"name": "none"}], "response_partition_limit": 9})
        assert [(one["name"], one["error_code"]) for one in missing["topics"]] == [
            ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        ]
        values = {"topics": [{"name": "a"}], "cursor": {"topic_name": "a", "partition_index": -1}}
        assert client.ask(TOPIC_PARTITIONS, 0, values)["topics"][0]["error_code"] == ErrorCode.INVALID_REQUEST
        assert "none" not in broker.store.topics


def test_a_log_that_is_only_read_describes_partitions_as_its_metadata():
    with kraftlog.LogServer(GOLDEN) as server, Client(server) as client:
        metadata = client.ask(METADATA, 12, {"topics": None})["topics"]
        pages = client.ask(TOPIC_PARTITIONS, 0, {"topics": []})["topics"]
    names = {"name", "topic_id", "is_internal", "error_code", "topic_authorized_operations"}
    assert [{name: one[name] for name in names} for one in pages] == [
        {name: one[name] for name in names} for one in metadata
    ]
    no_elr = {"eligible_leader_replicas": [], "last_known_elr": []}
    expected = [[one | no_elr for one in each["partitions"]] for each in metadata]
    assert [each["partitions"] for each in pages] == expected
