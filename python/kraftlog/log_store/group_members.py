"""The members of groups: consumers of one process that share the partitions of topics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from kraftlog.log_store.transaction_state import TopicPartition


class Member(Protocol):
    """A consumer that has subscribed to topics."""

    group: str | None

    @property
    def subscription(self) -> tuple[str, ...]:
        """Its topics."""


class GroupMembers:
    """Which members a group has, and which partitions are theirs.

    Parameters
    ----------
    partitions_of : callable
        Returns how many partitions a topic has.
    """

    def __init__(self, partitions_of: Callable[[str], int]) -> None:
        self._partitions_of = partitions_of
        self._members: list[Member] = []
        self._generation = 0
        self._lock = threading.Lock()

    def join(self, member: Member) -> None:
        """Add a member."""
        with self._lock:
            self._members.append(member)
            self._generation += 1

    def leave(self, member: Member) -> None:
        """Remove a member."""
        with self._lock:
            self._members = [each for each in self._members if each is not member]
            self._generation += 1

    def assignment(self, member: Member, generation: int) -> tuple[int, list[TopicPartition] | None]:
        """Return the generation, and a member's partitions; None where nothing has changed since a generation.

        The partitions of a topic are shared among the members that subscribe to it, in the order in which they came,
        as Kafka's ``RangeAssignor`` does it. A member without a group has all of them.
        """
        with self._lock:
            if generation == self._generation:
                return generation, None
            found = [key for topic in member.subscription for key in self._share(member, topic)]
            return self._generation, found

    def _share(self, member: Member, topic: str) -> list[TopicPartition]:
        count = self._partitions_of(topic)
        sharing = [
            each
            for each in self._members
            if each is member or (each.group == member.group is not None and topic in each.subscription)
        ]
        at = next(place for place, each in enumerate(sharing) if each is member)
        each_has, more = divmod(count, len(sharing))
        start = at * each_has + min(at, more)
        return [(topic, number) for number in range(start, start + each_has + (at < more))]
