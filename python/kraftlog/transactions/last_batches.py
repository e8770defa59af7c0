"""The last batches of each producer of a partition, by which a broker knows what is sent again.

Kafka's ``ProducerStateEntry`` keeps them in memory, and has them from the log after its last ``.snapshot``, which has
one of each producer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.transactions.joined_rows import joined
from kraftlog.transactions.producer import by_producer
from kraftlog.transactions.producer_state import NONE, ROWS_AT_ONCE, SEQUENCES, ProducerState

KEPT_BATCHES = 5  # Kafka's NUM_BATCHES_TO_RETAIN: a producer's maximum in flight

_DTYPE = np.dtype(
    [
        ("producer_id", "i8"),
        ("producer_epoch", "i2"),
        ("first_sequence", "i4"),
        ("last_sequence", "i4"),
        ("base_offset", "i8"),
        ("last_offset", "i8"),
    ]
)
_Rows = npt.NDArray[np.void]


class AppendedBatch(NamedTuple):
    """A batch that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


class LastBatches:
    """The last batches of each producer of a partition, header by header.

    Parameters
    ----------
    states : iterable of ProducerState
        Producers before the first header, as in a ``.snapshot``.
    """

    def __init__(self, states: Iterable[ProducerState] = ()) -> None:
        self._rows = _of_states(states)
        self._later: list[_Rows] = []
        self._later_count = 0

    def add(self, headers: Headers) -> None:
        """Process the next headers of the log."""
        rows = _of_batches(headers)
        self._later.append(rows)
        self._later_count += len(rows)
        if self._later_count > max(ROWS_AT_ONCE, len(self._rows)):
            self._settle()

    def by_epoch(self) -> dict[tuple[int, int], list[AppendedBatch]]:
        """Return the batches by producer id and epoch, in the order of the log."""
        self._settle()
        found: dict[tuple[int, int], list[AppendedBatch]] = {}
        for producer_id, producer_epoch, *batch in self._rows.tolist():
            found.setdefault((producer_id, producer_epoch), []).append(AppendedBatch._make(batch))
        return found

    def _settle(self) -> None:
        rows = joined(self._rows, *self._later)
        self._rows = rows[_last_of_each(rows["producer_id"])]
        self._later, self._later_count = [], 0


def _of_states(states: Iterable[ProducerState]) -> _Rows:
    rows = [
        (
            state.producer_id,
            state.producer_epoch,
            (state.last_sequence - state.offset_delta) % SEQUENCES,
            state.last_sequence,
            state.last_offset - state.offset_delta,
            state.last_offset,
        )
        for state in states
        if state.last_sequence != NONE
    ]
    return np.array(rows, _DTYPE)


def _of_batches(headers: Headers) -> _Rows:
    """Return the last data batches of each producer in these headers."""
    is_data = headers["attributes"] & CONTROL_BIT == 0
    is_numbered = (headers["magic"] >= 2) & (headers["producer_id"] >= 0) & (headers["base_sequence"] != NONE)
    at = np.flatnonzero(is_data & is_numbered)
    chosen = headers[at[_last_of_each(headers["producer_id"][at])]]
    rows = np.empty(len(chosen), _DTYPE)
    rows["first_sequence"] = chosen["base_sequence"]
    rows["last_sequence"] = (chosen["base_sequence"].astype(np.int64) + chosen["last_offset_delta"]) % SEQUENCES
    rows["last_offset"] = last_offsets(chosen)
    for name in ("producer_id", "producer_epoch", "base_offset"):
        rows[name] = chosen[name]
    return rows


def _last_of_each(producer_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return where the last batches of each producer are, in order."""
    if len(producer_ids) <= KEPT_BATCHES:
        return np.arange(len(producer_ids))
    order = by_producer(producer_ids)
    ids = producer_ids[order]
    is_last = np.ones(len(ids), bool)
    is_last[:-KEPT_BATCHES] = ids[:-KEPT_BATCHES] != ids[KEPT_BATCHES:]
    return np.sort(order[is_last])
