"""Checks of transactions: against each other, against their coordinators, and those that are open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.audit.producer_logs import ProducerLog
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.tables.causes import OpenTransaction
from kraftlog.topics import TRANSACTION_STATE, TopicPartition
from kraftlog.transactions import sequences
from kraftlog.transactions.producer_state import ProducerState
from kraftlog.transactions.transaction import (
    ABORTED,
    CLOCKS_DIFFER_MS,
    MISSING,
    NONE,
    OPEN,
    CoordinatorTransaction,
    Part,
    Transaction,
)

LONGEST_TRANSACTION_MS = 900_000
"""transaction.max.timeout.ms by default, and the time within which files are taken to be copied."""

_TORN_COLUMNS = "transactional_id,producer_id,producer_epoch,state,contradiction"

TORN_TRANSACTION = FindingCode(
    "torn_transaction",
    Severity.ERROR,
    "Some partitions of a transaction committed it and others did not, so that a consumer sees a part of it.",
    "The transaction is identified by its marker epoch or by __transaction_state.",
)
_WHOLE_COORDINATORS = (
    "The files of __transaction_state have all offsets from 0 on and go on after the marker; they have a transaction of"
    " the producer id that began before it and has the topic: otherwise the topic was copied from another cluster, or"
    " under another name."
)
COMMIT_WITHOUT_DECISION = FindingCode(
    "commit_without_decision",
    Severity.ERROR,
    "A transaction was committed in a partition without its coordinator: the marker, or the coordinator's record, is"
    " not what the cluster wrote.",
    _WHOLE_COORDINATORS,
)
ABORT_WITHOUT_DECISION = FindingCode(
    "abort_without_decision",
    Severity.NOTE,
    "An administrator aborted a transaction (kafka-transactions.sh abort).",
    _WHOLE_COORDINATORS,
)
_OTHER_MARKER = (
    _WHOLE_COORDINATORS + " They have the decision of the transaction with the epoch of the batches, and that of a"
    " later one, which has the partition and the marker. The log has no earlier marker for batches of this epoch."
)
ENDED_BY_WRONG_MARKER = FindingCode(
    "ended_by_wrong_marker",
    Severity.ERROR,
    "An election lost the marker of a transaction, and that of a later one of the same producer ended it the other way:"
    " committed records are aborted, or aborted ones are visible.",
    _OTHER_MARKER,
)
ENDED_BY_LATER_MARKER = FindingCode(
    "ended_by_later_marker",
    Severity.NOTE,
    "An election lost the marker of a transaction, and that of a later one of the same producer ended it.",
    _OTHER_MARKER,
)
MARKER_WITHOUT_RECORDS = FindingCode(
    "marker_without_records",
    Severity.NOTE,
    "A marker ends a transaction that has no record in the partition: a coordinator wrote it again, or the producer"
    " added the partition and wrote nothing.",
    "The log of the partition has all offsets from 0 on; its coordinator does not list the partition.",
)
MARKER_EPOCH_BACK = FindingCode(
    "marker_epoch_goes_back",
    Severity.ERROR,
    "A marker of an older epoch ended a transaction, or came after it: a coordinator that was replaced wrote it.",
    "The producer wrote within the last day, so that the broker still had its epoch, or its transaction was open.",
    (sequences.BAD_PRODUCER_EPOCH,),
)
COORDINATOR_EPOCH_BACK = FindingCode(
    "coordinator_epoch_goes_back",
    Severity.WARNING,
    "A coordinator that was replaced wrote a marker after its successor had.",
    "Two markers of one producer in one partition, less than a day apart.",
    (sequences.BAD_COORDINATOR_EPOCH,),
)
ODD_TRANSITION = FindingCode(
    "coordinator_state_goes_back",
    Severity.WARNING,
    "A record of __transaction_state does not follow from the one before it: two coordinators wrote, or a record"
    " between them is lost.",
    "Both records of the transactional id are in the log, without damage. The record does not follow from an earlier"
    " one either, with which a coordinator goes on if the replicas do not have the next one in time.",
)
HANGING_TRANSACTION = FindingCode(
    "hanging_transaction",
    Severity.WARNING,
    "The last stable offset is stuck: no coordinator will end the transaction, so that read_committed consumers wait,"
    " and neither cleaning nor deletion goes on.",
    "__transaction_state has the producer id. A broker wrote something fifteen minutes after the transaction began, by"
    " the time of a later marker in the partition.",
)
OVERDUE_TRANSACTION = FindingCode(
    "overdue_transaction",
    Severity.WARNING,
    "The last stable offset is stuck: the coordinator should have ended the transaction, or written the marker of its"
    " decision; its partition may have no leader.",
    "A broker wrote something fifteen minutes after the transaction's timeout or decision.",
)
OPEN_TRANSACTION = FindingCode(
    "open_transaction",
    Severity.NOTE,
    "read_committed consumers wait for the transaction.",
    "None.",
)


def torn_transactions(evidence: Evidence) -> Iterator[Finding]:
    """Return transactions whose partitions, or whose coordinator, contradict each other."""
    for one in evidence.producer_logs.transactions:
        contradiction = one.contradiction()
        if contradiction is not None:
            part, what = contradiction
            offset = part.marker_offset if part.has_ended else part.first_offset
            known = f"{_name(one)}: {what}"
            shown = evidence.command("transactions", None, "--columns", _TORN_COLUMNS)
            at = None if offset == NONE else offset
            yield Finding(TORN_TRANSACTION, known, *part.of, at, next_command=shown)


def markers_without_decision(evidence: Evidence) -> Iterator[Finding]:
    """Return markers of transactions that their coordinator did not decide, or not in the partition."""
    logs = evidence.producer_logs.logs
    of_coordinators = [log for of, log in logs.items() if of.topic == TRANSACTION_STATE]
    if not of_coordinators or not all(log.is_whole for log in of_coordinators):
        return
    goes_on_until = max(log.broker_time for log in of_coordinators)
    decided: dict[tuple[int, int], list[CoordinatorTransaction]] = defaultdict(list)
    greatest_epochs: dict[int, int] = {}
    for each in evidence.coordinator_transactions:
        decided[each.producer_id, each.epoch].append(each)
        greatest_epochs[each.producer_id] = max(each.epoch, greatest_epochs.get(each.producer_id, NONE))
    last_known = _last_known_markers(evidence.producer_logs.transactions)
    for one in evidence.producer_logs.transactions:
        for part in one.parts if one.producer_id in greatest_epochs else ():
            if not part.has_ended:
                continue
            first = evidence.first_transactions.get((one.producer_id, part.of.topic))
            if first is None or part.marker_timestamp < first.start:
                continue  # of another cluster or topic, from which the partition was copied
            those = decided[one.producer_id, part.marker_epoch]
            ended = _ended_by_other(evidence, part, those)
            if ended is not None:
                code, why = ended
                what = f"{_name(one)}: a marker of epoch {part.marker_epoch} that {why}"
                yield _finding(evidence, code, part, part.first_offset, what)
                continue
            same = [each for each in those if each.may_end(part)]
            is_behind = greatest_epochs[one.producer_id] > part.marker_epoch
            is_behind |= last_known[one.producer_id, part.of] > part.marker_offset
            goes_on = is_behind or goes_on_until > part.marker_timestamp + CLOCKS_DIFFER_MS
            if goes_on and not any(each.may_have(part.of) for each in same):
                code = ABORT_WITHOUT_DECISION if part.state == ABORTED else COMMIT_WITHOUT_DECISION
                why = f"its transaction has not {part.of}" if same else "it decided no transaction of this epoch"
                known_ = (
                    f"{_name(one)}: a marker of epoch {part.marker_epoch} that its coordinator did not write: {why}"
                )
                yield _finding(evidence, code, part, part.marker_offset, known_)


def _ended_by_other(
    evidence: Evidence, part: Part, of_epoch: Sequence[CoordinatorTransaction]
) -> tuple[FindingCode, str] | None:
    """Return the description of a part that the marker of a later transaction ended; None for its own marker.

    Parameters
    ----------
    evidence : Evidence
    part : Part
    of_epoch : sequence of CoordinatorTransaction
        Those whose markers have the epoch of this one.
    """
    those = [each for each in of_epoch if each.may_have(part.of) and each.decision == part.state]
    if any(each.data_epoch == part.data_epoch for each in those):
        return None  # its own, though a later transaction of version 1 has the same epoch
    is_later = any(each.data_epoch is not None and each.data_epoch > part.data_epoch for each in those)
    if not is_later or _is_late(evidence, part):
        return None
    for own in evidence.coordinator_transactions:
        is_own = (own.producer_id, own.data_epoch) == (part.producer_id, part.data_epoch) and own.may_have(part.of)
        if is_own and own.decision is not None:
            code = ENDED_BY_LATER_MARKER if own.decision == part.state else ENDED_BY_WRONG_MARKER
            what = f"is of another transaction ended that of epoch {part.data_epoch}"
            return code, f"{what}, which its coordinator {own.decision}"
    return None  # the batches may be those of a producer that was fenced


def ended_by_others(evidence: Evidence) -> set[tuple[str | None, int | None, int | None]]:
    """Return topic, partition and first offset of the transactions that the marker of another one ended."""
    codes = (ENDED_BY_WRONG_MARKER, ENDED_BY_LATER_MARKER)
    each = (one for one in markers_without_decision(evidence) if one.code in codes)
    return {(one.topic, one.partition, one.offset) for one in each}


def _is_late(evidence: Evidence, part: Part) -> bool:
    """Whether batches come after the marker that ended the batches of their epoch: they are those of a zombie."""
    return any(
        (one.producer_id, one.data_epoch) == (part.producer_id, part.data_epoch)
        and one.has_ended
        and one.first_offset < part.first_offset
        for one, _ in evidence.producer_logs.parts[part.of].parts
    )


def _last_known_markers(transactions: Iterable[Transaction]) -> Mapping[tuple[int, TopicPartition], int]:
    """Return, by producer and partition, the offset of the last marker that a coordinator decided as it says."""
    last: dict[tuple[int, TopicPartition], int] = defaultdict(lambda: NONE)
    for one in transactions:
        for part in one.parts if one.known is not None and one.known.decision is not None else ():
            if part.has_ended and part.first_offset != NONE and part.state == one.decision:
                key = part.producer_id, part.of
                last[key] = max(part.marker_offset, last[key])
    return last


def markers_without_records(evidence: Evidence) -> Iterator[Finding]:
    """Return markers that end nothing."""
    for one in evidence.producer_logs.transactions:
        for part in one.parts:
            is_listed = one.known is not None and one.known.may_have(part.of)
            log = evidence.producer_logs.logs.get(part.of)
            if part.has_ended and part.first_offset == NONE and not is_listed and log is not None and log.is_whole:
                what = f"{_name(one)}: a marker without records before it"
                yield _finding(evidence, MARKER_WITHOUT_RECORDS, part, part.marker_offset, what)


def marker_epochs(evidence: Evidence) -> Iterator[Finding]:
    """Return markers of an older epoch of their producer or coordinator."""
    for log, _, odd in evidence.producer_logs.odd_batches():
        is_old = odd.is_marker and odd.error == sequences.BAD_PRODUCER_EPOCH
        if is_old or odd.error == sequences.BAD_COORDINATOR_EPOCH:
            code = MARKER_EPOCH_BACK if is_old else COORDINATOR_EPOCH_BACK
            shown = evidence.from_offset("batches", log.of, odd.base_offset)
            yield Finding(code, odd.what, *log.of, odd.base_offset, next_command=shown)


def coordinator_transitions(evidence: Evidence) -> Iterator[Finding]:
    """Return records of coordinators that do not follow from those before them."""
    for odd in evidence.coordinator_transitions.odd:
        shown = evidence.command("messages", odd.of)
        yield Finding(ODD_TRANSITION, odd.what, *odd.of, odd.offset, next_command=shown)


def open_transactions(evidence: Evidence) -> Iterator[Finding]:
    """Return the transactions that are open in a partition, and whether anyone will end them."""
    for of, parts in evidence.producer_logs.parts.items():
        log = evidence.producer_logs.logs.get(of)
        for part, _ in parts.parts if log is not None else ():
            if part.state not in (OPEN, MISSING) or log is None:
                continue
            opened = opened_as(evidence, log, part)
            written_before = parts.marker_time_after(part.first_offset)
            code = _code_of(opened, written_before, evidence.producer_logs.broker_time)
            waiting = f"{log.end_offset - part.first_offset} offsets from {part.first_offset} on wait for {opened.text}"
            yield _finding(evidence, code, part, part.first_offset, waiting, "why")


def opened_as(evidence: Evidence, log: ProducerLog, part: Part) -> OpenTransaction:
    """Return what coordinators say of a part that is open in the log of its partition."""
    state = ProducerState(part.producer_id, part.data_epoch, NONE, NONE, 0, NO_TIMESTAMP, NONE, part.first_offset)
    return evidence.coordinators.open_transaction(log.segments[0], state)


def _code_of(opened: OpenTransaction, written_before: int | None, broker_time: int) -> FindingCode:
    """Return the code of an open transaction.

    Parameters
    ----------
    opened : OpenTransaction
    written_before : int or None
        When its first record was in the log, by the clock of a broker; None where unknown.
    broker_time : int
        The largest time of a broker in the files.
    """
    before = broker_time - LONGEST_TRANSACTION_MS
    if opened.known is None:
        return OPEN_TRANSACTION
    if opened.hanging is not None:
        is_old = written_before is not None and written_before < before
        return HANGING_TRANSACTION if is_old else OPEN_TRANSACTION
    ends_at = opened.known["last_update_timestamp_ms"] if opened.ends_at is None else opened.ends_at
    return OVERDUE_TRANSACTION if ends_at is not None and ends_at < before else OPEN_TRANSACTION


def _name(one: Transaction) -> str:
    return f"transaction {one.producer_id}:{one.producer_epoch}"


def _finding(
    evidence: Evidence, code: FindingCode, part: Part, offset: int | None, known: str, shown: str = "transactions"
) -> Finding:
    return Finding(code, known, *part.of, offset, next_command=evidence.command(shown, part.of))
