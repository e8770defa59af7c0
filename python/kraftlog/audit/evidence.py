"""``Evidence``: what an audit has."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from kraftlog.audit.cluster_image import ClusterImage
from kraftlog.audit.producer_logs import ProducerLogs
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.discover import Discovery
from kraftlog.layout.log_directory import LogDirectory
from kraftlog.layout.names import parse_segment_file, printable
from kraftlog.layout.replica_directory import directory_of
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Replica, ReplicaKind, replicas_of
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.tables.commands import kraftlog, of_partition
from kraftlog.tables.hanging import Coordinators
from kraftlog.tables.lines import Lines
from kraftlog.tables.transactions import coordinator_transactions
from kraftlog.topics import TopicPartition
from kraftlog.transactions.coordinator_transitions import TransitionCheck
from kraftlog.transactions.transaction import CoordinatorTransaction


@dataclass(frozen=True)
class Evidence:
    """The files of one cluster.

    What several checks read is a cached property, so that it is read once.

    Attributes
    ----------
    files : Discovery
        All replicas of all partitions.
    read : Pass
        Receives what cannot be read, and notes of what cannot be known.
    now : int
        The time in milliseconds; the largest time that the files may have.
    paths : sequence of str
        The log directories, as the user named them, for commands.
    """

    files: Discovery
    read: Pass
    now: int
    paths: Sequence[str] = ()

    @classmethod
    def of(cls, files: Discovery, read: Pass) -> Self:
        """Return files as evidence, now."""
        folders = {one.folder: one for one in files.segments}
        named = [
            directory_of(one) if one.stored or not folder.name else folder.parent for folder, one in folders.items()
        ]
        directories = list(dict.fromkeys(printable(str(one)) for one in named))
        return cls(files, read, time.time_ns() // 1_000_000, directories)

    @cached_property
    def lines(self) -> Lines:
        """The partitions with their replicas, and which of them a reader chooses."""
        return Lines(self.files)

    @property
    def coordinator_transactions(self) -> list[CoordinatorTransaction]:
        """The transactions in ``__transaction_state``."""
        return self._of_coordinators[0]

    @property
    def coordinator_transitions(self) -> TransitionCheck:
        """The records of ``__transaction_state`` that do not follow from those before them."""
        return self._of_coordinators[1]

    @cached_property
    def _of_coordinators(self) -> tuple[list[CoordinatorTransaction], TransitionCheck]:
        transitions = TransitionCheck()
        return coordinator_transactions(self.files, self.read.faults_only(), transitions.add), transitions

    @cached_property
    def first_transactions(self) -> Mapping[tuple[int, str], CoordinatorTransaction]:
        """The first transaction of each producer id in each topic, by its coordinator.

        What a producer wrote to a topic before that may be of another cluster where another producer has the id, or of
        another topic: partitions are copied with their producers and markers.
        """
        first: dict[tuple[int, str], CoordinatorTransaction] = {}
        for one in self.coordinator_transactions:
            for topic in {of.topic for of in one.partitions or ()}:
                before = first.setdefault((one.producer_id, topic), one)
                if one.start < before.start:
                    first[one.producer_id, topic] = one
        return first

    @cached_property
    def coordinators(self) -> Coordinators:
        """The last state of each transactional id."""
        return Coordinators(self.files, self.read.faults_only().apart())  # coordinator_transactions has the faults

    @cached_property
    def producer_logs(self) -> ProducerLogs:
        """Producers and transactions, from one pass over the headers of all partitions."""
        return ProducerLogs(self.lines.found.segments, self.coordinator_transactions, self.read)

    @cached_property
    def cluster(self) -> ClusterImage | None:
        """What the metadata log says; None without one, and with several or faulty ones."""
        at = self.lines.metadata_image
        return None if at is None else ClusterImage(at, replicas_of(self.files.metadata_log)[0])

    @cached_property
    def live_replicas(self) -> list[Replica]:
        """The replicas in folders that Kafka neither moves nor deletes, in log directories, up to their ends."""
        replicas = (one for partition in self.lines.partitions for one in partition.replicas)
        live = (one for one in replicas if one.kind is ReplicaKind.LIVE and one.segments[0].topic_partition is not None)
        return [one for one in live if _has_end(one)]

    @cached_property
    def directories(self) -> Mapping[LogPath, LogDirectory]:
        """The log directories of the live replicas, by path."""
        paths = dict.fromkeys(one.directory for one in self.live_replicas)
        each = (LogDirectory.of(path, self.read.faults) for path in paths)
        return {one.path: one for one in each if one is not None}

    @cached_property
    def checkpoints(self) -> ReplicaCheckpoints:
        """The checkpoints of the log directories."""
        return ReplicaCheckpoints(self.read.faults)

    def command(self, name: str, *options: object) -> str:
        """Return a command of kraftlog over the same files, quoted for a shell."""
        return kraftlog(name, self.paths, *options)

    def from_offset(self, name: str, of: TopicPartition, offset: int) -> str:
        """Return a command of kraftlog that shows a partition from an offset on."""
        return self.command(name, *of_partition(of.topic, of.partition), "--start-offset", offset)


def _has_end(replica: Replica) -> bool:
    """Whether the last segment of a log is among the files; a user may name some segment files only."""
    last = replica.segments[-1]
    if last.stored or last.base_offset is None:
        return True
    try:
        entries = disk().entries(last.folder)
    except FileNotFoundError:
        return False  # the topic was deleted meanwhile
    named = (parse_segment_file(entry.name) for entry in entries if entry.is_file)
    logs = (one for one in named if one is not None and (one.kind, one.state) == ("log", ""))
    return all(one.base_offset <= last.base_offset for one in logs)
