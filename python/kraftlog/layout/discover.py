"""From paths to partitions and segments. Lists files; opens none."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import LogPath, RemotePath, StorageOptions, log_path
from kraftlog.layout import names
from kraftlog.layout.listing import Listing, local_matches

PathLike = str | os.PathLike[str]
AnyPath = PathLike | RemotePath


@dataclass(frozen=True)
class Segment:
    """A log file, or a snapshot of the metadata log, and the files beside it.

    Attributes
    ----------
    path : Path or RemotePath
        Of the file with the record batches.
    size : int
        In bytes, when it was listed.
    base_offset : int or None
        From the file name.
    state : str
        "" for a live segment; ``.deleted`` and the like; ``.checkpoint`` for a snapshot.
    beside : dict
        Paths of ``index``, ``timeindex``, ``txnindex`` and ``snapshot``, where they exist.
    """

    path: LogPath
    size: int
    base_offset: int | None
    topic: str | None
    partition: int | None
    state: str = ""
    beside: dict[str, LogPath] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Folder and file name, as messages show it."""
        folder = self.path.parent.name
        return names.printable(f"{folder}/{self.path.name}" if folder else self.path.name)

    @property
    def local_path(self) -> Path:
        """The path, for those who write.

        Raises
        ------
        ValueError
            When it is of a remote file.
        """
        if isinstance(self.path, RemotePath):
            raise ValueError(f"{self.path}: only local files can be changed")
        return self.path


@dataclass(frozen=True)
class Unread:
    """A file or folder that is left alone, and why."""

    path: LogPath
    size: int
    reason: str
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    is_fault: bool = False

    @property
    def name(self) -> str:
        """Folder and file name, as messages show it."""
        return names.printable(f"{self.path.parent.name}/{self.path.name}")


@dataclass
class Discovery:
    """What paths hold: live segments in order, segments in other states, and what is not read."""

    segments: list[Segment] = field(default_factory=list)
    set_aside: list[Segment] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def discover(paths: AnyPath | Iterable[AnyPath], storage_options: StorageOptions | None = None) -> Discovery:
    """Find the segments that paths name.

    Parameters
    ----------
    paths : path or iterable of paths
        A segment file, a partition's folder, a log directory, or a glob of these; of another file system by URI.
    storage_options : mapping, optional
        For the file systems of URIs.

    Raises
    ------
    FileNotFoundError
        When a path does not exist, or a glob matches nothing.
    ValueError
        When a folder holds no log files.
    """
    found, listing = Discovery(), Listing()
    seen: set[LogPath] = set()
    for path in expanded_paths(paths, storage_options, listing):
        resolved = path.resolve()
        if resolved in seen:
            continue
        seen.add(resolved)
        if listing.is_dir(path):
            _discover_folder(path, listing, found)
        else:
            _discover_file(path, listing, found)
    unique = {segment.path.resolve(): segment for segment in found.segments}
    found.segments = sorted(unique.values(), key=_order)
    return found


def _order(segment: Segment) -> tuple[object, ...]:
    is_remote = isinstance(segment.path, RemotePath)  # such paths do not compare with local ones
    of_partition = (segment.topic or "", segment.partition or 0, is_remote, segment.path.parent)
    return *of_partition, bool(segment.state), segment.base_offset or 0, segment.path


def expanded_paths(
    paths: AnyPath | Iterable[AnyPath],
    storage_options: StorageOptions | None = None,
    listing: Listing | None = None,
) -> Sequence[LogPath]:
    """Return paths with globs replaced by what they match; one that names nothing is refused."""
    each = [paths] if isinstance(paths, str | os.PathLike | RemotePath) else list(paths)
    if not each:
        raise ValueError("no path given")
    listing = listing or Listing()
    expanded: list[LogPath] = []
    for item in each:
        path = log_path(item, storage_options)
        if isinstance(path, RemotePath) and not glob.has_magic(path.key):
            expanded.append(path)  # whether it exists shows when it is listed
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


def _discover_file(path: LogPath, listing: Listing, found: Discovery) -> None:
    """Take a file that was named: as a log, unless its name says that it is something else."""
    entry = listing.file(path)
    if entry is None:
        raise FileNotFoundError(f"no such file or directory: {path}")
    parsed = names.parse_segment_file(path.name)
    if (parsed and parsed.kind != "log") or path.name in names.KNOWN_FILES:
        topic, partition = names.parse_partition_folder(path.absolute().parent.name) or (None, None)
        reason = "not a file of record batches"
        found.unread.append(Unread(path, entry.size, reason, topic, partition))
    else:
        found.segments.append(_single_file(path, entry.size, listing))


def _single_file(path: LogPath, size: int, listing: Listing) -> Segment:
    """Return a file that was named; it is read whatever it is called."""
    folder = names.parse_partition_folder(path.absolute().parent.name)
    topic, partition = folder or (None, None)
    parsed = names.parse_segment_file(path.name)
    state = ".checkpoint" if names.parse_checkpoint_file(path.name) is not None else ""
    beside = {}
    if parsed and parsed.kind == "log":
        for kind in ("index", "timeindex", "txnindex", "snapshot"):
            neighbour = path.with_name(f"{parsed.base_offset:020d}.{kind}{parsed.state}")
            if listing.file(neighbour) is not None:
                beside[kind] = neighbour
        state = parsed.state
    base_offset = parsed.base_offset if parsed else None
    return Segment(path, size, base_offset, topic, partition, state, beside)


def _discover_folder(folder: LogPath, listing: Listing, found: Discovery) -> None:
    entries = listing.entries(folder)
    is_partition = any(entry.is_file and names.parse_segment_file(entry.name) for entry in entries)
    holds_partitions = any(entry.is_dir and names.parse_partition_folder(entry.name) for entry in entries)
    if is_partition or (names.parse_partition_folder(folder.absolute().name) and not holds_partitions):
        _discover_partition(folder, entries, found)
        return
    before = len(found.segments)
    recognised = False
    for entry in entries:
        if entry.is_dir and names.transition_of(entry.name):
            reason = f"the folder of a partition that Kafka marked {names.transition_of(entry.name)}"
            topic, partition = names.parse_partition_folder(entry.name) or (None, None)
            found.unread.append(Unread(folder / entry.name, 0, reason, topic, partition))
        elif entry.is_dir and names.parse_partition_folder(entry.name):
            recognised = True
            _discover_inner(folder / entry.name, listing, found)
        elif not _is_known(entry):
            found.unread.append(Unread(folder / entry.name, entry.size, "not a file that Kafka writes here"))
    if len(found.segments) == before and not recognised:
        raise ValueError(f"{folder}: neither a partition's folder nor a log directory: no log files in it")


def _discover_inner(folder: LogPath, listing: Listing, found: Discovery) -> None:
    try:
        entries = listing.entries(folder)
    except OSError as error:
        topic, partition = names.parse_partition_folder(folder.name) or (None, None)
        found.unread.append(Unread(folder, 0, str(error.strerror or error), topic, partition, is_fault=True))
        return
    _discover_partition(folder, entries, found)


def _is_known(entry: Entry) -> bool:
    if entry.is_dir:
        return entry.name in names.KNOWN_FOLDERS
    return entry.name in names.KNOWN_FILES or names.parse_checkpoint_file(entry.name) is not None


def _discover_partition(folder: LogPath, entries: Sequence[Entry], found: Discovery) -> None:
    topic, partition = names.parse_partition_folder(folder.absolute().name) or (None, None)
    logs: dict[tuple[int, str], Entry] = {}
    beside: dict[tuple[int, str], dict[str, LogPath]] = {}
    for entry in entries:
        parsed = names.parse_segment_file(entry.name) if entry.is_file else None
        if parsed is None:
            if not _is_known(entry):
                reason = "not a file that Kafka writes here"
                found.unread.append(Unread(folder / entry.name, entry.size, reason, topic, partition))
        elif parsed.kind == "log":
            logs[parsed.base_offset, parsed.state] = entry
        else:
            beside.setdefault((parsed.base_offset, parsed.state), {})[parsed.kind] = folder / entry.name
    for (base_offset, state), entry in sorted(logs.items()):
        neighbours = beside.get((base_offset, state), {})
        segment = Segment(folder / entry.name, entry.size, base_offset, topic, partition, state, neighbours)
        if not state:
            found.segments.append(segment)
            continue
        found.set_aside.append(segment)
        reason = names.STATES.get(state, f"a log file in the state {state}")
        found.unread.append(Unread(segment.path, segment.size, reason, topic, partition, base_offset))
