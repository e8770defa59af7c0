"""The files of a backup: a list of them, and their bytes in the objects of a repository."""

from __future__ import annotations

import errno
import io
import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
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

_FOLDER = -1  # instead of a row
_ROWS_AT_ONCE = 1 << 14  # that are in memory in both forms while a list is written


def files_path(repository: LogPath, backup: str) -> LogPath:
    """Return the path of the list of files of a backup."""
    return repository / BACKUPS / f"{backup}.parquet"


def written_files(files: pa.Table) -> bytes:
    """Return a list of files as Parquet."""
    buffer = io.BytesIO()
    pq.write_table(files, buffer, compression="zstd", row_group_size=_ROWS_AT_ONCE)
    return buffer.getvalue()


def read_files(data: bytes, path: LogPath, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a list of files from Parquet, or some columns of it.

    Raises
    ------
    OSError
        When it is no such list.
    """
    try:
        # read_table would import what reads datasets, and start threads for a small file
        file = pq.ParquetFile(pa.BufferReader(data))
        names = FILES.names if columns is None else columns
        return file.read(names, use_threads=False).select(names).cast(pa.schema([FILES.field(name) for name in names]))
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
        self._repository, self._key = repository, key
        size = "size_at_cut" if backup.until is None else "size"
        columns = ["path", size, "content", "objects"]
        files = read_files(opened(key, path, disk.read_bytes(path)), path, columns).rename_columns(
            ["path", "size", "content", "objects"]
        )
        self._files = files.filter(files.column("size").is_valid()).combine_chunks()
        self._rows: dict[str, dict[str, int]] = {"": {}}  # of files in folders; _FOLDER for the folders in them
        for row, name in enumerate(self._files.column("path").to_pylist()):
            self._add(name, row)

    def _add(self, path: str, row: int) -> None:
        folder, _, name = path.rpartition("/")
        while name not in self._rows.setdefault(folder, {}):
            self._rows[folder][name] = row
            if not folder:
                return
            folder, _, name = folder.rpartition("/")
            row = _FOLDER

    def file(self, path: BackupPath) -> ListedFile:
        """Return a file; FileNotFoundError if it is missing."""
        folder, _, name = path.key.rpartition("/")
        row = self._rows.get(folder, {}).get(name, _FOLDER)
        if row == _FOLDER:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        size, content, objects = (self._files.column(of)[row].as_py() for of in ("size", "content", "objects"))
        stored = tuple((object_path(self._repository, self._key, one), one["size"]) for one in objects or ())
        return ListedFile(size, content, stored)

    def entry(self, path: BackupPath) -> Entry | None:
        """Return the entry at a path; None if it is missing."""
        folder, _, name = path.key.rpartition("/")
        if not name:
            return Entry(path.name, True, False)
        row = self._rows.get(folder, {}).get(name)
        return None if row is None else self._entry(name, row)

    def entries(self, folder: BackupPath) -> list[Entry]:
        """Return the entries of a folder, by name; FileNotFoundError if there is no such folder."""
        if folder.key not in self._rows:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
        return [self._entry(name, row) for name, row in sorted(self._rows[folder.key].items())]

    def _entry(self, name: str, row: int) -> Entry:
        if row == _FOLDER:
            return Entry(name, True, False)
        return Entry(name, False, True, FileState(self._files.column("size")[row].as_py()))

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
