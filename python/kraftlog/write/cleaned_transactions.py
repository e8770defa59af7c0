"""Which batches the log cleaner may drop with their transactions, as Kafka's ``CleanedTransactionMetadata``."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kraftlog._native.scanner import TRANSACTIONAL_BIT
from kraftlog.transactions.producer import ABORTED, COMMITTED


class Aborted(NamedTuple):
    """An aborted transaction; ``last_offset`` is that of its marker."""

    first_offset: int
    producer_id: int
    last_offset: int


class CleanedTransactions:
    """The transactions of a log, batch by batch.

    Parameters
    ----------
    aborted : iterable of Aborted
        All those of which there may be batches.
    """

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._aborted = list(aborted)
        heapq.heapify(self._aborted)
        self._ongoing_aborted: dict[int, bool] = {}  # by producer: whether a batch of it was met
        self._ongoing_committed: set[int] = set()

    def drops_batch(self, header: np.void) -> bool:
        """Take a batch of data; return whether its transaction was aborted."""
        self._take_aborted(header)
        producer_id = int(header["producer_id"])
        if not header["attributes"] & TRANSACTIONAL_BIT:
            return False
        if producer_id in self._ongoing_aborted:
            self._ongoing_aborted[producer_id] = True
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def drops_marker(self, header: np.void) -> bool:
        """Take a control batch; return whether nothing of its transaction is left."""
        self._take_aborted(header)
        producer_id, kind = int(header["producer_id"]), header["control_type"]
        if not header["records_count"]:
            return True
        if kind == ABORTED:
            return not self._ongoing_aborted.pop(producer_id, False)
        if kind == COMMITTED:
            was_met = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not was_met
        return False

    def _take_aborted(self, header: np.void) -> None:
        last_offset = int(header["base_offset"]) + int(header["last_offset_delta"])
        while self._aborted and self._aborted[0].first_offset <= last_offset:
            self._ongoing_aborted.setdefault(heapq.heappop(self._aborted).producer_id, False)
