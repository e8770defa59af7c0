"""Pieces of an object that a reader needs in order, fetched ahead of it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from kraftlog.disk import chunk_cache
from kraftlog.disk.chunk_cache import AHEAD_BYTES, Group


class PiecesAhead:
    """Bytes of an object that are read once and in order, in pieces of one request each.

    The chunk cache bounds the bytes of all readers together. When all pieces are in transit, those of the object that
    is read next are requested, so that the requests of a pass do not pause between objects.

    Parameters
    ----------
    fetch : callable
        Fills a buffer with the bytes from a position on; threads call it. Its exception is raised when the piece is
        read.
    start, end : int
        The bytes to read.
    piece_bytes : int
        Bytes of a request; the last piece may be slightly longer.
    readers : int
        Number of readers at the same time that share the memory.

    Attributes
    ----------
    following : PiecesAhead or None
        The object that is read next.
    """

    def __init__(
        self, fetch: Callable[[memoryview, int], None], start: int, end: int, piece_bytes: int, readers: int = 1
    ) -> None:
        self.following: PiecesAhead | None = None
        self._fetch = fetch
        self._piece_bytes = piece_bytes
        self._bounds = [*range(start, max(end - piece_bytes // 16, start + 1), piece_bytes), max(end, start)]
        self._most = max(1, AHEAD_BYTES // (piece_bytes * readers))
        self._next = self._begun = 0  # the number of the next piece to read, and to request
        self._held: tuple[int, bytes | bytearray] = -1, b""
        self._is_closed = False
        self._changing = Lock()
        self._chunks = chunk_cache.CHUNKS
        self._chunks.open_reader()

    def go_ahead(self) -> None:
        """Request as many pieces as there is room for, then those of the following objects."""
        pieces: PiecesAhead | None = self
        while pieces is not None and pieces._request():
            pieces = pieces.following

    def _request(self) -> bool:
        """Return whether all pieces are requested."""
        with self._changing:
            last = len(self._bounds) - 1
            while not self._is_closed and self._begun < min(last, self._next + self._most):
                if not self._chunks.fetch(self._group(self._begun), is_ahead=True):
                    return False
                self._begun += 1
            return self._is_closed or self._begun == last

    def read_into(self, target: memoryview, start: int) -> int:
        """Fill a buffer with the bytes from ``start`` on; return how many are among the pieces that are not used up."""
        done = 0
        while done < len(target):
            position = start + done
            number = (position - self._bounds[0]) // self._piece_bytes
            number = min(number, len(self._bounds) - 2)
            if not self._bounds[0] <= position < self._bounds[-1] or number < self._held[0]:
                break
            piece, begin = self._piece(number), position - self._bounds[number]
            part = memoryview(piece)[
                begin : min(begin + len(target) - done, self._bounds[number + 1] - self._bounds[number])
            ]
            target[done : done + len(part)] = part
            done += len(part)
        return done

    def _piece(self, number: int) -> bytes | bytearray:
        if number != self._held[0]:
            self._drop_held()
            self._pass_to(number)
            chunk = self._chunks.take(self._group(number))
            try:
                self.go_ahead()
                self._held = number, chunk.data()
            finally:
                self._chunks.release(chunk, is_done=True)
        return self._held[1]

    def _drop_held(self) -> None:
        used, self._held = self._held[1], (-1, b"")
        if isinstance(used, bytearray) and used:
            self._chunks.keep_buffer(used)

    def _pass_to(self, number: int) -> None:
        """Drop pieces before one that is read."""
        with self._changing:
            for skipped in range(self._next, min(number, self._begun)):
                self._chunks.drop((self, skipped))
            self._next = number + 1
            self._begun = max(self._begun, self._next)

    def _group(self, number: int) -> Group:
        """Return a piece as one request; it has memory for a usual piece, unless it is short."""
        start, end = self._bounds[number], self._bounds[number + 1]
        size = end - start if 2 * (end - start) < self._piece_bytes else max(end - start, self._piece_bytes)

        def fetch() -> list[bytearray]:
            buffer = self._chunks.new_buffer(size)
            self._fetch(memoryview(buffer)[: end - start], start)
            return [buffer]

        return Group([(self, number)], [size], size, 0, fetch)

    def close(self) -> None:
        """Drop what was requested and not read."""
        with self._changing:
            if self._is_closed:
                return
            self._is_closed = True
            for number in range(self._next, self._begun):
                self._chunks.drop((self, number))
        self.following = None
        self._drop_held()
        self._chunks.close_reader()
