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

from kraftlog._native.lookahead import ENDED_DTYPE, PLACE_BITS, Lookahead
from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.codec.records import TRANSACTION_COLUMNS
from kraftlog.disk.mapping import map_file
from kraftlog.disk.remote_path import RemotePath
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.discover import Segment
from kraftlog.layout.names import printable
from kraftlog.read.metadata_boundaries import scan_boundaries
from kraftlog.read.open_transactions import starts_soundly
from kraftlog.read.partitions import by_partition, is_metadata, opened_before_segment
from kraftlog.read.ranges import Range, plan, relevant
from kraftlog.read.records import open_segment
from kraftlog.read.remote_visible import remote_ranges
from kraftlog.read.seek import seek
from kraftlog.transactions.producer import OPEN
from kraftlog.transactions.view import MetadataView, ProducerView
from kraftlog.types import Buffer

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
    notes: list[str],
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
    notes : list of str
        Receives where a read_committed reader stops.
    """
    for group in by_partition(segments):
        if is_metadata(group[0]):
            yield from _metadata_ranges(group, options, range_bytes, faults)
        else:
            is_remote = isinstance(group[0].path, RemotePath)
            known = remote_ranges(group, options, range_bytes, columns, notes) if is_remote else None
            parts = _PartitionRanges(group, options, range_bytes or LOOKAHEAD_BYTES, "visible_at" in columns)
            for part in known if known is not None else parts.ranges(faults, notes):
                yield replace(part, buffer=None) if is_remote else part  # whoever waits for its turn holds no file


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
    """A range, and the places [low, high) that it takes."""

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
        self._ended = [np.empty(0, ENDED_DTYPE)]

    def ranges(self, faults: list[Fault], notes: list[str]) -> Iterator[Range]:
        wanted = list(relevant(self._group, self._options))
        if not wanted:
            return
        first = self._group.index(wanted[0])
        opened = opened_before_segment(self._group[first], faults)
        while opened is None and first > 0:
            first -= 1
            opened = opened_before_segment(self._group[first], faults)
        if faults and self._options.strict:
            raise error_from_fault(faults[0])
        before = [] if opened is None else list(zip(opened["producer_id"], opened["first_offset"], strict=True))
        segments = self._group[first:]
        ahead = Lookahead(before, self._every, False)
        paths = {segment.path for segment in wanted}
        for file, segment in enumerate(segments):
            for _ in self._look(segment, file, ahead, is_wanted=segment.path in paths):
                yield from self._before(ahead.first_unstable_place)
            paths.discard(segment.path)
            if not paths and not self._pending:
                return
        still_open = self._still_open(ahead, segments, before)
        commits = self._options.isolation_level == READ_COMMITTED
        stable = NO_BOUND
        if commits and still_open:
            producer_id, offset, stable = min(still_open, key=lambda transaction: transaction[2])
            where = f"{printable(segments[-1].path.parent.name)}: read_committed ends at offset {offset}"
            notes.append(f"{where}, where a transaction of producer {producer_id} is open")
        open_rows = [(producer_id, place, NO_BOUND, NO_BOUND, OPEN) for producer_id, _, place in still_open]
        self._ended.append(np.array(open_rows, ENDED_DTYPE))
        yield from self._before(stable)
        if self._pending and self._pending[0].low < stable:  # a read_committed reader stops inside of it
            waiting = self._pending[0]
            waiting.part, waiting.high = replace(waiting.part, end=_byte(stable)), stable
            yield from self._before(stable)

    def _look(self, segment: Segment, file: int, ahead: Lookahead, *, is_wanted: bool) -> Iterator[None]:
        """Go over the headers of a segment and cut it; returns after each range."""
        try:
            buffer = map_file(segment.path)
        except OSError:
            buffer = None
        ahead.begin(b"" if buffer is None else buffer)
        if buffer is None and is_wanted:
            self._add(file, Range(segment, 0, NO_BOUND), 0)  # whoever reads it reports why it cannot be read
        if buffer is None:
            return
        start, end = seek(segment, buffer, self._options) if is_wanted else (0, 0)
        size = memoryview(buffer).nbytes
        begin, goes_on = start, True
        while goes_on:
            stop = begin + self._range_bytes
            # behind a break in the chain of headers a reader may come to other batches than this scan
            is_cut = ahead.is_chain and ahead.position < stop < min(end, size)
            goes_on, ended = ahead.run(stop if is_cut else size)
            if len(ended):
                self._ended.append(ended)
            if goes_on and ahead.is_chain and ahead.position < end:
                self._add(file, Range(segment, begin, ahead.position, begin == start, buffer=buffer), ahead.position)
                begin = ahead.position
                yield
        if is_wanted:
            self._add(file, Range(segment, begin, end, begin == start, buffer=buffer), size)
        yield

    def _add(self, file: int, part: Range, end: int) -> None:
        self._pending.append(_Pending(part, _place(file, part.start), _place(file, end)))

    def _before(self, unstable: int | None) -> Iterator[Range]:
        """Return the ranges that lie before every open transaction, each with the transactions that reach into it."""
        if not self._pending or (unstable is not None and self._pending[0].high > unstable):
            return
        ended = np.concatenate(self._ended)
        ended = ended[np.argsort(ended["first_place"], kind="stable")]
        around, begun = ended[:0], 0
        while self._pending and (unstable is None or self._pending[0].high <= unstable):
            waiting = self._pending.popleft()
            begins = int(np.searchsorted(ended["first_place"], waiting.high))
            around = np.concatenate((around, ended[begun:begins]))
            around = around[around["marker_place"] > waiting.low]
            begun = begins
            ordered = around[np.lexsort((around["first_place"], around["producer_id"]))]
            view = ProducerView(ordered, waiting.low >> PLACE_BITS)
            yield replace(waiting.part, transactions=view)
        self._ended = [around, ended[begun:]]

    def _still_open(
        self, ahead: Lookahead, segments: list[Segment], before: list[tuple[int, int]]
    ) -> list[tuple[int, int, int]]:
        """Return producer id, first offset and first place of the transactions that are open at the end of the log.

        A header whose batch is damaged may seem to open a transaction, and would hide all that follows. If an open one
        starts with a bad batch, everything is gone over once more, with each crc compared.
        """
        found = ahead.open()
        if all(place < 0 or starts_soundly(_reopened(segments, place), _byte(place)) for _, _, place in found):
            return found
        exact = Lookahead(before, self._every, True)
        self._ended = []
        for segment in segments:
            buffer = open_segment(segment, [], strict=False)
            exact.begin(buffer)
            self._ended.append(exact.run(memoryview(buffer).nbytes)[1])
        return exact.open()


def _reopened(segments: list[Segment], place: int) -> Buffer:
    return open_segment(segments[place >> PLACE_BITS], [], strict=False)


def _place(file: int, position: int) -> int:
    return (file << PLACE_BITS) + position


def _byte(place: int) -> int:
    return place & ((1 << PLACE_BITS) - 1)
