"""``SpilledRows``: rows in buckets, of which few are in memory and the others in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

ROWS_IN_MEMORY = 1 << 18

Rows = npt.NDArray[np.void]


class SpilledRows:
    """Rows of a NumPy type, in buckets; those of a bucket keep their order.

    Up to ``ROWS_IN_MEMORY`` rows are kept in memory. More are written to a temporary file without a name, in the folder
    of ``TMPDIR``, which the system deletes with this object.

    Parameters
    ----------
    dtype : numpy.dtype
    buckets_count : int

    Examples
    --------
    >>> import numpy as np
    >>> from kraftlog.disk.spilled_rows import SpilledRows
    >>> spilled = SpilledRows(np.dtype([("offset", "i8")]), 2)
    >>> spilled.add(np.array([(5,), (6,), (7,)], [("offset", "i8")]), np.array([0, 1, 0]))
    >>> [rows["offset"].tolist() for rows in spilled.pieces(0)]
    [[5, 7]]
    """

    def __init__(self, dtype: np.dtype[Any], buckets_count: int) -> None:
        self.buckets_count = buckets_count
        self._dtype = dtype
        self._waiting: list[tuple[Rows, npt.NDArray[np.int64]]] = []
        self._waiting_count = 0
        self._file: IO[bytes] | None = None
        self._extents: list[npt.NDArray[np.int64]] = []  # of each spill: where each bucket begins, and the end

    def add(self, rows: Rows, buckets: npt.NDArray[np.int64]) -> None:
        """Add rows, each to the bucket of this number."""
        self._waiting.append((rows, buckets))
        self._waiting_count += len(rows)
        if self._waiting_count >= ROWS_IN_MEMORY:
            self._spill()

    def pieces(self, bucket: int) -> Iterator[Rows]:
        """Return the rows of a bucket, in order, about ``ROWS_IN_MEMORY`` at a time."""
        some, count = list[Rows](), 0
        for rows in self._spills(bucket):
            some.append(rows)
            count += len(rows)
            if count >= ROWS_IN_MEMORY:
                yield np.concatenate(some)
                some, count = [], 0
        if some:
            yield np.concatenate(some)

    def _spills(self, bucket: int) -> Iterator[Rows]:
        """Return the rows of a bucket as they were written, and those that are in memory."""
        for starts in self._extents:
            assert self._file is not None
            start, end = (int(at) * self._dtype.itemsize for at in starts[bucket : bucket + 2])
            self._file.seek(start)
            if end > start:
                yield np.frombuffer(self._file.read(end - start), self._dtype)
        for rows, buckets in self._waiting:
            chosen = rows[buckets == bucket]
            if len(chosen):
                yield chosen

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed with this object)
        rows, buckets = (np.concatenate(each) for each in zip(*self._waiting, strict=True))
        order = np.argsort(buckets, kind="stable")
        first = int(self._extents[-1][-1]) if self._extents else 0
        self._extents.append(first + np.searchsorted(buckets[order], np.arange(self.buckets_count + 1)))
        self._file.seek(first * self._dtype.itemsize)
        self._file.write(rows.take(order).data)  # of rows much faster than an index
        self._file.flush()
        self._waiting, self._waiting_count = [], 0
