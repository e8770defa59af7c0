"""What transactions mean for the records around them: their state, and when a read_committed reader sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kraftlog._native.lookahead import PLACE_BITS
from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.headers import Headers
from kraftlog.codec.records import NEVER, NO_TRANSACTION
from kraftlog.transactions.boundaries import METADATA_TRANSACTION_DTYPE, MetadataTransactions
from kraftlog.transactions.producer import ABORTED, COMMITTED, NONE, OPEN

_FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class ProducerView:
    """Transactions of producers around a range of a segment.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``ENDED_DTYPE``, by producer id and place. Those that reach into the range and are aborted or open; for
        ``visible_at`` committed ones, too. An open one has its marker behind all others; the offset of its marker is
        behind all others as well, or -1 when it holds nothing back.
    file : int
        Number of the segment, by which places count.
    """

    transactions: npt.NDArray[np.void]
    file: int
    hides_offsets: bool = False

    def _positions(self, name: str) -> npt.NDArray[np.int64]:
        """Return places as bytes of the segment; what lies before it is 0, what lies behind it behind every byte."""
        places = self.transactions[name] - (self.file << PLACE_BITS)
        return np.where(places < 0, 0, np.where(places >> PLACE_BITS != 0, _FOREVER, places))

    def aborted(self) -> npt.NDArray[np.int64] | None:
        """Return the transactions whose batches need not be decoded."""
        chosen = self.transactions["state"] != COMMITTED
        if not chosen.any():
            return None
        columns = [self.transactions["producer_id"], self._positions("first_place"), self._positions("marker_place")]
        return np.stack([column[chosen] for column in columns], axis=1)

    def shows(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return True for every record: what is hidden is hidden by whole batches."""
        return np.ones(len(offsets), bool)

    @cached_property
    def _ordered(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the producers, and a key for each transaction that rises with producer and first byte."""
        producers, number = np.unique(self.transactions["producer_id"], return_inverse=True)
        return producers, (number.astype(np.int64) << PLACE_BITS) + self._positions("first_place")

    def _states_of_batches(self, headers: Headers) -> npt.NDArray[np.int8]:
        is_data = headers["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT
        states = np.where(is_data & (headers["magic"] >= 2), COMMITTED, NO_TRANSACTION).astype(np.int8)
        if not len(self.transactions):
            return states
        producers, keys = self._ordered
        number = np.searchsorted(producers, headers["producer_id"]).clip(max=len(producers) - 1)
        key = (number << PLACE_BITS) + headers["position"]
        at = np.searchsorted(keys, key, side="right") - 1  # the last that begins at or before the batch
        own = is_data & (at >= 0) & (self.transactions["producer_id"][at] == headers["producer_id"])
        own &= headers["position"] < self._positions("marker_place")[at]
        return np.where(own, self.transactions["state"][at], states).astype(np.int8)

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the state of the transaction that each record belongs to."""
        return np.repeat(self._states_of_batches(headers), headers["rows"])

    @cached_property
    def _latest(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return first bytes in order, and the largest marker offset up to each, behind one for no transaction."""
        order = np.argsort(self._positions("first_place"), kind="stable")
        offsets = np.maximum.accumulate(self.transactions["marker_offset"][order])
        return self._positions("first_place")[order], np.append(NONE, offsets)

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset that moved the last stable offset behind each record, or its own."""
        first, latest = self._latest
        ended = latest[np.searchsorted(first, headers["position"], side="right")]
        states = self._states_of_batches(headers)
        hidden = np.isin(states, (ABORTED, OPEN)) | (ended == _FOREVER) | (headers["attributes"] & CONTROL_BIT != 0)
        at = np.maximum(offsets, np.repeat(ended, headers["rows"]))
        return np.where(np.repeat(hidden, headers["rows"]), NEVER, at)


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

    def _find(
        self, headers: Headers, offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """Return state and end of the transaction that each record lies in; control records lie in none."""
        rows = self.transactions
        at = _last_at_or_before(rows["begin_offset"], offsets)
        within = (at >= 0) & (offsets <= self._ends[at]) & ~_are_control(headers)
        states = np.where(within, self._states[at], NO_TRANSACTION)
        return states.astype(np.int8), np.where(within, self._ends[at], offsets)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        """Where each transaction ends; one more for what is before the first."""
        rows = self.transactions
        return np.append(np.where(rows["state"] == OPEN, _FOREVER, rows["end_offset"]), NONE)

    @cached_property
    def _states(self) -> npt.NDArray[np.int8]:
        return np.append(self.transactions["state"], np.int8(NO_TRANSACTION)).astype(np.int8)

    @cached_property
    def _markers(self) -> npt.NDArray[np.int64]:
        rows = self.transactions
        return np.unique(np.concatenate((rows["begin_offset"], rows["end_offset"], self.illegal)))

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
