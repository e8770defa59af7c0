"""The files of one partition's folder, from one listing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout import names
from kraftlog.layout.listing import Listing
from kraftlog.layout.segment import Beside, Segment


@dataclass(frozen=True)
class MetadataSnapshot:
    """A finished snapshot of the metadata log.

    Attributes
    ----------
    segment : Segment
        Its file.
    end_offset : int
        The offset behind the last record that it stands for.
    epoch : int
        Of that record.
    """

    segment: Segment
    end_offset: int
    epoch: int


class PartitionFolder:
    """What a partition's folder holds, sorted by what the names of the files say. No file is opened.

    Parameters
    ----------
    path : Path or RemotePath
        Of the folder.
    entries : sequence of Entry
        What a listing of the folder found, by name.
    log_start_offset : int
        Of the partition, for its segments.

    Attributes
    ----------
    topic, partition : str or None, int or None
        From the name of the folder.
    entries : dict of str to Entry
        Everything that was listed, by name.
    segments : list of Segment
        The live ones, by base offset.
    set_aside : list of Segment
        Those with a suffix such as ``.deleted``, ``.cleaned`` or ``.swap``.
    producer_snapshots : dict of int to path
        ``<offset>.snapshot``, by offset.
    metadata_snapshots : list of MetadataSnapshot
        Finished ``<offset>-<epoch>.checkpoint``, the oldest first; ``bootstrap.checkpoint`` is none of them.
    without_log : list of path
        Index files for which there is no log file.
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

    def __init__(self, path: LogPath, entries: Sequence[Entry], log_start_offset: int = 0) -> None:
        self.path = path
        self.entries = {entry.name: entry for entry in entries}
        self.topic: str | None
        self.partition: int | None
        self.topic, self.partition = names.parse_partition_folder(path.name or path.absolute().name) or (None, None)
        self.segments: list[Segment] = []
        self.set_aside: list[Segment] = []
        self.producer_snapshots: dict[int, LogPath] = {}
        self.metadata_snapshots: list[MetadataSnapshot] = []
        self.without_log: list[LogPath] = []
        self.unknown: list[Entry] = []
        self._take(entries, log_start_offset)

    @classmethod
    def of(cls, path: LogPath) -> PartitionFolder:
        """List a folder.

        Raises
        ------
        OSError
            When it cannot be listed.
        """
        return cls(path, Listing().entries(path))

    def path_of(self, name: str) -> LogPath | None:
        """Return the path of a file, such as a checkpoint; None when it was not listed."""
        entry = self.entries.get(name)
        return self.path / name if entry is not None and entry.is_file else None

    def _take(self, entries: Sequence[Entry], log_start_offset: int) -> None:
        logs: dict[tuple[int, str], Entry] = {}
        others: dict[tuple[int, str], dict[str, str]] = {}
        for entry in entries:
            if entry.name in names.KNOWN_FILES and entry.is_file:
                continue
            parsed = names.parse_segment_file(entry.name) if entry.is_file else None
            if parsed is None:
                self._take_other(entry)
            elif parsed.kind == "log":
                logs[parsed.base_offset, parsed.state] = entry
            else:
                others.setdefault((parsed.base_offset, parsed.state), {})[parsed.kind] = entry.name
        for base_offset, state in sorted(logs):
            entry, beside = logs[base_offset, state], Beside(self.path, others.get((base_offset, state), {}))
            path, start = self.path / entry.name, 0 if state else log_start_offset
            segment = Segment(path, entry.size, base_offset, self.topic, self.partition, state, beside, start)
            (self.set_aside if state else self.segments).append(segment)
        for (base_offset, state), files in sorted(others.items()):
            if not state and "snapshot" in files:
                self.producer_snapshots[base_offset] = self.path / files["snapshot"]
            if not state and (base_offset, state) not in logs:
                self.without_log += [self.path / name for kind, name in sorted(files.items()) if kind != "snapshot"]

    def _take_other(self, entry: Entry) -> None:
        identity = names.parse_metadata_snapshot(entry.name) if entry.is_file else None
        if identity is not None:
            segment = Segment(self.path / entry.name, entry.size, None, self.topic, self.partition, ".checkpoint")
            self.metadata_snapshots.append(MetadataSnapshot(segment, *identity))
        elif not is_known(entry):
            self.unknown.append(entry)


def is_known(entry: Entry) -> bool:
    """Whether Kafka, or this package, writes a file or folder of this name beside segments or in a log directory."""
    if entry.is_dir:
        return entry.name in names.KNOWN_FOLDERS
    return entry.name in names.KNOWN_FILES or names.parse_checkpoint_file(entry.name) is not None
