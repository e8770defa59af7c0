"""Classic groups: one record each, in which subscriptions and assignments of members are bytes of another protocol."""

from __future__ import annotations

from collections.abc import Mapping

from kraftlog.coordinator.consumer_protocol import ASSIGNMENT, SUBSCRIPTION, read_blobs
from kraftlog.coordinator.group_states import classic_state
from kraftlog.coordinator.group_types import CLASSIC, GROUP_METADATA, Row
from kraftlog.coordinator.groups import Groups
from kraftlog.coordinator.members import by_member_id, member

CONSUMER_PROTOCOL_TYPE = "consumer"
NO_PROTOCOL = ""

_Blobs = Mapping[tuple[str, bytes], Row | None]
_NOT_ASSIGNED: Row = {"assigned_partitions": []}


def classic_groups(groups: Groups) -> list[tuple[int, Row]]:
    """Return the existing classic groups: the offset of each group's record, and its row."""
    records = groups.rows(GROUP_METADATA)
    blobs = _decoded([record for record in records if record["protocol_type"] == CONSUMER_PROTOCOL_TYPE])
    return [(record["offset"], _row(record, blobs)) for record in records]


def simple_group(name: str) -> Row:
    """Return a group that only has commits and never had members."""
    record = {"group": name, "protocol_type": NO_PROTOCOL, "protocol": None, "leader": None, "generation": 0}
    return _row(record | {"members": []}, {})


def _decoded(records: list[Row]) -> _Blobs:
    members = [each for record in records for each in record["members"]]
    blobs: dict[tuple[str, bytes], Row | None] = {}
    for name, field in ((SUBSCRIPTION, "subscription"), (ASSIGNMENT, "assignment")):
        distinct = list(dict.fromkeys(each[field] for each in members))
        blobs.update(((name, blob), read) for blob, read in zip(distinct, read_blobs(name, distinct), strict=True))
    return blobs | {(ASSIGNMENT, b""): _NOT_ASSIGNED}


def _row(record: Row, blobs: _Blobs) -> Row:
    protocol_blobs = blobs if record["protocol_type"] == CONSUMER_PROTOCOL_TYPE else {}
    return {
        "group": record["group"],
        "group_type": CLASSIC,
        "state": classic_state(len(record["members"])),
        "protocol_type": record["protocol_type"],
        "protocol": record["protocol"] or NO_PROTOCOL,
        "leader": record["leader"],
        "generation_or_epoch": record["generation"],
        "members": by_member_id(_member(each, protocol_blobs) for each in record["members"]),
        "target_assignment_epoch": None,
    }


def _member(record: Row, blobs: _Blobs) -> Row:
    subscription = blobs.get((SUBSCRIPTION, record["subscription"]))
    assignment = blobs.get((ASSIGNMENT, record["assignment"]))
    return member(
        member_id=record["member_id"],
        instance_id=record["group_instance_id"],
        client_id=record["client_id"],
        client_host=record["client_host"],
        rack_id=subscription["rack_id"] if subscription else None,
        subscription=subscription["topics"] if subscription else None,
        assignment=_assigned(assignment) if assignment else None,
        raw_subscription=None if subscription else record["subscription"],
        raw_assignment=None if assignment else record["assignment"],
    )


def _assigned(assignment: Row) -> list[Row]:
    return [
        {"topic": item["topic"], "topic_id": None, "partitions": item["partitions"]}
        for item in assignment["assigned_partitions"]
    ]
