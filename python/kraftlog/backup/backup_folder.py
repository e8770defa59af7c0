"""A repository of backups: a folder or object store with objects, and a manifest for each backup."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native.checksum import crc32c
from kraftlog.disk.backup_files import below, files_path, object_path, read_files
from kraftlog.disk.backup_key import BackupKey, new_key, opened
from kraftlog.disk.backup_path import BACKUPS, MARKER
from kraftlog.disk.disk import ReadableFile, disk
from kraftlog.disk.durable import UNFINISHED, write_file
from kraftlog.disk.entries import Entry
from kraftlog.disk.part_path import PartPath
from kraftlog.disk.remote_path import LogPath, RemotePath, StorageOptions, log_path
from kraftlog.disk.writing import WritableFile
from kraftlog.errors import CorruptRecordError, KraftlogError
from kraftlog.layout.backups import (
    Manifest,
    backup_names,
    is_repository,
    manifest_path,
    marker_of,
    read_manifest,
    repository_key,
)
from kraftlog.types import Buffer

PARTITIONS = "partitions"
LOCK = "lock"
RUNNING = "running"  # marks of backups that are being taken
SYNCS_AT_ONCE = 8  # a file system does some of them together


class RepositoryLockedError(KraftlogError, OSError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A repository to which another process writes."""


class BackupFolder:
    """The folder or object store of a repository: what it has, and how it is written.

    Parameters
    ----------
    path : path
        A folder, or a URI such as ``s3://bucket/nightly``.
    storage_options : mapping, optional
        As in ``kraftlog.open``.

    Attributes
    ----------
    path : Path or RemotePath
    """

    def __init__(self, path: object, storage_options: StorageOptions | None = None) -> None:
        self.path = log_path(path, storage_options)

    def check(self) -> None:
        """Raise ValueError when the folder is not a repository."""
        if not is_repository(self.path):
            raise ValueError(f"{self.path}: expected a repository of backups, found no {MARKER}")

    @cached_property
    def key(self) -> BackupKey | None:
        """The key of an encrypted repository.

        Raises
        ------
        CorruptRecordError
            When a newer release has made the repository.
        BackupKeyError
            When the key is missing.
        """
        return repository_key(self.path)

    def create(self, *, encrypts: bool = False) -> None:
        """Make the folder a repository, unless it is one.

        Parameters
        ----------
        encrypts : bool
            Whether objects, manifests and lists are encrypted.

        Raises
        ------
        ValueError
            When the folder has other content, or is a repository that is not encrypted.
        CorruptRecordError
            When a newer release has made it.
        """
        marker = self.path / MARKER
        if disk().entry(marker) is not None:
            if encrypts and self.key is None:
                raise ValueError(f"{self.path}: expected an encrypted repository, found one whose objects are plain")
            self.key  # noqa: B018  (raises without it)
            return
        with suppress(FileNotFoundError):
            others = [one.name for one in disk().entries(self.path) if not one.name.endswith(UNFINISHED)]
            others = [name for name in others if name not in (PARTITIONS, BACKUPS, LOCK, RUNNING)]
            if others:
                raise ValueError(f"{self.path}: expected a new or empty folder or a repository, found {others[0]}")
        self.write(marker, marker_of(new_key().encryption if encrypts else None))

    def names(self) -> list[str]:
        """Return the names of the backups, the oldest first."""
        return backup_names(self.path)

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of a backup.

        Raises
        ------
        ValueError
            When there is no such backup.
        OSError, CorruptRecordError
            When it cannot be read.
        """
        try:
            return read_manifest(self.path, name, self.key)
        except FileNotFoundError:
            there = ", ".join(self.names()) or "none"
            raise ValueError(f"{self.path}: no backup {name!r}; there are {there}") from None

    def files(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the files of a backup, a row for each.

        Parameters
        ----------
        name : str
        columns : sequence of str, optional
            Those that are needed; by default all.

        Raises
        ------
        OSError
            When the list cannot be read.
        CorruptRecordError
            When it is not that of the manifest.
        """
        manifest, path = self.manifest(name), files_path(self.path, name)
        data = opened(self.key, path, disk().read_bytes(path))
        found = hashlib.sha256(data).hexdigest()
        if found != manifest.files_sha256:
            raise CorruptRecordError(f"{path}: expected sha256 {manifest.files_sha256}, found {found}")
        return read_files(data, path, columns)

    def object_names(self, name: str) -> list[str]:
        """Return the names of the objects of a backup."""
        names: list[str] = pc.struct_field(pc.list_flatten(self.files(name, ["objects"]).column(0)), "name").to_pylist()
        return names

    def object_path(self, name: str) -> LogPath:
        """Return the path of an object as it is stored."""
        return below(self.path, name)

    @contextmanager
    def open_object(self, one: Mapping[str, Any]) -> Iterator[ReadableFile]:
        """Open the content of an object, by its row: as it is stored now, not as another reader left it in memory."""
        path = object_path(self.path, self.key, one)
        try:
            self._forget(path)
            with closing(disk().open(path, one["size"])) as file:
                yield file
        finally:
            self._forget(path)

    @staticmethod
    def _forget(path: LogPath) -> None:
        if isinstance(path, PartPath):
            from kraftlog.disk.part_file import forget

            forget(path)

    def stored_size(self, one: Mapping[str, Any]) -> int:
        """Return how many bytes an object has as it is stored, by its row."""
        return one["size"] if self.key is None else sum(self.key.chunks(one["name"], one["size"]).stored_sizes)

    # writing

    def write(self, path: LogPath, data: bytes) -> None:
        """Create or replace a small file, which is complete and on disk afterwards."""
        if isinstance(path, RemotePath):
            disk().put(path, lambda: [data])
        else:
            disk().make_folder(path.parent)
            write_file(path, data)

    @contextmanager
    def writer(self, workers: int = 1) -> Iterator[Writer]:
        """Hold the repository for writing objects and manifests.

        Parameters
        ----------
        workers : int
            With several, files are synced while others are written.

        Raises
        ------
        RepositoryLockedError
            When another process holds a local repository.
        """
        if isinstance(self.path, RemotePath):
            mark, backups = self.path / RUNNING / f"{uuid.uuid4().hex}.json", self.names()
            self.write(mark, json.dumps({"backups": backups}).encode())
            try:
                yield Writer(self, mark, backups)
            finally:
                with suppress(OSError):
                    disk().remove(mark)
            return
        disk().make_folder(self.path)
        try:
            lock = disk().lock(self.path / LOCK)
        except BlockingIOError:
            raise RepositoryLockedError(f"{self.path}: another process is writing a backup, or prunes") from None
        with lock:
            threads = ThreadPoolExecutor(SYNCS_AT_ONCE) if workers > 1 else None
            try:
                yield Writer(self, threads=threads)
            finally:
                if threads is not None:
                    threads.shutdown(cancel_futures=True)

    def listing(self) -> Iterator[tuple[str, Entry]]:
        """Return the names of the objects that are there, each with its entry."""
        folder = self.path / PARTITIONS
        try:
            if isinstance(folder, RemotePath):
                tree = disk().tree(folder)
                below_root = len(self.path.key) + 1 if isinstance(self.path, RemotePath) and self.path.key else 0
                for path, entries in tree.items():
                    yield from ((f"{path.key[below_root:]}/{one.name}", one) for one in entries if one.is_file)
                return
            partitions = disk().entries(folder)
        except FileNotFoundError:
            return
        for partition in partitions:
            if partition.is_dir:
                entries = disk().entries(folder / partition.name)
                yield from ((f"{PARTITIONS}/{partition.name}/{one.name}", one) for one in entries if one.is_file)


class Writer:
    """What writes objects to a repository that it holds; thread-safe.

    Parameters
    ----------
    folder : BackupFolder
    mark : RemotePath, optional
        What tells others in an object store that it is writing.
    backups : iterable of str
        Those of which ``prune`` leaves the objects as long as the mark is there.
    threads : Executor, optional
        Syncs files of a local repository while others are written.
    """

    def __init__(
        self,
        folder: BackupFolder,
        mark: RemotePath | None = None,
        backups: Iterable[str] = (),
        threads: Executor | None = None,
    ) -> None:
        self.folder = folder
        self.mark = mark
        self._backups = list(backups)
        self._threads = threads
        self._syncs: list[Future[None]] = []
        self._folders: set[Path] = set()

    def temporary(self, folder_name: str) -> Temporary | None:
        """Return a local file for an object whose name is not known yet.

        It is None in an object store, and where the name decides how the content is encrypted.
        """
        path = below(self.folder.path / PARTITIONS, folder_name)
        if isinstance(path, RemotePath) or self.folder.key is not None:
            return None
        return self._temporary(path)

    def _temporary(self, folder: Path) -> Temporary:
        if folder not in self._folders:
            self._make_folder(folder)
        return Temporary(folder / f"{uuid.uuid4().hex}{UNFINISHED}")

    def name_of(self, sha256: str) -> str:
        """Return what the name of an object says of its content."""
        key = self.folder.key
        return sha256 if key is None else key.name_of(sha256)

    def keep(self, temporary: Temporary, name: str) -> None:
        """Give an object its name; it is on disk after ``settle``."""
        target = self.folder.object_path(name)
        assert isinstance(target, Path)
        temporary.file.close()
        if disk().entry(target) is not None:  # an older backup may have it: it must not be replaced by unsynced bytes
            disk().sync_file(temporary.path)
            disk().rename(temporary.path, target)
        else:
            disk().rename(temporary.path, target)
            self._begin(disk().sync_file, target)

    def put(self, name: str, pieces: Callable[[], Iterable[Buffer]]) -> None:
        """Write an object whose name is known, unless a backup has it: an upload that fails may replace it by less."""
        path, key = self.folder.object_path(name), self.folder.key

        def stored() -> Iterable[Buffer]:
            return pieces() if key is None else key.encrypted(name, pieces())

        if isinstance(path, Path):
            temporary = self._temporary(path.parent)
            try:
                for piece in stored():
                    temporary.file.append(piece)
            except BaseException:
                temporary.drop()
                raise
            self.keep(temporary, name)
        elif disk().entry(path) is None or name not in self._needed:
            disk().put(path, stored)

    @cached_property
    def _needed(self) -> set[str]:
        """The objects of these backups."""
        needed = set[str]()
        for name in self._backups:
            with suppress(OSError, KraftlogError):  # verify says so
                needed.update(self.folder.object_names(name))
        return needed

    def link(self, source: Path, name: str) -> None:
        """Store a file as a hard link.

        Raises
        ------
        OSError
            When the file system cannot do that.
        """
        target = self.folder.object_path(name)
        assert isinstance(target, Path)
        self._make_folder(target.parent)
        temporary = target.with_name(f"{uuid.uuid4().hex}{UNFINISHED}")
        disk().link(source, temporary)
        disk().sync_file(temporary)
        disk().rename(temporary, target)

    def settle(self) -> None:
        """Wait until all objects are on disk."""
        for folder in sorted(self._folders):
            self._begin(disk().sync_folder, folder)
        for one in self._syncs:
            one.result()
        self._syncs.clear()

    def _begin(self, sync: Callable[[Path], None], path: Path) -> None:
        """Sync a file or folder: it is on disk after ``settle``."""
        if self._threads is None:
            sync(path)
        else:
            self._syncs.append(self._threads.submit(sync, path))

    def _make_folder(self, path: Path) -> None:
        """Make the folder of a partition; its name is on disk after ``settle``."""
        if path.parent not in self._folders:
            disk().make_folder(path.parent)
        with suppress(FileExistsError):
            disk().make_new_folder(path)
        self._folders |= {path, path.parent}

    def publish(self, manifest: Manifest, files: bytes) -> None:
        """Write the list of files, and then the manifest, from which on the backup is listed."""
        folder = self.folder
        self.settle()
        for path, data in (
            (files_path(folder.path, manifest.name), files),
            (manifest_path(folder.path, manifest.name), manifest.to_json()),
        ):
            folder.write(path, data if folder.key is None else folder.key.sealed(path.name, data))


class Temporary:
    """A local file that becomes an object, or is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: WritableFile = disk().create(path)

    def drop(self) -> None:
        """Remove the file."""
        self.file.close()
        with suppress(OSError):
            disk().unlink(self.path)


def checksums(pieces: Iterable[Buffer]) -> tuple[int, str, int]:
    """Return size, SHA-256 and CRC32C of bytes."""
    size, digest, crc = 0, hashlib.sha256(), 0
    for piece in pieces:
        size += memoryview(piece).nbytes
        digest.update(piece)
        crc = crc32c(piece, crc)
    return size, digest.hexdigest(), crc
