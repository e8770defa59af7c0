"""A broker's state of each producer of a partition, from batch headers.

This is the state that Kafka's ``ProducerStateManager`` rebuilds from the log and writes to ``.snapshot``, by the rules
of ``ProducerAppendInfo`` for a replica, which accepts the log without checks. Kafka also drops producers that wrote
nothing for a day (``producer.id.expiration.ms``); that depends on a clock, and is not done here.

A batch changes the state of its producer, and so does any stretch of log; ``join`` combines consecutive stretches. It
is associative, like ``join`` in ``kraftlog.transactions.producer``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.transactions.producer import ABORTED, COMMITTED, by_producer

NONE = -1  # Kafka's "no sequence", "no epoch", "no offset", "no timestamp"
SEQUENCES = 2**31  # sequences count modulo this
ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class ProducerState:
    """One entry of a ``.snapshot`` file; names are those of Kafka's ``ProducerSnapshot``."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int | None


_ENTRY = [
    ("producer_id", "i8"),
    ("producer_epoch", "i2"),
    ("last_sequence", "i4"),
    ("last_offset", "i8"),
    ("offset_delta", "i4"),
    ("last_timestamp", "i8"),
    ("coordinator_epoch", "i4"),
    ("current_transaction_first_offset", "i8"),
]
_ABOUT = [
    ("first_epoch", "i2"),
    ("has_data", "?"),
    ("has_marker", "?"),
    ("changes_epoch", "?"),  # behind the last data, or anywhere when there is none
]
_DTYPE = np.dtype(_ENTRY + _ABOUT)
_NAMES = [name for name, _ in _ENTRY]
_OF_DATA = {"last_sequence": NONE, "last_offset": NONE, "offset_delta": 0}  # what a new epoch leaves of them
_Rows = npt.NDArray[np.void]


class ProducerStates:
    """The state of every producer of a partition, header by header.

    Parameters
    ----------
    initial : iterable of ProducerState
        State before the first header, as in a ``.snapshot``.

    Examples
    --------
    >>> from kraftlog.disk.disk import disk
    >>> from kraftlog.codec.header_scan import HeaderScan
    >>> from pathlib import Path
    >>> producers = ProducerStates()
    >>> log = Path("tests/golden/transactions/log/orders-2/00000000000000000000.log")
    >>> for headers in HeaderScan(disk().open(log)).headers():
    ...     producers.add(headers)
    >>> [state.producer_id for state in producers.states()]
    [6, 1, 8, 3, 7, 4]
    """

    def __init__(self, initial: Iterable[ProducerState] = ()) -> None:
        self._states = _of_states(initial)
        self._later: list[_Rows] = []
        self._later_count = 0  # of the rows in all of them

    def add(self, headers: Headers) -> None:
        """Process the next headers of the log.

        Parameters
        ----------
        headers : structured array of HEADER_DTYPE
        """
        rows = join(_of_batches(headers))
        self._later.append(rows)
        self._later_count += len(rows)
        # joining only after the rows have doubled keeps the whole linear
        if self._later_count > max(ROWS_AT_ONCE, len(self._states)):
            self._settle()

    def states(self) -> list[ProducerState]:
        """Return the state of each producer, in order of first occurrence."""
        self._settle()
        columns = [self._states[name].tolist() for name in _NAMES[:-1]]
        first_offsets = (None if offset == NONE else offset for offset in self._states[_NAMES[-1]].tolist())
        return list(map(ProducerState, *columns, first_offsets))

    def _settle(self) -> None:
        self._states = join(np.concatenate((self._states, *self._later)))
        self._later, self._later_count = [], 0


def _of_states(states: Iterable[ProducerState]) -> _Rows:
    """Return states as rows with all fields of their producers."""
    rows = np.zeros(0, _DTYPE)
    values = [tuple(getattr(state, name) for name in _NAMES) for state in states]
    if values:
        rows = np.zeros(len(values), _DTYPE)
        for name, column in zip(_NAMES, zip(*values, strict=True), strict=True):
            rows[name] = [NONE if value is None else value for value in column]
        rows["first_epoch"] = rows["producer_epoch"]
        rows["has_data"] = rows["has_marker"] = True
    return rows


def _of_batches(headers: Headers) -> _Rows:
    """Return a row for each data batch of a producer and each marker; other control batches are ignored."""
    is_control = headers["attributes"] & CONTROL_BIT != 0
    is_marker = is_control & ((headers["control_type"] == ABORTED) | (headers["control_type"] == COMMITTED))
    chosen = headers[(headers["magic"] >= 2) & (headers["producer_id"] >= 0) & (is_marker | ~is_control)]
    data = chosen["attributes"] & CONTROL_BIT == 0
    begins = data & (chosen["attributes"] & TRANSACTIONAL_BIT != 0)
    sequence = (chosen["base_sequence"].astype(np.int64) + chosen["last_offset_delta"]) % SEQUENCES
    rows = np.zeros(len(chosen), _DTYPE)
    rows["producer_id"] = chosen["producer_id"]
    rows["producer_epoch"] = rows["first_epoch"] = chosen["producer_epoch"]
    rows["last_sequence"] = np.where(data & (chosen["base_sequence"] != NONE), sequence, NONE)
    rows["last_offset"] = np.where(data, last_offsets(chosen), NONE)
    rows["offset_delta"] = np.where(data, chosen["last_offset_delta"], 0)
    rows["last_timestamp"] = chosen["max_timestamp"]
    rows["coordinator_epoch"] = np.where(data, NONE, chosen["coordinator_epoch"])
    rows["current_transaction_first_offset"] = np.where(begins, chosen["base_offset"], NONE)
    rows["has_data"], rows["has_marker"] = data, ~data
    return rows


def join(rows: _Rows) -> _Rows:
    """Combine rows in the order of the log: one for each producer, in order of first occurrence."""
    if len(rows) < 2:
        return rows
    order = by_producer(rows["producer_id"])
    rows, at = rows[order], np.arange(len(order))
    is_first = np.ones(len(rows), bool)
    is_first[1:] = rows["producer_id"][1:] != rows["producer_id"][:-1]
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(rows)) - 1

    changes = rows["changes_epoch"].copy()
    changes[1:] |= ~is_first[1:] & ~rows["has_data"][1:] & (rows["first_epoch"][1:] != rows["producer_epoch"][:-1])
    # where the last row of a kind is; -1: nowhere
    last_data, last_marker, last_change = (
        np.maximum.reduceat(np.where(kind, at, -1), first) for kind in (rows["has_data"], rows["has_marker"], changes)
    )
    in_transaction = rows["current_transaction_first_offset"] != NONE
    in_transaction &= at >= np.repeat(last_marker, last - first + 1)
    begin = np.minimum.reduceat(np.where(in_transaction, at, len(rows)), first)

    joined = rows[last]
    joined["first_epoch"] = rows["first_epoch"][first]
    joined["has_data"], joined["has_marker"] = last_data >= 0, last_marker >= 0
    joined["changes_epoch"] = (last_change >= 0) & (last_change >= last_data)
    for name, nothing in _OF_DATA.items():
        keeps = joined["has_data"] & ~joined["changes_epoch"]
        joined[name] = np.where(keeps, rows[name][last_data], nothing)
    joined["coordinator_epoch"] = np.where(joined["has_marker"], rows["coordinator_epoch"][last_marker], NONE)
    first_offsets = np.append(rows["current_transaction_first_offset"], NONE)
    joined["current_transaction_first_offset"] = first_offsets[begin]
    return np.asarray(joined[np.argsort(order[first])])
