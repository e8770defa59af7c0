"""The aborted transactions whose markers are in the last segment of a partition."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from kraftlog.layout.index_files import ENTRY_TYPES
from kraftlog.transactions.producer import ABORTED
from kraftlog.transactions.view import BY_OFFSET, VIEW_DTYPE, ProducerView

AbortedRow: TypeAlias = tuple[int, int, int]
"""Producer id, first offset, offset of the marker."""


class AbortedTransactions:
    """Aborted transactions, in the order of their markers.

    Parameters
    ----------
    txnindex : bytes
        Entries of the ``.txnindex`` of the last segment.
    """

    def __init__(self, txnindex: bytes) -> None:
        entries = np.frombuffer(txnindex, ENTRY_TYPES["txnindex"])
        names = ("producer_id", "offset", "last_offset")
        self._rows: list[AbortedRow] = list(zip(*(entries[name].tolist() for name in names), strict=True))

    def add(self, producer_id: int, first_offset: int, marker_offset: int) -> None:
        """Add a transaction whose marker is written."""
        self._rows.append((producer_id, first_offset, marker_offset))

    def rows(self, base_offset: int) -> list[AbortedRow]:
        """Return the transactions of the last segment, which begins at an offset; drop those of earlier segments."""
        if self._rows and self._rows[0][2] < base_offset:
            self._rows = [row for row in self._rows if row[2] >= base_offset]
        return list(self._rows)

    def view(self, base_offset: int, end_offset: int) -> ProducerView:
        """Return the transactions that a reader of the last segment leaves out; drop those of earlier segments.

        Parameters
        ----------
        base_offset : int
            Base offset of the last segment.
        end_offset : int
            The reader stops before it.
        """
        chosen = sorted(row for row in self.rows(base_offset) if row[1] < end_offset)
        rows = np.zeros(len(chosen), VIEW_DTYPE)
        if chosen:
            rows["producer_id"], rows["first"], rows["marker"] = np.array(chosen, np.int64).T
            rows["marker_offset"], rows["state"] = rows["marker"], ABORTED
        return ProducerView(rows, BY_OFFSET)
