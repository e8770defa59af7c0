"""Requests of consumer groups of the newer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.assignors import ASSIGNORS, Partitions
from kraftlog.server.consumer_group import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    UNCHANGED,
    ConsumerGroup,
    CurrentAssignment,
    Heartbeat,
    SubscribedTopic,
)
from kraftlog.server.consumer_group_records import by_topic, partitions_of
from kraftlog.server.group_error import GroupError
from kraftlog.server.groups import Groups
from kraftlog.server.readable_log import ReadableLog
from kraftlog.server.server import Handler

CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
HEARTBEAT_INTERVAL_MS = 500  # below Kafka's least interval, so that tests need not wait for a rebalance
_NAMED_BY_MEMBERS = 1  # first version in which members choose their ids (KIP-1082)
_MOST_MEMBERS = 1_000
_NEWER_PROTOCOL = 1  # type of a member


class ConsumerGroupRequests:
    """Answers the requests of consumer groups of the newer protocol.

    Parameters
    ----------
    log : ReadableLog
        The topics.
    groups : Groups
    """

    def __init__(self, log: ReadableLog, groups: Groups) -> None:
        self._log = log
        self._groups = groups

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {CONSUMER_GROUP_HEARTBEAT: self._heartbeat, CONSUMER_GROUP_DESCRIBE: self._describe}

    async def _heartbeat(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        try:
            _check(values, request.version)
            leaves = values["member_epoch"] in (LEAVING, LEAVING_FOR_A_WHILE)
            fields = self._left(values) if leaves else self._beaten(request)
        except GroupError as error:
            return {"error_code": error.code, "error_message": str(error)}
        return fields | {"error_code": await self._groups.written(values["group_id"])}

    def _left(self, values: Mapping[str, Any]) -> dict[str, Any]:
        member_id, member_epoch = values["member_id"], values["member_epoch"]
        group = self._groups.consumer(values["group_id"])
        group.leave(member_id, values["instance_id"], member_epoch)
        if member_epoch == LEAVING:
            self._groups.end_session(group.group_id, member_id)
        else:
            self._groups.watch_revocation(group, member_id, is_changed=True)
        self._groups.consumer_changed(group)
        return {"member_id": member_id, "member_epoch": member_epoch}

    def _beaten(self, request: Request) -> dict[str, Any]:
        values = request.values
        group_id, names = values["group_id"], values["subscribed_topic_names"]
        joins = values["member_epoch"] == JOINING
        group = self._groups.consumer_to_join(group_id) if joins else self._groups.consumer(group_id)
        beat = Heartbeat(
            values["member_id"] or str(uuid4()),
            values["member_epoch"],
            values["instance_id"],
            values["rack_id"],
            values["rebalance_timeout_ms"],
            None if names is None else frozenset(names),
            values["subscribed_topic_regex"],
            values["server_assignor"],
            None if values["topic_partitions"] is None else partitions_of(values["topic_partitions"]),
            request.client_id or "",
            request.client_host,
        )
        if len(group.subscriptions) >= _MOST_MEMBERS and beat.member_id not in group.subscriptions:
            raise GroupError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                message=f"The consumer group has reached its maximum capacity of {_MOST_MEMBERS} members.",
            )
        before = dict(group.current)
        topics = {
            name: SubscribedTopic(topic.topic_id, len(topic.partitions)) for name, topic in self._log.topics.items()
        }
        current, is_told = group.heartbeat(beat, topics)
        for replaced in before.keys() - group.current.keys():
            self._groups.end_session(group_id, replaced)
        self._groups.consumer_changed(group)
        self._groups.begin_session(group, beat.member_id)
        self._groups.watch_revocation(group, beat.member_id, is_changed=current != before.get(beat.member_id))
        return {
            "member_id": beat.member_id,
            "member_epoch": current.member_epoch,
            "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
            "assignment": {"topic_partitions": by_topic(current.assigned)} if is_told else None,
        }

    async def _describe(self, request: Request) -> Mapping[str, Any]:
        return {"groups": [self._described(group_id) for group_id in request.values["group_ids"]]}

    def _described(self, group_id: str) -> dict[str, Any]:
        try:
            group = self._groups.consumer(group_id)
        except GroupError as error:
            return {"group_id": group_id, "error_code": error.code, "error_message": str(error)}
        return {
            "group_id": group_id,
            "group_state": group.state,
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignor_name": group.assignor,
            "members": [self._member(group, member_id, one) for member_id, one in group.current.items()],
        }

    def _member(self, group: ConsumerGroup, member_id: str, current: CurrentAssignment) -> dict[str, Any]:
        subscription = group.subscriptions[member_id]
        return {
            "member_id": member_id,
            "instance_id": subscription.instance_id,
            "rack_id": subscription.rack_id,
            "member_epoch": current.member_epoch,
            "client_id": subscription.client_id,
            "client_host": subscription.client_host,
            "subscribed_topic_names": sorted(subscription.subscribed_topic_names),
            "subscribed_topic_regex": subscription.subscribed_topic_regex,
            "assignment": self._named(current.assigned),
            "target_assignment": self._named(group.targets[member_id]),
            "member_type": _NEWER_PROTOCOL,
        }

    def _named(self, partitions: Partitions) -> dict[str, Any]:
        topics = ((one, self._log.topic("", one["topic_id"])) for one in by_topic(partitions))
        return {
            "topic_partitions": [one | {"topic_name": topic.name} for one, topic in topics if topic is not None],
        }


def _check(values: Mapping[str, Any], version: int) -> None:
    """Check a heartbeat by itself, as Kafka does.

    Raises
    ------
    GroupError
    """
    epoch = values["member_epoch"]
    needs_member_id = version >= _NAMED_BY_MEMBERS or epoch > JOINING or epoch == LEAVING
    regex_or_names = values["subscribed_topic_names"], values["subscribed_topic_regex"]
    refused = {
        "MemberId can't be empty.": needs_member_id and not values["member_id"].strip(),
        "GroupId can't be empty.": not values["group_id"].strip(),
        "InstanceId can't be empty.": _is_blank(values["instance_id"]),
        "RackId can't be empty.": _is_blank(values["rack_id"]),
        "RebalanceTimeoutMs must be provided in first request.": epoch == JOINING
        and values["rebalance_timeout_ms"] == UNCHANGED,
        "TopicPartitions must be empty when (re-)joining.": epoch == JOINING and values["topic_partitions"] != [],
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.": epoch == JOINING
        and regex_or_names == (None, None),
        "InstanceId can't be null.": epoch == LEAVING_FOR_A_WHILE and values["instance_id"] is None,
        "MemberEpoch is invalid.": epoch < LEAVING_FOR_A_WHILE,
    }
    for message, is_so in refused.items():
        if is_so:
            raise GroupError(ErrorCode.INVALID_REQUEST, message=message)
    assignor = values["server_assignor"]
    if assignor is not None and assignor not in ASSIGNORS:
        supported = ", ".join(ASSIGNORS)
        message = f"ServerAssignor {assignor} is not supported. Supported assignors: {supported}."
        raise GroupError(ErrorCode.UNSUPPORTED_ASSIGNOR, message=message)


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()
