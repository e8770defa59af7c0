"""The files of one partition's folder, from one listing of it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.entries import Entry, FileState
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout import names
from kraftlog.layout.checkpointed_offsets import CheckpointedOffsets
from kraftlog.layout.listing import Listing
from kraftlog.layout.segment import Segment

UNKNOWN = CheckpointedOffsets()
LISTINGS = 20  # retries for a folder that changes while it is listed


@dataclass(frozen=True)
class MetadataSnapshot:
    """A finished snapshot of the metadata log.

    Attributes
    ----------
    segment : Segment
        Its file.
    end_offset : int
        The offset after the last record that it replaces.
    epoch : int
        Epoch of that record.
    """

    segment: Segment
    end_offset: int
    epoch: int


@dataclass(frozen=True)
class Replacement:
    """Complete output of the log cleaner that does not have its final name yet.

    Attributes
    ----------
    swap : Segment
        The ``.log.swap`` file, a live segment.
    replaced : list of Segment
        The segments that it replaces and that still have their names.
    end_offset : int
        The offset after its last batch, or the start of the next segment if that is greater: the cleaned segments may
        have ended in batches that were removed completely.
    """

    swap: Segment
    replaced: list[Segment]
    end_offset: int

    def covers(self, offset: int) -> bool:
        """Whether it replaced a segment at a base offset whose log file is gone."""
        return (self.swap.base_offset or 0) <= offset < self.end_offset


class PartitionFolder:
    """The content of a partition's folder, sorted by file names.

    A cleaner may be running, or was interrupted. As in Kafka's ``LogLoader``, a ``.log.swap`` is complete and replaces
    all segments that begin within it, but one at or after the first ``.cleaned`` belongs to a split that did not finish
    (KAFKA-6264). Only a ``.swap`` file is opened, to find where it ends.

    Parameters
    ----------
    path : Path or RemotePath
        Path of the folder.
    entries : sequence of Entry
        Entries of the folder, by name.
    checkpointed : CheckpointedOffsets
        The offsets of the partition in the checkpoints of the log directory.

    Raises
    ------
    OSError
        When the size of a log file cannot be read. One that vanished after it was listed is left out.

    Attributes
    ----------
    topic, partition : str or None, int or None
        From the name of the folder.
    segments : list of Segment
        Live segments, by base offset.
    set_aside : list of Segment
        Segments with a suffix such as ``.deleted`` or ``.cleaned``, and those that a ``.swap`` replaces.
    replacements : list of Replacement
        Replacements by base offset.
    metadata_snapshots : list of MetadataSnapshot
        Finished ``<offset>-<epoch>.checkpoint``, the oldest first, without ``bootstrap.checkpoint``.
    unknown : list of Entry
        Files and folders that Kafka does not write there.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kraftlog.layout.partition_folder import PartitionFolder
    >>> folder = PartitionFolder.of(Path("tests/golden/deleted_records/log/orders-del-7-0"))
    >>> [segment.base_offset for segment in folder.segments], sorted(folder.producer_snapshots)
    ([61, 126], [61, 126, 169])
    >>> folder.path_of("leader-epoch-checkpoint").name, folder.path_of("quorum-state")
    ('leader-epoch-checkpoint', None)
    """

    __slots__ = (
        "_beside",
        "_by_name",
        "_listed",
        "metadata_snapshots",
        "partition",
        "path",
        "replacements",
        "segments",
        "set_aside",
        "topic",
        "unknown",
    )

    def __init__(self, path: LogPath, entries: Sequence[Entry], checkpointed: CheckpointedOffsets = UNKNOWN) -> None:
        self.path = path
        self._listed = entries
        self._by_name: dict[str, Entry] | None = None
        self.topic: str | None
        self.partition: int | None
        self.topic, self.partition = names.parse_partition_folder(path.name or path.absolute().name) or (None, None)
        self.segments: list[Segment] = []
        self.set_aside: list[Segment] = []
        self.replacements: list[Replacement] = []
        self.metadata_snapshots: list[MetadataSnapshot] = []
        self.unknown: list[Entry] = []
        self._take(entries, checkpointed)

    @classmethod
    def of(
        cls, path: LogPath, listing: Listing | None = None, checkpointed: CheckpointedOffsets = UNKNOWN
    ) -> PartitionFolder:
        """List a folder, and repeat that if files were created, renamed or removed at the same time.

        A listing may lack both names of a file that is renamed during the listing.

        Raises
        ------
        OSError
            When it cannot be listed, or keeps changing.
        """
        listing = listing or Listing()
        entries = listing.entries(path)
        for _ in range(LISTINGS):
            try:
                folder = cls(path, entries, checkpointed)
            except FileNotFoundError:  # a .swap got its final name
                folder = None
            again = listing.entries(path)
            if folder is not None and _names(again) == _names(entries):
                return folder
            entries = again
        raise OSError(errno.EAGAIN, f"changed each of {LISTINGS} times that it was listed", str(path))

    @property
    def entries(self) -> dict[str, Entry]:
        """What was listed, by name."""
        if self._by_name is None:
            self._by_name = {entry.name: entry for entry in self._listed}
        return self._by_name

    @property
    def is_empty(self) -> bool:
        """Whether it has no log file, as before a broker opens it for the first time, and nothing of a lost one."""
        return not (self.segments or self.set_aside or self.metadata_snapshots or self.unknown or self._beside)

    def path_of(self, name: str) -> LogPath | None:
        """Return the path of a file, such as a checkpoint; None if it is not in the listing."""
        entry = self.entries.get(name)
        return self.path / name if entry is not None and entry.is_file else None

    def _take(self, entries: Sequence[Entry], checkpointed: CheckpointedOffsets) -> None:
        logs: dict[tuple[int, str], tuple[str, FileState]] = {}
        others: dict[tuple[int, str], tuple[str, ...]] = {}
        for entry in entries:
            name = entry.name
            parsed = names.parse_segment_file(name) if entry.is_file else None
            if parsed is None:
                self._take_other(entry)
                continue
            base_offset, kind, state = parsed
            if kind != "log":
                others[base_offset, state] = (*others.get((base_offset, state), ()), kind)
            elif (listed := entry.state) is not None:
                logs[base_offset, state] = name, listed
        for of in sorted(logs):
            (base_offset, state), (name, listed) = of, logs[of]
            start, beside = 0 if state else checkpointed.log_start_offset, others.get(of, ())
            segment = Segment(
                *(self.path, name, listed.size, base_offset, self.topic, self.partition, state, beside, start),
                listed=listed,
            )
            (self.set_aside if state else self.segments).append(segment)
        if any(state == names.SWAP for _, state in logs):
            unfinished = [base_offset for base_offset, state in (*logs, *others) if state == names.CLEANED]
            self._take_swaps(min(unfinished, default=None), checkpointed.log_start_offset)
        end_offsets = [segment.base_offset for segment in self.segments[1:]]
        for number, (segment, end_offset) in enumerate(zip_longest(self.segments, end_offsets)):
            settled = 0 if segment.is_swap else checkpointed.settled_offset
            self.segments[number] = replace(segment, end_offset=end_offset, settled_offset=settled)
        self._beside = {base_offset: kinds for (base_offset, state), kinds in others.items() if not state}

    def _take_swaps(self, unfinished: int | None, log_start_offset: int) -> None:
        """Replace segments by their ``.swap`` files."""
        live = {segment.base_offset: segment for segment in self.segments}
        for segment in [segment for segment in self.set_aside if segment.state == names.SWAP]:
            base_offset = segment.base_offset or 0
            if unfinished is not None and base_offset >= unfinished:
                continue
            there = live.get(base_offset)
            snapshot = tuple(kind for kind in (there.kinds_beside if there else ()) if kind == "snapshot")
            kinds = (*segment.kinds_beside, *snapshot)
            swap = replace(segment, state="", kinds_beside=kinds, log_start_offset=log_start_offset)
            end = _end_offset(swap)
            covered = [at for at in live if at is not None and (at == base_offset or base_offset < at < end)]
            replaced = [replace(live.pop(at), state=names.REPLACED, log_start_offset=0) for at in sorted(covered)]
            live[base_offset] = swap
            self.set_aside.remove(segment)
            self.set_aside += replaced
            self.replacements.append(Replacement(swap, replaced, end))
        self.segments = [segment for _, segment in sorted(live.items(), key=lambda item: item[0] or 0)]
        for number, each in enumerate(self.replacements):
            behind = (at for at in live if at is not None and at > (each.swap.base_offset or 0))
            end = max(each.end_offset, min(behind, default=each.end_offset))
            self.replacements[number] = replace(each, end_offset=end)

    @property
    def producer_snapshots(self) -> dict[int, LogPath]:
        """Paths of ``<offset>.snapshot``, by offset."""
        offsets = sorted(offset for offset, kinds in self._beside.items() if "snapshot" in kinds)
        return {offset: self.path / f"{offset:020d}.snapshot" for offset in offsets}

    @property
    def without_log(self) -> list[LogPath]:
        """Index files without a log file."""
        base_offsets = {segment.base_offset for segment in self.segments}
        alone = sorted((offset, kinds) for offset, kinds in self._beside.items() if offset not in base_offsets)
        files = [(offset, kind) for offset, kinds in alone for kind in sorted(kinds) if kind != "snapshot"]
        return [self.path / f"{offset:020d}.{kind}" for offset, kind in files]

    @property
    def missing_segments(self) -> list[int]:
        """Base offsets of segments between live ones that have index files but no log file.

        A broker renames the log first when it removes a segment, and deletes such index files when it starts; index
        files before the first live segment remain from segments that retention removed.
        """
        if not self.segments:
            return []
        there = {segment.base_offset for segment in (*self.segments, *self.set_aside)}
        first, last = self.segments[0].base_offset or 0, self.segments[-1].base_offset or 0
        with_index = [offset for offset, kinds in self._beside.items() if {"index", "timeindex"} & set(kinds)]
        missing = sorted(offset for offset in with_index if first < offset < last and offset not in there)
        return [offset for offset in missing if not any(each.covers(offset) for each in self.replacements)]

    def _take_other(self, entry: Entry) -> None:
        if entry.name in names.KNOWN_FILES and entry.is_file:
            return
        identity = names.parse_metadata_snapshot(entry.name) if entry.is_file else None
        if identity is not None:
            if (size := entry.size) is not None:
                segment = Segment(self.path, entry.name, size, None, self.topic, self.partition, ".checkpoint")
                self.metadata_snapshots.append(MetadataSnapshot(segment, *identity))
        elif not is_known(entry):
            self.unknown.append(entry)


def is_known(entry: Entry) -> bool:
    """Whether Kafka, or this package, writes a file or folder with this name next to segments or in a log directory."""
    if entry.is_dir:
        return entry.name in names.KNOWN_FOLDERS
    return entry.name in names.KNOWN_FILES or names.parse_checkpoint_file(entry.name) is not None


def _names(entries: Sequence[Entry]) -> list[str]:
    return [entry.name for entry in entries]


def _end_offset(segment: Segment) -> int:
    """Return the offset after the last batch of a segment."""
    file, end = disk().open(segment.path, segment.size), segment.base_offset or 0
    try:
        for headers in HeaderScan(file).headers():
            end = int(last_offsets(headers)[-1]) + 1
    finally:
        file.close()
    return end
