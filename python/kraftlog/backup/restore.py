"""``kraftlog.restore``: log directories of a new cluster, from those of another one or from a backup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.new_folder import check_new_folder, new_folder
from kraftlog.backup.new_nodes import (
    NewNode,
    Place,
    internal_topic_properties,
    new_nodes,
    placements,
    random_uuid,
)
from kraftlog.backup.quorum import (
    DYNAMIC,
    QUORUMS,
    STATIC,
    Voter,
    of_voters,
    properties_text,
    write_controller,
)
from kraftlog.backup.restored_coordinators import (
    EndedTransaction,
    LaterRecords,
    MovedOffset,
    decisions_after,
    offset_rows,
    transaction_rows,
    without_offsets,
)
from kraftlog.backup.restored_image import BROKER_EPOCH, ReplicasOfPartition, restored_image
from kraftlog.backup.source_partitions import COORDINATORS, check_new_names, chosen_topics, source_partitions
from kraftlog.codec.encode import encode
from kraftlog.codec.metadata_version import NEWEST_LEVEL
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import copy_file, write_file
from kraftlog.disk.in_order import in_order
from kraftlog.errors import Fault, distinct, error_from_fault
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOG_START_OFFSETS
from kraftlog.layout.discover import Discovery, LogPaths, each_path
from kraftlog.layout.segment import Segment
from kraftlog.log_store.partition_folders import make_partition_folder
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.read.index_interval import shown_interval
from kraftlog.read.lineage import NO_EPOCH
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.partitions import is_metadata, log_start_offset
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.transactions import coordinator_transactions
from kraftlog.tables.unread_files import note_unreadable
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition, names
from kraftlog.transactions.cut import Cut, CutTime, Side
from kraftlog.write.extracted_batches import ExtractedBatches, Piece
from kraftlog.write.extracted_log import Written, write_extracted
from kraftlog.write.meta_properties import write_meta_properties
from kraftlog.write.offset_checkpoint import set_offsets
from kraftlog.write.recovery_points import record_recovery_points

REPORT_FILE = "restored.json"
PROPERTIES_FILE = "server.properties"
WORKERS = 2
_REPORT_VERSION = 1
MISSING = "missing_partition"
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True)
class RestoredPartition:
    """A partition of the new cluster.

    Attributes
    ----------
    topic, partition : str, int
        In the new cluster.
    source_topic : str
    replicas : tuple of int
        Node ids, the leader first.
    source_bytes : int
        Size of the segments from which it is read.
    has_data : bool
        Whether there is a folder of the partition among the files.
    excluded_records : int
        Records that were left out for their keys.
    written : Written or None
        None before anything is written.
    log_start_offset : int
    """

    topic: str
    partition: int
    source_topic: str
    replicas: tuple[int, ...]
    source_bytes: int
    has_data: bool
    written: Written | None = None
    log_start_offset: int = 0
    excluded_records: int = 0

    @property
    def name(self) -> str:
        """Topic and number."""
        return f"{self.topic}-{self.partition}"

    @property
    def is_identical(self) -> bool:
        """Whether all of its batches are copies."""
        return self.written is not None and self.written.copied_bytes == self.written.size_in_bytes


@dataclass
class Restore:
    """The result of ``restore``, which is also the content of ``restored.json``.

    Attributes
    ----------
    cluster_id : str
        Of the new cluster.
    source_cluster_id : str or None
    nodes : list of NewNode
    metadata_offset : int
        Offset of the last record of the metadata log that is in the image.
    partitions : list of RestoredPartition
    groups : dict
        Groups with committed offsets: group, and its offsets by partition.
    ended_transactions : list of EndedTransaction
        Transactional ids that were not at rest at the cut.
    moved_offsets : list of MovedOffset
        Committed offsets that differ from those of the source.
    excluded_keys_sha256 : str or None
        Of the keys whose records were left out.
    faults : list of Fault
        Their data is missing in the new cluster.
    notes : list of str
    """

    cluster_id: str
    source_cluster_id: str | None
    nodes: list[NewNode]
    metadata_offset: int
    partitions: list[RestoredPartition] = field(default_factory=list)
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    ended_transactions: list[EndedTransaction] = field(default_factory=list)
    moved_offsets: list[MovedOffset] = field(default_factory=list)
    excluded_keys_sha256: str | None = None
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return what was done, as JSON can hold it."""
        return {
            "version": _REPORT_VERSION,
            "cluster_id": self.cluster_id,
            "source_cluster_id": self.source_cluster_id,
            "metadata_offset": self.metadata_offset,
            "nodes": [
                {"node_id": node.node_id, "host": node.host, "port": node.port, "controller_port": node.controller_port}
                for node in self.nodes
            ],
            "partitions": [_partition_row(one) for one in self.partitions],
            "groups": self.groups,
            "ended_transactions": [asdict(one) for one in self.ended_transactions],
            "moved_offsets": [asdict(one) for one in self.moved_offsets],
            "excluded_keys_sha256": self.excluded_keys_sha256,
            "faults": [{"error": fault.error, "message": fault.message} for fault in self.faults],
            "notes": self.notes,
        }


def _partition_row(one: RestoredPartition) -> dict[str, Any]:
    row = asdict(replace(one, written=None))
    del row["written"]
    if one.written is not None:
        row |= asdict(one.written) | {"crc32c": f"{one.written.crc32c:08x}", "is_identical": one.is_identical}
    return row


@dataclass(frozen=True)
class _Planned:
    """A partition to restore: its segments, none if there is no folder, and its place in the new cluster."""

    source: TopicPartition
    target: TopicPartition
    topic_id: bytes
    leader_epoch: int
    segments: tuple[Segment, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True)
class _WrittenPartition:
    """A partition in the new cluster: the segments of which it was made, and the pass over them, if there were some."""

    written: Written
    log_start_offset: int
    segments: list[Segment]
    batches: ExtractedBatches | None


def restore(
    paths: LogPaths,
    target: str | Path,
    *,
    nodes: int | str | Iterable[str] = 1,
    directories: int = 1,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    rename: Mapping[str, str] | None = None,
    cut: str | CutTime | Cut | None = None,
    metadata_offset: int | None = None,
    new_cluster_id: str | None = None,
    quorum: str | None = None,
    heal: bool = True,
    strict: bool = False,
    dry_run: bool = False,
    workers: int = WORKERS,
    exclude_keys: str | Path | None = None,
    on_progress: Progress | None = None,
) -> Restore:
    """Write the log directories of a new cluster with the topics, groups and metadata of another one.

    Offsets, topic ids, leader epochs of records, log start offsets, configs, ACLs, SCRAM credentials, quotas and
    features stay. The nodes are new, and so are the replicas: as many as before, as far as there are nodes. Batches
    are copied as bytes, and all replicas of a partition have the same. They are copies and no hard links, since a
    broker truncates and extends the files of its own replica.

    The target has a folder for each node, with its log directories and a ``server.properties`` with which it starts as
    it is; and ``restored.json``, the report. It gets its name when everything is on disk.

    Parameters
    ----------
    paths : path or iterable of paths
        As in ``kraftlog.open``: log directories of all brokers, with the metadata log of one of them or of a
        controller.
    target : path
        A new or empty folder.
    nodes : int, str or iterable of str
        How many nodes on this machine; or ``ID@HOST:PORT:CONTROLLER_PORT`` of each, and ``ID@HOST:PORT`` of a broker
        that is no controller. Of a number of nodes the first three are controllers.
    directories : int
        Log directories of each node.
    topics : str or iterable of str, optional
        Names or patterns, as ``orders*``; by default all. The topics of the coordinators are always among them.
    partitions : iterable of int, optional
        Only the data of these partitions; the others are there, without records.
    rename : mapping of str to str, optional
        New names of topics. Committed offsets move with them.
    cut : str or Cut, optional
        As in ``kraftlog.open``: ends of partitions, and the time of the metadata. Transactions that are open at the cut
        are aborted, and offsets of groups lie at most at the end of a partition. Without it everything stays as the
        files have it, and the coordinators of the new cluster end what is open: right for brokers that were stopped.
    metadata_offset : int, optional
        Last record of the metadata log to apply; by default that of the cut, or the last one.
    new_cluster_id : str, optional
        By default a random one, so that no node takes the new cluster for the old one.
    quorum : {"static", "dynamic"}, optional
        Whether voters are in the nodes' properties or in the metadata log; by default as in the source.
    heal : bool
        Read missing or damaged offsets of the chosen replica from replicas that agree with it.
    strict : bool
        Raise at the first fault; nothing is written then.
    dry_run : bool
        Write nothing, and return what would be written and what is missing.
    workers : int
        Threads that read and write partitions.
    exclude_keys : path, optional
        A file with a key on each line, whose records are left out: UTF-8 or ``base64:...``, after a topic and a tab
        only those of this topic.
    on_progress : callable, optional
        Called with the bytes that were read since the last call.

    Returns
    -------
    Restore

    Raises
    ------
    ValueError
        When there is no metadata log, the target is not empty or is inside a source, or a name is not known.
    RecordError
        With ``strict``; and when the metadata log cannot be read.
    OSError
        When a step fails. Nothing is left at the target.

    Examples
    --------
    >>> import tempfile, kraftlog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with kraftlog.LogStore(f"{folder}/store") as store:
    ...         store.create_topic("orders")
    ...         with store.producer() as producer:
    ...             producer.send("orders", value="first")
    ...     done = kraftlog.restore(f"{folder}/store", f"{folder}/cluster", nodes=3, cut="end")
    ...     [(one.name, one.replicas, one.written.records, one.is_identical) for one in done.partitions]
    [('orders-0', (1,), 1, True)]
    """
    given = each_path(paths)
    asked = next((path for path in given if isinstance(path, CutTime)), cut)
    files: list[Any] = [path for path in given if not isinstance(path, CutTime)]
    if quorum is not None and quorum not in QUORUMS:
        raise ValueError(f"quorum {quorum!r} is not one of {', '.join(QUORUMS)}")
    if workers < 1:
        raise ValueError(f"workers {workers}: expected 1 or more")
    if new_cluster_id is not None and not _CLUSTER_ID.fullmatch(new_cluster_id):
        raise ValueError(
            f"new_cluster_id {new_cluster_id!r}: expected 22 characters, as kafka-storage random-uuid prints"
        )
    log = open_log(files, cut=asked)
    at = asked or log.found.cut  # that of a path such as nightly@2026-11-24T03:00Z
    time = CutTime.of(at) if isinstance(at, str) else at if isinstance(at, CutTime) else None
    run = _Restore(
        log,
        Path(target),
        new_nodes(nodes, directories),
        image_of(log, time, metadata_offset),
        quorum,
        new_cluster_id,
        ReadOptions(include_deleted=True, heal=heal, strict=strict),
        workers,
        on_progress,
        ExcludedKeys.of_file(exclude_keys),
    )
    run.plan(names(topics), None if partitions is None else set(partitions), rename or {})
    if not dry_run:
        run.write()
    return run.done


def image_of(log: Log, time: CutTime | None, metadata_offset: int | None) -> ImageAt:
    """Return the image for a cut; what belongs to a transaction that is open there is not in it.

    Raises
    ------
    ValueError
        When there is no metadata log, or it begins after the time.
    RecordError
        When it cannot be read.
    """
    segments = [one for one in log.lines.found.segments if is_metadata(one)]
    if not segments:
        raise ValueError(
            "no __cluster_metadata among the files: restore needs the log directory of a broker or controller with it;"
            " extract copies partitions without"
        )
    if metadata_offset is None and time is not None and time.side is not Side.END:
        metadata_offset = MetadataLog(segments).offset_at(time.timestamp)
    at = log.image(metadata_offset, cache=False)
    level = at.image.metadata_version
    if level is not None and level > NEWEST_LEVEL:
        raise ValueError(f"metadata.version {level} is newer than {NEWEST_LEVEL}, the newest one that is known")
    return replace(at, open_since=None, is_offset_batch_aligned=True)


class _Restore:
    """One restore: what is planned, then written."""

    def __init__(
        self,
        log: Log,
        target: Path,
        nodes: list[NewNode],
        at: ImageAt,
        quorum: str | None,
        cluster_id: str | None,
        options: ReadOptions,
        workers: int,
        on_progress: Progress | None,
        excluded: ExcludedKeys | None,
    ) -> None:
        self._excluded = excluded
        self._log, self._target, self._nodes, self._at = log, target, nodes, at
        self._options, self._workers, self._on_progress = options, workers, on_progress
        self._quorum = quorum or (DYNAMIC if at.quorum else STATIC)
        self._planned: list[_Planned] = []
        self._topics: list[str] = []  # of the source
        self._new_names: dict[str, str] = {}  # of those that are restored
        self._epochs: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._starts: dict[TopicPartition, int] = {}
        self._producer_epochs: dict[int, int] = {}
        self._open_at_cut: list[list[Segment]] = []
        ids = {one.cluster_id for lines in log.lines.partitions for one in lines.replicas} - {None}
        self.done = Restore(
            cluster_id or uuid_text(random_uuid()), next(iter(ids)) if len(ids) == 1 else None, nodes, at.offset
        )
        self.done.notes += log.lines.notes(heals=options.heal)
        self.done.excluded_keys_sha256 = None if excluded is None else excluded.sha256

    def plan(self, patterns: list[str] | None, numbers: set[int] | None, rename: Mapping[str, str]) -> None:
        """Decide which partitions there will be, where they come from and where they go."""
        check_new_folder(self._target, self._log.folders)
        note_unreadable(self._log.found, self.done.faults, strict=self._options.strict)
        tables = self._at.image.tables(["TopicRecord", "PartitionRecord"])
        topics = {row["topic_id"]: row["name"] for row in tables["TopicRecord"].to_pylist()}
        self._topics = sorted(topics.values())
        chosen = chosen_topics(self._topics, patterns)
        self._new_names = {name: rename.get(name, name) for name in chosen}
        check_new_names(self._new_names, rename)
        segments = source_partitions(self._log, topics, self._options, self.done.notes)
        rows = [row for row in tables["PartitionRecord"].to_pylist() if topics.get(row["topic_id"]) in chosen]
        rows.sort(key=lambda row: (topics[row["topic_id"]], row["partition_id"]))
        ordinary = [row for row in rows if topics[row["topic_id"]] not in COORDINATORS]
        unknown = (numbers or set()) - {row["partition_id"] for row in ordinary}
        if unknown:
            raise ValueError(f"no topic that is restored has a partition {', '.join(map(str, sorted(unknown)))}")
        fewer = sum(len(row["replicas"]) > len(self._nodes) for row in rows)
        if fewer:
            self.done.notes.append(f"{fewer} of {len(rows)} partitions have fewer replicas than in the source")
        every = placements(self._nodes, (len(row["replicas"]) for row in rows))
        for row, places in zip(rows, every, strict=True):
            source = TopicPartition(topics[row["topic_id"]], row["partition_id"])
            target = TopicPartition(self._new_names[source.topic], source.partition)
            is_chosen = numbers is None or source.partition in numbers or source.topic in COORDINATORS
            some = tuple(segments.get(source, ())) if is_chosen else ()
            if is_chosen and not some:
                self._note(Fault(MISSING, f"{source}: no folder of it among the files; it will have no records"))
            self._planned.append(_Planned(source, target, row["topic_id"], row["leader_epoch"], some, places))
            size = sum(one.size for one in some)
            ids = tuple(place.node.node_id for place in places)
            self.done.partitions.append(
                RestoredPartition(*target, source.topic, ids, size, has_data=bool(some) or not is_chosen)
            )

    def write(self) -> None:
        """Write everything, and give the target its name."""
        # partitions of transactions' states come last: they depend on what was aborted in the others
        order = {TRANSACTION_STATE: 2, CONSUMER_OFFSETS: 1}
        with new_folder(self._target) as folder:
            for node in self._nodes:
                for directory in node.directories(folder):
                    disk().make_folder(directory)
            places = sorted(range(len(self._planned)), key=lambda at: order.get(self._planned[at].source.topic, 0))
            alone = [at for at in places if self._planned[at].source.topic in order]
            others = places[: len(places) - len(alone)]
            write = partial(self._written, folder)
            self._take(others, map(write, others) if self._workers == 1 else in_order(write, others, self._workers))
            for at in alone:
                self._take([at], [write(at)])
            image = self._new_image()
            voters = [node.voter for node in self._nodes if node.voter is not None]
            for node in self._nodes:
                self._write_node(folder, node, image, voters)
            self.done.groups = self._groups(folder)
            self.done.faults = distinct(self.done.faults)  # of coordinators' topics, which are read more than once
            report = json.dumps(self.done.to_dict(), indent=1) + "\n"
            write_file(folder / REPORT_FILE, report.encode())

    def _written(self, folder: Path, at: int) -> _WrittenPartition:
        """Write a partition and its replicas; several threads do."""
        one = self._planned[at]
        first = one.places[0].path(folder)
        start = least_end = 0
        pieces: Iterator[Piece] = iter(())
        batches = None
        segments = list(one.segments)
        if segments:
            start = log_start_offset(segments, ReadOptions())
            segments = [each for each in segments[:-1] if (each.end_offset or 0) > start] + segments[-1:]
            least_end = max(start, segments[-1].base_offset or 0)
            is_excluded = None if self._excluded is None else self._excluded.of_topic(one.source.topic)
            batches = ExtractedBatches(segments, self._options, None, self._on_progress, is_excluded=is_excluded)
            pieces = self._with_rest(one, segments, batches)
        name = str(one.target)
        written = write_extracted(
            first / name,
            pieces,
            index_interval_bytes=shown_interval(segments[:1]),
            leader_epoch=None,
            least_end_offset=least_end,
        )
        make_partition_folder(first / name, one.topic_id)
        for place in one.places[1:]:
            _copy_folder(first / name, place.path(folder) / name)
        start = min(max(start, written.start_offset), written.end_offset)
        return _WrittenPartition(written, start, segments, batches)

    def _take(self, places: list[int], each: Iterable[_WrittenPartition]) -> None:
        """Take down what was written of partitions, in their order."""
        for at, done in zip(places, each, strict=True):
            one, written = self._planned[at], done.written
            self._starts[one.target], self._ends[one.target] = done.log_start_offset, written.end_offset
            self._epochs[one.target] = max(one.leader_epoch, written.last_epoch, NO_EPOCH) + 1
            row = replace(self.done.partitions[at], written=written, log_start_offset=done.log_start_offset)
            if done.batches is not None:
                row = replace(row, excluded_records=done.batches.excluded_records)
            self.done.partitions[at] = row
            if done.batches is None:
                continue
            for producer_id, epoch in done.batches.producer_epochs.items():
                self._producer_epochs[producer_id] = max(epoch, self._producer_epochs.get(producer_id, epoch))
            if done.batches.aborted_transactions:
                self._open_at_cut.append(done.segments)
            self.done.faults += done.batches.faults
            self.done.notes += done.batches.notes

    def _with_rest(self, one: _Planned, segments: list[Segment], batches: ExtractedBatches) -> Iterator[Piece]:
        """Return the batches of a partition, and behind them the records that a coordinator's topic needs."""
        last = segments[-1]
        if one.source.topic == TRANSACTION_STATE and last.is_cut:
            decided = self._decided
            later = LaterRecords.of(self._log.found, one.source, decided, Pass(faults=self.done.faults))
            yield from without_offsets(batches.pieces(), later.offsets)
            rows = transaction_rows(
                later.states(segments, decided, batches.next_offset, self.done.faults),
                self._producer_epochs,
                dict(self._at.image.feature_levels()).get("transaction.version", 0),
                self.done.ended_transactions,
            )
        elif one.source.topic == CONSUMER_OFFSETS:
            yield from batches.pieces()
            names = dict.fromkeys(self._topics) | self._new_names
            rows = offset_rows(
                self._committed(segments), names, self._ends, batches.last_timestamp, self.done.moved_offsets
            )
        else:
            yield from batches.pieces()
            return
        offset = max(batches.next_offset, last.base_offset or 0)
        for batch in rows:
            data = encode(
                batch,
                base_offset=offset,
                partition_leader_epoch=max(one.leader_epoch, batches.leader_epoch, 0),
                timestamp_ms=batches.last_timestamp,
            )
            yield Piece(last, offset, data, batch.num_rows, is_copied=False)
            offset += batch.num_rows

    @cached_property
    def _decided(self) -> dict[str, int]:
        """When transactions were decided that are aborted at the cut, by transactional id."""
        if not self._open_at_cut:
            return {}
        read = Pass(faults=self.done.faults)
        known = coordinator_transactions(self._log.found, read)
        return decisions_after(self._open_at_cut, known, read)

    def _committed(self, segments: list[Segment]) -> list[dict[str, Any]]:
        """Return the committed offsets of groups in one partition; those of open transactions are aborted."""
        log = self._log.of_files(Discovery(segments=segments))
        columns = ["group", "topic", "partition", "offset", "leader_epoch", "metadata", "state"]
        rows: list[dict[str, Any]] = log.offsets(columns, strict=False, faults=self.done.faults).to_pylist()
        return [row for row in rows if row["state"] == "committed"]

    def _new_image(self) -> ImageAt:
        partitions = [
            ReplicasOfPartition(*one.target, one.topic_id, self._epochs[one.target], one.places)
            for one in self._planned
        ]
        ids = self._log.image(cache=False).image.tables(["ProducerIdsRecord"])["ProducerIdsRecord"]
        next_id = max(ids.column("next_producer_id").to_pylist(), default=0)
        image = restored_image(self._at.image, self._nodes, partitions, self._new_names, next_id, self.done.notes)
        return replace(self._at, image=image)

    def _write_node(self, folder: Path, node: NewNode, at: ImageAt, voters: list[Voter]) -> None:
        for number, directory in enumerate(node.directories(folder)):
            there = [one.target for one in self._planned if Place(node, number) in one.places]
            if number == 0 and node.voter is not None:
                write_controller(
                    directory,
                    of_voters(at, voters, self._quorum),
                    self.done.cluster_id,
                    node.node_id,
                    node.directory_ids[0],
                )
            else:
                write_meta_properties(directory, self.done.cluster_id, node.node_id, node.directory_ids[number])
            ends: dict[tuple[str, int], int] = {of: self._ends[of] for of in there}
            record_recovery_points(directory, ends)
            set_offsets(directory / HIGH_WATERMARKS, dict(ends))
            set_offsets(directory / LOG_START_OFFSETS, {of: self._starts[of] or None for of in there})
            # its files are complete, and its last epoch is that of the registration: its replicas are in sync
            write_file(directory / CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":%d}' % BROKER_EPOCH)
        counts: dict[str, int] = {}
        for one in self._planned:
            counts[one.target.topic] = counts.get(one.target.topic, 0) + 1
        properties = node.properties(self._target, voters, self._quorum)
        properties |= internal_topic_properties(counts, len(self._nodes))
        text = properties_text(properties, [f"node {node.node_id} of the restored cluster {self.done.cluster_id}"])
        write_file(folder / node.name / PROPERTIES_FILE, text.encode())

    def _groups(self, folder: Path) -> dict[str, dict[str, int]]:
        """Return the committed offsets, as they are in what was written."""
        written = {one.places[0].path(folder) / str(one.target) for one in self._planned if one.segments}
        paths = [path for path in written if path.name.startswith(CONSUMER_OFFSETS)]
        groups: dict[str, dict[str, int]] = {}
        if not paths:
            return groups
        rows = open_log(paths).offsets(strict=False, faults=self.done.faults).to_pylist()
        for row in sorted(rows, key=lambda row: (row["group"], row["topic"], row["partition"])):
            if row["state"] == "committed":
                groups.setdefault(row["group"], {})[f"{row['topic']}-{row['partition']}"] = row["offset"]
        return groups

    def _note(self, fault: Fault) -> None:
        if self._options.strict:
            raise error_from_fault(fault)
        self.done.faults.append(fault)


def _copy_folder(source: Path, target: Path) -> None:
    disk().make_new_folder(target)
    for entry in disk().entries(source):
        copy_file(source / entry.name, target / entry.name)
    disk().sync_folder(target)
