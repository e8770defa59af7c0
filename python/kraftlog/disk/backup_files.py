"""The files of a backup: a list of them, and their bytes in the objects of a repository."""

from __future__ import annotations

import errno
import io
import os
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from kraftlog.disk.backup_key import BackupKey, opened
from kraftlog.disk.backup_path import BACKUPS, BackupPath
from kraftlog.disk.entries import Entry, FileState
from kraftlog.disk.part_path import PartPath
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.errors import InputError

OBJECT = pa.struct(
    [
        pa.field("name", pa.string(), nullable=False),  # in the repository
        pa.field("size", pa.int64(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("crc32c", pa.int64(), nullable=False),
        pa.field("source_position", pa.int64(), nullable=False),  # of its first byte in the source file
        pa.field("base_offset", pa.int64(), nullable=False),
        pa.field("next_offset", pa.int64(), nullable=False),
        pa.field("last_epoch", pa.int32(), nullable=False),
        pa.field("last_batch_position", pa.int64(), nullable=False),  # in the object, as is the crc of that batch
        pa.field("last_batch_offset", pa.int64(), nullable=False),
        pa.field("last_batch_crc", pa.int64(), nullable=False),
    ]
)
SOURCE = pa.struct(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modified_ns", pa.int64()),
        pa.field("device", pa.int64()),
        pa.field("inode", pa.int64()),
    ]
)
GAP = pa.struct([pa.field("start_offset", pa.int64()), pa.field("end_offset", pa.int64())])
FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topic_id", pa.string()),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("size_at_cut", pa.int64()),  # null for a file that is not of the log at the cut
        pa.field("base_offset", pa.int64()),
        pa.field("next_offset", pa.int64()),
        pa.field("last_epoch", pa.int32()),
        pa.field("is_closed", pa.bool_()),
        pa.field("objects", pa.list_(OBJECT)),
        pa.field("content", pa.binary()),  # of a small file, which has no object
        pa.field("gaps", pa.list_(GAP)),
        pa.field("source", SOURCE),
    ]
)
"""A row for each file of a backup. Its bytes are ``content``, or those of ``objects`` one after the other."""


def files_path(repository: LogPath, backup: str) -> LogPath:
    """Return the path of the list of files of a backup."""
    return repository / BACKUPS / f"{backup}.parquet"


def written_files(rows: list[dict[str, Any]]) -> bytes:
    """Return a list of files as Parquet."""
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, FILES), buffer, compression="zstd")
    return buffer.getvalue()


def read_files(data: bytes, path: LogPath) -> pa.Table:
    """Return a list of files from Parquet.

    Raises
    ------
    OSError
        When it is no such list.
    """
    try:
        # read_table would import what reads datasets, and start threads for a small file
        return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).cast(FILES)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise OSError(errno.EIO, f"expected the list of files of a backup, found: {error}", str(path)) from None


class Opens(Protocol):
    """What opens the objects of a repository: the ``Disk``."""

    def __hash__(self) -> int: ...

    def open(self, path: LogPath, size: int | None = None) -> Any:
        """Open a file for reading."""

    def read_bytes(self, path: LogPath) -> bytes:
        """Return a whole file."""


class ListedFile(NamedTuple):
    """A file of a backup: its content, or the paths and sizes of the objects that contain it."""

    size: int
    content: bytes | None
    objects: tuple[tuple[LogPath, int], ...]


class ListedFiles:
    """The files and folders of a backup, as they were at its cut, or at its end for a path with a time.

    Parameters
    ----------
    disk : Disk
    backup : BackupPath

    Raises
    ------
    OSError
        When the list cannot be read; FileNotFoundError if there is no such backup.
    """

    def __init__(self, disk: Opens, backup: BackupPath) -> None:
        repository = backup.repository
        path, key = files_path(repository, backup.backup), backup.backup_key
        table = read_files(opened(key, path, disk.read_bytes(path)), path)
        self._files: dict[str, ListedFile] = {}
        self._folders: dict[str, dict[str, Entry]] = {"": {}}
        columns = (table.column(name).to_pylist() for name in ("path", "size", "size_at_cut", "content", "objects"))
        for name, whole_size, size_at_cut, content, objects in zip(*columns, strict=True):
            size = size_at_cut if backup.until is None else whole_size
            if size is None:
                continue
            stored = tuple((object_path(repository, key, one), one["size"]) for one in objects or ())
            self._files[name] = ListedFile(size, content, stored)
            self._add(name, size)

    def _add(self, path: str, size: int) -> None:
        folder, _, name = path.rpartition("/")
        entry = Entry(name, False, True, FileState(size))
        while name not in self._folders.setdefault(folder, {}):
            self._folders[folder][name] = entry
            if not folder:
                return
            folder, _, name = folder.rpartition("/")
            entry = Entry(name, True, False)

    def file(self, path: BackupPath) -> ListedFile:
        """Return a file; FileNotFoundError if it is missing."""
        if path.key not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return self._files[path.key]

    def entry(self, path: BackupPath) -> Entry | None:
        """Return the entry at a path; None if it is missing."""
        folder, _, name = path.key.rpartition("/")
        return self._folders.get(folder, {}).get(name) if name else Entry(path.name, True, False)

    def entries(self, folder: BackupPath) -> list[Entry]:
        """Return the entries of a folder, by name; FileNotFoundError if there is no such folder."""
        if folder.key not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
        return sorted(self._folders[folder.key].values(), key=lambda entry: entry.name)

    def tree(self, folder: BackupPath) -> dict[RemotePath, list[Entry]]:
        """Return the entries of a folder and of all folders below it."""
        found: dict[RemotePath, list[Entry]] = {folder: self.entries(folder)}
        for entry in found[folder]:
            if entry.is_dir:
                found |= self.tree(replace(folder, key=f"{folder.key}/{entry.name}".lstrip("/")))
        return found


@lru_cache(maxsize=8)
def _listed(disk: Opens, backup: BackupPath) -> ListedFiles:
    return ListedFiles(disk, backup)


def listed_files(disk: Opens, path: BackupPath) -> ListedFiles:
    """Return the files of the backup of a path; a backup never changes, so its list is read once."""
    return _listed(disk, replace(path, key=""))


class BackupFile:
    """A file of a backup, open for reading at any position.

    Parameters
    ----------
    disk : Disk
    path : BackupPath
    size : int, optional
        Size for the reader; by default all bytes.

    Attributes
    ----------
    path : BackupPath
    size : int

    Raises
    ------
    OSError
        When it cannot be opened; FileNotFoundError if it is missing.
    """

    def __init__(self, disk: Opens, path: BackupPath, size: int | None = None) -> None:
        self.path = path
        self._objects: list[Any] = []
        file = listed_files(disk, path).file(path)
        self.size = file.size if size is None else size
        self._content = file.content
        self._whole = file.size
        self._starts = list(accumulate((size for _, size in file.objects), initial=0))
        for stored, stored_size in file.objects:
            self._objects.append(disk.open(stored, stored_size))

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end).

        Raises
        ------
        OSError
            When they are incomplete.
        """
        data = bytearray(end - start)
        self.read_into(memoryview(data), start)
        return bytes(data)

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill a buffer with the bytes from ``start`` on; raise as ``read`` does."""
        end = start + len(target)
        if end > self._whole:
            raise OSError(errno.EIO, f"expected bytes up to {end}, found {self._whole}", str(self.path))
        if self._content is not None:
            target[:] = self._content[start:end]
            return
        at = max(bisect_right(self._starts, start) - 1, 0)
        position = start
        while position < end:
            last = min(end, self._starts[at + 1])
            part = target[position - start : last - start]
            try:
                self._objects[at].read_into(part, position - self._starts[at])
            except InputError as error:
                raise InputError(error, self._starts[at] + error.position) from error
            position, at = last, at + 1

    def close(self) -> None:
        """Close the objects; a second call does nothing."""
        for each in self._objects:
            each.close()

    def __del__(self) -> None:
        self.close()


def object_path(repository: LogPath, key: BackupKey | None, one: Mapping[str, Any]) -> LogPath:
    """Return the path for reading an object, by its row."""
    path = below(repository, one["name"])
    if key is None:
        return path
    return PartPath.of(path, end=one["size"], chunks=key.chunks(one["name"], one["size"]))


def below(folder: LogPath, name: str) -> LogPath:
    """Return the path of a file below a folder, by its name with slashes."""
    for part in name.split("/"):
        folder = folder / part
    return folder
