"""The writing half of ``Disk``: every change of a local file or folder is one of these steps.

A step that creates a file or folder gives it to the owner of the parent folder: a broker that runs as another user
could not write to root's files. Only ``sync``, ``sync_folder`` and ``make_folder`` wait for the disk; sequences of
steps are in ``durable``.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from kraftlog.disk.local_file import LocalFile
from kraftlog.types import Buffer, InputFile

_FILE_MODE = 0o644
_NOT_IN_KERNEL = (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)  # copy_file_range, by file system

FileId = tuple[int, int]
"""Device and inode."""


class WritableFile:
    """A local file, open for writing.

    Parameters
    ----------
    path : Path
    fd : int
        Descriptor, which the object takes over.

    Attributes
    ----------
    size : int
        Bytes at opening.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        self.size = os.fstat(fd).st_size

    def fileno(self) -> int:
        """Return the descriptor, which ``close`` closes."""
        return self._fd

    @property
    def file_id(self) -> FileId:
        """Device and inode."""
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino

    def append(self, data: Buffer) -> None:
        """Write after the previous write; with ``open_append``, at the end of the file."""
        left = memoryview(data).cast("B")
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def append_range(self, file: InputFile, start: int, end: int) -> None:
        """Append the bytes [start, end) of another file; not for ``open_append``.

        The kernel copies between local files, or their file system lets both share the blocks.
        """
        while start < end and (count := self._copied(file, start, end)):
            start += count
        if start < end:
            self.append(file.read(start, end))

    def _copied(self, file: InputFile, start: int, end: int) -> int:
        """Return how many bytes the kernel has appended; 0 where it cannot."""
        if sys.platform != "linux" or not isinstance(file, LocalFile):
            return 0
        try:
            return os.copy_file_range(file.fileno(), self._fd, end - start, start)
        except OSError as error:
            if error.errno in _NOT_IN_KERNEL:
                return 0
            raise

    def pwrite(self, data: Buffer, position: int) -> None:
        """Overwrite the bytes from a position on; not for ``open_append``."""
        left = memoryview(data).cast("B")
        while left:
            written = os.pwrite(self._fd, left, position)
            left, position = left[written:], position + written

    def truncate(self, size: int) -> None:
        """Truncate the file to a size in bytes."""
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """Wait until everything written is on disk."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __enter__(self) -> WritableFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LocalWriting:
    """Steps that change local files and folders; each raises OSError when the file system fails."""

    def create(self, path: Path) -> WritableFile:
        """Open a file that is new, or emptied."""
        return self._open(path, os.O_CREAT | os.O_TRUNC)

    def open_append(self, path: Path) -> WritableFile:
        """Open a file for appending; it is created if missing."""
        return self._open(path, os.O_CREAT | os.O_APPEND)

    def open_update(self, path: Path) -> WritableFile:
        """Open a file, which must exist, for changes at any position."""
        return self._open(path, 0)

    def lock(self, path: Path) -> WritableFile:
        """Open a file, creating it if missing, and lock it as Kafka does, until the file is closed.

        BlockingIOError when another process holds the lock.
        """
        file = self._open(path, os.O_CREAT)
        try:
            fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno in (errno.EAGAIN, errno.EACCES):  # in the byte order of the platform
                raise BlockingIOError(error.errno, error.strerror, str(path)) from None
            raise OSError(error.errno, error.strerror, str(path)) from error
        return file

    def file_id(self, path: Path) -> FileId:
        """Return the device and inode of a file or folder; FileNotFoundError if it is missing."""
        status = path.stat()
        return status.st_dev, status.st_ino

    def link_target(self, path: Path) -> Path | None:
        """Return the target of a symbolic link; None if it is not one."""
        return path.readlink() if path.is_symlink() else None

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder."""
        return path.is_dir()

    def _open(self, path: Path, flags: int) -> WritableFile:
        is_new = bool(flags & os.O_CREAT) and not path.exists()
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, _FILE_MODE)
        try:
            if is_new:
                _give(fd, path.parent)
            return WritableFile(path, fd)
        except BaseException:
            os.close(fd)
            raise

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file or folder, replacing a file with the new name."""
        os.replace(source, target)  # noqa: PTH105  (the step that tests and simulators count)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name; FileExistsError if the name is taken."""
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        os.unlink(path)  # noqa: PTH108

    def remove_folder(self, folder: Path) -> None:
        """Remove an empty folder."""
        os.rmdir(folder)  # noqa: PTH106

    def make_folder(self, folder: Path) -> None:
        """Make a folder and its missing parents, and wait until each name is on disk.

        The name of an existing folder may not be on disk: a killed process may have made it.
        """
        if self.is_folder(folder):
            with suppress(PermissionError):  # a process without access to the parent folder did not make it
                self.sync_folder(folder.parent)
            return
        self.make_folder(folder.parent)
        try:
            self.make_new_folder(folder)
        except FileExistsError:
            if not self.is_folder(folder):
                raise
        self.sync_folder(folder.parent)

    def make_new_folder(self, folder: Path) -> None:
        """Make a new folder; FileNotFoundError if its parent is missing."""
        os.mkdir(folder)  # noqa: PTH102
        self.give_to_owner(folder, folder.parent)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder and its content, as far as possible."""
        shutil.rmtree(folder, ignore_errors=True)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in a folder are on disk."""
        self.sync_file(folder)

    def sync_file(self, path: Path) -> None:
        """Wait until a file that another process or library wrote is on disk."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def give_to_owner(self, path: Path, folder: Path) -> None:
        """Give a file or a folder to the owner of another folder, as far as this process may."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _give(fd, folder)
        finally:
            os.close(fd)


def _give(fd: int, folder: Path) -> None:
    owner, own = folder.stat(), os.fstat(fd)
    if os.geteuid() == 0 and (owner.st_uid, owner.st_gid) != (own.st_uid, own.st_gid):
        os.fchown(fd, owner.st_uid, owner.st_gid)


class AppendedFile(io.RawIOBase):
    """A ``WritableFile`` in the form of Python's own files; it stays open when this is closed."""

    def __init__(self, file: WritableFile) -> None:
        self._file = file

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Buffer) -> int:
        """Append data."""
        self._file.append(data)
        return memoryview(data).nbytes
