"""Transactions of producers, from batch headers.

A transaction of a producer in one partition is its transactional batches up to its next marker, a control batch of type
ABORT or COMMIT. Markers are matched by producer id: since transaction version 2 they carry the epoch of the data plus
one, and a batch after its marker belongs to the producer's next transaction.

The fold works on parts of transactions. A batch is such a part, and so is the state of a transaction after any stretch
of log; ``join`` combines consecutive parts. It is associative, so that a log can be cut anywhere, folded piece by piece
and joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, DELETE_HORIZON_BIT, LOG_OVERHEAD, TRANSACTIONAL_BIT
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.transactions.joined_rows import joined

ABORTED, COMMITTED, OPEN = 0, 1, 2  # the first two are the control types of the markers
STATES = ["aborted", "committed", "open"]
NONE = -1

TRANSACTION_DTYPE = np.dtype(
    [
        ("producer_id", "i8"),
        ("first_offset", "i8"),  # -1: no data
        ("last_offset", "i8"),  # of the data
        ("marker_offset", "i8"),  # -1: open
        ("records_count", "i8"),
        ("batches", "i8"),
        ("size_in_bytes", "i8"),
        ("start_timestamp", "i8"),
        ("end_timestamp", "i8"),  # of the marker
        ("last_timestamp", "i8"),  # of the data
        ("coordinator_epoch", "i4"),
        ("producer_epoch", "i2"),
        ("marker_epoch", "i2"),
        ("state", "i1"),
    ]
)
Transactions = npt.NDArray[np.void]

_NO_TRANSACTIONS = np.empty(0, TRANSACTION_DTYPE)
_SUMS = ("records_count", "batches", "size_in_bytes")
_OF_MARKER = ("marker_offset", "end_timestamp", "coordinator_epoch", "marker_epoch", "state")
_OF_FIRST = ("producer_id", "first_offset", "start_timestamp", "producer_epoch")
_NARROW = 1 << 16  # NumPy sorts 16-bit keys in linear time


def of_batches(headers: Headers) -> Transactions:
    """Return a part of a transaction for each transactional data batch and each marker, in the order of the log."""
    attributes = headers["attributes"]
    has_producer = (headers["magic"] >= 2) & (headers["producer_id"] >= 0)
    is_control = attributes & CONTROL_BIT != 0
    is_marker = is_control & ((headers["control_type"] == ABORTED) | (headers["control_type"] == COMMITTED))
    is_data = ~is_control & (attributes & TRANSACTIONAL_BIT != 0)
    is_sound = headers["crc_ok"] != 0
    chosen = headers[has_producer & (is_marker | is_data) & is_sound]
    if not len(chosen):
        return _NO_TRANSACTIONS
    data = chosen["attributes"] & CONTROL_BIT == 0
    parts = np.empty(len(chosen), TRANSACTION_DTYPE)
    parts["producer_id"] = chosen["producer_id"]
    parts["first_offset"] = np.where(data, chosen["base_offset"], NONE)
    parts["last_offset"] = np.where(data, last_offsets(chosen), NONE)
    parts["marker_offset"] = np.where(data, NONE, chosen["base_offset"])
    parts["records_count"] = np.where(data, chosen["records_count"].clip(min=0), 0)
    parts["batches"] = data
    parts["size_in_bytes"] = np.where(data, chosen["batch_length"].astype(np.int64) + LOG_OVERHEAD, 0)
    # in cleaned batches the base timestamp is a delete horizon (KIP-534)
    has_horizon = chosen["attributes"] & DELETE_HORIZON_BIT != 0
    first_timestamp = np.where(has_horizon, chosen["max_timestamp"], chosen["base_timestamp"])
    parts["start_timestamp"] = np.where(data, first_timestamp, NONE)
    parts["end_timestamp"] = np.where(data, NONE, chosen["max_timestamp"])
    parts["last_timestamp"] = np.where(data, chosen["max_timestamp"], NONE)
    parts["coordinator_epoch"] = chosen["coordinator_epoch"]
    parts["producer_epoch"] = np.where(data, chosen["producer_epoch"], NONE)
    parts["marker_epoch"] = np.where(data, NONE, chosen["producer_epoch"])
    parts["state"] = np.where(data, OPEN, chosen["control_type"])
    return parts


def join(parts: Transactions) -> Transactions:
    """Combine parts in the order of the log: a producer's parts up to its next marker become one.

    Returns
    -------
    numpy.ndarray
        Rows of ``TRANSACTION_DTYPE``: ended transactions in the order of their markers, then open ones by first offset.
    """
    if len(parts) < 2:
        return parts
    order = by_producer(parts["producer_id"])
    rows = parts[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (rows["producer_id"][1:] != rows["producer_id"][:-1]) | (rows["state"][:-1] != OPEN)
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(rows)) - 1
    whole = np.empty(len(first), TRANSACTION_DTYPE)
    for name in _OF_FIRST:
        whole[name] = rows[name][first]
    for name in _OF_MARKER:
        whole[name] = rows[name][last]
    for name in _SUMS:
        whole[name] = np.add.reduceat(rows[name], first)
    for name in ("last_offset", "last_timestamp"):
        whole[name] = np.maximum.reduceat(rows[name], first)
    is_open = whole["state"] == OPEN
    return whole[np.lexsort((np.where(is_open, whole["first_offset"], whole["marker_offset"]), is_open))]


def by_producer(producer_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return a stable order by producer id."""
    least = producer_ids.min()
    if producer_ids.max() - least < _NARROW:
        return np.argsort((producer_ids - least).astype(np.uint16), kind="stable")
    return np.argsort(producer_ids, kind="stable")


class TransactionFold:
    """Transactions of one partition, header by header, in bounded memory: only open ones are kept.

    Parameters
    ----------
    opened : numpy.ndarray, optional
        Open transactions before the first header, from an earlier stretch or a producer snapshot.

    Attributes
    ----------
    open : numpy.ndarray
        Open transactions as ``TRANSACTION_DTYPE``, by first offset.
    """

    def __init__(self, opened: Transactions = _NO_TRANSACTIONS) -> None:
        self.open = opened

    def add(self, headers: Headers) -> Transactions:
        """Process the next headers and return the transactions that ended in them, in the order of their markers."""
        parts = of_batches(headers)
        if not len(parts):
            return parts
        others = _NO_TRANSACTIONS
        if len(self.open):
            concerned = np.isin(self.open["producer_id"], parts["producer_id"])
            parts, others = joined(self.open[concerned], parts), self.open[~concerned]
        merged = join(parts)
        ended = int(np.searchsorted(merged["state"] == OPEN, True))
        still_open = joined(others, merged[ended:])
        self.open = still_open[np.argsort(still_open["first_offset"], kind="stable")]
        return merged[:ended]


def opened_before(producers: Sequence[tuple[int, int, int]]) -> Transactions:
    """Return the open transactions of a producer snapshot.

    Parameters
    ----------
    producers : sequence of tuple
        producer_id, producer_epoch, first offset of the transaction.
    """
    opened = np.zeros(len(producers), TRANSACTION_DTYPE)
    for name in ("last_offset", "marker_offset", "start_timestamp", "end_timestamp", "last_timestamp"):
        opened[name] = NONE
    for name in ("coordinator_epoch", "marker_epoch"):
        opened[name] = NONE
    opened["state"] = OPEN
    for at, (producer_id, epoch, first_offset) in enumerate(producers):
        opened["producer_id"][at], opened["producer_epoch"][at] = producer_id, epoch
        opened["first_offset"][at] = first_offset
    return np.sort(opened, order="first_offset")


def last_stable_offsets(ended: Transactions, still_open: Transactions) -> npt.NDArray[np.int64]:
    """Return the last stable offset at the marker of each ended transaction, as in ``.txnindex``.

    It is the first offset of the earliest transaction that is open after the marker, or the offset after the marker.
    ``ended`` must have all transactions that ended since the first of these markers, ``still_open`` those that are open
    after the last one.
    """
    every = joined(ended, still_open)
    every = every[every["first_offset"] != NONE]
    every = every[np.argsort(every["first_offset"], kind="stable")]
    ends = np.where(every["state"] == OPEN, np.iinfo(np.int64).max, every["marker_offset"])
    # the first transaction, by first offset, that ends later than a marker is the first at which the maximum is later
    latest = np.maximum.accumulate(ends)
    at = np.searchsorted(latest, ended["marker_offset"], side="right")
    firsts = np.append(every["first_offset"], np.iinfo(np.int64).max)
    return np.asarray(np.minimum(firsts[at], ended["marker_offset"] + 1))
