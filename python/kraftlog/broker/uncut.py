"""Offsets at which a stretch of records may end without splitting a transaction of the log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.tables.log import Log

Offsets = npt.NDArray[np.int64]
_ENDED = (pc.field("state") == "committed") & pc.field("first_offset").is_valid()


class Uncut:
    """The stretches of offsets that committed transactions span.

    Parameters
    ----------
    first, last : sequence of int
        Offsets of the first and the last record of each transaction, in any order.

    Examples
    --------
    >>> import numpy as np
    >>> Uncut([2, 3], [4, 6]).may_end(np.array([1, 2, 4, 5, 6, 7])).tolist()
    [True, False, False, False, True, True]
    """

    def __init__(self, first: Sequence[int] | Offsets, last: Sequence[int] | Offsets) -> None:
        order = np.argsort(np.asarray(first, np.int64), kind="stable")
        self._first = np.asarray(first, np.int64)[order]
        self._reach = np.maximum.accumulate(np.asarray(last, np.int64)[order]) if len(order) else self._first

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> Uncut:
        """Return the stretches of a partition, from the headers of its batches."""
        log = Log(Discovery(segments=list(segments)))
        stream = log.scan("partition_transactions", ["state", "first_offset", "last_offset"])
        ended = [rows.filter(_ENDED) for rows in stream.batches()]  # the pass over the records reports faults
        columns = ([rows[name].to_numpy() for rows in ended] for name in ("first_offset", "last_offset"))
        return cls(*(np.concatenate([np.empty(0, np.int64), *parts]) for parts in columns))

    def may_end(self, offsets: Offsets) -> npt.NDArray[np.bool_]:
        """Return after which of these records no transaction continues."""
        if not len(self._first):
            return np.ones(len(offsets), bool)
        at = np.searchsorted(self._first, offsets, "right") - 1
        return np.asarray((at < 0) | (self._reach[at] <= offsets))
