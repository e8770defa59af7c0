"""Partitions of members in the table ``lag``: newer groups before their first commit, tasks, and assignors of users."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

import pytest
from kafka_records import write_log
from kafka_rows import Line

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import CorruptRecordError

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAg"
CLIENT = {"clientId": "c", "clientHost": "/h"}


def log_of(log_directory: Path, lines: list[Line]) -> None:
    write_log(log_directory / "__consumer_offsets-0", lines, "consumer_offsets")


def line(name: str, key: dict[str, Any], value: dict[str, Any], version: int = 0) -> Line:
    value = {"version": version, "data": value}
    return {"offset": 0, "producer_id": -1, "key": {"name": f"{name}Key", "data": key}, "value": value}


def group_of_ids(prefix: str, group: str, partitions: list[int]) -> list[Line]:
    """Return the records of a consumer or share group whose one member has partitions."""
    key = {"groupId": group}
    assigned = [{"topicId": TOPIC_ID, "partitions": partitions}]
    subscribed = {"subscribedTopicNames": ["t"], "rackId": None}
    others = {"instanceId": None, "subscribedTopicRegex": None, "rebalanceTimeoutMs": 1, "serverAssignor": None}
    others |= {"classicMemberMetadata": None}
    epochs = {"memberEpoch": 1, "previousMemberEpoch": 0, "state": 0}
    is_share = prefix == "Share"
    return [
        line(f"{prefix}GroupMetadata", key, {"epoch": 1, "metadataHash": 0}),
        line(
            f"{prefix}GroupMemberMetadata",
            key | {"memberId": "m"},
            CLIENT | subscribed | ({} if is_share else others),
        ),
        line(
            f"{prefix}GroupCurrentMemberAssignment",
            key | {"memberId": "m"},
            epochs | {"assignedPartitions": assigned} | ({} if is_share else {"partitionsPendingRevocation": []}),
        ),
    ]


def streams_group(group: str) -> list[Line]:
    """Return the records of a streams group: of its two subtopologies a member has active tasks of one."""
    key = {"groupId": group}
    no_topics = {
        "sourceTopicRegex": [],
        "stateChangelogTopics": [],
        "repartitionSinkTopics": [],
        "copartitionGroups": [],
    }
    inner = {"name": "inner", "partitions": 3, "replicationFactor": 1, "topicConfigs": []}
    member = {
        **{"instanceId": None, "rackId": None, **CLIENT, "rebalanceTimeoutMs": 1, "topologyEpoch": 1},
        **{"processId": "p", "userEndpoint": None, "clientTags": []},
    }
    tasks = {
        **{"memberEpoch": 1, "previousMemberEpoch": 0, "state": 1},
        "activeTasks": [{"subtopologyId": "0", "partitions": [2, 0]}],
        "standbyTasks": [{"subtopologyId": "1", "partitions": [1]}],
        "warmupTasks": [{"subtopologyId": "0", "partitions": [1]}],
        **{f"{kind}TasksPendingRevocation": [] for kind in ("active", "standby", "warmup")},
    }
    subtopologies = [
        {"subtopologyId": "0", "sourceTopics": ["a"], "repartitionSourceTopics": [inner], **no_topics},
        {"subtopologyId": "1", "sourceTopics": ["b"], "repartitionSourceTopics": [], **no_topics},
    ]
    return [
        line("StreamsGroupMetadata", key, {"epoch": 1, "metadataHash": 0}),
        line("StreamsGroupTopology", key, {"epoch": 1, "subtopologies": subtopologies}),
        line("StreamsGroupMemberMetadata", key | {"memberId": "m"}, member),
        line("StreamsGroupCurrentMemberAssignment", key | {"memberId": "m"}, tasks),
    ]


def classic_group(group: str, members: list[str], protocol_type: str) -> Line:
    """Return the record of a classic group whose members all have partition 0 of t."""
    assignment = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\1" + b"\0\0\0\0" + b"\xff\xff\xff\xff"
    each = {
        **{"groupInstanceId": None, **CLIENT, "rebalanceTimeout": 1, "sessionTimeout": 1},
        **{"subscription": "", "assignment": base64.b64encode(assignment).decode()},
    }
    value = {"protocolType": protocol_type, "generation": 1, "protocol": "mine", "leader": members[0]}
    value |= {"currentStateTimestamp": 0, "members": [each | {"memberId": one} for one in members]}
    return line("GroupMetadata", {"group": group}, value, 3)


def commit(group: str, offset: int) -> Line:
    key = {"group": group, "topic": "t", "partition": 0}
    return line("OffsetCommit", key, {"offset": offset, "metadata": "", "commitTimestamp": 0}, 3)


def test_topics_are_named_by_their_folders(tmp_path: Path):
    """Before the first commit a record of a newer group has an id alone; a folder of the topic says its name."""
    log_of(tmp_path, group_of_ids("Consumer", "new", [0, 1]))
    rows = kraftlog.open(tmp_path).lag().to_table().to_pylist()
    assert [(row["topic"], row["partition"], row["member_id"]) for row in rows] == [(None, 0, "m"), (None, 1, "m")]
    assert {row["reason"] for row in rows} == {
        f"no offset is committed; no log of the topic with id {TOPIC_ID} among the files"
    }
    shutil.copytree(GOLDEN / "transactions" / "log" / "orders-1", folder := tmp_path / "orders-1")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    rows = kraftlog.open(tmp_path).lag(["topic", "partition", "log_end_offset"]).to_table().to_pylist()
    assert [row["topic"] for row in rows] == ["orders", "orders"]
    assert (rows[0]["log_end_offset"], rows[1]["log_end_offset"]) == (None, 69)
    (member,) = kraftlog.open(tmp_path).groups().to_pylist()[0]["members"]
    assert [one["topic"] for one in member["assignment"]] == ["orders"]
    (folder / "partition.metadata").write_text("what is this\n")
    stream = kraftlog.open(tmp_path).lag(strict=False)
    assert stream.to_table()["topic"].to_pylist() == [None, None]
    assert [(fault.error, fault.topic, fault.partition) for fault in stream.faults] == [("bad_checkpoint", "orders", 1)]
    with pytest.raises(CorruptRecordError, match=r"partition\.metadata"):
        kraftlog.open(tmp_path).lag().to_table()


def test_partitions_of_streams_and_share_groups(tmp_path: Path):
    """Those of active tasks, in all source topics of a subtopology; a share group commits nothing."""
    log_of(tmp_path, [*streams_group("s"), *group_of_ids("Share", "q", [0])])
    rows = kraftlog.open(tmp_path).lag(["group", "topic", "partition", "current_offset", "member_id"]).to_table()
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("s", "a", 0, None, "m"),
        ("s", "a", 2, None, "m"),
        ("s", "inner", 0, None, "m"),
        ("s", "inner", 2, None, "m"),
    ]


def test_a_partition_that_two_members_have_is_two_rows(tmp_path: Path):
    """An assignor of users may give it to both; kafka-consumer-groups shows both."""
    log_of(tmp_path, [commit("g", 7), classic_group("g", ["m", "n"], "consumer")])
    rows = kraftlog.open(tmp_path).lag(["current_offset", "member_id"]).to_table().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(7, "m"), (7, "n")]


def test_what_members_of_another_protocol_have_is_not_partitions(tmp_path: Path):
    """Such as workers of Kafka Connect: what is assigned to them are bytes of their own."""
    log_of(tmp_path, [commit("g", 7), classic_group("g", ["m", "n"], "connect")])
    rows = kraftlog.open(tmp_path).lag(["current_offset", "member_id"]).to_table().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(7, None)]
