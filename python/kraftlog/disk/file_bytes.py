"""Bytes of a local file that are sent to a socket without a copy in memory."""

from __future__ import annotations

from typing import Self

from kraftlog.disk.local_file import LocalFile


class FileBytes:
    """Consecutive bytes of a local file, which is open until the end of a ``with`` block, or of this object.

    They are read when they are wanted: if they have changed since they were checked, they are sent as they are then,
    and the reader's own check finds it.

    Parameters
    ----------
    file : LocalFile
        It may be closed before.
    start, end : int
        The bytes [start, end) of it.
    """

    def __init__(self, file: LocalFile, start: int, end: int) -> None:
        self._file = file.copy()
        self._start = start
        self._size = end - start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, some: slice) -> bytes:
        """Return some of the bytes; raise as ``LocalFile.read`` does."""
        start, end, _ = some.indices(self._size)
        return self._file.read(self._start + start, self._start + end)

    def send(self, socket: int) -> int:
        """Send bytes from the first one on to the descriptor of a socket that does not block; return how many.

        The others are to be read: the socket takes no more, the file was truncated, or its file system cannot send.

        Raises
        ------
        ConnectionError
            When the connection is lost.
        """
        sent = 0
        try:
            while sent < self._size:
                count = self._file.send(socket, self._start + sent, self._size - sent)
                if count == 0:
                    break
                sent += count
        except ConnectionError:
            raise
        except OSError:
            pass
        return sent
