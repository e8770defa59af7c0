"""The content of a report, collected from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog.audit.audit import findings
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.check.partitions import Observer
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.in_order import in_order
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.layout.unread import STOPS_BROKER
from kraftlog.log_report.cluster_facts import ClusterFacts, cluster_facts
from kraftlog.log_report.fault_counts import FaultCounts
from kraftlog.log_report.group_lags import GroupLags
from kraftlog.log_report.partition_facts import SIZES, PartitionFacts, partition_facts
from kraftlog.log_report.transaction_sums import TransactionSums
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.partitions import by_partition
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.lag import lags_of_segments
from kraftlog.tables.log import Log
from kraftlog.tables.log_states import LogStates
from kraftlog.tables.partition_ends import PartitionEnds
from kraftlog.tables.read import Read
from kraftlog.tables.transactions import TransactionCheck
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition

HANGING = 200  # rows kept, including those of open transactions
OPTIONS = ReadOptions()


@dataclass
class Facts:
    """The facts about a log.

    Attributes
    ----------
    paths : sequence of str
        Paths as the user named them.
    now : int
        Time of the report, in milliseconds.
    faults : FaultCounts
        Faults of ``kraftlog verify``.
    other_faults : FaultCounts
        Other faults: of groups, offsets and the metadata image.
    left_alone : list of Fault
        Files that are not read.
    hanging : list of dict
        First rows of the table ``hanging_transactions``.
    hanging_count : int
    groups : GroupLags or None
        None without ``__consumer_offsets``.
    cluster : ClusterFacts or None
        None without a metadata log.
    audit : list of kraftlog.audit.finding.Finding
        The findings of ``kraftlog audit``, the worst first.
    waits : dict
        Sentences of the table ``waits``, of the first partitions with open transactions.
    """

    paths: Sequence[str]
    now: int
    partitions: list[PartitionFacts] = field(default_factory=list)
    batch_sizes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(SIZES, np.int64))
    faults: FaultCounts = field(default_factory=FaultCounts)
    other_faults: FaultCounts = field(default_factory=FaultCounts)
    left_alone: list[Fault] = field(default_factory=list)
    transactions: TransactionSums = field(default_factory=TransactionSums)
    hanging: list[dict[str, Any]] = field(default_factory=list)
    hanging_count: int = 0
    groups: GroupLags | None = None
    cluster: ClusterFacts | None = None
    has_transaction_state: bool = False
    audit: list[Finding] = field(default_factory=list)
    waits: dict[tuple[str | None, int | None], str] = field(default_factory=dict)

    @property
    def hanging_known(self) -> int:
        """Number of hanging transactions: all of them, or 0 if no coordinator is known."""
        return self.hanging_count if self.hanging and self.hanging[0]["command"] is not None else 0

    @property
    def knows_coordinators(self) -> bool:
        """Whether the log shows which open transactions a coordinator will end."""
        is_asked = self.transactions.counts["open"] > 0
        return self.has_transaction_state or (is_asked and self.hanging_known == self.hanging_count)

    @property
    def unread_partitions(self) -> set[tuple[str | None, int | None]]:
        """Partitions with unreadable parts, which may hold the ends of transactions."""
        return {(one.topic, one.partition) for one in self.partitions if one.is_partly_unread}

    def add_other(self, faults: Sequence[Fault]) -> None:
        """Note the fault of another reader, unless the check has found it in the same place."""
        known = {(one.topic, one.partition, error) for one in self.partitions for error in one.faults}
        for fault in faults:
            if (fault.topic, fault.partition, fault.error) not in known:
                self.other_faults.add(fault)


def collect(
    log: Log, paths: Sequence[str], now: int, *, workers: int = 1, on_progress: Progress | None = None
) -> Facts:
    """Read a log, each segment once, and then the ends of partitions and the topics of coordinators.

    Parameters
    ----------
    log : Log
    paths : sequence of str
        Paths for use in commands.
    now : int
        Reference time, in milliseconds.
    workers : int
        Number of partitions that are read at the same time.
    on_progress : callable, optional
        Called with the bytes of log that were read since the last call.
    """
    stops_broker = [fault for fault in log.not_needed() if fault.error == STOPS_BROKER]
    facts = Facts(paths, now, left_alone=[fault for fault in log.left_alone() if fault.error != STOPS_BROKER])
    segments = log.lines.found.segments
    for fault in (*log.unreadable(), *stops_broker):
        facts.faults.add(fault)
    transactions = TransactionCheck(segments, log.found)
    ends = _partitions(facts, segments, transactions.observe, workers, on_progress)
    _torn(facts, transactions)
    for partition in log.lines.partitions:
        for other in partition.replicas:
            if other is not partition.line:
                facts.faults.join(partition_facts(list(other.segments), OPTIONS, on_progress)[0].faults)
    facts.has_transaction_state = TRANSACTION_STATE in log.topics
    _hanging(facts, log)
    found: list[Fault] = []
    states = LogStates(log.lines, log.found, Pass(OPTIONS, found))
    for one in facts.transactions.open:
        if one.topic is None or one.partition is None or len(facts.waits) == HANGING:
            continue
        of = TopicPartition(one.topic, one.partition)
        if of in ends and of not in facts.waits:
            facts.waits[of] = f"{one.name}: {states.cause(ends[of])[0].text}"
    if CONSUMER_OFFSETS in log.topics:
        facts.groups = _groups(segments, ends, found, states, log.found.ends_at_cut)
    facts.cluster = cluster_facts(segments, found)
    facts.add_other(found)
    audit = Pass(OPTIONS)
    facts.audit = findings(Evidence(log.found, audit, now, paths))
    facts.add_other(
        [fault for fault in audit.faults if fault.error not in facts.faults]
    )  # the check reads all replicas
    return facts


def _partitions(
    facts: Facts, segments: list[Segment], observe: Observer, workers: int, on_progress: Progress | None
) -> dict[TopicPartition, PartitionEnds]:
    """Read the partitions; return the ends of each."""
    ends: dict[TopicPartition, PartitionEnds] = {}

    def read(group: list[Segment]) -> tuple[PartitionFacts, TransactionSums, PartitionEnds]:
        return partition_facts(group, OPTIONS, on_progress, observe)

    groups = by_partition(segments)
    results = in_order(read, groups, workers) if workers > 1 else map(read, groups)
    for group, (one, transactions, ends_of_one) in zip(groups, results, strict=True):
        facts.partitions.append(one)
        facts.batch_sizes += one.batch_sizes
        facts.faults.join(one.faults)
        facts.transactions.join(transactions)
        if (of := group[0].topic_partition) is not None and not group[0].state:
            ends[of] = ends_of_one
    return ends


def _torn(facts: Facts, transactions: TransactionCheck) -> None:
    """Note transactions whose partitions contradict each other or their coordinator."""
    partitions = {(one.topic, one.partition): one for one in facts.partitions}
    for fault in transactions.torn():
        facts.faults.add(fault)
        partitions[fault.topic, fault.partition].faults.add(fault)


def _hanging(facts: Facts, log: Log) -> None:
    """Find hanging transactions in the completely readable partitions with open ones."""
    opened = {(one.topic, one.partition) for one in facts.partitions if one.transactions.get("open")}
    opened -= facts.unread_partitions
    if opened:
        some = log.of_files(log.found.only(lambda topic, partition: (topic, partition) in opened))
        stream, shown = (
            some.scan("hanging_transactions", [*schema.HANGING_TRANSACTIONS.shown, "sentence"]),
            {one.key for one in facts.transactions.open},
        )
        for batch in stream.batches():
            facts.hanging_count += batch.num_rows
            for row in batch.to_pylist():
                if len(facts.hanging) < HANGING or (row["topic"], row["partition"], row["producer_id"]) in shown:
                    facts.hanging.append(row)
        facts.add_other(stream.faults)


def _groups(
    segments: list[Segment],
    ends: dict[TopicPartition, PartitionEnds],
    faults: list[Fault],
    states: LogStates,
    ends_at_cut: Mapping[TopicPartition, int],
) -> GroupLags:
    lags = GroupLags()
    columns = ["group", "group_type", "state", "members"]
    lags.add_groups(Read.of_segments(TABLES["groups"], segments, columns, OPTIONS, faults).rows())
    wanted: pa.Schema = schema.LAG.select([*schema.LAG.shown, "log_start_offset", "sentence"])
    read = Pass(OPTIONS, faults)
    lags.add_lags(lags_of_segments(segments, wanted, read, ends=ends, states=states, ends_at_cut=ends_at_cut))
    return lags
