"""The effect of transactions on records: their state, and when a read_committed reader sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.transaction_view import NEVER, NO_TRANSACTION
from kraftlog.transactions.producer import ABORTED, COMMITTED, NONE, OPEN

FOREVER = int(np.iinfo(np.int64).max)
BY_POSITION, BY_OFFSET = "position", "base_offset"  # fields of headers
VIEW_DTYPE = np.dtype(
    [("producer_id", "i8"), ("first", "i8"), ("marker", "i8"), ("marker_offset", "i8"), ("state", "i1")]
)


@dataclass(frozen=True)
class ProducerView:
    """Transactions of producers around a range of a segment, as a fetch response lists the aborted ones.

    Attributes
    ----------
    transactions : numpy.ndarray
        Of ``VIEW_DTYPE``, by producer id and ``first``. Batches of the producer from ``first`` on and before
        ``marker`` are of the transaction. Those that reach into the range and are aborted or open; for ``visible_at``
        committed ones, too. An open one has its marker at ``FOREVER``; its ``marker_offset`` is ``FOREVER`` as well, or
        -1 when it holds nothing back.
    by : str
        Whether ``first`` and ``marker`` are bytes of the segment (``BY_POSITION``), which hold where offsets are
        damaged, or offsets (``BY_OFFSET``), as a ``.txnindex`` has them.
    last_stable_offset : int
        Records from here on are hidden. Only with ``BY_OFFSET``; else the range ends where the reader does.
    """

    transactions: npt.NDArray[np.void]
    by: str = BY_POSITION
    last_stable_offset: int = FOREVER

    @property
    def hides_offsets(self) -> bool:
        """Whether some hidden records share a batch with visible ones."""
        return self.last_stable_offset != FOREVER

    @property
    def aborted_by_offset(self) -> bool:
        """Whether ``aborted`` has offsets."""
        return self.by == BY_OFFSET

    def aborted(self) -> npt.NDArray[np.int64] | None:
        """Return the transactions whose batches need not be decoded."""
        chosen = self.transactions[self.transactions["state"] != COMMITTED]
        if not len(chosen):
            return None
        return np.stack([chosen[name] for name in ("producer_id", "first", "marker")], axis=1)

    def shows(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether records are before the last stable offset; aborted records are hidden by whole batches."""
        return np.asarray(offsets < self.last_stable_offset)

    def _states_of_batches(self, headers: Headers) -> npt.NDArray[np.int8]:
        is_data = headers["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT
        is_data &= headers["magic"] >= 2
        states = np.where(is_data, COMMITTED, NO_TRANSACTION).astype(np.int8)
        if not len(self.transactions):
            return states
        at = self._last_begun(headers)
        own = is_data & (at >= 0) & (self.transactions["producer_id"][at] == headers["producer_id"])
        own &= headers[self.by] < self.transactions["marker"][at]
        return np.where(own, self.transactions["state"][at], states).astype(np.int8)

    def _last_begun(self, headers: Headers) -> npt.NDArray[np.int64]:
        """Return, for each batch, the last transaction at or before it in the order of producers and starts."""
        rows = self.transactions
        producers = np.concatenate((rows["producer_id"], headers["producer_id"]))
        reached = headers[self.by]
        if self.aborted_by_offset:  # as in Kafka's consumer: a transaction that begins inside a batch has all of it
            reached = np.maximum(reached, last_offsets(headers))
        starts = np.concatenate((rows["first"], reached))
        is_batch = np.arange(len(producers)) >= len(rows)
        order = np.lexsort((is_batch, starts, producers))
        begun = np.empty(len(producers), np.int64)
        begun[order] = np.cumsum(~is_batch[order]) - 1
        return begun[len(rows) :]

    def hides(self, headers: Headers) -> npt.NDArray[np.bool_]:
        """Return which data batches belong to aborted or open transactions."""
        return np.isin(self._states_of_batches(headers), (ABORTED, OPEN))

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the state of the transaction that each record belongs to."""
        return np.repeat(self._states_of_batches(headers), headers["rows"])

    @cached_property
    def _last_marker(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return starts in order, and the place and offset of the last marker among the transactions up to each.

        Markers are in the order of the log, which damaged offsets do not change. Transactions that hold nothing back
        are left out. The last entry is for no start.
        """
        rows = self.transactions[self.transactions["marker_offset"] != NONE]
        rows = rows[np.argsort(rows["first"], kind="stable")]
        by_marker = np.lexsort((rows["marker_offset"], rows["marker"]))
        rank = np.empty(len(rows), np.int64)
        rank[by_marker] = np.arange(len(rows))
        last = rows[by_marker[np.maximum.accumulate(rank)]]
        return rows["first"], np.append(last["marker"], NONE), np.append(last["marker_offset"], NONE)

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset that moved the last stable offset past each record, or the record's own."""
        first, marker, marker_offset = self._last_marker
        begun = np.searchsorted(first, headers[self.by], side="right") - 1
        waits_until = np.where(marker[begun] > headers[self.by], marker_offset[begun], NONE)
        hidden = self.hides(headers)
        hidden |= (waits_until == FOREVER) | (headers["attributes"] & CONTROL_BIT != 0)
        at = np.maximum(offsets, np.repeat(waits_until, headers["rows"]))
        return np.where(np.repeat(hidden, headers["rows"]), NEVER, at)
