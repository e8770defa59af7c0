"""Transactions of the metadata log (KIP-868), from its markers and batch headers.

Records between Begin and EndTransactionRecord become visible at End, all at once; those that an
AbortTransactionRecord ends never do. There is one transaction at a time. A marker that is out of place (Begin inside a
transaction, End or Abort outside of one) is ignored, as Kafka's loader ignores it, and reported.

What is known of a stretch of log is its markers, with counts from the start of the stretch. ``Boundaries.join`` puts
neighbouring stretches together; it is associative, so that a log can be scanned in parts, cut anywhere between batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, LOG_OVERHEAD
from kraftlog.codec.headers import Headers
from kraftlog.codec.metadata_markers import ABORT_TRANSACTION, BEGIN_TRANSACTION
from kraftlog.transactions.producer import ABORTED, COMMITTED, NONE, OPEN

MARKER_DTYPE = np.dtype(
    [
        ("offset", "i8"),
        ("position", "i8"),  # of its batch, in its file
        ("base_offset", "i8"),
        ("api_key", "i8"),
        ("partition_leader_epoch", "i8"),
        ("record_number", "i8"),  # counted from the start of the stretch, as are the next three
        ("batch_number", "i8"),
        ("bytes_before", "i8"),  # of its batch
        ("bytes_through", "i8"),
    ]
)
_COUNTS = ("record_number", "batch_number", "bytes_before", "bytes_through")

METADATA_TRANSACTION_DTYPE = np.dtype(
    [
        ("begin_offset", "i8"),  # -1: before this log
        ("end_offset", "i8"),  # -1: open
        ("begin_epoch", "i8"),
        ("end_epoch", "i8"),
        ("records_count", "i8"),
        ("batches", "i8"),
        ("size_in_bytes", "i8"),
        ("state", "i1"),
    ]
)
Markers = npt.NDArray[np.void]
MetadataTransactions = npt.NDArray[np.void]


@dataclass(frozen=True)
class Boundaries:
    """Markers of a stretch of metadata log, and how much lies in it.

    Attributes
    ----------
    markers : numpy.ndarray
        Of ``MARKER_DTYPE``, in the order of the log.
    values : list of bytes
        The marker records themselves, one for each marker.
    records, batches, size : int
        Of the whole stretch; control batches are not counted.
    """

    markers: Markers = field(default_factory=lambda: np.empty(0, MARKER_DTYPE))
    values: tuple[bytes, ...] = ()
    records: int = 0
    batches: int = 0
    size: int = 0

    @classmethod
    def of_batches(
        cls,
        headers: Headers,
        offsets: npt.NDArray[np.int64],
        api_keys: npt.NDArray[np.int64],
        values: tuple[bytes, ...],
    ) -> Boundaries:
        """Return what batches hold.

        Parameters
        ----------
        headers : numpy.ndarray
            Of all batches of the stretch; ``rows`` says how many markers each one has.
        offsets, api_keys : numpy.ndarray
            Of the markers.
        values : tuple of bytes
            Of the markers.
        """
        is_data = headers["attributes"] & CONTROL_BIT == 0
        records = np.cumsum(np.where(is_data, headers["records_count"].clip(min=0), 0), dtype=np.int64)
        batches = np.cumsum(is_data, dtype=np.int64)
        sizes = np.where(is_data, headers["batch_length"].astype(np.int64) + LOG_OVERHEAD, 0)
        through = np.cumsum(sizes)
        total = (int(records[-1]), int(batches[-1]), int(through[-1])) if len(headers) else (0, 0, 0)
        at = np.repeat(np.arange(len(headers)), headers["rows"])
        markers = np.empty(len(at), MARKER_DTYPE)
        markers["offset"] = offsets
        markers["api_key"] = api_keys
        for name in ("position", "base_offset", "partition_leader_epoch"):
            markers[name] = headers[name][at]
        before = records[at] - headers["records_count"][at]
        markers["record_number"] = before + offsets - headers["base_offset"][at]
        markers["batch_number"] = batches[at]
        markers["bytes_before"] = through[at] - sizes[at]
        markers["bytes_through"] = through[at]
        return cls(markers, values, *total)

    def join(self, behind: Boundaries) -> Boundaries:
        """Return the boundaries of this stretch and the one behind it."""
        moved = behind.markers.copy()
        for name, by in zip(_COUNTS, (self.records, self.batches, self.size, self.size), strict=True):
            moved[name] += by
        return Boundaries(
            np.concatenate((self.markers, moved)),
            self.values + behind.values,
            self.records + behind.records,
            self.batches + behind.batches,
            self.size + behind.size,
        )


@dataclass(frozen=True)
class Resolved:
    """Transactions of a stretch.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``METADATA_TRANSACTION_DTYPE``, in the order of the log.
    begin_at, end_at : numpy.ndarray
        Indices of their markers; -1 where there is none.
    illegal : numpy.ndarray
        Indices of the markers that are out of place.
    """

    transactions: MetadataTransactions
    begin_at: npt.NDArray[np.intp]
    end_at: npt.NDArray[np.intp]
    illegal: npt.NDArray[np.intp]

    @classmethod
    def all_illegal(cls, markers: int) -> Resolved:
        """Return what becomes of markers where none may be, as in a snapshot."""
        none = np.empty(0, np.intp)
        return cls(np.empty(0, METADATA_TRANSACTION_DTYPE), none, none, np.arange(markers))


def resolve(found: Boundaries, *, begun_before: bool = False) -> Resolved:
    """Match the markers of a stretch.

    Parameters
    ----------
    found : Boundaries
    begun_before : bool
        Whether the stretch may start inside a transaction: an End or Abort that comes first is then in place.
    """
    markers = found.markers
    is_begin = markers["api_key"] == BEGIN_TRANSACTION
    before = np.append(False, is_begin[:-1])  # whether a transaction is open before each marker
    if begun_before and len(markers):
        before[0] = not is_begin[0]
    legal = is_begin != before
    end_at = np.flatnonzero(legal & ~is_begin)
    begins = np.flatnonzero(legal & is_begin)
    begin_at = np.append(NONE, begins)[np.searchsorted(begins, end_at)]
    if len(markers) and is_begin[-1]:
        begin_at, end_at = np.append(begin_at, begins[-1]), np.append(end_at, NONE)
    return Resolved(_transactions(found, begin_at, end_at), begin_at, end_at, np.flatnonzero(~legal))


def _transactions(
    found: Boundaries, begin_at: npt.NDArray[np.intp], end_at: npt.NDArray[np.intp]
) -> MetadataTransactions:
    """Return a row for each pair of markers; where one is missing the stretch's own start or end takes its place."""
    beyond = np.zeros(2, MARKER_DTYPE)  # indices -2 and -1: the end, then the start of the stretch
    beyond["offset"] = beyond["partition_leader_epoch"] = NONE
    beyond[0]["record_number"], beyond[1]["record_number"] = found.records, NONE
    beyond[0]["batch_number"], beyond[1]["batch_number"] = found.batches, 1
    beyond[0]["bytes_through"] = found.size
    markers = np.concatenate((found.markers, beyond))
    begin, end = markers[begin_at], markers[np.where(end_at == NONE, -2, end_at)]
    rows = np.empty(len(begin_at), METADATA_TRANSACTION_DTYPE)
    rows["begin_offset"], rows["end_offset"] = begin["offset"], end["offset"]
    rows["begin_epoch"], rows["end_epoch"] = begin["partition_leader_epoch"], end["partition_leader_epoch"]
    between = np.where(end_at == NONE, len(found.markers), end_at) - begin_at - 1  # markers out of place
    rows["records_count"] = end["record_number"] - begin["record_number"] - 1 - between
    rows["batches"] = end["batch_number"] - begin["batch_number"] + 1
    rows["size_in_bytes"] = end["bytes_through"] - begin["bytes_before"]
    rows["state"] = np.select([end_at == NONE, end["api_key"] == ABORT_TRANSACTION], [OPEN, ABORTED], COMMITTED)
    return rows


class MetadataTransactionFold:
    """Transactions of a metadata log as its stretches come, in bounded memory: only an open one is kept.

    Parameters
    ----------
    begun_before : bool
        Whether the log may start inside a transaction.
    """

    def __init__(self, *, begun_before: bool = False) -> None:
        self._begun_before = begun_before
        self._pending = Boundaries()

    def add(self, stretch: Boundaries) -> tuple[Boundaries, Resolved]:
        """Take the next stretch; returns markers and the transactions that ended in it, and keeps an open one."""
        joined = self._pending.join(stretch)
        resolved = resolve(joined, begun_before=self._begun_before)
        if len(joined.markers):
            self._begun_before = False
        is_open = resolved.end_at == NONE
        kept = resolved.begin_at[is_open]
        begins = joined.markers[kept]
        begins["record_number"] += len(joined.markers) - kept - 1  # markers that are out of place are no records
        self._pending = Boundaries(
            begins,
            tuple(joined.values[at] for at in kept.tolist()),
            joined.records,
            joined.batches,
            joined.size,
        )
        ended = ~is_open
        transactions, begin_at, end_at = resolved.transactions[ended], resolved.begin_at[ended], resolved.end_at[ended]
        return joined, Resolved(transactions, begin_at, end_at, resolved.illegal)

    def finish(self) -> tuple[Boundaries, Resolved]:
        """Return the transaction that is open at the end, if there is one."""
        return self._pending, resolve(self._pending)
