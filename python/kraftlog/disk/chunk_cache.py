"""Chunks of files that are fetched by threads ahead of their readers, and kept for a while; bounded by their bytes."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from kraftlog.disk.remote_files import READS_AT_ONCE

KEPT_BYTES = 64 << 20  # of all files together
AHEAD_BYTES = 48 << 20  # of these, that nobody has asked for yet
THREADS = READS_AT_ONCE + READS_AT_ONCE // 2  # some undo what others have fetched

Fetch = Callable[[], list[bytes]]


class _Kept:
    """A chunk that is there, or on its way with its neighbours."""

    __slots__ = ("future", "index", "is_ahead", "size")

    def __init__(self, future: Future[list[bytes]], index: int, size: int, *, is_ahead: bool) -> None:
        self.future = future
        self.index = index
        self.size = size
        self.is_ahead = is_ahead


class ChunkCache:
    """The chunks of all files of a process: those used last, and those that are fetched ahead.

    A key is a file and the number of a chunk. What is fetched is what ``fetch`` returns, one after the other.

    Attributes
    ----------
    bytes : int
        Of all that are kept, or on their way.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self.bytes = 0
        self._ahead = 0
        self._pool: tuple[int, ThreadPoolExecutor] | None = None

    def has(self, key: Hashable) -> bool:
        """Whether a chunk is kept, or on its way."""
        return key in self._kept

    def fetch(self, keys: Sequence[Hashable], sizes: Sequence[int], fetch: Fetch, *, is_ahead: bool = False) -> bool:
        """Begin to fetch chunks that are read together; False when too much is on its way ahead of its readers."""
        with self._lock:
            if is_ahead and self._ahead + sum(sizes) > AHEAD_BYTES:
                return False
            future = self._threads().submit(fetch)
            for index, (key, size) in enumerate(zip(keys, sizes, strict=True)):
                self._drop(key)
                self._kept[key] = _Kept(future, index, size, is_ahead=is_ahead)
                self.bytes += size
                self._ahead += size if is_ahead else 0
            return True

    def take(self, key: Hashable) -> Callable[[], bytes] | None:
        """Return what waits for a chunk; None when it is not kept."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            if kept.is_ahead:
                kept.is_ahead = False
                self._ahead -= kept.size
        return lambda: kept.future.result()[kept.index]

    def trim(self) -> None:
        """Drop what was not used for the longest time, down to what may be kept."""
        with self._lock:
            while self.bytes > KEPT_BYTES:
                self._drop(next(iter(self._kept)))

    def forget(self, key: Hashable) -> None:
        """Drop a chunk that will not be read again, or could not be fetched."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.bytes -= kept.size
            self._ahead -= kept.size if kept.is_ahead else 0

    def _threads(self) -> ThreadPoolExecutor:
        """Return the threads of this process; those of the one that it was forked from are not there."""
        if self._pool is None or self._pool[0] != os.getpid():
            self._pool = os.getpid(), ThreadPoolExecutor(THREADS, thread_name_prefix="kraftlog-chunks")
        return self._pool[1]
