"""Checks of committed offsets: against the logs that groups read, and against the transactions in them.

A read_committed consumer reads up to the last stable offset, the first offset of the earliest open transaction. An
offset that a transaction committed therefore proves that all transactions with records before it had ended. This holds
across partitions, without clocks; so does a contradiction between such proofs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.audit.producer_logs import PartsOfPartition, ProducerLog
from kraftlog.layout.names import LARGEST_OFFSET
from kraftlog.read.partitions import Partition
from kraftlog.tables.transactions import OffsetCommit, offset_commits
from kraftlog.topics import REPLAY_GROUP, TopicPartition
from kraftlog.transactions.cycles import cycles
from kraftlog.transactions.transaction import (
    CLOCKS_DIFFER_MS,
    COMMITTED,
    NONE,
    OPEN,
    ProducerIdAndEpoch,
    Transaction,
)

_SAME_TOPIC = (
    "The commit is the group's last one, without a tombstone after it; if it names a topic id, the log has it."
)
LOST_OFFSET = FindingCode(
    "committed_offset_lost",
    Severity.ERROR,
    "A group read records that its log no longer has: the log was truncated, restored from an older copy, or deleted"
    " and created again.",
    f"{_SAME_TOPIC} The log has data of a later leader epoch, or a marker written more than ten seconds after the"
    " commit, before the committed offset.",
)
BEHIND_LOG_END = FindingCode(
    "committed_offset_behind_log_end",
    Severity.WARNING,
    "A group has committed an offset that its log does not reach: auto.offset.reset decides where it goes on.",
    f"{_SAME_TOPIC} A broker closed both logs together, and the metadata log says that its replica is in sync.",
)
BEFORE_LOG_START = FindingCode(
    "committed_offset_before_log_start",
    Severity.NOTE,
    "Records were deleted before the group had read them, or it no longer exists.",
    _SAME_TOPIC,
)
COMMIT_BACK = FindingCode(
    "commit_goes_back",
    Severity.NOTE,
    "A group committed a smaller offset than before, and read records again: it was reset, or two members had the"
    " partition.",
    "One of the two commits is outside of transactions, with no tombstone between them.",
)
TRANSACTIONAL_COMMIT_BACK = FindingCode(
    "transactional_commit_goes_back",
    Severity.WARNING,
    "A group processed records twice in transactions that were both committed, so that its output has them twice.",
    "Both commits are of committed transactions, with no other commit and no tombstone between them.",
)
PRECOMMITTED_READ = FindingCode(
    "precommitted_read",
    Severity.ERROR,
    "A transaction read what it wrote itself, before it was committed: its consumer is not read_committed (Jepsen:"
    " precommitted-read).",
    "The transaction is committed; it has a record before the offset that it committed.",
)
UNSTABLE_READ = FindingCode(
    "read_beyond_last_stable_offset",
    Severity.ERROR,
    "A transaction read records of another one that had not ended, and may have been aborted: its consumer is not"
    " read_committed (Jepsen: G1a).",
    "The transaction is committed. By the clocks of brokers, the other one began before the offset was committed, and"
    " was still open ten seconds later.",
)
TRANSACTION_CYCLE = FindingCode(
    "transaction_cycle",
    Severity.ERROR,
    "Committed transactions read each other's records before these were committed: no order of them explains what they"
    " read (Jepsen: G1c).",
    "The transactions are committed; each has a record before an offset that another one committed.",
)


class _Last(NamedTuple):
    """The last effective commit of a group in a partition."""

    commit: OffsetCommit
    is_transactional: bool


class _Read(NamedTuple):
    """That a transaction committed an offset: all transactions with records before it had ended."""

    by: Transaction
    commit: OffsetCommit
    offset: int
    parts: PartsOfPartition
    transactions_before: int
    """How many transactions of the source have records before the offset."""


def committed_offsets(evidence: Evidence) -> Iterator[Finding]:
    """Return commits that contradict their logs, each other, or the transactions of their logs."""
    last: dict[tuple[str, TopicPartition], _Last] = {}
    back: dict[tuple[str, TopicPartition, bool], tuple[int, Finding]] = {}
    reads = list[_Read]()
    read = evidence.read.faults_only().apart()
    for commit in offset_commits(evidence.lines.found.segments, read):
        if commit.group.startswith(REPLAY_GROUP):
            continue  # offsets of the log that was replayed
        by = _transaction_of(evidence, commit)
        if by is None and commit.producer_id >= 0:
            continue
        if by is not None and (by.decision != COMMITTED or by.contradiction() is not None):
            continue
        key = commit.group, commit.source
        before = last.pop(key, None)
        if commit.offset is None:
            continue
        last[key] = _Last(commit, by is not None)
        if before is not None and before.commit.offset is not None and commit.offset < before.commit.offset:
            is_transactional = by is not None and before.is_transactional
            count, finding = back.get(
                (*key, is_transactional), (0, _back(evidence, before.commit, commit, is_transactional))
            )
            back[*key, is_transactional] = count + 1, finding
        if by is not None:
            reads += _reads(evidence, by, commit, commit.offset)
    evidence.read.add(*(fault for fault in read.faults if fault not in evidence.read.faults))
    if read.faults:
        return  # a tombstone or a commit may be missing
    for count, finding in back.values():
        known = finding.known if count == 1 else f"{finding.known}; {count} times in all"
        yield finding._replace(known=known)
    yield from _outside(evidence, (one.commit for one in last.values()))
    yield from _precommitted(evidence, reads)
    yield from _unstable(evidence, reads)
    yield from _cycles(evidence, reads)


def _transaction_of(evidence: Evidence, commit: OffsetCommit) -> Transaction | None:
    """Return the transaction of a commit; None outside of transactions."""
    parts = evidence.producer_logs.parts.get(commit.of)
    holding = None if parts is None or commit.producer_id < 0 else parts.holding(commit.producer_id, commit.at)
    return None if holding is None else holding[1]


def _back(evidence: Evidence, before: OffsetCommit, commit: OffsetCommit, is_transactional: bool) -> Finding:
    known = f"group {commit.group} committed offset {commit.offset} after {before.offset}, at offset {commit.at} of "
    code = TRANSACTIONAL_COMMIT_BACK if is_transactional else COMMIT_BACK
    return _finding(evidence, code, commit, f"{known}{commit.of}")


def _reads(evidence: Evidence, by: Transaction, commit: OffsetCommit, offset: int) -> Iterator[_Read]:
    parts = evidence.producer_logs.parts.get(commit.source)
    log = evidence.producer_logs.logs.get(commit.source)
    if parts is not None and log is not None and log.is_sound and _is_of(evidence, commit):
        time = NONE if commit.commit_timestamp is None else commit.commit_timestamp
        count = parts.before(offset, time + CLOCKS_DIFFER_MS)
        if count:
            yield _Read(by, commit, offset, parts, count)


def _is_of(evidence: Evidence, commit: OffsetCommit) -> bool:
    """Return whether the log of the source can be that of the topic that a commit names."""
    partition = _partition(evidence, commit.source)
    topic_id = None if partition is None else partition.line.topic_id
    return topic_id is None or commit.topic_id in (None, _NO_TOPIC_ID, topic_id)


_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def _partition(evidence: Evidence, of: TopicPartition) -> Partition | None:
    log = evidence.producer_logs.logs.get(of)
    return None if log is None else evidence.lines.partition_of(log.segments[0])


def _outside(evidence: Evidence, commits: Iterable[OffsetCommit]) -> Iterator[Finding]:
    """Return the last commits of groups that lie outside of their logs."""
    for commit in commits:
        log, offset = evidence.producer_logs.logs.get(commit.source), commit.offset
        if log is None or offset is None or not log.is_sound or not _is_of(evidence, commit):
            continue
        group = f"group {commit.group} has committed {offset}"
        lost = _why_lost(evidence, log, commit, offset)
        start = max(log.segments[0].log_start_offset, log.segments[0].base_offset or 0)
        if lost:
            yield _finding(evidence, LOST_OFFSET, commit, f"{group}, {lost}")
        elif offset > log.end_offset and _is_final(evidence, log, commit):
            yield _finding(evidence, BEHIND_LOG_END, commit, f"{group}, and the log ends at {log.end_offset}")
        elif offset < start:
            yield _finding(evidence, BEFORE_LOG_START, commit, f"{group}, and the log starts at {start}")


def _why_lost(evidence: Evidence, log: ProducerLog, commit: OffsetCommit, offset: int) -> str:
    """Return what proves that a log is not the one that a group read; empty where nothing does."""
    parts = evidence.producer_logs.parts.get(log.of)
    epoch = commit.leader_epoch
    if epoch is not None and epoch >= 0:
        # a consumer's epoch is that of the last record that it read: it skips markers and aborted records
        later = next((one for one in log.epochs if one.epoch > epoch), None)
        if later is not None and later.last_offset < offset:
            holding = None if parts is None else parts.holding(later.producer_id, later.base_offset)
            if holding is None or holding[0].state == COMMITTED:
                return (
                    f"read in leader epoch {epoch}; in the log the records from offset {later.base_offset} on are of "
                    f"epoch {later.epoch}"
                )
    if commit.commit_timestamp is None or commit.commit_timestamp < 0:
        return ""
    written = log.broker_time if offset > log.end_offset else NONE
    written = max(written, NONE if parts is None else parts.marker_time_before(offset))
    if written > commit.commit_timestamp + CLOCKS_DIFFER_MS:
        ms = written - commit.commit_timestamp
        return f"and a broker wrote to the log before this offset {ms} ms after the commit"
    return ""


def _is_final(evidence: Evidence, log: ProducerLog, commit: OffsetCommit) -> bool:
    """Return whether a log and that of the commit were closed together, by a broker with an in-sync replica."""
    partition, of_commit = _partition(evidence, log.of), evidence.producer_logs.logs.get(commit.of)
    if partition is None or of_commit is None:
        return False
    lasts = log.segments[-1], of_commit.segments[-1]
    in_sync = evidence.lines.isr_of(partition)
    return (
        all(last.settled_offset == LARGEST_OFFSET and not last.stored for last in lasts)
        and lasts[0].folder.parent == lasts[1].folder.parent
        and in_sync is not None
        and partition.line.node_id in in_sync
    )


def _precommitted(evidence: Evidence, reads: list[_Read]) -> Iterator[Finding]:
    """Return transactions that committed an offset behind their own first record."""
    for read in reads:
        own = [part for part in read.by.parts if part.of == read.commit.source and part.first_offset != NONE]
        first = min((part.first_offset for part in own), default=read.offset)
        if first < read.offset:
            known = f"{_name(read.by)} wrote offset {first} and committed {read.offset} for group {read.commit.group}"
            yield _finding(evidence, PRECOMMITTED_READ, read.commit, known)


def _unstable(evidence: Evidence, reads: list[_Read]) -> Iterator[Finding]:
    """Return transactions that committed an offset before another one, with records before it, had ended."""
    for read in reads:
        part, committed_at = read.parts.last_to_end(read.transactions_before), read.commit.commit_timestamp
        if part is None or committed_at is None or part in read.by.parts:
            continue
        log = evidence.producer_logs.logs[read.commit.source]
        ended_at = log.broker_time if part.state == OPEN else part.marker_timestamp
        if ended_at > committed_at + CLOCKS_DIFFER_MS:
            state = "still open" if part.state == OPEN else f"{part.state} only"
            known = (
                f"{_name(read.by)} committed {read.offset} for group {read.commit.group}; producer {part.producer_id}'s"
                f" transaction from offset {part.first_offset} on was {state} {ended_at - committed_at} ms later"
            )
            yield _finding(evidence, UNSTABLE_READ, read.commit, known)


def _cycles(evidence: Evidence, reads: list[_Read]) -> Iterator[Finding]:
    """Return groups of transactions of which each had to end before the others.

    A node stands for a transaction, or for the first transactions of a partition: it follows them, and the node of one
    transaction less. A transaction that committed an offset follows the node of those with records before the offset.
    """
    if all(read.by.decided_at > read.parts.last_decision(read.transactions_before) for read in reads):
        return  # the times of the decisions are an order
    following: dict[object, list[object]] = defaultdict(list)
    transactions: dict[int, Transaction] = {}
    counts: dict[int, tuple[_Read, int]] = {}
    for read in reads:
        own = id(read.by)
        transactions[own] = read.by
        following[id(read.parts), read.transactions_before].append(own)
        if counts.get(id(read.parts), (read, 0))[1] < read.transactions_before:
            counts[id(read.parts)] = read, read.transactions_before
    for source, (read, most) in counts.items():
        for count, (_, transaction) in enumerate(read.parts.parts[:most], 1):
            following[id(transaction)].append((source, count))
        for before, after in pairwise(range(1, most + 1)):
            following[source, before].append((source, after))
    for some in cycles(following):
        ones = {node for node in some if isinstance(node, int) and node in transactions}
        inside = [
            read for read in reads if id(read.by) in ones and (id(read.parts), read.transactions_before) in set(some)
        ]
        if len(ones) > 1:
            first = min(inside, key=lambda read: (read.commit.source, read.offset))
            each = (transactions[node] for node in ones)
            names = sorted({ProducerIdAndEpoch(one.producer_id, one.producer_epoch) for one in each})
            listed = ", ".join(str(one) for one in names[:5]) + (", ..." if len(names) > 5 else "")
            known = f"transactions {listed} read each other's records; {_name(first.by)} committed {first.offset}"
            yield _finding(evidence, TRANSACTION_CYCLE, first.commit, f"{known} for group {first.commit.group}")


def _name(one: Transaction) -> str:
    return f"transaction {one.producer_id}:{one.producer_epoch}"


def _finding(evidence: Evidence, code: FindingCode, commit: OffsetCommit, known: str) -> Finding:
    shown = evidence.from_offset("messages", commit.of, commit.at)
    return Finding(code, known, *commit.source, commit.offset, next_command=shown)
