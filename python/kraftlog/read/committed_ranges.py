"""Ranges to read, each with its overlapping transactions.

The visibility of a transactional record is known when its transaction has ended, which may be much later in the log. A
range is returned as soon as all transactions that began before its end have ended. Waiting ranges do not keep files
open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kraftlog.codec.options import NO_BOUND, READ_COMMITTED, ReadOptions
from kraftlog.codec.records import TRANSACTION_COLUMNS
from kraftlog.disk.in_order import SEGMENTS_AT_ONCE, in_order
from kraftlog.disk.remote_path import RemotePath
from kraftlog.errors import Fault
from kraftlog.layout.names import printable
from kraftlog.layout.segment import Segment
from kraftlog.notes import UnstableOffset
from kraftlog.read.log_pass import Pass
from kraftlog.read.metadata_scan import metadata_ranges
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.read.ranges import Range, plan, relevant
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import as_listed
from kraftlog.read.segment_transactions import FILES_AT_ONCE, OPEN_FILES
from kraftlog.read.transaction_map import (
    JOINED_DTYPE,
    OpenTransaction,
    Step,
    TransactionMap,
    open_rows,
)
from kraftlog.transactions.places import number_of, place_of
from kraftlog.transactions.producer import NONE
from kraftlog.transactions.view import FOREVER


def needs_transactions(options: ReadOptions, columns: Sequence[str]) -> bool:
    """Whether a reader requires transactions."""
    return options.isolation_level == READ_COMMITTED or bool(TRANSACTION_COLUMNS & set(columns))


def ranges_with_transactions(
    segments: list[Segment], columns: Sequence[str], read: Pass, *, follows: bool = False
) -> Iterator[Range]:
    """Return the ranges to read, in order, with their transactions.

    Transactions come from the files next to closed segments, if these are complete, or else from headers, one segment
    ahead of the reader.

    Parameters
    ----------
    segments : list of Segment
    columns : sequence of str
        Columns of the ``records`` table.
    read : Pass
        With ``read_committed`` ranges end at the last stable offset. Faults are unreadable snapshots and segments, and
        misplaced markers of metadata transactions. Notes are the offset at which a read_committed reader stops, and the
        reason why headers of remote files are read.
    follows : bool
        Whether each range is read before the next one is requested. A last segment is then one range, whose reader
        determines committed records itself. Such a range can only be used in this process.

    Raises
    ------
    CorruptRecordError
        With ``strict``, for the first of these faults.
    """
    for group in by_partition(segments):
        if is_metadata(group[0]):
            yield from metadata_ranges(group, read)
            continue
        transactions = TransactionMap(
            group,
            every="visible_at" in columns,
            strict=read.options.strict,
            cut_bytes=read.range_bytes,
        )
        is_followed = follows and read.range_bytes is None and not TRANSACTION_COLUMNS & set(columns)
        for part in PartitionRanges(transactions, read, follows=is_followed).ranges():
            _move(transactions.faults, read.faults)
            yield part
        _move(transactions.faults, read.faults)


def _move(of_map: list[Fault], faults: list[Fault]) -> None:
    faults += of_map
    of_map.clear()


@dataclass
class _Pending:
    """A range of a segment, and its places [low, high)."""

    part: Range
    number: int
    low: int
    high: int


class PartitionRanges:
    """The ranges of one partition.

    Parameters
    ----------
    found : TransactionMap
    read : Pass
        A note is the offset at which a read_committed reader stops.
    all_at_once : bool
        Whether all ranges are required before any is read: segments are then scanned in parallel.
    follows : bool
        Whether a reader may determine committed records of the last segment itself, because ranges are read one after
        another and the transactions of records are not requested.
    at_entries : bool
        Whether local segments are cut at entries of their ``.index``, as in ``plan``.
    """

    def __init__(
        self,
        transactions: TransactionMap,
        read: Pass,
        *,
        all_at_once: bool = False,
        follows: bool = False,
        at_entries: bool = False,
    ) -> None:
        self._map = transactions
        self._options = read.options
        self._plan = partial(_plan, range_bytes=read.range_bytes, at_entries=at_entries)
        self._notes = read.notes
        self._all_at_once = all_at_once
        self._follows = follows
        self._is_remote = isinstance(transactions.segments[0].path, RemotePath)
        self._pending: deque[_Pending] = deque()
        self._ended = [np.empty(0, JOINED_DTYPE)]
        self._planned: Iterator[list[Range]] | None = None
        self._stable: tuple[int, int] = (-1, FOREVER)  # number of the segment, and offset in it

    def ranges(self) -> Iterator[Range]:
        """Return the ranges, in order."""
        segments = list(self._map.segments)
        relevant_segments = list(relevant(segments, self._options))
        if not relevant_segments:
            return
        numbers = {segment.path: number for number, segment in enumerate(segments)}
        wanted_numbers = [numbers[segment.path] for segment in relevant_segments]
        self._look_ahead(wanted_numbers)
        if self._all_at_once or self._is_remote:
            self._planned = in_order(partial(self._plan, self._options), relevant_segments, SEGMENTS_AT_ONCE)
        if (
            self._may_follow(relevant_segments[0])
            and len(relevant_segments) == 1
            and not self._map.opened_before(wanted_numbers[0])
        ):
            yield self._followed(wanted_numbers[0])
            return
        yield from self._along(wanted_numbers)

    def _may_follow(self, segment: Segment) -> bool:
        """Whether a segment is the last one, and read from its first byte to its last."""
        options = self._options.from_log_start(segment.log_start_offset)
        is_last = segment is self._map.segments[-1]
        is_whole = not options.bounds_offsets and not options.bounds_timestamps
        return self._follows and not self._is_remote and is_last and is_whole and not segment.is_cut

    def _followed(self, number: int) -> Range:
        """Return a last segment as one range that nothing waits for."""

        def rest(position: int) -> Iterator[Range]:
            for part in self._along([number]):
                if part.end > position:
                    yield replace(part, start=max(part.start, position))

        return Range(self._map.segments[number], 0, NO_BOUND, undecided=rest)

    def _along(self, numbers: list[int]) -> Iterator[Range]:
        segments, among, last = self._map.segments, set(numbers), numbers[-1]
        opened: list[OpenTransaction] = []
        for step in self._map.along(numbers[0], keep=self._all_at_once):
            end = self._cut(step.number) if step.number in among else 0
            self._map.note_damaged_markers(step.number, end, self._options.end_offset)
            self._ended.append(step.ended)
            opened = step.opened
            if step.undecided and self._commits:
                yield from self._stop(step)
                return
            yield from self._before(min((one.unstable_place for one in opened), default=FOREVER))
            if step.number >= last and not self._pending:
                return
            if step.number + 1 == last and not opened and not self._pending and self._may_follow(segments[last]):
                yield self._followed(last)
                return
            if self._pending and not self._map.is_known(step.number + 1):
                # they wait for the end of a transaction: several segments are gone over at a time
                self._map.fill(range(step.number + 1, min(len(segments), step.number + 1 + FILES_AT_ONCE)))
        is_cut = segments[-1].is_cut
        self._ended.append(open_rows(opened, marker_offset=NONE if is_cut else FOREVER))
        if opened and self._commits and not is_cut:
            yield from self._stop(Step(len(segments), self._ended[0], opened))
        else:
            yield from self._before(FOREVER)

    @property
    def _commits(self) -> bool:
        return self._options.isolation_level == READ_COMMITTED

    def _look_ahead(self, numbers: list[int]) -> None:
        if self._all_at_once:
            self._map.fill(numbers)
        elif self._is_remote:
            lacking = self._map.header_passes(numbers)
            if any(number + 1 < len(self._map.segments) for number in lacking):
                why = self._map.why_headers
                self._notes.append(f"{self._where}: log files are read as a whole to find transactions: {why}")

    @property
    def _where(self) -> str:
        return printable(self._map.segments[-1].folder.name)

    def _cut(self, number: int) -> int:
        """Divide a segment into ranges, and return their end."""
        transactions = self._map.found(number)
        if self._planned is not None:
            parts = next(self._planned)
        elif transactions.has_positions:
            parts = list(self._cut_by_headers(number))
        else:
            parts = self._plan(self._options, self._map.segments[number])
        if transactions.missing is None:  # else the fault is noted
            self._add(number, parts)
        return max((part.end for part in parts), default=0)

    def _add(self, number: int, parts: list[Range]) -> None:
        size = self._map.segments[number].size
        for part in parts:
            low, high = place_of(number, part.start), place_of(number, min(part.end, size))
            self._pending.append(_Pending(part, number, low, high))

    def _cut_by_headers(self, number: int) -> Iterator[Range]:
        segment, transactions = self._map.segments[number], self._map.found(number)
        start, end = 0, NO_BOUND
        if transactions.missing is None and (self._options.bounds_offsets or self._options.bounds_timestamps):
            # it was there a moment ago: reading it reports why it cannot be read
            with suppress(OSError), as_listed(segment) as file:
                start, end = seek(segment, file, self._options)
        begin = start
        for cut in transactions.cuts:
            if start < cut < min(end, segment.size):
                yield Range(segment, begin, cut, begin == start)
                begin = cut
        yield Range(segment, begin, end, begin == start)

    def _before(self, unstable: int) -> Iterator[Range]:
        """Return the ranges before all open transactions, each with its overlapping transactions."""
        if not self._pending or self._pending[0].high > unstable:
            return
        ended = np.concatenate(self._ended)
        ended = ended[np.argsort(ended["first_place"], kind="stable")]
        around, begun = ended[:0], 0
        while self._pending and self._pending[0].high <= unstable:
            waiting = self._pending.popleft()
            begins = int(np.searchsorted(ended["first_place"], waiting.high))
            around = np.concatenate((around, ended[begun:begins]))
            around = around[around["marker_place"] > waiting.low]
            begun = begins
            stable = self._stable[1] if waiting.number == self._stable[0] else FOREVER
            view = self._map.view(waiting.number, around, stable)
            yield replace(waiting.part, transactions=view)
        self._ended = [around, ended[begun:]]

    def _stop(self, step: Step) -> Iterator[Range]:
        """Return the ranges up to the start of the earliest open or undecided transaction."""
        held = [*step.undecided, *step.opened]
        first = min(held, key=lambda one: (one.unstable_place, one.first_offset))
        if first.first_offset < self._options.end_offset:
            why = "open"
            if step.undecided:
                why = f"undecided: {self._map.segments[step.number].name} cannot be read"
            stops = f"{self._where}: read_committed ends at offset {first.first_offset}"
            self._notes.append(f"{stops}, where a transaction of producer {first.producer_id} is {why}")
            segment = self._map.segments[-1]
            unstable = UnstableOffset(segment.topic, segment.partition, first.first_offset)
            self._notes.unstable_offsets.append(unstable)
        limit = min((one.place for one in held if one.segment is None), default=FOREVER)
        number = min((one.segment for one in held if one.segment is not None), default=None)
        if number is not None:
            limit = min(limit, place_of(number + 1))
            self._stable = number, min(one.first_offset for one in held if one.segment == number)
            self._plan_again(number)
        self._note_damaged_markers(limit, step.number)
        yield from self._before(limit)
        if self._pending and self._pending[0].low < limit:  # it begins inside of a range
            waiting = self._pending[0]
            waiting.part, waiting.high = replace(waiting.part, end=limit - place_of(waiting.number)), limit
            yield from self._before(limit)

    def _note_damaged_markers(self, place: int, end: int) -> None:
        """Note the damaged markers after a place, up to a segment: no range reaches them."""
        for number in range(number_of(place), min(end + 1, len(self._map.segments))):
            self._map.note_damaged_markers(number, place - place_of(number), self._options.end_offset)

    def _plan_again(self, number: int) -> None:
        """Divide a segment again, at which a read_committed reader stops; all of its ranges were waiting."""
        if any(waiting.number == number for waiting in self._pending):
            self._pending = deque(waiting for waiting in self._pending if waiting.number < number)
            options = replace(self._options, end_offset=min(self._options.end_offset, self._stable[1]))
            self._add(number, self._plan(options, self._map.segments[number]))


def _plan(options: ReadOptions, segment: Segment, *, range_bytes: int | None, at_entries: bool) -> list[Range]:
    with OPEN_FILES:
        return list(plan([segment], options, range_bytes, at_entries=at_entries))
