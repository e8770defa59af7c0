"""What transactions mean for the records around them: their state, and when a read_committed reader sees them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.headers import Headers
from kraftlog.codec.records import NEVER, NO_TRANSACTION
from kraftlog.transactions.boundaries import METADATA_TRANSACTION_DTYPE, MetadataTransactions
from kraftlog.transactions.producer import ABORTED, COMMITTED, NONE, OPEN

_FOREVER = np.iinfo(np.int64).max
_ABORTED_FIELDS = ("producer_id", "first_offset", "marker_offset")


@dataclass(frozen=True)
class ProducerView:
    """Transactions of producers around a range of a partition.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``ENDED_DTYPE``. Those that have data in the range and are aborted or open, with a ``marker_offset`` behind
        all others; for ``visible_at`` all that began before the end of the range and ended behind its start.
    """

    transactions: npt.NDArray[np.void]
    hides_offsets: bool = False

    def aborted(self) -> npt.NDArray[np.int64] | None:
        """Return the transactions whose batches need not be decoded."""
        chosen = self.transactions[self.transactions["state"] == ABORTED]
        if not len(chosen):
            return None
        ordered = np.sort(chosen, order=["producer_id", "first_offset"])
        return np.stack([ordered[name] for name in _ABORTED_FIELDS], axis=1)

    def shows(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return True for every record: what is hidden is hidden by whole batches."""
        return np.ones(len(offsets), bool)

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the state of the transaction that each record belongs to."""
        is_data = headers["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT
        per_batch = np.where(is_data & (headers["magic"] >= 2), COMMITTED, NO_TRANSACTION).astype(np.int8)
        base = headers["base_offset"]
        around = self.transactions[self.transactions["state"] != COMMITTED]
        around = around[(around["first_offset"] <= base.max()) & (around["marker_offset"] > base.min())]
        for transaction in around:
            own = is_data & (headers["producer_id"] == transaction["producer_id"])
            own &= (base >= transaction["first_offset"]) & (base < transaction["marker_offset"])
            per_batch[own] = transaction["state"]
        return np.repeat(per_batch, headers["rows"])

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset that moved the last stable offset behind each record, or its own."""
        ordered = np.sort(self.transactions, order="first_offset")
        latest = np.append(NONE, np.maximum.accumulate(ordered["marker_offset"]))
        at = np.maximum(offsets, latest[np.searchsorted(ordered["first_offset"], offsets, side="right")])
        hidden = self.states(headers, offsets) == ABORTED
        hidden |= np.repeat(headers["attributes"] & CONTROL_BIT != 0, headers["rows"])
        return np.where(hidden | (at == _FOREVER), NEVER, at)


@dataclass(frozen=True)
class MetadataView:
    """Transactions of the metadata log around a range.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``METADATA_TRANSACTION_DTYPE``, in the order of the log.
    illegal : numpy.ndarray
        Offsets of the markers that are out of place, in order.
    """

    transactions: MetadataTransactions = field(default_factory=lambda: np.empty(0, METADATA_TRANSACTION_DTYPE))
    illegal: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    hides_offsets: bool = True

    def aborted(self) -> None:
        """Return None: a batch may lie in a transaction with a part of its records only."""

    def _find(self, offsets: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """Return state and end of the transaction that each offset lies in."""
        rows = self.transactions
        ends = np.where(rows["state"] == OPEN, _FOREVER, rows["end_offset"])
        at = np.searchsorted(rows["begin_offset"], offsets, side="right") - 1
        within = (at >= 0) & (offsets <= np.append(ends, NONE)[at])
        states = np.where(within, np.append(rows["state"], NO_TRANSACTION)[at], NO_TRANSACTION)
        return states.astype(np.int8), np.where(within, np.append(ends, NONE)[at], offsets)

    def _is_marker(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        rows = self.transactions
        return np.isin(offsets, np.concatenate((rows["begin_offset"], rows["end_offset"], self.illegal)))

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the state of the transaction that each record lies in; its markers belong to it."""
        is_control = np.repeat(headers["attributes"] & CONTROL_BIT != 0, headers["rows"])
        return np.where(is_control, NO_TRANSACTION, self._find(offsets)[0]).astype(np.int8)

    def shows(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether records are outside of transactions, or in committed ones, and no markers."""
        states, _ = self._find(offsets)
        return np.asarray(((states == NO_TRANSACTION) | (states == COMMITTED)) & ~self._is_marker(offsets))

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset of the End of each record's transaction, or its own outside of transactions."""
        _, ends = self._find(offsets)
        is_control = np.repeat(headers["attributes"] & CONTROL_BIT != 0, headers["rows"])
        return np.where(self.shows(offsets) & ~is_control, ends, NEVER)
