"""The members of groups: consumers of one process that share the partitions of topics, by generations."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from kraftlog.log_store.coordinator_runtime import CoordinatorRuntime
from kraftlog.log_store.errors import IllegalGenerationError, UnknownMemberIdError
from kraftlog.log_store.transaction_state import NONE, TopicPartition

MAX_POLL_INTERVAL_MS = 300_000  # max.poll.interval.ms
_ALONE = "\0"  # prefix of the group name of a consumer without a group

Subscription = tuple[str, ...] | re.Pattern[str]


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """The committer of offsets, as Kafka's ``ConsumerGroupMetadata``.

    Attributes
    ----------
    group : str
    generation : int
        Generation of the group when the member got its partitions; -1 without a membership.
    member_id : str
        Empty without a membership.
    """

    group: str
    generation: int = NONE
    member_id: str = ""


@dataclass
class _Member:
    """A consumer that has subscribed.

    Attributes
    ----------
    polled_at : int
        Time of its last poll, in milliseconds.
    max_poll_interval_ms : int
        After this time without a poll another member may take its partitions.
    deleted : list of str
        Topics of its subscription that were deleted since its last poll.
    """

    subscription: Subscription
    polled_at: int
    max_poll_interval_ms: int
    deleted: list[str] = field(default_factory=list)

    def subscribes(self, topic: str) -> bool:
        """Whether it subscribes to a topic."""
        if isinstance(self.subscription, re.Pattern):
            return self.subscription.fullmatch(topic) is not None
        return topic in self.subscription


@dataclass
class _Group:
    """A group; each change of its members or their topics begins a generation."""

    members: dict[str, _Member] = field(default_factory=dict)  # in the order in which they joined
    generation: int = 0


class GroupMembers:
    """The members of groups, and their partitions; its methods are thread-safe.

    Parameters
    ----------
    runtime : CoordinatorRuntime
    """

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime
        self._dropped: deque[GroupMetadata] = deque()  # a finalizer may run while this thread holds the lock
        self._groups: dict[str, _Group] = {}
        self._numbers = count(1)
        self._lock = threading.Lock()

    def join(self, group: str | None, subscription: Subscription, max_poll_interval_ms: int) -> GroupMetadata:
        """Add a member; return it without a generation. Without a group it gets its own."""
        with self._locked():
            member_id = f"consumer-{next(self._numbers)}"
            name = _ALONE + member_id if group is None else group
            joined = self._groups.setdefault(name, _Group())
            self._remove_late(joined, self._runtime.now())
            joined.members[member_id] = _Member(subscription, self._runtime.now(), max_poll_interval_ms)
            joined.generation += 1
            return GroupMetadata(name, NONE, member_id)

    def leave(self, member: GroupMetadata) -> None:
        """Remove a member."""
        self._dropped.append(member)
        with self._locked():
            pass

    def dropped(self, member: GroupMetadata) -> None:
        """Note that a member was garbage-collected: it leaves at the next request. For finalizers; takes no lock."""
        self._dropped.append(member)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Remove dropped members, and hold the lock."""
        with self._lock:
            while self._dropped:
                self._remove(self._dropped[0])
                self._dropped.popleft()
            yield

    def _remove(self, member: GroupMetadata) -> None:
        of_group = self._groups.get(member.group)
        if of_group is None or of_group.members.pop(member.member_id, None) is None:
            return  # it has left; an exception interrupted its next step
        of_group.generation += 1
        if member.group.startswith(_ALONE):
            del self._groups[member.group]

    @staticmethod
    def _remove_late(group: _Group, now: int) -> None:
        """Remove members that have not polled for max.poll.interval.ms if another member can take their partitions."""
        late = [key for key, each in group.members.items() if now - each.polled_at > each.max_poll_interval_ms]
        for key in late:
            del group.members[key]
        group.generation += bool(late)

    def check(self, member: GroupMetadata, *, is_transactional: bool) -> None:
        """Raise when offsets must not be committed, as Kafka's coordinator does.

        A non-member may commit for a group without members, and in a transaction, where the epoch of the producer
        fences.

        Raises
        ------
        UnknownMemberIdError, IllegalGenerationError
        """
        with self._locked():
            group = self._groups.get(member.group) or _Group()
            if not member.member_id and member.generation < 0:
                if group.members and not is_transactional:
                    raise UnknownMemberIdError(
                        f"group {member.group!r} has {len(group.members)} members that share its partitions; only "
                        "members may commit offsets"
                    )
                return
            if member.member_id not in group.members:
                raise UnknownMemberIdError(f"group {member.group!r}: {member.member_id!r} is no longer a member")
            if member.generation != group.generation:
                raise IllegalGenerationError(
                    f"group {member.group!r}: generation {member.generation} of {member.member_id!r} is stale; "
                    f"{group.generation} has begun; its partitions may be another member's"
                )

    def topic_created(self, topic: str) -> None:
        """Begin a generation of the groups that subscribe to a topic."""
        with self._locked():
            self._touch(topic)

    def topic_deleted(self, topic: str) -> None:
        """Begin a generation of the groups that subscribe to a topic; members that named the topic learn of it."""
        with self._locked():
            for member in self._touch(topic):
                if not isinstance(member.subscription, re.Pattern):
                    member.deleted.append(topic)

    def deleted(self, member: GroupMetadata) -> list[str]:
        """Return the topics that a member named and that were deleted since its last poll."""
        with self._locked():
            own = self._groups[member.group].members[member.member_id]
            topics, own.deleted = own.deleted, []
            return topics

    def assignment(self, member: GroupMetadata) -> tuple[int, list[TopicPartition] | None]:
        """Return the generation, and a member's partitions in it; None if the member is already in that generation.

        The partitions of a topic are shared among the members that subscribe to it, in the order in which they joined,
        as by Kafka's ``RangeAssignor``.

        Raises
        ------
        UnknownMemberIdError
            When it has not polled for so long that another member has its partitions.
        """
        with self._locked():
            group = self._groups[member.group]
            own = group.members.get(member.member_id)
            if own is None:
                raise UnknownMemberIdError(f"group {member.group!r}: {member.member_id!r} is no longer a member")
            own.polled_at = self._runtime.now()
            self._remove_late(group, own.polled_at)
            if group.generation == member.generation:
                return group.generation, None
            topics = self._runtime.partition_counts()
            return group.generation, [
                (topic, number)
                for topic in sorted(filter(own.subscribes, topics))
                for number in _share(own, _subscribed(group, topic), topics[topic])
            ]

    def _touch(self, topic: str) -> list[_Member]:
        touched: list[_Member] = []
        for group in self._groups.values():
            members = _subscribed(group, topic)
            group.generation += bool(members)
            touched += members
        return touched


def _subscribed(group: _Group, topic: str) -> list[_Member]:
    return [member for member in group.members.values() if member.subscribes(topic)]


def _share(member: _Member, sharing: list[_Member], partitions: int) -> range:
    """Return a member's partitions of a topic."""
    at = next(place for place, each in enumerate(sharing) if each is member)
    each_has, more = divmod(partitions, len(sharing))
    start = at * each_has + min(at, more)
    return range(start, start + each_has + (at < more))
