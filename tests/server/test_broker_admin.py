"""Administrators of a broker: topics, their configs and records, transactions, groups."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from broker_client import END, PRODUCE, BrokerClient, batch, check, log_of, values_of
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

import kraftlog
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker

LIMIT = 30.0
SET, APPEND, SUBTRACT = 0, 2, 3  # operations on a configuration
CREATE, DELETE, DELETE_RECORDS, CREATE_PARTITIONS, DESCRIBE_CONFIGS, ALTER_CONFIGS = 19, 20, 21, 37, 32, 44
LIST_CONFIG_RESOURCES = 74
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, DELETE_GROUPS, OFFSET_DELETE = 61, 65, 66, 42, 47


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        yield running
    check(running.path)


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def error_of(future: Any) -> int:
    error = future.exception(LIMIT)
    return 0 if error is None else error.args[0].code()


def test_topics(broker: Broker):
    admin = admin_of(broker)
    topics = [
        NewTopic("orders", 3, config={"retention.ms": "1000"}),
        NewTopic("tables", 1, 1, config={"cleanup.policy": "compact"}),
        NewTopic("copies", 1, 2),
        NewTopic("odd", 1, config={"retention.ms": "long"}),
        NewTopic("bad/name", 1),
        NewTopic("none", 0),
    ]
    codes = {name: error_of(future) for name, future in admin.create_topics(topics).items()}
    assert codes == {
        "orders": 0,
        "tables": 0,
        "copies": ErrorCode.INVALID_REPLICATION_FACTOR,
        "odd": ErrorCode.INVALID_CONFIG,
        "bad/name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "none": ErrorCode.INVALID_PARTITIONS,
    }
    assert {name: (one.partitions, one.configs) for name, one in broker.store.topics.items()} == {
        "orders": (3, {"retention.ms": "1000"}),
        "tables": (1, {"cleanup.policy": "compact"}),
    }
    assert error_of(admin.create_topics([NewTopic("orders", 1)])["orders"]) == ErrorCode.TOPIC_ALREADY_EXISTS
    trial = admin.create_topics([NewTopic("trial", 1)], validate_only=True)
    assert error_of(trial["trial"]) == 0
    assert error_of(admin.create_partitions([NewPartitions("orders", 5)])["orders"]) == 0
    assert error_of(admin.create_partitions([NewPartitions("orders", 5)])["orders"]) == ErrorCode.INVALID_PARTITIONS
    assert len(admin.list_topics(timeout=LIMIT).topics["orders"].partitions) == 5
    deleted = {name: error_of(future) for name, future in admin.delete_topics(["tables", "nothing"]).items()}
    assert deleted == {"tables": 0, "nothing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert list(broker.store.topics) == ["orders"]


def test_topics_by_hand(broker: Broker):
    def create(name: str, **others: Any) -> dict[str, Any]:
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": [], "configs": []}
        return client.ask(CREATE, 7, {"topics": [topic | others]})["topics"][0]

    with BrokerClient(broker) as client:
        created = create("orders")
        assert (created["error_code"], created["num_partitions"], created["replication_factor"]) == (0, 1, 1)
        assert created["topic_id"] == broker.store.topics["orders"].topic_id
        assignments = [{"partition_index": number, "broker_ids": [1]} for number in range(2)]
        assert create("assigned", assignments=assignments)["num_partitions"] == 2
        elsewhere = [{"partition_index": 0, "broker_ids": [2]}]
        assert create("elsewhere", assignments=elsewhere)["error_code"] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        twice = {"name": "twice", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        answers = client.ask(CREATE, 7, {"topics": [twice, twice]})["topics"]
        assert [one["error_code"] for one in answers] == [ErrorCode.INVALID_REQUEST] * 2
        by_id = [{"topic_id": created["topic_id"]}, {"topic_id": b"?" * 16}]
        answers = client.ask(DELETE, 6, {"topics": by_id})["responses"]
        assert [one["error_code"] for one in answers] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
        assert answers[0]["name"] == "orders"
        assert list(broker.store.topics) == ["assigned"]


def test_new_partitions_are_written_and_stay(tmp_path: Path):
    with Broker(tmp_path) as broker, BrokerClient(broker) as client:
        client.create("orders")
        client.produce(batch("before"))
        topics = [{"name": "orders", "count": 3, "assignments": None}]
        assert client.ask(CREATE_PARTITIONS, 3, {"topics": topics})["results"][0]["error_code"] == 0
        assert client.produce(batch("after"), partition=2)["error_code"] == 0
    with Broker(tmp_path) as broker, BrokerClient(broker) as client:
        assert broker.store.topics["orders"].partitions == 3
        assert values_of(client.fetch(0, partition=2)["records"]) == ["after"]
        assert values_of(client.fetch(0)["records"]) == ["before"]
    check(tmp_path)


def test_configs(broker: Broker):
    admin = admin_of(broker)
    error_of(admin.create_topics([NewTopic("orders", 1, config={"retention.ms": "1000"})])["orders"])
    resource = ConfigResource(ResourceType.TOPIC, "orders")

    def described() -> dict[str, tuple[str, bool]]:
        entries = admin.describe_configs([resource])[resource].result(LIMIT)
        return {name: (one.value, one.is_default) for name, one in entries.items()}

    assert described()["retention.ms"] == ("1000", False)
    assert described()["cleanup.policy"] == ("delete", True)
    changes = [
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ConfigEntry("max.message.bytes", "100", incremental_operation=AlterConfigOpType.SET),
    ]
    altered = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=changes)
    assert error_of(admin.incremental_alter_configs([altered])[altered]) == 0
    assert broker.store.topics["orders"].configs == {"max.message.bytes": "100"}
    assert described()["retention.ms"] == ("604800000", True)
    with BrokerClient(broker) as client:
        assert client.produce(batch("x" * 200))["error_code"] == ErrorCode.MESSAGE_TOO_LARGE
    assert described()["message.timestamp.type"] == ("CreateTime", True)
    anyhow = [ConfigEntry("message.timestamp.type", "CreateTime", incremental_operation=AlterConfigOpType.SET)]
    accepted = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=anyhow)
    assert error_of(admin.incremental_alter_configs([accepted])[accepted]) == 0
    assert described()["message.timestamp.type"] == ("CreateTime", False)
    bad = [ConfigEntry("segment.bytes", "0", incremental_operation=AlterConfigOpType.SET)]
    refused = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=bad)
    assert error_of(admin.incremental_alter_configs([refused])[refused]) == ErrorCode.INVALID_CONFIG
    unknown = ConfigResource(ResourceType.TOPIC, "nothing")
    assert error_of(admin.describe_configs([unknown])[unknown]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node = ConfigResource(ResourceType.BROKER, "1")
    of_node = {name: one.value for name, one in admin.describe_configs([node])[node].result(LIMIT).items()}
    assert of_node["node.id"] == "1"
    assert of_node["advertised.listeners"] == f"PLAINTEXT://{broker.bootstrap_servers}"


def test_types_of_configs(broker: Broker):
    broker.store.create_topic("orders", configs={"internal.segment.bytes": 1 << 20})
    of_all = {"configuration_keys": None}
    resources = [{"resource_type": 2, "resource_name": "orders"} | of_all, {"resource_type": 4} | of_all]
    with BrokerClient(broker) as client:
        results = client.ask(DESCRIBE_CONFIGS, 4, {"resources": resources})["results"]
    types = {one["name"]: one["config_type"] for result in results for one in result["configs"]}
    assert {name: types[name] for name in ("cleanup.policy", "retention.ms", "max.message.bytes")} == {
        "cleanup.policy": 7,
        "retention.ms": 5,
        "max.message.bytes": 3,
    }
    assert all(types.values())


def test_resources_with_configs(broker: Broker):
    broker.store.create_topic("orders")
    with BrokerClient(broker) as client:

        def listed(version: int, *types: int) -> list[tuple[int, str]]:
            answer = client.ask(LIST_CONFIG_RESOURCES, version, {"resource_types": list(types)} if version else {})
            assert answer["error_code"] == 0
            return [(one["resource_type"], one["resource_name"]) for one in answer["config_resources"]]

        assert listed(1) == [(2, "orders"), (4, "1")]
        assert listed(1, 4, 32) == [(4, "1")]
        assert listed(0) == listed(1, 16) == []
        odd = client.ask(LIST_CONFIG_RESOURCES, 1, {"resource_types": [3]})
        assert odd["error_code"] == ErrorCode.UNSUPPORTED_VERSION


def test_values_are_added_to_a_list_and_removed(broker: Broker):
    broker.store.create_topic("orders")

    def alter(operation: int, value: str | None, key: str = "cleanup.policy", *others: str, trial: bool = False) -> int:
        configs = [{"name": one, "config_operation": operation, "value": value} for one in (key, *others)]
        resource = {"resource_type": 2, "resource_name": "orders", "configs": configs}
        answer = client.ask(ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": trial})
        return int(answer["responses"][0]["error_code"])

    def policy() -> str | None:
        return broker.store.topics["orders"].configs.get("cleanup.policy")

    with BrokerClient(broker) as client:
        assert alter(APPEND, "compact", trial=True) == 0
        assert policy() is None
        assert alter(APPEND, "compact") == 0
        assert policy() == "delete,compact"
        assert alter(APPEND, "compact,delete") == 0
        assert policy() == "delete,compact"
        assert alter(SUBTRACT, "delete") == 0
        assert policy() == "compact"
        assert alter(SUBTRACT, "delete") == 0
        assert policy() == "compact"
        assert alter(APPEND, "shred") == alter(SUBTRACT, "compact") == ErrorCode.INVALID_CONFIG
        assert alter(APPEND, "1", "retention.ms") == alter(SUBTRACT, "1", "retention.ms") == ErrorCode.INVALID_CONFIG
        assert alter(4, "delete") == ErrorCode.INVALID_CONFIG
        assert alter(SET, None) == alter(APPEND, None) == alter(SUBTRACT, None) == ErrorCode.INVALID_REQUEST
        assert alter(SET, "1", "retention.ms", "retention.ms") == ErrorCode.INVALID_REQUEST
        assert broker.store.topics["orders"].configs == {"cleanup.policy": "compact"}


def test_lists_that_several_change_at_once_have_all_changes(broker: Broker):
    broker.store.create_topic("orders")
    operations = {APPEND: "compact", SUBTRACT: "delete"}

    def alter(operation: int) -> int:
        configs = [{"name": "cleanup.policy", "config_operation": operation, "value": operations[operation]}]
        resource = {"resource_type": 2, "resource_name": "orders", "configs": configs}
        with BrokerClient(broker) as client:
            return int(client.ask(ALTER_CONFIGS, 1, {"resources": [resource]})["responses"][0]["error_code"])

    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            broker.store.alter_configs("orders", {"cleanup.policy": "delete"})
            assert all(code in (0, ErrorCode.INVALID_CONFIG) for code in pool.map(alter, [APPEND, SUBTRACT] * 4))
            assert broker.store.topics["orders"].configs == {"cleanup.policy": "compact"}


def test_changed_configs_stay(tmp_path: Path):
    with kraftlog.LogStore(tmp_path) as store:
        store.create_topic("orders", configs={"retention.ms": 1, "retention.bytes": 2})
        with store.producer() as producer:
            producer.send("orders", value="v" * 2000)
        store.alter_configs("orders", {"retention.ms": None, "internal.segment.bytes": 1024})
        with store.producer() as producer:
            producer.send("orders", value="v")
        assert len(list((tmp_path / "orders-0").glob("*.log"))) == 2
        with pytest.raises(kraftlog.KraftlogError, match="unknown configuration"):
            store.alter_configs("orders", {"retention.bytes": None, "colour": "red"})
    with kraftlog.LogStore(tmp_path) as store:
        assert store.topics["orders"].configs == {"retention.bytes": "2", "internal.segment.bytes": "1024"}


def test_deleted_records(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        client.produce(batch(*"abcde"))
        admin = admin_of(broker)
        partition = confluent_kafka.TopicPartition("orders", 0, 3)
        assert admin.delete_records([partition])[partition].result(LIMIT).low_watermark == 3
        assert client.fetch(2)["error_code"] == ErrorCode.OFFSET_OUT_OF_RANGE
        first = admin.list_offsets({confluent_kafka.TopicPartition("orders", 0): OffsetSpec.earliest()})
        assert [future.result(LIMIT).offset for future in first.values()] == [3]
        rows = [{"partition_index": 0, "offset": 9}, {"partition_index": 1, "offset": 0}]
        answer = client.ask(DELETE_RECORDS, 2, {"topics": [{"name": "orders", "partitions": rows}]})
        codes = [(one["error_code"], one["low_watermark"]) for one in answer["topics"][0]["partitions"]]
        assert codes == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
        broker.store.create_topic("tables", configs={"cleanup.policy": "compact"})
        rows = [{"name": "tables", "partitions": [{"partition_index": 0, "offset": -1}]}]
        answer = client.ask(DELETE_RECORDS, 2, {"topics": rows})
        assert answer["topics"][0]["partitions"][0]["error_code"] == 44  # POLICY_VIOLATION
    assert log_of(broker.path) == [(3, "d"), (4, "e")]
    broker.restart()
    with BrokerClient(broker) as client:
        assert client.fetch(2)["error_code"] == ErrorCode.OFFSET_OUT_OF_RANGE
        rows = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": -1}]}]
        assert client.ask(DELETE_RECORDS, 2, {"topics": rows})["topics"][0]["partitions"][0]["low_watermark"] == 5
    assert log_of(broker.path) == []


def test_transactions_and_producers(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("open", timeout_ms=50_000)
        identity = {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"]}
        data = batch("v", base_sequence=0, is_transactional=True, **identity)
        assert client.produce(data, version=12, transactional_id="open")["error_code"] == 0
        client.init("idle")

        def listed(**filters: Any) -> list[str]:
            values = {"state_filters": [], "producer_id_filters": []} | filters
            rows = client.ask(LIST_TRANSACTIONS, 2, values)["transaction_states"]
            return [one["transactional_id"] for one in rows]

        assert listed() == ["idle", "open"]
        assert listed(state_filters=["Ongoing"]) == ["open"]
        assert listed(producer_id_filters=[begun["producer_id"]]) == ["open"]
        assert listed(transactional_id_pattern="i.*") == ["idle"]
        assert listed(duration_filter=3_600_000) == []
        unknown = client.ask(LIST_TRANSACTIONS, 2, {"state_filters": ["Odd"], "producer_id_filters": []})
        assert unknown["unknown_state_filters"] == ["Odd"]
        bad = {"state_filters": [], "producer_id_filters": [], "transactional_id_pattern": "("}
        assert client.ask(LIST_TRANSACTIONS, 2, bad)["error_code"] == ErrorCode.INVALID_REGULAR_EXPRESSION
        rows = client.ask(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["open", "nobody"]})["transaction_states"]
        assert [one["error_code"] for one in rows] == [ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]
        assert (rows[0]["transaction_state"], rows[0]["transaction_timeout_ms"]) == ("Ongoing", 50_000)
        assert rows[0]["topics"] == [{"topic": "orders", "partitions": [0]}]
        topics = [{"name": "orders", "partition_indexes": [0, 1]}]
        described = client.ask(DESCRIBE_PRODUCERS, 0, {"topics": topics})["topics"][0]["partitions"]
        assert [one["error_code"] for one in described] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        (producer,) = described[0]["active_producers"]
        assert {name: producer[name] for name in identity} == identity
        assert (producer["last_sequence"], producer["current_txn_start_offset"]) == (0, 0)
        assert client.ask(END, 5, identity | {"transactional_id": "open", "committed": True})["error_code"] == 0
        (producer,) = client.ask(DESCRIBE_PRODUCERS, 0, {"topics": topics})["topics"][0]["partitions"][0][
            "active_producers"
        ]
        assert producer["current_txn_start_offset"] == -1


def consume(broker: Broker, count: int, group: str = "g") -> tuple[confluent_kafka.Consumer, list[bytes]]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    messages = consumer.consume(count, LIMIT)
    assert all(one.error() is None for one in messages)
    return consumer, [one.value() for one in messages]


def test_a_group_goes_on_where_it_was(tmp_path: Path):
    with Broker(tmp_path) as broker, BrokerClient(broker) as client:
        client.create("orders")
        client.produce(batch(*"abcdef"))
        consumer, values = consume(broker, 4)
        assert values == [b"a", b"b", b"c", b"d"]
        consumer.commit(asynchronous=False)
        consumer.close()
        assert broker.store.committed("g") == {("orders", 0): OffsetAndMetadata(4, "", 0)}
    with Broker(tmp_path) as broker:
        consumer, values = consume(broker, 2)
        assert values == [b"e", b"f"]
        consumer.close()
    offsets = kraftlog.open(tmp_path).offsets(["group", "topic", "offset"]).to_pylist()
    assert offsets == [{"group": "g", "topic": "orders", "offset": 4}]
    check(tmp_path)


def test_deleted_groups_and_offsets(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        client.produce(batch("a"))
        consumer, _ = consume(broker, 1)
        consumer.commit(asynchronous=False)

        def delete_offsets(group: str, topic: str = "orders") -> int:
            topics = [{"name": topic, "partitions": [{"partition_index": 0}]}]
            answer = client.ask(OFFSET_DELETE, 0, {"group_id": group, "topics": topics})
            return answer["error_code"] or answer["topics"][0]["partitions"][0]["error_code"]

        def delete(group: str) -> int:
            return client.ask(DELETE_GROUPS, 2, {"groups_names": [group]})["results"][0]["error_code"]

        assert delete("g") == ErrorCode.NON_EMPTY_GROUP
        assert delete_offsets("g") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        consumer.close()
        assert delete_offsets("g", "nothing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.store.committed("g") != {}
        assert delete_offsets("g") == ErrorCode.NONE
        assert broker.store.committed("g") == {}
        broker.store.parts.groups.commit(GroupMetadata("h"), {("orders", 0): OffsetAndMetadata(1)})
        assert delete("h") == ErrorCode.NONE
        assert delete("h") == delete_offsets("h") == ErrorCode.GROUP_ID_NOT_FOUND
    assert kraftlog.open(broker.path).offsets().num_rows == 0
    broker.restart()
    assert broker.store.groups() == []


def test_requests_that_a_broker_answers(broker: Broker):
    with BrokerClient(broker) as client:
        keys = {one["api_key"] for one in client.ask(18, 4, {})["api_keys"]}
    of_clients = {*range(4), *range(8, 17), *range(18, 29), 42, 47, 68, 69}
    assert keys == of_clients | {29, 32, 35, 37, 43, 44, 46, 48, 50, 55, 60, 61, 65, 66, 74, 75}
    assert PRODUCE in keys
