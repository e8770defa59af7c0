"""The one object through which files are listed, read and written; tests can replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kraftlog.disk.backup_path import BackupPath
from kraftlog.disk.entries import (
    Entry,
    FileState,
    allocated_bytes,
    file_state,
    local_entries,
    local_entry,
    modified_ms,
    permissions_of_others,
    volume_space,
)
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.part_path import PartPath
from kraftlog.disk.remote_files import RemoteFile, remote_entries, remote_entry, remote_state, remote_tree
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.disk.remote_writing import fetch, put, remove, remove_remote_tree, send
from kraftlog.disk.waiting import about_to_wait
from kraftlog.disk.writing import LocalWriting
from kraftlog.types import Buffer, InputFile

if TYPE_CHECKING:
    from kraftlog.disk.backup_files import ListedFiles


class ReadableFile(InputFile, Protocol):
    """A file that is open for reading at any position; ``size`` in bytes, when it was opened or listed."""

    def close(self) -> None:
        """Close the file; a second call does nothing."""


def read_in_order(file: ReadableFile, start: int, end: int, readers: int = 1) -> None:
    """Say which bytes of a file will be read in order, so that these and no others are fetched ahead.

    Parameters
    ----------
    file : ReadableFile
    start, end : int
    readers : int
        Number of readers at the same time, which share the memory.
    """
    if hasattr(file, "read_in_order"):
        file.read_in_order(start, end, readers)


class Disk(LocalWriting):
    """Local and remote file systems. Reading takes paths of both kinds, changes local ones.

    Remote files are written and removed as a whole.

    Every method raises OSError when the file system fails or cannot be reached.

    Examples
    --------
    >>> from kraftlog.disk.disk import disk
    >>> from pathlib import Path
    >>> [entry.name for entry in disk().entries(Path("tests/golden/codecs/log/codec-lz4-0"))][:2]
    ['00000000000000000000.index', '00000000000000000000.log']
    """

    def entries(self, folder: LogPath) -> list[Entry]:
        """Return the entries of a folder, sorted by name; FileNotFoundError when there is no such folder.

        Sizes of local files are read on first use.
        """
        if isinstance(folder, BackupPath):
            return self._listed(folder).entries(folder)
        return remote_entries(folder) if isinstance(folder, RemotePath) else local_entries(folder)

    def tree(self, folder: RemotePath) -> dict[RemotePath, list[Entry]]:
        """Return the entries of a remote folder and of all folders below it, from one listing."""
        return self._listed(folder).tree(folder) if isinstance(folder, BackupPath) else remote_tree(folder)

    def _listed(self, path: BackupPath) -> ListedFiles:
        """Return the files of the backup of a path."""
        from kraftlog.disk.backup_files import listed_files

        return listed_files(self, path)

    def entry(self, path: LogPath) -> Entry | None:
        """Return the entry at a path; None if it is missing."""
        if isinstance(path, PartPath):
            found = self.entry(path.stored_in)
            return None if found is None else Entry(path.name, False, found.is_file, FileState(path.size))
        if isinstance(path, BackupPath):
            return self._listed(path).entry(path)
        return remote_entry(path) if isinstance(path, RemotePath) else local_entry(path)

    def allocated_bytes(self, path: LogPath) -> int | None:
        """Return the bytes of the blocks that a file has; None where that is not known, as in an object store."""
        return allocated_bytes(path) if isinstance(path, Path) else None

    def volume_space(self, path: Path) -> tuple[int, int]:
        """Return the size of the volume of a local path, and how many of its bytes a user may still use."""
        return volume_space(path)

    def modified_ms(self, path: LogPath) -> int | None:
        """Return when a file was last changed, in milliseconds; None for a missing file, and in an object store."""
        return modified_ms(path) if isinstance(path, Path) else None

    def permissions_of_others(self, path: Path) -> int:
        """Return the permissions of group and others for a file; none if the file is not this user's own."""
        return permissions_of_others(path)

    def state(self, path: LogPath) -> FileState | None:
        """Return what changes when a file changes; None if it is missing, and for a file in a part of another one."""
        if isinstance(path, PartPath | BackupPath):
            return None
        return remote_state(path) if isinstance(path, RemotePath) else file_state(path)

    def put(self, path: RemotePath, pieces: Callable[[], Iterable[Buffer]]) -> None:
        """Write a remote file, which is visible when it is complete; ``pieces`` returns its bytes for each try."""
        put(path, pieces)

    def remove(self, path: LogPath) -> None:
        """Remove a local or remote file; FileNotFoundError if it is missing."""
        remove(path) if isinstance(path, RemotePath) else self.unlink(path)

    def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
        """Open a file for reading; FileNotFoundError if it is missing.

        Parameters
        ----------
        path : Path or RemotePath
        size : int, optional
            Size from the listing: bytes appended since are not read, and reading bytes truncated since fails.
        """
        if not isinstance(path, Path):
            about_to_wait()
        if isinstance(path, PartPath):
            from kraftlog.disk.part_file import PartFile

            return PartFile(path, size)
        if isinstance(path, BackupPath):
            from kraftlog.disk.backup_files import BackupFile

            return BackupFile(self, path, size)
        return RemoteFile(path, size) if isinstance(path, RemotePath) else LocalFile(path, size)

    def read_bytes(self, path: LogPath) -> bytes:
        """Return a whole file."""
        file = self.open(path)
        try:
            return file.read(0, file.size)
        finally:
            file.close()

    def send(self, source: Path, target: RemotePath) -> None:
        """Copy a local file to a remote one."""
        file = LocalFile(source)
        try:
            send(file, target)
        finally:
            file.close()

    def fetch(self, source: RemotePath, target: Path) -> None:
        """Copy a remote file to a new local one; FileNotFoundError if it is missing."""
        with self.create(target) as file:
            fetch(RemoteFile(source), file)

    def remove_remote_tree(self, folder: RemotePath) -> None:
        """Remove a remote folder and its content, unless it is missing."""
        remove_remote_tree(folder)

    def matches(self, folder: LogPath, pattern: str) -> list[LogPath]:
        """Return paths of the entries of a folder with names that match a pattern; none if there is no such folder."""
        try:
            entries = self.entries(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [folder / entry.name for entry in entries if fnmatchcase(entry.name, pattern)]


_current = Disk()


def disk() -> Disk:
    """Return the object for all file access."""
    return _current


@contextmanager
def use_disk(other: Disk) -> Iterator[Disk]:
    """Replace the object for file access during a ``with`` block, in all threads; for tests."""
    global _current
    before, _current = _current, other
    try:
        yield other
    finally:
        _current = before
