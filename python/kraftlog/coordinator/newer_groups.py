"""Consumer, share and streams groups: put together from the records of the group and of its members."""

from __future__ import annotations

from kraftlog.coordinator import group_states as states
from kraftlog.coordinator.group_types import CONSUMER, SHARE, STREAMS, TASKS, TOPOLOGY, Family, Row
from kraftlog.coordinator.groups import Groups
from kraftlog.coordinator.members import Names, assignment, by_member_id, member, tasks

_NO_METADATA: Row = {"offset": -1, "epoch": 0, "validated_topology_epoch": -1}
_NOTHING_YET: Row = {"member_epoch": 0, "state": None, "assigned_partitions": [], **{kind: [] for kind in TASKS}}
_NO_TARGET_EPOCH = 0


def newer_groups(groups: Groups, family: Family, names: Names) -> list[tuple[int, Row]]:
    """Return the groups of one type: the offset of each group's record, and its row.

    A group exists if it has a record of itself or of a member; other records may remain from a deleted group.
    """
    records = {record["group_id"]: record for record in groups.rows(family.metadata)}
    members: dict[str, list[Row]] = {name: [] for name in records}
    for record in groups.rows(family.member):
        members.setdefault(record["group_id"], []).append(record)
    target_epochs = {record["group_id"]: record["assignment_epoch"] for record in groups.rows(family.target)}
    targets = _of_members(groups, family.target_member)
    current = _of_members(groups, family.current_member)
    topologies = {record["group_id"]: record["epoch"] for record in groups.rows(TOPOLOGY)}
    numbered_rows = []
    for name, each in members.items():
        record = records.get(name, _NO_METADATA)
        target_epoch = target_epochs.get(name, _NO_TARGET_EPOCH)
        shown = [
            _member(family, one, current.get((name, one["member_id"])), targets.get((name, one["member_id"])), names)
            for one in each
        ]
        row = {
            "group": name,
            "group_type": family.group_type,
            "state": _state(family, record, target_epoch, shown, topologies.get(name)),
            "protocol_type": family.group_type,
            "protocol": _protocol(family, each),
            "leader": None,
            "generation_or_epoch": record["epoch"],
            "members": by_member_id(shown),
            "target_assignment_epoch": target_epoch,
        }
        numbered_rows.append((record["offset"], row))
    return numbered_rows


def _of_members(groups: Groups, name: str) -> dict[tuple[str, str], Row]:
    return {(record["group_id"], record["member_id"]): record for record in groups.rows(name)}


def _state(family: Family, record: Row, target_epoch: int, members: list[Row], topology_epoch: int | None) -> str:
    if family.group_type == SHARE:
        return states.classic_state(len(members))
    progress = [(each["member_epoch"], each["state"]) for each in members]
    if family.group_type == CONSUMER:
        return states.reconciled_state(record["epoch"], target_epoch, progress)
    validated = record["validated_topology_epoch"]
    return states.streams_state(record["epoch"], target_epoch, progress, topology_epoch, validated)


def _protocol(family: Family, members: list[Row]) -> str | None:
    if family.group_type == CONSUMER:
        return states.preferred_assignor(each["server_assignor"] for each in members)
    return states.DEFAULT_SHARE_ASSIGNOR if family.group_type == SHARE else None


def _member(family: Family, record: Row, current: Row | None, target: Row | None, names: Names) -> Row:
    has = current or _NOTHING_YET
    fields = {
        "member_id": record["member_id"],
        "instance_id": record.get("instance_id"),
        "client_id": record["client_id"],
        "client_host": record["client_host"],
        "rack_id": record["rack_id"],
        "member_epoch": has["member_epoch"],
        "state": states.member_state(has["state"], is_streams=family.group_type == STREAMS),
    }
    if family.group_type == STREAMS:
        return member(**fields, **tasks(has))
    return member(
        **fields,
        subscription=record["subscribed_topic_names"],
        subscribed_topic_regex=record.get("subscribed_topic_regex") or None,
        assignment=assignment(has["assigned_partitions"], names),
        target_assignment=assignment(target["topic_partitions"], names) if target else [],
    )
