"""Reading files that are parts of objects, stored in chunks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from threading import BoundedSemaphore, local

from kraftlog.codec.compression import ZSTD, DecompressionError, Decompressor, decompressor
from kraftlog.disk.chunk_cache import ChunkCache
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.part_path import Chunks, PartPath
from kraftlog.disk.remote_files import LONG_BATCH, READ_BYTES, WINDOW_BYTES, RemoteFile
from kraftlog.disk.remote_path import RemotePath

NONCE_BYTES, TAG_BYTES = 12, 16
SPARE_BYTES = 16 << 20  # that are on their way beyond what is read at once
MAGIC = 2  # of batches whose lz4 has no quirks; zstd is the same in all

CHUNKS = ChunkCache()
_OF_THREAD = local()
UNDOING = BoundedSemaphore(os.cpu_count() or 2)  # each takes memory for a chunk in three forms


class PartFile:
    """A file that is a part of an object, open for reading.

    Chunks are fetched whole, neighbours with one request, several requests at the same time. Where a reader goes on
    from where it was, the chunks behind are fetched ahead of it.

    Parameters
    ----------
    path : PartPath
    size : int, optional
        Bytes that it has for its reader; by default all.

    Attributes
    ----------
    path : PartPath
    size : int
    window_bytes, long_batch : int
        As those of ``RemoteFile``.
    read_until : int
        Byte behind which nothing is fetched ahead.

    Raises
    ------
    OSError
        When the object cannot be opened; FileNotFoundError when it is not there.
    """

    window_bytes = WINDOW_BYTES
    long_batch = LONG_BATCH

    def __init__(self, path: PartPath, size: int | None = None) -> None:
        self.path = path
        self.size = path.size if size is None else min(size, path.size)
        self.read_until = self.size
        where = path.stored_in
        self._object: LocalFile | RemoteFile | None = (
            RemoteFile(where) if isinstance(where, RemotePath) else LocalFile(where)
        )
        self._chunks = None if path.chunks is None else _StoredChunks(path, path.chunks, self._object)
        self._next = -1  # the chunk behind those that were read last

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end).

        Raises
        ------
        OSError
            When they do not all come, or are not what was stored.
        """
        data = bytearray(end - start)
        self.read_into(memoryview(data), start)
        return bytes(data)

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill a buffer with the bytes from ``start`` on; raises as ``read`` does."""
        if self._object is None or start + len(target) > self.path.size:
            is_closed = "; the file is closed" if self._object is None else ""
            raise OSError(
                f"{self.path}: bytes {start} to {start + len(target)} of {self.path.size} were asked for{is_closed}"
            )
        start += self.path.start
        if self._chunks is None:
            self._object.read_into(target, self.path.at + start)
        elif len(target):
            self._read_chunks(self._chunks, target, start)

    def close(self) -> None:
        """Drop the object, which is closed when no thread reads ahead of it any more."""
        self._object = self._chunks = None

    def _read_chunks(self, stored: _StoredChunks, target: memoryview, start: int) -> None:
        end, size = start + len(target), stored.chunks.size
        first, behind = start // size, (end - 1) // size + 1
        waiting = [stored.take(number) for number in range(first, behind)]
        missing = [number for number, found in zip(range(first, behind), waiting, strict=True) if found is None]
        for group in stored.groups(missing):
            stored.begin(group)
            for number in group:
                waiting[number - first] = stored.take(number)
        goes_on = first in (self._next, self._next - 1) or len(target) >= self.window_bytes
        self._next = behind
        for number in range(first, behind):
            if goes_on:  # as many as are read at once are always on their way
                last = (self.path.start + self.read_until - 1) // size
                stored.go_ahead(behind, min(number + (len(target) + SPARE_BYTES) // size, last + 1))
            found, waiting[number - first] = waiting[number - first], None  # what was copied is not held
            data, begin = stored.whole(number, found, is_own=number in missing), number * size
            low, high = max(start, begin), min(end, begin + len(data))
            target[low - start : high - start] = memoryview(data)[low - begin : high - begin]
            if low == begin and high == begin + len(data):
                CHUNKS.forget((self.path, number))  # nobody reads it twice
        CHUNKS.trim()


class _ChunkError(OSError):
    """Bytes that are no chunk."""


class _StoredChunks:
    """The chunks of a file, as they are fetched and undone; threads that read ahead keep it, and the object, open."""

    def __init__(self, path: PartPath, chunks: Chunks, stored_in: LocalFile | RemoteFile) -> None:
        self.chunks = chunks
        self._path = path
        self._object = stored_in
        self._positions = list(accumulate(chunks.stored_sizes, initial=path.at))
        self._ahead_to = 0

    def take(self, number: int) -> Callable[[], bytes] | None:
        """Return what waits for a chunk; None when nobody has begun to fetch it."""
        return CHUNKS.take((self._path, number))

    def whole(self, number: int, found: Callable[[], bytes] | None, *, is_own: bool) -> bytes:
        """Wait for a chunk. One that another reader has just dropped, or that did not come ahead, is fetched now."""
        if found is not None:
            try:
                return found()
            except OSError:
                CHUNKS.forget((self._path, number))
                if is_own:
                    raise
        return self._fetch([number])[0]

    def begin(self, group: Sequence[int], *, is_ahead: bool = False) -> bool:
        """Begin to fetch neighbours; False when too much is on its way ahead of its readers."""
        keys = [(self._path, number) for number in group]
        sizes = [self._plain_size(number) for number in group]
        return CHUNKS.fetch(keys, sizes, lambda: self._fetch(group), is_ahead=is_ahead)

    def go_ahead(self, first: int, behind: int) -> None:
        """Begin to fetch chunks that a reader will ask for next, if it goes on as it did; not a few small ones."""
        first, behind = max(first, self._ahead_to), min(behind, len(self.chunks.stored_sizes))
        numbers = range(first, behind)
        is_much = bool(numbers) and 2 * (self._positions[behind] - self._positions[first]) >= READ_BYTES
        if not is_much and behind < len(self.chunks.stored_sizes):
            return
        self._ahead_to = max(first, behind)
        for group in self.groups([number for number in numbers if not CHUNKS.has((self._path, number))]):
            if not self.begin(group, is_ahead=True):
                return

    def groups(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """Return chunks that one request is for: neighbours, of no more bytes than are asked for at once."""
        group: list[int] = []
        for number in numbers:
            is_next = group and number == group[-1] + 1
            if group and not (is_next and self._positions[number + 1] - self._positions[group[0]] <= READ_BYTES):
                yield group
                group = []
            group.append(number)
        if group:
            yield group

    def _fetch(self, group: Sequence[int]) -> list[bytes]:
        """Return chunks as they were; they are asked for once more where what came is not what was stored.

        An answer that is too short, pyarrow fills up with whatever was in memory.
        """
        try:
            return self._fetched(group)
        except _ChunkError:
            return self._fetched(group)

    def _fetched(self, group: Sequence[int]) -> list[bytes]:
        begin, end = self._positions[group[0]], self._positions[group[-1] + 1]
        data = memoryview(self._object.read(begin, end))
        found = []
        for number in group:
            low, high = self._positions[number], self._positions[number + 1]
            with UNDOING:
                found.append(self._undone(number, data[low - begin : high - begin]))
        return found

    def _plain_size(self, number: int) -> int:
        return min(self.chunks.size, self.chunks.file_size - number * self.chunks.size)

    def _undone(self, number: int, data: memoryview) -> bytes:
        """Return a chunk as it was before it was stored."""
        where = f"{self._path}: chunk {number} at byte {self._positions[number]}"
        plain = bytes(data) if self.chunks.data_key is None else _decrypted(where, self.chunks, data)
        expected = self._plain_size(number)
        if self.chunks.is_compressed:
            try:
                undo = _decompressor(self.chunks.size)
                undo.decompress(plain, ZSTD, MAGIC)
                plain = undo.plain_bytes()
            except DecompressionError as error:
                raise _ChunkError(f"{where}: expected a zstd frame of {expected} bytes, found: {error}") from error
        if len(plain) != expected:
            raise _ChunkError(f"{where}: expected {expected} bytes, found {len(plain)}")
        return plain


def _decompressor(limit: int) -> Decompressor:
    """Return that of this thread, whose memory is used again: fresh memory takes longer than decompression."""
    undo: Decompressor | None = getattr(_OF_THREAD, "decompressor", None)
    if undo is None or undo.limit != limit:
        undo = _OF_THREAD.decompressor = decompressor(limit)
    return undo


def _decrypted(where: str, chunks: Chunks, data: memoryview) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    assert chunks.data_key is not None
    if len(data) < NONCE_BYTES + TAG_BYTES:
        raise _ChunkError(f"{where}: expected {NONCE_BYTES + TAG_BYTES} bytes or more of AES-GCM, found {len(data)}")
    try:
        return AESGCM(chunks.data_key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], chunks.aad)
    except InvalidTag:
        raise _ChunkError(
            f"{where}: expected the tag of AES-GCM to match, found that it does not: it was changed"
        ) from None
