"""Records of ``__consumer_offsets`` about consumer groups of the newer protocol, and groups from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kraftlog.coordinator.group_types import FAMILIES, PARTITION_METADATA
from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.server.assignors import NO_PARTITIONS, Partitions
from kraftlog.server.consumer_group import (
    ConsumerGroup,
    CurrentAssignment,
    MemberState,
    SubscribedTopic,
    Subscription,
    Topics,
)
from kraftlog.server.group_records import record_key, record_value

_FAMILY = FAMILIES[0]
_GROUP, _MEMBER, _TARGET_EPOCH = _FAMILY.metadata, _FAMILY.member, _FAMILY.target
_TARGET, _CURRENT = _FAMILY.target_member, _FAMILY.current_member
TYPES = frozenset({*_FAMILY.types, PARTITION_METADATA})
"""Names of the types of records about such groups."""

_VERSION = 0
_WRITTEN = (_MEMBER, PARTITION_METADATA, _GROUP, _TARGET, _TARGET_EPOCH, _CURRENT)
_REMOVED = (_CURRENT, _TARGET, _MEMBER, _TARGET_EPOCH, PARTITION_METADATA, _GROUP)
"""Orders in which Kafka can read records: a member, for example, is removed after its assignments."""


class RecordOf(NamedTuple):
    """What a record is about: its type, and the member; empty for the group itself."""

    name: str
    member_id: str = ""


Facts = Mapping[RecordOf, Any]
"""The state of a group, divided into its records."""


def facts(group: ConsumerGroup) -> Facts:
    """Return the state of a group; none of a group that never had members."""
    if not group.epoch:
        return {}
    return {
        RecordOf(_GROUP): group.epoch,
        RecordOf(PARTITION_METADATA): dict(group.topics),
        RecordOf(_TARGET_EPOCH): group.assignment_epoch,
        **{RecordOf(_MEMBER, key): one for key, one in group.subscriptions.items()},
        **{RecordOf(_TARGET, key): one for key, one in group.targets.items()},
        **{RecordOf(_CURRENT, key): one for key, one in group.current.items()},
    }


def changes(group_id: str, before: Facts, after: Facts) -> list[KeyAndValue]:
    """Return the records that lead from one state of a group to another."""
    removed = [one for one in before if one not in after]
    written = [one for one, fact in after.items() if one not in before or before[one] != fact]
    return [
        *(KeyAndValue(_key(group_id, one), None) for one in sorted(removed, key=lambda one: _REMOVED.index(one.name))),
        *(
            KeyAndValue(_key(group_id, one), record_value(one.name, _VERSION, _FIELDS[one.name](after[one])))
            for one in sorted(written, key=lambda one: _WRITTEN.index(one.name))
        ),
    ]


def _key(group_id: str, one: RecordOf) -> bytes:
    fields = {"member_id": one.member_id} if one.name in (_MEMBER, _TARGET, _CURRENT) else {}
    return record_key(one.name, group_id=group_id, **fields)


def by_topic(partitions: Partitions) -> list[dict[str, Any]]:
    """Return partitions as messages have them: topic ids, with sorted partitions."""
    numbers: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        numbers.setdefault(topic_id, []).append(number)
    return [{"topic_id": topic_id, "partitions": some} for topic_id, some in numbers.items()]


def partitions_of(topics: Iterable[Mapping[str, Any]]) -> Partitions:
    """Return what ``by_topic`` was made of."""
    return frozenset((bytes(one["topic_id"]), number) for one in topics for number in one["partitions"])


def _subscription_fields(one: Subscription) -> dict[str, Any]:
    return {
        "instance_id": one.instance_id,
        "rack_id": one.rack_id,
        "client_id": one.client_id,
        "client_host": one.client_host,
        "subscribed_topic_names": sorted(one.subscribed_topic_names),
        "subscribed_topic_regex": one.subscribed_topic_regex or "",
        "rebalance_timeout_ms": one.rebalance_timeout_ms,
        "server_assignor": one.server_assignor,
    }


def _current_fields(one: CurrentAssignment) -> dict[str, Any]:
    return {
        "member_epoch": one.member_epoch,
        "previous_member_epoch": one.previous_member_epoch,
        "state": one.state,
        "assigned_partitions": _without_epochs(one.assigned),
        "partitions_pending_revocation": _without_epochs(one.revoking),
    }


def _without_epochs(partitions: Partitions) -> list[dict[str, Any]]:
    """Return partitions whose assignment epochs are unknown: without null, Kafka expects one for each (KIP-1251)."""
    return [one | {"assignment_epochs": None} for one in by_topic(partitions)]


def _topics_fields(topics: Topics) -> dict[str, Any]:
    return {
        "topics": [
            {"topic_id": one.topic_id, "topic_name": name, "num_partitions": one.partitions_count}
            for name, one in topics.items()
        ]
    }


_FIELDS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    _GROUP: lambda epoch: {"epoch": epoch},
    PARTITION_METADATA: _topics_fields,
    _TARGET_EPOCH: lambda epoch: {"assignment_epoch": epoch},
    _MEMBER: _subscription_fields,
    _TARGET: lambda partitions: {"topic_partitions": by_topic(partitions)},
    _CURRENT: _current_fields,
}


class RestoredGroups:
    """Groups that are put together from their records, in any order.

    Attributes
    ----------
    groups : dict of str to ConsumerGroup
    """

    def __init__(self) -> None:
        self.groups: dict[str, ConsumerGroup] = {}

    def take(self, name: str, key: Mapping[str, Any], value: Mapping[str, Any]) -> None:
        """Take a record of one of ``TYPES``."""
        group = self.groups.setdefault(key["group_id"], ConsumerGroup(key["group_id"]))
        member_id = key.get("member_id", "")
        if name == _GROUP:
            group.epoch = value["epoch"]
        elif name == _TARGET_EPOCH:
            group.assignment_epoch = value["assignment_epoch"]
        elif name == PARTITION_METADATA:
            group.topics = {
                one["topic_name"]: SubscribedTopic(one["topic_id"], one["num_partitions"]) for one in value["topics"]
            }
        elif name == _TARGET:
            group.targets[member_id] = partitions_of(value["topic_partitions"])
        elif name == _CURRENT:
            group.current[member_id] = CurrentAssignment(
                value["member_epoch"],
                value["previous_member_epoch"],
                MemberState(value["state"]),
                partitions_of(value["assigned_partitions"]),
                partitions_of(value["partitions_pending_revocation"]),
            )
        else:
            group.subscriptions[member_id] = Subscription(
                value["instance_id"],
                value["rack_id"],
                value["client_id"],
                value["client_host"],
                frozenset(value["subscribed_topic_names"]),
                value["subscribed_topic_regex"] or None,
                value["rebalance_timeout_ms"],
                value["server_assignor"],
            )

    def finish(self) -> dict[str, ConsumerGroup]:
        """Return the groups: a member is one that has a record of itself; its assignments may have none yet."""
        for group in self.groups.values():
            members = group.subscriptions.keys()
            group.current = {key: group.current.get(key, CurrentAssignment()) for key in members}
            group.targets = {key: group.targets.get(key, NO_PARTITIONS) for key in members}
        return {group_id: group for group_id, group in self.groups.items() if group.epoch or group.subscriptions}
