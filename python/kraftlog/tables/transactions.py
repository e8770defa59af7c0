"""The table ``transactions``: each transaction over all its partitions, from headers and the coordinators' topics."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kraftlog.codec import header_columns
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.coordinator.transactional_ids import TRANSACTION_LOG
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.messages import typed_chunks
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.read.segment_end import end_fault
from kraftlog.read.segment_reader import scanned, segment_file
from kraftlog.stream import rows_of
from kraftlog.tables.coordinator_segments import coordinator_segments
from kraftlog.tables.coordinator_tables import OFFSET_COMMIT, partitions_of_topic
from kraftlog.tables.lines import line_segments
from kraftlog.tables.read import Read
from kraftlog.tables.transaction_tables import PartitionTransactions
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from kraftlog.transactions.producer import NONE, STATES, TRANSACTION_DTYPE, Transactions
from kraftlog.transactions.transaction import (
    CLOCKS_DIFFER_MS,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    CoordinatorLog,
    CoordinatorTransaction,
    Part,
    StateRecord,
    Transaction,
    joined,
)

TORN_TRANSACTION = "torn_transaction"
ROWS_AT_ONCE = 1 << 13

_OF_COMMIT = (
    "key_topic",
    "key_partition",
    "group",
    "value_offset",
    "leader_epoch",
    "commit_timestamp",
    "topic_id",
)
Commits = dict[tuple[TopicPartition, int], list[tuple[int, str, str, int, int]]]
"""By partition of ``__consumer_offsets`` and producer id: offset of the record, group, topic, partition and offset."""


def transaction_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table transactions."""
    whole = read.of_whole_log()
    others = whole.faults_only()
    segments = line_segments(read.files, read.notes, heals=read.options.heal)
    known = coordinator_transactions(read.files, others)
    found = transactions_of_segments(segments, known, whole)
    wants_offsets = "input_offsets" in read.schema.names
    commits = transactional_commits(segments, others) if wants_offsets else {}
    rows: list[Transaction] = []
    for transactions in found:
        rows += transactions
        if len(rows) >= ROWS_AT_ONCE:
            yield _columns(rows, commits, read.schema)
            rows = []
    if rows:
        yield _columns(rows, commits, read.schema)


def transactions_of_segments(
    segments: list[Segment],
    known: list[CoordinatorTransaction],
    read: Pass,
) -> Iterator[list[Transaction]]:
    """Return the transactions of each producer id.

    Parameters
    ----------
    segments : list of Segment
        Segments of one replica of each partition.
    known : list of CoordinatorTransaction
        The result of ``coordinator_transactions``.
    read : Pass
    """
    found = TransactionsOfLog()
    for group in by_partition(segments):
        if _has_transactions(group[0]):
            found.read(group, read)
    return found.transactions(known)


class TransactionCheck:
    """Finds torn transactions, from the headers of another pass.

    Parameters
    ----------
    segments : list of Segment
        Segments of one replica of each partition.
    files : Discovery
        Files of all replicas; their directories contain the coordinators.
    """

    def __init__(self, segments: list[Segment], files: Discovery) -> None:
        self._files = files
        self._wanted = {segment.path for segment in segments if _has_transactions(segment)}
        self._found = TransactionsOfLog()

    def observe(self, segment: Segment, unread: list[Fault], headers: Headers) -> None:
        """Add the next headers of a segment, and its faults."""
        if segment.path in self._wanted:
            self._found.observe(segment, unread, headers)

    def torn(self) -> Iterator[Fault]:
        """Return a fault for each torn transaction, at the partition with the unexpected marker."""
        known = coordinator_transactions(self._files, Pass())  # the other pass reports their faults
        for transactions in self._found.transactions(known):
            for one in transactions:
                contradiction = one.contradiction()
                if contradiction is not None:
                    part, what = contradiction
                    offset = part.marker_offset if part.has_ended else part.first_offset
                    at = None if offset == NONE else offset
                    yield Fault(
                        TORN_TRANSACTION,
                        f"{part.of}: {_name(one)} is torn: {what}",
                        base_offset=at,
                        topic=part.of.topic,
                        partition=part.of.partition,
                    )


def _has_transactions(segment: Segment) -> bool:
    is_live = not segment.state and segment.base_offset is not None and segment.topic_partition is not None
    return is_live and not is_metadata(segment)


def _name(one: Transaction) -> str:
    of = "" if one.transactional_id is None else f" of transactional id {one.transactional_id}"
    return f"transaction {one.producer_id}:{one.producer_epoch}{of}"


@dataclass
class _PartitionLog:
    """The headers of one partition's log.

    Attributes
    ----------
    is_whole : bool
        Whether it has all batches from offset 0 on, and all of them are readable.
    first_marker, last_marker : int or None
        The smallest and the largest time of a marker. Brokers set these times; clients may set any time in other
        batches.
    """

    of: TopicPartition
    fold: PartitionTransactions
    segment: Segment
    ended: list[Transactions] = field(default_factory=list)
    is_whole: bool = True
    is_unread: bool = False
    next_offset: int = 0
    first_marker: int | None = None
    last_marker: int | None = None

    def begin(self, segment: Segment | None) -> None:
        """Start the next segment; after an incompletely read segment its snapshot has the open transactions."""
        if self.is_unread:
            self.ended.append(self.fold.lose(segment, []))
            self.is_unread = self.is_whole = False
        if segment is not None:
            self.segment = segment

    def add(self, headers: Headers) -> None:
        """Add the next headers."""
        markers = headers["max_timestamp"][headers["control_type"] >= 0]
        if len(markers):
            first, last = int(markers.min()), int(markers.max())
            self.first_marker = first if self.first_marker is None else min(first, self.first_marker)
            self.last_marker = last if self.last_marker is None else max(last, self.last_marker)
        ends = last_offsets(headers) + 1
        begins = np.append(self.next_offset, ends[:-1])
        self.is_whole &= bool((headers["base_offset"] == begins).all() and (headers["crc_ok"] != 0).all())
        self.next_offset = int(ends[-1])
        self.ended.append(self.fold.add(headers))

    def holds(self, known: CoordinatorTransaction) -> bool:
        """Whether it has all records of a transaction, and continues after its end.

        Not true for a topic that was deleted and recreated, an older copy, or a lagging replica.
        """
        if not self.is_whole or self.first_marker is None or self.last_marker is None:
            return False
        begins_before = self.first_marker + CLOCKS_DIFFER_MS < known.decided_at
        return begins_before and known.completed_at + CLOCKS_DIFFER_MS < self.last_marker

    @property
    def rows(self) -> Transactions:
        """The transactions: ended ones, by marker, then open ones."""
        return np.concatenate([*self.ended, self.fold.open])


class TransactionsOfLog:
    """Reads the headers of partitions, and merges them into transactions."""

    def __init__(self) -> None:
        self._logs: dict[TopicPartition, _PartitionLog] = {}

    def read(
        self,
        group: list[Segment],
        read: Pass,
        also: Callable[[Segment, Headers], None] = lambda *_: None,
    ) -> None:
        """Read the headers of a partition, with each crc verified.

        ``also`` is called with each segment and its headers as well.
        """
        for segment in group:
            unread: list[Fault] = []
            self.observe(segment, [], None, read.faults)
            with segment_file(segment, unread, strict=False) as file:
                scan = HeaderScan(file, check_crc=True)
                for headers in scanned(segment, scan, unread):
                    self.observe(segment, [], headers)
                    also(segment, headers)
                at_end = end_fault(segment, scan, scan.faults, file)
                unread += [] if at_end is None else [at_end]
            self.observe(segment, unread, None)
            read.add(*unread)
            read.advance(segment.size)

    def observe(
        self, segment: Segment, unread: list[Fault], headers: Headers | None, faults: list[Fault] | None = None
    ) -> None:
        """Add the next headers of a segment, and its faults.

        Parameters
        ----------
        segment : Segment
        unread : list of Fault
        headers : numpy.ndarray or None
            Headers with verified crc.
        faults : list of Fault, optional
            Receives an unreadable snapshot.
        """
        of = segment.topic_partition
        if of is None:
            return
        log = self._logs.get(of)
        if log is None:
            log = _PartitionLog(of, PartitionTransactions(segment, [] if faults is None else faults), segment)
            self._logs[of] = log
        elif log.segment is not segment:
            log.begin(segment)
        if headers is not None and len(headers):
            log.add(headers)
        log.is_whole &= not unread
        log.is_unread |= any(fault.error == "unreadable_file" for fault in unread)

    def forget(self, of: TopicPartition) -> None:
        """Drop the headers of a partition, which will be read again."""
        self._logs.pop(of, None)

    def transactions(self, known: Iterable[CoordinatorTransaction]) -> Iterator[list[Transaction]]:
        """Return the transactions of each producer id; no headers can be added afterwards.

        Parameters
        ----------
        known : iterable of CoordinatorTransaction
        """
        by_producer: dict[int, list[CoordinatorTransaction]] = defaultdict(list)
        for one in known:
            by_producer[one.producer_id].append(one)
        logs = list(self._logs.values())
        for log in logs:
            log.begin(None)
        each = [log.rows for log in logs]
        rows = np.concatenate([_NO_ROWS, *each])
        places = np.repeat(np.arange(len(each)), [len(one) for one in each])
        order = np.argsort(rows["producer_id"], kind="stable")
        rows, places = rows[order], places[order]
        producers, starts = np.unique(rows["producer_id"], return_index=True)
        spans = dict(zip(producers.tolist(), pairwise([*starts.tolist(), len(rows)]), strict=True))

        def holds(of: TopicPartition, one: CoordinatorTransaction) -> bool:
            return self._logs[of].holds(one)

        for producer_id in sorted(spans.keys() | by_producer.keys()):
            span = slice(*spans.get(producer_id, (0, 0)))
            ofs = [logs[place].of for place in places[span].tolist()]
            parts = _parts(ofs, rows[span])
            yield joined(producer_id, parts, by_producer.get(producer_id, ()), self._logs, holds)


_NO_ROWS = np.empty(0, TRANSACTION_DTYPE)
_OF_PART = (
    "producer_id",
    "producer_epoch",
    "marker_epoch",
    "state",
    "first_offset",
    "last_offset",
    "marker_offset",
    "records_count",
    "start_timestamp",
    "end_timestamp",
)


def _parts(ofs: list[TopicPartition], rows: Transactions) -> list[Part]:
    columns = [rows[name].tolist() for name in _OF_PART]
    columns[3] = [STATES[state] for state in columns[3]]
    return [Part(of, *values) for of, *values in zip(ofs, *columns, strict=True)]


def coordinator_transactions(
    files: Discovery,
    read: Pass,
    also: Callable[[TopicPartition, int, StateRecord], None] = lambda *_: None,
    complete_until: Mapping[TopicPartition, int] | None = None,
) -> list[CoordinatorTransaction]:
    """Return the transactions in ``__transaction_state`` of the log directories of the files.

    Parameters
    ----------
    files : Discovery
        All replicas, including those of topics that were not requested.
    read : Pass
    also : callable
        Called with the partition and the offset of each record, and the record.
    complete_until : mapping of TopicPartition to int, optional
        Where the partitions of the topic ended before files of a live cluster were listed. Markers of a transaction
        that was completed later may be after the ends of these files, so that it does not count as complete.
    """
    log = CoordinatorLog()
    for group in partitions_of_topic(coordinator_segments(files, read), TRANSACTION_STATE):
        of = group[0].topic_partition
        assert of is not None
        for chunk in typed_chunks(group, ["timestamp_ms"], read):
            typed = chunk.messages.typed(TRANSACTION_LOG)
            records = chunk.records.take(pa.array(typed.rows))
            where = (records.column(name).to_pylist() for name in ("offset", "timestamp_ms"))
            for row, offset, timestamp in zip(typed.fields.to_pylist(), *where, strict=True):
                record = _state_record(row, timestamp)
                is_later = complete_until is not None and offset >= complete_until.get(of, 0)
                if not (is_later and record.status in (COMPLETE_COMMIT, COMPLETE_ABORT)):
                    log.add(record)
                also(of, offset, record)
            chunk.take_faults(read.faults, strict=read.options.strict)
    return log.transactions


def _state_record(row: Mapping[str, Any], timestamp: int | None) -> StateRecord:
    if row["transaction_status"] is None:
        return StateRecord(row["transactional_id"], None)
    return StateRecord(
        row["transactional_id"],
        row["transaction_status"],
        row["producer_id"],
        row["previous_producer_id"],
        row["producer_epoch"],
        row["client_transaction_version"],
        frozenset(
            TopicPartition(each["topic"], partition)
            for each in row["transaction_partitions"] or ()
            for partition in each["partition_ids"]
        ),
        row["transaction_last_update_timestamp_ms"],
        row["transaction_start_timestamp_ms"],
        row["transaction_timeout_ms"],
        NONE if timestamp is None else timestamp,
    )


class OffsetCommit(NamedTuple):
    """A record of ``__consumer_offsets`` with the offset of a group.

    Attributes
    ----------
    of : TopicPartition
        The partition of ``__consumer_offsets``.
    at : int
        The offset of the record.
    producer_id : int
        -1 outside of transactions.
    source : TopicPartition
        The partition that the group reads.
    offset : int or None
        None in a tombstone.
    leader_epoch, commit_timestamp : int or None
    topic_id : str or None
        Of the source.
    """

    of: TopicPartition
    at: int
    producer_id: int
    group: str
    source: TopicPartition
    offset: int | None
    leader_epoch: int | None
    commit_timestamp: int | None
    topic_id: str | None


def offset_commits(segments: list[Segment], read: Pass) -> Iterator[OffsetCommit]:
    """Return the offsets of groups, in the order of each partition of ``__consumer_offsets``."""
    for group in partitions_of_topic(segments, CONSUMER_OFFSETS):
        of = group[0].topic_partition
        assert of is not None
        for chunk in typed_chunks(group, ["producer_id"], read):
            typed = chunk.messages.typed(OFFSET_COMMIT)
            records = chunk.records.take(pa.array(typed.rows))
            where = (records.column(name).to_pylist() for name in ("offset", "producer_id"))
            columns = {name: typed.fields.column(name).to_pylist() for name in _OF_COMMIT}
            sources = map(TopicPartition, columns.pop("key_topic"), columns.pop("key_partition"))
            for at, producer_id, source, one, *rest in zip(*where, sources, *columns.values(), strict=True):
                yield OffsetCommit(of, at, producer_id, one, source, *rest)
            chunk.take_faults(read.faults, strict=read.options.strict)


def transactional_commits(segments: list[Segment], read: Pass) -> Commits:
    """Return the committed and pending offsets of transactions, by their producers."""
    found: Commits = defaultdict(list)
    for one in offset_commits(segments, read):
        if one.producer_id >= 0 and one.offset is not None:  # those outside of transactions have no producer
            found[one.of, one.producer_id].append((one.at, one.group, *one.source, one.offset))
    return found


def input_offsets(one: Transaction, commits: Commits) -> list[dict[str, Any]]:
    """Return the offsets committed by a transaction, the last one of each group and partition."""
    last: dict[tuple[str, str, int], int] = {}
    for part in one.parts:
        rows = commits.get((part.of, part.producer_id), [])
        begin = bisect_left(rows, part.first_offset, key=itemgetter(0))
        for at, group, topic, partition, offset in islice(rows, begin, None):
            if at > part.last_offset:
                break
            last[group, topic, partition] = offset
    return [
        {"group": group, "topic": topic, "partition": partition, "offset": offset}
        for (group, topic, partition), offset in sorted(last.items())
    ]


def _shown_part(part: Part) -> dict[str, Any]:
    return {
        "topic": part.of.topic,
        "partition": part.of.partition,
        "first_offset": None if part.first_offset == NONE else part.first_offset,
        "marker_offset": None if part.marker_offset == NONE else part.marker_offset,
        "state": part.state,
        "records_count": None if part.state is None else part.records_count,
    }


def _contradiction(one: Transaction) -> str | None:
    found = one.contradiction()
    return None if found is None else f"{found[0].of}: {found[1]}"


def _columns(rows: list[Transaction], commits: Commits, arrow_schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field_ in arrow_schema:
        name = field_.name
        if name == "decision_timestamp":
            columns.append(header_columns.timestamps(np.array([one.decided_at for one in rows], np.int64)))
            continue
        if name == "decision_timestamp_ms":
            values: list[Any] = [None if one.decided_at == NONE else one.decided_at for one in rows]
        elif name == "partitions":
            values = [[_shown_part(part) for part in one.parts] for one in rows]
        elif name == "input_offsets":
            values = [input_offsets(one, commits) for one in rows]
        elif name == "contradiction":
            values = [_contradiction(one) for one in rows]
        else:
            values = [getattr(one, name) for one in rows]
        columns.append(pa.array(values, field_.type))
    return rows_of(columns, arrow_schema, len(rows))
