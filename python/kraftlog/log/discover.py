"""From paths to partitions and segments. Lists files; opens none."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.log import names

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Segment:
    """A log file, or a snapshot of the metadata log, and the files beside it.

    Attributes
    ----------
    path : Path
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

    path: Path
    size: int
    base_offset: int | None
    topic: str | None
    partition: int | None
    state: str = ""
    beside: dict[str, Path] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Folder and file name, as messages show it."""
        folder = self.path.parent.name
        return names.printable(f"{folder}/{self.path.name}" if folder else self.path.name)


@dataclass(frozen=True)
class Unread:
    """A file or folder that is left alone, and why."""

    path: Path
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


def discover(paths: PathLike | Iterable[PathLike]) -> Discovery:
    """Find the segments that paths name.

    Parameters
    ----------
    paths : path or iterable of paths
        A segment file, a partition's folder, a log directory, or a glob of these.

    Raises
    ------
    FileNotFoundError
        When a path does not exist, or a glob matches nothing.
    ValueError
        When a folder holds no log files.
    """
    found = Discovery()
    seen: set[Path] = set()
    for path in expanded_paths(paths):
        resolved = path.resolve()
        if resolved in seen:
            continue
        seen.add(resolved)
        if path.is_dir():
            _discover_folder(path, found)
        else:
            _discover_file(path, found)
    unique = {segment.path.resolve(): segment for segment in found.segments}
    found.segments = sorted(
        unique.values(),
        key=lambda s: (s.topic or "", s.partition or 0, s.path.parent, bool(s.state), s.base_offset or 0, s.path),
    )
    return found


def expanded_paths(paths: PathLike | Iterable[PathLike]) -> Sequence[Path]:
    """Return paths with globs replaced by what they match; one that names nothing is refused."""
    each = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not each:
        raise ValueError("no path given")
    expanded: list[Path] = []
    for item in each:
        text = os.fspath(item)
        if Path(text).exists():
            expanded.append(Path(text))
        elif glob.has_magic(text):
            matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207  (text may be absolute)
            if not matches:
                raise FileNotFoundError(f"no file matches {text}")
            expanded += map(Path, matches)
        else:
            raise FileNotFoundError(f"no such file or directory: {text}")
    return expanded


def _discover_file(path: Path, found: Discovery) -> None:
    """Take a file that was named: as a log, unless its name says that it is something else."""
    parsed = names.parse_segment_file(path.name)
    if (parsed and parsed.kind != "log") or path.name in names.KNOWN_FILES:
        topic, partition = names.parse_partition_folder(path.absolute().parent.name) or (None, None)
        reason = "not a file of record batches"
        found.unread.append(Unread(path, path.stat().st_size, reason, topic, partition))
    else:
        found.segments.append(_single_file(path))


def _single_file(path: Path) -> Segment:
    """Return a file that was named; it is read whatever it is called."""
    folder = names.parse_partition_folder(path.absolute().parent.name)
    topic, partition = folder or (None, None)
    parsed = names.parse_segment_file(path.name)
    state = ".checkpoint" if names.parse_checkpoint_file(path.name) is not None else ""
    beside = {}
    if parsed and parsed.kind == "log":
        for kind in ("index", "timeindex", "txnindex", "snapshot"):
            neighbour = path.with_name(f"{parsed.base_offset:020d}.{kind}{parsed.state}")
            if neighbour.exists():
                beside[kind] = neighbour
        state = parsed.state
    base_offset = parsed.base_offset if parsed else None
    return Segment(path, path.stat().st_size, base_offset, topic, partition, state, beside)


def _discover_folder(folder: Path, found: Discovery) -> None:
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    is_partition = any(entry.is_file() and names.parse_segment_file(entry.name) for entry in entries)
    holds_partitions = any(entry.is_dir() and names.parse_partition_folder(entry.name) for entry in entries)
    if is_partition or (names.parse_partition_folder(folder.absolute().name) and not holds_partitions):
        _discover_partition(folder, entries, found)
        return
    before = len(found.segments)
    recognised = False
    for entry in entries:
        if entry.is_dir() and names.transition_of(entry.name):
            reason = f"the folder of a partition that Kafka marked {names.transition_of(entry.name)}"
            topic, partition = names.parse_partition_folder(entry.name) or (None, None)
            found.unread.append(Unread(Path(entry.path), 0, reason, topic, partition))
        elif entry.is_dir() and names.parse_partition_folder(entry.name):
            recognised = True
            _discover_inner(Path(entry.path), found)
        elif not _is_known(entry):
            found.unread.append(Unread(Path(entry.path), _size(entry), "not a file that Kafka writes here"))
    if len(found.segments) == before and not recognised:
        raise ValueError(f"{folder}: neither a partition's folder nor a log directory: no log files in it")


def _discover_inner(folder: Path, found: Discovery) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        topic, partition = names.parse_partition_folder(folder.name) or (None, None)
        found.unread.append(Unread(folder, 0, str(error.strerror or error), topic, partition, is_fault=True))
        return
    _discover_partition(folder, entries, found)


def _is_known(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir():
        return entry.name in names.KNOWN_FOLDERS
    return entry.name in names.KNOWN_FILES or names.parse_checkpoint_file(entry.name) is not None


def _size(entry: os.DirEntry[str]) -> int:
    return entry.stat().st_size if entry.is_file() else 0


def _discover_partition(folder: Path, entries: Sequence[os.DirEntry[str]], found: Discovery) -> None:
    topic, partition = names.parse_partition_folder(folder.absolute().name) or (None, None)
    logs: dict[tuple[int, str], os.DirEntry[str]] = {}
    beside: dict[tuple[int, str], dict[str, Path]] = {}
    for entry in entries:
        parsed = names.parse_segment_file(entry.name) if entry.is_file() else None
        if parsed is None:
            if not _is_known(entry):
                reason = "not a file that Kafka writes here"
                found.unread.append(Unread(Path(entry.path), _size(entry), reason, topic, partition))
        elif parsed.kind == "log":
            logs[parsed.base_offset, parsed.state] = entry
        else:
            beside.setdefault((parsed.base_offset, parsed.state), {})[parsed.kind] = Path(entry.path)
    for (base_offset, state), entry in sorted(logs.items()):
        neighbours = beside.get((base_offset, state), {})
        segment = Segment(Path(entry.path), _size(entry), base_offset, topic, partition, state, neighbours)
        if not state:
            found.segments.append(segment)
            continue
        found.set_aside.append(segment)
        reason = names.STATES.get(state, f"a log file in the state {state}")
        found.unread.append(Unread(segment.path, segment.size, reason, topic, partition, base_offset))
