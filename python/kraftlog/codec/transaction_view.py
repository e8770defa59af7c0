"""What a decoder asks about transactions."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from kraftlog.codec.headers import Headers

TRANSACTION_STATES = ["aborted", "committed", "open", "unknown"]
NO_TRANSACTION = -1
NEVER = -1


class TransactionView(Protocol):
    """Known transactions of some records."""

    @property
    def hides_offsets(self) -> bool:
        """Whether some hidden records share a batch with visible ones."""

    @property
    def aborted_by_offset(self) -> bool:
        """Whether ``aborted`` has offsets, not bytes of the file."""

    def aborted(self) -> npt.NDArray[np.int64] | None:
        """Return the transactions whose batches are not decoded.

        Rows, in order, are producer_id and the range of their batches, as bytes of the file or base offsets.
        """

    def shows(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether records at these offsets are visible, by their offsets."""

    def states(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return indices into ``TRANSACTION_STATES``, or ``NO_TRANSACTION``; ``rows`` of a header are its records."""

    def visible_at(self, headers: Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset at which each record became visible, and ``NEVER``."""
