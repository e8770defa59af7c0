"""One run of a backup: the log directories of a cluster to a repository."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import pyarrow.compute as pc

from kraftlog.backup.backup_folder import BackupFolder, Writer
from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.file_list import BESIDE, FilesByPartition, NewFiles, Row
from kraftlog.backup.sizes_at_cut import with_sizes_at_cut
from kraftlog.backup.stored_segment import Object, SegmentStore, StoredSegment, end_of, is_contiguous, source_of
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import NO_BOUND
from kraftlog.disk.backup_files import FILES, written_files
from kraftlog.disk.disk import disk
from kraftlog.disk.in_order import in_order
from kraftlog.disk.remote_path import LogPath, StorageOptions
from kraftlog.errors import CorruptRecordError, Fault, RecordError
from kraftlog.layout.backups import Manifest, SourceDirectory, backup_name
from kraftlog.layout.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    read_offset_checkpoint,
)
from kraftlog.layout.discover import READINGS, Discovery, discover
from kraftlog.layout.log_directory import LogDirectory
from kraftlog.layout.names import PARTITION_METADATA, parse_metadata_snapshot
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, read_topic_ids
from kraftlog.read.segment_reader import segment_headers
from kraftlog.tables.cut import end_cut
from kraftlog.tables.log import Log
from kraftlog.tables.transactions import (
    Commits,
    TransactionsOfLog,
    coordinator_transactions,
    transactional_commits,
)
from kraftlog.tables.unread_files import note_unreadable
from kraftlog.times import milliseconds
from kraftlog.topics import CLUSTER_METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from kraftlog.transactions.cut import Cut
from kraftlog.transactions.transaction import CoordinatorTransaction

SMALL_BYTES = 1 << 20  # a file of more bytes is no checkpoint
_OF_PARTITION = (LEADER_EPOCHS, PARTITION_METADATA, "quorum-state")
_OF_DIRECTORY = (LOG_START_OFFSETS, RECOVERY_POINTS, HIGH_WATERMARKS, CLEANER_OFFSETS)


@dataclass
class _Partition:
    """What is stored of one partition.

    Attributes
    ----------
    notes : list of str
        The offsets that are read from other replicas.
    rows : list of dict
        Its files, until they are in the list of the backup; none if ``is_unchanged``.
    end_offset : int
        The end of the stored log.
    is_unchanged : bool
        Whether its files are those of the newest backup.
    is_continued : bool
        Whether the log has all that the newest backup has.
    is_read : bool
        Whether all its batches were read.
    """

    of: TopicPartition
    topic_id: str | None
    segments: list[Segment]
    notes: list[str]
    rows: list[Row] = field(default_factory=list)
    end_offset: int = 0
    is_unchanged: bool = False
    is_continued: bool = False
    stored_size: int = 0
    torn_bytes: int = 0
    excluded_records: int = 0
    is_read: bool = False
    commits: Commits = field(default_factory=dict)
    read: Pass = field(default_factory=Pass)  # of its commits
    faults: list[Fault] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """Name of its folder in the repository."""
        return f"{self.of}-{self.topic_id}" if self.topic_id else str(self.of)


class _Listed(NamedTuple):
    """A segment as it was listed, beside what the newest backup has.

    Attributes
    ----------
    segment : Segment
    path : str
        In the list of files.
    source : dict or None
        As ``source_of`` returns it.
    row : dict or None
        Of the same file in the newest backup.
    is_unchanged : bool
        Whether that has all of it.
    """

    segment: Segment
    path: str
    source: Row | None
    row: Row | None
    is_unchanged: bool


class Capture:
    """One run of a backup.

    Parameters
    ----------
    paths : list
        Sources.
    topics : list of str or None
    storage_options : mapping or None
    links, checksum, workers, excluded, on_progress
        As in ``backup``.
    """

    def __init__(
        self,
        paths: list[Any],
        topics: list[str] | None,
        storage_options: StorageOptions | None,
        *,
        links: bool = False,
        checksum: bool = False,
        workers: int = 2,
        excluded: ExcludedKeys | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self._links = links
        self._checksum = checksum
        self._workers = workers
        self._excluded = excluded
        self._on_progress = on_progress
        self.taken_ms = time.time_ns() // 1_000_000
        self._topics = wanted = None if topics is None else {*topics}
        self._logs = TransactionsOfLog()
        # Kafka writes to __transaction_state which partitions a transaction has before it writes to them, its decision
        # before its markers, and that it is complete after them (KIP-98). So that topic is listed before the others: of
        # a transaction that is complete there, all markers were written. And it is listed after them: of another one
        # with a marker in a partition that was listed, it names all partitions, which may lack theirs.
        coordinator = Log(_of_coordinator(paths, storage_options)).lines.partitions
        self._complete_until = {
            of: one.end_offset for one in coordinator if (of := one.segments[-1].topic_partition) is not None
        }
        self._found = discover(
            paths, storage_options, lambda topic, _: topic != TRANSACTION_STATE and _is_in(topic, wanted)
        )
        later = _of_coordinator(paths, storage_options) if _is_in(TRANSACTION_STATE, wanted) else Discovery()
        self._found.segments += later.segments
        self._found.set_aside += later.set_aside
        self._found.unread += [one for one in later.unread if one not in self._found.unread]
        if wanted is not None and not wanted <= (there := {one.topic for one in self._found.segments}):
            missing = ", ".join(sorted(wanted - there))
            raise ValueError(f"no topic {missing} in the log directories")
        self.log = Log(self._found)
        self._known = self._coordinator_transactions()
        self._is_later = False  # whether a partition is stored as it was after this

    @property
    def folders(self) -> set[LogPath]:
        """The folders that are read."""
        return {one.folder for one in self._found.segments}

    def run(self, writer: Writer) -> Manifest:
        """Store the backup, and list it."""
        repository = writer.folder
        earlier = repository.names()
        sha256 = None if self._excluded is None else self._excluded.sha256
        base = _Base.newest(repository, earlier[-1]).with_keys(sha256) if earlier else _Base()
        faults: list[Fault] = []
        note_unreadable(self._found, faults, strict=False)
        listed = _partitions(self.log)
        notes = self.log.lines.notes()

        def store(one: _Partition) -> _Partition:
            return self._store_listed(one, writer, base)

        unchanged = [self._is_unchanged(one, base) for one in listed]
        changed = [one for one, is_unchanged in zip(listed, unchanged, strict=True) if not is_unchanged]
        stored = iter(map(store, changed) if self._workers == 1 else in_order(store, changed, self._workers))
        partitions: list[_Partition] = []
        files = NewFiles()
        places: list[tuple[int, int]] = []  # of the files of each partition in the list
        for before, is_unchanged in zip(listed, unchanged, strict=True):
            one = before if is_unchanged else next(stored)
            if not one.segments:
                notes.append(f"{one.of}: was deleted before it was stored")
                continue
            partitions.append(one)
            notes += one.notes
            first = len(files)
            if one.is_unchanged:
                files.add_same(base.files, one.of)
            else:
                files.add(one.rows)
                one.rows = []
            places.append((first, len(files)))
            faults += one.faults
            if one.torn_bytes:
                notes.append(f"{one.of}: {one.torn_bytes} bytes after the last whole batch are not stored")
        if self._excluded is not None:
            notes.append(self._excluded.note(sum(one.excluded_records for one in partitions)))
        cut = self._cut(partitions, base, notes)
        directories = self._directories(faults)
        files.add(self._directory_rows(directories, partitions, faults))
        ends = [cut.ends.get(one.of, NO_BOUND) for one in partitions]
        table = with_sizes_at_cut(files.table(), places, ends, repository)
        content = written_files(table)
        manifest = Manifest(
            name=self._name(repository),
            taken_ms=self.taken_ms,
            finished_ms=time.time_ns() // 1_000_000,
            kraftlog=version("kraftlog"),
            cluster_id=next((one.cluster_id for one in directories if one.cluster_id), None),
            metadata_version=self._metadata_version(),
            sources=tuple(
                SourceDirectory(str(one.path), one.node_id, one.directory_id, one.is_clean) for one in directories
            ),
            files=table.num_rows,
            segments=table.num_rows - table.column("objects").null_count,
            size=pc.sum(table.column("size")).as_py() or 0,
            stored_size=sum(one.stored_size for one in partitions),
            files_sha256=hashlib.sha256(content).hexdigest(),
            ends={one.of: min(cut.ends.get(one.of, NO_BOUND), one.end_offset) for one in partitions},
            stored_ends={one.of: one.end_offset for one in partitions},
            open_from=cut.open_from,
            topics=None if self._topics is None else tuple(sorted(self._topics)),
            excluded_keys_sha256=sha256,
            notes=tuple(notes),
            faults=tuple(dict.fromkeys(faults)),
        )
        writer.publish(manifest, content)
        return manifest

    def _name(self, repository: BackupFolder) -> str:
        """Return the name of the backup: its time, or one after that of the last backup if a clock was set back."""
        last = repository.names()[-1:]
        return backup_name(max([self.taken_ms, *(milliseconds(name) + 1 for name in last)]))

    def _cut(self, partitions: list[_Partition], base: _Base, notes: list[str]) -> Cut:
        """Return the greatest cut of the stored logs; what it cannot know is noted.

        Only the batches after the cut of the earlier backup are looked at, unless a log was truncated before that cut,
        or the partitions are others.
        """
        parts = [one for one in partitions if one.of.topic != CLUSTER_METADATA]
        is_whole = all(one.is_read for one in parts)
        continues = base.has_same(self._topics, [one.of for one in parts]) and all(one.is_continued for one in parts)
        logs = self._logs
        if not is_whole and not continues:
            logs = TransactionsOfLog()
            for one in parts:
                logs.read(one.segments, one.read)
                one.commits = transactional_commits(one.segments, one.read)
        known, faults = self._coordinator_transactions() if self._is_later else self._known
        faults = [*faults, *(fault for one in parts for fault in one.read.faults)]
        commits = {of: rows for one in parts for of, rows in one.commits.items()}
        ends = {one.of: one.end_offset for one in parts}
        cut = end_cut(logs, ends, known, commits, base.ends if continues and not is_whole else None)
        notes += [one for one in cut.unknown if one not in notes]
        if faults:
            notes.append(f"the cut may lie elsewhere than in the whole log: {faults[0].message}")
        return cut

    def _coordinator_transactions(self) -> tuple[list[CoordinatorTransaction], list[Fault]]:
        """Return what ``__transaction_state`` has now, and what could not be read."""
        for _ in range(READINGS):  # its cleaner may be running
            read = Pass()
            known = coordinator_transactions(self._found, read, complete_until=self._complete_until)
            if not read.faults:
                break
        return known, read.faults

    def _metadata_version(self) -> int | None:
        at = self.log.lines.metadata_image
        return None if at is None else at.image.metadata_version

    def _listed(self, one: _Partition, before: _Before) -> list[_Listed]:
        """Return the segments of a partition beside what the newest backup has."""
        listed = []
        for segment in one.segments:
            path, source = f"{one.of}/{segment.base_offset:020d}.log", source_of(segment)
            row = before.row(path, one.topic_id, source)
            is_unchanged = not self._checksum and _is_unchanged(row, source, segment)
            listed.append(_Listed(segment, path, source, row, is_unchanged))
        return listed

    def _is_unchanged(self, one: _Partition, base: _Base) -> bool:
        """Take a partition as the newest backup has it, if no file changed and the cut needs no batch of it."""
        needed_from = base.open_from(one)
        if needed_from is None or needed_from < base.stored_end(one):
            return False
        before = base.of(one)
        one.is_unchanged = one.is_continued = before.has_all(self._listed(one, before))
        one.end_offset = base.stored_end(one)
        return one.is_unchanged

    def _store_listed(self, one: _Partition, writer: Writer, base: _Base) -> _Partition:
        """Store a partition; it is listed again if files of it were deleted or replaced before they were read."""
        of = one.of
        for left in reversed(range(READINGS)):
            one = self._store(one, writer, base)
            if not left or not (one.faults or one.read.faults):
                break
            again = self._found.narrowed(lambda *each: each == of).listed_again()
            there = {} if again is None else {segment.path: segment for segment in again.segments}
            if again is None or not any(each.is_replaced_by(there.get(each.path)) for each in one.segments):
                break
            self._logs.forget(one.of)
            now = next(iter(_partitions(Log(again))), None)
            one = replace(one, segments=[]) if now is None else self._up_to_listing(now, one.segments[-1])
            if not one.segments:
                break
        return one

    def _up_to_listing(self, now: _Partition, last: Segment) -> _Partition:
        """Return a partition that was listed again up to its end in the first listing, as far as the files tell."""
        before = [one for one in now.segments if (one.base_offset or 0) <= (last.base_offset or 0)]
        if before and before[-1].path == last.path and not last.is_replaced_by(before[-1]):
            return replace(now, segments=[*before[:-1], last])
        self._is_later = True
        return now

    def _store(self, one: _Partition, writer: Writer, base: _Base) -> _Partition:
        """Store a partition, and take the headers of its new batches for the cut."""
        before = base.of(one)
        listed = self._listed(one, before)
        observed = _Observed(self._logs, base.open_from(one))
        store = SegmentStore(
            *(writer, one.folder, before.known),
            links=self._links,
            observe=observed.add,
            on_progress=self._on_progress,
            is_excluded=None if self._excluded is None else self._excluded.of_topic(one.of.topic),
        )
        one.is_read = observed.is_whole
        for segment, path, source, row, is_unchanged in listed:
            seen = observed.begin(segment)
            if is_unchanged and row is not None:
                observed.add_known(seen, row["objects"])
                one.rows += before.rows_of_segment(path)
                continue
            objects = [] if row is None or self._checksum else row["objects"]
            stored = store.store(seen, objects, partial(observed.add_known, seen, objects))
            observed.end(seen, stored.faults)
            one.rows.append(_row(one, path, stored, segment, source))
            one.faults += stored.faults
            one.torn_bytes += stored.torn_bytes
            one.stored_size += stored.stored_size
            one.excluded_records += stored.excluded_records
            for kind in BESIDE:
                if (beside := segment.beside.get(kind)) is not None:
                    self._small(one, beside, f"{one.of}/{segment.base_offset:020d}.{kind}")
        if one.of.topic == CONSUMER_OFFSETS:
            one.commits = transactional_commits(observed.segments, one.read)
        one.end_offset = max((row["next_offset"] or 0 for row in one.rows), default=0)
        if before.has_all(listed):
            one.rows, one.is_unchanged, one.is_continued = [], True, True
            return one
        folder = one.segments[-1].folder
        for name in _OF_PARTITION:
            self._small(one, folder / name, f"{one.of}/{name}")
        self._last_snapshot(one, folder)
        if one.of.topic == CLUSTER_METADATA:
            self._metadata_snapshots(one, folder, store)
        one.is_continued = base.is_continued_by(one, before)
        return one

    def _small(self, one: _Partition, path: LogPath, name: str) -> None:
        """Take a small file into the list, if it is there."""
        try:
            content = disk().read_bytes(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            where = f"{path}: {error.strerror or error}"
            one.faults.append(Fault("unreadable_file", where, topic=one.of.topic, partition=one.of.partition))
            return
        one.rows.append(_small_row(name, content, one))

    def _last_snapshot(self, one: _Partition, folder: LogPath) -> None:
        """Take the producer snapshot at the end of a log that was closed."""
        there = {row["path"] for row in one.rows}
        for path in disk().matches(folder, "*.snapshot")[-1:]:
            if (name := f"{one.of}/{path.name}") not in there:
                self._small(one, path, name)

    def _metadata_snapshots(self, one: _Partition, folder: LogPath, store: SegmentStore) -> None:
        """Store the newest snapshot of the metadata log, and the one that it began with."""
        finished = [path for path in disk().matches(folder, "*.checkpoint") if parse_metadata_snapshot(path.name)]
        for path in [*finished[-1:], folder / "bootstrap.checkpoint"]:
            entry = disk().entry(path)
            if entry is None:
                continue
            segment = Segment(folder, path.name, entry.size or 0, None, *one.of, ".checkpoint")
            stored = store.store(segment, [])
            one.rows.append(_row(one, f"{one.of}/{path.name}", stored, segment, source_of(segment)))
            one.faults += stored.faults
            one.stored_size += stored.stored_size

    def _directories(self, faults: list[Fault]) -> list[LogDirectory]:
        folders = dict.fromkeys(one.folder for one in self._found.segments if one.topic_partition)
        each = dict.fromkeys(folder.absolute().parent for folder in folders)
        return [one for path in each if (one := LogDirectory.of(path, faults)) is not None]

    def _directory_rows(
        self, directories: list[LogDirectory], partitions: list[_Partition], faults: list[Fault]
    ) -> list[Row]:
        """Return the files of one log directory that stands for all of them."""
        rows: list[Row] = []
        places = [(one.of, one.segments[-1].folder.absolute().parent) for one in partitions]
        paths = dict.fromkeys(directory for _, directory in places)
        for name in _OF_DIRECTORY:
            found = {directory: _checkpoint(directory / name, faults) for directory in paths}
            offsets = {of: found[directory][of] for of, directory in places if of in found[directory]}
            if offsets:
                lines = "".join(f"{topic} {partition} {offset}\n" for (topic, partition), offset in offsets.items())
                rows.append(_small_row(name, f"0\n{len(offsets)}\n{lines}".encode()))
        if directories and all(one.is_clean for one in directories):
            rows.append(_small_row(CLEAN_SHUTDOWN, b""))
        if len(directories) == 1:
            path = directories[0].path / META_PROPERTIES
            if disk().entry(path) is not None:
                rows.append(_small_row(META_PROPERTIES, disk().read_bytes(path)))
        elif cluster_id := next((one.cluster_id for one in directories if one.cluster_id), None):
            rows.append(_small_row(META_PROPERTIES, f"version=1\ncluster.id={cluster_id}\n".encode()))
        return rows


def _partitions(log: Log) -> list[_Partition]:
    """Return the partitions of a log, each with the files of its line."""
    lines = {(one.topic, one.partition): one.line for one in log.lines.partitions}
    read_topic_ids(lines.values())
    partitions = []
    for group in by_partition(log.lines.found.segments):
        of = group[0].topic_partition
        if of is not None and not group[0].state:
            notes: list[str] = []
            healed = log.lines.healed(replace(log.lines.found, segments=group), notes)
            partitions.append(_Partition(of, lines[of].topic_id, healed.segments, notes))
    return partitions


def _checkpoint(path: LogPath, faults: list[Fault]) -> Mapping[tuple[str, int], int]:
    try:
        return read_offset_checkpoint(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except CorruptRecordError:
        return {}  # a fault of the listing
    except OSError as error:
        faults.append(Fault("unreadable_file", f"{path}: {error.strerror or error}"))
        return {}


def leader_epochs_of(content: bytes) -> list[tuple[int, int]]:
    """Return the entries of ``leader-epoch-checkpoint`` that are numbers."""
    words = [line.split() for line in content.decode(errors="replace").splitlines()[2:]]
    return [(int(one[0]), int(one[1])) for one in words if len(one) == 2 and all(word.isdecimal() for word in one)]


def _is_in(topic: str | None, wanted: set[str] | None) -> bool:
    return wanted is None or topic in wanted


def _of_coordinator(paths: list[Any], storage_options: StorageOptions | None) -> Discovery:
    return discover(paths, storage_options, lambda topic, _: topic == TRANSACTION_STATE).only(
        lambda topic, _: topic == TRANSACTION_STATE
    )


class _Observed:
    """The headers of one partition, as far as the cut needs them.

    Parameters
    ----------
    logs : TransactionsOfLog
    start_offset : int or None
        Batches before it are not needed; None if all are.
    """

    def __init__(self, logs: TransactionsOfLog, start_offset: int | None) -> None:
        self._logs = logs
        self._start_offset = start_offset
        self.segments: list[Segment] = []

    @property
    def is_whole(self) -> bool:
        """Whether all batches are needed."""
        return self._start_offset is None

    def begin(self, segment: Segment) -> Segment:
        """Return the segment as it is read from its first needed batch on, at which no transaction is open."""
        return segment if self.is_whole else replace(segment, kinds_beside=())

    def add(self, segment: Segment, headers: Headers) -> None:
        """Take the next headers."""
        if segment.topic == CLUSTER_METADATA:
            return
        if self._start_offset is not None:
            headers = headers[headers["base_offset"] >= self._start_offset]
            if not len(headers):
                return
        if not self.segments or self.segments[-1] is not segment:
            self.segments.append(segment)
            self._logs.observe(segment, [], None)
        self._logs.observe(segment, [], headers)

    def add_known(self, segment: Segment, objects: list[Object]) -> None:
        """Read the needed headers of batches that an earlier backup has."""
        if self._start_offset is None or segment.topic == CLUSTER_METADATA:
            return
        needed = [one for one in objects if one["next_offset"] > self._start_offset]
        if needed:
            end = end_of(needed[-1])
            for headers in segment_headers(segment, [], start=needed[0]["source_position"], end=end):
                self.add(segment, headers)

    def end(self, segment: Segment, faults: list[Fault]) -> None:
        """Take the faults of a segment."""
        if self.segments and self.segments[-1] is segment:
            self._logs.observe(segment, faults, None)


class _Before:
    """What the newest backup has of a partition.

    Attributes
    ----------
    known : set of str
        Names of objects.
    rows : dict of str to dict
        Files by path; none that the next backup cannot take as they are.
    """

    def __init__(self, rows: list[Row], *, is_comparable: bool = True) -> None:
        self.known = {one["name"] for row in rows for one in row["objects"] or ()}
        self.rows = {row["path"]: row for row in rows} if is_comparable else {}

    def row(self, path: str, topic_id: str | None, source: Row | None) -> Row | None:
        """Return the row of the same file; None if it is not in the backup, or another file now."""
        row = self.rows.get(path)
        if row is None or source is None or row["source"] is None or row["topic_id"] != topic_id:
            return None
        is_same = all(row["source"][name] == source[name] for name in ("path", "device", "inode"))
        return row if is_same else None

    def has_all(self, listed: list[_Listed]) -> bool:
        """Whether it has the same log files, and all of each."""
        paths = {path for path in self.rows if path.endswith(".log")}
        return all(each.is_unchanged for each in listed) and paths == {each.path for each in listed}

    def rows_of_segment(self, path: str) -> list[Row]:
        """Return the rows of a log file and of the files next to it."""
        stem = path.removesuffix("log")
        return [self.rows[name] for name in (path, *(stem + kind for kind in BESIDE)) if name in self.rows]


class _Base:
    """The newest backup, as far as the next one builds on it."""

    def __init__(self, manifest: Manifest | None = None, files: FilesByPartition | None = None) -> None:
        self._manifest = manifest
        self.files = FilesByPartition(FILES.empty_table()) if files is None else files

    @classmethod
    def newest(cls, repository: BackupFolder, name: str) -> _Base:
        """Return a backup as the base of the next; one that cannot be read is none."""
        try:
            return cls(repository.manifest(name), FilesByPartition(repository.files(name)))
        except (OSError, RecordError):
            return cls()

    def with_keys(self, sha256: str | None) -> _Base:
        """Return it for a backup without some keys; files with them would stay as they are."""
        if self._manifest is None or self._manifest.excluded_keys_sha256 == sha256:
            return self
        return _Base(files=self.files)

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        """The cut."""
        return {} if self._manifest is None else self._manifest.ends

    def of(self, one: _Partition) -> _Before:
        """Return what it has of a partition."""
        return _Before(self.files.rows_of(one.of), is_comparable=self._manifest is not None)

    def open_from(self, one: _Partition) -> int | None:
        """Return the offset from which on the next cut needs the log of a partition; None if it needs all."""
        if self._manifest is None or one.of not in self.ends:
            return None
        return min(self.ends[one.of], self._manifest.open_from.get(one.of, self.ends[one.of]))

    def has_same(self, topics: set[str] | None, partitions: list[TopicPartition]) -> bool:
        """Whether it was asked for the same topics, and has all partitions."""
        if self._manifest is None:
            return False
        asked = None if topics is None else tuple(sorted(topics))
        return self._manifest.topics == asked and all(of in self.ends for of in partitions)

    def is_continued_by(self, one: _Partition, before: _Before) -> bool:
        """Whether a log has all that it had: its last leader epoch then has not ended before (KIP-101)."""
        rows = [row for row in before.rows.values() if row["objects"]]
        if self._manifest is None or not rows or rows[0]["topic_id"] != one.topic_id:
            return self._manifest is not None and not rows and self._manifest.stored_ends.get(one.of) == 0
        stored_end, last_epoch = self._manifest.stored_ends[one.of], max(row["last_epoch"] for row in rows)
        checkpoint = next((row["content"] for row in one.rows if row["path"].endswith(LEADER_EPOCHS)), b"")
        later = [offset for epoch, offset in leader_epochs_of(checkpoint) if epoch > last_epoch]
        return one.end_offset >= stored_end and min(later, default=stored_end) >= stored_end

    def stored_end(self, one: _Partition) -> int:
        """Return the end of its log of a partition."""
        return 0 if self._manifest is None else self._manifest.stored_ends.get(one.of, 0)


def _is_unchanged(before: Row | None, source: Row | None, segment: Segment) -> bool:
    if before is None:
        return False
    objects = before["objects"]
    if source is None or source != before["source"] or source["modified_ns"] is None:
        return False
    is_whole = is_contiguous(objects) and (end_of(objects[-1]) if objects else 0) == segment.size
    return is_whole and before["is_closed"] == segment.is_closed


def _row(one: _Partition, path: str, stored: StoredSegment, segment: Segment, source: Row | None) -> Row:
    objects: list[Object] = stored.objects
    return {
        "path": path,
        "topic": one.of.topic,
        "partition": one.of.partition,
        "topic_id": one.topic_id,
        "size": stored.size,
        "size_at_cut": stored.size,
        "base_offset": segment.base_offset,
        "next_offset": objects[-1]["next_offset"] if objects and not segment.state else segment.base_offset,
        "last_epoch": objects[-1]["last_epoch"] if objects else None,
        "is_closed": segment.is_closed,
        "objects": objects,
        "content": None,
        "gaps": stored.gaps,
        "source": source,
    }


def _small_row(path: str, content: bytes, one: _Partition | None = None) -> Row:
    return {
        "path": path,
        "topic": one.of.topic if one else None,
        "partition": one.of.partition if one else None,
        "topic_id": one.topic_id if one else None,
        "size": len(content),
        "size_at_cut": len(content),
        "base_offset": None,
        "next_offset": None,
        "last_epoch": None,
        "is_closed": None,
        "objects": None,
        "content": content,
        "gaps": None,
        "source": None,
    }
