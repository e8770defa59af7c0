"""Compaction of closed segments by the rules of Kafka's ``LogCleaner``: the last record of each key stays.

What stays besides: tombstones and markers of transactions whose data are gone, until the delete horizon that the first
cleaning writes to their batches; the last batch of each active producer, without records, for its sequence and epoch;
the last batch of what is cleaned, for its offset; and offsets as they are. Records of aborted transactions go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kraftlog._native.scanner import CONTROL_BIT, DELETE_HORIZON_BIT
from kraftlog.codec.compression import decompressor
from kraftlog.codec.decode import decode
from kraftlog.codec.filtered_batch import empty_batch, filtered_batch
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.build_index import LARGEST_RELATIVE_OFFSET
from kraftlog.layout.segment import Segment
from kraftlog.transactions.producer_state import NONE, ProducerState
from kraftlog.write.cleaned_transactions import CleanedTransactions, aborted_transactions

_BATCHES_AT_ONCE = 64


@dataclass(frozen=True)
class CleanOptions:
    """How a log is cleaned.

    Attributes
    ----------
    now : int
        In milliseconds.
    delete_retention_ms : int
        How long tombstones and markers stay behind the first cleaning that could drop them.
    segment_bytes : int
        Up to which neighbouring segments are put together.
    dirty_offset : int
        Before which an earlier cleaning has left one record of each key.
    """

    now: int
    delete_retention_ms: int
    segment_bytes: int
    dirty_offset: int = 0


class LogCleaner:
    """Cleans the closed segments of one partition.

    Parameters
    ----------
    segments : sequence of Segment
        From the first one on, in order; none of them is written to, and all that they hold is stable.
    following : sequence of Segment
        The rest of the log, which ends transactions of these segments.
    producers : iterable of ProducerState
        Those that are active, at the end of the log.
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
        self._options = options
        self._decompressor = decompressor()
        self._aborted = aborted_transactions([*segments, *following]) if segments else []
        self._transactions = self._transactions_from(self._segments)
        self._end = following[0].base_offset if following else None
        self._offset_of, self._latest = self._last_offsets()

    def groups(self) -> Iterator[list[Segment]]:
        """Return segments that become one, by their sizes before."""
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
        """Return what stays of segments; groups are taken in their order."""
        for segment in group:
            for headers, data in _windows(segment):
                starts = (headers["position"] - headers["position"][0]).tolist()
                stops = (ends(headers) - headers["position"][0]).tolist()
                rows = _Rows(headers, data)
                for at, header in enumerate(headers):
                    yield self._filtered(header, data[starts[at] : stops[at]], rows, at)

    def _last_offsets(self) -> tuple[Mapping[bytes | None, int], int]:
        """Return the last offset of each key that an aborted transaction did not write, and the last one of all."""
        found: dict[bytes | None, int] = {}
        latest, dirty = NONE, self._dirty()
        transactions = self._transactions_from(dirty)
        for segment in dirty:
            for headers, data in _windows(segment):
                rows = _Rows(headers, data)
                for at, header in enumerate(headers):
                    if header["attributes"] & CONTROL_BIT:
                        transactions.drops_marker(header)
                    elif not transactions.drops_batch(header):
                        keys, offsets, _ = rows.of(at)
                        found.update(zip(keys, offsets.tolist(), strict=True))
                latest = int(last_offsets(headers)[-1])
        found.pop(None, None)
        return found, latest

    def _transactions_from(self, segments: Sequence[Segment]) -> CleanedTransactions:
        return CleanedTransactions(self._aborted, (segments[0].base_offset or 0) if segments else 0)

    def _dirty(self) -> list[Segment]:
        ends_at: list[int | None] = [segment.base_offset for segment in self._segments[1:]]
        closed = zip(self._segments, [*ends_at, None], strict=False)
        return [segment for segment, end in closed if end is None or end > self._options.dirty_offset]

    def _filtered(self, header: np.void, batch: bytes, rows: _Rows, at: int) -> bytes:
        """Return what stays of a batch."""
        is_control = bool(header["attributes"] & CONTROL_BIT)
        may_go = (self._transactions.drops_marker if is_control else self._transactions.drops_batch)(header)
        horizon = int(header["base_timestamp"]) if header["attributes"] & DELETE_HORIZON_BIT else None
        is_over = horizon is not None and horizon <= self._options.now
        count = int(header["records_count"])
        tombstones = np.zeros(count, bool)
        if may_go and (is_over or not is_control):
            keeps = np.zeros(count, bool)
        elif is_control:
            keeps = np.ones(count, bool)
        else:
            keys, offsets, tombstones = rows.of(at)
            last = np.array([NONE if key is None else self._offset_of.get(key, NONE) for key in keys], np.int64)
            has_key = np.array([key is not None for key in keys], bool)
            keeps = has_key & (offsets >= last)
            if is_over:
                keeps &= ~tombstones
            keeps |= offsets > self._latest
        if not keeps.any():
            if not self._is_last(header) and not self._is_last_of_producer(header):
                return b""
            return empty_batch(batch) if count else batch
        begins_horizon = horizon is None and bool((keeps & tombstones).any() or (is_control and may_go))
        if keeps.all() and not begins_horizon:
            return batch
        if begins_horizon:
            horizon = self._options.now + self._options.delete_retention_ms
        return filtered_batch(batch, keeps.tolist(), horizon, self._decompressor)

    def _is_last(self, header: np.void) -> bool:
        """Whether a batch ends where the cleaned segments do."""
        return int(header["base_offset"]) + int(header["last_offset_delta"]) + 1 == self._end

    def _is_last_of_producer(self, header: np.void) -> bool:
        state = self._producers.get(int(header["producer_id"]))
        if state is None:
            return False
        if state.last_offset != NONE:
            return int(header["base_offset"]) + int(header["last_offset_delta"]) == state.last_offset
        return bool(header["attributes"] & CONTROL_BIT) and int(header["producer_epoch"]) == state.producer_epoch


class _Rows:
    """Keys, offsets and tombstones of the batches of a window."""

    def __init__(self, headers: Headers, data: bytes) -> None:
        rows = decode(data, columns=["key", "offset", "value"], strict=True, check_crc=False).to_table()
        self._offsets = rows["offset"].to_numpy()
        self._keys = rows["key"].to_pylist()
        self._tombstones = rows["value"].is_null().to_numpy()
        self._starts = np.searchsorted(self._offsets, headers["base_offset"])
        self._stops = np.searchsorted(self._offsets, last_offsets(headers), side="right")

    def of(self, at: int) -> tuple[list[bytes | None], np.ndarray, np.ndarray]:
        """Return those of a batch."""
        rows = slice(int(self._starts[at]), int(self._stops[at]))
        return self._keys[rows], self._offsets[rows], self._tombstones[rows]


def largest_timestamp(segment: Segment) -> int:
    """Return the largest timestamp of a segment's records; -1 when there is none."""
    scan = HeaderScan(disk().open(segment.path))
    return max((int(headers["max_timestamp"].max()) for headers in scan.headers()), default=NONE)


def _windows(segment: Segment) -> Iterator[tuple[Headers, bytes]]:
    """Return headers and bytes of some batches at a time.

    Raises
    ------
    RecordError
        When the segment is damaged: nothing of it is dropped then.
    """
    file = disk().open(segment.path)
    try:
        scan = HeaderScan(file, check_crc=True)
        for headers in scan.headers(_BATCHES_AT_ONCE, strict=True):
            if (headers["magic"] < 2).any():
                raise ValueError(f"{segment.name}: messages of magic 0 or 1; the cleaner takes record batches alone")
            yield headers, bytes(file.read(int(headers["position"][0]), int(ends(headers)[-1])))
        if scan.torn_at >= 0:
            raise CorruptRecordError(
                f"{segment.name}: {segment.size - scan.torn_at} bytes at its end are no whole batch"
            )
    finally:
        file.close()
