"""``.index`` and ``.timeindex`` of a segment, from its batch headers, by the rule of Kafka's ``LogSegment``.

A batch gets an entry when more than ``interval_bytes`` of batches lie between it and the batch of the last entry. The
time index gets one at the same points, and one when the segment is closed, if the largest timestamp has grown.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import LOG_OVERHEAD
from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.layout.index_files import ENTRY_TYPES, Entries

INDEX_INTERVAL_BYTES = 4096  # Kafka's default of index.interval.bytes
LARGEST_RELATIVE_OFFSET = 2**31 - 1


class IndexBuilder:
    """Index files of one segment; batches are added piece by piece, in the order of the file.

    Parameters
    ----------
    base_offset : int
        Base offset of the segment.
    interval_bytes : int
        Kafka's ``index.interval.bytes``.

    Examples
    --------
    >>> from kraftlog.disk.disk import disk
    >>> from kraftlog.codec.header_scan import HeaderScan
    >>> from pathlib import Path
    >>> segment = Path("tests/golden/codecs/log/codec-lz4-0/00000000000000000341.log")
    >>> builder = IndexBuilder(341, 2048)
    >>> for headers in HeaderScan(disk().open(segment)).headers():
    ...     builder.add(headers)
    >>> builder.index() == segment.with_suffix(".index").read_bytes()
    True
    """

    def __init__(self, base_offset: int, interval_bytes: int = INDEX_INTERVAL_BYTES) -> None:
        self.base_offset = base_offset
        self.interval_bytes = interval_bytes
        self._since_entry = 0  # bytes of batches
        self._last_indexed_offset = -1  # relative
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        self._last_indexed_timestamp = NO_TIMESTAMP
        self._index: list[Entries] = []
        self._timeindex: list[Entries] = []

    @classmethod
    def resumed(
        cls, base_offset: int, interval_bytes: int, index: Entries, timeindex: Entries, since_entry: int
    ) -> IndexBuilder:
        """Return a builder that continues the index files of a closed segment.

        Parameters
        ----------
        base_offset, interval_bytes : int
        index, timeindex : structured array of ENTRY_TYPES
            All entries of both files.
        since_entry : int
            Bytes of batches from the batch of the last entry of ``index`` on.
        """
        builder = cls(base_offset, interval_bytes)
        builder._since_entry = since_entry
        if len(index):
            builder._index.append(index)
            builder._last_indexed_offset = int(index["offset"][-1])
        if len(timeindex):
            builder._max_timestamp = int(timeindex["timestamp"][-1])
            builder._offset_of_max_timestamp = base_offset + int(timeindex["offset"][-1])
            if timeindex["offset"][-1] > builder._last_indexed_offset:  # closing has added it
                timeindex = timeindex[:-1]
        if len(timeindex):
            builder._timeindex.append(timeindex)
            builder._last_indexed_timestamp = int(timeindex["timestamp"][-1])
        return builder

    def add(self, headers: Headers) -> None:
        """Add the next batches of the segment.

        Parameters
        ----------
        headers : structured array of HEADER_DTYPE
            Headers of sound batches, in the order of the file.

        Raises
        ------
        ValueError
            When the index cannot represent an offset: it is too far from the base offset for four bytes, or not greater
            than the previous entry. The builder is unusable then.
        """
        if not len(headers):
            return
        last = last_offsets(headers)
        relative = last - self.base_offset
        if relative.min() < 0 or relative.max() > LARGEST_RELATIVE_OFFSET:
            at = int(np.argmax((relative < 0) | (relative > LARGEST_RELATIVE_OFFSET)))
            raise ValueError(
                f"batch at byte {headers['position'][at]}: last offset {last[at]} is not between the segment's "
                f"base offset {self.base_offset} and {self.base_offset + LARGEST_RELATIVE_OFFSET}"
            )
        chosen = self._chosen(headers["batch_length"].astype(np.int64) + LOG_OVERHEAD)
        largest, holder = self._largest_timestamps(headers["max_timestamp"], last)
        if len(chosen):  # as rarely as every 4 KiB
            self._add_offsets(relative[chosen], headers["position"][chosen])
            self._add_times(largest[chosen], holder[chosen])

    def _chosen(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return which batches get an entry."""
        ends = self._since_entry + np.cumsum(sizes)
        starts = ends - sizes
        following = np.searchsorted(starts, starts + self.interval_bytes, side="right").tolist()
        chosen = []
        at = int(np.searchsorted(starts, self.interval_bytes, side="right"))
        while at < len(sizes):
            chosen.append(at)
            at = following[at]
        self._since_entry = int(ends[-1] - (starts[chosen[-1]] if chosen else 0))
        return np.array(chosen, np.int64)

    def _add_offsets(self, relative: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]) -> None:
        before = np.concatenate(([self._last_indexed_offset], relative[:-1]))
        for at in np.flatnonzero(relative <= before)[:1]:
            raise ValueError(
                f"batch at byte {positions[at]}: last offset {relative[at] + self.base_offset} is not larger than "
                f"{before[at] + self.base_offset}, that of the index entry before"
            )
        if len(relative):
            self._index.append(_entries("index", offset=relative, position=positions))
            self._last_indexed_offset = int(relative[-1])

    def _largest_timestamps(
        self, timestamps: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the largest timestamp up to each batch, and the last offset of the first batch that has it."""
        largest = np.maximum.accumulate(np.concatenate(([self._max_timestamp], timestamps)))
        grows = np.concatenate(([0], np.where(largest[1:] > largest[:-1], np.arange(1, len(largest)), 0)))
        holder = np.concatenate(([self._offset_of_max_timestamp], last))[np.maximum.accumulate(grows)]
        self._max_timestamp, self._offset_of_max_timestamp = int(largest[-1]), int(holder[-1])
        return largest[1:], holder[1:]

    def _add_times(self, largest: npt.NDArray[np.int64], holder: npt.NDArray[np.int64]) -> None:
        before = np.concatenate(([self._last_indexed_timestamp], largest[:-1]))
        new = largest > before
        if new.any():
            self._timeindex.append(_entries("timeindex", timestamp=largest[new], offset=holder[new] - self.base_offset))
            self._last_indexed_timestamp = int(largest[-1])

    def position_before(self, offset: int) -> int:
        """Return the byte position of the last indexed batch up to an offset; 0 without one."""
        relative = offset - self.base_offset
        at = bisect_right(self._index, relative, key=lambda entries: int(entries["offset"][0])) - 1
        if at < 0:
            return 0
        entries = self._index[at]
        return int(entries["position"][np.searchsorted(entries["offset"], relative, side="right") - 1])

    def index(self) -> bytes:
        """Return the ``.index`` file of the batches so far."""
        return b"".join(entries.tobytes() for entries in self._index)

    def timeindex(self) -> bytes:
        """Return the ``.timeindex`` file of a segment that is closed after the batches so far."""
        entries = list(self._timeindex)
        if self._max_timestamp > self._last_indexed_timestamp:
            offset = self._offset_of_max_timestamp - self.base_offset
            entries.append(_entries("timeindex", timestamp=self._max_timestamp, offset=offset))
        return b"".join(each.tobytes() for each in entries)


def _entries(kind: str, **columns: npt.NDArray[np.int64] | int) -> Entries:
    """Return columns as the entries of an index file."""
    values = [np.atleast_1d(column) for column in columns.values()]
    entries = np.empty(len(values[0]), ENTRY_TYPES[kind])
    for name, column in zip(columns, values, strict=True):
        entries[name] = column
    return entries
