"""Logs of coordinators, written record by record: what groups and transactional ids may have left in theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from coordinator_log import NOW, START, CoordinatorLog, Row, Unknown
from jvm import Line

from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.writer import encode_messages

TOPICS = {"orders": 3, "parts": 2}
UNKNOWN_TYPES = [99, 1000, 32767, -1, -32768]
HOUR = 3_600_000
COMMITTED, ABORTED, TWICE, OPEN, LATE = range(5_000, 5_005)
EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT = 0, 1, 4, 5

Ids = Mapping[str, str]


def tags(*numbers: int) -> list[Line]:
    """Return tagged fields that no release knows."""
    return [{"tag": number, "data": b"of a later release"} for number in numbers]


def commit(group: str, topic: str, partition: int, offset: int | None, version: int = 3, **value: Any) -> Row:
    """Return a commit, or the tombstone of one."""
    key = {"group": group, "topic": topic, "partition": partition}
    fields = None if offset is None else {"offset": offset, "metadata": "", "commit_timestamp": NOW, **value}
    return Row(1, key, version, fields)


def offsets(topic_ids: Ids) -> CoordinatorLog:
    """Return groups of every type, commits in every version, tombstones, and transactions around commits."""
    log = CoordinatorLog("consumer_offsets")
    log.append(_versions(topic_ids))
    log.append([commit("plain", "orders", 2, None), commit("other", "orders", 0, 1), commit("other", "orders", 0, 2)])
    log.append([commit("emptied", "orders", 0, 1, 4), commit("emptied", "orders", 0, None)])
    log.append([*_empty_groups(), _classic_group(3)])
    log.append([commit("classic", "orders", 0, 10, leader_epoch=0), commit("classic", "parts", 1, 11)])
    log.append(_consumer_group(topic_ids))
    log.append([commit("consumer", "orders", 0, 20, 4, topic_id=topic_ids["orders"])])
    log.append(_share_group(topic_ids))
    _transactions(log)
    log.append([Row(2, {"group": "deleted"}), commit("plain", "parts", 0, 77, metadata="at the end")])
    return log


def offsets_of_the_future(topic_ids: Ids) -> CoordinatorLog:
    """Return groups among records of unknown types, with unknown tagged fields wherever one can be."""
    log = CoordinatorLog("consumer_offsets")
    known: list[Row | Unknown] = [
        commit("future", "orders", 0, 5, 4, topic_id=topic_ids["orders"], unknown_tagged_fields=tags(1, 7, 40_000)),
        _classic_group(4, tags(0, 3)),
        commit("classic", "orders", 1, 6, 4, unknown_tagged_fields=tags(9)),
        *_consumer_group(topic_ids, tags(5, 1 << 20)),
        commit("consumer", "parts", 0, 7, 3),
    ]
    log.append([Unknown(number) for number in UNKNOWN_TYPES])
    log.append(known[:3])
    log.append([Unknown(UNKNOWN_TYPES[0], b"", None), *known[3:], Unknown(UNKNOWN_TYPES[1], bytes(500), bytes(5_000))])
    log.append([Unknown(UNKNOWN_TYPES[1]), commit("future", "orders", 1, 8)], COMMITTED)
    log.end("COMMIT", COMMITTED)
    return log


def transactional_ids() -> CoordinatorLog:
    """Return transactional ids in each state that needs no coordinator to go on, in both versions."""
    log = CoordinatorLog("transaction_state")
    log.append([_id("empty", 6_000, EMPTY, 0), _id("ongoing", 6_001, EMPTY, 1, client_transaction_version=0)])
    log.append([_id("committed", 6_002, ONGOING, 0, {"orders": [0, 1]}), _id("removed", 6_003, EMPTY, 1)])
    log.append([_id("committed", 6_002, COMPLETE_COMMIT, 0)])
    log.append([Row(0, {"transactional_id": "removed"}), _id("ongoing", 6_001, ONGOING, 1, {"parts": [1]})])
    log.append(
        [
            _id("ongoing", 6_001, ONGOING, 1, {"orders": [2, 0], "parts": [1]}, previous_producer_id=6_001),
            _id("aborted", 6_004, COMPLETE_ABORT, 1, next_producer_id=6_104, previous_producer_id=6_004),
        ]
    )
    return log


def transactional_ids_of_the_future() -> CoordinatorLog:
    """Return transactional ids with unknown tagged fields among records of unknown types."""
    log = CoordinatorLog("transaction_state")
    log.append([Unknown(99), _id("one", 6_005, ONGOING, 1, {"orders": [1]}, tags(4, 300)), Unknown(-1)])
    log.append([_id("two", 6_006, COMPLETE_COMMIT, 1, unknown=tags(1 << 20), client_transaction_version=2)])
    log.append([Unknown(1000, b"", None), _id("three", 6_007, EMPTY, 0)])
    return log


def _versions(topic_ids: Ids) -> list[Row | Unknown]:
    legacy = commit("plain", "orders", 0, 100, 0)
    return [
        Row(0, legacy.key, 0, legacy.value),
        commit("plain", "orders", 1, 101, 1, expire_timestamp=NOW + HOUR, metadata="expires"),
        commit("plain", "orders", 2, 102, 2),
        commit("plain", "parts", 0, 103, 3, leader_epoch=7, metadata="ключ"),
        commit("plain", "parts", 1, 1 << 40, 4, leader_epoch=0, topic_id=topic_ids["parts"], metadata="m" * 200),
    ]


def _empty_groups() -> list[Row | Unknown]:
    value = {"protocol_type": "consumer", "generation": 4, "protocol": None, "leader": None, "members": []}
    return [
        *(Row(2, {"group": f"empty-{version}"}, version, value) for version in range(2)),
        *(Row(2, {"group": name}, 3, value | {"current_state_timestamp": NOW}) for name in ("empty-3", "deleted")),
    ]


def _classic_group(version: int, unknown: list[Line] | None = None) -> Row:
    def member(number: int, instance: str | None, partitions: list[int]) -> Line:
        return {
            "member_id": f"member-{number}",
            "group_instance_id": instance,
            "client_id": f"client-{number}",
            "client_host": "/127.0.0.1",
            "rebalance_timeout": HOUR,
            "session_timeout": HOUR,
            "subscription": _blob("Subscription", {"topics": ["orders", "parts"]}),
            "assignment": _blob("Assignment", {"assigned_partitions": [{"topic": "orders", "partitions": partitions}]}),
            "unknown_tagged_fields": unknown,
        }

    members = [member(0, None, [0, 2]), member(1, "static", [1])]
    value = {"protocol_type": "consumer", "generation": 9, "protocol": "range", "leader": "member-1"}
    value |= {"current_state_timestamp": START, "members": members, "unknown_tagged_fields": unknown or []}
    return Row(2, {"group": "classic"}, version, value)


def _blob(name: str, fields: Line) -> bytes:
    definition, version = BUILT_IN.messages[f"ConsumerProtocol{name}"], 3
    schema = pa.schema([field for field in message_schema(definition) if field.name in fields])
    table = pa.Table.from_pylist([fields], schema)
    (blob,) = encode_messages(definition, version, table, prefix=int16_prefix(version)).to_pylist()
    return bytes(blob)


def _consumer_group(topic_ids: Ids, unknown: list[Line] | None = None) -> list[Row | Unknown]:
    """Return a group of two members, the second of which has yet to be given what it is meant to have."""
    group = {"group_id": "consumer"}
    more: Line = {"unknown_tagged_fields": unknown or []}
    ids = ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"]

    def assigned(*partitions: int) -> list[Line]:
        return [{"topic_id": topic_ids["orders"], "partitions": list(partitions), "unknown_tagged_fields": unknown}]

    return [
        *(
            Row(
                5,
                group | {"member_id": member},
                0,
                {
                    "client_id": f"client-{at}",
                    "client_host": "/127.0.0.1",
                    "subscribed_topic_names": ["orders"],
                    "rebalance_timeout_ms": HOUR,
                    "server_assignor": "range",
                    "instance_id": None,
                    **more,
                },
            )
            for at, member in enumerate(ids)
        ),
        Row(3, group, 0, {"epoch": 12, "metadata_hash": 77, **more}),
        Row(7, group | {"member_id": ids[0]}, 0, {"topic_partitions": assigned(0), **more}),
        Row(7, group | {"member_id": ids[1]}, 0, {"topic_partitions": assigned(1, 2), **more}),
        Row(6, group, 0, {"assignment_epoch": 12, "assignment_timestamp": START, **more}),
        Row(8, group | {"member_id": ids[0]}, 0, _current(12, 0, assigned(0)) | more),
        Row(8, group | {"member_id": ids[1]}, 0, _current(11, 0, assigned(1)) | more),
    ]


def _current(epoch: int, state: int, assigned: list[Line]) -> Line:
    return {
        "member_epoch": epoch,
        "previous_member_epoch": epoch - 1,
        "state": state,
        "assigned_partitions": [one | {"assignment_epochs": None} for one in assigned],
        "partitions_pending_revocation": [],
    }


def _share_group(topic_ids: Ids) -> list[Row | Unknown]:
    group = {"group_id": "share"}
    member = group | {"member_id": "AAAAAAAAAAAAAAAAAAAABA"}
    assigned = [{"topic_id": topic_ids["parts"], "partitions": [0, 1]}]
    client = {"client_id": "client", "client_host": "/127.0.0.1", "subscribed_topic_names": ["parts"]}
    return [
        Row(10, member, 0, client),
        Row(11, group, 0, {"epoch": 3, "metadata_hash": 1}),
        Row(13, member, 0, {"topic_partitions": assigned}),
        Row(12, group, 0, {"assignment_epoch": 3}),
        Row(
            14, member, 0, {"member_epoch": 3, "previous_member_epoch": 2, "state": 0, "assigned_partitions": assigned}
        ),
    ]


def _transactions(log: CoordinatorLog) -> None:
    log.append([commit("paid", "orders", 0, 30), commit("paid", "orders", 1, 31)], COMMITTED)
    log.append([commit("paid", "orders", 0, 40), commit("never", "parts", 0, 41, 4)], ABORTED)
    log.append([commit("paid", "orders", 2, 50)], TWICE)
    log.append([commit("paid", "orders", 1, 60)])  # later than the one that is about to count
    log.end("COMMIT", COMMITTED)
    log.end("ABORT", ABORTED)
    log.append([commit("paid", "parts", 1, 51)], TWICE)
    log.append([commit("paid", "orders", 0, 70), commit("pending", "orders", 0, 71)], OPEN)
    log.end("COMMIT", TWICE)
    log.append([commit("paid", "orders", 2, 80)], TWICE)
    log.end("ABORT", TWICE)
    log.append([commit("paid", "parts", 0, 90)], LATE)
    log.append([commit("paid", "parts", 0, None)])
    log.end("COMMIT", LATE)


def _id(
    name: str,
    producer_id: int,
    status: int,
    version: int,
    partitions: Mapping[str, list[int]] | None = None,
    unknown: list[Line] | None = None,
    **more: int,
) -> Row:
    value = {
        "producer_id": producer_id,
        "producer_epoch": 3,
        "transaction_timeout_ms": 10 * 60_000,
        "transaction_status": status,
        "transaction_partitions": [
            {"topic": topic, "partition_ids": ids, "unknown_tagged_fields": unknown}
            for topic, ids in (partitions or {}).items()
        ],
        "transaction_last_update_timestamp_ms": NOW,
        "transaction_start_timestamp_ms": NOW if status != EMPTY else -1,
        "unknown_tagged_fields": unknown or [],
        **more,
    }
    return Row(0, {"transactional_id": name}, version, value)
