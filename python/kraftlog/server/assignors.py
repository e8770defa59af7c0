"""Server-side assignors of consumer groups: which member gets which partitions (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

TopicIdPartition: TypeAlias = tuple[bytes, int]
Partitions: TypeAlias = frozenset[TopicIdPartition]
NO_PARTITIONS: Partitions = frozenset()


@dataclass(frozen=True)
class Subscriber:
    """A member, for an assignor.

    Attributes
    ----------
    instance_id : str or None
    topic_ids : frozenset of bytes
        The existing topics that it subscribes to.
    partitions : frozenset of (bytes, int)
        Those that it was assigned last.
    """

    instance_id: str | None
    topic_ids: frozenset[bytes]
    partitions: Partitions = NO_PARTITIONS


Subscribers: TypeAlias = Mapping[str, Subscriber]
Assignor: TypeAlias = Callable[[Subscribers, Mapping[bytes, int]], dict[str, Partitions]]


def uniform(members: Subscribers, partition_counts: Mapping[bytes, int]) -> dict[str, Partitions]:
    """Return partitions spread as evenly as subscriptions allow; as few as possible change their member.

    Parameters
    ----------
    members : mapping of str to Subscriber
        By member id.
    partition_counts : mapping of bytes to int
        The number of partitions of each topic, by topic id.

    Examples
    --------
    >>> members = {name: Subscriber(None, frozenset({b"t"})) for name in "ab"}
    >>> sorted(len(each) for each in uniform(members, {b"t": 3}).values())
    [1, 2]
    """
    subscribers = _subscribers(members)
    assigned = {
        member_id: {
            (topic_id, number)
            for topic_id, number in member.partitions
            if topic_id in member.topic_ids and number < partition_counts[topic_id]
        }
        for member_id, member in members.items()
    }

    def least_loaded(topic_id: bytes) -> str:
        return min(subscribers[topic_id], key=lambda member_id: (len(assigned[member_id]), member_id))

    taken = frozenset().union(*assigned.values())
    free = [key for topic_id in subscribers for key in _partitions(topic_id, partition_counts) if key not in taken]
    for key in sorted(free, key=lambda key: (len(subscribers[key[0]]), key)):  # the least choice first
        assigned[least_loaded(key[0])].add(key)
    is_balanced = False
    while not is_balanced:  # each move brings two loads closer together, so that it ends
        is_balanced = True
        for owner in sorted(assigned, key=lambda member_id: (-len(assigned[member_id]), member_id)):
            for key in sorted(assigned[owner]):
                other = least_loaded(key[0])
                if len(assigned[owner]) > len(assigned[other]) + 1:
                    assigned[owner].remove(key)
                    assigned[other].add(key)
                    is_balanced = False
    return {member_id: frozenset(keys) for member_id, keys in assigned.items()}


def range_of_each_topic(members: Subscribers, partition_counts: Mapping[bytes, int]) -> dict[str, Partitions]:
    """Return consecutive partitions of each topic for each of its members: topics with equal counts are co-partitioned.

    The parameters are those of ``uniform``. Static members come first, in the order of their instance ids.
    """
    assigned: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in members}
    for topic_id, of_topic in _subscribers(members).items():
        in_order = sorted(of_topic, key=lambda one: (members[one].instance_id is None, members[one].instance_id or one))
        keys = _partitions(topic_id, partition_counts)
        each_has, more = divmod(len(keys), len(in_order))
        start = 0
        for place, member_id in enumerate(in_order):
            end = start + each_has + (place < more)
            assigned[member_id].update(keys[start:end])
            start = end
    return {member_id: frozenset(keys) for member_id, keys in assigned.items()}


ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform, "range": range_of_each_topic}
"""The first is the default."""


def _subscribers(members: Subscribers) -> dict[bytes, list[str]]:
    """Return the members of each topic."""
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in sorted(members.items()):
        for topic_id in member.topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    return dict(sorted(subscribers.items()))


def _partitions(topic_id: bytes, partition_counts: Mapping[bytes, int]) -> list[TopicIdPartition]:
    return [(topic_id, number) for number in range(partition_counts[topic_id])]
