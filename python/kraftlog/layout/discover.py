"""From paths to partitions and segments. Lists files; opens none."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from kraftlog.disk.backup_path import MARKER, BackupPath
from kraftlog.disk.disk import disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import AnyPath, LogPath, RemotePath, StorageOptions, log_path
from kraftlog.errors import Fault
from kraftlog.layout import names
from kraftlog.layout.backups import at_cut, backup_path, newest_backup, read_manifest
from kraftlog.layout.checkpointed_offsets import CheckpointedOffsets, Checkpoints
from kraftlog.layout.checkpoints import read_properties
from kraftlog.layout.identity import Identity
from kraftlog.layout.listing import IsWanted, Listing, local_matches
from kraftlog.layout.log_directory import MARKS, is_log_directory, stops_broker
from kraftlog.layout.partition_folder import PartitionFolder, is_known
from kraftlog.layout.segment import Segment
from kraftlog.layout.tier.remote_tier import RemoteTier
from kraftlog.layout.unread import MISSING_SEGMENT, STOPS_BROKER, Unread
from kraftlog.topics import CLUSTER_METADATA, REMOTE_LOG_METADATA, TopicPartition
from kraftlog.transactions.cut import CutTime, Side

LogPaths: TypeAlias = AnyPath | RemoteTier | Iterable[AnyPath | RemoteTier | Identity | CutTime]
Item = TypeVar("Item", Segment, Unread, "EmptyPartition")

READINGS = 5  # of partitions whose files are deleted or replaced while they are read
_MAGIC_AT = 16  # in the header of a batch, as in that of a message of magic 0 and 1

NOT_KAFKAS = "not a file that Kafka writes here"
NO_PARTITION = "a broker does not start with a folder in its log directory whose name is not topic-partition"


@dataclass(frozen=True)
class Source:
    """What a caller asked to open.

    Attributes
    ----------
    paths : tuple
        Paths, remote tiers and identities, as in ``discover``.
    storage_options : mapping or None
    is_wanted : callable or None
        Whether a partition is selected, by topic and number; None selects each.
    """

    paths: tuple[AnyPath | RemoteTier | Identity | CutTime, ...]
    storage_options: StorageOptions | None = None
    is_wanted: IsWanted | None = None

    def discover(self) -> Discovery:
        """List the files again.

        Raises
        ------
        FileNotFoundError, ValueError
            As ``discover``.
        """
        found = discover(self.paths, self.storage_options, self.is_wanted)
        return found if self.is_wanted is None else found.only(self.is_wanted)


@dataclass(frozen=True)
class EmptyPartition:
    """A partition whose folder has no segment yet; a broker begins its log at the log start offset.

    Attributes
    ----------
    folder : Path or RemotePath
    topic : str
    partition : int
    log_start_offset : int
        From ``log-start-offset-checkpoint``; 0 without an entry.
    """

    folder: LogPath
    topic: str
    partition: int
    log_start_offset: int = 0

    @property
    def topic_id(self) -> str | None:
        """From ``partition.metadata``; None if it cannot be read."""
        try:
            return read_properties(self.folder / names.PARTITION_METADATA).get("topic_id")
        except (OSError, ValueError):
            return None


@dataclass
class Discovery:
    """The content of paths: live segments in order, segments in other states, and files that are not read.

    Attributes
    ----------
    segments, set_aside : list of Segment
    unread : list of Unread
    not_wanted : list of TopicPartition
        Partitions that were skipped, without listing their folders.
    metadata_log : list of Segment
        Live segments of the metadata log that was found, also where it is not among those that are wanted.
    notes : list of str
        Notes for the user on how the files were chosen.
    faults : list of Fault
        Faults outside the chosen files that may have changed the choice.
    source : Source or None
        From which they were listed; None for other files.
    cut : CutTime or None
        The cut that a path names, of a backup at a time.
    ends_at_cut : mapping of TopicPartition to int
        Where partitions end, of a log that was cut. Groups may have committed offsets after these.
    empty_partitions : list of EmptyPartition
    """

    segments: list[Segment] = field(default_factory=list)
    set_aside: list[Segment] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    not_wanted: list[TopicPartition] = field(default_factory=list)
    metadata_log: list[Segment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    source: Source | None = None
    cut: CutTime | None = None
    ends_at_cut: Mapping[TopicPartition, int] = field(default_factory=dict)
    empty_partitions: list[EmptyPartition] = field(default_factory=list)

    def without(self, places: set[LogPath]) -> Discovery:
        """Return the discovery without some folders or log directories."""

        def is_outside(path: LogPath) -> bool:
            around = path.absolute(), path.absolute().parent, path.absolute().parent.parent
            return places.isdisjoint(around)

        def outside(segments: Iterable[Segment]) -> list[Segment]:
            return [one for one in segments if is_outside(one.folder)]

        return replace(
            self,
            segments=outside(self.segments),
            set_aside=outside(self.set_aside),
            unread=[one for one in self.unread if is_outside(one.path)],
            metadata_log=outside(self.metadata_log),
            empty_partitions=[one for one in self.empty_partitions if is_outside(one.folder)],
        )

    def only(self, is_wanted: Callable[[str | None, int | None], bool]) -> Discovery:
        """Return the discovery of selected partitions, and files that may be missing from them."""

        def wanted(items: Iterable[Item]) -> list[Item]:
            return [item for item in items if is_wanted(item.topic, item.partition)]

        of_all = [one for one in self.unread if one.is_fault and one.topic is None]
        return Discovery(
            wanted(self.segments),
            wanted(self.set_aside),
            [*of_all, *wanted(one for one in self.unread if one not in of_all)],
            metadata_log=self.metadata_log,
            notes=self.notes,
            faults=self.faults,
            source=self.source,
            cut=self.cut,
            ends_at_cut=self.ends_at_cut,
            empty_partitions=wanted(self.empty_partitions),
        )

    def narrowed(self, is_wanted: IsWanted) -> Discovery:
        """Return the discovery of selected partitions, as which they are listed again."""
        source = None if self.source is None else replace(self.source, is_wanted=is_wanted)
        return replace(self, source=source).only(is_wanted)

    def listed_again(self) -> Discovery | None:
        """Return the files that are there now; None if they cannot be listed."""
        if self.source is None:
            return None
        try:
            return self.source.discover()
        except ValueError:
            return Discovery()  # the last topic was deleted
        except FileNotFoundError:
            directories = {one.folder.absolute().parent for one in self.segments}
            return Discovery() if all(disk().entry(one) is not None for one in directories) else None
        except OSError:
            return None


def discover(
    paths: LogPaths, storage_options: StorageOptions | None = None, is_wanted: IsWanted | None = None
) -> Discovery:
    """Find the segments in paths.

    Parameters
    ----------
    paths : path, RemoteTier, or iterable of these
        A segment file, a partition's folder, a log directory, or a glob of these; of another file system by URI. A
        ``RemoteTier`` belongs to the other paths, or is the only one. An ``Identity`` chooses topics and a cluster.
    storage_options : mapping, optional
        For the file systems of URIs.
    is_wanted : callable, optional
        Whether to read a partition, by topic and number; by default each. Folders of others are not listed, except
        those of topics that tell which segments are valid.

    Raises
    ------
    FileNotFoundError
        When a path does not exist, or a glob matches nothing.
    ValueError
        When a folder holds no log files, or no file that is named is one.
    """
    each = each_path(paths)
    tiers = [path for path in each if isinstance(path, RemoteTier)]
    consulted = {CLUSTER_METADATA, REMOTE_LOG_METADATA} if tiers else {CLUSTER_METADATA}

    def is_listed(topic: str | None, partition: int | None) -> bool:
        return is_wanted is None or topic in consulted or is_wanted(topic, partition)

    discovery = Discovery(source=Source(tuple(each), storage_options, is_wanted))
    listing = Listing(None if is_wanted is None else is_listed)
    checkpoints = Checkpoints(listing, discovery.unread)
    others = [path for path in each if not isinstance(path, RemoteTier | Identity | CutTime)]  # ``open`` cuts
    expanded = expanded_paths(others, storage_options, listing) if others or not tiers else ()
    if len(expanded) > 1:
        expanded = list({path.resolve(): path for path in reversed(expanded)}.values())[::-1]
    has_folders = False
    backups: dict[BackupPath, None] = {}
    for named in expanded:
        path = named
        if listing.is_dir(path):
            has_folders = True
            entries = listing.entries(path)
            if not isinstance(path, BackupPath) and any(one.name == MARKER for one in entries):
                path = newest_backup(path)
                entries = listing.entries(path)
            if isinstance(path, BackupPath):
                backups[replace(path, key="")] = None
            _discover_folder(path, entries, listing, checkpoints, is_listed, discovery)
        else:
            _discover_file(path, listing, checkpoints, discovery)
    if len(discovery.unread) == len(expanded) > 0 and not (tiers or has_folders):
        raise ValueError(_no_log(discovery.unread[0]))
    for backup in backups:
        manifest = read_manifest(backup.repository, backup.backup, backup.backup_key)
        discovery.faults += manifest.faults
        if backup.until is None:
            discovery.ends_at_cut = {**discovery.ends_at_cut, **manifest.ends}
        else:
            discovery.cut = CutTime(Side.AT_OR_BEFORE, backup.until)
    if len(expanded) > 1:  # one path does not lead to a file twice
        discovery.segments = _unique(discovery.segments)
    for tier in tiers:
        _discover_tier(tier, storage_options, is_wanted, discovery)
    discovery.segments = at_cut(_in_order(discovery.segments))
    discovery.metadata_log = [one for one in discovery.segments if one.topic == CLUSTER_METADATA and not one.state]
    for identity in each:
        if isinstance(identity, Identity):
            counted = [one for one in discovery.segments if is_listed(one.topic, one.partition)]
            discovery = discovery.without(identity.others(counted, discovery.unread))
    return discovery


def each_path(paths: LogPaths) -> list[AnyPath | RemoteTier | Identity | CutTime]:
    """Return each of the paths that a caller gave: one, or several."""
    items: Any = paths
    return list(items) if isinstance(items, Iterable) and not isinstance(items, str | bytes | os.PathLike) else [items]


def _discover_tier(
    tier: RemoteTier, storage_options: StorageOptions | None, is_wanted: IsWanted | None, discovery: Discovery
) -> None:
    """Add the segments of a remote tier."""
    from kraftlog.layout.tier.data_key import KeyRing
    from kraftlog.layout.tier.find import stored_segments
    from kraftlog.layout.tier.join import join
    from kraftlog.layout.tier.metadata_topic import heeding_metadata

    stored = stored_segments(tier.located(storage_options), KeyRing(tier.keys), is_wanted)
    stored = heeding_metadata(stored, discovery.segments)
    joined = join(discovery.segments, stored.segments)
    discovery.segments += joined.segments
    discovery.unread += [*stored.unread, *joined.unread]
    discovery.not_wanted += stored.not_wanted


def _unique(segments: list[Segment]) -> list[Segment]:
    """Return the segments without duplicates from overlapping paths."""
    folders: dict[LogPath, LogPath] = {}
    unique: dict[LogPath, Segment] = {}
    for segment in segments:
        path, folder = segment.path, segment.folder
        if isinstance(path, Path) and path.is_symlink():
            unique[path.resolve()] = segment
            continue
        if folder not in folders:
            folders[folder] = folder.resolve()
        unique[folders[folder] / path.name] = segment
    return list(unique.values())


def _in_order(segments: list[Segment]) -> list[Segment]:
    """Return the segments by topic, partition and folder; in a folder the live ones first, by base offset."""
    partitions: dict[TopicPartition, list[Segment]] = {}
    for segment in segments:
        partitions.setdefault(TopicPartition(segment.topic or "", segment.partition or 0), []).append(segment)
    ordered: list[Segment] = []
    for _, some in sorted(partitions.items()):
        ordered += sorted(some, key=_order) if len(some) > 1 else some
    return ordered


def _order(segment: Segment) -> tuple[object, ...]:
    is_remote = isinstance(segment.folder, RemotePath)  # such paths do not compare with local ones
    return is_remote, segment.folder, bool(segment.state), segment.base_offset or 0, segment.file_name


def expanded_paths(
    paths: AnyPath | Iterable[AnyPath],
    storage_options: StorageOptions | None = None,
    listing: Listing | None = None,
) -> Sequence[LogPath]:
    """Return paths with globs expanded; raise for one that matches nothing."""
    each = each_path(paths)
    if not each:
        raise ValueError("expected a path, found none")
    listing = listing or Listing()
    expanded: list[LogPath] = []
    for item in each:
        path = backup_path(item, storage_options) or log_path(item, storage_options)
        if isinstance(path, RemotePath) and not glob.has_magic(path.key):
            expanded.append(path)  # listing it will show whether it exists
        elif isinstance(path, Path) and disk().entry(path) is not None:
            expanded.append(path)
        elif glob.has_magic(str(path)):
            matches = listing.matches(path) if isinstance(path, RemotePath) else local_matches(os.fspath(path))
            if not matches:
                raise FileNotFoundError(f"no file matches {path}")
            expanded += matches
        else:
            raise FileNotFoundError(f"no such file or directory: {path}")
    return expanded


def _discover_file(path: LogPath, listing: Listing, checkpoints: Checkpoints, discovery: Discovery) -> None:
    """Add a file of the user: as a log, unless its name shows another type."""
    entry = listing.file(path)
    if entry is None:
        raise FileNotFoundError(f"no such file or directory: {path}")
    parsed = names.parse_segment_file(path.name)
    topic, partition = names.parse_partition_folder(path.absolute().parent.name) or (None, None)
    if (parsed and parsed.kind != "log") or path.name in names.KNOWN_FILES:
        discovery.unread.append(Unread(path, entry.size or 0, "not a file of record batches", topic, partition))
        return
    if not (parsed or names.parse_checkpoint_file(path.name) is not None or not entry.size or _begins_with_batch(path)):
        why = "neither its name nor its first bytes are those of a log file"
        discovery.unread.append(Unread(path, entry.size or 0, why, topic, partition))
        return
    state = parsed.state if parsed else ".checkpoint" if names.parse_checkpoint_file(path.name) is not None else ""
    start = 0 if state else checkpoints.of_folder(path.parent).log_start_offset
    base_offset = parsed.base_offset if parsed else None
    segment = Segment(path.parent, path.name, entry.size or 0, base_offset, topic, partition, state, (), start)
    if parsed:
        possible = replace(segment, kinds_beside=("index", "timeindex", "txnindex", "snapshot"))
        there = tuple(kind for kind, path in possible.beside.items() if listing.file(path) is not None)
        segment = replace(segment, kinds_beside=there)
    discovery.segments.append(segment)


def _begins_with_batch(path: LogPath) -> bool:
    """Whether a file begins with a length and a magic that a record batch may have."""
    file = disk().open(path)
    try:
        first = file.read(0, min(file.size, _MAGIC_AT + 1))
    finally:
        file.close()
    return len(first) > _MAGIC_AT and int.from_bytes(first[8:12], "big", signed=True) > 0 and first[_MAGIC_AT] <= 2


def _no_log(file: Unread) -> str:
    """Return what a file is that is no log, and what shows it."""
    name, path = names.printable(file.path.name), names.printable(str(file.path))
    parsed = names.parse_segment_file(name)
    if parsed is not None and parsed.kind in names.KINDS_BESIDE:
        checked = f"kraftlog dump {path} shows it, and kraftlog verify {path} checks it"
        return f"{path} is {names.KINDS_BESIDE[parsed.kind]}, not a log: {checked}"
    if name in names.KNOWN_FILES:
        return f"{path} is {names.KNOWN_FILES[name]}, not a log: it is text, as it stands"
    return f"{path} is not a log: {file.reason}"


def _discover_folder(
    folder: LogPath,
    entries: list[Entry],
    listing: Listing,
    checkpoints: Checkpoints,
    is_listed: IsWanted,
    discovery: Discovery,
) -> None:
    is_partition = any(entry.is_file and names.parse_segment_file(entry.name) for entry in entries)
    parsed = {entry.name: names.parse_partition_folder(entry.name) for entry in entries if entry.is_dir}
    partitions = {name: partition for name, partition in parsed.items() if partition is not None}
    of_folder = names.parse_partition_folder(folder.absolute().name)
    if is_partition or (of_folder is not None and not partitions):
        if of_folder is not None and not is_listed(*of_folder):
            discovery.not_wanted.append(of_folder)
            return
        _take_partition(PartitionFolder.of(folder, listing, checkpoints.of_folder(folder)), discovery)
        return
    before, of_broker = len(discovery.segments), is_log_directory(entries)
    for entry in entries:
        if of_broker and stops_broker(entry):
            discovery.unread.append(Unread(folder / entry.name, 0, NO_PARTITION, error=STOPS_BROKER))
            continue
        if entry.name in partitions and (transition := names.transition_of(entry.name)):
            reason = f"the folder of a partition that Kafka marked {transition}"
            discovery.unread.append(Unread(folder / entry.name, 0, reason, *partitions[entry.name]))
        elif entry.name in partitions and not is_listed(*partitions[entry.name]):
            discovery.not_wanted.append(partitions[entry.name])
        elif entry.name in partitions:
            checkpointed = checkpoints.of(folder, entry.name)
            _discover_inner(folder / entry.name, listing, checkpointed, discovery, of_broker=of_broker)
        elif not is_known(entry):
            discovery.unread.append(Unread(folder / entry.name, entry.size or 0, NOT_KAFKAS))
    if len(discovery.segments) == before and all(map(names.transition_of, partitions)):
        raise ValueError(f"{folder}: neither a partition's folder nor a log directory: no log files in it")


def _discover_inner(
    folder: LogPath,
    listing: Listing,
    checkpointed: CheckpointedOffsets,
    discovery: Discovery,
    *,
    of_broker: bool,
) -> None:
    try:
        partition_folder = PartitionFolder.of(folder, listing, checkpointed)
    except FileNotFoundError:
        return  # the topic was deleted after the log directory was listed
    except OSError as error:
        topic, partition = names.parse_partition_folder(folder.name) or (None, None)
        discovery.unread.append(
            Unread(folder, 0, str(error.strerror or error), topic, partition, error="unreadable_file")
        )
        return
    _take_partition(partition_folder, discovery)
    if partition_folder.is_empty and (of_broker or partition_folder.path_of(names.PARTITION_METADATA) is not None):
        of = names.parse_partition_folder(folder.name)
        if of is not None:
            discovery.empty_partitions.append(EmptyPartition(folder, *of, checkpointed.log_start_offset))


def _take_partition(folder: PartitionFolder, discovery: Discovery) -> None:
    topic, partition = folder.topic, folder.partition
    discovery.segments += folder.segments
    for entry in folder.unknown:
        discovery.unread.append(Unread(folder.path / entry.name, entry.size or 0, NOT_KAFKAS, topic, partition))
    for offset in folder.missing_segments:
        path, why = folder.path / f"{offset:020d}.log", "the log file is missing; its index files are there"
        discovery.unread.append(Unread(path, 0, why, topic, partition, offset, MISSING_SEGMENT))
    for segment in folder.set_aside:
        discovery.set_aside.append(segment)
        reason = names.STATES.get(segment.state, f"a log file in the state {segment.state}")
        discovery.unread.append(Unread(segment.path, segment.size, reason, topic, partition, segment.base_offset))


def stopping_folders(log_directories: Iterable[Path]) -> list[Fault]:
    """Return the folders in log directories that stop a broker.

    Other folders are not listed: a copy of a partition may be in a folder that is large, or that the user may not list.
    """
    of_brokers = [path for path in sorted(log_directories) if any(disk().entry(path / mark) for mark in MARKS)]
    return [
        Fault(STOPS_BROKER, f"{names.printable(str(path / entry.name))}: {NO_PARTITION}", size_in_bytes=0)
        for path in of_brokers
        for entry in disk().entries(path)
        if stops_broker(entry)
    ]
