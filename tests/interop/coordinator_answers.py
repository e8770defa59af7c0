"""What Admin says of groups and transactional ids, and kraftlog's tables of the same, in one form."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jvm import Line

import kraftlog
from kraftlog.tables.all_tables import TABLES

Described = tuple[str | int | None, ...]
"""A row of kafka-consumer-groups: the columns are those of ``_DESCRIBED``."""

CLASSIC, SHARE = "classic", "share"
_DESCRIBED = [
    *("group", "topic", "partition", "current_offset", "log_end_offset", "lag"),
    *("member_id", "client_host", "client_id"),
]
_MEMBER = ("member_id", "instance_id", "client_id", "client_host")


def admin_offsets(groups: Iterable[Line]) -> dict[str, Line]:
    """Return the committed offsets of each group: offset, leader epoch and metadata."""
    return {
        group["group"]: {f"{topic}-{partition}": rest for topic, partition, *rest in group["offsets"]}
        for group in groups
        if group.get("offsets")
    }


def table_offsets(folder: Path) -> dict[str, Line]:
    """Return those of the table ``offsets``."""
    found: dict[str, Line] = {}
    for row in rows(folder, "offsets"):
        if row["state"] == "committed":
            answer = [row["offset"], row["leader_epoch"], row["metadata"]]
            found.setdefault(row["group"], {})[f"{row['topic']}-{row['partition']}"] = answer
    return found


def admin_groups(groups: Iterable[Line]) -> dict[str, Line]:
    """Return types and states, and of groups that consumers make, their members as well."""
    found = {}
    for group in groups:
        name, kind = group["group"], group["type"].lower()
        found[name] = {"type": kind, "state": group["state"], "protocol_type": group["protocol_type"]}
        if kind == SHARE:
            continue
        found[name]["assignor"] = group["assignor"]
        found[name]["members"] = _in_order(_admin_member(member, kind) for member in group["members"])
        if kind != CLASSIC:
            found[name] |= {at: group[at] for at in ("group_epoch", "target_assignment_epoch")}
    return found


def table_groups(folder: Path) -> dict[str, Line]:
    """Return those of the table ``groups``."""
    found = {}
    for row in rows(folder, "groups"):
        name, kind = row["group"], row["group_type"]
        found[name] = {"type": kind, "state": row["state"], "protocol_type": row["protocol_type"]}
        if kind == SHARE:
            continue
        found[name]["assignor"] = row["protocol"]
        found[name]["members"] = _in_order(_table_member(member, kind) for member in row["members"])
        if kind != CLASSIC:
            found[name]["group_epoch"] = row["generation_or_epoch"]
            found[name]["target_assignment_epoch"] = row["target_assignment_epoch"]
    return found


def described(output: str) -> list[Described]:
    """Return the rows that kafka-consumer-groups describes, in order; None for its dash."""
    found = []
    for line in output.splitlines():
        words = line.split()
        if len(words) == len(_DESCRIBED) and words[0] != "GROUP":
            row = [None if word == "-" else word for word in words]
            found.append((*row[:2], *(None if word is None else int(word) for word in row[2:6]), *row[6:]))
    return sorted(found, key=str)


def lags(folder: Path) -> list[Described]:
    """Return the same of the table ``lag``."""
    stream = kraftlog.open(folder).lag(_DESCRIBED, strict=False)
    found = [tuple(row.values()) for row in stream.to_table().to_pylist()]
    assert not stream.faults
    return sorted(found, key=str)


def admin_transactional_ids(ids: Iterable[Line]) -> dict[str, Line]:
    """Return all that Admin says of transactional ids."""
    return {
        line["transactional_id"]: {name: value for name, value in line.items() if name != "transactional_id"}
        | {"partitions": sorted(line["partitions"])}
        for line in ids
    }


def table_transactional_ids(folder: Path) -> dict[str, Line]:
    """Return the same of the table ``transactional_ids``."""
    return {
        row["transactional_id"]: {
            "producer_id": row["producer_id"],
            "producer_epoch": row["producer_epoch"],
            "state": row["status"],
            "timeout_ms": row["timeout_ms"],
            # Admin tells the start of a transaction that goes on
            "start_timestamp_ms": row["start_timestamp_ms"] if row["start_timestamp_ms"] >= 0 else None,
            "partitions": sorted(
                [part["topic"], number] for part in row["partitions"] for number in part["partitions"]
            ),
        }
        for row in rows(folder, "transactional_ids")
    }


def rows(folder: Path, table: str) -> list[Line]:
    """Return a table of what is in a log directory, all of its columns; nothing may be wrong in it."""
    columns = TABLES[table].schema
    stream = kraftlog.open(folder).scan(table, [*columns.shown, *columns.on_request])
    found: list[Line] = stream.to_table().to_pylist()
    assert not stream.faults
    return found


def _admin_member(member: Line, kind: str) -> Line:
    found = {name: member[name] for name in _MEMBER} | {"assignment": sorted(member["assignment"])}
    if kind != CLASSIC:
        found |= {"member_epoch": member["member_epoch"], "target_assignment": sorted(member["target_assignment"])}
    return found


def _table_member(member: Line, kind: str) -> Line:
    found = {name: member[name] for name in _MEMBER} | {"assignment": _partitions(member["assignment"])}
    if kind != CLASSIC:
        found |= {"member_epoch": member["member_epoch"], "target_assignment": _partitions(member["target_assignment"])}
    return found


def _partitions(assignment: list[Line]) -> list[Any]:
    return sorted([item["topic"], partition] for item in assignment for partition in item["partitions"])


def _in_order(members: Iterable[Line]) -> list[Line]:
    return sorted(members, key=lambda member: str(member["member_id"]))
