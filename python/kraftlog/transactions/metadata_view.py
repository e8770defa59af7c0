"""The effect of metadata transactions on the visibility of records."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kraftlog._native.visibility import visibility
from kraftlog.codec.headers import Headers
from kraftlog.transactions.metadata_columns import METADATA_TRANSACTION_DTYPE, MetadataTransactions
from kraftlog.transactions.producer import COMMITTED

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MetadataView:
    """Transactions of the metadata log around a range.

    Attributes
    ----------
    transactions : numpy.ndarray
        Transactions as ``METADATA_TRANSACTION_DTYPE``.
    misplaced : numpy.ndarray
        Offsets of misplaced markers.
    """

    transactions: MetadataTransactions = field(default_factory=lambda: np.empty(0, METADATA_TRANSACTION_DTYPE))
    misplaced: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    hides_offsets: bool = True
    aborted_by_offset: bool = False

    def aborted(self) -> None:
        """Return None: only a part of a batch's records may be in a transaction."""

    @property
    def is_committed(self) -> bool:
        """Whether all of them are."""
        return bool((self.transactions["state"] == COMMITTED).all())

    @cached_property
    def _columns(self) -> tuple[Ints, Ints, Ints, npt.NDArray[np.int8], Ints]:
        """The transactions sorted by first offset, as damaged headers may be out of order; and all markers."""
        rows = self.transactions[np.argsort(self.transactions["first_offset"], kind="stable")]
        markers = np.unique(np.concatenate((rows["begin_offset"], rows["end_offset"], self.misplaced)))
        first, last, end, state = (
            np.ascontiguousarray(rows[name]) for name in ("first_offset", "last_offset", "end_offset", "state")
        )
        return first, last, end, state, markers

    def _of(self, headers: Headers, offsets: Ints) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], Ints]:
        return visibility(*self._columns, np.ascontiguousarray(headers).view(np.uint8), offsets)

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return the state of each record's transaction, which includes its markers."""
        return self._of(headers, offsets)[0]

    def shows(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether records are outside of transactions or in committed ones, and are not markers."""
        return self._of(headers, offsets)[1]

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset of the End of each record's transaction, or the record's own offset without one."""
        return self._of(headers, offsets)[2]
