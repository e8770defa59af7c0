"""Requests of consumer groups of the classic protocol, and for their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.protocol.request import Request
from kraftlog.server.cluster_requests import Node
from kraftlog.server.committed_offsets import CommittedOffsets
from kraftlog.server.group import Group, GroupError, GroupState, Member
from kraftlog.server.served_log import NO_TOPIC_ID, ServedLog, ServedTopic
from kraftlog.server.server import Handler
from kraftlog.topics import TopicPartition

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT = 8, 9, 10, 11, 12
LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 13, 14, 15, 16
_GROUP = 0  # key type of a coordinator
_JOIN_WITH_ID, _JOIN_WITHOUT_PROTOCOL, _JOIN_SKIPPING = (
    4,
    7,
    9,
)  # first versions of JoinGroup (KIP-394, KIP-559, KIP-814)
_LEAVE_SEVERAL, _FIND_SEVERAL, _FETCH_SEVERAL, _DESCRIBE_NOT_FOUND = 3, 4, 8, 6  # first versions of these requests
_LEAST_SESSION_MS, _MOST_SESSION_MS = 6_000, 1_800_000  # group.min.session.timeout.ms, group.max.session.timeout.ms
_MOST_METADATA = 4096  # offset.metadata.max.bytes
_MOST_GROUPS = 10_000
_NO_OFFSET = -1


class GroupRequests:
    """Answers the requests of consumer groups; their offsets are never written to the log."""

    def __init__(self, log: ServedLog, node: Node, offsets: CommittedOffsets) -> None:
        self._log = log
        self._node = node
        self._offsets = offsets
        self._groups: dict[str, Group] = {}

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
        }

    def close(self) -> None:
        """End all sessions."""
        for group in self._groups.values():
            group.close()

    async def _find_coordinator(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        is_group = values["key_type"] == _GROUP
        answer = {**self._node.fields} if is_group else {"error_code": ErrorCode.INVALID_REQUEST, "node_id": -1}
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
            group = self._group(values["group_id"])
            requires_id = request.version >= _JOIN_WITH_ID
            fields = await group.join(member, values["protocol_type"], requires_id=requires_id)
        except GroupError as error:
            member_id = error.member_id or values["member_id"]
            name = None if request.version >= _JOIN_WITHOUT_PROTOCOL else ""
            return {"error_code": error.code, "member_id": member_id, "leader": "", "protocol_name": name}
        if fields["skip_assignment"] and request.version < _JOIN_SKIPPING:  # as a follower it only takes what it had
            return fields | {"skip_assignment": False, "leader": "", "members": []}
        return fields

    def _group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
            group = self._groups[group_id] = Group(group_id)
        return group

    def _known(self, group_id: str) -> Group:
        if group_id not in self._groups:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self._groups[group_id]

    async def _sync(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        try:
            group = self._known(values["group_id"])
            assignments = {one["member_id"]: bytes(one["assignment"]) for one in values["assignments"]}
            assignment = await group.sync(*_identity(values), values["generation_id"], assignments)
        except GroupError as error:
            return {"error_code": error.code}
        return {"protocol_type": group.protocol_type, "protocol_name": group.protocol, "assignment": assignment}

    async def _heartbeat(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        try:
            self._known(values["group_id"]).heartbeat(*_identity(values), values["generation_id"])
        except GroupError as error:
            return {"error_code": error.code}
        return {}

    async def _leave(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if request.version < _LEAVE_SEVERAL:
            return {"error_code": self._left(values["group_id"], values["member_id"], None)[0]}
        members = []
        for one in values["members"]:
            instance = one["group_instance_id"]
            code, member_id = self._left(values["group_id"], one["member_id"], instance)
            members.append({"member_id": member_id, "group_instance_id": instance, "error_code": code})
        return {"members": members}

    def _left(self, group_id: str, member_id: str, instance: str | None) -> tuple[ErrorCode, str]:
        try:
            return ErrorCode.NONE, self._known(group_id).leave(member_id, instance)
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
            if values["group_id"] in self._groups or generation >= 0:
                self._known(values["group_id"]).may_commit(*_identity(values), generation)
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
        failed = ErrorCode.NONE
        if offsets:
            try:
                self._offsets.commit(values["group_id"], offsets)
            except OSError:
                failed = ErrorCode.KAFKA_STORAGE_ERROR
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

    async def _fetch(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        if request.version < _FETCH_SEVERAL:
            topics = self._fetched(values["group_id"], values["topics"])
            return {"topics": [{"name": one["name"], "partitions": one["partitions"]} for one in topics]}
        groups = values["groups"]
        return {
            "groups": [
                {"group_id": one["group_id"], "topics": self._fetched(one["group_id"], one["topics"])} for one in groups
            ]
        }

    def _fetched(self, group_id: str, requested: Iterable[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
        offsets = self._offsets.of(group_id)
        return [self._fetched_topic(offsets, one) for one in (self._all(offsets) if requested is None else requested)]

    def _all(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Iterable[dict[str, Any]]:
        """Return the topics of committed offsets, as a request names them."""
        for name in sorted({key.topic for key in offsets}):
            found = self._log.topics.get(name)
            if found is not None:
                numbers = sorted(key.partition for key in offsets if key.topic == name)
                yield {"name": name, "topic_id": found.topic_id, "partition_indexes": numbers}

    def _fetched_topic(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], requested: Mapping[str, Any]
    ) -> dict[str, Any]:
        topic_id = requested.get("topic_id", NO_TOPIC_ID)
        found = self._log.topic(requested["name"], topic_id)
        code = ErrorCode.UNKNOWN_TOPIC_ID if found is None and topic_id != NO_TOPIC_ID else ErrorCode.NONE
        name = requested["name"] if found is None else found.name
        rows = [_offset_fields(offsets.get(TopicPartition(name, n)), n, code) for n in requested["partition_indexes"]]
        return {"name": name, "topic_id": topic_id, "partitions": rows}

    # lists

    async def _list(self, request: Request) -> Mapping[str, Any]:
        values = request.values
        states, types = values["states_filter"], values["types_filter"]
        rows = []
        for group_id in sorted({*self._groups, *self._offsets.groups}):
            group = self._groups.get(group_id) or Group(group_id)
            if (not states or group.state.lower() in {one.lower() for one in states}) and (
                not types or "classic" in {one.lower() for one in types}
            ):
                protocol_type = group.protocol_type or ""
                rows.append(
                    {
                        "group_id": group_id,
                        "protocol_type": protocol_type,
                        "group_state": group.state,
                        "group_type": "classic",
                    }
                )
        return {"groups": rows}

    async def _describe(self, request: Request) -> Mapping[str, Any]:
        return {"groups": [self._described(one, request.version) for one in request.values["groups"]]}

    def _described(self, group_id: str, version: int) -> dict[str, Any]:
        if group_id not in self._groups and group_id not in self._offsets.groups:
            fields: dict[str, Any] = {"group_id": group_id, "group_state": GroupState.DEAD}
            if version >= _DESCRIBE_NOT_FOUND:
                fields |= {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "error_message": f"Group {group_id} not found."}
            return fields
        group = self._groups.get(group_id) or Group(group_id)
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


def _identity(values: Mapping[str, Any]) -> tuple[str, str | None]:
    return values["member_id"], values["group_instance_id"]


def _code_of_commit(found: ServedTopic | None, topic: Mapping[str, Any], one: Mapping[str, Any]) -> ErrorCode:
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
