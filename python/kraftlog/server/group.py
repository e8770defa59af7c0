"""A consumer group of the classic protocol: its members, their assignments, its generations."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import uuid4

from kraftlog.messages.one_message import MOST_TEXT_BYTES
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.group_error import GroupError

_UNIQUE_BYTES = 37  # behind the name in a member id: a hyphen and a UUID


class GroupState(StrEnum):
    """The state of a group, by Kafka's name."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass
class Member:
    """A member of a group.

    Attributes
    ----------
    joined, synced : asyncio.Future or None
        Requests that wait: for all members, and for the leader's assignments.
    expiry : asyncio.TimerHandle or None
        The end of its session.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: dict[str, bytes]
    assignment: bytes = b""
    joined: asyncio.Future[dict[str, Any]] | None = None
    synced: asyncio.Future[bytes] | None = None
    expiry: asyncio.TimerHandle | None = None

    def refuse(self, code: ErrorCode) -> None:
        """Answer the requests that wait with an error."""
        for waiting in (self.joined, self.synced):
            if waiting is not None and not waiting.done():
                waiting.set_exception(GroupError(code, self.member_id))
        self.joined = self.synced = None


@dataclass
class Group:
    """A group; its methods run in one event loop.

    Attributes
    ----------
    generation : int
    protocol_type, protocol : str or None
        For example ``consumer``, and the assignor that all members support.
    leader : str or None
        Id of the member that assigns partitions.
    on_change : callable
        Is called when the group has come to a state that outlives the server: stable or empty.
    """

    group_id: str
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    on_change: Callable[[Group], None] = lambda _: None
    _pending: dict[str, asyncio.TimerHandle] = field(default_factory=dict)  # ids given to clients that have yet to join
    _unsynced: set[str] = field(default_factory=set)  # ids of members that have joined the generation and not synced
    _limit: asyncio.TimerHandle | None = None  # of the time to join, then of the time to sync

    group_type = "classic"

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, and nobody is about to join."""
        return self.state == GroupState.EMPTY and not self._pending

    # joining

    async def join(self, member: Member, protocol_type: str, *, requires_id: bool) -> dict[str, Any]:
        """Join, and wait until all members have joined.

        Parameters
        ----------
        member : Member
            As the request says; an empty id for a new one.
        protocol_type : str
        requires_id : bool
            Whether a new member without an instance id is first given its id (KIP-394).

        Returns
        -------
        dict
            Fields of the response.

        Raises
        ------
        GroupError
        """
        if (self.members and protocol_type != self.protocol_type) or not member.protocols:
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member.member_id)
        others = [one for one in self.members.values() if not _is_same(one, member)]
        if others and not set.intersection(*(set(one.protocols) for one in [*others, member])):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member.member_id)
        known = self._known(member)
        self.protocol_type = protocol_type
        if known is None:
            known = self._added(member, requires_id=requires_id)
        elif not self._is_changed_by(known, member):
            self._touch(known)
            return self._joined_fields(known)
        else:
            known.protocols, known.client_id, known.client_host = member.protocols, member.client_id, member.client_host
            known.session_timeout_ms = member.session_timeout_ms
            known.rebalance_timeout_ms = member.rebalance_timeout_ms
            if self._keeps_assignments(member):
                self.on_change(self)
                self._touch(known)
                return self._joined_fields(known)
        if known.joined is not None and not known.joined.done():
            known.joined.cancel()  # of a connection that is gone
        joined: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        known.joined = joined
        self._touch(known)
        self._prepare_rebalance()
        return await joined

    def _known(self, member: Member) -> Member | None:
        """Return the member that a request is from; None for a new one."""
        instance = member.group_instance_id
        static = None if instance is None else self._static(instance)
        if member.member_id:
            known = self.members.get(member.member_id)
            if static is not None and static is not known:
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID, member.member_id)
            if known is None and member.member_id not in self._pending:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
            return known
        if static is None:
            return None
        return self._renamed(static, member)

    def _static(self, group_instance_id: str) -> Member | None:
        return next((one for one in self.members.values() if one.group_instance_id == group_instance_id), None)

    def _renamed(self, static: Member, member: Member) -> Member:
        """Give a static member that starts again a new id, which fences the process that had the old one (KIP-345)."""
        static.refuse(ErrorCode.FENCED_INSTANCE_ID)
        self._unsynced.discard(static.member_id)
        del self.members[static.member_id]
        was_leader = self.leader == static.member_id
        static.member_id = _new_id(member)
        self.members[static.member_id] = static
        if was_leader:
            self.leader = static.member_id
        return static

    def _added(self, member: Member, *, requires_id: bool) -> Member:
        if not member.member_id:
            member.member_id = _new_id(member)
            if requires_id and member.group_instance_id is None:
                delay = member.session_timeout_ms / 1000
                late = asyncio.get_running_loop().call_later(delay, self._drop_pending, member.member_id)
                self._pending[member.member_id] = late
                raise GroupError(ErrorCode.MEMBER_ID_REQUIRED, member.member_id)
        if member.member_id in self._pending:
            self._pending.pop(member.member_id).cancel()
        self.members[member.member_id] = member
        return member

    def _drop_pending(self, member_id: str) -> None:
        """Forget an id that no client has joined with; a rebalance no longer waits for it."""
        self._pending.pop(member_id).cancel()
        self._join_if_all_have()

    def _is_changed_by(self, known: Member, member: Member) -> bool:
        """Whether the request of a member that is known changes it, or makes the group assign its partitions again."""
        if self.state == GroupState.PREPARING_REBALANCE or not member.member_id or known.protocols != member.protocols:
            return True
        return self.state == GroupState.STABLE and known.member_id == self.leader

    def _keeps_assignments(self, member: Member) -> bool:
        """Whether a static member that starts again takes over what it had, as the protocol stays (KIP-345).

        Before the assignments are there it does not, as the leader assigns partitions to the former id.
        """
        return self.state == GroupState.STABLE and not member.member_id and self._voted_protocol() == self.protocol

    def _prepare_rebalance(self) -> None:
        if self.state != GroupState.PREPARING_REBALANCE:
            self.state = GroupState.PREPARING_REBALANCE
            self._unsynced.clear()
            for member in self.members.values():
                if member.synced is not None:
                    if not member.synced.done():
                        member.synced.set_exception(GroupError(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
                    member.synced = None
                    self._touch(member)
            self._limit_rebalance()
        self._join_if_all_have()

    def _join_if_all_have(self) -> None:
        """Complete the rebalance if nobody is missing; clients that were given an id join at once (KIP-394)."""
        is_complete = not self._pending and all(one.joined is not None for one in self.members.values())
        if self.state == GroupState.PREPARING_REBALANCE and is_complete:
            self._complete_rebalance()

    def _limit_rebalance(self) -> None:
        """Complete the rebalance when the slowest member has had its time."""
        self._limit_time(self._complete_rebalance)

    def _limit_time(self, then: Callable[[], None]) -> None:
        if self._limit is not None:
            self._limit.cancel()
        most = max((one.rebalance_timeout_ms for one in self.members.values()), default=0)
        self._limit = asyncio.get_running_loop().call_later(most / 1000, then)

    def _complete_rebalance(self) -> None:
        """Begin a generation of the members that have joined again; static ones stay until their session ends."""
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        for member in list(self.members.values()):
            if member.joined is None and member.group_instance_id is None:
                self._forget(member)
        joined = [one for one in self.members.values() if one.joined is not None]
        if self.members and not joined:  # static ones, which are away: nobody could lead them
            self._limit_rebalance()
            return
        self.generation += 1
        if not self.members:
            self.state, self.protocol, self.leader = GroupState.EMPTY, None, None
            self.on_change(self)
            return
        self.state = GroupState.COMPLETING_REBALANCE
        self.protocol = self._voted_protocol()
        if self.leader not in {one.member_id for one in joined}:
            self.leader = joined[0].member_id
        for member in joined:
            waiting, member.joined = member.joined, None
            if waiting is not None and not waiting.done():
                waiting.set_result(self._joined_fields(member))
            self._touch(member)
        self._unsynced = set(self.members)
        self._limit_time(self._remove_unsynced)

    def _remove_unsynced(self) -> None:
        """Remove the members that have not synced in time, and begin again without them."""
        if self._unsynced:
            for member_id in list(self._unsynced):
                self._forget(self.members[member_id])
            self._prepare_rebalance()

    def _voted_protocol(self) -> str:
        """Return the protocol that all support and most members prefer."""
        members = list(self.members.values())
        common = set.intersection(*(set(one.protocols) for one in members))
        votes = Counter(next(name for name in one.protocols if name in common) for one in members)
        return max(votes, key=lambda name: votes[name])

    def _joined_fields(self, member: Member) -> dict[str, Any]:
        is_leader = member.member_id == self.leader
        protocol = self.protocol or ""
        skips = is_leader and self.state == GroupState.STABLE  # of a static leader that started again
        return {
            "generation_id": self.generation,
            "protocol_type": self.protocol_type,
            "protocol_name": protocol,
            "leader": self.leader or "",
            "skip_assignment": skips,
            "member_id": member.member_id,
            "members": [
                {
                    "member_id": one.member_id,
                    "group_instance_id": one.group_instance_id,
                    "metadata": one.protocols.get(protocol, b""),
                }
                for one in self.members.values()
            ]
            if is_leader
            else [],
        }

    # a generation

    async def sync(
        self, member_id: str, instance: str | None, generation: int, assignments: Mapping[str, bytes]
    ) -> bytes:
        """Return the assignment of a member; wait for the leader's.

        Raises
        ------
        GroupError
        """
        member = self.checked(member_id, instance, generation)
        if self.state == GroupState.PREPARING_REBALANCE:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._unsynced.discard(member_id)
        if self.state == GroupState.STABLE:
            self._touch(member)
            return member.assignment
        if member_id == self.leader:
            self.state = GroupState.STABLE
            for one in self.members.values():
                one.assignment = assignments.get(one.member_id, b"")
                waiting, one.synced = one.synced, None
                if waiting is not None and not waiting.done():
                    waiting.set_result(one.assignment)
                self._touch(one)
            self.on_change(self)
            return member.assignment
        if member.synced is not None and not member.synced.done():
            member.synced.cancel()  # of a connection that is gone
        synced: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        member.synced = synced
        self._touch(member)
        return await synced

    def heartbeat(self, member_id: str, instance: str | None, generation: int) -> None:
        """Extend the session of a member.

        Raises
        ------
        GroupError
            Also during a rebalance, for which the member has to join again.
        """
        member = self.checked(member_id, instance, generation)
        self._touch(member)
        if self.state == GroupState.PREPARING_REBALANCE:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(self, member_id: str, instance: str | None) -> str:
        """Remove a member; return its id.

        Raises
        ------
        GroupError
        """
        if instance is not None:
            static = self._static(instance)
            if static is None:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if member_id and static.member_id != member_id:
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
            member_id = static.member_id
        if member_id in self._pending:
            self._drop_pending(member_id)
            return member_id
        if member_id not in self.members:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        self._remove(self.members[member_id])
        return member_id

    def checked(self, member_id: str, instance: str | None, generation: int) -> Member:
        """Return a member of the current generation.

        Raises
        ------
        GroupError
        """
        static = None if instance is None else self._static(instance)
        if static is not None and static.member_id != member_id:
            raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation != self.generation:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def may_commit(
        self, member_id: str, instance: str | None, generation: int, *, is_transactional: bool = False
    ) -> None:
        """Check that a commit is from the current generation, or from outside of an empty group.

        Parameters
        ----------
        member_id : str
        instance : str or None
        generation : int
        is_transactional : bool
            In a transaction also a member that waits for its assignment may commit, and who names no member.

        Raises
        ------
        GroupError
        """
        is_empty = self.state == GroupState.EMPTY
        if generation < 0 and is_empty:
            return
        if generation >= 0 or member_id or instance is not None:
            self._touch(self.checked(member_id, instance, generation))
        elif not is_transactional:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if self.state == GroupState.COMPLETING_REBALANCE and not is_transactional:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)

    # sessions

    def begin_sessions(self) -> None:
        """Begin the sessions of members of a group that was read from the log."""
        for member in self.members.values():
            self._touch(member)

    def _touch(self, member: Member) -> None:
        """Restart the session of a member; while the member waits to join or to sync it has none."""
        if member.expiry is not None:
            member.expiry.cancel()
        if member.joined is not None or member.synced is not None:
            return
        delay = member.session_timeout_ms / 1000
        member.expiry = asyncio.get_running_loop().call_later(delay, self._remove, member)

    def _remove(self, member: Member) -> None:
        if self.members.get(member.member_id) is not member:
            return
        self._forget(member)
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare_rebalance()
        else:
            self._join_if_all_have()

    def _forget(self, member: Member) -> None:
        if member.expiry is not None:
            member.expiry.cancel()
        member.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        self._unsynced.discard(member.member_id)
        del self.members[member.member_id]

    def close(self) -> None:
        """Drop all timers and waiting requests."""
        for timer in (self._limit, *self._pending.values()):
            if timer is not None:
                timer.cancel()
        for member in list(self.members.values()):
            self._forget(member)


def _is_same(one: Member, other: Member) -> bool:
    if other.group_instance_id is not None and one.group_instance_id == other.group_instance_id:
        return True
    return bool(other.member_id) and one.member_id == other.member_id


def _new_id(member: Member) -> str:
    """Return an id that fits a text of the protocol, also behind the longest name."""
    name = member.group_instance_id or member.client_id or "consumer"
    fitting = name.encode()[: MOST_TEXT_BYTES - _UNIQUE_BYTES].decode(errors="ignore")
    return f"{fitting}-{uuid4()}"
