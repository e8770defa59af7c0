"""Reading files that are parts of objects, stored in chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate

from kraftlog.codec.compression import ZSTD, DecompressionError, Decompressor
from kraftlog.disk.chunk_cache import CHUNKS, Chunk, Group
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.part_path import Chunks, PartPath
from kraftlog.disk.remote_files import LONG_BATCH, READ_BYTES, WINDOW_BYTES, RemoteFile
from kraftlog.disk.remote_path import RemotePath
from kraftlog.errors import InputError

NONCE_BYTES, TAG_BYTES = 12, 16
SPARE_BYTES = 16 << 20  # chunks in transit beyond those that are read at once
PLAIN_BYTES = 8 << 20  # maximum bytes of several chunks in one request
MAGIC = 2  # magic of batches whose lz4 has no quirks; zstd is the same in all


class PartFile:
    """A file that is a part of an object, open for reading.

    Chunks are fetched whole, neighbours with one request, several requests at the same time. For a sequential reader
    the next chunks are fetched ahead.

    Parameters
    ----------
    path : PartPath
    size : int, optional
        Size for the reader; by default all bytes.

    Attributes
    ----------
    path : PartPath
    size : int
    window_bytes, long_batch : int
        As in ``RemoteFile``.

    Raises
    ------
    OSError
        When the object cannot be opened; FileNotFoundError if it is missing.
    """

    window_bytes = WINDOW_BYTES
    long_batch = LONG_BATCH

    def __init__(self, path: PartPath, size: int | None = None) -> None:
        self.path = path
        self.size = path.size if size is None else min(size, path.size)
        self._read_until = self.size
        where = path.stored_in
        self._object: LocalFile | RemoteFile | None = (
            RemoteFile(where) if isinstance(where, RemotePath) else LocalFile(where)
        )
        self._chunks = None if path.chunks is None else _StoredChunks(path, path.chunks, self._object)
        self._next = -1  # the chunk after the last one that was read

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end).

        Raises
        ------
        OSError
            When they are incomplete or do not match the stored bytes.
        """
        data = bytearray(end - start)
        self.read_into(memoryview(data), start)
        return bytes(data)

    def read_in_order(self, start: int, end: int, readers: int = 1) -> None:
        """Say which bytes will be read in order: nothing after them is fetched ahead."""
        self._read_until = min(end, self.size)

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill a buffer with the bytes from ``start`` on; raise as ``read`` does."""
        if self._object is None or start + len(target) > self.path.size:
            is_closed = "; the file is closed" if self._object is None else ""
            raise OSError(
                f"{self.path}: expected bytes up to {self.path.size}, found {start} to {start + len(target)}{is_closed}"
            )
        begin = start + self.path.start
        try:
            if self._chunks is None:
                self._object.read_into(target, self.path.at + begin)
            elif len(target):
                self._read_chunks(self._chunks, target, begin)
        except InputError as error:  # its position is in the object
            read = error.position - self.path.at - begin if self._chunks is None else 0
            raise InputError(error, start + read) from error

    def close(self) -> None:
        """Drop the object, which is closed when the last thread has stopped reading ahead."""
        self._object = self._chunks = None

    def _read_chunks(self, stored: _StoredChunks, target: memoryview, start: int) -> None:
        end, size = start + len(target), stored.chunks.size
        first, behind = start // size, (end - 1) // size + 1
        waiting = deque(stored.groups(range(first, behind)))
        goes_on = first in (self._next, self._next - 1) or len(target) >= self.window_bytes
        self._next = behind
        for number in range(first, behind):
            while waiting and stored.begin(waiting[0]):
                waiting.popleft()
            if goes_on and not waiting:  # always as many chunks in transit as are read at once
                last = (self.path.start + self._read_until - 1) // size
                stored.go_ahead(behind, min(number + (len(target) + SPARE_BYTES) // size, last + 1))
            stored.copy(number, target, start)
            if waiting and waiting[0][0] <= number:
                waiting[0] = [other for other in waiting[0] if other > number]
                if not waiting[0]:
                    waiting.popleft()
        CHUNKS.trim()


def forget(path: PartPath) -> None:
    """Drop the chunks of a file that are in memory, so that the next reader reads what is stored."""
    for number in range(0 if path.chunks is None else len(path.chunks.stored_sizes)):
        CHUNKS.drop((path, number))


class _ChunkError(OSError):
    """Bytes that are not a valid chunk."""


class _StoredChunks:
    """The chunks of a file, fetched and decoded; threads that read ahead keep it, and the object, open."""

    def __init__(self, path: PartPath, chunks: Chunks, stored_in: LocalFile | RemoteFile) -> None:
        self.chunks = chunks
        self._path = path
        self._object = stored_in
        self._positions = list(accumulate(chunks.stored_sizes, initial=path.at))
        self._ahead_to = 0

    def copy(self, number: int, target: memoryview, start: int) -> None:
        """Copy a chunk's part of the bytes from ``start`` on; it stays in the cache unless all of it was read."""
        chunk = CHUNKS.take(self._group([number]))
        try:
            self._copy(chunk, number, target, start)
        except OSError:
            if not chunk.was_ahead:
                raise
            self.copy(number, target, start)  # fetching it ahead failed: fetch it now

    def _copy(self, chunk: Chunk, number: int, target: memoryview, start: int) -> None:
        is_done = True
        try:
            data, begin = chunk.data(), number * self.chunks.size
            low, high = max(start, begin), min(start + len(target), begin + len(data))
            target[low - start : high - start] = memoryview(data)[low - begin : high - begin]
            is_done = high - low == len(data)
        finally:
            CHUNKS.release(chunk, is_done=is_done)

    def begin(self, group: Sequence[int], *, is_ahead: bool = False) -> bool:
        """Start to fetch missing neighbours; False without room, or with too much in transit."""
        missing = [number for number in group if not CHUNKS.has((self._path, number))]
        return all(CHUNKS.fetch(self._group(some), is_ahead=is_ahead) for some in self.groups(missing))

    def go_ahead(self, first: int, behind: int) -> None:
        """Start to fetch the chunks that a sequential reader needs next, unless they are few and small."""
        first, behind = max(first, self._ahead_to), min(behind, len(self.chunks.stored_sizes))
        numbers = range(first, behind)
        is_much = bool(numbers) and 2 * (self._positions[behind] - self._positions[first]) >= READ_BYTES
        if not is_much and behind < len(self.chunks.stored_sizes):
            return
        self._ahead_to = max(first, behind)
        for group in self.groups(numbers):
            if not self.begin(group, is_ahead=True):
                return

    def groups(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """Return the chunks of one request: neighbours, up to the limit of bytes."""
        group: list[int] = []
        for number in numbers:
            is_next = group and number == group[-1] + 1
            if group and not (is_next and self._fits_request(group[0], number)):
                yield group
                group = []
            group.append(number)
        if group:
            yield group

    def _fits_request(self, first: int, last: int) -> bool:
        plain = (last + 1 - first) * self.chunks.size
        return self._positions[last + 1] - self._positions[first] <= READ_BYTES and plain <= PLAIN_BYTES

    def _group(self, numbers: Sequence[int]) -> Group:
        """Return chunks as one request, with the memory for it."""
        chunks, sizes = self.chunks, [self._plain_size(number) for number in numbers]
        stored = self._positions[numbers[-1] + 1] - self._positions[numbers[0]]
        undo = min(stored, sum(sizes))  # the stored bytes stay until all of them are decoded
        if chunks.is_compressed:
            undo += chunks.size
            if chunks.data_key is not None:
                undo += max(chunks.stored_sizes[number] for number in numbers)
        return Group(
            [(self._path, number) for number in numbers], sizes, stored, undo, lambda: self._fetch(numbers, undo)
        )

    def _fetch(self, numbers: Sequence[int], undo_bytes: int) -> list[bytes]:
        """Return decoded chunks; request them once more if the bytes are not valid."""
        try:
            return self._fetched(numbers, undo_bytes)
        except _ChunkError:
            return self._fetched(numbers, undo_bytes)

    def _fetched(self, numbers: Sequence[int], undo_bytes: int) -> list[bytes]:
        begin, end = self._positions[numbers[0]], self._positions[numbers[-1] + 1]
        spans = [(number, self._positions[number] - begin, self._positions[number + 1] - begin) for number in numbers]
        with CHUNKS.room_for_stored(end - begin) as data:
            self._object.read_into(data, begin)
            return CHUNKS.undo(
                lambda undo: [self._undone(number, data[low:high], undo) for number, low, high in spans],
                undo_bytes,
                self.chunks.size if self.chunks.is_compressed else 0,
            )

    def _plain_size(self, number: int) -> int:
        return min(self.chunks.size, self.chunks.file_size - number * self.chunks.size)

    def _undone(self, number: int, data: memoryview, undo: Decompressor) -> bytes:
        """Return a decoded chunk."""
        where = f"{self._path}: chunk {number} at byte {self._positions[number]}"
        plain: bytes | memoryview = data
        if self.chunks.data_key is not None:
            plain = _decrypted(where, self.chunks, data, number)
        expected = self._plain_size(number)
        if self.chunks.is_compressed:
            try:
                undo.decompress(plain, ZSTD, MAGIC)
            except DecompressionError as error:
                raise _ChunkError(f"{where}: expected a zstd frame of {expected} bytes, found: {error}") from error
            plain = undo.plain_bytes()
        if len(plain) != expected:
            raise _ChunkError(f"{where}: expected {expected} bytes, found {len(plain)}")
        return plain if isinstance(plain, bytes) else bytes(plain)


def _decrypted(where: str, chunks: Chunks, data: memoryview, number: int) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    assert chunks.data_key is not None
    if len(data) < NONCE_BYTES + TAG_BYTES:
        raise _ChunkError(f"{where}: expected {NONCE_BYTES + TAG_BYTES} bytes or more of AES-GCM, found {len(data)}")
    try:
        return AESGCM(chunks.data_key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], chunks.aad_of(number))
    except InvalidTag:
        raise _ChunkError(
            f"{where}: expected a matching tag of AES-GCM, found another: the chunk was changed"
        ) from None
