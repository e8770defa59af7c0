"""Files of fsspec for pyarrow, read by ranges: fsspec's own file objects read ahead by megabytes."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.fs


class RangeFile(io.RawIOBase):
    """A file that asks for just the bytes that are read."""

    def __init__(self, file_system: Any, path: str) -> None:
        self._file_system = file_system
        self._path = path
        self._size = int(file_system.info(path)["size"])
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte."""
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, or all that are left."""
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        data: bytes = self._file_system.cat_file(self._path, start=self._position, end=self._position + size)
        self._position += len(data)
        return data


class Handler(pyarrow.fs.FSSpecHandler):  # type: ignore[misc]
    """pyarrow's own way to a file system of fsspec, with files that are read by ranges."""

    def open_input_file(self, path: str) -> Any:
        """Open a file for reading anywhere in it."""
        return pa.PythonFile(RangeFile(self.fs, path), mode="r")
