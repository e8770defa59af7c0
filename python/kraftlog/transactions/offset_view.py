"""What transactions mean for records when only their offsets are known, as ``.txnindex`` files have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.headers import Headers
from kraftlog.codec.records import NO_TRANSACTION
from kraftlog.transactions.producer import ABORTED, COMMITTED

OFFSET_DTYPE = np.dtype([("producer_id", "i8"), ("first_offset", "i8"), ("marker_offset", "i8"), ("state", "i1")])
FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class OffsetView:
    """Transactions of producers around some records, by offset.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``OFFSET_DTYPE``, by producer id and first offset: those that are aborted or open. An open one has its marker
        behind all offsets.
    last_stable_offset : int
        Where a read_committed reader stops.
    """

    transactions: npt.NDArray[np.void]
    last_stable_offset: int = FOREVER
    hides_offsets: bool = True

    def aborted(self) -> None:
        """Return None: where batches lie in the file is not known."""

    def within(self, start: int, end: int) -> OffsetView:
        """Return the same of records at offsets [start, end)."""
        reach = (self.transactions["first_offset"] < end) & (self.transactions["marker_offset"] >= start)
        return OffsetView(self.transactions[reach], self.last_stable_offset)

    def _last_begun(self, headers: Headers) -> npt.NDArray[np.int64]:
        """Return, for each batch, the last transaction that is not behind it in the order of producers and offsets."""
        rows = self.transactions
        producers = np.concatenate((rows["producer_id"], headers["producer_id"]))
        offsets = np.concatenate((rows["first_offset"], headers["base_offset"]))
        is_batch = np.arange(len(producers)) >= len(rows)
        order = np.lexsort((is_batch, offsets, producers))
        begun = np.empty(len(producers), np.int64)
        begun[order] = np.cumsum(~is_batch[order]) - 1
        return begun[len(rows) :]

    def _states_of_batches(self, headers: Headers) -> npt.NDArray[np.int8]:
        is_data = headers["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT
        is_data &= headers["magic"] >= 2
        states = np.where(is_data, COMMITTED, NO_TRANSACTION).astype(np.int8)
        if not len(self.transactions):
            return states
        at = self._last_begun(headers)
        own = is_data & (at >= 0) & (self.transactions["producer_id"][at] == headers["producer_id"])
        own &= headers["base_offset"] < self.transactions["marker_offset"][at]
        return np.where(own, self.transactions["state"][at], states).astype(np.int8)

    def shows(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether records are before the last stable offset and in no aborted transaction."""
        is_aborted = np.repeat(self._states_of_batches(headers) == ABORTED, headers["rows"])
        return np.asarray((offsets < self.last_stable_offset) & ~is_aborted)

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the state of the transaction that each record belongs to."""
        return np.repeat(self._states_of_batches(headers), headers["rows"])

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Refuse: of committed transactions only the log itself knows the markers.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError("visible_at is not known from .txnindex files")
