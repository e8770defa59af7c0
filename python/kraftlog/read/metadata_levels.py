"""Transaction markers at a ``metadata.version`` without transactions, at which a controller refuses to continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from kraftlog.codec.metadata_markers import ABORT_TRANSACTION, BEGIN_TRANSACTION
from kraftlog.codec.metadata_version import has_metadata_transactions
from kraftlog.transactions.metadata_columns import Stretch


class MetadataLevels:
    """Follows the level of ``metadata.version`` along the markers of a log.

    A level that was set in an aborted transaction is ignored. Before the first level nothing is refused: the log of a
    new cluster begins with the transaction that sets it.

    Parameters
    ----------
    level_before : callable
        Returns the level before the log, if known; called at the first marker.
    """

    def __init__(self, level_before: Callable[[], int | None]) -> None:
        self._level_before = level_before
        self._is_known = False
        self._level: int | None = None
        self._before: int | None = None  # the open transaction

    def refused(self, stretch: Stretch, levels: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Return the index of each marker that the level does not allow, and the level.

        Parameters
        ----------
        stretch : Stretch
        levels : list of tuple of int
            Offset and level of each record of the range that sets a level.
        """
        if len(stretch.offsets) and not self._is_known:
            self._is_known = True
            if self._level is None and not (levels and levels[0][0] < stretch.offsets[0]):
                self._level = self._before = self._level_before()
        if not levels and self._level == self._before:
            if len(stretch.offsets) and self._is_refusing:
                yield from ((at, self._level or 0) for at in range(len(stretch.offsets)))
            return
        begin = 0
        ends = np.searchsorted(stretch.offsets, [offset for offset, _ in levels]).tolist()
        for end, level in zip([*ends, len(stretch.offsets)], [*(level for _, level in levels), None], strict=True):
            for at in range(begin, end):
                if self._is_refusing:
                    yield at, self._level or 0
                if stretch.api_keys[at] == BEGIN_TRANSACTION:
                    self._before = self._level
                elif stretch.api_keys[at] == ABORT_TRANSACTION:
                    self._level = self._before
                else:
                    self._before = self._level
            self._level, begin = self._level if level is None else level, end

    @property
    def _is_refusing(self) -> bool:
        return self._level is not None and not has_metadata_transactions(self._level)
