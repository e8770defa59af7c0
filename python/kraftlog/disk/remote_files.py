"""Listing remote folders, and reading parts of remote files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any

from kraftlog.disk.entries import Entry
from kraftlog.disk.file_systems import locate, naming, open_file
from kraftlog.disk.remote_path import RemotePath

READ_BYTES = 4 << 20
WINDOW_BYTES = 32 << 20
LONG_BATCH = 4 << 20  # bytes whose transfer costs as much as another request
READS_AT_ONCE = 8
TRIES = 3
FIRST_PAUSE = 0.1  # seconds, doubled each time

_RARE = 0xF5  # the rarest byte in logs; UTF-8 text never has it


def remote_entry(path: RemotePath) -> Entry | None:
    """Return the entry at a path; None if it is missing.

    Raises
    ------
    OSError
        When the file system fails.
    """
    file_system, where = locate(path)
    with naming(path):
        return _entry(file_system.get_file_info(where), path.name)


def remote_entries(folder: RemotePath) -> list[Entry]:
    """Return the entries of a folder, by name, from one listing.

    Raises
    ------
    OSError
        When it cannot be listed; FileNotFoundError if it is missing.
    """
    return remote_tree(folder, recursive=False).get(folder, [])


def remote_tree(folder: RemotePath, *, recursive: bool = True) -> dict[RemotePath, list[Entry]]:
    """Return the entries of a folder and all folders below it; object stores need one listing for that.

    Raises
    ------
    OSError
        When it cannot be listed; FileNotFoundError if it is missing.
    """
    from pyarrow.fs import FileSelector

    found: dict[RemotePath, dict[str, Entry]] = {folder: {}}
    file_system, where = locate(folder)
    with naming(folder):
        infos = file_system.get_file_info(FileSelector(where, recursive=recursive))
    below = len(where.strip("/"))
    for info in infos:
        parent, _, name = info.path.strip("/")[below:].strip("/").rpartition("/")
        entry = _entry(info, name)
        if entry is not None and name:
            found.setdefault(folder / parent if parent else folder, {})[name] = entry
    return {path: sorted(entries.values(), key=lambda entry: entry.name) for path, entries in found.items()}


def _entry(info: Any, name: str) -> Entry | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    is_file = info.type == FileType.File
    return Entry(name, info.type == FileType.Directory, is_file, info.size or 0 if is_file else 0)


class RemoteFile:
    """A remote file, open for reading.

    Parameters
    ----------
    path : RemotePath
    size : int, optional
        Size for the reader; by default the size at opening.

    Attributes
    ----------
    path : RemotePath
    size : int
    window_bytes, long_batch : int
        Bytes that a reader requests at once, and the size of batches from which on it requests single headers.

    Raises
    ------
    OSError
        When it cannot be opened; FileNotFoundError if it is missing.
    """

    window_bytes = WINDOW_BYTES
    long_batch = LONG_BATCH

    def __init__(self, path: RemotePath, size: int | None = None) -> None:
        self.path = path
        file_system, where = locate(path)
        with naming(path):
            self._file = open_file(file_system, where)
            self.size: int = self._file.size() if size is None else size

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
        """Fill a buffer with the bytes from ``start`` on; raise as ``read`` does.

        A long part is requested in pieces, concurrently if the client allows it.
        """
        size = len(target)
        # an incompressible chunk is slightly longer than the original
        pieces = range(0, size, READ_BYTES if size > READ_BYTES // 16 * 17 else max(size, 1))
        if len(pieces) < 2:
            for at in pieces:
                self._piece(target[at:], start + at)
            return
        with ThreadPoolExecutor(READS_AT_ONCE) as pool:
            for _ in pool.map(lambda at: self._piece(target[at : at + READ_BYTES], start + at), pieces):
                pass

    def close(self) -> None:
        """Do nothing: each request for an object ends by itself."""

    def _piece(self, target: memoryview, start: int) -> None:
        """Fill the part of one request; retry a temporary failure or a truncated answer."""
        for tried in range(1, TRIES):
            try:
                return self._answer(target, start)
            except FileNotFoundError:
                raise
            except OSError:
                sleep(FIRST_PAUSE * 2 ** (tried - 1))
        return self._answer(target, start)

    def _answer(self, target: memoryview, start: int) -> None:
        """Fill a part by one request.

        pyarrow's S3 client does not report an answer that is too short. So the last byte is set to a value before. If
        it still has that value, it is stored so or did not arrive: the request is repeated with another value.
        """
        size = len(target)
        what = f"bytes {start} to {start + size}: "
        with naming(self.path, what):
            target[-1] = _RARE
            came = self._fill(target, start)
            if came == size and target[-1] == _RARE:
                target[-1] = _RARE ^ 0xFF
                came = self._fill(target, start)
                if came == size and target[-1] != _RARE:
                    raise OSError("the answer is shorter than requested")
        if came != size:
            raise OSError(f"{self.path}: {what}only {came} came")

    def _fill(self, target: memoryview, start: int) -> int:
        """Return the number of bytes received."""
        if hasattr(self._file, "get_stream"):
            came: int = self._file.get_stream(start, len(target)).readinto(target)
            return came
        data = self._file.read_at(len(target), start)
        target[: len(data)] = data[: len(target)]
        return len(data)
