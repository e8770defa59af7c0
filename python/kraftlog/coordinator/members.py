"""The members of a group, in the form of the table ``groups``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kraftlog import schema
from kraftlog.coordinator.group_types import TASKS, Row

Names = Mapping[str, str]
"""The names of topics by their ids."""

_FIELDS = tuple(field.name for field in schema.GROUPS.shown["members"].value_type)


def member(**fields: Any) -> Row:
    """Return a member; fields that are unknown, or do not exist for its type of group, are null."""
    return dict.fromkeys(_FIELDS) | fields


def by_member_id(members: Iterable[Row]) -> list[Row]:
    """Return members in the order of their ids."""
    return sorted(members, key=lambda each: str(each["member_id"]))


def assignment(topic_partitions: Iterable[Row], names: Names) -> list[Row]:
    """Return an assignment by topic id, with the known names of topics."""
    return [
        {"topic": names.get(item["topic_id"]), "topic_id": item["topic_id"], "partitions": item["partitions"]}
        for item in topic_partitions
    ]


def tasks(record: Row) -> Row:
    """Return the tasks of each kind of a member of a streams group."""
    return {
        kind: [{"subtopology_id": task["subtopology_id"], "partitions": task["partitions"]} for task in record[kind]]
        for kind in TASKS
    }
