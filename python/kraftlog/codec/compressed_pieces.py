"""Compressed batches of large data, produced in pieces: uncompressed data stays in the caches."""

from __future__ import annotations

import pyarrow as pa

from kraftlog._native.memory import Arena

PIECE_BYTES = 4 << 20  # of rows that are encoded before they are compressed


class Joined:
    """Consecutive buffers in a block of the pool. Unused space takes no memory."""

    def __init__(self, size: int) -> None:
        self._block = memoryview(Arena(size))
        self._used = 0

    def append(self, part: pa.Buffer) -> None:
        """Append a copy of a buffer."""
        end = self._used + part.size
        if end > self._block.nbytes:
            larger = memoryview(Arena(max(end, 2 * self._block.nbytes)))
            larger[: self._used] = self._block[: self._used]
            self._block = larger
        self._block[self._used : end] = memoryview(part).cast("B")
        self._used = end

    def all(self) -> pa.Buffer:
        """Return all buffers as one."""
        return pa.py_buffer(self._block[: self._used])
