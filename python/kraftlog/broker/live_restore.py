"""``kraftlog.restore_live``: topics, records and groups of a backup or of log directories, into a live cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.restore import MISSING, REPORT_FILE, image_of
from kraftlog.backup.restored_coordinators import MovedOffset
from kraftlog.backup.restored_image import TOPIC, new_configs
from kraftlog.backup.source_partitions import check_new_names, chosen_topics, source_partitions
from kraftlog.broker.client import BrokerOfCluster, Client, NewTopic, Place
from kraftlog.broker.errors import ReplayError
from kraftlog.broker.mapping import OffsetMapping, Run, read_mapping, runs_in
from kraftlog.broker.replay import DEFAULT_TIMEOUT, Target, replay_partitions
from kraftlog.broker.run import Replay
from kraftlog.broker.state import State, path_of
from kraftlog.codec.options import READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import UNFINISHED, write_file
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import LogPaths, each_path
from kraftlog.layout.log_directory import refuse_inside
from kraftlog.layout.segment import Segment
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.read.log_pass import Progress
from kraftlog.read.partitions import log_start_offset
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.tables.unread_files import note_unreadable
from kraftlog.topics import INTERNAL_TOPICS, REPLAY_GROUP, TopicPartition, names
from kraftlog.transactions.cut import Cut, CutTime

MAPPING_FILE = "mapping.csv"
_REPORT_VERSION = 1
_NOT_RESTORED = {
    "AccessControlEntryRecord": "ACLs",
    "UserScramCredentialRecord": "SCRAM credentials",
    "ClientQuotaRecord": "quotas",
}


@dataclass
class LivePartition:
    """A partition of the target.

    Attributes
    ----------
    topic, partition : str, int
        At the target.
    source_topic : str
    source_bytes : int
        Size of the segments from which it is read.
    has_data : bool
        Whether there is a folder of the partition among the files.
    log_start_offset : int
        Of the source.
    replicas : tuple of int
        Node ids, the preferred leader first.
    records : int
        Those that were replayed, also by earlier runs.
    start_offset, end_offset : int
        Offset of the first of them at the target, and the end of the partition.
    source_end_offset : int
        The end of the replay in the source.
    """

    topic: str
    partition: int
    source_topic: str
    source_bytes: int
    has_data: bool
    log_start_offset: int
    replicas: tuple[int, ...] = ()
    records: int = 0
    start_offset: int = 0
    end_offset: int = 0
    source_end_offset: int = 0

    @property
    def name(self) -> str:
        """Topic and number."""
        return f"{self.topic}-{self.partition}"


@dataclass
class LiveRestore:
    """The result of ``restore_live``, which is also the content of ``restored.json``.

    Attributes
    ----------
    cluster_id : str
        Of the target.
    source_cluster_id : str or None
    metadata_offset : int
        Offset of the last record of the metadata log that is in the image.
    nodes : list of BrokerOfCluster
        The brokers of the target.
    new_topics : list of NewTopic
        Topics that the target did not have.
    partitions : list of LivePartition
    groups : dict
        Groups with committed offsets: group, and its offsets by partition. In a dry run they are those of the source.
    moved_offsets : list of MovedOffset
        Committed offsets that differ from those of the source.
    excluded_keys_sha256 : str or None
        Of the keys whose records were left out.
    obstacles : list of str
        What is in the way at the target; only a dry run returns them.
    faults : list of Fault
        Their data is missing at the target.
    notes : list of str
    """

    cluster_id: str
    source_cluster_id: str | None
    metadata_offset: int
    nodes: list[BrokerOfCluster]
    new_topics: list[NewTopic] = field(default_factory=list)
    partitions: list[LivePartition] = field(default_factory=list)
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    moved_offsets: list[MovedOffset] = field(default_factory=list)
    excluded_keys_sha256: str | None = None
    obstacles: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return what was done, as JSON can hold it; with the names of the report of ``restore``."""
        return {
            "version": _REPORT_VERSION,
            "cluster_id": self.cluster_id,
            "source_cluster_id": self.source_cluster_id,
            "metadata_offset": self.metadata_offset,
            "nodes": [asdict(one) for one in self.nodes],
            "new_topics": [asdict(one) for one in self.new_topics],
            "partitions": [asdict(one) for one in self.partitions],
            "mapping": MAPPING_FILE,
            "groups": self.groups,
            "ended_transactions": [],
            "moved_offsets": [asdict(one) for one in self.moved_offsets],
            "excluded_keys_sha256": self.excluded_keys_sha256,
            "obstacles": self.obstacles,
            "faults": [{"error": fault.error, "message": fault.message} for fault in self.faults],
            "notes": self.notes,
        }


def restore_live(
    paths: LogPaths,
    to: str,
    target: str | Path,
    *,
    topics: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    rename: Mapping[str, str] | None = None,
    cut: str | CutTime | Cut | None = None,
    metadata_offset: int | None = None,
    rate: int | str | None = None,
    compression: str | None = None,
    heal: bool = True,
    strict: bool = False,
    dry_run: bool = False,
    exclude_keys: str | Path | None = None,
    client_settings: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    on_progress: Progress | None = None,
) -> LiveRestore:
    """Create the topics of a cluster in a live one, produce their committed records, and set the offsets of groups.

    Topics get the partitions and configs of the source, and as many replicas as there, as far as there are brokers.
    Records are sent as by ``replay``. The target assigns new offsets; groups get the offsets at which they read on with
    the same record. Internal topics, ACLs, users and quotas of the target stay as they are.

    Nothing is changed before all checks have passed: topics of the same name must have the same partitions and be
    empty, and groups must have no members and no offsets in these topics. After an interruption, the same call with the
    same folder resumes; no record is lost or duplicated.

    Parameters
    ----------
    paths : path or iterable of paths
        As in ``kraftlog.open``: a backup, or the log directories of all brokers, with the metadata log.
    to : str
        HOST:PORT of one or more brokers, separated by commas.
    target : path
        A new or empty folder, or that of a restore that was interrupted: it gets the mapping of offsets and
        ``restored.json``, the report.
    topics : str or iterable of str, optional
        Names or patterns, as ``orders*``; by default all but internal ones.
    partitions : iterable of int, optional
        Only the data of these partitions; the others are there, without records.
    rename : mapping of str to str, optional
        New names of topics. Committed offsets move with them.
    cut : str or Cut, optional
        As in ``kraftlog.open``.
    metadata_offset : int, optional
        Last record of the metadata log to apply; by default that of the cut, or the last one.
    rate : int or str, optional
        Maximum records per second, or bytes of keys and values, such as ``"10MB"``.
    compression : {"none", "gzip", "snappy", "lz4", "zstd"}, optional
        Compression of the produced batches; default: none.
    heal : bool
        Read missing or damaged offsets of the chosen replica from replicas that agree with it.
    strict : bool
        Raise at the first fault; committed records remain.
    dry_run : bool
        Change nothing, and return what would be done, what is missing and what is in the way.
    exclude_keys : path, optional
        A file with a key on each line, whose records are left out: UTF-8 or ``base64:...``, after a topic and a tab
        only those of this topic.
    client_settings : mapping of str to str, optional
        Properties of librdkafka, such as ``security.protocol``.
    timeout : float
        Seconds after which a broker that does not answer is given up.
    on_progress : callable, optional
        Called with the bytes that were read since the last call.

    Returns
    -------
    LiveRestore

    Raises
    ------
    ReplayError
        When something at the target is in the way, or it refuses a record, or does not answer.
    ValueError
        When there is no metadata log, the folder is that of another or a finished restore, or a name is not known.
    RecordError
        With ``strict``; and when the metadata log cannot be read.
    ImportError
        When confluent-kafka is not installed.

    Examples
    --------
    >>> import kraftlog
    >>> done = kraftlog.restore_live("nightly", "localhost:9092", "evidence", topics=["orders*"])  # doctest: +SKIP
    >>> [(one.name, one.records, one.end_offset) for one in done.partitions]  # doctest: +SKIP
    [('orders-0', 118, 120), ('orders-1', 60, 62)]
    """
    given = each_path(paths)
    asked = next((path for path in given if isinstance(path, CutTime)), cut)
    files: list[Any] = [path for path in given if not isinstance(path, CutTime)]
    log = open_log(files, cut=asked)
    at = asked or log.found.cut  # that of a path such as nightly@2026-11-24T03:00Z
    time = CutTime.of(at) if isinstance(at, str) else at if isinstance(at, CutTime) else None
    options = ReadOptions(isolation_level=READ_COMMITTED, heal=heal, strict=strict)
    folder = Path(target)
    to_replay = Target(
        to,
        folder / MAPPING_FILE,
        rate=rate,
        compression=compression,
        settings=client_settings or {},
        timeout=timeout,
        excluded=ExcludedKeys.of_file(exclude_keys),
    )
    _check_folder(folder, log)
    state = State.read(to_replay.mapping)
    name = f"{REPLAY_GROUP}check" if state is None else state.name
    with closing(Client(to, name, to_replay.settings, timeout)) as client:
        run = _LiveRestore(log, client, to_replay, state, image_of(log, time, metadata_offset), options, rename or {})
        run.plan(names(topics), None if partitions is None else set(partitions))
        run.check()
        if not dry_run:
            run.write(on_progress)
        return run.done


def _check_folder(folder: Path, log: Log) -> None:
    """Refuse a folder with other content than that of an interrupted restore."""
    there = disk().entry(folder)
    if there is not None and not there.is_dir:
        raise ValueError(f"{folder} is not a folder; choose a new or empty one")
    held = {entry.name for entry in disk().entries(folder)} if there is not None else set()
    if REPORT_FILE in held:
        raise ValueError(f"{folder} has the report of a finished restore; choose a new or empty folder")
    own = {MAPPING_FILE, path_of(folder / MAPPING_FILE).name}
    others = sorted(name for name in held - own if not name.endswith(UNFINISHED))
    if others:
        raise ValueError(f"{folder} holds {others[0]}; choose a new or empty folder")
    refuse_inside(folder, log.folders)


class _LiveRestore:
    """One restore: what is planned, checked, then done."""

    def __init__(
        self,
        log: Log,
        client: Client,
        target: Target,
        state: State | None,
        at: ImageAt,
        options: ReadOptions,
        rename: Mapping[str, str],
    ) -> None:
        self._log, self._client, self._target, self._state = log, client, target, state
        self._at, self._options, self._rename = at, options, rename
        self._new_names: dict[str, str] = {}
        self._topics: list[NewTopic] = []
        self._segments: dict[Place, list[Segment]] = {}
        self._committed: dict[str, list[dict[str, Any]]] = {}
        ids = {one.cluster_id for lines in log.lines.partitions for one in lines.replicas} - {None}
        cluster_id = next(iter(ids)) if len(ids) == 1 else None
        self.done = LiveRestore(client.cluster_id(), cluster_id, at.offset, client.brokers())
        self.done.notes += log.lines.notes(heals=options.heal)
        self.done.excluded_keys_sha256 = None if target.excluded is None else target.excluded.sha256

    def plan(self, patterns: list[str] | None, numbers: set[int] | None) -> None:
        """Decide which topics, partitions and groups there will be."""
        note_unreadable(self._log.found, self.done.faults, strict=self._options.strict)
        tables = self._at.image.tables(["TopicRecord", "PartitionRecord", "ConfigRecord", *_NOT_RESTORED])
        topics = {row["topic_id"]: row["name"] for row in tables["TopicRecord"].to_pylist()}
        chosen = chosen_topics(sorted(topics.values()), patterns) - INTERNAL_TOPICS
        if not chosen:
            raise ValueError("no topic to restore: the metadata has internal ones only")
        self._new_names = {name: self._rename.get(name, name) for name in chosen}
        check_new_names(self._new_names, self._rename)
        segments = source_partitions(self._log, topics, self._options, self.done.notes)
        rows = [row for row in tables["PartitionRecord"].to_pylist() if topics.get(row["topic_id"]) in chosen]
        rows.sort(key=lambda row: (topics[row["topic_id"]], row["partition_id"]))
        counts, replicas = dict[str, int](), dict[str, int]()
        for row in rows:
            source = TopicPartition(topics[row["topic_id"]], row["partition_id"])
            place = self._new_names[source.topic], source.partition
            counts[place[0]] = max(counts.get(place[0], 0), source.partition + 1)
            most = min(len(row["replicas"]), len(self.done.nodes))
            replicas[place[0]] = max(replicas.get(place[0], 1), most)
            is_chosen = numbers is None or source.partition in numbers
            some = segments.get(source, []) if is_chosen else []
            if is_chosen and not some:
                self._note(Fault(MISSING, f"{source}: no folder of it among the files; it will have no records"))
            if some:
                self._segments[place] = some
            start = log_start_offset(some, ReadOptions()) if some else 0
            size = sum(one.size for one in some)
            self.done.partitions.append(
                LivePartition(*place, source.topic, size, has_data=bool(some) or not is_chosen, log_start_offset=start)
            )
        configs = {name: dict[str, str]() for name in counts}
        of_topics = [row for row in tables["ConfigRecord"].to_pylist() if row["resource_type"] == TOPIC]
        for row in new_configs(of_topics, self._new_names, replicas, len(self.done.nodes), self.done.notes.append):
            configs[row["resource_name"]][row["name"]] = row["value"]
        self._topics = [NewTopic(name, count, replicas[name], configs[name]) for name, count in sorted(counts.items())]
        left_out = [what for name, what in _NOT_RESTORED.items() if tables[name].num_rows]
        if left_out:
            self.done.notes.append(f"{', '.join(left_out)} of the source are not restored into a live cluster")
        self._plan_groups()

    def _plan_groups(self) -> None:
        columns = ["group", "topic", "partition", "offset", "metadata", "state"]
        rows = self._log.offsets(columns, strict=self._options.strict, faults=self.done.faults).to_pylist()
        left_out = set[str]()
        for row in sorted(rows, key=lambda row: (row["group"], row["topic"], row["partition"])):
            is_read = row["state"] == "committed" and row["offset"] is not None
            if not is_read or row["group"].startswith(REPLAY_GROUP) or row["topic"] not in self._new_names:
                continue
            place = self._new_names[row["topic"]], row["partition"]
            if place not in self._segments:
                left_out.add(f"{row['topic']}-{row['partition']}")
                continue
            self._committed.setdefault(row["group"], []).append(row)
            self.done.groups.setdefault(row["group"], {})[f"{place[0]}-{place[1]}"] = row["offset"]
        if left_out:
            self.done.notes.append(f"groups get no offsets in {', '.join(sorted(left_out))}, which have no records")

    def check(self) -> None:
        """Compare the plan with the target: what it lacks, and what is in the way."""
        done, there = self.done, self._client.topics()
        starts = {} if self._state is None else self._state.starts
        done.new_topics = [one for one in self._topics if one.name not in there]
        for name, why in self._client.refused_topics(done.new_topics).items() if done.new_topics else ():
            done.obstacles.append(f"the topic {name} cannot be created: {why}")
        for one in self._topics:
            if there.get(one.name, one.partitions_count) != one.partitions_count:
                done.obstacles.append(
                    f"the topic {one.name} has {there[one.name]} partitions, and {one.partitions_count} in the source"
                )
        known = [one for one in self._topics if there.get(one.name) == one.partitions_count]
        self._compare_configs(known)
        places = [(one.name, number) for one in known for number in range(one.partitions_count)]
        for (topic, partition), (begin, end) in self._client.ends(one for one in places if one not in starts).items():
            if begin < end:
                done.obstacles.append(f"{topic}-{partition} holds offsets {begin} to {end - 1}")
        self._check_state(starts)
        busy = self._client.busy_groups()
        for group in self._committed:
            if group in busy:
                done.obstacles.append(f"the group {group} has members ({busy[group]}); its offsets cannot be set")
        if self._state is None:
            for group, offsets in self._offsets_there(known).items():
                done.obstacles.append(f"the group {group} has offsets in {', '.join(sorted(offsets))}")

    def _check_state(self, starts: Mapping[Place, int]) -> None:
        state = self._state
        if state is None:
            return
        if state.cluster_id != self.done.cluster_id:
            self.done.obstacles.append(f"{self._target.mapping} is of the cluster {state.cluster_id}")
        others = sorted(f"{topic}-{partition}" for topic, partition in starts.keys() - self._segments.keys())
        if others:
            self.done.obstacles.append(f"{self._target.mapping} is of a restore with {', '.join(others)} as well")

    def _compare_configs(self, topics: list[NewTopic]) -> None:
        """Note configs of topics that are there already: they stay as they are."""
        found = self._client.configs(one.name for one in topics)
        for one in topics:
            has = found.get(one.name, {})
            other = [f"{name}={has[name]}" for name, value in one.configs.items() if has.get(name, value) != value]
            if other:
                expected = [f"{name}={one.configs[name]}" for name in one.configs if has.get(name) != one.configs[name]]
                self.done.notes.append(
                    f"the topic {one.name} keeps {', '.join(other)}; in the source it has {', '.join(expected)}"
                )

    def _offsets_there(self, topics: list[NewTopic]) -> dict[str, dict[str, int]]:
        """Return the offsets that groups of the source have in topics of the target."""
        known = {one.name for one in topics}
        found = {}
        for group, rows in self._committed.items():
            places = [place for row in rows if (place := (self._new_names[row["topic"]], row["partition"]))[0] in known]
            there = self._client.group_offsets(group, places) if places else {}
            if there:
                found[group] = {f"{topic}-{partition}": offset for (topic, partition), offset in there.items()}
        return found

    def write(self, on_progress: Progress | None) -> None:
        """Create topics, send records, set offsets, and write the report."""
        if self.done.obstacles:
            more = len(self.done.obstacles) - 1
            rest = f"; {more} more, which a dry run lists" if more else ""
            raise ReplayError(f"{self._client.to}: {self.done.obstacles[0]}{rest}")
        disk().make_folder(self._target.mapping.parent)
        if self.done.new_topics:
            self._client.create_topics(self.done.new_topics)
        if self._segments:
            replay = Replay()
            replay_partitions(self._segments, dict, self._target, self._options, self._rename, replay, on_progress)
            self.done.faults += [fault for fault in replay.faults if fault not in self.done.faults]
            self.done.notes += [note for note in replay.notes if note not in self.done.notes]
            self._read_mapping()
            self._set_offsets(OffsetMapping(self._target.mapping))
        replicas = self._client.replicas()
        ends = self._client.ends((one.topic, one.partition) for one in self.done.partitions)
        for one in self.done.partitions:
            one.replicas = replicas.get((one.topic, one.partition), ())
            one.end_offset = ends[one.topic, one.partition][1]
        report = json.dumps(self.done.to_dict(), indent=1) + "\n"
        write_file(self._target.mapping.parent / REPORT_FILE, report.encode())

    def _read_mapping(self) -> None:
        runs: dict[Place, list[Run]] = {}
        for run in runs_in(read_mapping(self._target.mapping)):
            runs.setdefault((run.target_topic, run.partition), []).append(run)
        for one in self.done.partitions:
            of = runs.get((one.topic, one.partition), [])
            if of:
                one.records = sum(run.records_count for run in of)
                one.start_offset, one.source_end_offset = of[0].target_offset, of[-1].source_offset

    def _set_offsets(self, mapping: OffsetMapping) -> None:
        """Commit the offsets of groups; those that a group has already, from an interrupted run, stay."""
        groups: dict[str, dict[str, int]] = {}
        without_metadata = 0
        for group, rows in self._committed.items():
            new = dict[Place, int]()
            for row in rows:
                found = mapping.target(row["topic"], row["partition"], row["offset"])
                assert found is not None, f"{row['topic']}-{row['partition']} was replayed"
                topic, offset = found
                new[topic, row["partition"]] = offset
                without_metadata += bool(row["metadata"])
                if (topic, offset) != (row["topic"], row["offset"]):
                    self.done.moved_offsets.append(
                        MovedOffset(group, row["topic"], row["partition"], row["offset"], topic, offset)
                    )
            kept = {} if self._state is None else self._client.group_offsets(group, new)
            missing = {place: offset for place, offset in new.items() if place not in kept}
            if missing:
                self._client.set_group_offsets(group, missing)
            groups[group] = {f"{topic}-{partition}": offset for (topic, partition), offset in (new | kept).items()}
        self.done.groups = groups
        if without_metadata:
            self.done.notes.append(
                f"{without_metadata} committed offsets lose their metadata: the client cannot set it"
            )

    def _note(self, fault: Fault) -> None:
        if self._options.strict:
            raise error_from_fault(fault)
        self.done.faults.append(fault)
