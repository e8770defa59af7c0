"""The groups of a server, of both protocols, with the sessions of their members and the records that outlive it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from kraftlog.log_store.key_and_value import KeyAndValue
from kraftlog.log_store.options import milliseconds_now
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.committed_offsets import CommittedOffsets
from kraftlog.server.consumer_group import ConsumerGroup, MemberState
from kraftlog.server.consumer_group_records import TYPES, Facts, RestoredGroups, changes, facts
from kraftlog.server.group import Group, GroupState
from kraftlog.server.group_error import GroupError
from kraftlog.server.group_log import GroupLog
from kraftlog.server.group_records import GROUP_METADATA, decoded_records, group_key, group_of, group_record

SESSION_TIMEOUT_MS = 45_000  # group.consumer.session.timeout.ms
_MOST_GROUPS = 10_000

AnyGroup = Group | ConsumerGroup


class Groups:
    """The groups of a server; its methods run in one event loop.

    Parameters
    ----------
    offsets : CommittedOffsets
        What the groups commit. The records beside it become groups; their sessions begin with ``begin_sessions``.

    Attributes
    ----------
    offsets : CommittedOffsets
    """

    def __init__(self, offsets: CommittedOffsets) -> None:
        self.offsets = offsets
        self._log = GroupLog(offsets)
        self._groups: dict[str, AnyGroup] = {}
        self._written: dict[str, Facts] = {}
        self._timers: dict[tuple[str, str, str], asyncio.TimerHandle] = {}
        restored = RestoredGroups()
        for name, key, value in decoded_records(offsets.records):
            if name == GROUP_METADATA:
                group = self._groups[key["group"]] = group_of(key["group"], value)
                group.on_change = self._classic_changed
            elif name in TYPES:
                restored.take(name, key, value)
        for group_id, consumer_group in restored.finish().items():
            self._groups[group_id] = consumer_group
            self._written[group_id] = facts(consumer_group)

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def get(self, group_id: str) -> AnyGroup | None:
        """Return a group; None without one."""
        return self._groups.get(group_id)

    def begin_sessions(self) -> None:
        """Begin the sessions of the members that the log has."""
        for group in self._groups.values():
            if isinstance(group, Group):
                group.begin_sessions()
            else:
                for member_id in group.subscriptions:
                    self.begin_session(group, member_id)
                    self._expect_revocation(group, member_id)

    async def close(self) -> None:
        """End all sessions; members stay in the log."""
        for timer in self._timers.values():
            timer.cancel()
        for group in self._groups.values():
            if isinstance(group, Group):
                group.close()
        await self._log.close()

    async def written(self, group_id: str) -> int:
        """Wait until the changes of a group are in the log; return the error of the protocol."""
        return await self._log.written(group_id)

    def remove(self, group_id: str) -> None:
        """Remove an empty group, and its records."""
        group = self._groups.pop(group_id)
        if isinstance(group, Group):
            self._log.put(group_id, [KeyAndValue(group_key(group_id), None)])
        else:
            self._log.put(group_id, changes(group_id, self._written.pop(group_id, {}), {}))

    # classic groups

    def classic(self, group_id: str) -> Group:
        """Return a classic group.

        Raises
        ------
        GroupError
            When it has no members: there is no such group, or it is of the other protocol.
        """
        group = self._groups.get(group_id)
        if not isinstance(group, Group):
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def classic_to_join(self, group_id: str, *, is_new_member: bool) -> Group:
        """Return a classic group, a new one for a new member; an empty group of the other protocol makes room.

        Raises
        ------
        GroupError
        """
        group = self._groups.get(group_id)
        if group is None and not is_new_member:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            self.remove(group_id)
            group = None
        if group is None:
            self._check_space()
            group = self._groups[group_id] = Group(group_id, on_change=self._classic_changed)
        return group

    def _classic_changed(self, group: Group) -> None:
        self._log.put(group.group_id, [group_record(group, milliseconds_now())])

    def _check_space(self) -> None:
        if len(self._groups) >= _MOST_GROUPS:
            self.remove_unused()
        if len(self._groups) >= _MOST_GROUPS:
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def remove_unused(self) -> None:
        """Remove the groups that have neither members nor offsets."""
        for group_id in [name for name, group in self._groups.items() if group.is_empty]:
            if not self.offsets.of(group_id) and not self.offsets.unstable(group_id):
                self.remove(group_id)

    # consumer groups

    def consumer(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group of the newer protocol.

        Raises
        ------
        GroupError
            GROUP_ID_NOT_FOUND.
        """
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            reason = "not found" if group is None else "is not a consumer group"
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, message=f"Group {group_id} {reason}.")
        return group

    def consumer_to_join(self, group_id: str) -> ConsumerGroup:
        """Return a consumer group, a new one if necessary; an empty classic group makes room.

        Raises
        ------
        GroupError
        """
        group = self._groups.get(group_id)
        if isinstance(group, Group) and group.state == GroupState.EMPTY:
            return ConsumerGroup(group_id)
        if group is None:
            self._check_space()
            return ConsumerGroup(group_id)
        return self.consumer(group_id)

    def consumer_changed(self, group: ConsumerGroup) -> None:
        """Write what has changed in a group."""
        earlier = self._groups.get(group.group_id)
        if earlier is not group:
            if earlier is not None:
                self.remove(group.group_id)
            self._groups[group.group_id] = group
        after = facts(group)
        records = changes(group.group_id, self._written.get(group.group_id, {}), after)
        self._written[group.group_id] = after
        if records:
            self._log.put(group.group_id, records)

    def begin_session(self, group: ConsumerGroup, member_id: str) -> None:
        """Begin or extend the session of a member; at its end the member is removed."""
        self._time(group, member_id, "session", SESSION_TIMEOUT_MS)

    def watch_revocation(self, group: ConsumerGroup, member_id: str, *, is_changed: bool) -> None:
        """Expect that a member gives up its partitions within its rebalance timeout, if it has to."""
        is_revoking = group.current[member_id].state == MemberState.UNREVOKED_PARTITIONS
        if is_changed or not is_revoking:
            self._cancel(group.group_id, member_id, "revocation")
            self._expect_revocation(group, member_id)

    def end_session(self, group_id: str, member_id: str) -> None:
        """Forget the timers of a member."""
        for kind in ("session", "revocation"):
            self._cancel(group_id, member_id, kind)

    def _expect_revocation(self, group: ConsumerGroup, member_id: str) -> None:
        if group.current[member_id].state == MemberState.UNREVOKED_PARTITIONS:
            self._time(group, member_id, "revocation", group.subscriptions[member_id].rebalance_timeout_ms)

    def _time(self, group: ConsumerGroup, member_id: str, kind: str, delay_ms: int) -> None:
        self._cancel(group.group_id, member_id, kind)
        late = partial(self._late, group, member_id)
        timer = asyncio.get_running_loop().call_later(delay_ms / 1000, late)
        self._timers[group.group_id, member_id, kind] = timer

    def _cancel(self, group_id: str, member_id: str, kind: str) -> None:
        timer = self._timers.pop((group_id, member_id, kind), None)
        if timer is not None:
            timer.cancel()

    def _late(self, group: ConsumerGroup, member_id: str) -> None:
        self.end_session(group.group_id, member_id)
        if member_id in group.subscriptions:
            group.remove(member_id)
            self.consumer_changed(group)
