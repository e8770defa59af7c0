"""The files of the next ranges, opened before they are read, so that a reader need not wait for an object store."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from kraftlog.disk.disk import ReadableFile, disk, read_in_order
from kraftlog.disk.remote_files import RemoteFile
from kraftlog.disk.remote_path import RemotePath
from kraftlog.read.ranges import Range

NEXT_BYTES = 64 << 20  # of ranges that are opened: more than is fetched ahead
MOST_OPEN = 16


class OpenedAhead:
    """Ranges, each with its file if it is an object whose first bytes are in transit.

    Ranges are taken a little before they are read. An exception of their iterator is raised in its turn.

    Parameters
    ----------
    parts : iterable of Range
    readers : int
        Number of ranges that are read at the same time; one more may wait for its reader.
    """

    def __init__(self, parts: Iterable[Range], readers: int) -> None:
        self._todo = iter(parts)
        self._readers = readers
        self._waiting: deque[tuple[Range, RemoteFile | None]] = deque()
        self._files: deque[RemoteFile] = deque(maxlen=MOST_OPEN + readers + 1)  # older ones are closed

    def __iter__(self) -> Iterator[tuple[Range, ReadableFile | None]]:
        failed: Exception | None = None
        while True:
            try:
                while failed is None and self._has_few():
                    self._open(next(self._todo))
            except Exception as error:
                failed = error
            if self._waiting:
                yield self._waiting.popleft()
            elif isinstance(failed, StopIteration):
                return
            elif failed is not None:
                raise failed

    def close(self) -> None:
        """Close the files that no reader has closed."""
        for file in self._files:
            file.close()

    def _has_few(self) -> bool:
        """Whether another range is opened: only after an object, and while the next ones have few bytes."""
        size = sum(min(part.end, part.segment.size) - part.start for part, _ in self._waiting)
        is_last_remote = not self._waiting or self._waiting[-1][1] is not None
        return is_last_remote and size < NEXT_BYTES and len(self._waiting) < MOST_OPEN

    def _open(self, part: Range) -> None:
        file, path = None, part.segment.path
        if type(path) is RemotePath:
            try:
                file = disk().open(path, part.segment.size)
            except OSError:
                file = None  # its reader reports why
        if not isinstance(file, RemoteFile):
            self._waiting.append((part, None))
            return
        read_in_order(file, part.start, part.end, self._readers)
        file.go_ahead(self._files[-1] if self._files else None)
        self._files.append(file)
        self._waiting.append((part, file))
