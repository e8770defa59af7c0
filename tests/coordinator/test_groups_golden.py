"""The table ``groups`` against what Kafka's Admin and serdes say of the same logs."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from kafka_records import add_lines
from kafka_rows import readable

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.coordinator.group_rows import group_columns
from kraftlog.tables.coordinator_tables import group_records, groups_of

_PARTITION = "__consumer_offsets-1"
_EVERY_COLUMN = [*schema.GROUPS.shown, *schema.GROUPS.on_request]


def _groups(scenario: str, end_offset: int | None = None) -> dict[str, dict[str, Any]]:
    folder = GOLDEN / scenario / "log"
    rows = (
        kraftlog.open(folder).groups(_EVERY_COLUMN, strict=False, faults=[])
        if end_offset is None
        else kraftlog.open(folder / _PARTITION).groups(_EVERY_COLUMN, at=end_offset - 1, strict=False, faults=[])
    )
    return {row["group"]: row for row in rows.to_pylist()}


def _state(scenario: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((GOLDEN / scenario / "expected" / "broker_state.json").read_text())
    return answers


def _partitions(assignment: list[dict[str, Any]]) -> list[str]:
    return sorted(f"{item['topic']}-{partition}" for item in assignment for partition in item["partitions"])


def test_the_list_of_groups_is_that_of_admin() -> None:
    found = [
        {
            "group_id": row["group"],
            "type": row["group_type"].capitalize(),
            "protocol": row["protocol_type"],
            "state": row["state"],
        }
        for _, row in sorted(_groups("groups").items())
    ]
    assert found == _state("groups")["list_groups"]


def test_groups_are_as_admin_describes_them() -> None:
    groups = _groups("groups")
    for name, answer in _state("groups")["describe"].items():
        if "error" in answer:
            assert name not in groups
            continue
        row = groups[name]
        is_classic = row["group_type"] == "classic"
        found = {
            "type": row["group_type"].capitalize(),
            "state": row["state"],
            "assignor": row["protocol"],
            "members": [
                {
                    "member_id": member["member_id"],
                    "instance_id": member["instance_id"],
                    "client_id": member["client_id"],
                    "client_host": member["client_host"],
                    "assignment": _partitions(member["assignment"]),
                }
                | ({} if is_classic else {"member_epoch": member["member_epoch"]})
                for member in row["members"]
            ],
        }
        if not is_classic:
            found |= {
                "group_epoch": row["generation_or_epoch"],
                "target_assignment_epoch": row["target_assignment_epoch"],
            }
        answer["members"].sort(key=lambda member: member["member_id"])
        assert found == answer


def test_a_share_group_is_as_admin_describes_it() -> None:
    answer = _state("groups")["share_group"]
    row = _groups("groups")[answer["group_id"]]
    assert row["group_type"] == "share"
    assert {
        "state": row["state"],
        "group_epoch": row["generation_or_epoch"],
        "target_assignment_epoch": row["target_assignment_epoch"],
        "members": [
            {
                "member_id": member["member_id"],
                "member_epoch": member["member_epoch"],
                "client_id": member["client_id"],
                "assignment": _partitions(member["assignment"]),
            }
            for member in row["members"]
        ],
    } == {name: answer[name] for name in ("state", "group_epoch", "target_assignment_epoch", "members")}


def test_a_deleted_share_group_is_gone_and_one_without_members_is_empty() -> None:
    groups = _groups("share_state")
    assert _state("share_state")["deleted"] not in groups
    assert {name: (row["state"], row["generation_or_epoch"], row["members"]) for name, row in groups.items()} == {
        "sh-share": ("Empty", 4, [])
    }


@pytest.mark.parametrize(
    ("end_offset", "state"),
    [(2, "Assigning"), (4, "Reconciling"), (5, "Stable"), (7, "Assigning"), (12, "Reconciling"), (15, "Stable")],
)
def test_states_of_a_consumer_group_on_the_way(end_offset: int, state: str) -> None:
    assert _groups("groups", end_offset)["grp-modern"]["state"] == state


def test_a_migrated_group_is_of_its_new_type() -> None:
    before, after = _groups("groups", 44), _groups("groups", 51)
    assert before["grp-migrated"]["group_type"] == "classic"
    assert before["grp-migrated"]["protocol"] == "range"
    assert after["grp-migrated"]["group_type"] == "consumer"
    assert [member["member_id"] for member in after["grp-migrated"]["members"]] == [
        member["member_id"] for member in before["grp-migrated"]["members"]
    ]


def test_members_subscriptions_and_racks() -> None:
    groups = _groups("groups")
    members = {member["instance_id"]: member for member in groups["grp-modern"]["members"]}
    assert members["inst-modern"]["rack_id"] == "rack-1"
    assert members["inst-modern"]["subscription"] == ["grp-a", "grp-b"]
    assert groups["grp-classic"]["leader"] == groups["grp-classic"]["members"][0]["member_id"]


def test_bytes_that_are_of_no_consumer_stay_bytes() -> None:
    groups = _groups("coordinator_future")
    bad, none = groups["g-bad-4"]["members"]
    assert (bad["subscription"], bad["raw_subscription"]) == (None, bytes([1, 2, 3]))
    assert (bad["assignment"], bad["raw_assignment"]) == (None, bytes([255, 0, 1]))
    assert (none["subscription"], none["raw_subscription"]) == (None, b"")
    assert (none["assignment"], none["raw_assignment"]) == ([], None)
    (connect,) = groups["g-connect-4"]["members"]
    assert connect["raw_subscription"] == b"opaque connect metadata"
    assert connect["raw_assignment"] == b"opaque"
    assert groups["g-connect-4"]["protocol_type"] == "connect"


@pytest.mark.parametrize("version", range(5))
def test_classic_groups_of_every_version(version: int) -> None:
    groups = _groups("coordinator_future")
    lines = readable(GOLDEN / "coordinator_future", "consumer_offsets")
    answers = {line["key"]["data"].get("group"): line for line in lines if line["key"]["name"] == "GroupMetadataKey"}
    for name in (f"g-meta-{version}", f"g-empty-{version}"):
        if answers[name]["value"] is None:
            assert name not in groups
            continue
        row, value = groups[name], answers[name]["value"]["data"]
        assert row["generation_or_epoch"] == value["generation"]
        assert row["protocol"] == (value["protocol"] or "")
        assert row["leader"] == value["leader"]
        assert row["state"] == ("Stable" if value["members"] else "Empty")
        assert [
            (
                member["member_id"],
                member["instance_id"],
                member["client_id"],
                member["subscription"],
                _partitions(member["assignment"]),
            )
            for member in row["members"]
        ] == [
            (
                member["memberId"],
                member.get("groupInstanceId"),
                member["clientId"],
                answer["subscription"]["topics"],
                sorted(answer["assignment"]["partitions"]),
            )
            for member, answer in zip(value["members"], answers[name]["members_as_consumer_protocol"], strict=True)
        ]


def test_a_topic_whose_name_is_in_no_record_keeps_its_id() -> None:
    lines = readable(GOLDEN / "groups", "consumer_offsets", 1)
    last = group_records()
    add_lines(
        last,
        [line for line in lines if "key" in line and line["key"]["name"].startswith("ConsumerGroup")],
        "consumer_offsets",
    )
    _, groups = groups_of(last)
    table = group_columns(groups, [], {}, schema.GROUPS.select(["group", "members"]))
    assert table is not None
    assigned = table.to_pylist()[1]["members"][0]["assignment"]
    assert [(item["topic"], item["topic_id"]) for item in assigned] == [
        (None, "mtONaL0nRsaoy3uhAGIrgw"),
        (None, "_2iIXhm1TRqhGLC39s49pA"),
    ]


def test_every_column_has_the_type_of_the_table() -> None:
    arrow_schema = schema.GROUPS.select(_EVERY_COLUMN)
    table = group_columns(groups_of(group_records())[1], ["g"], {}, arrow_schema)
    assert table is not None
    assert table.schema == arrow_schema
    assert table.num_rows == 1


def test_without_records_there_are_no_groups() -> None:
    assert group_columns(groups_of(group_records())[1], [], {}, pa.schema([])) is None
