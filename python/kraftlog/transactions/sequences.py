"""Checks that a broker would have accepted the batches of each producer in this order.

Sequences of a producer's epoch have no gaps, and a new epoch begins with sequence 0. If the log lacks offsets between
two batches, it was cleaned, and a gap between their sequences is not an error. Between the first batch of a transaction
and its marker there are only transactional batches of one epoch, and the marker's epoch is not less than theirs, unless
offsets are missing, which may be those of a marker. The epochs of a producer, and those of the coordinators of its
markers, never decrease.

A broker drops the state of a producer that wrote nothing for ``producer.id.expiration.ms``, and then accepts any epoch
and sequence. Batches whose times lie a day or more apart are therefore only compared within a transaction.
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
_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms by default

_DTYPE = np.dtype(
    [
        ("producer_id", "i8"),
        ("base_offset", "i8"),
        ("position", "i8"),
        ("missing", "i8"),  # number of missing offsets before it
        ("sequence", "i8"),
        ("next_sequence", "i8"),
        ("timestamp", "i8"),
        ("coordinator_epoch", "i4"),
        ("epoch", "i2"),
        ("kind", "i1"),
        ("is_new", "?"),
    ]
)
_Rows = npt.NDArray[np.void]


SEQUENCE_GAP, NOT_TRANSACTIONAL = "sequence_gap", "not_transactional"
BAD_PRODUCER_EPOCH, BAD_COORDINATOR_EPOCH = "bad_producer_epoch", "bad_coordinator_epoch"


class OddBatch(NamedTuple):
    """A batch that a broker would not have accepted, and the reason.

    Attributes
    ----------
    error : str
    position, base_offset : int
    what : str
        The reason, in one sentence.
    producer_id : int
    is_marker : bool
    is_open : bool
        Whether it is in a transaction that began before it.
    repeats : bool
        Whether its sequence is one that the producer has used in the same epoch.
    is_later : bool
        Whether its epoch is later than that of the transaction.
    """

    error: str
    position: int
    base_offset: int
    what: str
    producer_id: int
    is_marker: bool = False
    is_open: bool = False
    repeats: bool = False
    is_later: bool = False


class SequenceCheck:
    """Goes through the headers of one partition; keeps three rows for each producer.

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
        is_marker = rows["kind"] == _MARKER
        before = _previous(rows, np.ones(len(rows), bool))
        before_data = _previous(rows, ~is_marker)
        before_state = _previous(rows, rows["kind"] != _PLAIN)
        if self._compare_sequences:
            yield from _gaps(rows, before_data, before)
        wrong = _wrong_inside(rows, before_state)
        yield from _interleaved(rows, before_state, wrong)
        yield from _decreasing(rows, before, ~wrong)
        yield from _of_older_coordinators(rows, _previous(rows, is_marker))
        last = rows[_last(rows, ~is_marker) | _last(rows, rows["kind"] != _PLAIN) | _last(rows, is_marker)]
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
        rows["timestamp"] = batches["max_timestamp"]
        rows["coordinator_epoch"] = batches["coordinator_epoch"]
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


def _is_remembered(rows: _Rows, before: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return whether a broker has the state of the producer that the row before left."""
    return np.asarray(rows["timestamp"] - rows["timestamp"][before] < _EXPIRATION_MS)


def _gaps(rows: _Rows, before_data: npt.NDArray[np.intp], before: npt.NDArray[np.intp]) -> Iterator[OddBatch]:
    has_data, sequences = before_data >= 0, rows["next_sequence"][before_data]
    compared = rows["is_new"] & (rows["kind"] != _MARKER) & (rows["sequence"] != _NO_SEQUENCE) & (before >= 0)
    compared &= _is_remembered(rows, before)
    latest = np.where(has_data, before_data, before)
    epochs = rows["epoch"][latest]
    continues = has_data & (rows["epoch"] == epochs) & (sequences != _NO_SEQUENCE)
    expected = np.where(continues, sequences, 0)
    odd = compared & (continues | (epochs < rows["epoch"])) & (rows["sequence"] != expected)
    odd &= rows["missing"] == rows["missing"][latest]
    # sequences count modulo 2^31: one that lies less than half of them before the expected one was used already
    used = continues & ((expected - rows["sequence"]) % SEQUENCES < SEQUENCES // 2)
    for row, sequence, repeats in zip(rows[odd], expected[odd].tolist(), used[odd].tolist(), strict=True):
        what = f"expected base_sequence {sequence}, found {row['sequence']}"
        yield _odd(row, SEQUENCE_GAP, what, repeats=repeats)


def _wrong_inside(rows: _Rows, before: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return which rows cannot be inside of the transaction that their producer certainly has open."""
    kinds, epochs = rows["kind"], rows["epoch"][before]
    within = rows["is_new"] & (before >= 0) & (kinds[before] == _IN_TRANSACTION)
    within &= rows["missing"] == rows["missing"][before]  # its marker may be missing
    wrong = (kinds == _PLAIN) | ((kinds == _IN_TRANSACTION) & (rows["epoch"] != epochs))
    wrong |= (kinds == _MARKER) & (rows["epoch"] < epochs)
    return np.asarray(within & wrong)


def _interleaved(rows: _Rows, before: npt.NDArray[np.intp], wrong: npt.NDArray[np.bool_]) -> Iterator[OddBatch]:
    for row, last in zip(rows[wrong], rows[before[wrong]], strict=True):
        inside = f"inside the transaction that its batch at offset {last['base_offset']} is in"
        if row["kind"] == _PLAIN:
            yield _odd(row, NOT_TRANSACTIONAL, f"a batch that is not transactional, {inside}", is_open=True)
        else:
            what = f"{_kind(row)} of epoch {row['epoch']}, not {last['epoch']}, {inside}"
            odd = _odd(row, BAD_PRODUCER_EPOCH, what, is_open=True)
            yield odd._replace(is_later=bool(row["epoch"] > last["epoch"]))


def _decreasing(rows: _Rows, before: npt.NDArray[np.intp], chosen: npt.NDArray[np.bool_]) -> Iterator[OddBatch]:
    odd = chosen & rows["is_new"] & (before >= 0) & (rows["epoch"] < rows["epoch"][before])
    odd &= _is_remembered(rows, before)
    for row, last in zip(rows[odd], rows[before[odd]], strict=True):
        what = f"{_kind(row)} of epoch {row['epoch']} after {_kind(last)} of epoch {last['epoch']}"
        yield _odd(row, BAD_PRODUCER_EPOCH, f"{what} at offset {last['base_offset']}")


def _of_older_coordinators(rows: _Rows, before: npt.NDArray[np.intp]) -> Iterator[OddBatch]:
    odd = rows["is_new"] & (rows["kind"] == _MARKER) & (before >= 0)
    odd &= (rows["coordinator_epoch"] < rows["coordinator_epoch"][before]) & _is_remembered(rows, before)
    for row, last in zip(rows[odd], rows[before[odd]], strict=True):
        what = f"a marker of coordinator epoch {row['coordinator_epoch']} after one of {last['coordinator_epoch']}"
        yield _odd(row, BAD_COORDINATOR_EPOCH, f"{what} at offset {last['base_offset']}")


def _kind(row: np.void) -> str:
    return "a marker" if row["kind"] == _MARKER else "a batch"


def _odd(row: np.void, error: str, what: str, *, is_open: bool = False, repeats: bool = False) -> OddBatch:
    producer_id = int(row["producer_id"])
    return OddBatch(
        error,
        int(row["position"]),
        int(row["base_offset"]),
        f"producer {producer_id}: {what}",
        producer_id,
        bool(row["kind"] == _MARKER),
        is_open,
        repeats,
    )
