"""Which batches the log cleaner may drop with their transactions, as Kafka's ``CleanedTransactionMetadata``."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import disk
from kraftlog.layout.segment import Segment
from kraftlog.transactions.producer import ABORTED, COMMITTED, NONE, TransactionFold


class Aborted(NamedTuple):
    """An aborted transaction with data that is still in the log."""

    first_offset: int
    producer_id: int
    marker_offset: int


def aborted_transactions(log: Sequence[Segment]) -> list[Aborted]:
    """Return the aborted transactions of a log, from the headers of its batches.

    A transaction may end in any segment after its data, so the whole log is read, as in Kafka's
    ``UnifiedLog.collectAbortedTransactions``.

    Parameters
    ----------
    log : sequence of Segment
        All segments of a partition, in order.

    Raises
    ------
    RecordError
        When a batch is damaged: it may be the marker that ends a transaction.
    """
    aborted: list[Aborted] = []
    fold = TransactionFold()
    for segment in log:
        file = disk().open(segment.path, segment.size)
        try:
            for headers in HeaderScan(file, check_crc=True).headers(strict=True):
                ended = fold.add(headers)
                ended = ended[(ended["state"] == ABORTED) & (ended["first_offset"] != NONE)]
                aborted += map(Aborted, *(ended[name].tolist() for name in Aborted._fields))
        finally:
            file.close()
    return aborted


class CleanedTransactions:
    """The transactions of a log, batch by batch.

    Parameters
    ----------
    aborted : iterable of Aborted
    start_offset : int
        Offset of the first batch: transactions that ended before it are complete.
    """

    def __init__(self, aborted: Iterable[Aborted], start_offset: int) -> None:
        self._aborted = [one for one in aborted if one.marker_offset >= start_offset]
        heapq.heapify(self._aborted)
        self._ongoing_aborted: dict[int, bool] = {}  # by producer: whether a batch of the transaction occurred
        self._ongoing_committed: set[int] = set()

    def drops(self, headers: Headers) -> npt.NDArray[np.bool_]:
        """Process further batches; return which of them may be dropped.

        These are batches of aborted transactions, and markers whose transaction has no data left.
        """
        drops = np.zeros(len(headers), bool)
        for at in np.flatnonzero(headers["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT) != 0).tolist():
            header = headers[at]
            self._take_aborted(header)
            is_control = header["attributes"] & CONTROL_BIT
            drops[at] = self._drops_marker(header) if is_control else self._drops_batch(header)
        return drops

    def _drops_batch(self, header: np.void) -> bool:
        producer_id = int(header["producer_id"])
        if producer_id in self._ongoing_aborted:
            self._ongoing_aborted[producer_id] = True
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def _drops_marker(self, header: np.void) -> bool:
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
