"""The groups of a partition of ``__consumer_offsets``: the last record of each type and key.

A classic group is one record. Consumer, share and streams groups are several: of the group itself, of each member, of
the target assignment and of what each member has now. A group that changes its type leaves tombstones for the records
of the old one, so each type is folded by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.last_by_key import LastByKey

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
GROUP_METADATA = "GroupMetadata"
PARTITION_METADATA = "ConsumerGroupPartitionMetadata"
STATE_PARTITION_METADATA = "ShareGroupStatePartitionMetadata"
TOPOLOGY = "StreamsGroupTopology"
TASKS = ["active_tasks", "standby_tasks", "warmup_tasks"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """The record types that a group of one of the newer types consists of."""

    group_type: str
    prefix: str

    @property
    def metadata(self) -> str:
        """The type of the record of the group itself."""
        return f"{self.prefix}GroupMetadata"

    @property
    def member(self) -> str:
        """The type of the record of a member: its identity and its subscription."""
        return f"{self.prefix}GroupMemberMetadata"

    @property
    def target(self) -> str:
        """The type of the record with the epoch of the target assignment."""
        return f"{self.prefix}GroupTargetAssignmentMetadata"

    @property
    def target_member(self) -> str:
        """The type of the record of a member's target assignment."""
        return f"{self.prefix}GroupTargetAssignmentMember"

    @property
    def current_member(self) -> str:
        """The type of the record of a member's current assignment."""
        return f"{self.prefix}GroupCurrentMemberAssignment"


FAMILIES = (Family(CONSUMER, "Consumer"), Family(SHARE, "Share"), Family(STREAMS, "Streams"))

_METADATA = {GROUP_METADATA: "group"} | {family.metadata: "group_id" for family in FAMILIES}  # the column of its id

_NO_VERSION, _FIRST_OF_KAFKA_4 = -1, 4  # versions of OffsetCommitValue

_GROUP, _MEMBER = ["group_id"], ["group_id", "member_id"]
_OF_MEMBER = {
    CONSUMER: [
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
    ],
    SHARE: ["rack_id", "client_id", "client_host", "subscribed_topic_names"],
    STREAMS: ["instance_id", "rack_id", "client_id", "client_host"],
}
_OF_TARGET_MEMBER = {CONSUMER: ["topic_partitions"], SHARE: ["topic_partitions"], STREAMS: TASKS}
_OF_CURRENT_MEMBER = {CONSUMER: ["assigned_partitions"], SHARE: ["assigned_partitions"], STREAMS: TASKS}
_OF_METADATA = {CONSUMER: [], SHARE: [], STREAMS: ["validated_topology_epoch"]}


def _folds() -> dict[str, LastByKey]:
    folds = {
        GROUP_METADATA: LastByKey(
            ["group"], ["offset", "protocol_type", "generation", "protocol", "leader", "members"]
        ),
        PARTITION_METADATA: LastByKey(_GROUP, ["topics"]),
        STATE_PARTITION_METADATA: LastByKey(_GROUP, ["initializing_topics", "initialized_topics", "deleting_topics"]),
        TOPOLOGY: LastByKey(_GROUP, ["epoch"]),
    }
    for family in FAMILIES:
        of = family.group_type
        folds[family.metadata] = LastByKey(_GROUP, ["offset", "epoch", *_OF_METADATA[of]])
        folds[family.member] = LastByKey(_MEMBER, _OF_MEMBER[of])
        folds[family.target] = LastByKey(_GROUP, ["assignment_epoch"])
        folds[family.target_member] = LastByKey(_MEMBER, _OF_TARGET_MEMBER[of])
        folds[family.current_member] = LastByKey(_MEMBER, ["member_epoch", "state", *_OF_CURRENT_MEMBER[of]])
    return folds


class _SimpleGroups(LastByKey):
    """The last commit of each group that has no later tombstone of the group's own record.

    Of a stretch of the log commits are added first.
    """

    def __init__(self) -> None:
        super().__init__(["group"], ["offset", "value_version"])

    def _remaining(self, table: pa.Table) -> pa.Table:
        return super()._remaining(table.sort_by("offset"))


class GroupFold:
    """What is left of the records of groups.

    Of a stretch of the log ``add_commits`` comes before ``add``.

    Attributes
    ----------
    types : tuple of str
        The types of records that describe groups; ``add`` takes no others.
    of_groups : tuple of str
        Those of groups themselves, whose tombstones remove one.
    """

    types = tuple(_folds())
    of_groups = tuple(_METADATA)

    def __init__(self) -> None:
        self._folds = _folds()
        self._simple = _SimpleGroups()

    def add_commits(self, rows: pa.RecordBatch | None) -> None:
        """Take the next records of the type OffsetCommit, those of transactions however they end."""
        if rows is not None:
            self._simple.add(rows.filter(pc.invert(rows.column("is_tombstone"))))

    def add(self, name: str, rows: pa.RecordBatch | None) -> None:
        """Take the next records of a type, in the order of the log: its fields, ``offset`` and ``is_tombstone``."""
        self._folds[name].add(rows)
        if rows is not None and name in _METADATA:
            gone = rows.filter(rows.column("is_tombstone"))
            columns = [gone.column(column) for column in (_METADATA[name], "offset", "is_tombstone")]
            versions = pa.repeat(pa.scalar(_NO_VERSION, pa.int32()), gone.num_rows)
            self._simple.add(
                pa.record_batch([*columns, versions], ["group", "offset", "is_tombstone", "value_version"])
            )

    def simple_groups(self, with_offsets: Collection[str]) -> list[str]:
        """Return the groups that commits have made, without a record of the group itself.

        A coordinator of Kafka 4 keeps such a group when its last offset is deleted, and writes a tombstone of the group
        when it removes it. Coordinators before it remove the group with its last offset and write no such tombstone.
        The version of a commit distinguishes them: since 4.1 it is 4.

        Parameters
        ----------
        with_offsets : collection of str
            Groups with an offset that is committed or pending.
        """
        rows = self._simple.rows()
        if rows is None:
            return []
        outlives = pc.greater_equal(rows.column("value_version"), _FIRST_OF_KAFKA_4)
        has_offsets = pc.is_in(rows.column("group"), value_set=pa.array(list(with_offsets), pa.string()))
        names: list[str] = rows.column("group").filter(pc.or_(outlives, has_offsets)).to_pylist()
        return names

    def rows(self, name: str) -> list[Row]:
        """Return what is left of a type, in the order of the log."""
        rows = self._folds[name].rows()
        found: list[Row] = [] if rows is None else rows.to_pylist()
        return found

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by their ids, as far as records of groups have both."""
        lists = [row["topics"] for row in self.rows(PARTITION_METADATA)]
        for row in self.rows(STATE_PARTITION_METADATA):
            lists += [row["deleting_topics"], row["initializing_topics"], row["initialized_topics"]]
        return {topic["topic_id"]: topic["topic_name"] for topics in lists for topic in topics}
