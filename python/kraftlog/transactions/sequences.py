"""Checks that a broker would have accepted the batches of each producer in this order.

Sequences of a producer's epoch have no gaps. If the log lacks offsets between two batches, it was cleaned, and a gap
between their sequences is not an error. Between the first batch of a transaction and its marker there are only
transactional batches of one epoch, and the marker's epoch is not less than theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import CONTROL_BIT, TRANSACTIONAL_BIT
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.transactions.producer import ABORTED, COMMITTED, by_producer
from kraftlog.transactions.producer_state import SEQUENCES

_IN_TRANSACTION, _PLAIN, _MARKER = 0, 1, 2
_NO_SEQUENCE = -1

_DTYPE = np.dtype(
    [
        ("producer_id", "i8"),
        ("base_offset", "i8"),
        ("position", "i8"),
        ("missing", "i8"),  # number of missing offsets before it
        ("sequence", "i8"),
        ("next_sequence", "i8"),
        ("epoch", "i2"),
        ("kind", "i1"),
        ("is_new", "?"),
    ]
)
_Rows = npt.NDArray[np.void]


class OddBatch(NamedTuple):
    """A batch that a broker would not have accepted, and the reason."""

    error: str
    position: int
    base_offset: int
    what: str


class SequenceCheck:
    """Goes through the headers of one partition; keeps two rows for each producer.

    Parameters
    ----------
    compare_sequences : bool
        False for topics that a coordinator writes: it gives every batch sequence 0, which brokers accept.
    """

    def __init__(self, *, compare_sequences: bool = True) -> None:
        self._compare_sequences = compare_sequences
        self._before = np.empty(0, _DTYPE)
        self._next_offset: int | None = None
        self._missing = 0

    def add(self, headers: Headers) -> Iterator[OddBatch]:
        """Process the next headers and return the batches that do not follow from earlier ones."""
        new = self._rows(headers)
        if not len(new):
            return
        concerned = np.isin(self._before["producer_id"], new["producer_id"])
        rows = np.concatenate((self._before[concerned], new))
        rows = rows[by_producer(rows["producer_id"])]
        before_data = _previous(rows, rows["kind"] != _MARKER)
        before_state = _previous(rows, rows["kind"] != _PLAIN)
        if self._compare_sequences:
            yield from _gaps(rows, before_data)
        yield from _interleaved(rows, before_state)
        last = rows[_last(rows, rows["kind"] != _MARKER) | _last(rows, rows["kind"] != _PLAIN)]
        last["is_new"] = False
        self._before = np.concatenate((self._before[~concerned], last))

    def _rows(self, headers: Headers) -> _Rows:
        missing = self._count_missing(headers)
        control = headers["attributes"] & CONTROL_BIT != 0
        marker = control & ((headers["control_type"] == ABORTED) | (headers["control_type"] == COMMITTED))
        chosen = (headers["magic"] >= 2) & (headers["producer_id"] >= 0) & (marker | ~control)
        batches = headers[chosen]
        rows = np.empty(len(batches), _DTYPE)
        for name in ("producer_id", "base_offset", "position"):
            rows[name] = batches[name]
        rows["epoch"] = batches["producer_epoch"]
        rows["missing"] = missing[chosen]
        rows["sequence"] = batches["base_sequence"]
        following = batches["base_sequence"].astype(np.int64) + batches["last_offset_delta"] + 1
        rows["next_sequence"] = np.where(batches["base_sequence"] == _NO_SEQUENCE, _NO_SEQUENCE, following % SEQUENCES)
        transactional = batches["attributes"] & TRANSACTIONAL_BIT != 0
        rows["kind"] = np.select([marker[chosen], transactional], [_MARKER, _IN_TRANSACTION], _PLAIN)
        rows["is_new"] = True
        return rows

    def _count_missing(self, headers: Headers) -> npt.NDArray[np.int64]:
        """Return the number of missing offsets before each batch."""
        if not len(headers):
            return np.empty(0, np.int64)
        start = int(headers["base_offset"][0]) if self._next_offset is None else self._next_offset
        following = np.maximum.accumulate(np.concatenate(([start], last_offsets(headers) + 1)))
        missing = self._missing + np.cumsum((headers["base_offset"] - following[:-1]).clip(min=0))
        self._next_offset, self._missing = int(following[-1]), int(missing[-1])
        return missing


def _previous(rows: _Rows, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return, for each row, the last chosen row of the same producer before it; -1 without one."""
    at = np.arange(len(rows))
    latest = np.maximum.accumulate(np.where(chosen, at, -1))
    before = np.append(-1, latest[:-1])
    same = (before >= 0) & (rows["producer_id"][before] == rows["producer_id"])
    return np.where(same, before, -1)


def _last(rows: _Rows, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which rows are the last chosen ones of their producers."""
    at = np.flatnonzero(chosen)
    ids = rows["producer_id"][at]
    last = np.zeros(len(rows), bool)
    last[at[np.append(ids[1:] != ids[:-1], True)] if len(at) else at] = True
    return last


def _gaps(rows: _Rows, before: npt.NDArray[np.intp]) -> Iterator[OddBatch]:
    previous = rows[before]
    both = (before >= 0) & rows["is_new"] & (rows["kind"] != _MARKER) & (rows["epoch"] == previous["epoch"])
    both &= (rows["sequence"] != _NO_SEQUENCE) & (previous["next_sequence"] != _NO_SEQUENCE)
    odd = both & (rows["sequence"] != previous["next_sequence"]) & (rows["missing"] == previous["missing"])
    for row, last in zip(rows[odd], previous[odd], strict=True):
        yield _odd(row, "sequence_gap", f"expected base_sequence {last['next_sequence']}, found {row['sequence']}")


def _interleaved(rows: _Rows, before: npt.NDArray[np.intp]) -> Iterator[OddBatch]:
    previous = rows[before]
    within = rows["is_new"] & (before >= 0) & (previous["kind"] == _IN_TRANSACTION)
    is_data, is_marker = rows["kind"] == _IN_TRANSACTION, rows["kind"] == _MARKER
    wrong = (rows["kind"] == _PLAIN) | (is_data & (rows["epoch"] != previous["epoch"]))
    wrong |= is_marker & (rows["epoch"] < previous["epoch"])
    for row, last in zip(rows[within & wrong], previous[within & wrong], strict=True):
        inside = f"inside the transaction that its batch at offset {last['base_offset']} is in"
        if row["kind"] == _PLAIN:
            yield _odd(row, "not_transactional", f"a batch that is not transactional, {inside}")
        else:
            what = "a marker" if row["kind"] == _MARKER else "a batch"
            yield _odd(row, "bad_producer_epoch", f"{what} of epoch {row['epoch']}, not {last['epoch']}, {inside}")


def _odd(row: np.void, error: str, what: str) -> OddBatch:
    return OddBatch(error, int(row["position"]), int(row["base_offset"]), f"producer {row['producer_id']}: {what}")
