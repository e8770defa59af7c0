"""Requests of consumer groups of the classic protocol, and for their offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.cluster_requests import Node
from kraftlog.server.consumer_group import ConsumerGroup
from kraftlog.server.group import Group, GroupState, Member
from kraftlog.server.group_error import GroupError
from kraftlog.server.groups import AnyGroup, Groups
from kraftlog.server.outcome import Outcome
from kraftlog.server.readable_log import NO_TOPIC_ID, ReadableLog, ReadableTopic
from kraftlog.server.server import Handler
from kraftlog.topics import TopicPartition

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT = 8, 9, 10, 11, 12
LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 13, 14, 15, 16
DELETE_GROUPS, OFFSET_DELETE = 42, 47
_KEY_TYPES = (0, 1)  # of the coordinators of groups and of transactions
_JOIN_WITH_ID, _JOIN_WITHOUT_PROTOCOL, _JOIN_SKIPPING = (
    4,
    7,
    9,
)  # first versions of JoinGroup (KIP-394, KIP-559, KIP-814)
_LEAVE_SEVERAL, _FIND_SEVERAL, _FETCH_SEVERAL, _DESCRIBE_NOT_FOUND = 3, 4, 8, 6  # first versions of these requests
_COMMIT_NOT_FOUND = 9
_LEAST_SESSION_MS, _MOST_SESSION_MS = 6_000, 1_800_000  # group.min.session.timeout.ms, group.max.session.timeout.ms
_MOST_METADATA = 4096  # offset.metadata.max.bytes
_NO_OFFSET = -1
_LAST_VERSION = 1 << 15  # of requests that say nothing about member epochs


class GroupRequests:
    """Answers the requests of consumer groups of the classic protocol."""

    def __init__(self, log: ReadableLog, node: Node, groups: Groups) -> None:
        self._log = log
        self._node = node
        self._offsets = groups.offsets
        self._groups = groups

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            FIND_COORDINATOR: self._find_coordinator,
            JOIN_GROUP: self._join,
            SYNC_GROUP: self._sync,
            HEARTBEAT: self._heartbeat,
            LEAVE_GROUP: self._leave,
            OFFSET_COMMIT: self._commit,
            OFFSET_FETCH: self._fetch,
            LIST_GROUPS: self._list,
            DESCRIBE_GROUPS: self._describe,
            DELETE_GROUPS: self._delete,
            OFFSET_DELETE: self._delete_offsets,
        }

    async def _find_coordinator(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        is_known = values["key_type"] in _KEY_TYPES
        answer = {**self._node.fields} if is_known else {"error_code": ErrorCode.INVALID_REQUEST, "node_id": -1}
        if request.version >= _FIND_SEVERAL:
            keys = values["coordinator_keys"]
            return {"coordinators": [{"key": key, "host": "", "port": -1, **answer} for key in keys]}
        return {"host": "", "port": -1, **answer}

    async def _join(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        timeout_ms = values["session_timeout_ms"]
        rebalance_ms = values["rebalance_timeout_ms"]
        member = Member(
            values["member_id"],
            values["group_instance_id"],
            request.client_id or "",
            request.client_host,
            timeout_ms,
            timeout_ms if rebalance_ms < 0 else rebalance_ms,
            {one["name"]: bytes(one["metadata"]) for one in values["protocols"]},
        )
        try:
            if not values["group_id"]:
                raise GroupError(ErrorCode.INVALID_GROUP_ID)
            if not _LEAST_SESSION_MS <= timeout_ms <= _MOST_SESSION_MS:
                raise GroupError(ErrorCode.INVALID_SESSION_TIMEOUT)
            group = self._groups.classic_to_join(values["group_id"], is_new_member=not values["member_id"])
            requires_id = request.version >= _JOIN_WITH_ID
            fields = await group.join(member, values["protocol_type"], requires_id=requires_id)
        except GroupError as error:
            member_id = error.member_id or values["member_id"]
            name = None if request.version >= _JOIN_WITHOUT_PROTOCOL else ""
            return {"error_code": error.code, "member_id": member_id, "leader": "", "protocol_name": name}
        code = await self._groups.written(group.group_id)
        if code:
            return {"error_code": code, "member_id": fields["member_id"], "leader": ""}
        if fields["skip_assignment"] and request.version < _JOIN_SKIPPING:  # as a follower it only takes what it had
            return fields | {"skip_assignment": False, "leader": "", "members": []}
        return fields

    async def _sync(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        try:
            group = self._groups.classic(values["group_id"])
            assignments = {one["member_id"]: bytes(one["assignment"]) for one in values["assignments"]}
            assignment = await group.sync(*_identity(values), values["generation_id"], assignments)
        except GroupError as error:
            return {"error_code": error.code}
        code = await self._groups.written(group.group_id)
        if code:
            return {"error_code": code}
        return {"protocol_type": group.protocol_type, "protocol_name": group.protocol, "assignment": assignment}

    async def _heartbeat(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        try:
            self._groups.classic(values["group_id"]).heartbeat(*_identity(values), values["generation_id"])
        except GroupError as error:
            return {"error_code": error.code}
        return {}

    async def _leave(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if request.version < _LEAVE_SEVERAL:
            code, _ = self._left(values["group_id"], values["member_id"], None)
            return {"error_code": code or await self._groups.written(values["group_id"])}
        members = []
        for one in values["members"]:
            instance = one["group_instance_id"]
            code, member_id = self._left(values["group_id"], one["member_id"], instance)
            members.append({"member_id": member_id, "group_instance_id": instance, "error_code": code})
        return {"error_code": await self._groups.written(values["group_id"]), "members": members}

    def _left(self, group_id: str, member_id: str, instance: str | None) -> tuple[ErrorCode, str]:
        try:
            return ErrorCode.NONE, self._groups.classic(group_id).leave(member_id, instance)
        except GroupError as error:
            return error.code, member_id

    # offsets

    async def _commit(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        code = ErrorCode.NONE
        try:
            if not values["group_id"]:
                raise GroupError(ErrorCode.INVALID_GROUP_ID)
            generation = values["generation_id_or_member_epoch"]
            group = self._group_of_offsets(values["group_id"])
            if isinstance(group, ConsumerGroup):
                group.check_commit(values["member_id"], generation, request.version)
            elif group is not None:
                group.may_commit(*_identity(values), generation)
            elif generation >= 0:
                is_old = request.version < _COMMIT_NOT_FOUND
                raise GroupError(ErrorCode.ILLEGAL_GENERATION if is_old else ErrorCode.GROUP_ID_NOT_FOUND)
        except GroupError as error:
            code = error.code
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        codes: dict[tuple[int, int], ErrorCode] = {}
        for number, topic in enumerate(values["topics"]):
            found = self._log.topic(topic["name"], topic["topic_id"])
            for at, one in enumerate(topic["partitions"]):
                codes[number, at] = code or _code_of_commit(found, topic, one)
                if found is not None and not codes[number, at]:
                    key = TopicPartition(found.name, one["partition_index"])
                    metadata, epoch = one["committed_metadata"] or "", one["committed_leader_epoch"]
                    offsets[key] = OffsetAndMetadata(one["committed_offset"], metadata, epoch)
        failed = (
            await _code_of(partial(self._offsets.commit, values["group_id"], offsets)) if offsets else ErrorCode.NONE
        )
        return {
            "topics": [
                {
                    "name": topic["name"],
                    "topic_id": topic["topic_id"],
                    "partitions": [
                        {"partition_index": one["partition_index"], "error_code": codes[number, at] or failed}
                        for at, one in enumerate(topic["partitions"])
                    ],
                }
                for number, topic in enumerate(values["topics"])
            ]
        }

    def _group_of_offsets(self, group_id: str) -> AnyGroup | None:
        """Return a group; one that only has offsets is an empty classic one."""
        group = self._groups.get(group_id)
        return Group(group_id) if group is None and self._offsets.of(group_id) else group

    def code_of_transactional_commit(self, values: Mapping[str, Any]) -> int:
        """Return whether a member may commit offsets in a transaction (KIP-447): the error of the protocol."""
        if not values["group_id"]:
            return ErrorCode.INVALID_GROUP_ID
        if not values["member_id"] and values["generation_id"] < 0:
            return ErrorCode.NONE  # only the transactional id fences
        group = self._group_of_offsets(values["group_id"])
        try:
            if isinstance(group, ConsumerGroup):
                group.check_commit(values["member_id"], values["generation_id"], _LAST_VERSION)
            elif group is not None:
                group.may_commit(*_identity(values), values["generation_id"], is_transactional=True)
            elif values["generation_id"] >= 0:
                return ErrorCode.ILLEGAL_GENERATION
        except GroupError as error:
            is_stale = error.code == ErrorCode.STALE_MEMBER_EPOCH  # which the producer does not know
            return ErrorCode.ILLEGAL_GENERATION if is_stale else error.code
        return ErrorCode.NONE

    async def _fetch(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if request.version < _FETCH_SEVERAL:
            topics = self._fetched(values["group_id"], values["topics"], requires_stable=values["require_stable"])
            return {"topics": [{"name": one["name"], "partitions": one["partitions"]} for one in topics]}
        stable = values["require_stable"]
        return {"groups": [self._fetched_group(one, requires_stable=stable) for one in values["groups"]]}

    def _fetched_group(self, requested: Mapping[str, Any], *, requires_stable: bool) -> dict[str, Any]:
        group_id = requested["group_id"]
        group = self._groups.get(group_id)
        try:
            if isinstance(group, ConsumerGroup):
                group.check_fetch(requested["member_id"], requested["member_epoch"])
        except GroupError as error:
            return {"group_id": group_id, "error_code": error.code}
        return {
            "group_id": group_id,
            "topics": self._fetched(group_id, requested["topics"], requires_stable=requires_stable),
        }

    def _fetched(
        self, group_id: str, requested: Iterable[Mapping[str, Any]] | None, *, requires_stable: bool
    ) -> list[dict[str, Any]]:
        offsets = self._offsets.of(group_id)
        unstable = self._offsets.unstable(group_id) if requires_stable else ()
        topics = self._all(offsets) if requested is None else requested
        return [self._fetched_topic(offsets, unstable, one) for one in topics]

    def _all(self, offsets: Mapping[tuple[str, int], OffsetAndMetadata]) -> Iterable[dict[str, Any]]:
        """Return the topics of committed offsets, as a request names them."""
        for name in sorted({topic for topic, _ in offsets}):
            found = self._log.topic(name, NO_TOPIC_ID)
            if found is not None:
                numbers = sorted(partition for topic, partition in offsets if topic == name)
                yield {"name": name, "topic_id": found.topic_id, "partition_indexes": numbers}

    def _fetched_topic(
        self,
        offsets: Mapping[tuple[str, int], OffsetAndMetadata],
        unstable: Collection[tuple[str, int]],
        requested: Mapping[str, Any],
    ) -> dict[str, Any]:
        topic_id = requested.get("topic_id", NO_TOPIC_ID)
        found = self._log.topic(requested["name"], topic_id)
        code = ErrorCode.UNKNOWN_TOPIC_ID if found is None and topic_id != NO_TOPIC_ID else ErrorCode.NONE
        name = requested["name"] if found is None else found.name
        rows = [
            _offset_fields(offsets.get(key), key[1], ErrorCode.UNSTABLE_OFFSET_COMMIT if key in unstable else code)
            for key in ((name, number) for number in requested["partition_indexes"])
        ]
        return {"name": name, "topic_id": topic_id, "partitions": rows}

    async def _delete(self, request: Request) -> Mapping[str, Any]:
        names = request.values["groups_names"]
        return {"results": [{"group_id": name, "error_code": await self._deleted(name)} for name in names]}

    async def _deleted(self, group_id: str) -> int:
        group, keys = self._groups.get(group_id), self._committed_or_pending(group_id)
        if group is None and not keys:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None and not _is_empty(group):
            return ErrorCode.NON_EMPTY_GROUP
        code = await _code_of(partial(self._offsets.forget, group_id, keys))
        if not code and group is not None and _is_empty(group) and self._groups.get(group_id) is group:
            self._groups.remove(group_id)
            code = await self._groups.written(group_id)
        return code

    def _committed_or_pending(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions of a group's offsets: a tombstone also ends those that wait for a transaction."""
        return {TopicPartition(*key) for key in (*self._offsets.of(group_id), *self._offsets.unstable(group_id))}

    async def _delete_offsets(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        group_id = values["group_id"]
        group, keys = self._groups.get(group_id), self._committed_or_pending(group_id)
        if group is None and not keys:
            return {"error_code": ErrorCode.GROUP_ID_NOT_FOUND}
        codes: dict[TopicPartition, int] = {}
        for topic in values["topics"]:
            found = self._log.topic(topic["name"], NO_TOPIC_ID)
            for one in topic["partitions"]:
                key = TopicPartition(topic["name"], one["partition_index"])
                is_known = found is not None and key.partition in found.partitions
                codes[key] = ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if is_known and group is not None and _may_subscribe(group, topic["name"]):
                    codes[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        removed = [key for key, code in codes.items() if not code and key in keys]
        failed = await _code_of(partial(self._offsets.forget, group_id, removed))
        return {
            "error_code": failed,
            "topics": [
                {
                    "name": topic["name"],
                    "partitions": [
                        {
                            "partition_index": one["partition_index"],
                            "error_code": codes[TopicPartition(topic["name"], one["partition_index"])],
                        }
                        for one in topic["partitions"]
                    ],
                }
                for topic in values["topics"]
            ],
        }

    # lists

    async def _list(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        states, types = values["states_filter"], values["types_filter"]
        rows = []
        for group_id in sorted({*self._groups, *self._offsets.groups}):
            group = self._groups.get(group_id) or Group(group_id)
            if (not states or group.state.lower() in {one.lower() for one in states}) and (
                not types or group.group_type in {one.lower() for one in types}
            ):
                protocol_type = group.protocol_type or ""
                rows.append(
                    {
                        "group_id": group_id,
                        "protocol_type": protocol_type,
                        "group_state": group.state,
                        "group_type": group.group_type,
                    }
                )
        return {"groups": rows}

    async def _describe(self, request: Request) -> Mapping[str, Any]:
        return {"groups": [self._described(one, request.version) for one in request.values["groups"]]}

    def _described(self, group_id: str, version: int) -> dict[str, Any]:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup) or (group is None and group_id not in self._offsets.groups):
            fields: dict[str, Any] = {"group_id": group_id, "group_state": GroupState.DEAD}
            if version >= _DESCRIBE_NOT_FOUND:
                reason = "not found" if group is None else "is not a classic group"
                fields |= {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": f"Group {group_id} {reason}."}
            return fields
        group = group or Group(group_id)
        is_stable = group.state == GroupState.STABLE
        return {
            "group_id": group_id,
            "group_state": group.state,
            "protocol_type": group.protocol_type or "",
            "protocol_data": (group.protocol or "") if is_stable else "",
            "members": [
                {
                    "member_id": one.member_id,
                    "group_instance_id": one.group_instance_id,
                    "client_id": one.client_id,
                    "client_host": one.client_host,
                    "member_metadata": one.protocols.get(group.protocol or "", b"") if is_stable else b"",
                    "member_assignment": one.assignment if is_stable else b"",
                }
                for one in group.members.values()
            ],
        }


def _is_empty(group: AnyGroup) -> bool:
    return group.state == GroupState.EMPTY


def _may_subscribe(group: AnyGroup, topic: str) -> bool:
    """Whether a member may subscribe to a topic; subscriptions of classic members are theirs, so that any may."""
    return group.subscribes(topic) if isinstance(group, ConsumerGroup) else not _is_empty(group)


async def _code_of(write: Callable[[], None]) -> int:
    return (await asyncio.to_thread(Outcome.of, write)).coordinator_code


def _identity(values: Mapping[str, Any]) -> tuple[str, str | None]:
    return values["member_id"], values["group_instance_id"]


def _code_of_commit(found: ReadableTopic | None, topic: Mapping[str, Any], one: Mapping[str, Any]) -> ErrorCode:
    if found is None:
        by_id = topic["topic_id"] != NO_TOPIC_ID
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if one["partition_index"] not in found.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(one["committed_metadata"] or "") > _MOST_METADATA:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _offset_fields(one: OffsetAndMetadata | None, partition: int, code: ErrorCode) -> dict[str, Any]:
    fields = {"partition_index": partition, "committed_offset": _NO_OFFSET, "metadata": "", "error_code": code}
    if one is None or code:
        return fields
    epoch = one.leader_epoch
    return fields | {"committed_offset": one.offset, "metadata": one.metadata, "committed_leader_epoch": epoch}
