"""Listing remote folders, and reading parts of remote files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import sleep
from typing import TYPE_CHECKING, Any

from kraftlog.disk.entries import NO_FILE, Entry, FileState
from kraftlog.disk.file_systems import locate, naming, open_file
from kraftlog.disk.in_order import READS_AT_ONCE
from kraftlog.disk.remote_path import RemotePath

if TYPE_CHECKING:
    from kraftlog.disk.pieces_ahead import PiecesAhead

READ_BYTES = 4 << 20
WINDOW_BYTES = 32 << 20
LONG_BATCH = 4 << 20  # bytes whose transfer costs as much as another request
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


def remote_state(path: RemotePath) -> FileState | None:
    """Return the size of a file and when it was changed; None if it is missing.

    Raises
    ------
    OSError
        When the file system fails.
    """
    file_system, where = locate(path)
    with naming(path):
        info = file_system.get_file_info(where)
    return _state(info) if info.is_file else None


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
    return Entry(name, info.type == FileType.Directory, is_file, _state(info) if is_file else NO_FILE)


def _state(info: Any) -> FileState:
    return FileState(info.size or 0, info.mtime_ns)


class RemoteFile:
    """A remote file, open for reading.

    Parameters
    ----------
    path : RemotePath
    size : int, optional
        Size from a listing: nothing is requested before the first bytes are read. By default the size at opening.

    Attributes
    ----------
    path : RemotePath
    size : int
    window_bytes, long_batch : int
        Bytes that a reader requests at once, and the size of batches from which on it requests single headers.

    Raises
    ------
    OSError
        When it cannot be opened; FileNotFoundError if it is missing. With ``size``, reading raises it.
    """

    window_bytes = WINDOW_BYTES
    long_batch = LONG_BATCH

    def __init__(self, path: RemotePath, size: int | None = None) -> None:
        self.path = path
        self._located = locate(path)
        self._opening = Lock()
        self._opened: Any = None
        self._ahead: PiecesAhead | None = None
        self._listed_size = size
        self.size: int = self._file.size() if size is None else size

    @property
    def _file(self) -> Any:
        """The file of the file system, opened on first use."""
        with self._opening:
            if self._opened is None:
                with naming(self.path):
                    self._opened = open_file(*self._located, self._listed_size)
            return self._opened

    def read_in_order(self, start: int, end: int, readers: int = 1) -> None:
        """Say which bytes will be read in order, by one of several readers: they are fetched ahead, once."""
        from kraftlog.disk.pieces_ahead import PiecesAhead

        if self._ahead is None and start < min(end, self.size):
            self.window_bytes = min(self.window_bytes, READ_BYTES)  # the others are fetched while one is decoded
            self._ahead = PiecesAhead(self._piece, start, min(end, self.size), READ_BYTES, readers)

    def go_ahead(self, before: RemoteFile | None) -> None:
        """Begin to fetch, after the bytes of another file that is read before."""
        if before is None or before._ahead is None:
            if self._ahead is not None:
                self._ahead.go_ahead()
        else:
            before._ahead.following = self._ahead
            before._ahead.go_ahead()

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
        if self._ahead is not None:
            done = self._ahead.read_into(target, start)
            target, start = target[done:], start + done
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
        """Drop what was fetched ahead; each request for an object ends by itself."""
        if self._ahead is not None:
            self._ahead.close()

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
