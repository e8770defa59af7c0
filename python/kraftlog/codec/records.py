"""Decoded chunks as Arrow record batches of the ``records`` table. Buffers are taken over, not copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.decoder import WANT, Chunk
from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec import headers as batch_headers
from kraftlog.stream import rows_of

_HEADER_KEY, _HEADER_VALUE = schema.HEADERS.value_type.field(0), schema.HEADERS.value_type.field(1)


TRANSACTION_STATES = ["aborted", "committed", "open", "unknown"]
TRANSACTION_COLUMNS = frozenset({"transaction_state", "visible_at"})
NO_TRANSACTION = -1
NEVER = -1


class TransactionView(Protocol):
    """What is known of the transactions around some records."""

    @property
    def hides_offsets(self) -> bool:
        """Whether some records that it hides share a batch with others."""

    @property
    def aborted_by_offset(self) -> bool:
        """Whether ``aborted`` has offsets, not bytes of the file."""

    def aborted(self) -> npt.NDArray[np.int64] | None:
        """Return the transactions whose batches are not decoded.

        Rows, in order, are producer_id and the bytes of the file, or base offsets, from which on and up to which
        batches are theirs.
        """

    def shows(self, headers: batch_headers.Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether records at these offsets are visible, as far as offsets tell."""

    def states(self, headers: batch_headers.Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
        """Return indices into ``TRANSACTION_STATES``, or ``NO_TRANSACTION``; ``rows`` of a header are its records."""

    def visible_at(self, headers: batch_headers.Headers, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the offset at which each record became visible, and ``NEVER``."""


@dataclass(frozen=True)
class Origin:
    """Where records come from: columns of the same names, and the transactions that they belong to."""

    topic: str | None = None
    partition: int | None = None
    transactions: TransactionView | None = None


@dataclass
class DecodedRows:
    """A chunk seen as columns."""

    chunk: Chunk
    origin: Origin

    @cached_property
    def headers(self) -> batch_headers.Headers:
        """Headers of the batches that have rows in this chunk."""
        return np.frombuffer(self.chunk.batches, HEADER_DTYPE)

    def per_row(self, per_batch: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Repeat a value of each batch for each of its rows."""
        return np.repeat(per_batch, self.headers["rows"])

    def buffer(self, name: str) -> pa.Buffer | None:
        """Return a buffer of the chunk as Arrow's; it keeps the chunk's memory alive."""
        part = self.chunk.buffers[name]
        return None if part is None else pa.py_buffer(part)

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """Return an int64 buffer of the chunk as an array, not copied."""
        return np.frombuffer(self.chunk.buffers[name], np.int64)

    def binary(self, name: str, kind: pa.DataType, rows: int) -> pa.Array:
        """Return a column of bytes or text."""
        parts = [self.buffer(f"{name}.validity"), self.buffer(f"{name}.ends"), self.buffer(f"{name}.data")]
        return pa.Array.from_buffers(kind, rows, parts, self.chunk.nulls[name])

    def fixed(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column of numbers or timestamps."""
        validity = self.buffer(f"{name}.validity") if f"{name}.validity" in self.chunk.buffers else None
        return pa.Array.from_buffers(
            kind, self.chunk.rows, [validity, self.buffer(name)], self.chunk.nulls.get(name, 0)
        )


def _record_headers(rows: DecodedRows) -> pa.Array:
    count = rows.chunk.headers
    pairs = pa.StructArray.from_arrays(
        [rows.binary("header_key", pa.string(), count), rows.binary("header_value", pa.binary(), count)],
        fields=[_HEADER_KEY, _HEADER_VALUE],
    )
    return pa.Array.from_buffers(
        schema.HEADERS, rows.chunk.rows, [None, rows.buffer("headers.ends")], 0, children=[pairs]
    )


def _timestamp_type(rows: DecodedRows) -> pa.Array:
    codes = batch_headers.timestamp_type_codes(rows.headers)
    if (codes == codes[0]).all():
        return batch_headers.repeated(batch_headers.TIMESTAMP_TYPES[codes[0]], pa.string(), rows.chunk.rows)
    return batch_headers.named(rows.per_row(codes), batch_headers.TIMESTAMP_TYPES)


def _timestamp_type_id(rows: DecodedRows) -> pa.Array:
    ids = batch_headers.TIMESTAMP_TYPE_IDS[batch_headers.timestamp_type_codes(rows.headers)]
    if (ids == ids[0]).all():
        return batch_headers.repeated(int(ids[0]), pa.int32(), rows.chunk.rows)
    return pa.array(rows.per_row(ids))


def _sequence(rows: DecodedRows) -> pa.Array:
    base = np.repeat(rows.headers["base_sequence"].astype(np.int64), rows.headers["rows"])
    delta = rows.numbers("offset") - np.repeat(rows.headers["base_offset"].astype(np.int64), rows.headers["rows"])
    return pa.array(np.where(base < 0, -1, (base + delta) & 0x7FFFFFFF).astype(np.int32))


def _control_type(rows: DecodedRows) -> pa.Array:
    return batch_headers.named(np.frombuffer(rows.chunk.buffers["control_type"], np.int16), batch_headers.CONTROL_TYPES)


def _view(rows: DecodedRows) -> TransactionView:
    if rows.origin.transactions is None:
        raise ValueError("nothing is known of transactions here")
    return rows.origin.transactions


def _transaction_state(rows: DecodedRows) -> pa.Array:
    codes = _view(rows).states(rows.headers, rows.numbers("offset"))
    return batch_headers.named(codes, TRANSACTION_STATES)


def _visible_at(rows: DecodedRows) -> pa.Array:
    offsets = _view(rows).visible_at(rows.headers, rows.numbers("offset"))
    return pa.array(offsets, mask=offsets == NEVER)


def _of_batch(name: str) -> Callable[[DecodedRows], pa.Array]:
    """Build a column that a record takes over from its batch's header."""

    def column(rows: DecodedRows) -> pa.Array:
        values = batch_headers.header_column(name, rows.headers)
        if len(values) == 1:
            return pa.repeat(values[0], rows.chunk.rows)
        return values.take(pa.array(rows.per_row(np.arange(len(values)))))

    return column


def _of_origin(name: str) -> Callable[[DecodedRows], pa.Array]:
    kind = schema.RECORDS.select([name]).field(0).type
    return lambda rows: batch_headers.repeated(getattr(rows.origin, name), kind, rows.chunk.rows)


@dataclass(frozen=True)
class _Column:
    build: Callable[[DecodedRows], pa.Array]
    needs: tuple[str, ...] = ()


_COLUMNS = {
    "key": _Column(lambda rows: rows.binary("key", pa.binary(), rows.chunk.rows), ("key",)),
    "value": _Column(lambda rows: rows.binary("value", pa.binary(), rows.chunk.rows), ("value",)),
    "offset": _Column(lambda rows: rows.fixed("offset", pa.int64()), ("offset",)),
    "timestamp": _Column(lambda rows: rows.fixed("timestamp", schema.TIMESTAMP), ("timestamp",)),
    "timestamp_ms": _Column(lambda rows: rows.fixed("timestamp_ms", pa.int64()), ("timestamp_ms",)),
    "headers": _Column(_record_headers, ("headers",)),
    "timestamp_type": _Column(_timestamp_type),
    "timestamp_type_id": _Column(_timestamp_type_id),
    "sequence": _Column(_sequence, ("offset",)),
    "control_type": _Column(_control_type, ("control_type",)),
    "transaction_state": _Column(_transaction_state, ("offset",)),
    "visible_at": _Column(_visible_at, ("offset",)),
    "topic": _Column(_of_origin("topic")),
    "partition": _Column(_of_origin("partition")),
    **{
        name: _Column(_of_batch(name))
        for name in (
            "base_offset",
            "position",
            "partition_leader_epoch",
            "producer_id",
            "producer_epoch",
            "is_transactional",
            "is_control",
        )
    },
}


def wanted_bits(columns: Sequence[str]) -> int:
    """Return which buffers the native decoder must fill for these columns."""
    bits = 0
    for name in columns:
        for need in _COLUMNS[name].needs:
            bits |= WANT[need]
    return bits


def record_batch(rows: DecodedRows, arrow_schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of the schema as one record batch that shares the chunk's memory."""
    return rows_of([_COLUMNS[name].build(rows) for name in arrow_schema.names], arrow_schema, rows.chunk.rows)
