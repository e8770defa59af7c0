"""Files of fsspec, read by ranges: fsspec's own file objects read ahead by megabytes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import pyarrow.fs


class RangeFile:
    """A file that requests exactly the bytes that are read, with the needed methods of pyarrow's files."""

    def __init__(self, file_system: Any, path: str, turn: AbstractContextManager[Any], size: int | None = None) -> None:
        self._file_system = file_system
        self._path = path
        self._turn = turn
        if size is None:
            with turn:
                size = int(file_system.info(path)["size"])
        self._size = size

    def size(self) -> int:
        """Return the size in bytes."""
        return self._size

    def read_at(self, size: int, start: int) -> bytes:
        """Return bytes from ``start`` on."""
        with self._turn:
            data: bytes = self._file_system.cat_file(self._path, start=start, end=start + size)
        return data


class Handler(pyarrow.fs.FSSpecHandler):  # type: ignore[misc]
    """pyarrow's handler of an fsspec file system, with files that are read by ranges."""

    def __init__(self, file_system: Any) -> None:
        super().__init__(file_system)
        # others may share one connection, where concurrent answers would be mixed up
        self._turn: AbstractContextManager[Any] = nullcontext() if file_system.async_impl else Lock()

    def open_range_file(self, path: str, size: int | None = None) -> RangeFile:
        """Open a file for reading anywhere in it; its size is requested if it is unknown."""
        return RangeFile(self.fs, path, self._turn, size)
