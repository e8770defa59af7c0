"""Columns of transactions of the metadata log (KIP-868): its markers, and a row for each transaction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.visibility import outline, stretch
from kraftlog.codec.headers import Headers
from kraftlog.codec.markers import MarkerBlock, RawOutline
from kraftlog.codec.metadata_markers import ABORT_TRANSACTION
from kraftlog.transactions.places import PLACE_BITS
from kraftlog.transactions.producer import ABORTED, COMMITTED, NONE

UNKNOWN = 3  # a state, besides those of producers' transactions: offsets are missing that would tell

MARKER_DTYPE = np.dtype(
    [
        ("offset", "i8"),  # -1: of the start or end of a stretch, where there is no marker
        ("place", "i8"),  # of its batch: number of the segment, then byte
        ("base_offset", "i8"),
        ("api_key", "i8"),
        ("partition_leader_epoch", "i8"),
        ("records", "i8"),  # before it, markers not counted
        ("batches", "i8"),  # up to its own, control batches not counted
        ("bytes_before", "i8"),  # of its batch
        ("bytes_through", "i8"),
    ]
)

METADATA_TRANSACTION_DTYPE = np.dtype(
    [
        ("begin_offset", "i8"),  # -1: before this log, or missing
        ("end_offset", "i8"),  # -1: open, or missing
        ("begin_epoch", "i8"),
        ("end_epoch", "i8"),
        ("records_count", "i8"),
        ("batches", "i8"),
        ("size_in_bytes", "i8"),
        ("first_offset", "i8"),  # records from here on are its own; -1: all from the start of the log on
        ("last_offset", "i8"),  # the last one that is its own
        ("last_place", "i8"),  # of the batch of that
        ("state", "i1"),
        ("is_whole", "?"),  # no offset is missing
    ]
)
Ints = npt.NDArray[np.int64]
Markers = npt.NDArray[np.void]
MetadataTransactions = npt.NDArray[np.void]
FOREVER = np.iinfo(np.int64).max


class Totals(NamedTuple):
    """Counts before a batch: records without markers, data batches and their bytes."""

    records: int = 0
    batches: int = 0
    size: int = 0


class Border(NamedTuple):
    """The start or end of a stretch of the log: an offset, the place of its batch, and counts before it."""

    offset: int
    place: int
    totals: Totals

    def as_end(self) -> Markers:
        """Return a row for a missing End."""
        row = np.zeros(1, MARKER_DTYPE)
        row["offset"] = row["partition_leader_epoch"] = NONE
        row["place"], row["records"], row["batches"] = self.place, self.totals.records, self.totals.batches
        row["bytes_before"] = row["bytes_through"] = self.totals.size
        return row

    def as_start(self) -> Markers:
        """Return a row for a missing Begin."""
        row = self.as_end()
        row["batches"] += 1
        return row


class _Columns(NamedTuple):
    """What ``native/c/metadata/stretch.h`` makes of headers."""

    base: Ints
    last: Ints
    epochs: Ints
    places: Ints
    records: Ints
    data_batches: Ints
    sizes: Ints
    last_data: Ints
    is_data: npt.NDArray[np.bool_]


class Outline(NamedTuple):
    """The outline of a stretch.

    Attributes
    ----------
    markers : numpy.ndarray
        Markers as ``MARKER_DTYPE``.
    last : Border
        Its last offset, the place of its last batch, and the counts before its end.
    last_data : int
        The index of the last data batch; -1 for none.
    is_whole, is_rising : bool
        Whether no offset is missing, and whether none is repeated.
    """

    markers: Markers
    last: Border
    last_data: int
    is_whole: bool
    is_rising: bool


@dataclass(frozen=True)
class Stretch:
    """Consecutive batches of a metadata log, and their transaction markers.

    Attributes
    ----------
    headers : numpy.ndarray
        Headers of all readable batches.
    batch_of, offsets, api_keys : numpy.ndarray of int64
        Batch index, offset and type of each marker.
    values : sequence of bytes
        Values of the markers; None if not needed.
    file : int
        Number of the segment.
    cut : numpy.ndarray of bool, optional
        Batches whose last records cannot be read.
    found : tuple, optional
        The result of ``outline`` of the native module for these headers and markers, if known.
    """

    headers: Headers
    batch_of: Ints
    offsets: Ints
    api_keys: Ints
    values: tuple[bytes | None, ...]
    file: int = 0
    cut: npt.NDArray[np.bool_] | None = None
    found: RawOutline | None = None

    @classmethod
    def of(cls, block: MarkerBlock, file: int = 0) -> Stretch:
        """Return the batches and markers of a block of the segment with this number."""
        return cls(*block[:5], file, block.cut, block.outline)

    @cached_property
    def _columns(self) -> _Columns:
        return _Columns(*stretch(self._cells, self.file << PLACE_BITS))

    @property
    def _cells(self) -> npt.NDArray[np.uint8]:
        return np.ascontiguousarray(self.headers).view(np.uint8)

    @property
    def first(self) -> int:
        """The base offset of the first batch."""
        return int(self.headers["base_offset"][0])

    @property
    def base(self) -> Ints:
        """Base offsets of the batches."""
        return self._columns.base

    @property
    def last(self) -> Ints:
        """Last offsets of the batches."""
        return self._columns.last

    @property
    def epochs(self) -> Ints:
        """Leader epochs of the batches."""
        return self._columns.epochs

    @property
    def is_data(self) -> npt.NDArray[np.bool_]:
        """Whether each batch is a data batch."""
        return self._columns.is_data

    @property
    def last_data(self) -> Ints:
        """The index of the last data batch up to each; -1 for none."""
        return self._columns.last_data

    @property
    def places(self) -> Ints:
        """The places of the batches."""
        return self._columns.places

    @property
    def sums(self) -> tuple[Ints, Ints, Ints]:
        """The records, data batches and bytes up to each batch; markers are records here."""
        return self._columns.records, self._columns.data_batches, self._columns.sizes

    def totals(self, before: Totals, batches: int) -> Totals:
        """Return the counts before a batch, from the counts before the first one."""
        if batches == 0:
            return before
        records, data, size = (int(one[batches - 1]) for one in self.sums)
        markers = int(np.searchsorted(self.batch_of, batches))
        return Totals(before.records + records - markers, before.batches + data, before.size + size)

    def outline(self, before: Totals, expected: int) -> Outline:
        """Return the outline of batches, from the counts before the first one and its expected offset."""
        place = self.file << PLACE_BITS
        raw_outline = self.found
        if raw_outline is None:
            raw_outline = outline(self._cells, self.batch_of, self.offsets, self.api_keys)
        rows, (records, batches, size), last, last_data, is_whole, is_rising = raw_outline
        behind = Totals(before.records + records, before.batches + batches, before.size + size)
        rows = rows + np.array([0, place, 0, 0, 0, *before, before.size])
        return Outline(
            rows.view(MARKER_DTYPE)[:, 0],
            Border(last, place + int(self.headers["position"][-1]), behind),
            last_data,
            is_whole and self.first <= expected,
            is_rising and self.first >= expected,
        )

    def border(self, before: Totals, batch: int) -> Border:
        """Return the start of a batch as a border."""
        return Border(int(self.base[batch]), int(self.places[batch]), self.totals(before, batch))


def rows_between(begin: Markers, end: Markers) -> MetadataTransactions:
    """Return the transactions between pairs of markers; the second one is their outcome."""
    rows = np.empty(len(begin), METADATA_TRANSACTION_DTYPE)
    rows["begin_offset"], rows["end_offset"] = begin["offset"], end["offset"]
    rows["begin_epoch"], rows["end_epoch"] = begin["partition_leader_epoch"], end["partition_leader_epoch"]
    rows["records_count"] = end["records"] - begin["records"]
    rows["batches"] = end["batches"] - begin["batches"] + 1
    rows["size_in_bytes"] = end["bytes_through"] - begin["bytes_before"]
    rows["first_offset"], rows["last_offset"], rows["last_place"] = begin["offset"], end["offset"], end["place"]
    rows["state"] = np.where(end["api_key"] == ABORT_TRANSACTION, ABORTED, COMMITTED)
    rows["is_whole"] = True
    return rows
