"""Removing backups, and objects that no backup needs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kraftlog.backup.backup_folder import RUNNING, BackupFolder, Writer
from kraftlog.disk.backup_files import files_path
from kraftlog.disk.backup_path import BACKUPS
from kraftlog.disk.disk import disk
from kraftlog.disk.entries import FileState
from kraftlog.disk.in_order import READS_AT_ONCE, in_order
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.layout.backups import manifest_path

LISTS_AT_ONCE = 4  # each may have many files
GRACE_SECONDS = 24 * 3600.0  # of objects in an object store, to which a backup may be writing


@dataclass
class Prune:
    """What was removed from a repository.

    Attributes
    ----------
    backups : list of str
        Names of backups.
    objects : int
        Number of objects that no backup needs.
    size : int
        Their bytes.
    """

    backups: list[str] = field(default_factory=list)
    objects: int = 0
    size: int = 0


def prune(
    repository: BackupFolder,
    *,
    keep: int | None = None,
    names: Iterable[str] = (),
    grace_seconds: float = GRACE_SECONDS,
) -> Prune:
    """Remove backups, and then the objects that none of the others needs.

    Manifests are removed first: a backup that is listed is whole at every moment.

    Parameters
    ----------
    repository : BackupFolder
    keep : int, optional
        Keep the newest backups, so many of them.
    names : iterable of str
        Backups to remove as well.
    grace_seconds : float
        Objects in an object store that are younger may belong to a running backup, and stay. A local repository is
        locked.

    Returns
    -------
    Prune

    Raises
    ------
    ValueError
        When there is no backup of a name, or none would be left.
    CorruptRecordError
        When the files of a backup that stays cannot be read: what it needs is not known, so that nothing is removed.
    """
    with repository.writer() as writer:
        there = repository.names()
        unknown = sorted(set(names) - set(there))
        if unknown:
            raise ValueError(f"{repository.path}: no backup {unknown[0]!r}; there are {', '.join(there) or 'none'}")
        if keep is not None and keep < 1:
            raise ValueError(f"keep: expected at least 1 backup, found {keep}")
        older = there[: max(len(there) - keep, 0)] if keep is not None else []
        removed = [name for name in there if name in {*names, *older}]
        left = [name for name in there if name not in removed]
        held = _running(writer, grace_seconds) & set(there)
        needed = set[str]()
        for names_of_one in in_order(repository.object_names, sorted({*left, *held}), LISTS_AT_ONCE):
            needed.update(names_of_one)
        done = Prune([name for name in removed if name not in held])
        for name in done.backups:
            _remove(manifest_path(repository.path, name))
        if done.backups and isinstance(repository.path, Path):  # after a crash no manifest is there without its objects
            disk().sync_folder(repository.path / BACKUPS)
        for name in done.backups:
            _remove(files_path(repository.path, name))
        _remove_unlisted(repository)
        now_ns = time.time_ns()
        is_remote = isinstance(repository.path, RemotePath)
        unneeded = (
            (repository.object_path(name), entry.size or 0)  # of a local file it is read now
            for name, entry in repository.listing()
            if name not in needed and not (is_remote and not _is_old(entry.state, now_ns, grace_seconds))
        )
        for size in in_order(_remove_object, unneeded, READS_AT_ONCE if is_remote else 1):
            done.objects += 1
            done.size += size
        return done


def _remove_object(one: tuple[LogPath, int]) -> int:
    path, size = one
    _remove(path)
    return size


def _running(writer: Writer, grace_seconds: float) -> set[str]:
    """Return the backups on which those that run elsewhere build."""
    found: set[str] = set()
    for path in disk().matches(writer.folder.path / RUNNING, "*.json"):
        if path == writer.mark:
            continue
        if _is_old(disk().state(path), time.time_ns(), grace_seconds):
            with suppress(OSError):
                disk().remove(path)  # of a process that was killed
            continue
        with suppress(OSError, ValueError, KeyError):
            found |= set(json.loads(disk().read_bytes(path))["backups"])
    return found


def _is_old(state: FileState | None, now_ns: int, grace_seconds: float) -> bool:
    return state is None or state.modified_ns is None or now_ns - state.modified_ns >= grace_seconds * 1e9


def _remove_unlisted(repository: BackupFolder) -> None:
    """Remove lists of files without a manifest, which a killed process left."""
    listed = set(repository.names())
    for path in disk().matches(repository.path / BACKUPS, "*"):
        stem = path.name.partition(".parquet")[0].partition(".json")[0]
        is_list = path.name == f"{stem}.parquet" and stem not in listed
        if isinstance(path, RemotePath):
            is_list &= _is_old(disk().state(path), time.time_ns(), GRACE_SECONDS)
        if is_list or path.name.endswith(".unfinished"):
            _remove(path)


def _remove(path: LogPath) -> None:
    with suppress(FileNotFoundError):
        disk().remove(path)
