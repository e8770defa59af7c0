"""The groups of a partition of ``__consumer_offsets``: the last record of each type and key.

A classic group is one record. Consumer, share and streams groups are several: of the group itself, of each member, of
the target assignment and of each member's current assignment. A group that changes its type leaves tombstones for
records of the old type, so each type is folded separately.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.coordinator.group_types import (
    FAMILIES,
    GROUP_METADATA,
    PARTITION_METADATA,
    STATE_PARTITION_METADATA,
    TOPOLOGY,
    Row,
)

_FIRST_OF_KAFKA_4 = 4  # version of OffsetCommitValue


class Groups:
    """The last records of groups.

    Parameters
    ----------
    records : Mapping of str to pyarrow.RecordBatch
        The last record of each key, by type: its fields and ``offset``.
    made : pyarrow.RecordBatch
        Groups with a commit after the last tombstone of the group's own record: ``group``, and the
        ``value_version`` of the last such commit.

    Attributes
    ----------
    types : tuple of str
        The types of records that describe groups.
    of_groups : tuple of str
        Types of records of groups themselves, whose tombstones remove a group.
    """

    of_groups = (GROUP_METADATA, *(family.metadata for family in FAMILIES))
    types = (
        *(GROUP_METADATA, PARTITION_METADATA, STATE_PARTITION_METADATA, TOPOLOGY),
        *(name for family in FAMILIES for name in family.types),
    )

    def __init__(self, records: Mapping[str, pa.RecordBatch], made: pa.RecordBatch) -> None:
        self._records = records
        self._made = made

    def simple_groups(self, with_offsets: Collection[str]) -> list[str]:
        """Return the groups that have commits but no record of the group itself.

        A coordinator of Kafka 4 keeps such a group when its last offset is deleted, and writes a tombstone of the group
        when it removes it. Coordinators before it remove the group with its last offset and write no such tombstone.
        The version of a commit distinguishes them: since 4.1 it is 4.

        Parameters
        ----------
        with_offsets : collection of str
            Groups with an offset that is committed or pending.
        """
        rows = self._made
        outlives = pc.greater_equal(rows.column("value_version"), _FIRST_OF_KAFKA_4)
        has_offsets = pc.is_in(rows.column("group"), value_set=pa.array(list(with_offsets), pa.string()))
        names: list[str] = rows.column("group").filter(pc.or_(outlives, has_offsets)).to_pylist()
        return names

    def rows(self, name: str) -> list[Row]:
        """Return the last records of a type, in the order of the log."""
        rows: list[Row] = self._records[name].to_pylist()
        return rows

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by their ids, as far as records of groups have both."""
        lists = [row["topics"] for row in self.rows(PARTITION_METADATA)]
        for row in self.rows(STATE_PARTITION_METADATA):
            lists += [row["deleting_topics"], row["initializing_topics"], row["initialized_topics"]]
        return {topic["topic_id"]: topic["topic_name"] for topics in lists for topic in topics}
