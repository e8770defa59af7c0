"""A member of a classic group, request by request."""

from __future__ import annotations

from typing import Any

from test_connections import Client

from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker
from kraftlog.server.log_server import LogServer

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST = range(8, 17)
SESSION_MS = 6_000


class Member(Client):
    """A member of a group, request by request."""

    def __init__(self, server: LogServer | Broker, group: str = "g", instance: str | None = None) -> None:
        super().__init__(server)
        self.group, self.instance = group, instance
        self.member_id, self.generation = "", -1

    def join_frame(self, **others: Any) -> bytes:
        values = {
            "group_id": self.group,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": 10_000,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"m"}],
        }
        return self.frame(JOIN, 9, values | others)

    def joined(self) -> dict[str, Any]:
        answer = self.answer(JOIN, 9)
        self.member_id, self.generation = answer["member_id"], answer["generation_id"]
        return answer

    def join(self, **others: Any) -> dict[str, Any]:
        """Join; a new member gets its id first, and joins with it."""
        self.send(self.join_frame(**others))
        answer = self.joined()
        if answer["error_code"] == ErrorCode.MEMBER_ID_REQUIRED:
            self.send(self.join_frame(**others))
            answer = self.joined()
        return answer

    def identity(self, **others: Any) -> dict[str, Any]:
        identity = {"group_id": self.group, "member_id": self.member_id, "group_instance_id": self.instance}
        return identity | {"generation_id": self.generation} | others

    def sync(self, assignments: dict[str, bytes] | None = None) -> dict[str, Any]:
        rows = [{"member_id": one, "assignment": data} for one, data in (assignments or {}).items()]
        return self.ask(SYNC, 5, self.identity(protocol_type="consumer", protocol_name="range", assignments=rows))

    def heartbeat(self) -> int:
        return self.ask(HEARTBEAT, 4, self.identity())["error_code"]

    def commit(self, offset: int, **others: Any) -> int:
        identity = self.identity(**others)
        identity["generation_id_or_member_epoch"] = identity.pop("generation_id")
        partitions = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "why"}]
        answer = self.ask(OFFSET_COMMIT, 9, identity | {"topics": [{"name": "orders", "partitions": partitions}]})
        return answer["topics"][0]["partitions"][0]["error_code"]

    def committed(self) -> tuple[int, str]:
        groups = [{"group_id": self.group, "topics": [{"name": "orders", "partition_indexes": [0]}]}]
        answer = self.ask(OFFSET_FETCH, 9, {"groups": groups})
        (one,) = answer["groups"][0]["topics"][0]["partitions"]
        return one["committed_offset"], one["metadata"]
