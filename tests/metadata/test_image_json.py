"""The JSON document of an image has what Kafka's JSON of the same image has, and no secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_rows import SCENARIOS, applied, log_records, record

from golden_files import name_of
from kraftlog.metadata.image import Image
from kraftlog.metadata.tree.json import json_texts
from kraftlog.metadata.uuids import uuid_text

HIDDEN = "[redacted]"
# the names of Kafka's enums ResourceType, ConfigResource.Type, PatternType, AclOperation, AclPermissionType
CONFIG_RESOURCES = {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}
ACL_ENUMS = {
    "resourceType": {2: "TOPIC", 3: "GROUP", 4: "CLUSTER"},
    "patternType": {3: "LITERAL", 4: "PREFIXED"},
    "operation": {2: "ALL", 3: "READ", 4: "WRITE", 8: "DESCRIBE"},
    "permissionType": {2: "DENY", 3: "ALLOW"},
}
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def _expected(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the tree of Kafka's image; fields that a record does not have are added where they are looked at."""
    tree: dict[str, Any] = {"features": {}, "brokers": {}, "controllers": {}, "topics": {}, "configs": {}}
    tree |= {"client_quotas": {}, "acls": {}, "scram": {}, "producer_ids": {}}
    names: dict[str, str] = {}
    for kind, data in ((row["type"], dict(row["data"])) for row in records):
        if kind == "FEATURE_LEVEL_RECORD":
            tree["features"][data["name"]] = data["featureLevel"]
        elif kind == "REGISTER_BROKER_RECORD":
            tree["brokers"][str(data["brokerId"])] = _registration(data)
        elif kind == "REGISTER_CONTROLLER_RECORD":
            tree["controllers"][str(data["controllerId"])] = _registration(data)
        elif kind == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
            tree["topics"][data["name"]] = {"id": data["topicId"], "partitions": {}}
        elif kind == "PARTITION_RECORD":
            absent = {"leaderRecoveryState": "RECOVERED", "eligibleLeaderReplicas": None, "lastKnownElr": None}
            partitions = tree["topics"][names[data.pop("topicId")]]["partitions"]
            partition = str(data.pop("partitionId"))
            partitions[partition] = absent | data
        elif kind == "CONFIG_RECORD":
            of_type = tree["configs"].setdefault(CONFIG_RESOURCES[data["resourceType"]], {})
            of_type.setdefault(data["resourceName"], {})[data["name"]] = data["value"]
        elif kind == "CLIENT_QUOTA_RECORD":
            entity = frozenset((one["entityType"], one["entityName"]) for one in data["entity"])
            tree["client_quotas"].setdefault(entity, {})[data["key"]] = data["value"]
        elif kind == "PRODUCER_IDS_RECORD":
            tree["producer_ids"] = {"nextProducerId": data["nextProducerId"]}
        elif kind == "ACCESS_CONTROL_ENTRY_RECORD":
            tree["acls"][data["id"]] = data | {name: words[data[name]] for name, words in ACL_ENUMS.items()}
        else:
            assert kind == "USER_SCRAM_CREDENTIAL_RECORD"
            users = tree["scram"].setdefault(MECHANISMS[data.pop("mechanism")], {})
            name = data.pop("name")
            users[name] = data
    return tree


def _registration(data: dict[str, Any]) -> dict[str, Any]:
    end_points = [point | {"securityProtocol": ["PLAINTEXT"][point["securityProtocol"]]} for point in data["endPoints"]]
    features = sorted(data["features"], key=lambda feature: feature["name"])
    return data | {"endPoints": end_points, "features": features}


def _without_maps(tree: dict[str, Any]) -> dict[str, Any]:
    cluster = tree.pop("cluster")
    quotas = {frozenset(quota["entity"].items()): quota["quotas"] for quota in tree.pop("client_quotas")}
    acls = {acl["id"]: acl for acl in tree.pop("acls")}
    return tree | cluster | {"client_quotas": quotas, "acls": acls}


def _tree(image: Image, *args: int, **kwargs: bool) -> dict[str, Any]:
    text = "".join(json_texts(image, *args, **kwargs))
    tree: dict[str, Any] = json.loads(text, parse_constant=pytest.fail)
    assert text == json.dumps(tree, indent=2, ensure_ascii=False)
    return tree


@pytest.mark.parametrize("folder", SCENARIOS, ids=name_of)
@pytest.mark.parametrize("name", ["image_final.json", "first"])
def test_tree_has_what_the_image_of_kafka_has(folder: Path, name: str) -> None:
    files = sorted((folder / "expected").glob("image_at_*.json"), key=lambda file: int(file.stem.split("_")[-1]))
    kafka = json.loads((files[0] if name == "first" else folder / "expected" / name).read_text())
    image = applied([one for one in log_records(folder) if one[0] <= kafka["offset"]])
    tree = _tree(image, kafka["offset"], kafka["epoch"], 1234, show_secrets=True)
    tree = _without_maps(tree)
    about = {key: tree.pop(key) for key in ("offset", "epoch", "timestamp", "delegation_tokens")}
    assert about == {"offset": kafka["offset"], "epoch": kafka["epoch"], "timestamp": 1234, "delegation_tokens": {}}
    expected = _expected(kafka["records"])
    for broker, data in expected["brokers"].items():  # at levels without cordoned directories the field is not there
        expected["brokers"][broker] = {"cordonedLogDirs": None} | data
    assert tree == expected


def test_secrets_are_hidden_unless_asked_for() -> None:
    secret = b"s3cret-bytes"
    credential = record(
        "UserScramCredentialRecord", name="alice", mechanism=2, salt=secret, stored_key=secret, server_key=secret
    )
    password = record("ConfigRecord", resource_type=4, name="listener.name.x.ssl.key.password", value="s3cret")
    image = applied([(0, "UserScramCredentialRecord", credential), (1, "ConfigRecord", password)])
    hidden, shown = _tree(image), _tree(image, show_secrets=True)
    text = json.dumps(hidden)
    assert "s3cret" not in text
    assert "czNjcmV0LWJ5dGVz" not in text
    alice = {"salt": HIDDEN, "storedKey": HIDDEN, "serverKey": HIDDEN, "iterations": 0}
    assert hidden["scram"] == {"SCRAM-SHA-512": {"alice": alice}}
    assert hidden["configs"]["BROKER"][""] == {"listener.name.x.ssl.key.password": HIDDEN}
    assert shown["scram"]["SCRAM-SHA-512"]["alice"]["salt"] == "czNjcmV0LWJ5dGVz"
    assert shown["configs"]["BROKER"][""] == {"listener.name.x.ssl.key.password": "s3cret"}


def test_what_kafka_has_no_name_for() -> None:
    uuid = bytes(15) + b"\1"
    made = [
        (0, "TopicRecord", record("TopicRecord", name="t", topic_id=bytes(16))),
        (1, "TopicRecord", record("TopicRecord", name="t", topic_id=uuid)),
        (2, "ConfigRecord", record("ConfigRecord", resource_type=99, resource_name="r", name="n", value="v")),
        (3, "ClientQuotaRecord", record("ClientQuotaRecord", key="k", value=float("nan"))),
        (4, "DelegationTokenRecord", record("DelegationTokenRecord", token_id="x", owner="User:a")),
    ]
    tree = _tree(applied(made))
    assert list(tree["topics"]) == ["t", "t AAAAAAAAAAAAAAAAAAAAAQ"]
    assert tree["configs"] == {"99": {"r": {"n": "v"}}}
    assert tree["client_quotas"] == [{"entity": {}, "quotas": {"k": "nan"}}]
    assert tree["delegation_tokens"]["x"]["owner"] == "User:a"
    assert tree["offset"] == 4


def test_an_empty_tree() -> None:
    tree = _tree(Image.empty())
    assert tree["offset"] == -1
    assert not any(tree[key] for key in ("features", "topics", "configs", "acls", "scram", "client_quotas"))


_TEXTS = st.text(max_size=6) | st.sampled_from(['"', "\\", "\0\x1f\x7f", "\u2028", "\U0001f980", "ü\n\t"])
_IDS = st.lists(st.integers(-1, 3), max_size=3)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(_TEXTS, st.lists(st.tuples(_IDS, _IDS | st.none()), max_size=4)), max_size=4),
    st.lists(st.tuples(st.sampled_from([2, 4, 99]), _TEXTS, _TEXTS, _TEXTS), max_size=6),
)
def test_odd_text_and_lists(topics: list[Any], configs: list[Any]) -> None:
    made = []
    for number, (name, partitions) in enumerate(topics):
        topic_id = bytes(15) + bytes([len(topics) - number])
        made.append(("TopicRecord", record("TopicRecord", name=name, topic_id=topic_id)))
        for partition_id, (replicas, elr) in enumerate(partitions):
            fields = {"replicas": replicas, "isr": replicas[:1], "eligible_leader_replicas": elr}
            fields |= {"directories": [bytes([each + 1]) * 16 for each in replicas], "partition_id": partition_id}
            made.append(("PartitionRecord", record("PartitionRecord", topic_id=topic_id, leader=-1, **fields)))
    for kind, resource, name, value in configs:
        fields = {"resource_type": kind, "resource_name": resource, "name": name, "value": value}
        made.append(("ConfigRecord", record("ConfigRecord", **fields)))
    image = applied([(offset, *one) for offset, one in enumerate(made)])
    tree = _tree(image, show_secrets=True)
    expected: dict[str, Any] = {}
    for row in image.tables()["ConfigRecord"].to_pylist():
        resources = expected.setdefault({2: "TOPIC", 4: "BROKER", 99: "99"}[row["resource_type"]], {})
        resources.setdefault(row["resource_name"], {})[row["name"]] = row["value"]
    assert tree["configs"] == expected
    by_id = {topic["id"]: topic["partitions"] for topic in tree["topics"].values()}
    for row in image.tables()["PartitionRecord"].to_pylist():
        found = by_id[uuid_text(row["topic_id"])].pop(str(row["partition_id"]))
        lists = ("replicas", "isr", "directories", "eligibleLeaderReplicas")
        assert [found[name] for name in lists] == [
            row["replicas"],
            row["isr"],
            [uuid_text(one) for one in row["directories"]],
            row["eligible_leader_replicas"],
        ]
    assert not any(by_id.values())
