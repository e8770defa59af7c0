"""What changed between two images, against a plain comparison of their records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_rows import SCENARIOS, Record, applied, contents, kafka_images, record
from test_image_replay import about_brokers, about_others, about_topics, logs

from golden_files import name_of
from kraftlog.metadata.diff.diff import SCHEMA, describe, diff
from kraftlog.metadata.image import Image
from kraftlog.metadata.uuids import uuid_text

KEYS = {
    "FeatureLevelRecord": ("feature", ["name"]),
    "RegisterBrokerRecord": ("broker", ["broker_id"]),
    "RegisterControllerRecord": ("controller", ["controller_id"]),
    "TopicRecord": ("topic", ["topic_id"]),
    "PartitionRecord": ("partition", ["topic_id", "partition_id"]),
    "ConfigRecord": ("config", ["resource_type", "resource_name", "name"]),
    "ClientQuotaRecord": ("client_quota", ["entity", "key"]),
    "ProducerIdsRecord": ("producer_ids", []),
    "AccessControlEntryRecord": ("acl", ["id"]),
    "UserScramCredentialRecord": ("scram_credential", ["name", "mechanism"]),
    "DelegationTokenRecord": ("delegation_token", ["token_id"]),
}
NOT_FIELDS = {"unknown_tagged_fields"}
FIELD_COLUMNS = {"ConfigRecord": "name", "ClientQuotaRecord": "key"}

Rows = dict[str, list[dict[str, Any]]]


def plain(before: Rows, after: Rows) -> list[tuple[str, str, str | None]]:
    """Return kind, change and field of each row of the diff, one record after another."""
    found: list[tuple[str, str, str | None]] = []
    for name, (kind, keys) in KEYS.items():
        old, new = ({repr([row[key] for key in keys]): row for row in rows[name]} for rows in (before, after))
        field_of = FIELD_COLUMNS.get(name, "")
        found += [(kind, "removed", row.get(field_of)) for key, row in old.items() if key not in new]
        found += [(kind, "added", row.get(field_of)) for key, row in new.items() if key not in old]
        for key in old.keys() & new.keys():
            columns = [column for column in old[key] if old[key][column] != new[key][column]]
            found += [(kind, "changed", new[key].get(field_of) or column) for column in columns]
    return sorted(found, key=repr)


def rows_of(before: Image, after: Image) -> list[tuple[str, str, str | None]]:
    table = diff(before, after)
    assert table.schema == SCHEMA
    found = [(row["kind"], row["change"], row["field"]) for row in table.to_pylist()]
    return sorted(found, key=repr)


@pytest.mark.parametrize("folder", SCENARIOS, ids=name_of)
def test_diff_of_images_of_kafka(folder: Path) -> None:
    images = [Image.empty(), *(applied(_numbered(records)) for _, records, _ in kafka_images(folder))]
    for before in images:
        for after in images:
            assert rows_of(before, after) == plain(contents(before), contents(after))


def _numbered(records: list[tuple[str, dict[str, Any]]]) -> list[Record]:
    return [(offset, name, fields) for offset, (name, fields) in enumerate(records)]


@pytest.mark.parametrize("folder", SCENARIOS, ids=name_of)
def test_partitions_that_changed_between_two_images_of_kafka(folder: Path) -> None:
    """The texts, from Kafka's JSON of the two images alone."""
    files = sorted((folder / "expected").glob("image_at_*.json"), key=lambda file: int(file.stem.split("_")[-1]))
    first, second = (_leaders(json.loads(file.read_text())["records"]) for file in files[1:3])
    expected = {
        (key, field, str(first[key][field]), str(second[key][field]))
        for key in first.keys() & second.keys()
        for field in ("leader", "leader_epoch", "partition_epoch", "isr")
        if first[key][field] != second[key][field]
    }
    assert expected
    images = kafka_images(folder)
    table = diff(applied(_numbered(images[1][1])), applied(_numbered(images[2][1])))
    found = {
        (row["key"], row["field"], row["before"], row["after"])
        for row in table.to_pylist()
        if row["kind"] == "partition" and row["change"] == "changed"
    }
    assert found == expected


def _leaders(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    names = {row["data"]["topicId"]: row["data"]["name"] for row in records if row["type"] == "TOPIC_RECORD"}
    partitions = [row["data"] for row in records if row["type"] == "PARTITION_RECORD"]
    return {
        f"{names[data['topicId']]}-{data['partitionId']}": {
            "leader": data["leader"],
            "leader_epoch": data["leaderEpoch"],
            "partition_epoch": data["partitionEpoch"],
            "isr": data["isr"],
        }
        for data in partitions
    }


@settings(max_examples=80, deadline=None)
@given(logs(about_topics, about_brokers, about_others), st.integers(0, 60))
def test_diff_is_that_of_the_records(records: list[Record], at: int) -> None:
    before = applied(records[:at])
    after = applied(records[at:], None, before.copy())
    assert rows_of(before, after) == plain(contents(before), contents(after))
    assert diff(after, after).num_rows == 0
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    back = [(kind, turned[change], field) for kind, change, field in rows_of(after, before)]
    assert sorted(back, key=repr) == rows_of(before, after)


def test_what_changed_in_words() -> None:
    topic, other = bytes(16), bytes(15) + b"\1"
    secret = record("UserScramCredentialRecord", name="alice", mechanism=1, salt=b"a", iterations=4096)
    entity = [{"entity_type": "user", "entity_name": None, "unknown_tagged_fields": None}]
    quota = record("ClientQuotaRecord", entity=entity, key="rate", value=1.0)
    partition = record(
        "PartitionRecord", topic_id=topic, partition_id=3, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=4
    )
    config = record("ConfigRecord", resource_type=2, resource_name="orders", name="retention.ms", value="1")
    before = [
        ("TopicRecord", record("TopicRecord", name="orders", topic_id=topic)),
        ("PartitionRecord", partition | {"partition_epoch": 0}),
        ("ConfigRecord", config),
        ("ConfigRecord", config | {"name": "ssl.key.password", "value": "old"}),
        ("ClientQuotaRecord", quota),
        ("UserScramCredentialRecord", secret),
        ("RegisterBrokerRecord", record("RegisterBrokerRecord", broker_id=1, broker_epoch=7)),
    ]
    after = [
        ("TopicRecord", record("TopicRecord", name="events", topic_id=other)),
        ("PartitionChangeRecord", record("PartitionChangeRecord", topic_id=topic, partition_id=3, leader=2, isr=[2])),
        ("ConfigRecord", config | {"value": "2"}),
        ("ConfigRecord", config | {"name": "cleanup.policy", "value": "compact"}),
        ("ConfigRecord", config | {"name": "ssl.key.password", "value": "new"}),
        ("ClientQuotaRecord", quota | {"remove": True}),
        ("UserScramCredentialRecord", secret | {"salt": b"b"}),
        ("UnfenceBrokerRecord", record("UnfenceBrokerRecord", id=1, epoch=7)),
        ("ProducerIdsRecord", record("ProducerIdsRecord", next_producer_id=1000)),
    ]
    old = applied(_numbered(before))
    new = applied(_numbered(after), None, old.copy())
    assert list(describe(diff(old, new))) == [
        "~ broker 1: fenced true -> false",
        f"+ topic events (id {uuid_text(other)})",
        "~ partition orders-3: isr [1, 2] -> [2], leader 1 -> 2, leader_epoch 4 -> 5, partition_epoch 0 -> 1",
        "+ config TOPIC orders: cleanup.policy = compact",
        "~ config TOPIC orders: retention.ms 1 -> 2, ssl.key.password [redacted] -> [redacted]",
        "- client_quota user=<default>: rate = 1.0",
        "+ producer_ids (next_producer_id 1000)",
        "~ scram_credential alice SCRAM-SHA-256: salt [redacted] -> [redacted]",
    ]
    removed = applied([(9, "RemoveTopicRecord", record("RemoveTopicRecord", topic_id=topic))], None, new.copy())
    assert list(describe(diff(new, removed))) == [
        f"- topic orders (id {uuid_text(topic)})",
        "- partition orders-3 (replicas [1, 2], isr [2], leader 2, leader_epoch 5, partition_epoch 1)",
        "- config TOPIC orders: cleanup.policy = compact",
        "- config TOPIC orders: retention.ms = 2",
        "- config TOPIC orders: ssl.key.password = [redacted]",
    ]
