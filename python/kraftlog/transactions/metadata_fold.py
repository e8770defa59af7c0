"""The state machine of metadata transactions (KIP-868), in one forward pass over the log.

Records between Begin and EndTransactionRecord become visible at End, all at once; those before an
AbortTransactionRecord never do. There is one transaction at a time. A misplaced marker (Begin inside a transaction, End
or Abort outside of one) is ignored, as in Kafka's loader, and reported.

The offsets of a Raft log have no gaps. If some are missing, a marker may be among them, and from there on it is unknown
whether a transaction is open. The state is known again at the next

* Begin: nothing was open before it;
* newer leader epoch, if its first data record ends no transaction: a new leader first aborts what is open;
* snapshot: nothing is open where one ends;
* End or Abort: a transaction was open before it.

In the first three cases a transaction that was open at the gap has ended in it. Its records up to the last gap are left
out, since its outcome is unknown; the records after the last gap are outside of transactions. In the last case all
records from the Begin on, or from the first gap since it was known that none was open, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.codec.metadata_markers import BEGIN_TRANSACTION
from kraftlog.transactions.joined_rows import joined
from kraftlog.transactions.metadata_columns import (
    FOREVER,
    MARKER_DTYPE,
    METADATA_TRANSACTION_DTYPE,
    UNKNOWN,
    Border,
    Markers,
    MetadataTransactions,
    Stretch,
    Totals,
    rows_between,
)
from kraftlog.transactions.producer import NONE, OPEN

_LEADER_CHANGE = CONTROL_TYPES.index("LEADER_CHANGE")


@dataclass
class Found:
    """The decisions of a stretch of the log, in the order of the log.

    Attributes
    ----------
    transactions : numpy.ndarray
        Ended transactions as ``METADATA_TRANSACTION_DTYPE``.
    begin_values, end_values : list of bytes or None
        Their marker records.
    gaps : list of tuple of int
        The first missing offset of each gap, and the first one after it.
    misplaced : numpy.ndarray
        Misplaced markers.
    since : list of int
        Begin offset of the transaction that was open at each of them; -1 for none.
    begun_before : numpy.ndarray
        Markers that end a transaction which began before the log.
    """

    transactions: MetadataTransactions = field(default_factory=lambda: np.empty(0, METADATA_TRANSACTION_DTYPE))
    begin_values: list[bytes | None] = field(default_factory=list)
    end_values: list[bytes | None] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    misplaced: Markers = field(default_factory=lambda: np.empty(0, MARKER_DTYPE))
    since: list[int] = field(default_factory=list)
    begun_before: Markers = field(default_factory=lambda: np.empty(0, MARKER_DTYPE))

    def add(self, rows: MetadataTransactions, begin: list[bytes | None], end: list[bytes | None]) -> None:
        """Append transactions."""
        self.transactions = joined(self.transactions, rows)
        self.begin_values += begin
        self.end_values += end


@dataclass
class _Begin:
    """A Begin without an End so far."""

    marker: Markers
    value: bytes | None

    @property
    def offset(self) -> int:
        return int(self.marker["offset"][0])


@dataclass
class _Doubt:
    """The state while it is unknown whether a transaction is open.

    Attributes
    ----------
    begin : _Begin or None
        Begin of the transaction that was open at the gap.
    since : Border
        Start of the records that may belong to a transaction.
    held, tail : Border
        End of the part before the last gap, and start of the part after it.
    epoch : int
        Epoch of the last data batch before the gap.
    known : list of int
        Offsets after ``tail`` where no transaction is open.
    least_epoch, leader_change : int
        Least epoch of the batches since the last gap, and the largest of their leader changes.
    """

    begin: _Begin | None
    since: Border
    held: Border
    tail: Border
    epoch: int
    known: list[int] = field(default_factory=list)
    least_epoch: int = FOREVER
    leader_change: int = NONE

    def has_seen_change_to(self, epoch: int) -> bool:
        """Whether the last gap contains no data batch of that epoch."""
        return self.least_epoch < epoch or self.leader_change >= epoch


class MetadataTransactionFold:
    """Transactions of a metadata log, stretch by stretch, in bounded memory: only an open one is kept.

    Parameters
    ----------
    start_offset : int, optional
        Start of the log; by default its first batch.
    begun_before : bool
        Whether it may start inside a transaction.
    nothing_open_at : callable, optional
        Returns offsets where no transaction is open: the ends of snapshots. Called on demand.
    """

    def __init__(
        self,
        *,
        start_offset: int | None = None,
        begun_before: bool = False,
        nothing_open_at: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        self._expected = start_offset
        self._nothing_open_at = nothing_open_at
        self._may_be_inside = begun_before
        self._start: Border | None = None  # of a log that may start inside of a transaction
        self._known: list[int] = []
        self._open: _Begin | None = None
        self._doubt: _Doubt | None = None
        self._totals = Totals()
        self._last = Border(NONE, 0, Totals())
        self._data_epoch = NONE
        self._is_cut = False
        self._step = Found()

    @property
    def open_since(self) -> int | None:
        """The offset of a Begin without an End so far; None without one."""
        begin = self._doubt.begin if self._doubt else self._open
        return None if begin is None else begin.offset

    @property
    def undecided(self) -> int | None:
        """The first place whose records are undecided; None if all are decided."""
        if self._doubt is not None:
            return self._doubt.since.place
        if self._open is not None:
            return int(self._open.marker["place"][0])
        return None if self._start is None else self._start.place

    def add(self, stretch: Stretch) -> Found:
        """Process the next stretch; return the decisions."""
        self._step = step = Found()
        count = len(stretch.headers)
        if not count:
            return step
        if self._may_be_inside:
            self._begin_inside(stretch)
        first = stretch.first if self._expected is None else self._expected
        outline = stretch.outline(self._totals, first)
        is_cut = np.zeros(count, bool) if stretch.cut is None else stretch.cut
        begin = 0
        if not outline.is_whole or self._is_cut or is_cut.any():
            begin = self._doubt_gaps(stretch, outline.markers, first, is_cut)
        self._go_on(stretch, outline.markers, begin, count)
        if outline.last_data >= 0:
            self._data_epoch = int(stretch.headers["partition_leader_epoch"][outline.last_data])
        self._last = outline.last
        self._totals = self._last.totals
        self._expected, self._is_cut = self._last.offset + 1, bool(is_cut[-1])
        return step

    def finish(self, end_offset: int = NONE) -> Found:
        """Return the transaction that is open at the end, if any.

        Parameters
        ----------
        end_offset : int
            End of the log by the name of its last segment, which may be empty.
        """
        self._step = Found()
        if self._expected is not None and end_offset > self._expected:
            self._step.gaps.append((self._expected, end_offset))
            self._doubt_from(Border(end_offset, self._last.place, self._totals))
            self._expected = end_offset
        elif self._is_cut and self._expected is not None:
            self._doubt_from(Border(self._expected, self._last.place, self._totals))
        doubt, begin = self._doubt, self._open
        if doubt is not None and self._expected in doubt.known:
            self._settle()
            doubt = None
        begin = doubt.begin if doubt else begin
        if begin is not None:
            rows = rows_between(begin.marker, self._last._replace(totals=self._totals).as_end())
            rows["state"], rows["last_offset"], rows["last_place"] = OPEN, FOREVER, FOREVER
            rows["is_whole"] = doubt is None
            self._step.add(rows, [begin.value], [None])
        return self._step

    def _begin_inside(self, stretch: Stretch) -> None:
        self._may_be_inside = False
        self._start = stretch.border(self._totals, 0)
        self._known = [at for at in self._nothing_open_at() if at >= self._start.offset]

    def _doubt_gaps(self, stretch: Stretch, markers: Markers, first: int, is_cut: npt.NDArray[np.bool_]) -> int:
        """Process the batches before the last gap; return the index of the first one after it."""
        expected = np.concatenate(([first], stretch.last[:-1] + 1))
        is_gap = stretch.base > expected
        begin = 0
        for gap in np.flatnonzero(is_gap | np.append(self._is_cut, is_cut[:-1])).tolist():
            self._go_on(stretch, markers, begin, gap)
            if is_gap[gap]:
                self._step.gaps.append((int(expected[gap]), int(stretch.base[gap])))
            if gap:
                self._leave(stretch, gap)
            self._doubt_from(stretch.border(self._totals, gap))
            begin = gap
        return begin

    def _leave(self, stretch: Stretch, end: int) -> None:
        """Note the counts before a batch, and the last data batch there."""
        data = int(stretch.last_data[end - 1])
        if data >= 0:
            self._data_epoch = int(stretch.epochs[data])
        totals = stretch.totals(self._totals, end)
        self._last = Border(int(stretch.last[end - 1]), int(stretch.places[end - 1]), totals)

    def _doubt_from(self, tail: Border) -> None:
        """Handle missing offsets before a batch."""
        doubt = self._doubt
        if doubt is None:
            since = tail
            if self._open is not None:
                marker = self._open.marker[0]
                totals = Totals(int(marker["records"]), int(marker["batches"]) - 1, int(marker["bytes_before"]))
                since = Border(int(marker["offset"]), int(marker["place"]), totals)
            elif self._start is not None:
                since = self._start
            doubt = self._doubt = _Doubt(self._open, since, self._last, tail, self._data_epoch)
            self._open = self._start = None
        doubt.held, doubt.tail, doubt.least_epoch, doubt.leader_change = self._last, tail, FOREVER, NONE
        nothing_open_at = [at for at in self._nothing_open_at() if at > doubt.held.offset]
        doubt.known = [at for at in nothing_open_at if at > tail.offset]
        if tail.offset in nothing_open_at:
            self._settle()
        elif len(nothing_open_at) > len(doubt.known):
            self._settle(again=True)

    def _settle(self, *, again: bool = False) -> None:
        """Handle a point without an open transaction: one that was open before the gaps has ended in them."""
        doubt = self._doubt
        assert doubt is not None
        if doubt.begin is not None:
            self._add_unknown(doubt.begin, doubt.since, doubt.held.as_end(), doubt.held.offset, None)
        doubt.begin, doubt.since = None, doubt.tail
        if not again:
            self._doubt = None

    def _add_unknown(
        self, begin: _Begin | None, since: Border, end: Markers, last_offset: int, end_value: bytes | None
    ) -> None:
        rows = rows_between(since.as_start() if begin is None else begin.marker, end)
        rows["state"], rows["is_whole"] = UNKNOWN, False
        rows["first_offset"], rows["last_offset"] = since.offset, last_offset
        self._step.add(rows, [None if begin is None else begin.value], [end_value])

    def _go_on(self, stretch: Stretch, markers: Markers, begin: int, end: int) -> None:
        """Process batches [begin, end) of a stretch without missing offsets."""
        if begin == end:
            return
        low, high = (int(at) for at in np.searchsorted(stretch.batch_of, (begin, end)))
        if self._doubt is not None:
            low = self._resolve(stretch, markers, begin, end, low, high)
        if self._start is not None and self._known:
            ahead = int(stretch.offsets[low]) if low < high else int(stretch.last[end - 1]) + 1
            if self._known[0] <= ahead:
                self._start = None
        if low < high:
            self._match(markers[low:high], stretch.values[low:high])

    def _resolve(self, stretch: Stretch, markers: Markers, begin: int, end: int, low: int, high: int) -> int:
        """Find the point where the state is known again; return the index of the first remaining marker."""
        epochs, is_data = stretch.epochs[begin:end], stretch.is_data[begin:end]
        is_change = ~is_data & (stretch.headers["control_type"][begin:end] == _LEADER_CHANGE)
        marker = markers[low] if low < high else None
        at_marker = FOREVER if marker is None else int(marker["offset"])
        while (doubt := self._doubt) is not None:
            newer = np.flatnonzero(is_data & (epochs > doubt.epoch))
            first = int(newer[0]) if len(newer) else None
            at_newer = FOREVER if first is None else int(stretch.base[begin + first])
            if marker is not None and at_newer == at_marker and marker["api_key"] != BEGIN_TRANSACTION:
                at_newer = FOREVER  # what the new leader ends was open before
            at_known = min([at for at in doubt.known if at <= stretch.last[end - 1] + 1], default=FOREVER)
            if at_known < FOREVER and at_known <= min(at_newer, at_marker):
                self._settle()
            elif first is not None and at_newer <= at_marker and at_newer < FOREVER:
                self._note_epochs(epochs[:first], is_change[:first])
                epoch = int(epochs[first])
                self._settle(again=not doubt.has_seen_change_to(epoch))
                doubt.epoch = epoch
            elif marker is None:
                self._note_epochs(epochs, is_change)
                break
            elif marker["api_key"] == BEGIN_TRANSACTION:
                self._settle()
            else:
                row = markers[low : low + 1]
                self._add_unknown(doubt.begin, doubt.since, row, at_marker, stretch.values[low])
                self._doubt = None
                return low + 1
        return low

    def _note_epochs(self, epochs: np.ndarray, is_change: np.ndarray) -> None:
        doubt = self._doubt
        assert doubt is not None
        doubt.least_epoch = min(doubt.least_epoch, int(epochs.min(initial=FOREVER)))
        doubt.leader_change = max(doubt.leader_change, int(epochs[is_change].max(initial=NONE)))

    def _match(self, markers: Markers, values: tuple[bytes | None, ...]) -> None:
        """Match markers without missing offsets in between, from a known state before them."""
        if self._open is not None:
            markers, values = joined(self._open.marker, markers), (self._open.value, *values)
        is_begin = markers["api_key"] == BEGIN_TRANSACTION
        before = np.append(False, is_begin[:-1])  # whether a transaction is open before each marker
        if self._start is not None:
            before[0] = not is_begin[0]
        legal = is_begin != before
        begins, ends = np.flatnonzero(legal & is_begin), np.flatnonzero(legal & ~is_begin)
        begin_at = np.append(NONE, begins)[np.searchsorted(begins, ends)]
        at_start = markers if self._start is None else joined(markers, self._start.as_start())  # index -1
        if len(ends):
            self._step.add(
                rows_between(at_start[begin_at], markers[ends]),
                [None if at < 0 else values[at] for at in begin_at.tolist()],
                [values[at] for at in ends.tolist()],
            )
            self._step.begun_before = joined(self._step.begun_before, markers[ends[begin_at < 0]])
        misplaced = np.flatnonzero(~legal)
        if len(misplaced):
            self._step.misplaced = joined(self._step.misplaced, markers[misplaced])
            before_each = np.append(NONE, markers["offset"][begins])[np.searchsorted(begins, misplaced)]
            self._step.since += np.where(is_begin[misplaced], before_each, NONE).tolist()
        self._start = None
        last = int(begins[-1]) if is_begin[-1] else None
        self._open = None if last is None else _Begin(markers[last : last + 1].copy(), values[last])
