"""The table ``offsets`` against what Kafka's Admin and serdes say of the same logs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka_records import add_lines
from kafka_rows import partitions, readable

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.coordinator.offset_columns import offset_columns, topic_names
from kraftlog.tables.coordinator_tables import OFFSET_COMMIT, commit_records

_NOT_KAFKAS = GOLDEN / "coordinator_future"


def _table(scenario: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        kraftlog.open(GOLDEN / scenario / "log").offsets(columns, strict=False, faults=[]).to_pylist()
    )
    return rows


def _state(scenario: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((GOLDEN / scenario / "expected" / "broker_state.json").read_text())
    return answers


def test_a_transaction_that_is_open_is_pending_beside_what_is_committed() -> None:
    rows = [row for row in _table("groups", None) if row["group"] == "grp-txgroup"]
    assert [(row["topic"], row["partition"], row["offset"], row["state"]) for row in rows] == [
        ("grp-a", 0, 10, "committed"),
        ("grp-a", 0, 777, "pending"),
        ("grp-a", 1, 11, "committed"),
        ("grp-b", 0, 5, "committed"),
        ("grp-b", 0, 778, "pending"),
    ]


@pytest.mark.parametrize("scenario", ["transactions", "transactions_tv0"])
def test_what_is_pending_is_what_require_stable_leaves_out(scenario: str) -> None:
    stable = _state(scenario)["group_offsets_require_stable"]["tx-group"]
    rows = _table(scenario)
    pending = {f"{row['topic']}-{row['partition']}" for row in rows if row["state"] == "pending"}
    committed = {f"{row['topic']}-{row['partition']}" for row in rows if row["state"] == "committed"}
    assert pending
    for partition in committed:
        assert (f"{partition}=OffsetAndMetadata" in stable) == (partition not in pending)


def test_pending_commits_name_their_producer_and_record() -> None:
    rows = _table("groups", ["offset", "state", "producer_id", "record_offset"])
    pending = [row for row in rows if row["state"] == "pending"]
    assert [(row["offset"], row["producer_id"], row["record_offset"]) for row in pending] == [
        (777, 2, 89),
        (778, 2, 90),
    ]
    assert all(row["producer_id"] is None for row in rows if row["state"] == "committed")


def test_values_of_every_version_and_what_none_is() -> None:
    columns = [
        "partition",
        "leader_epoch",
        "expire_timestamp",
        "expire_timestamp_ms",
        "commit_timestamp_ms",
        "topic_id",
    ]
    rows = {row["partition"]: row for row in _table("coordinator_future", columns)}
    expected = {
        line["key"]["data"]["partition"]: line["value"]["data"]
        for line in readable(_NOT_KAFKAS, "consumer_offsets")
        if line["key"]["name"] in ("OffsetCommitKey", "LegacyOffsetCommitKey") and line["value"]
    }
    assert rows.keys() == expected.keys()
    for partition, value in expected.items():
        row = rows[partition]
        assert row["leader_epoch"] == value.get("leaderEpoch")
        assert row["topic_id"] == value.get("topicId")
        assert row["commit_timestamp_ms"] == value["commitTimestamp"]
        assert row["expire_timestamp_ms"] == value.get("expireTimestamp", -1)
        assert (row["expire_timestamp"] is None) == ("expireTimestamp" not in value)


def test_commits_tell_the_names_of_topics() -> None:
    names: dict[str, str] = {}
    for partition in partitions(GOLDEN / "groups", "consumer_offsets"):
        last = commit_records()
        add_lines(last, readable(GOLDEN / "groups", "consumer_offsets", partition), "consumer_offsets")
        names |= topic_names(last.typed(OFFSET_COMMIT))
    assert names == {"mtONaL0nRsaoy3uhAGIrgw": "grp-a", "_2iIXhm1TRqhGLC39s49pA": "grp-b"}


def test_every_column_of_the_table_can_be_asked_for() -> None:
    every = [*schema.OFFSETS.shown, *schema.OFFSETS.on_request]
    table = kraftlog.open(GOLDEN / "groups" / "log").offsets(every)
    assert table.schema == schema.OFFSETS.select(every)
    assert table.num_rows


def test_without_commits_there_are_no_rows() -> None:
    assert offset_columns(commit_records().typed(OFFSET_COMMIT), schema.OFFSETS.select()) is None
