"""A remote file as memory in which only those parts are there that were asked for, each at its own position."""

from __future__ import annotations

import mmap

from kraftlog._native.scanner import LOG_OVERHEAD
from kraftlog.disk.remote_files import RemoteFile
from kraftlog.disk.remote_path import RemotePath
from kraftlog.types import Buffer

HEADER_BYTES = 128  # of a batch, with the first record of a control batch
SHORT_TAIL = 1 << 20  # behind the last index entry lie, by default, 4 KiB and one batch


class RemoteMap:
    """Memory of the size of a remote file. Pages that nothing was read into take no room.

    Parameters
    ----------
    path : RemotePath

    Attributes
    ----------
    size : int
        Of the file, in bytes.
    memory : buffer
        What was not fetched reads as zeros.

    Raises
    ------
    OSError
        When the file cannot be opened.
    """

    def __init__(self, path: RemotePath) -> None:
        self._file = RemoteFile(path)
        self.size = self._file.size
        self._pages = mmap.mmap(-1, self.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) if self.size else None

    @property
    def memory(self) -> Buffer:
        """The file, as far as it was fetched."""
        return self._pages if self._pages is not None else b""

    def fetch(self, start: int, end: int) -> None:
        """Read the bytes [start, end), as far as the file has them.

        Raises
        ------
        OSError
            When they do not all come.
        """
        end = min(end, self.size)
        if start < end:
            self._file.read_into(memoryview(self.memory)[start:end], start)

    def forget(self, end: int) -> None:
        """Give the memory of what lies before a byte back, but for the page of that byte."""
        whole_pages = end // mmap.PAGESIZE * mmap.PAGESIZE
        if whole_pages and self._pages is not None:
            self._pages.madvise(mmap.MADV_DONTNEED, 0, whole_pages)

    def tail(self, start: int) -> Buffer:
        """Return memory that has the file from ``start`` on; it is empty when that is long."""
        if self.size - start > SHORT_TAIL:
            return b""
        self.fetch(start, self.size)
        return self.memory

    def batches_between(self, start: int, last: int) -> Buffer:
        """Return memory that has the headers of batches from ``start`` on up to the one at ``last``, and ends with it.

        It is empty when no batch can begin at ``last``.
        """
        if not 0 <= start <= last < self.size:
            return b""
        self.fetch(start, last + HEADER_BYTES)
        memory = memoryview(self.memory)
        end = last + LOG_OVERHEAD + int.from_bytes(memory[last + 8 : last + LOG_OVERHEAD], "big", signed=True)
        return memory[:end] if last < end <= self.size else b""
