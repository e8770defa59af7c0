"""Markers that an election lost: the coordinator has ended a transaction, and the partition still has it open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kraftlog._native.scanner import CONTROL_BIT, HEADER_DTYPE, TIMESTAMP_TYPE_BIT
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.audit.loss_ledger import LostHistory, has_leader, intact_from, lost_histories
from kraftlog.audit.producer_logs import ProducerLog
from kraftlog.audit.replicas import name_of
from kraftlog.audit.transactions import opened_as
from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.layout.names import printable
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Partition, Replica
from kraftlog.tables.causes import moment
from kraftlog.topics import TopicPartition
from kraftlog.transactions.producer import ABORTED as ABORT
from kraftlog.transactions.producer import COMMITTED as COMMIT
from kraftlog.transactions.transaction import (
    ABORTED,
    CLOCKS_DIFFER_MS,
    COMMITTED,
    MISSING,
    NONE,
    OPEN,
    CoordinatorTransaction,
    Part,
    Transaction,
)

_DECISIONS = {COMMIT: COMMITTED, ABORT: ABORTED}
_MARKERS = {COMMITTED: "COMMIT", ABORTED: "ABORT"}
_PRECONDITION = (
    "A metadata log names the leader. __transaction_state is among the files, and no coordinator has the partition in"
    " its transaction: nobody writes the marker again. No offset of the leader's log is missing from the first record"
    " of the transaction on, and none of them is its marker. Either another replica, which has the same history up to a"
    " later offset, has the marker, and the coordinator had completed the transaction, as the producer wrote its next"
    " one. Or __transaction_state says that it had, under an epoch that no other transaction has, and ten seconds later"
    " a broker set a time in the log of the partition."
)

COMMIT_MARKER_LOST = FindingCode(
    "commit_marker_lost",
    Severity.ERROR,
    "The transaction was committed, but no read_committed consumer gets these records or any later ones: the last"
    " stable offset is stuck. Save the records before kafka-transactions.sh aborts the transaction, as kraftlog hanging"
    " shows.",
    _PRECONDITION,
)
ABORT_MARKER_LOST = FindingCode(
    "abort_marker_lost",
    Severity.WARNING,
    "The transaction was aborted, but read_committed consumers wait for its end: the last stable offset is stuck until"
    " kafka-transactions.sh aborts it again, as kraftlog hanging shows.",
    _PRECONDITION,
)


def lost_markers(evidence: Evidence) -> Iterator[Finding]:
    """Return the transactions that are open, and whose marker is gone."""
    for partition in evidence.lines.partitions:
        of = partition.segments[0].topic_partition
        log = None if of is None else evidence.producer_logs.logs.get(of)
        parts = None if of is None else evidence.producer_logs.parts.get(of)
        if log is not None and parts is not None:
            is_led = has_leader(partition, evidence.lines)
            is_led &= partition.line.node_id == evidence.lines.leader_of(partition)
            unended = [one for one in parts.parts if is_led and one[0].state in (OPEN, MISSING)]
            hanging = [one for one in unended if _is_left_by_coordinators(evidence, log, one[0])]
            if hanging:
                yield from _OpenLog(evidence, partition, log, hanging).findings()


def _is_left_by_coordinators(evidence: Evidence, log: ProducerLog, part: Part) -> bool:
    """Whether no coordinator will write a marker for a part."""
    opened = opened_as(evidence, log, part)
    return opened.has_coordinator and opened.hanging is not None


class _Batches(NamedTuple):
    """Batches of some producers in a replica, up to the first offset that is missing.

    Attributes
    ----------
    headers : Headers
    end_offset : int
    broker_time : int
        The largest time that a broker set in any batch, in milliseconds; -1 without one.
    """

    headers: Headers
    end_offset: int
    broker_time: int

    @classmethod
    def of(cls, replica: Replica, start_offset: int, producers: Sequence[int], read: Pass) -> _Batches:
        """Read the batches from an offset on."""
        blocks, end_offset, broker_time = [np.empty(0, HEADER_DTYPE)], start_offset, NO_TIMESTAMP
        for headers in intact_from(replica, start_offset, read):
            ends = last_offsets(headers) + 1
            follows = np.logical_and.accumulate(headers["base_offset"] == np.append(end_offset, ends[:-1]))
            taken = headers[follows]
            if len(taken):
                end_offset = int(ends[follows][-1])
            of_broker = (taken["attributes"] & TIMESTAMP_TYPE_BIT != 0) | (taken["control_type"] >= 0)
            broker_time = max(broker_time, int(taken["max_timestamp"][of_broker].max(initial=NO_TIMESTAMP)))
            blocks.append(taken[np.isin(taken["producer_id"], producers)])
            if not follows.all():
                break
        return cls(np.concatenate(blocks), end_offset, broker_time)

    def data_of(self, part: Part) -> Headers:
        """Return the batches of the producer of a part that are no markers."""
        is_data = self.headers["attributes"] & CONTROL_BIT == 0
        data: Headers = self.headers[(self.headers["producer_id"] == part.producer_id) & is_data]
        return data

    def marker_of(self, part: Part) -> np.void | None:
        """Return the marker that ends a part; None without one, or if it may be that of another transaction."""
        is_own = self.headers["producer_id"] == part.producer_id
        markers = np.flatnonzero(is_own & np.isin(self.headers["control_type"], list(_DECISIONS)))
        if not len(markers):
            return None
        marker = self.headers[markers[0]]
        before = self.headers[: markers[0]][is_own[: markers[0]]]
        is_same = bool((before["producer_epoch"] == part.data_epoch).all())
        return marker if is_same and marker["producer_epoch"] >= part.data_epoch else None


class _OpenLog:
    """The line of a partition, with transactions that no coordinator will end."""

    def __init__(
        self, evidence: Evidence, partition: Partition, log: ProducerLog, hanging: list[tuple[Part, Transaction]]
    ) -> None:
        self._evidence = evidence
        self._log = log
        self._hanging = hanging
        read, lines = evidence.read.apart(), evidence.lines  # other checks have the faults
        producers = [part.producer_id for part, _ in hanging]
        first_offset = min(part.first_offset for part, _ in hanging)
        self._own = _Batches.of(partition.line, first_offset, producers, read)
        self._is_sound = self._own.end_offset == partition.line.end.end_offset
        histories = lost_histories(partition, lines) if self._is_sound else ()
        self._lost = [(one, _Batches.of(one.replica, one.parts_at, producers, read)) for one in histories]

    def findings(self) -> Iterator[Finding]:
        """Return the transactions whose marker is lost."""
        for part, transaction in self._hanging if self._is_sound else ():
            shown = (self._of_history(part, transaction, *one) for one in self._lost)
            finding = next((one for one in shown if one is not None), None) or self._of_coordinator(part, transaction)
            if finding is not None:
                yield finding

    def _of_history(
        self, part: Part, transaction: Transaction, history: LostHistory, batches: _Batches
    ) -> Finding | None:
        """Return a transaction whose marker another replica has."""
        marker = batches.marker_of(part) if part.first_offset < history.parts_at else None
        if marker is None:
            return None
        epoch, offset = int(marker["producer_epoch"]), int(marker["base_offset"])
        decision = _DECISIONS[int(marker["control_type"])]
        own, later = self._own.data_of(part), batches.data_of(part)
        common = own[own["base_offset"] < history.parts_at]
        if (common["producer_epoch"] != part.data_epoch).any():
            return None  # a marker is missing from both
        goes_on = bool((later["base_offset"] > offset).any())
        goes_on |= bool(((own["producer_epoch"] > part.data_epoch) & (own["producer_epoch"] >= epoch)).any())
        known = transaction.known
        is_same = known is not None and (known.epoch, known.decision) == (epoch, decision)
        if not (goes_on or (is_same and self._was_complete(part.of, known, batches.broker_time))):
            return None
        why = (
            f"{name_of(history.replica)} alone has the {_MARKERS[decision]} at offset {offset}, and parts from"
            f" {name_of(history.line)} at offset {history.parts_at}"
        )
        return self._finding(part, decision, history.parts_at, why, history.replica)

    def _of_coordinator(self, part: Part, transaction: Transaction) -> Finding | None:
        """Return a transaction that its coordinator has completed, and whose marker no replica has."""
        known = transaction.known
        if part.state != OPEN or known is None or not self._was_complete(part.of, known, NO_TIMESTAMP):
            return None  # the table transactions calls one torn whose log is there from offset 0 on
        decision = known.decision or COMMITTED
        why = (
            f"{known.transactional_id} had the {_MARKERS[decision]} written by {moment(known.completed_at)}, and the"
            f" log of the leader, with times up to {moment(self._log.broker_time)}, does not have it"
        )
        return self._finding(part, decision, self._own.end_offset, why)

    def _was_complete(self, of: TopicPartition, known: CoordinatorTransaction | None, broker_time: int) -> bool:
        """Whether a coordinator had all markers of a transaction before one of the logs was read.

        Files may be copied one after another: else a marker could have been written after the log was copied.
        """
        until = max(broker_time, self._log.broker_time)
        return (
            known is not None
            and known.is_complete
            and known.raises_epoch
            and known.may_have(of)
            and until > known.completed_at + CLOCKS_DIFFER_MS
        )

    def _finding(self, part: Part, decision: str, end_offset: int, why: str, replica: Replica | None = None) -> Finding:
        own = self._own.data_of(part)
        own = own[(own["producer_epoch"] == part.data_epoch) & (own["base_offset"] < end_offset)]
        own = own[own["base_offset"] >= part.first_offset]
        count, last_offset = int(own["records_count"].sum()), int(last_offsets(own).max(initial=NONE))
        records, are = ("1 record", "is") if count == 1 else (f"{count} records", "are")
        at = f"offset {last_offset}" if count == 1 else f"offsets {part.first_offset} to {last_offset}"
        known = f"producer {part.producer_id}: {records} at {at}, of epoch {part.data_epoch}, {are} {decision}: {why}"
        is_commit = decision == COMMITTED
        options = ("--start-offset", part.first_offset, "--end-offset", last_offset + 1) if is_commit else ()
        return Finding(
            COMMIT_MARKER_LOST if is_commit else ABORT_MARKER_LOST,
            known,
            *part.of,
            part.first_offset,
            None if replica is None else replica.node_id,
            None if replica is None else printable(str(replica.folder)),
            self._evidence.command("records" if is_commit else "hanging", part.of, *options),
        )
