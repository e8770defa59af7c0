"""The transactions that overlap each range of a partition's log.

The transactions of each segment (``kraftlog.read.segment_transactions``) are merged along the log. At the border of two
segments a ``.snapshot`` has the open ones; without a synced one they follow from the earlier segments. Transactions are
identified by places, which increase along the log regardless of offsets: number of the segment, then byte in it. For a
segment known from the files next to it only offsets are known; within it they identify transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.disk.in_order import in_order
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import segment_headers
from kraftlog.read.segment_transactions import (
    FILES_AT_ONCE,
    Fold,
    HeaderPass,
    Opened,
    SegmentTransactions,
    from_files,
    in_threads,
    read_opened,
)
from kraftlog.transactions.places import place_of
from kraftlog.transactions.producer import ABORTED, NONE, OPEN
from kraftlog.transactions.view import BY_OFFSET, BY_POSITION, FOREVER, VIEW_DTYPE, ProducerView

JOINED_DTYPE = np.dtype(
    [
        ("producer_id", "i8"),
        ("first_offset", "i8"),
        ("first_place", "i8"),
        ("marker_offset", "i8"),  # of an open one FOREVER; -1 when it holds nothing back
        ("marker_place", "i8"),
        ("state", "i1"),
    ]
)
Joined = npt.NDArray[np.void]


class OpenTransaction(NamedTuple):
    """A transaction that has begun.

    ``place`` is the first possible place of its batches. If its first batch is unknown, ``segment`` is the number of
    its segment, in which only offsets tell which batches precede it.
    """

    producer_id: int
    first_offset: int
    place: int
    segment: int | None = None

    @property
    def unstable_place(self) -> int:
        """The place from which records may have to wait for its end."""
        return self.place if self.segment is None else place_of(self.segment)


@dataclass(frozen=True)
class Step:
    """The state after one more segment of the log.

    Attributes
    ----------
    number : int
        Number of the segment.
    ended : numpy.ndarray
        Rows of ``JOINED_DTYPE``: required transactions that ended in it, and those of unknown outcome.
    opened : list of OpenTransaction
        Open after it.
    undecided : list of OpenTransaction
        May have ended in the unreadable segment.
    """

    number: int
    ended: Joined
    opened: list[OpenTransaction]
    undecided: list[OpenTransaction] = field(default_factory=list)


class TransactionMap:
    """The transactions of one partition, segment by segment, on request.

    Parameters
    ----------
    segments : sequence of Segment
        Live segments of one partition, in order, read up to their sizes at the listing.
    by_files : bool
        Whether complete files next to a segment are trusted: its log file is then not read.
    every : bool
        Whether to include committed transactions, as ``visible_at`` requires; these are only in headers.
    strict : bool
        Whether to raise at the first fault.
    cut_bytes : int, optional
        Distance of cut positions in a segment, in bytes.
    fold : callable
        Runs passes over headers; by default in threads.

    Attributes
    ----------
    faults : list of Fault
        Faults of snapshots and segments so far.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.read.transaction_map import TransactionMap
    >>> segments = kraftlog.open("tests/golden/transactions_hanging/log/orders-late-0").found.segments
    >>> [one.first_offset for one in TransactionMap(segments).open_at_end()]
    [21]
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        *,
        by_files: bool = True,
        every: bool = False,
        strict: bool = False,
        cut_bytes: int | None = None,
        fold: Fold = in_threads,
    ) -> None:
        self.segments = segments
        self.faults: list[Fault] = []
        self._by_files = by_files and not every
        self._every = every
        self._strict = strict
        self._cut_bytes = cut_bytes
        self._fold = fold
        self._opened: dict[int, Opened | None] = {}
        self._by_number: dict[int, SegmentTransactions] = {}
        self._by_offset: set[int] = set()
        self._need_headers: set[int] = set()
        self._noted: set[int] = set()
        self._damaged_markers: dict[int, set[int]] = {}  # of segments: positions of those that are noted

    def found(self, number: int) -> SegmentTransactions:
        """Return the transactions of a segment."""
        if number not in self._by_number:
            self.fill([number])
        return self._by_number[number]

    def is_known(self, number: int) -> bool:
        """Whether the transactions of a segment are known; true after the last segment."""
        return number in self._by_number or number >= len(self.segments)

    @property
    def why_headers(self) -> str:
        """The reason for reading headers although files next to segments were requested."""
        return (
            "visible_at needs it"
            if self._every
            else "a file beside a segment is missing, damaged, or not known to be on disk"
        )

    def header_passes(self, numbers: Sequence[int]) -> list[int]:
        """Return the segments that require a pass over their headers; the files next to all of them are read."""
        new = [number for number in numbers if number not in self._by_number and number not in self._need_headers]
        self._read_snapshots(new)
        if self._by_files:
            closed = [number for number in new if number + 1 < len(self.segments)]
            some = len(closed) > 1
            of_files = in_order(self._from_files, closed, FILES_AT_ONCE) if some else map(self._from_files, closed)
            by_number = {number: one for number, one in zip(closed, of_files, strict=True) if one is not None}
            self._by_number |= by_number
            self._by_offset |= by_number.keys()
        self._need_headers |= {number for number in new if number not in self._by_number}
        return [number for number in numbers if number not in self._by_number]

    def header_pass(self, number: int) -> HeaderPass:
        """Return the required pass over the headers of a segment."""
        confirmed = self._opened.get(number + 1) or {}
        return HeaderPass(self.segments[number], self._every, self._cut_bytes, frozenset(confirmed.items()))

    def fill(self, numbers: Sequence[int]) -> None:
        """Determine the transactions of segments, in parallel."""
        todo = self.header_passes(numbers)
        if todo:
            self.take(todo, self._fold([self.header_pass(number) for number in todo]))

    def take(self, numbers: Sequence[int], transactions: Iterable[SegmentTransactions]) -> None:
        """Add the results of passes over headers."""
        for number, one in zip(numbers, transactions, strict=True):
            self._by_number[number] = one
            if one.damaged_markers:
                self._damaged_markers.setdefault(number, set())

    def along(self, first: int, *, keep: bool = True) -> Iterator[Step]:
        """Merge the transactions of segments, from one of them to the end of the log.

        Parameters
        ----------
        first : int
        keep : bool
            Whether to keep the transactions of segments for another call.
        """
        opened = self._open_before(first)
        for number in range(first, len(self.segments)):
            step = self._joined(number, opened)
            opened = {one.producer_id: one for one in step.opened}
            yield step
            if not keep:
                del self._by_number[number]

    def _joined(self, number: int, opened: dict[int, OpenTransaction]) -> Step:
        transactions = self.found(number)
        if transactions.missing is not None and number not in self._noted:
            self._noted.add(number)
            self._note(transactions.missing)
        return _join(number, transactions, opened, self._opened.get(number + 1), every=self._every)

    def note_damaged_markers(self, number: int, position: int, offset: int) -> None:
        """Note the damaged markers of a segment that begin at or after a byte or an offset.

        A later marker of the same producer seems to end their transactions. Readers report those that they read.
        """
        noted = self._damaged_markers.get(number)
        if noted is None:
            return
        faults: list[Fault] = []
        markers: dict[int, int] = {}
        for headers in segment_headers(self.segments[number], faults, check_control=True):
            damaged = headers[headers["crc_ok"] == 0]
            damaged = damaged[(damaged["position"] >= position) | (damaged["base_offset"] >= offset)]
            markers |= zip(damaged["position"].tolist(), damaged["base_offset"].tolist(), strict=True)
        for fault in faults:
            if fault.position in markers.keys() - noted:
                noted.add(fault.position)
                self._note(replace(fault, base_offset=markers[fault.position]))

    def open_at_end(self) -> list[OpenTransaction]:
        """Return the transactions that are open at the end of the log, by first offset."""
        *_, last = self.along(len(self.segments) - 1)
        return sorted(last.opened, key=lambda one: one.first_offset)

    def view(self, number: int, rows: Joined, last_stable_offset: int = FOREVER) -> ProducerView:
        """Return transactions for a reader of a segment."""
        base = place_of(number)
        by = BY_OFFSET if number in self._by_offset else BY_POSITION
        begins_before, ends_behind = rows["first_place"] < base, rows["marker_place"] >= place_of(number + 1)
        view = np.empty(len(rows), VIEW_DTYPE)
        for name in ("producer_id", "marker_offset", "state"):
            view[name] = rows[name]
        first, marker = (
            (rows["first_place"] - base, rows["marker_place"] - base)
            if by == BY_POSITION
            else (rows["first_offset"], rows["marker_offset"])
        )
        view["first"] = np.where(begins_before, 0 if by == BY_POSITION else -FOREVER, first)
        view["marker"] = np.where(ends_behind, FOREVER, marker)
        ordered = view[np.lexsort((view["first"], view["producer_id"]))]
        return ProducerView(ordered, by, last_stable_offset)

    def opened_before(self, number: int) -> list[OpenTransaction]:
        """Return the transactions that are open at the start of a segment."""
        return list(self._open_before(number).values())

    def _open_before(self, number: int) -> dict[int, OpenTransaction]:
        """Return the transactions that are open at the start of a segment."""
        border = number
        while (of_snapshot := self._of_snapshot(border)) is None and border > 0:
            border -= 1
        opened = {
            producer: OpenTransaction(producer, first, place_of(border) - 1)
            for producer, first in (of_snapshot or {}).items()
        }
        self.fill(range(border, number))
        for at in range(border, number):
            opened = {one.producer_id: one for one in self._joined(at, opened).opened}
        return opened

    def _of_snapshot(self, border: int) -> Opened | None:
        self._read_snapshots([border])
        return self._opened[border]

    def _read_snapshots(self, numbers: Sequence[int]) -> None:
        """Read the snapshots at both borders of segments."""
        borders = sorted({border for number in numbers for border in (number, number + 1)})
        borders = [border for border in borders if border < len(self.segments) and border not in self._opened]
        if not borders:
            return

        def read(border: int) -> tuple[Opened | None, list[Fault]]:
            faults: list[Fault] = []
            segment = self.segments[border]
            # behind the recovery point headers tell, as for a broker; of what was before the log nothing else does
            is_believed = border == 0 or (segment.base_offset or 0) <= segment.settled_offset
            return (read_opened(segment, faults) if is_believed else None), faults

        results = [read(borders[0])] if len(borders) == 1 else in_order(read, borders, FILES_AT_ONCE)
        for border, (opened, faults) in zip(borders, results, strict=True):
            self._opened[border] = opened
            for fault in faults:
                self._note(fault)

    def _from_files(self, number: int) -> SegmentTransactions | None:
        before, behind = self._opened[number], self._opened[number + 1]
        if before is None or behind is None:
            return None
        return from_files(self.segments[number], self.segments[number + 1].base_offset or 0, before, behind)

    def _note(self, fault: Fault) -> None:
        if self._strict:
            raise CorruptRecordError(fault.message, fault)
        self.faults.append(fault)


def _join(
    number: int,
    transactions: SegmentTransactions,
    before: dict[int, OpenTransaction],
    of_snapshot: Opened | None,
    *,
    every: bool,
) -> Step:
    """Merge a segment's transactions with the open ones before it; compare the result with the next snapshot."""
    border = place_of(number + 1)
    if transactions.missing is not None:
        undecided = [
            one
            for one in before.values()
            if of_snapshot is None or of_snapshot.get(one.producer_id) != one.first_offset
        ]
        still_open = {one.producer_id: one for one in before.values() if one not in undecided}
        new = [
            OpenTransaction(producer, first, border, number)
            for producer, first in (of_snapshot or {}).items()
            if producer not in still_open
        ]
        # with all transactions known it holds records back behind the border, too, and is not taken for a later one
        rows = open_rows(undecided, FOREVER if every else border)
        return Step(number, rows, [*still_open.values(), *new], undecided)
    ended, ends_in_it = _ended(number, transactions, before, every=every)
    rest = {producer: one for producer, one in before.items() if producer not in ends_in_it}
    if not transactions.has_positions:  # the snapshot behind it says what is open there
        begun = dict(
            zip(transactions.opened["producer_id"].tolist(), transactions.opened["first_offset"].tolist(), strict=True)
        )
        opened = {
            producer: rest[producer]
            if producer in rest and rest[producer].first_offset == first
            else OpenTransaction(producer, first, place_of(number), number)
            for producer, first in begun.items()
        }
        return Step(number, ended, list(opened.values()))
    opened = rest
    for producer, first, position in transactions.opened.tolist():
        if producer not in opened:
            opened[producer] = OpenTransaction(producer, first, place_of(number, position))
    if of_snapshot is not None:
        # what the snapshot does not name has ended; how is lost, to damage or to compaction, and holds nothing back
        lost = [one for producer, one in opened.items() if producer not in of_snapshot]
        ended = np.concatenate((ended, open_rows(lost, border, NONE)))
        opened = {
            producer: opened[producer]._replace(first_offset=first)
            if producer in opened
            else OpenTransaction(producer, first, border, number)
            for producer, first in of_snapshot.items()
        }
    return Step(number, ended, list(opened.values()))


def _ended(
    number: int, transactions: SegmentTransactions, before: dict[int, OpenTransaction], *, every: bool
) -> tuple[Joined, set[int]]:
    """Return the transactions that ended in a segment, and their producers."""
    rows = transactions.ended
    joined = np.empty(len(rows), JOINED_DTYPE)
    for name in ("producer_id", "first_offset", "marker_offset", "state"):
        joined[name] = rows[name]
    has_data = np.ones(len(rows), bool)
    if transactions.has_positions:
        joined["first_place"] = place_of(number) + rows["first_position"]
        joined["marker_place"] = place_of(number) + rows["marker_position"]
        has_data = rows["first_position"] >= 0
    else:
        joined["first_place"], joined["marker_place"] = place_of(number), place_of(number + 1) - 1
    ends_in_it = set()
    producers, first = np.unique(rows["producer_id"], return_index=True)
    for producer, at in zip(producers.tolist(), first.tolist(), strict=True):
        one = before.get(producer)
        if one is not None and (transactions.has_positions or rows["first_offset"][at] == one.first_offset):
            joined["first_offset"][at], joined["first_place"][at] = one.first_offset, one.place
            has_data[at] = True
            ends_in_it.add(producer)
    return joined[has_data if every else has_data & (joined["state"] == ABORTED)], ends_in_it


def open_rows(opened: Sequence[OpenTransaction], marker_place: int = FOREVER, marker_offset: int = FOREVER) -> Joined:
    """Return open transactions as rows; their records are hidden up to ``marker_place``."""
    rows = [(one.producer_id, one.first_offset, one.place, marker_offset, marker_place, OPEN) for one in opened]
    return np.array(rows, JOINED_DTYPE)
