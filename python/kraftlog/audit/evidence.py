"""``Evidence``: what an audit has."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from kraftlog.audit.cluster_image import ClusterImage
from kraftlog.audit.metadata_log_end import MetadataLogEnd, end_of_metadata_log
from kraftlog.audit.producer_logs import ProducerLogs
from kraftlog.audit.settled import NOWHERE, UNREADABLE_FILE, Of
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath, log_path
from kraftlog.layout.discover import Discovery, expanded_paths
from kraftlog.layout.identity import Identity
from kraftlog.layout.log_directory import LogDirectory
from kraftlog.layout.names import parse_segment_file, printable
from kraftlog.layout.replica_directory import directory_of
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Replica, ReplicaKind, replicas_of
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.tables.commands import kraftlog, of_partition
from kraftlog.tables.hanging import Coordinators
from kraftlog.tables.lines import Lines
from kraftlog.tables.transactions import coordinator_transactions
from kraftlog.topics import COORDINATOR_TOPICS, TopicPartition
from kraftlog.transactions.coordinator_transitions import TransitionCheck
from kraftlog.transactions.cut import CutTime
from kraftlog.transactions.transaction import CoordinatorTransaction

ROWS = 5  # that a command shows from an offset on


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
        folders = {one.folder: one for one in (*files.segments, *files.metadata_log) if not one.stored}
        named = [folder.parent if folder.name else directory_of(one) for folder, one in folders.items()]
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
        """What the metadata log says; None without one, with several or faulty ones, and if its end is missing."""
        return None if self.metadata_log_end is not None else self.last_image

    @cached_property
    def last_image(self) -> ClusterImage | None:
        """The image at the end of the metadata log, also if later records of it are missing."""
        at = self.lines.metadata_image
        return None if at is None else ClusterImage(at, replicas_of(self.files.metadata_log)[0])

    @cached_property
    def metadata_log_end(self) -> MetadataLogEnd | None:
        """What proves that records are missing at the end of the metadata log; None without proof."""
        return None if self.last_image is None else end_of_metadata_log(self.last_image, self.lines)

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
    def whole_directories(self) -> list[LogDirectory]:
        """Log directories that the caller named as a whole, also those without a selected partition."""
        source = self.files.source
        if source is None:
            return list(self.directories.values())
        named = [one for one in source.paths if not isinstance(one, RemoteTier | Identity | CutTime)]
        clusters = [one.cluster_id for one in source.paths if isinstance(one, Identity) and one.cluster_id is not None]
        try:
            paths = [path.absolute() for path in expanded_paths(named, source.storage_options)] if named else []
        except FileNotFoundError:
            return []
        folders = [one for one in paths if (entry := disk().entry(one)) is not None and entry.is_dir]
        each = (self.directories.get(path) or LogDirectory.of(path, self.read.faults) for path in folders)
        return [one for one in each if one is not None and (not clusters or one.cluster_id in clusters)]

    @cached_property
    def checkpoints(self) -> ReplicaCheckpoints:
        """The checkpoints of the log directories."""
        return ReplicaCheckpoints(self.read.faults)

    def is_selected(self, of: TopicPartition) -> bool:
        """Whether the caller asked for a partition."""
        source = self.files.source
        return source is None or source.is_wanted is None or source.is_wanted(*of)

    @property
    def is_whole(self) -> bool:
        """Whether the caller asked for all partitions."""
        return self.files.source is None or self.files.source.is_wanted is None

    def apart(self) -> Self:
        """Return the same evidence with faults of its own, before anything is read."""
        return replace(self, read=replace(self.read, faults=[]))

    def listed_again(self) -> Discovery | None:
        """Return the files that are there now; None if they cannot be listed."""
        return self.files.listed_again()

    def changed(self, again: Discovery) -> set[TopicPartition]:
        """Return the partitions with files that were deleted or replaced, or whose broker has started.

        Parameters
        ----------
        again : Discovery
            The files that are there now.
        """
        there = {one.path: one for one in again.segments}
        was_clean = [path for path, directory in self.directories.items() if directory.is_clean]
        directories = (LogDirectory.of(path, []) for path in was_clean)
        still_clean = {one.path for one in directories if one is not None and one.is_clean}
        started = set(was_clean) - still_clean
        return {
            one.topic_partition
            for one in self.files.segments
            if one.topic_partition is not None
            and (one.is_replaced_by(there.get(one.path)) or directory_of(one) in started)
        }

    def is_metadata_changed(self, again: Discovery) -> bool:
        """Whether the metadata log could not be read because files of it were deleted or replaced."""
        there = {one.path: one for one in again.metadata_log}
        is_read = not self.lines.metadata_notes
        return not is_read and any(one.is_replaced_by(there.get(one.path)) for one in self.files.metadata_log)

    def stale(self, again: Discovery) -> set[Of]:
        """Return the partitions of which files were deleted or replaced while they were read.

        These are all of them, and what is of no partition, if files on which all checks depend could not be read.
        """
        changed: set[Of] = {*self.changed(again)}
        every: set[Of] = {(one.topic, one.partition) for one in self.files.segments}
        unreadable: set[Of] = {(one.topic, one.partition) for one in self.read.faults if one.error == UNREADABLE_FILE}
        coordinators = {one for one in unreadable if one[0] in COORDINATOR_TOPICS}
        is_of_coordinators = any(one in changed or one not in every for one in coordinators)  # these were listed for it
        is_unknown = NOWHERE in unreadable and bool(changed)
        is_of_all = is_of_coordinators or is_unknown or self.is_metadata_changed(again)
        return {*every, NOWHERE} if is_of_all else changed

    @property
    def notes(self) -> list[str]:
        """Notes on what cannot be known."""
        return self.lines.metadata_notes

    def only(self, files: Discovery, partitions: Collection[Of]) -> Self:
        """Return evidence of some partitions of the same cluster, with faults of its own."""

        def is_wanted(topic: str | None, partition: int | None) -> bool:
            return (topic, partition) in partitions

        return replace(self, files=files.narrowed(is_wanted), read=self.read.faults_only().apart())

    def command(self, name: str, of: TopicPartition | None = None, *options: object) -> str:
        """Return a command of kraftlog over the same files, of all partitions or of one, quoted for a shell."""
        of_one = [] if of is None else of_partition(*of)
        return kraftlog(name, self.paths, *self._given_options(of), *of_one, *options)

    def from_offset(self, name: str, of: TopicPartition, offset: int) -> str:
        """Return a command of kraftlog that shows some rows of a partition from an offset on."""
        return self.command(name, of, "--start-offset", offset, "--limit", ROWS)

    def _given_options(self, of: TopicPartition | None) -> list[str]:
        """Return the options with which the files were opened; ids of other topics would be refused."""
        words: list[str] = []
        for one in () if self.files.source is None else self.files.source.paths:
            if isinstance(one, RemoteTier):
                words += ["--remote-tier", printable(str(log_path(one.location)))]
                words += [word for name, key in one.keys.items() for word in ("--tier-key", f"{name}={key}")]
            elif isinstance(one, Identity):
                ids = [each for each in one.topic_ids if of is None or each in self._topic_ids.get(of.topic, ())]
                words += [word for topic_id in ids for word in ("--topic-id", topic_id)]
        return words

    @cached_property
    def _topic_ids(self) -> dict[str | None, set[str | None]]:
        ids: dict[str | None, set[str | None]] = {}
        for partition in self.lines.partitions:
            ids.setdefault(partition.topic, set()).update(one.topic_id for one in partition.replicas)
        return ids


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
