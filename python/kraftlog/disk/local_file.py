"""Local files, open for reading."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from kraftlog.disk.entries import FileState, file_state_of
from kraftlog.disk.page_cache import is_cached
from kraftlog.disk.waiting import WouldWait, about_to_wait, reads_cached_only
from kraftlog.errors import InputError

_NOT_CACHED = (errno.EAGAIN, errno.EOPNOTSUPP)  # or a file system that does not tell


class LocalFile:
    """A local file, open for reading at any position.

    Parameters
    ----------
    path : Path
    size : int, optional
        Size for the reader; by default the size at opening.

    Attributes
    ----------
    path : Path
    size : int

    Raises
    ------
    OSError
        When it cannot be opened.
    """

    def __init__(self, path: Path, size: int | None = None) -> None:
        self.path = path
        self._fd = -1
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size if size is None else size

    def fileno(self) -> int:
        """Return the descriptor, which ``close`` closes; who reads by it may wait."""
        about_to_wait()
        return self._fd

    def state(self) -> FileState:
        """Return what changes when the file changes."""
        return file_state_of(os.fstat(self._fd))

    def copy(self) -> LocalFile:
        """Return the same open file once more, which is closed for itself."""
        copied = LocalFile.__new__(LocalFile)
        copied.path, copied.size, copied._fd = self.path, self.size, -1
        copied._fd = os.dup(self._fd)
        return copied

    def check_cached(self, start: int, end: int) -> None:
        """Check that nothing waits for a disk to send the bytes [start, end).

        Raises
        ------
        WouldWait
            When this thread must not wait, and some of them are not in memory, or are more than it may read.
        """
        if reads_cached_only(end - start) and not is_cached(self._fd, start, end):
            self._read_cached(memoryview(bytearray(end - start)), start)  # a system that does not tell reads

    def send(self, socket: int, start: int, size: int) -> int:
        """Send bytes from ``start`` on to the descriptor of a socket, without a copy; return how many."""
        return os.sendfile(socket, self._fd, start, size)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end).

        Raises
        ------
        OSError
            When they cannot be read; ``ShortReadError`` when the file ends before ``end``.
        """
        if reads_cached_only(end - start):
            cached = bytearray(end - start)
            self._read_cached(memoryview(cached), start)
            return bytes(cached)
        data = os.pread(self._fd, end - start, start) if end > start else b""
        if len(data) == end - start:
            return data
        rest = bytearray(end - start - len(data))
        self.read_into(memoryview(rest), start + len(data))
        return data + rest

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill a buffer with the bytes from ``start`` on; raise as ``read`` does, after the bytes that can be read.

        Raises
        ------
        InputError
            With the position from which on the bytes cannot be read.
        """
        if reads_cached_only(len(target)):
            self._read_cached(target, start)
            return
        done = 0
        while done < len(target):
            try:
                count = os.preadv(self._fd, [target[done:]], start + done)
            except OSError as error:
                error.filename = str(self.path)
                raise InputError(error, start + done) from error
            if count == 0:
                raise ShortReadError(self.path, start + len(target), start + done)
            done += count

    def _read_cached(self, target: memoryview, start: int) -> None:
        """Fill a buffer from the page cache; WouldWait if some of the bytes are not there."""
        try:
            count = os.preadv(self._fd, [target], start, os.RWF_NOWAIT) if hasattr(os, "RWF_NOWAIT") else -1
        except OSError as error:
            if error.errno not in _NOT_CACHED:
                raise
            count = -1
        if count != len(target):  # also where the file was truncated: the other way to read tells so
            raise WouldWait

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class ShortReadError(InputError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A file that ends before the requested bytes: it was truncated after it was listed.

    Attributes
    ----------
    expected, found : int
        Minimum size that was expected, and the actual size.
    """

    def __init__(self, path: object, expected: int, found: int) -> None:
        what = f"expected {expected} bytes, found {found}: the file was truncated after it was listed"
        super().__init__(OSError(errno.EIO, what, str(path)), found)
        self.expected = expected
        self.found = found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.filename, self.expected, self.found)
