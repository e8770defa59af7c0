"""Repair of log directories: Kafka's recovery after an unclean shutdown, without the steps that lose records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from kraftlog import schema
from kraftlog.disk import durable
from kraftlog.disk.disk import disk
from kraftlog.disk.lock import lock_log_directories
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.layout import names
from kraftlog.layout.checkpointed_offsets import Checkpoints
from kraftlog.layout.listing import Listing
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.segment import Segment
from kraftlog.write.log_directory_state import LogDirectoryState
from kraftlog.write.mending import Mending, write_pieces
from kraftlog.write.recovery_action import Action, RecoverOptions, refuse
from kraftlog.write.recovery_plan import RecoveryPlan

Done = tuple[PartitionFolder, Action]


def partition_folders(
    paths: Iterable[LogPath], topics: Collection[str] | None = None, partitions: Collection[int] | None = None
) -> list[Path]:
    """Return the partition folders in paths, each once, without folders that Kafka is moving or deleting.

    Parameters
    ----------
    paths : iterable of Path
        Folders of partitions, and log directories. Only log directories are listed. Remote ones cannot be changed.
    topics, partitions : collection, optional
        Only these.

    Raises
    ------
    FileNotFoundError
        When there is no such folder.
    ValueError
        When a folder is neither, or is remote.
    """
    folders: dict[Path, Path] = {}
    for path in paths:
        if isinstance(path, RemotePath):
            raise ValueError(f"{path}: expected a local file; others cannot be changed")
        for folder in _below(path):
            topic, partition = names.parse_partition_folder(folder.absolute().name) or (None, None)
            if (topics is None or topic in topics) and (partitions is None or partition in partitions):
                folders.setdefault(folder.resolve(), folder)
    return sorted(folders.values())


def _below(path: Path) -> list[Path]:
    if names.parse_partition_folder(path.absolute().name):
        return [path]
    entries = disk().entries(path)
    if any(entry.is_file and names.parse_segment_file(entry.name) for entry in entries):
        return [path]
    parsed = [entry.name for entry in entries if entry.is_dir and names.parse_partition_folder(entry.name)]
    if all(map(names.transition_of, parsed)):
        raise ValueError(f"{path}: neither a partition's folder nor a log directory: no log files in it")
    return [path / name for name in parsed if not names.transition_of(name)]


class Recovery:
    """The partitions to recover; log directories are locked for the duration of a ``with`` block.

    Each folder is listed once, under the lock.

    Parameters
    ----------
    folders : list of Path
        Folders of partitions: see ``partition_folders``.
    options : RecoverOptions
        Without ``write``, nothing is written or locked.
    sources : sequence of Segment
        Segments of other replicas: missing or damaged stretches of a folder that an agreeing replica has are written
        into it first. All segments of such a folder are then read, and their index files rebuilt.

    Attributes
    ----------
    size_in_bytes : int
        Size in bytes of all log files.
    notes : list of str
        Receives, with sources, offsets that are still missing after the actions, and folders that no source agrees
        with.

    Raises
    ------
    LogDirectoryLockedError
        On entering, when a broker or another writer holds the lock of a log directory.
    """

    def __init__(self, folders: list[Path], options: RecoverOptions, sources: Sequence[Segment] = ()) -> None:
        self._paths = folders
        self._options = options
        self._sources = sources
        self._locks = ExitStack()
        self._folders: list[PartitionFolder] = []
        self._unread: list[Done] = []
        self.size_in_bytes = 0
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        if self._options.write:
            self._locks.enter_context(lock_log_directories(self._paths))
        for path in self._paths:
            try:
                self._folders.append(PartitionFolder.of(path))
            except OSError as error:
                self._unread.append((PartitionFolder(path, []), refuse(path, 0, str(error.strerror or error))))
        self.size_in_bytes = sum(segment.size for folder in self._folders for segment in folder.segments)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._locks.close()

    def actions(self) -> Iterator[Done]:
        """Return the action for each file; with ``write`` it has been carried out."""
        yield from self._unread
        states: dict[Path, LogDirectoryState] = {}
        checkpoints = Checkpoints(Listing(), [])
        for folder in self._folders:
            directory = Path(str(folder.path)).absolute().parent
            if directory not in states:
                states[directory] = LogDirectoryState.of(directory)
            is_mended, state, options = False, states[directory], self._options
            damage: list[Action] = []
            if self._sources:
                mending = Mending(folder, self._sources, checkpoints.of_folder(folder.path))
                damage = [] if options.cut_damage else list(mending.damage())  # before the actions change the files
                for action in mending.actions():
                    if options.write:
                        _do(action)
                    yield folder, replace(action, pieces=())
                    is_mended = True
                yield from ((folder, action) for action in damage)
                self.notes += mending.notes()
            if is_mended and not options.write:
                continue  # the log files must be written before the actions on index files are known
            if is_mended:
                folder, options = PartitionFolder.of(folder.path), replace(options, rebuild=True)
            damaged = {action.path for action in damage}
            for action in RecoveryPlan(folder, state, options).actions():
                if action.is_refusal and action.path in damaged:
                    continue
                if self._options.write:
                    _do(action)
                yield folder, replace(action, data=b"")  # collected actions need not hold files open
            if self._options.write:
                disk().sync_folder(Path(str(folder.path)))  # a killed recovery may have stopped here


def recover(folders: list[Path], options: RecoverOptions, sources: Sequence[Segment] = ()) -> Iterator[Done]:
    """Truncate torn tails and rebuild index files and producer snapshots, or list these actions.

    Parameters
    ----------
    folders : list of Path
        Folders of partitions: see ``partition_folders``.
    options : RecoverOptions
        Without ``write``, nothing is written or locked.
    sources : sequence of Segment
        As in ``Recovery``.

    Returns
    -------
    iterator of (PartitionFolder, Action)
        The action for a file of a partition; with ``write`` it has been carried out. Removed files are renamed to
        ``.deleted``, as Kafka does; it deletes them when it starts.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer holds the lock of a log directory; nothing has been written then.
    """
    with Recovery(folders, options, sources) as recovery:
        yield from recovery.actions()


def _do(action: Action) -> None:
    if action.pieces:
        write_pieces(action.path, action.pieces)
    elif action.action == "write":
        durable.write_file(action.path, action.data)
    elif action.action == "cut":
        durable.write_again(action.path, 0, action.size_after or 0)
    elif action.action == "remove" and action.path.name.endswith(durable.UNFINISHED):
        durable.delete_file(action.path)
    elif action.action == "remove":
        durable.set_aside(action.path)
    elif action.action == "rename":
        disk().rename(action.path, action.path.with_name(action.path.name.removesuffix(names.SWAP)))
        disk().sync_folder(action.path.parent)
    elif action.action == "keep" and action.path.suffix == ".log" and not action.is_trusted:
        durable.write_again(action.path, 0)  # as above: it may have been truncated, or its fsync may have failed


def file_of(action: Action) -> str:
    """Return the path of an action's file, below the path that the user named, so that other programs can open it."""
    return names.printable(str(action.path))


def recovery_table(done: Iterable[Done]) -> pa.Table:
    """Return actions as rows of the table ``recovery``."""
    rows = [
        {
            "topic": folder.topic,
            "partition": folder.partition,
            "file": file_of(action),
            "action": action.action,
            "size_before": action.size_before,
            "size_after": action.size_after,
            "reason": action.reason,
        }
        for folder, action in done
    ]
    return pa.Table.from_pylist(rows, schema=schema.RECOVERY.select())
