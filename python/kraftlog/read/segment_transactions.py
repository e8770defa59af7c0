"""The transactions of one segment: those that ended in it, and those that it opened.

They are determined from the headers of the segment, without the log before it, or from the files next to it.
``kraftlog.read.transaction_map`` merges them along the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kraftlog._native.lookahead import ENDED_DTYPE, OPEN_DTYPE, Lookahead
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import ReadableFile
from kraftlog.disk.in_order import in_order
from kraftlog.errors import Fault
from kraftlog.layout.index_files import read_index
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import open_producers_before
from kraftlog.read.segment_reader import as_listed, located
from kraftlog.transactions.producer import ABORTED

WINDOW_BYTES = 64 << 20  # of headers between two looks at what has ended
FILES_AT_ONCE = 16

OPEN_FILES = threading.BoundedSemaphore(FILES_AT_ONCE)  # of all partitions that are planned at the same time

Rows = npt.NDArray[np.void]
Opened = dict[int, int]
"""First offset of the open transaction of each producer."""


@dataclass(frozen=True)
class SegmentTransactions:
    """The transactions of a segment.

    Attributes
    ----------
    ended : numpy.ndarray
        Rows of ``ENDED_DTYPE``, in the order of the markers: aborted transactions, and the first marker of each
        producer, which may end an earlier transaction; all transactions if requested.
    opened : numpy.ndarray
        Rows of ``OPEN_DTYPE``: transactions that began in the segment and are open at its end.
    has_positions : bool
        False if they come from the files next to the segment: positions are then -1, and committed transactions are not
        included.
    cuts : tuple of int
        Positions at which the segment may be cut into ranges.
    missing : Fault or None
        The fault of an unreadable segment.
    damaged_markers : int
        Number of markers in its headers whose checksum does not match; they end no transaction.
    """

    ended: Rows = field(default_factory=lambda: np.empty(0, ENDED_DTYPE))
    opened: Rows = field(default_factory=lambda: np.empty(0, OPEN_DTYPE))
    has_positions: bool = True
    cuts: tuple[int, ...] = ()
    missing: Fault | None = None
    damaged_markers: int = 0


@dataclass(frozen=True)
class HeaderPass:
    """A planned pass over the headers of a segment, to be run by any thread or process.

    Attributes
    ----------
    segment : Segment
        Read up to its size at the listing.
    every : bool
        Whether to include committed transactions.
    cut_bytes : int or None
        Distance of cut positions in bytes.
    confirmed : frozenset of tuple
        Producer id and first offset of the transactions in the snapshot of the next segment.
    """

    segment: Segment
    every: bool = False
    cut_bytes: int | None = None
    confirmed: frozenset[tuple[int, int]] = frozenset()


Fold = Callable[[Sequence[HeaderPass]], Iterable[SegmentTransactions]]
"""Makes passes over headers, and returns what they found in the same order."""


def in_threads(passes: Sequence[HeaderPass]) -> Iterator[SegmentTransactions]:
    """Run passes over the headers of segments in parallel."""
    if len(passes) == 1:
        return iter([run(passes[0])])
    return in_order(run, passes, FILES_AT_ONCE)


def run(one: HeaderPass) -> SegmentTransactions:
    """Run a pass over the headers of a segment."""
    with OPEN_FILES:
        try:
            with as_listed(one.segment) as file:
                return _from_headers(file, one)
        except OSError as error:
            return SegmentTransactions(missing=unreadable(one.segment, error))


def unreadable(segment: Segment, error: OSError) -> Fault:
    """Return the fault of an unreadable segment."""
    return located(segment, Fault("unreadable_file", str(error.strerror or error), size_in_bytes=segment.size))


def _from_headers(file: ReadableFile, one: HeaderPass) -> SegmentTransactions:
    """Return the transactions by the headers of a segment.

    A damaged header may appear to open a transaction, which would hide all later records. If a transaction that is open
    at the end starts with a bad batch, and no snapshot contains it, the scan is repeated with verified crcs.
    """
    transactions = _walk(file, one, check_all=False)
    for row in transactions.opened:
        is_confirmed = (int(row["producer_id"]), int(row["first_offset"])) in one.confirmed
        if not is_confirmed and not _is_sound(file, int(row["first_position"])):
            return _walk(file, one, check_all=True)
    return transactions


def _walk(file: ReadableFile, one: HeaderPass, *, check_all: bool) -> SegmentTransactions:
    ahead = Lookahead(file, check_all)
    size, step = file.size, one.cut_bytes or WINDOW_BYTES
    ended, cuts, goes_on = np.empty(0, ENDED_DTYPE), [], size > 0
    while goes_on:
        goes_on, rows = ahead.run(min(size, ahead.position + step))
        ended = _with(ended, rows, one)
        if goes_on and one.cut_bytes:
            cuts.append(ahead.position)
    return SegmentTransactions(ended, ahead.open(), cuts=tuple(cuts), damaged_markers=ahead.damaged_markers)


def _with(ended: Rows, rows: Rows, one: HeaderPass) -> Rows:
    """Add rows, except committed transactions that began in the segment, unless they may end an earlier one."""
    if not len(rows):
        return ended
    ended = np.concatenate((ended, rows))
    if one.every:
        return ended
    keep = ended["state"] == ABORTED
    keep[np.unique(ended["producer_id"], return_index=True)[1]] = True
    return np.asarray(ended[keep])


def _is_sound(file: ReadableFile, position: int) -> bool:
    """Whether the crc of the batch at a position matches."""
    headers = next(HeaderScan(file, position, position + 1, check_crc=True).headers(), None)
    return headers is not None and bool(headers["crc_ok"].all())


def read_opened(segment: Segment, faults: list[Fault]) -> Opened | None:
    """Return the transactions that are open at the start of a segment, from its ``.snapshot``; none before offset 0.

    Returns
    -------
    dict or None
        None if there is no snapshot, or if it cannot be read, which is in ``faults``.
    """
    opened = open_producers_before(segment, faults)
    return None if opened is None else {one.producer_id: one.current_transaction_first_offset for one in opened}


def from_files(segment: Segment, end_offset: int, before: Opened, behind: Opened) -> SegmentTransactions | None:
    """Return the transactions by the files next to a closed segment.

    Parameters
    ----------
    segment : Segment
    end_offset : int
        Start of the next segment.
    before, behind : dict
        Open transactions at its start and at the start of the next segment, from their snapshots.

    Returns
    -------
    SegmentTransactions or None
        None if a file is missing or damaged, contradicts the snapshots, or may be incomplete after a crash: headers
        must then be read.
    """
    # a .txnindex is there only when it has entries; an .index always
    if segment.settled_offset < end_offset or "index" not in segment.beside:
        return None
    base_offset, path = segment.base_offset or 0, segment.beside.get("txnindex")
    ended = np.empty(0, ENDED_DTYPE)
    if path is not None:
        faults: list[Fault] = []
        try:
            entries = read_index(path, "txnindex", base_offset, faults)
        except OSError:
            return None
        if faults or (entries["last_offset"] >= end_offset).any():
            return None
        ended = _aborted(entries)
        begun = ended[ended["first_offset"] < base_offset]
        if any(before.get(int(row["producer_id"])) != int(row["first_offset"]) for row in begun):
            return None
    opened = np.array([(producer, first, -1) for producer, first in behind.items()], OPEN_DTYPE)
    return SegmentTransactions(ended, opened, has_positions=False)


def _aborted(entries: dict[str, npt.NDArray[np.int64]]) -> Rows:
    ended = np.empty(len(entries["offset"]), ENDED_DTYPE)
    ended["producer_id"], ended["first_offset"] = entries["producer_id"], entries["offset"]
    ended["marker_offset"], ended["state"] = entries["last_offset"], ABORTED
    ended["first_position"] = ended["marker_position"] = -1
    return np.sort(ended, order="marker_offset")
