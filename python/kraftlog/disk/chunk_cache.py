"""A cache of file chunks that threads fetch ahead of their readers, bounded in bytes."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition

from kraftlog.codec.compression import Decompressor, decompressor
from kraftlog.disk.in_order import READS_AT_ONCE

MOST_BYTES = 128 << 20  # bytes of all files: chunks in transit, decoded, and waiting for readers
KEPT_BYTES = 64 << 20  # of these, bytes that stay without a reader
AHEAD_BYTES = 48 << 20  # bytes of chunks that no reader has requested yet
THREADS = 2 * READS_AT_ONCE  # more threads than requests: some wait for decoding
UNDOING_AT_ONCE = min(os.cpu_count() or 2, READS_AT_ONCE)
IDLE_BYTES = 8 << 20  # bytes of a decompressor's memory that is reused; larger ones are dropped


@dataclass(frozen=True)
class Group:
    """Chunks that are fetched together, and the memory for that.

    Attributes
    ----------
    keys : sequence
        A file and the number of a chunk, each.
    sizes : sequence of int
        Original bytes of each chunk.
    stored_bytes : int
        Bytes of the stored chunks, all at once.
    undo_bytes : int
        Bytes beyond the larger of both, while they are decoded.
    fetch : callable
        Returns the chunks; allocates with ``ChunkCache.room_for_stored`` and ``ChunkCache.undo``.
    """

    keys: Sequence[Hashable]
    sizes: Sequence[int]
    stored_bytes: int
    undo_bytes: int
    fetch: Callable[[], Sequence[bytes | bytearray]]

    @property
    def bytes(self) -> int:
        """Bytes until the chunks are complete, without decoding."""
        return max(self.stored_bytes, sum(self.sizes))


class Chunk:
    """A chunk that is complete, or in transit with its neighbours."""

    __slots__ = ("_data", "_done", "is_ahead", "is_kept", "key", "readers", "size", "was_ahead")

    def __init__(self, key: Hashable, size: int, done: Future[None], *, is_ahead: bool) -> None:
        self.key = key
        self.size = size
        self.is_ahead = self.was_ahead = is_ahead  # True until a reader requests it
        self.is_kept = True
        self.readers = 0
        self._data: bytes | bytearray | None = None
        self._done = done

    @property
    def is_there(self) -> bool:
        """Whether its bytes are complete."""
        return self._data is not None

    def put(self, data: bytes | bytearray) -> None:
        """Set its bytes."""
        self._data = data

    def data(self) -> bytes | bytearray:
        """Wait for its bytes; raise the error of fetching them."""
        self._done.result()
        assert self._data is not None
        return self._data


class ChunkCache:
    """The chunks of all files of a process: recently used ones, and those fetched ahead.

    Every byte is counted before it is allocated: for chunks in transit, for decoding, and for the cache. A group starts
    when there is room for it, and for decoding it or the largest group in transit; chunks without a reader are dropped
    to make room. A group that exceeds the limit starts when the cache is empty.

    Parameters
    ----------
    most_bytes : int

    Attributes
    ----------
    bytes : int
        Bytes of all chunks in the cache, in transit or being decoded.
    peak_bytes : int
        Maximum of ``bytes`` so far.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._start()
        if hasattr(os, "register_at_fork"):
            own = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _start_anew(own()))

    def _start(self) -> None:
        self._changed = Condition()
        self._chunks: OrderedDict[Hashable, Chunk] = OrderedDict()
        self._on_their_way: list[Group] = []
        self._idle: list[Decompressor] = []
        self._buffers: list[bytearray] = []
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._ahead = self._undoing = self._waiting = self._readers = 0
        self.bytes = self.peak_bytes = 0

    def has(self, key: Hashable) -> bool:
        """Whether a chunk is in the cache or in transit."""
        return key in self._chunks

    def fetch(self, group: Group, *, is_ahead: bool = False) -> bool:
        """Start to fetch chunks, if there is room; fetching ahead evicts no other chunks."""
        with self._changed:
            if is_ahead and (self._waiting or self._ahead + sum(group.sizes) > AHEAD_BYTES):
                return False
            if not self._has_room(group, for_reader=not is_ahead):
                return False
            self._begin(group, is_ahead=is_ahead)
            return True

    def take(self, group: Group) -> Chunk:
        """Return the first chunk of a group; fetch the group if it is neither in the cache nor in transit.

        It stays until ``release``. A thread that holds one must not request another: threads that wait for room rely on
        this.
        """
        with self._changed:
            key = group.keys[0]
            if key not in self._chunks:
                self._waiting += 1
                try:
                    self._changed.wait_for(lambda: key in self._chunks or self._has_room(group, for_reader=True))
                finally:
                    self._waiting -= 1
                if key not in self._chunks:
                    self._begin(group, is_ahead=False)
            chunk = self._chunks[key]
            self._chunks.move_to_end(key)
            self._ahead -= chunk.size if chunk.is_ahead else 0
            chunk.is_ahead = False
            chunk.readers += 1
            return chunk

    def release(self, chunk: Chunk, *, is_done: bool) -> None:
        """Release a chunk; ``is_done`` if it will not be read again."""
        with self._changed:
            chunk.readers -= 1
            if is_done:
                self._drop(chunk)
            if not chunk.readers and not chunk.is_kept and chunk.is_there:
                self._add(-chunk.size)
            self._changed.notify_all()

    def drop(self, key: Hashable) -> None:
        """Drop a chunk that no reader will request; it is not fetched unless its request has begun."""
        with self._changed:
            chunk = self._chunks.get(key)
            if chunk is not None and not chunk.readers:
                self._drop(chunk)
                if chunk.is_there:
                    self._add(-chunk.size)
                self._changed.notify_all()

    def open_reader(self) -> None:
        """Count a reader, for as long as which threads wait for work."""
        with self._changed:
            self._readers += 1

    def close_reader(self) -> None:
        """Let the fetching threads end with the last reader."""
        with self._changed:
            self._readers = max(self._readers - 1, 0)
            if not self._readers and "fetch" in self._pools:
                self._pools.pop("fetch").shutdown(wait=False)
            while not self._readers and self._buffers:
                self._add(-len(self._buffers.pop()))

    def new_buffer(self, size: int) -> bytearray:
        """Return memory for a chunk that is counted; that of a used one, because fresh memory costs page faults."""
        with self._changed:
            for number, buffer in enumerate(self._buffers):
                if len(buffer) == size:
                    self._add(-size)
                    return self._buffers.pop(number)
        return bytearray(size)

    def keep_buffer(self, buffer: bytearray) -> None:
        """Keep the memory of a chunk that was read, if there is room."""
        with self._changed:
            undo = max((one.undo_bytes for one in self._on_their_way), default=0)
            if self._readers and len(self._buffers) < READS_AT_ONCE and self.bytes + len(buffer) + undo <= self._most:
                self._buffers.append(buffer)
                self._add(len(buffer))

    def trim(self) -> None:
        """Drop the least recently used chunks, down to the limit."""
        with self._changed:
            self._make_room(self.bytes - KEPT_BYTES, of_ahead=False)
            self._changed.notify_all()

    @contextmanager
    def room_for_stored(self, size: int) -> Iterator[memoryview]:
        """Lend memory for the stored bytes of a group; it is reused, as each thread would keep some that is freed."""
        with self._changed:
            fitting = [one for one in self._buffers if size <= len(one) <= 2 * size]
            buffer = min(fitting, key=len, default=None)
            if buffer is not None:
                self._buffers.remove(buffer)
                self._add(-size)  # this is counted among the bytes of its group
        own = buffer if buffer is not None else bytearray(size)
        try:
            with memoryview(own) as view, view[:size] as part:
                yield part
        finally:
            with self._changed:
                undo = max((one.undo_bytes for one in self._on_their_way), default=0)
                if len(self._buffers) < READS_AT_ONCE and self.bytes + size + undo <= self._most:
                    self._buffers.append(own)
                    self._add(size)
                else:
                    self._add(size - len(own))

    def undo(self, work: Callable[[Decompressor], list[bytes]], need: int, limit: int) -> list[bytes]:
        """Decode a group in a thread for that, with a decompressor for chunks of at most ``limit`` bytes."""
        return self._threads("undo", UNDOING_AT_ONCE).submit(self._undo, work, need, limit).result()

    def _undo(self, work: Callable[[Decompressor], list[bytes]], need: int, limit: int) -> list[bytes]:
        with self._changed:
            self._changed.wait_for(lambda: not self._undoing or self.bytes + need <= self._most)
            self._undoing += 1
            idle = next((one for one in self._idle if one.limit == limit), None)
            if idle is not None:
                self._idle.remove(idle)
                self._add(-limit)  # it is counted as needed
            while (
                self._idle and self.bytes + need > self._most
            ):  # two at once would need room that only one has reserved
                self._add(-self._idle.pop().limit)
            self._add(need)
        undo = decompressor(limit) if idle is None else idle
        try:
            return work(undo)
        finally:
            with self._changed:
                self._undoing -= 1
                self._add(-need)
                if limit <= min(need, IDLE_BYTES) and len(self._idle) < UNDOING_AT_ONCE:
                    self._idle.append(undo)
                    self._add(limit)
                self._changed.notify_all()

    def _add(self, size: int) -> None:
        self.bytes += size
        self.peak_bytes = max(self.peak_bytes, self.bytes)

    def _has_room(self, group: Group, *, for_reader: bool) -> bool:
        """Whether a group may start; chunks without a reader are dropped for it."""
        undo = max([group.undo_bytes, *(one.undo_bytes for one in self._on_their_way)])
        self._make_room(self.bytes + group.bytes + undo - self._most, of_ahead=for_reader)
        return self.bytes + group.bytes + undo <= self._most or (for_reader and not self.bytes)

    def _make_room(self, size: int, *, of_ahead: bool) -> None:
        """Drop chunks without a reader: the least recently used, then, on request, those fetched ahead."""
        least = self.bytes - size
        for is_ahead in (False, True) if of_ahead else (False,):
            if self.bytes <= least:
                return
            for chunk in [one for one in self._chunks.values() if one.is_there and one.is_ahead == is_ahead]:
                if self.bytes <= least:
                    return
                if not chunk.readers:
                    self._drop(chunk)
                    self._add(-chunk.size)
        while of_ahead and self.bytes > least and self._buffers:
            self._add(-len(self._buffers.pop()))
        while of_ahead and self.bytes > least and self._idle:
            self._add(-self._idle.pop().limit)

    def _begin(self, group: Group, *, is_ahead: bool) -> None:
        done: Future[None] = Future()
        chunks = [Chunk(key, size, done, is_ahead=is_ahead) for key, size in zip(group.keys, group.sizes, strict=True)]
        for chunk in chunks:
            chunk.is_kept = chunk.key not in self._chunks  # otherwise another reader has started to fetch it
            self._chunks.setdefault(chunk.key, chunk)
            self._ahead += chunk.size if is_ahead and chunk.is_kept else 0
        self._add(group.bytes)
        self._on_their_way.append(group)
        self._threads("fetch", THREADS).submit(self._run, group, chunks, done)

    def _threads(self, purpose: str, most: int) -> ThreadPoolExecutor:
        with self._changed:
            if purpose not in self._pools:
                self._pools[purpose] = ThreadPoolExecutor(most, thread_name_prefix=f"kraftlog-{purpose}")
            return self._pools[purpose]

    def _run(self, group: Group, chunks: list[Chunk], done: Future[None]) -> None:
        with self._changed:
            is_needed = any(chunk.is_kept or chunk.readers for chunk in chunks)
        try:
            found = group.fetch() if is_needed else []
        except BaseException as error:
            self._end(group, chunks, [])
            done.set_exception(error)
            return
        self._end(group, chunks, found)
        done.set_result(None)

    def _end(self, group: Group, chunks: list[Chunk], found: Sequence[bytes | bytearray]) -> None:
        """Keep the complete chunks of a group, if any, and count only these."""
        with self._changed:
            self._on_their_way.remove(group)
            for chunk, data in zip(chunks, found, strict=bool(found)):
                chunk.put(data)
            if not found:
                for chunk in chunks:
                    self._drop(chunk)
            held = [chunk for chunk in chunks if chunk.is_there and (chunk.is_kept or chunk.readers)]
            self._add(sum(chunk.size for chunk in held) - group.bytes)
            self._changed.notify_all()

    def _drop(self, chunk: Chunk) -> None:
        if chunk.is_kept:
            chunk.is_kept = False
            self._ahead -= chunk.size if chunk.is_ahead else 0
            del self._chunks[chunk.key]


CHUNKS = ChunkCache()
"""The chunks of this process."""


def _start_anew(cache: ChunkCache | None) -> None:
    """Drop everything in a forked process, which lacks the fetching threads."""
    if cache is not None:
        cache._start()
