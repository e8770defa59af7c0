"""Why a consumer gets no more records of a partition, in one code and one sentence.

The tables ``waits``, ``lag`` and ``hanging_transactions``, and the report, ask ``cause_of``: it decides from what is
known of a partition, of the group that reads it, and of the transaction that is open at its last stable offset. It
reads no files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kraftlog.errors import Fault
from kraftlog.topics import TRANSACTION_STATE

NO_LOG = "no_log"
UNREADABLE_LOG = "unreadable_log"
NO_LEADER = "no_leader"
CORRUPT_BATCH = "corrupt_batch"
BEFORE_LOG_START = "offset_before_log_start"
BEHIND_LOG_END = "offset_behind_log_end"
PENDING_COMMIT = "pending_commit"
HANGING_TRANSACTION = "hanging_transaction"
OPEN_TRANSACTION = "open_transaction"
EXPIRED_COMMIT = "expired_commit"
NO_COMMIT = "no_commit"
NO_MEMBER = "no_member"
LAG = "lag"
NOTHING = "nothing"

RETENTION_MS = 7 * 86_400_000  # offsets.retention.minutes by default (KIP-186)
_DAY_MS = 86_400_000
_ONGOING = "Ongoing"
_PREPARED = ("PrepareCommit", "PrepareAbort")

TransactionalId = dict[str, Any]
"""A row of the table transactional_ids, with ``start_timestamp_ms`` and ``last_update_timestamp_ms``."""


class Cause(NamedTuple):
    """A code, the offset at which consumers are, and a sentence without the name of the partition."""

    code: str
    position: int | None
    text: str


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that is open in a partition.

    Attributes
    ----------
    producer_id, producer_epoch, coordinator_epoch : int
        Epochs are -1 where unknown.
    first_offset : int
    last_timestamp : int
        Of the last batch of its producer, in milliseconds; -1 where unknown.
    known : dict or None
        The transactional id with this producer.
    hanging : str or None
        Why no coordinator will end it, None when one will.
    has_coordinator : bool
        Whether ``__transaction_state`` was there to look it up.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int
    last_timestamp: int
    known: TransactionalId | None = None
    hanging: str | None = None
    has_coordinator: bool = False

    @property
    def code(self) -> str:
        """Its code as a cause."""
        return HANGING_TRANSACTION if self.hanging is not None and self.has_coordinator else OPEN_TRANSACTION

    @property
    def transactional_id(self) -> str | None:
        """The transactional id, where a coordinator knows it."""
        return None if self.known is None else self.known["transactional_id"]

    @property
    def ends_at(self) -> int | None:
        """When its coordinator aborts it for its timeout, in milliseconds; None where no coordinator does."""
        known = self.known
        if self.hanging is not None or known is None or known["status"] != _ONGOING:
            return None
        start: int | None = known["start_timestamp_ms"]
        return None if start is None or start < 0 else start + known["timeout_ms"]

    @property
    def silent_since(self) -> int | None:
        """When its producer last wrote, or the coordinator last heard of it, in milliseconds; None where unknown."""
        heard = -1 if self.hanging is not None or self.known is None else self.known["last_update_timestamp_ms"]
        last = max(self.last_timestamp, -1 if heard is None else heard)
        return None if last < 0 else last

    @property
    def text(self) -> str:
        """Who it is of, since when that one has been silent, and how it will end."""
        epoch = f", epoch {self.producer_epoch}" if self.producer_epoch >= 0 else ""
        silent = "" if self.silent_since is None else f", silent since {moment(self.silent_since)}"
        who = "a transaction" if self.known is None else f"{self.transactional_id}"
        return f"{who} (producer {self.producer_id}{epoch}{silent}; {self._end})"

    @property
    def _end(self) -> str:
        if not self.has_coordinator:
            return f"whether a coordinator will end it is not known without {TRANSACTION_STATE}"
        if self.hanging is not None:
            return f"it does not end by itself: {self.hanging}"
        assert self.known is not None
        if self.known["status"] in _PREPARED:
            return f"{self.known['status']} is decided: the coordinator writes the missing marker when it runs"
        if self.ends_at is None:
            return f"its state is {self.known['status']}"
        return f"it ends by itself at {moment(self.ends_at)}"


@dataclass(frozen=True)
class LogState:
    """The state of the log of a partition; offsets are None where they cannot be read.

    Attributes
    ----------
    start, end, stable : int or None
        Log start offset, log end offset and last stable offset.
    leader : int or None
        As a metadata log has it: -1 is none, None is not known.
    opened : OpenTransaction or None
        The one that begins at the last stable offset.
    fault : Fault or None
        What a consumer meets next, as a batch that it cannot read.
    """

    start: int | None
    end: int | None
    stable: int | None
    leader: int | None = None
    opened: OpenTransaction | None = None
    fault: Fault | None = None


@dataclass(frozen=True)
class GroupState:
    """The state of a group in a partition.

    Attributes
    ----------
    name : str
    current : int or None
        The committed offset.
    committed_at, newest_commit : int or None
        When that was, and the newest commit of any group, in milliseconds.
    pending_producer : int or None
        The producer of the transaction that a commit waits for.
    member : dict
        The member that has the partition, as the table ``groups`` has it.
    has_members : bool
        Whether the group has any.
    is_at_stable : bool
        Whether no record lies between the committed and the last stable offset.
    """

    name: str
    current: int | None = None
    committed_at: int | None = None
    newest_commit: int | None = None
    pending_producer: int | None = None
    member: dict[str, Any] = field(default_factory=dict)
    has_members: bool = False
    is_at_stable: bool = False

    @property
    def who(self) -> str:
        """Who reads the partition."""
        if not self.member:
            return "another member has" if self.has_members else "the group has no members"
        client, host = self.member.get("client_id"), self.member.get("client_host")
        of = ", ".join(text for text in (client and f"client {client}", host and f"host {host}") if text)
        return f"member {self.member['member_id']}{f' ({of})' if of else ''}"


def cause_of(log: LogState | None, group: GroupState | None = None) -> Cause:
    """Return why a consumer waits: the first reason that holds, those that stop all consumers first.

    Parameters
    ----------
    log : LogState or None
        None where the log of the partition is not among the files.
    group : GroupState or None
        None for any consumer that has read up to where it stops.

    Examples
    --------
    >>> from kraftlog.tables.causes import GroupState, LogState, cause_of
    >>> cause_of(LogState(0, 80, 80), GroupState("billing", 75))
    Cause(code='no_member', position=75, text='group billing is 5 records behind at 75, and has no members')
    """
    current = None if group is None else group.current
    of = "" if group is None else f"group {group.name} "
    if log is None:
        return Cause(NO_LOG, current, f"{of or 'a consumer '}cannot be compared: no log of it among the files")
    if log.leader is not None and log.leader < 0:
        return Cause(NO_LEADER, current, "no consumer gets anything: the partition has no leader")
    if log.start is None or log.end is None or log.stable is None:
        return Cause(UNREADABLE_LOG, current, "where consumers stop is not known: the log cannot be read to its end")
    if group is None:
        return _of_all(log, log.stable)
    return _of_group(log, group, log.start, log.end, log.stable)


def _of_all(log: LogState, stable: int) -> Cause:
    if log.fault is not None:
        text = f"consumers stop where the log is damaged: {log.fault.message}"
        return Cause(CORRUPT_BATCH, log.fault.base_offset, text)
    if log.opened is not None:
        return Cause(log.opened.code, stable, f"read_committed consumers wait at {stable} for {log.opened.text}")
    return Cause(NOTHING, stable, f"nothing holds consumers back: they read up to the end, {stable}")


def _of_group(log: LogState, group: GroupState, start: int, end: int, stable: int) -> Cause:
    current, name = group.current, f"group {group.name}"
    if group.pending_producer is not None:
        text = f"{name} waits for producer {group.pending_producer}, whose open transaction commits its offset"
        return Cause(PENDING_COMMIT, current, text)
    if current is None:
        text = f"{name} has committed nothing: {group.who} starts where auto.offset.reset says"
        return Cause(NO_COMMIT, None, text)
    if current < start:
        text = (
            f"{name} has committed {current}, and the log starts at {start}: auto.offset.reset decides where it goes on"
        )
        return Cause(BEFORE_LOG_START, current, text)
    if current > end:
        text = f"{name} has committed {current}, and the log ends at {end}: auto.offset.reset decides where it goes on"
        return Cause(BEHIND_LOG_END, current, text)
    if log.fault is not None:
        return Cause(CORRUPT_BATCH, current, f"{name} cannot read on at {current}: {log.fault.message}")
    nobody = "" if group.has_members else ", and has no members"
    if log.opened is not None and group.is_at_stable and current <= stable:
        text = f"{name} waits at {current}, if it is read_committed, for {log.opened.text}{nobody}"
        return Cause(log.opened.code, current, text)
    if not group.has_members and group.committed_at is not None and group.newest_commit is not None:
        age = group.newest_commit - group.committed_at
        if age > RETENTION_MS:
            text = (
                f"{name} has no members, and has committed {current} {age // _DAY_MS} days before the newest commit:"
                " its coordinator deletes that after offsets.retention.minutes, by default 7 days"
            )
            return Cause(EXPIRED_COMMIT, current, text)
    if current == end:
        return Cause(NOTHING, current, f"{name} has read everything up to the end, {end}{nobody}")
    behind = f"{name} is {counted(end - current)} behind at {current}"
    if not group.has_members:
        return Cause(NO_MEMBER, current, f"{behind}{nobody}")
    stops = f"; read_committed consumers stop at {stable} for {log.opened.text}" if log.opened is not None else ""
    if not group.member:
        return Cause(NO_MEMBER, current, f"{behind}, and none of its members has the partition{stops}")
    return Cause(LAG, current, f"{behind}; {group.who} has the partition{stops}")


def counted(records: int) -> str:
    """Return a number of records in words."""
    return "1 record" if records == 1 else f"{records} records"


def moment(milliseconds: int) -> str:
    """Return a time in UTC, for a sentence.

    Examples
    --------
    >>> from kraftlog.tables.causes import moment
    >>> moment(1_704_067_200_000)
    '2024-01-01 00:00:00 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
