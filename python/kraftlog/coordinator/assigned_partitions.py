"""The partitions that members of groups consume, as Kafka's tools describe groups.

A member of a classic or consumer group has its assignment; a member of a streams group has the partitions of its active
tasks in the source topics of their subtopologies. A share group commits no offsets and is left out, as in
``kafka-consumer-groups``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kraftlog.coordinator.group_rows import group_rows
from kraftlog.coordinator.group_types import CLASSIC, CONSUMER, STREAMS, TOPOLOGY, Row
from kraftlog.coordinator.groups import Groups
from kraftlog.coordinator.members import Names

_Sources = dict[tuple[str, str], list[str]]


class AssignedPartition(NamedTuple):
    """A partition of a member.

    ``topic`` is None if only ``topic_id`` is known; ``member`` is a member as in the table ``groups``.
    """

    group: str
    topic: str | None
    topic_id: str | None
    partition: int
    member: Row


def assigned_partitions(groups: Groups, names: Names) -> Iterator[AssignedPartition]:
    """Return the partitions of each member of each group.

    Parameters
    ----------
    groups : Groups
    names : mapping
        The names of topics by their ids, in addition to those in records of groups.
    """
    sources = _source_topics(groups)
    for name, row in group_rows(groups, names).items():
        for member in row["members"]:
            if row["group_type"] in (CLASSIC, CONSUMER):
                assigned = member["assignment"] or []
            elif row["group_type"] == STREAMS:
                assigned = _of_tasks(name, member["active_tasks"], sources)
            else:
                continue
            for each in assigned:
                for partition in each["partitions"]:
                    yield AssignedPartition(name, each["topic"], each["topic_id"], partition, member)


def _source_topics(groups: Groups) -> _Sources:
    """Return the topics that each subtopology of each streams group reads, internal ones too."""
    return {
        (record["group_id"], each["subtopology_id"]): [
            *each["source_topics"],
            *(topic["name"] for topic in each["repartition_source_topics"]),
        ]
        for record in groups.rows(TOPOLOGY)
        for each in record["subtopologies"]
    }


def _of_tasks(group: str, tasks: list[Row], sources: _Sources) -> list[Row]:
    return [
        {"topic": topic, "topic_id": None, "partitions": task["partitions"]}
        for task in tasks
        for topic in sources.get((group, task["subtopology_id"]), [])
    ]
