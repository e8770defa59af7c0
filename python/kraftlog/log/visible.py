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

from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.codec.records import TRANSACTION_COLUMNS
from kraftlog.errors import Fault
from kraftlog.log.discover import Segment
from kraftlog.log.metadata_boundaries import scan_boundaries
from kraftlog.log.partitions import by_partition, is_metadata, opened_before_segment
from kraftlog.log.ranges import Cutter, Range, plan, relevant
from kraftlog.log.read import open_segment
from kraftlog.log.scan import HeaderScan
from kraftlog.log.seek import seek
from kraftlog.transactions.producer import ABORTED, NONE, OPEN, TRANSACTION_DTYPE, TransactionFold, Transactions
from kraftlog.transactions.view import MetadataView, ProducerView

LOOKAHEAD_BYTES = 16 << 20
HEADERS_PER_LOOK = 1 << 13


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
            lookahead = _Lookahead(group, options, range_bytes or LOOKAHEAD_BYTES, "visible_at" in columns)
            yield from lookahead.ranges(faults)


def _metadata_ranges(
    group: list[Segment], options: ReadOptions, range_bytes: int | None, faults: list[Fault]
) -> Iterator[Range]:
    scanned = list(scan_boundaries(group, faults, strict=options.strict))
    if not scanned:
        return
    transactions = np.concatenate([part.transactions for part in scanned])
    view = MetadataView(transactions, np.concatenate([part.illegal for part in scanned]))
    for part in plan(group, options, range_bytes):
        yield replace(part, transactions=view)


@dataclass
class _Pending:
    """A range, and the offsets [low, high) of its records."""

    part: Range
    low: int
    high: int


class _Lookahead:
    """The ranges of one partition, and the fold over headers that runs ahead of them."""

    def __init__(self, group: list[Segment], options: ReadOptions, range_bytes: int, every: bool) -> None:
        self._group = group
        self._options = options
        self._range_bytes = range_bytes
        self._every = every  # whether committed transactions matter as well
        self._pending: deque[_Pending] = deque()
        self._ended: list[Transactions] = []
        self._low = -NO_BOUND
        self._opened: Transactions = np.empty(0, TRANSACTION_DTYPE)

    def ranges(self, faults: list[Fault]) -> Iterator[Range]:
        wanted = list(relevant(self._group, self._options))
        if not wanted:
            return
        first = self._group.index(wanted[0])
        opened = opened_before_segment(self._group[first], faults)
        while opened is None and first > 0:
            first -= 1
            opened = opened_before_segment(self._group[first], faults)
        self._opened = opened if opened is not None else self._opened
        fold = TransactionFold(self._opened)
        left = len(wanted)
        paths = {segment.path for segment in wanted}
        for segment in self._group[first:]:
            is_wanted = segment.path in paths
            left -= is_wanted
            for _ in self._look(segment, fold, is_wanted):
                yield from self._decided(fold)
            if not left and not self._pending:
                return
        yield from self._rest(self._checked(fold, first))

    def _look(self, segment: Segment, fold: TransactionFold, is_wanted: bool) -> Iterator[None]:
        """Go through the headers of a segment; returns after each window."""
        buffer = open_segment(segment, [], strict=False)
        start, end = seek(segment, buffer, self._options) if is_wanted else (0, 0)
        cutter = Cutter(segment, start, end, self._range_bytes)
        scan = HeaderScan(buffer, check_control=True)
        highest = self._low
        for headers in scan.headers(HEADERS_PER_LOOK):
            self._keep(fold.add(headers))
            highest = max(highest, int(last_offsets(headers).max()) + 1)
            if is_wanted:
                for part in cutter.add(headers):
                    self._add(part, _offset_at(headers, part.end))
                cutter.is_broken |= bool(scan.faults)
            yield
        if is_wanted:
            self._add(cutter.finish(), highest)
        yield

    def _add(self, part: Range, high: int) -> None:
        self._pending.append(_Pending(part, self._low, high))
        self._low = high

    def _keep(self, ended: Transactions) -> None:
        with_data = ended["first_offset"] != NONE
        matters = with_data if self._every else with_data & (ended["state"] == ABORTED)
        if matters.any():
            self._ended.append(ended[matters])

    def _decided(self, fold: TransactionFold) -> Iterator[Range]:
        """Return the ranges that lie before every open transaction."""
        unstable = fold.first_unstable_offset
        while self._pending and (unstable is None or self._pending[0].high <= unstable):
            yield self._with_view(self._pending.popleft(), fold.open[:0])
        keep_from = self._pending[0].low if self._pending else self._low
        self._ended = [some for some in self._ended if some["marker_offset"].max() > keep_from]

    def _rest(self, still_open: Transactions) -> Iterator[Range]:
        """Return the ranges that are left when the log has ended; a read_committed reader stops before open ones."""
        commits = self._options.isolation_level == READ_COMMITTED
        stable = int(still_open["first_offset"][0]) if commits and len(still_open) else NO_BOUND
        while self._pending:
            waiting = self._pending.popleft()
            if waiting.low < stable:
                part = self._with_view(waiting, still_open)
                yield replace(part, end_offset=stable) if stable < waiting.high else part

    def _with_view(self, waiting: _Pending, still_open: Transactions) -> Range:
        around = np.concatenate([np.empty(0, TRANSACTION_DTYPE), *self._ended, still_open])
        is_open = around["state"] == OPEN
        around = around[(around["first_offset"] < waiting.high) & (is_open | (around["marker_offset"] > waiting.low))]
        return replace(waiting.part, transactions=ProducerView(around))

    def _checked(self, fold: TransactionFold, first: int) -> Transactions:
        """Return the transactions that are open at the end of the log.

        A header whose batch is damaged may seem to open a transaction, and would hide all that follows. If an open one
        starts with a bad batch, everything is folded once more, with each crc compared.
        """
        if all(self._starts_soundly(transaction) for transaction in fold.open):
            return fold.open
        exact = TransactionFold(self._opened)
        self._ended = []
        for segment in self._group[first:]:
            for headers in HeaderScan(open_segment(segment, [], strict=False), check_crc=True).headers():
                self._keep(exact.add(headers))
        return exact.open

    def _starts_soundly(self, transaction: np.void) -> bool:
        offset = int(transaction["first_offset"])
        holder = [segment for segment in self._group if (segment.base_offset or 0) <= offset]
        if not holder:
            return True  # a snapshot says so
        buffer = open_segment(holder[-1], [], strict=False)
        for headers in HeaderScan(buffer).headers():
            at = np.flatnonzero(
                (headers["base_offset"] == offset) & (headers["producer_id"] == transaction["producer_id"])
            )
            if len(at):
                position = int(headers["position"][at[0]])
                return all(
                    h["crc_ok"].all() for h in HeaderScan(buffer, position, position + 1, check_crc=True).headers()
                )
        return True


def _offset_at(headers: Headers, position: int) -> int:
    """Return the base offset of the batch at a position."""
    return int(headers["base_offset"][np.searchsorted(headers["position"], position)])
