"""What transactions of the metadata log mean for the records around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.headers import Headers
from kraftlog.codec.records import NEVER, NO_TRANSACTION
from kraftlog.transactions.metadata_columns import METADATA_TRANSACTION_DTYPE, MetadataTransactions
from kraftlog.transactions.producer import COMMITTED, NONE


@dataclass(frozen=True)
class MetadataView:
    """Transactions of the metadata log around a range.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``METADATA_TRANSACTION_DTYPE``.
    misplaced : numpy.ndarray
        Offsets of the markers that are out of place.
    """

    transactions: MetadataTransactions = field(default_factory=lambda: np.empty(0, METADATA_TRANSACTION_DTYPE))
    misplaced: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    hides_offsets: bool = True
    aborted_by_offset: bool = False

    def aborted(self) -> None:
        """Return None: a batch may lie in a transaction with a part of its records only."""

    def _find(
        self, headers: Headers, offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """Return state and end of the transaction that each record lies in; control records lie in none."""
        rows = self._ordered
        at = _last_at_or_before(rows["first_offset"], offsets)
        within = (at >= 0) & (offsets <= np.append(rows["last_offset"], NONE)[at]) & ~_are_control(headers)
        states = np.where(within, np.append(rows["state"], np.int8(NO_TRANSACTION))[at], NO_TRANSACTION)
        return states.astype(np.int8), np.where(within, np.append(rows["end_offset"], NONE)[at], offsets)

    @cached_property
    def _ordered(self) -> MetadataTransactions:
        """The transactions by their first offset, which damaged headers may have out of order."""
        return self.transactions[np.argsort(self.transactions["first_offset"], kind="stable")]

    @cached_property
    def _markers(self) -> npt.NDArray[np.int64]:
        rows = self.transactions
        return np.unique(np.concatenate((rows["begin_offset"], rows["end_offset"], self.misplaced)))

    def _is_marker(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        at = _last_at_or_before(self._markers, offsets)
        return np.asarray((at >= 0) & (np.append(self._markers, NONE)[at] == offsets))

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the state of the transaction that each record lies in; its markers belong to it."""
        return self._find(headers, offsets)[0]

    def shows(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether records are outside of transactions, or in committed ones, and no markers."""
        states, _ = self._find(headers, offsets)
        return np.asarray(((states == NO_TRANSACTION) | (states == COMMITTED)) & ~self._is_marker(offsets))

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset of the End of each record's transaction, or its own outside of transactions."""
        _, ends = self._find(headers, offsets)
        return np.where(self.shows(headers, offsets) & ~_are_control(headers), ends, NEVER)


def _are_control(headers: Headers) -> npt.NDArray[np.bool_]:
    return np.repeat(headers["attributes"] & CONTROL_BIT != 0, headers["rows"])


def _last_at_or_before(rising: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the index of the last number that is not above each offset; -1 where there is none.

    Offsets of a log rise, so that the few numbers are searched for among them; those of a damaged one may not.
    """
    if not len(offsets) or (offsets[1:] < offsets[:-1]).any():
        return np.searchsorted(rising, offsets, side="right") - 1
    low, high = np.searchsorted(rising, (offsets[0], offsets[-1]), side="right")
    cuts = np.searchsorted(offsets, rising[low:high], side="left")
    return np.repeat(np.arange(low - 1, high), np.diff(cuts, prepend=0, append=len(offsets)))
