"""The types of groups, and of the records in ``__consumer_offsets`` that describe them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
GROUP_METADATA = "GroupMetadata"
PARTITION_METADATA = "ConsumerGroupPartitionMetadata"
STATE_PARTITION_METADATA = "ShareGroupStatePartitionMetadata"
TOPOLOGY = "StreamsGroupTopology"
TASKS = ["active_tasks", "standby_tasks", "warmup_tasks"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """The record types of a group of one of the newer types."""

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

    @property
    def types(self) -> tuple[str, ...]:
        """All record types."""
        return self.metadata, self.member, self.target, self.target_member, self.current_member


FAMILIES = (Family(CONSUMER, "Consumer"), Family(SHARE, "Share"), Family(STREAMS, "Streams"))
