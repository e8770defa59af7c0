"""Compaction of closed segments by the rules of Kafka's ``LogCleaner``: the last record of each key stays.

Also kept are: tombstones and markers of transactions without data, until the delete horizon that the first cleaning
writes to their batches; the last batch of each active producer, without records, for its sequence and epoch; the last
batch of the cleaned segments, for its offset; and all offsets. Records of aborted transactions are dropped.

Last offsets of keys are in a map of bounded size, as Kafka's ``OffsetMap``. Where that is full, Kafka's cleaner stops,
and rewrites the log once for each map. Here a bit is set for each record that a full map supersedes, and the next map
is filled: the result does not depend on the size of the map, and each segment is written once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.scanner import CONTROL_BIT, DELETE_HORIZON_BIT
from kraftlog.codec.compression import decompressor
from kraftlog.codec.decode import decode
from kraftlog.codec.filtered_batch import empty_batch, filtered_batch
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.disk import ReadableFile, disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.build_index import LARGEST_RELATIVE_OFFSET
from kraftlog.layout.segment import Segment
from kraftlog.transactions.producer_state import NONE, ProducerState
from kraftlog.write.cleaned_transactions import CleanedTransactions, aborted_transactions
from kraftlog.write.offset_map import OffsetMap

_HEADERS_AT_ONCE = 1 << 10
_WINDOW_BYTES = 1 << 20  # bytes of batches that are decoded at once, or one batch
_DEDUPE_BUFFER_SIZE = 128 << 20

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CleanOptions:
    """Options of the log cleaner.

    Attributes
    ----------
    now : int
        In milliseconds.
    delete_retention_ms : int
        How long tombstones and markers stay after the first cleaning that could drop them.
    segment_bytes : int
        Size up to which neighbouring segments are merged.
    dirty_offset : int
        Before this offset an earlier cleaning has left one record of each key.
    dedupe_buffer_size : int
        Bytes of the map of last offsets, Kafka's ``log.cleaner.dedupe.buffer.size``. While it grows, it can take twice
        that. If the keys do not fit, the keys of the log are read again.
    """

    now: int
    delete_retention_ms: int
    segment_bytes: int
    dirty_offset: int = 0
    dedupe_buffer_size: int = _DEDUPE_BUFFER_SIZE


class LogCleaner:
    """Cleans the closed segments of one partition.

    Parameters
    ----------
    segments : sequence of Segment
        From the first segment on, in order; closed, with only stable records.
    following : sequence of Segment
        The rest of the log, with the markers of these segments' transactions.
    producers : iterable of ProducerState
        The active producers at the end of the log.
    options : CleanOptions
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        following: Sequence[Segment],
        producers: Iterable[ProducerState],
        options: CleanOptions,
    ) -> None:
        self._segments = list(segments)
        self._producers = {state.producer_id: state for state in producers}
        self._last_of_producers = np.array([state.last_offset for state in self._producers.values()], np.int64)
        self._options = options
        self._decompressor = decompressor()
        self._aborted = aborted_transactions([*segments, *following]) if segments else []
        self._transactions = self._transactions_from(self._segments)
        self._end = following[0].base_offset if following else None
        self._superseded = _Superseded()
        self._map, self._latest = self._last_offsets()

    def groups(self) -> Iterator[list[Segment]]:
        """Return groups of segments to merge, by their sizes before cleaning."""
        group: list[Segment] = []
        for segment in self._segments:
            size = sum(each.size for each in group) + segment.size
            span = (segment.base_offset or 0) - ((group[0].base_offset or 0) if group else 0)
            if group and (size > self._options.segment_bytes or span >= LARGEST_RELATIVE_OFFSET // 2):
                yield group
                group = []
            group.append(segment)
        if group:
            yield group

    def cleaned(self, group: list[Segment]) -> Iterator[bytes]:
        """Return the records of segments that stay; groups are taken in order."""
        for segment in group:
            for window in _windows(segment, check_crc=True):
                yield from self._filtered(window)

    def _last_offsets(self) -> tuple[OffsetMap, int]:
        """Return the last offset of each key that no aborted transaction wrote, and the last one of all.

        Keys that did not fit into this map were in earlier ones, and the records that those supersede are noted.
        """
        offset_map, latest, dirty = self._new_map(), NONE, self._dirty()
        transactions = self._transactions_from(dirty)
        for segment in dirty:
            for window in _windows(segment):
                keys, offsets = window.keys()
                is_mapped = ~np.repeat(transactions.drops(window.headers), window.counts)
                taken = 0
                while (taken := offset_map.put(keys, offsets, is_mapped, taken)) < len(offsets):
                    self._superseded.add(offset_map, self._segments, int(offsets[taken]))
                    offset_map = self._new_map()
                latest = int(last_offsets(window.headers)[-1])
        return offset_map, latest

    def _new_map(self) -> OffsetMap:
        return OffsetMap(self._options.dedupe_buffer_size)

    def _transactions_from(self, segments: Sequence[Segment]) -> CleanedTransactions:
        return CleanedTransactions(self._aborted, (segments[0].base_offset or 0) if segments else 0)

    def _dirty(self) -> list[Segment]:
        ends_at: list[int | None] = [segment.base_offset for segment in self._segments[1:]]
        closed = zip(self._segments, [*ends_at, None], strict=False)
        return [segment for segment, end in closed if end is None or end > self._options.dirty_offset]

    def _filtered(self, window: _Window) -> Iterator[bytes]:
        """Return the records of some batches that stay."""
        headers, now = window.headers, self._options.now
        may_go = self._transactions.drops(headers)
        is_control = window.is_control
        has_horizon = headers["attributes"] & DELETE_HORIZON_BIT != 0
        is_over = has_horizon & (headers["base_timestamp"] <= now)
        keeps, tombstones = self._kept(window, may_go, is_over)
        records_count, kept_tombstones = window.sums(keeps), window.sums(keeps & tombstones)
        records = headers["records_count"]
        records_count[is_control] = np.where(may_go & is_over, 0, records)[is_control]
        begins_horizon = ~has_horizon & ((kept_tombstones > 0) | (is_control & may_go & (records_count > 0)))
        stays = (records_count > 0) | self._are_last(headers)
        is_copied = stays & (records_count == records) & ~begins_horizon
        for is_run, first, end in _runs(is_copied):
            if is_run:
                yield window.data[window.starts[first] : window.stops[end - 1]]
                continue
            for at in (np.flatnonzero(stays[first:end]) + first).tolist():
                batch = window.data[window.starts[at] : window.stops[at]]
                if not records_count[at]:
                    yield empty_batch(batch)
                    continue
                horizon = int(headers["base_timestamp"][at]) if has_horizon[at] else None
                if begins_horizon[at]:
                    horizon = now + self._options.delete_retention_ms
                of_batch = np.ones(records[at], bool) if is_control[at] else keeps[window.rows_of(at)]
                yield filtered_batch(batch, of_batch, horizon, self._decompressor)

    def _kept(self, window: _Window, may_go: _Flags, is_over: _Flags) -> tuple[_Flags, _Flags]:
        """Return which data records stay, and which of all records are tombstones."""
        keys, offsets, is_tombstone = window.rows()
        superseded = self._map.superseded(keys, offsets)
        self._superseded.apply(window, superseded)
        keeps = keys.is_valid().to_numpy(zero_copy_only=False) & ~superseded
        keeps &= ~(is_tombstone & np.repeat(is_over, window.counts))
        keeps |= offsets > self._latest
        keeps &= ~np.repeat(may_go, window.counts)
        return keeps, is_tombstone

    def _are_last(self, headers: Headers) -> _Flags:
        """Return which batches end at the end of the cleaned segments, or are the last ones of their producers."""
        last, is_control = last_offsets(headers), headers["attributes"] & CONTROL_BIT != 0
        are_last = np.zeros(len(headers), bool) if self._end is None else last + 1 == self._end
        for at in np.flatnonzero(is_control | np.isin(last, self._last_of_producers)).tolist():
            are_last[at] |= self._is_last_of_producer(headers[at], int(last[at]))
        return are_last

    def _is_last_of_producer(self, header: np.void, last_offset: int) -> bool:
        state = self._producers.get(int(header["producer_id"]))
        if state is None:
            return False
        if state.last_offset != NONE:
            return last_offset == state.last_offset
        return bool(header["attributes"] & CONTROL_BIT) and int(header["producer_epoch"]) == state.producer_epoch


class _Superseded:
    """A bit for each record that a full map supersedes."""

    def __init__(self) -> None:
        self._packed: dict[tuple[LogPath, int], npt.NDArray[np.uint8]] = {}

    def add(self, full: OffsetMap, segments: Iterable[Segment], end_offset: int) -> None:
        """Note the records that a map supersedes before the offset at which it was full."""
        for segment in segments:
            if (segment.base_offset or 0) >= end_offset:
                return
            for window in _windows(segment):
                flags = full.superseded(*window.keys())
                self.apply(window, flags)
                if flags.any():
                    self._packed[window.place] = np.packbits(flags)

    def apply(self, window: _Window, flags: _Flags) -> None:
        """Add to flags of the records of a window those that were noted."""
        packed = self._packed.get(window.place)
        if packed is not None:
            flags |= np.unpackbits(packed, count=len(flags)).view(bool)


class _Window:
    """Some batches of a segment, which lie one behind the other.

    Attributes
    ----------
    place : tuple
        Its identity in another pass.
    headers, data : numpy.ndarray, bytes
    starts, stops : list of int
        Start and end of each batch in the data.
    is_control : numpy.ndarray
    counts : numpy.ndarray
        Number of data records in each batch.
    """

    def __init__(self, segment: Segment, headers: Headers, data: bytes) -> None:
        begin = int(headers["position"][0])
        self.place = (segment.path, begin)
        self.headers, self.data = headers, data
        self.starts: list[int] = (headers["position"] - begin).tolist()
        self.stops: list[int] = (ends(headers) - begin).tolist()
        self.is_control = headers["attributes"] & CONTROL_BIT != 0
        self.counts = np.where(self.is_control, 0, headers["records_count"])
        self._rows_until = np.cumsum(self.counts, dtype=np.int64)

    def keys(self) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
        """Decode keys and offsets of the data records."""
        keys, offsets = self._decoded("key", "offset")
        return keys, offsets.to_numpy()

    def rows(self) -> tuple[pa.BinaryArray, npt.NDArray[np.int64], _Flags]:
        """Return the same, and which records are tombstones."""
        keys, offsets, values = self._decoded("key", "offset", "value")
        return keys, offsets.to_numpy(), values.is_null().to_numpy(zero_copy_only=False)

    def _decoded(self, *columns: str) -> Iterator[pa.Array]:
        table = decode(self.data, columns=columns, strict=True, check_crc=False).to_table().combine_chunks()
        return (table[name].chunk(0) if len(table) else pa.array([], table[name].type) for name in columns)

    def rows_of(self, at: int) -> slice:
        """Return which rows are those of a batch."""
        return slice(int(self._rows_until[at] - self.counts[at]), int(self._rows_until[at]))

    def sums(self, flags: _Flags) -> npt.NDArray[np.int64]:
        """Count the flags of each batch's rows."""
        sums = np.concatenate(([0], np.cumsum(flags)))
        return np.asarray(sums[self._rows_until] - sums[self._rows_until - self.counts])


def largest_timestamp(segment: Segment) -> int:
    """Return the largest timestamp of a segment's records; -1 without records."""
    scan = HeaderScan(disk().open(segment.path))
    return max((int(headers["max_timestamp"].max()) for headers in scan.headers()), default=NONE)


def _windows(segment: Segment, *, check_crc: bool = False) -> Iterator[_Window]:
    """Return the batches of a segment, some at a time; before they are written they are checked again.

    Raises
    ------
    RecordError
        When the segment is damaged: none of it is dropped then.
    """
    file = disk().open(segment.path)
    try:
        scan = HeaderScan(file, check_crc=check_crc)
        for headers in scan.headers(_HEADERS_AT_ONCE, strict=True):
            if (headers["magic"] < 2).any():
                raise ValueError(f"{segment.name}: expected record batches, found messages of magic 0 or 1")
            yield from _cut(segment, file, headers)
        if scan.torn_at >= 0:
            raise CorruptRecordError(
                f"{segment.name}: {segment.size - scan.torn_at} bytes at its end are a truncated batch"
            )
    finally:
        file.close()


def _cut(segment: Segment, file: ReadableFile, headers: Headers) -> Iterator[_Window]:
    starts, stops = headers["position"], ends(headers)
    begin = 0
    while begin < len(headers):
        fits = int(np.searchsorted(stops, starts[begin] + _WINDOW_BYTES, "right"))
        end = max(fits, begin + 1)
        data = bytes(file.read(int(starts[begin]), int(stops[end - 1])))
        yield _Window(segment, headers[begin:end], data)
        begin = end


def _runs(flags: _Flags) -> Iterator[tuple[bool, int, int]]:
    """Return the runs of equal flags: the flag, the first index and the one after the last."""
    edges = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(flags)]
    for first, end in pairwise(edges):
        yield bool(flags[first]), first, end
