"""Ranges to read, each with what is known of the transactions of its records.

Whether a transactional record is visible is known when its transaction has ended, which may be much later in the log. A
scan over headers runs ahead of the reader: a range is handed out as soon as all transactions that began before its end
have ended. It carries only the transactions that concern it. Files are gone through once, a window ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kraftlog._native.lookahead import ENDED_DTYPE, Lookahead
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.codec.records import TRANSACTION_COLUMNS
from kraftlog.errors import Fault
from kraftlog.log.discover import Segment
from kraftlog.log.mapping import map_file
from kraftlog.log.metadata_boundaries import scan_boundaries
from kraftlog.log.partitions import by_partition, is_metadata, opened_before_segment
from kraftlog.log.ranges import Range, plan, relevant
from kraftlog.log.read import open_segment
from kraftlog.log.scan import HeaderScan
from kraftlog.log.seek import seek
from kraftlog.transactions.producer import NONE, OPEN, TransactionFold, Transactions, opened_before
from kraftlog.transactions.view import MetadataView, ProducerView

LOOKAHEAD_BYTES = 64 << 20  # a new range costs as much as decoding some KiB


def needs_transactions(options: ReadOptions, columns: Sequence[str]) -> bool:
    """Whether a reader must know of transactions."""
    return options.isolation_level == READ_COMMITTED or bool(TRANSACTION_COLUMNS & set(columns))


def visible_ranges(
    segments: list[Segment],
    options: ReadOptions,
    range_bytes: int | None,
    columns: Sequence[str],
    faults: list[Fault],
) -> Iterator[Range]:
    """Return the ranges to read, in order, with what is known of their transactions.

    Parameters
    ----------
    segments : list of Segment
    options : ReadOptions
        With ``read_committed`` ranges end at the last stable offset.
    range_bytes : int, optional
        Bytes of log in a range.
    columns : sequence of str
        Of the ``records`` table.
    faults : list of Fault
        Receives markers of metadata transactions that are out of place, and unreadable snapshots.
    """
    for group in by_partition(segments):
        if is_metadata(group[0]):
            yield from _metadata_ranges(group, options, range_bytes, faults)
        else:
            parts = _PartitionRanges(group, options, range_bytes or LOOKAHEAD_BYTES, "visible_at" in columns)
            yield from parts.ranges(faults)


def _metadata_ranges(
    group: list[Segment], options: ReadOptions, range_bytes: int | None, faults: list[Fault]
) -> Iterator[Range]:
    nothing = MetadataView()
    scanned = list(scan_boundaries(group, faults, strict=options.strict))
    view = MetadataView(
        np.concatenate([nothing.transactions, *(part.transactions for part in scanned)]),
        np.concatenate([nothing.illegal, *(part.illegal for part in scanned)]),
    )
    for part in plan(group, options, range_bytes):
        yield replace(part, transactions=view)


@dataclass
class _Pending:
    """A range, and the offsets [low, high) of its records."""

    part: Range
    low: int
    high: int


class _PartitionRanges:
    """The ranges of one partition, and the scan over headers that runs ahead of them."""

    def __init__(self, group: list[Segment], options: ReadOptions, range_bytes: int, every: bool) -> None:
        self._group = group
        self._options = options
        self._range_bytes = range_bytes
        self._every = every  # whether committed transactions matter as well
        self._pending: deque[_Pending] = deque()
        self._ended: list[npt.NDArray[np.void]] = []
        self._low = -NO_BOUND

    def ranges(self, faults: list[Fault]) -> Iterator[Range]:
        wanted = list(relevant(self._group, self._options))
        if not wanted:
            return
        first = self._group.index(wanted[0])
        opened = opened_before_segment(self._group[first], faults)
        while opened is None and first > 0:
            first -= 1
            opened = opened_before_segment(self._group[first], faults)
        before = [] if opened is None else list(zip(opened["producer_id"], opened["first_offset"], strict=True))
        ahead = Lookahead(before, self._every)
        paths = {segment.path for segment in wanted}
        for segment in self._group[first:]:
            for _ in self._look(segment, ahead, is_wanted=segment.path in paths):
                yield from self._decided(ahead.first_unstable_offset)
            paths.discard(segment.path)
            if not paths and not self._pending:
                return
        yield from self._rest(self._still_open(ahead, first, before))

    def _look(self, segment: Segment, ahead: Lookahead, *, is_wanted: bool) -> Iterator[None]:
        """Go over the headers of a segment and cut it; returns after each range."""
        try:
            buffer = map_file(segment.path)
        except OSError:
            if is_wanted:
                self._add(Range(segment, 0, NO_BOUND), self._low)  # whoever reads it reports why it cannot be read
            return
        start, end = seek(segment, buffer, self._options) if is_wanted else (0, 0)
        size = memoryview(buffer).nbytes
        ahead.begin(buffer)
        begin, goes_on = start, True
        while goes_on:
            stop = begin + self._range_bytes
            # behind a break in the chain of headers a reader may come to other batches than this scan
            goes_on, ended = ahead.run(stop if ahead.is_chain and stop < min(end, size) else size)
            if len(ended):
                self._ended.append(ended)
            if goes_on and ahead.is_chain and ahead.position < end:
                self._add(Range(segment, begin, ahead.position, begin == start, buffer=buffer), ahead.next_offset)
                begin = ahead.position
                yield
        if is_wanted:
            self._add(Range(segment, begin, end, begin == start, buffer=buffer), ahead.next_offset)
        yield

    def _add(self, part: Range, high: int) -> None:
        self._pending.append(_Pending(part, self._low, high))
        self._low = high

    def _decided(self, unstable: int | None) -> Iterator[Range]:
        """Return the ranges that lie before every open transaction."""
        while self._pending and (unstable is None or self._pending[0].high <= unstable):
            yield self._with_view(self._pending.popleft(), [])
        keep_from = self._pending[0].low if self._pending else self._low
        self._ended = [some for some in self._ended if some["marker_offset"][-1] > keep_from]

    def _rest(self, still_open: list[tuple[int, int]]) -> Iterator[Range]:
        """Return the ranges that are left when the log has ended; a read_committed reader stops before open ones."""
        commits = self._options.isolation_level == READ_COMMITTED
        stable = min((first for _, first in still_open), default=NO_BOUND) if commits else NO_BOUND
        while self._pending:
            waiting = self._pending.popleft()
            if waiting.low < stable:
                part = self._with_view(waiting, still_open)
                yield replace(part, stable_offset=stable) if stable < waiting.high else part

    def _with_view(self, waiting: _Pending, still_open: list[tuple[int, int]]) -> Range:
        open_rows = [(producer_id, first, NO_BOUND, OPEN) for producer_id, first in still_open]
        around = np.concatenate([np.array(open_rows, ENDED_DTYPE), *self._ended])
        concerns = (around["first_offset"] < waiting.high) & (around["marker_offset"] > waiting.low)
        return replace(waiting.part, transactions=ProducerView(around[concerns]))

    def _still_open(self, ahead: Lookahead, first: int, before: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return producer id and first offset of the transactions that are open at the end of the log.

        A header whose batch is damaged may seem to open a transaction, and would hide all that follows. If an open one
        starts with a bad batch, everything is gone over once more, with each crc compared.
        """
        found = ahead.open()
        if all(self._starts_soundly(first_offset, position) for _, first_offset, position in found):
            return [(producer_id, first_offset) for producer_id, first_offset, _ in found]
        opened = opened_before([(producer_id, 0, first_offset) for producer_id, first_offset in before])
        fold, ended = TransactionFold(opened), [np.empty(0, ENDED_DTYPE)]
        for segment in self._group[first:]:
            for headers in HeaderScan(open_segment(segment, [], strict=False), check_crc=True).headers():
                rows = fold.add(headers)
                ended.append(_as_ended(rows[rows["first_offset"] != NONE]))
        self._ended = ended
        return list(zip(fold.open["producer_id"].tolist(), fold.open["first_offset"].tolist(), strict=True))

    def _starts_soundly(self, first_offset: int, position: int) -> bool:
        holders = [segment for segment in self._group if (segment.base_offset or 0) <= first_offset]
        if position < 0 or not holders:
            return True  # a snapshot says so
        buffer = open_segment(holders[-1], [], strict=False)
        batch = HeaderScan(buffer, position, position + 1, check_crc=True)
        return all(header["crc_ok"].all() for header in batch.headers())


def _as_ended(transactions: Transactions) -> npt.NDArray[np.void]:
    rows = np.empty(len(transactions), ENDED_DTYPE)
    for name in ENDED_DTYPE.names or ():
        rows[name] = transactions[name]
    return rows
