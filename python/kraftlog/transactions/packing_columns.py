"""The packing plan by whole columns in NumPy, used without Numba.

A record takes more bytes at a later place in a batch, since the varint of its offset delta grows. So there is one
column of running sums for each length of that varint. For all records at once, the end of a batch that begins with the
record and has deltas of one byte is looked up; a longer batch is continued from there.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog.codec.batch_encoder import MOST_RECORDS

FRAME = 5
"""Bytes of attributes, timestamp delta, offset delta of one byte, null key, number of headers."""
_LONGER = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
"""Numbers from which on a varint takes one more byte."""


def plan(
    sizes: npt.NDArray[np.int64] | npt.NDArray[np.int32],
    max_batch_bytes: int,
    max_batch_records: int,
    counts: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Fill ``counts``; return the number of batches, and the first record that fits no batch (-1: all do)."""
    room = max_batch_bytes - RECORD_BATCH_OVERHEAD
    records = _Records(sizes, max_batch_bytes)
    ends = records.ends_of_short_batches(room, max_batch_records)
    batches = start = 0
    while start < len(sizes):
        end = ends[start]
        if end == start:
            return batches, start
        if end - start == _LONGER[0] < max_batch_records:
            end = records.end_of_long_batch(start, room, max_batch_records)
        counts[batches] = end - start
        batches += 1
        start = end
    return batches, -1


class _Records:
    """Running sums of the bytes before each record, by the length of their offset deltas."""

    def __init__(self, sizes: npt.NDArray[np.int64] | npt.NDArray[np.int32], max_batch_bytes: int) -> None:
        # a size less than -1 or too large fits no batch
        self._sizes = np.where(sizes < -1, max_batch_bytes, np.clip(sizes, 0, max_batch_bytes))
        self._sums: list[memoryview] = []

    def ends_of_short_batches(self, room: int, max_batch_records: int) -> memoryview:
        """Return the ends of batches that would begin with each record, with offset deltas of one byte."""
        sums = np.asarray(self._sums_with(0))
        most = min(_LONGER[0], max_batch_records)
        ends = np.searchsorted(sums, sums[:-1] + room, side="right")
        ends -= 1
        np.minimum(ends, np.arange(most, most + len(ends)), out=ends)
        return ends.data

    def end_of_long_batch(self, start: int, room: int, max_batch_records: int) -> int:
        """Return the end of the batch that begins with a record and has offset deltas of two bytes or more."""
        sums = self._sums_with(0)
        end = start + _LONGER[0]
        room -= sums[end] - sums[start]
        for more, bound in enumerate((*_LONGER[1:], MOST_RECORDS), start=1):
            sums = self._sums_with(more)
            least = FRAME + more + 2  # bytes of a record without a value
            limit = min(len(self._sizes), start + min(bound, max_batch_records), end + room // least)
            begin, end = end, bisect_right(sums, sums[end] + room, end, limit + 1) - 1
            room -= sums[end] - sums[begin]
            if end < start + bound:
                break
        return end

    def _sums_with(self, more: int) -> memoryview:
        while len(self._sums) <= more:
            sums = np.zeros(len(self._sizes) + 1, np.int64)
            np.cumsum(self._taken(len(self._sums)), out=sums[1:])
            self._sums.append(sums.data)
        return self._sums[more]

    def _taken(self, more: int) -> npt.NDArray[np.int64]:
        largest = int(self._sizes.max(initial=0))
        if largest >= len(self._sizes):
            return record_sizes(self._sizes.astype(np.int64, copy=False), more)
        return record_sizes(np.arange(largest + 1), more)[self._sizes]  # with fewer, count the bytes


def record_sizes(sizes: npt.NDArray[np.int64], more: int) -> npt.NDArray[np.int64]:
    """Return the bytes of records by the sizes of their values; their offset deltas take 1 + ``more`` bytes."""
    body = FRAME + more + _varint_sizes(sizes) + sizes
    return body + _varint_sizes(body)


def _varint_sizes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    varint_sizes = np.ones(len(values), np.int64)
    for bound in _LONGER:
        varint_sizes += values >= bound
    return varint_sizes
