"""Entries of ``.index`` and ``.timeindex`` against the batches of their segment.

An entry of the index is made for an append, which may be of several batches (messages of formats 0 and 1, output of the
log cleaner): it has the largest offset of the append and the position of its first batch. So a batch starts at the
position, and the batch with the offset is there or after it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import COMPRESSION_MASK
from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.errors import Fault
from kraftlog.layout.index_files import IndexColumns
from kraftlog.layout.segment import Segment

_Integers = npt.NDArray[np.int64]
_NO_ENTRIES = dict.fromkeys(("offset", "position", "timestamp"), np.empty(0, np.int64))


class IndexCheck:
    """Compares the index files of one segment with its headers, in one pass over both.

    Parameters
    ----------
    segment : Segment
    files : dict
        Columns of its index files by kind; missing files are not compared.
    """

    def __init__(self, segment: Segment, files: dict[str, IndexColumns]) -> None:
        self._segment = segment
        offsets, times = files.get("index", _NO_ENTRIES), files.get("timeindex", _NO_ENTRIES)
        self._offsets = _OffsetEntries(offsets["offset"], offsets["position"])
        self._times = _TimeEntries(times["offset"], times["timestamp"])

    def add(self, headers: Headers, skipped: list[int]) -> Iterator[Fault]:
        """Process the next headers.

        Parameters
        ----------
        headers : structured array of HEADER_DTYPE
        skipped : list of int
            Positions of unreadable batches before the end of these headers.
        """
        return self._faults(self._offsets.add(headers, skipped), self._times.add(headers))

    def finish(self, skipped: list[int]) -> Iterator[Fault]:
        """Return the entries that no batch of the segment matches."""
        return self._faults(self._offsets.finish(skipped), self._times.finish())

    def _faults(self, offsets: Iterator[tuple[int, str]], times: Iterator[tuple[int, str]]) -> Iterator[Fault]:
        for kind, odd in (("index", offsets), ("timeindex", times)):
            for entry, what in odd:
                name = self._segment.beside[kind].name
                yield Fault("index_mismatch", f"{name}: entry {entry}: {what}")


class _OffsetEntries:
    def __init__(self, offsets: _Integers, positions: _Integers) -> None:
        self._offsets, self._positions = offsets, positions
        self._next = 0  # entry
        self._reached = -1  # the largest offset so far
        self._ahead: list[int] = []  # entries whose batch has not occurred yet
        self._skipped: set[int] = set()

    def add(self, headers: Headers, skipped: list[int]) -> Iterator[tuple[int, str]]:
        positions, last = headers["position"], last_offsets(headers)
        reached = np.maximum.accumulate(last)
        # the header of compressed messages of formats 0 and 1 has the last offset; before 2.0 Kafka indexed the first
        is_wrapper = (headers["magic"] < 2) & (headers["attributes"] & COMPRESSION_MASK != 0)
        base = np.where(is_wrapper, np.concatenate(([self._reached], reached[:-1])) + 1, headers["base_offset"])
        self._reached = int(reached[-1])
        self._skipped.update(skipped)
        for entry in self._ahead:
            yield from self._found(entry, int(np.searchsorted(reached, self._offsets[entry])), base)
        self._ahead = [entry for entry in self._ahead if self._offsets[entry] > reached[-1]]
        stop = self._next + int(np.searchsorted(self._positions[self._next :], positions[-1], side="right"))
        entries = np.arange(self._next, stop)
        entry_positions, at = self._positions[entries], np.searchsorted(positions, self._positions[entries])
        at = at.clip(max=len(positions) - 1)
        is_batch = positions[at] == entry_positions
        is_here = is_batch & (base[at] <= self._offsets[entries]) & (self._offsets[entries] <= last[at])
        for entry in entries[~is_here].tolist():
            index = int(at[entry - self._next])
            if not is_batch[entry - self._next]:
                yield from self._no_batch(entry)
            elif self._offsets[entry] < base[index]:
                what = f"the batch there holds {base[index]} to {last[index]}"
                yield entry, f"{self._named(entry)}, but {what}"
            elif self._offsets[entry] > reached[-1]:
                self._ahead.append(entry)
            else:
                yield from self._found(entry, max(index, int(np.searchsorted(reached, self._offsets[entry]))), base)
        self._next = stop

    def _found(self, entry: int, at: int, base: _Integers) -> Iterator[tuple[int, str]]:
        """Return a fault unless the first batch that ends at or after an entry's offset contains it."""
        if at < len(base) and base[at] > self._offsets[entry] and not self._skipped:
            yield entry, f"{self._named(entry)}, but no batch from there on holds it"

    def finish(self, skipped: list[int]) -> Iterator[tuple[int, str]]:
        self._skipped.update(skipped)
        for entry in self._ahead:
            if not self._skipped:
                yield entry, f"{self._named(entry)}, but no batch from there on holds it"
        for entry in range(self._next, len(self._offsets)):
            yield from self._no_batch(entry)

    def _no_batch(self, entry: int) -> Iterator[tuple[int, str]]:
        if int(self._positions[entry]) not in self._skipped:
            yield entry, f"{self._named(entry)}, but no batch starts there"

    def _named(self, entry: int) -> str:
        return f"offset {self._offsets[entry]} at byte {self._positions[entry]}"


class _TimeEntries:
    """Checks that no batch up to an entry's offset is later than its timestamp."""

    def __init__(self, offsets: _Integers, timestamps: _Integers) -> None:
        self._offsets, self._timestamps = offsets, timestamps
        self._next = 0
        self._largest = np.iinfo(np.int64).min  # timestamp of the batches so far

    def add(self, headers: Headers) -> Iterator[tuple[int, str]]:
        reached = np.maximum.accumulate(last_offsets(headers))
        largest = np.maximum.accumulate(np.concatenate(([self._largest], headers["max_timestamp"])))
        stop = self._next + int(np.searchsorted(self._offsets[self._next :], reached[-1], side="right"))
        entries = np.arange(self._next, stop)
        before = largest[np.searchsorted(reached, self._offsets[entries])]
        for entry in entries[before > self._timestamps[entries]].tolist():
            stamp, offset = self._timestamps[entry], self._offsets[entry]
            what = f"but the log holds {before[entry - self._next]} before it"
            yield entry, f"timestamp {stamp} up to offset {offset}, {what}"
        self._next, self._largest = stop, int(largest[-1])

    def finish(self) -> Iterator[tuple[int, str]]:
        for entry in range(self._next, len(self._offsets)):
            if self._timestamps[entry] != NO_TIMESTAMP:
                yield entry, f"offset {self._offsets[entry]} is after the end of the log"
