"""The bounds of a log directory: other files or folders in it may stop its broker.

Kafka's ``LogManager.loadLogs`` takes almost every folder in a log directory for a partition, and does not start if the
name is not that of a partition: "Found directory ... is not in the form of topic-partition". Plain files are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kraftlog.disk.disk import disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import LogPath
from kraftlog.disk.writing import FileId
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout import names
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN, META_PROPERTIES, read_properties
from kraftlog.topics import TopicPartition

MARKS = ("meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint")

_NOT_LOADED = "remote-log-index-cache"
_IN_TRANSITION = re.compile(r"\S+-\S+\.\S+-(delete|future|stray)")
_NUMBER = re.compile(r"\+?[0-9]+")


def is_log_directory(entries: Iterable[Entry]) -> bool:
    """Whether a broker has used a folder with these entries."""
    return any(entry.name in MARKS and entry.is_file for entry in entries)


@dataclass(frozen=True)
class LogDirectory:
    """A log directory of a broker: its identity, and the folders of partitions in it.

    Attributes
    ----------
    path : Path or RemotePath
    node_id : int or None
        From ``meta.properties``, as are the next two.
    cluster_id, directory_id : str or None
    is_clean : bool
        Whether its broker was shut down cleanly: all files were complete then.
    folders : Mapping of TopicPartition to tuple of str
        Names of the folders of each partition, also of those that Kafka moves or deletes.
    """

    path: LogPath
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None
    is_clean: bool
    folders: Mapping[TopicPartition, tuple[str, ...]]

    @classmethod
    def of(cls, path: LogPath, faults: list[Fault]) -> LogDirectory | None:
        """Return the log directory at a path; None for another folder, and for one that cannot be listed.

        Parameters
        ----------
        path : Path or RemotePath
        faults : list of Fault
            Receives what cannot be read.
        """
        properties: dict[str, str] = {}
        try:
            entries = disk().entries(path)
            if not is_log_directory(entries):
                return None
            if any(entry.name == META_PROPERTIES for entry in entries):
                properties = read_properties(path / META_PROPERTIES)
        except FileNotFoundError:
            return None
        except OSError as error:
            faults.append(Fault("unreadable_file", f"{path}: {error.strerror or error}"))
            return None
        except CorruptRecordError as error:
            faults.append(Fault("bad_checkpoint", f"{path}: {error}"))
            return None
        folders: dict[TopicPartition, tuple[str, ...]] = {}
        for entry in entries:
            partition = names.parse_partition_folder(entry.name) if entry.is_dir else None
            if partition is not None:
                folders[partition] = (*folders.get(partition, ()), entry.name)
        node_id = properties.get("node.id", properties.get("broker.id", ""))
        return cls(
            path,
            int(node_id) if node_id.isdecimal() else None,
            properties.get("cluster.id"),
            properties.get("directory.id"),
            any(entry.name == CLEAN_SHUTDOWN for entry in entries),
            folders,
        )


def stops_broker(entry: Entry) -> bool:
    """Whether an entry in a log directory stops a broker.

    As in ``LocalLog.parseTopicPartitionName``, without exceptions for hidden folders, ``lost+found`` or folders of this
    package.

    Examples
    --------
    >>> from kraftlog.disk.entries import Entry
    >>> folders = [Entry(name, is_dir=True, is_file=False) for name in ("orders-0", "lost+found", "orders-old")]
    >>> [entry.name for entry in folders if stops_broker(entry)]
    ['lost+found', 'orders-old']
    """
    name = entry.name
    if not entry.is_dir or name == _NOT_LOADED:
        return False
    if name.endswith(("-delete", "-future", "-stray")):
        if _IN_TRANSITION.fullmatch(name) is None:
            return True
        name = name.rpartition(".")[0]
    topic, _, partition = name.rpartition("-")
    is_number = _NUMBER.fullmatch(partition) is not None and int(partition) <= names.LARGEST_PARTITION
    return not topic or not is_number


def refuse_inside(target: Path, folders: Iterable[LogPath] = (), *, is_folder: bool = False) -> None:
    """Raise for an output in a log directory or in a partition folder, whether it is read or not.

    Parameters
    ----------
    target : Path
        The path to write. Symbolic links and ``..`` are followed.
    folders : iterable of Path or RemotePath
        Folders that are read.
    is_folder : bool
        Whether it becomes a folder. Then it must not be next to a partition either: any folder of partitions may be a
        broker's log directory.

    Raises
    ------
    ValueError
        The message names the log directory.

    Examples
    --------
    >>> from pathlib import Path
    >>> try:
    ...     refuse_inside(Path("tests/golden/codecs/log/codec-lz4-0/rows.csv"))
    ... except ValueError as error:
    ...     str(error).partition("lies in ")[2]
    'codec-lz4-0, the folder of a partition; choose another folder'
    """
    resolved = target.resolve()
    around = [resolved, *resolved.parents] if is_folder else [resolved, resolved.parent]
    ids = {file_id for path in around if (file_id := _file_id(path)) is not None}
    for folder in folders:
        if isinstance(folder, Path) and _file_id(folder) in ids:
            raise ValueError(f"{target} lies in {folder}, which is being read; choose another folder")
    there = disk().entry(resolved)
    first = resolved if there is not None and there.is_dir else resolved.parent
    for above in (first, *first.parents):
        what = _what_it_is(above, with_partitions=is_folder)
        if what is not None:
            raise ValueError(f"{target} lies in {above.name}, {what}; choose another folder")


def _file_id(path: Path) -> FileId | None:
    """Return the device and inode of a file or folder, links followed; None if it is missing."""
    try:
        return disk().file_id(path)
    except OSError:
        return None


def _what_it_is(folder: Path, *, with_partitions: bool) -> str | None:
    """Return what a folder is to a broker; None for other or missing folders."""
    try:
        entries = list(disk().entries(folder))
    except OSError:
        return None
    if is_log_directory(entries):
        return "a log directory"
    if _is_partition(folder, entries):
        return "the folder of a partition"
    if not with_partitions:
        return None
    named = [entry for entry in entries if entry.is_dir and names.parse_partition_folder(entry.name)]
    for entry in named:
        try:
            inner = list(disk().entries(folder / entry.name))
        except OSError:
            continue
        if _is_partition(folder / entry.name, inner):
            return f"which holds the partition {entry.name}"
    return None


def _is_partition(folder: Path, entries: list[Entry]) -> bool:
    is_named = names.parse_partition_folder(folder.name) is not None
    return is_named and any(entry.is_file and names.parse_segment_file(entry.name) for entry in entries)
