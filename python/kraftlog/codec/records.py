"""Decoded chunks as Arrow record batches of the ``records`` table. Buffers are reused, not copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.chunk import COLUMNS, MOST_NAMED_ROWS, SHARED_ROWS, Chunk
from kraftlog._native.decoder import VIEWS, WANT
from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec import header_columns
from kraftlog.codec.arrow_arrays import array_of
from kraftlog.codec.headers import CONTROL_TYPES, TIMESTAMP_TYPE_IDS, Headers, timestamp_type_codes
from kraftlog.codec.transaction_view import NEVER, NO_TRANSACTION, TRANSACTION_STATES, TransactionView
from kraftlog.stream import rows_of

TRANSACTION_COLUMNS = frozenset({"transaction_state", "visible_at"})
LAYOUTS = PLAIN, VIEW = ("plain", "view")
MOST_ROWS = 2**31 - 2


@dataclass(frozen=True)
class Origin:
    """Source of records: columns of the same names, and the transactions of the records."""

    topic: str | None = None
    partition: int | None = None
    transactions: TransactionView | None = None


@dataclass
class DecodedRows:
    """A chunk as columns."""

    chunk: Chunk
    origin: Origin
    salvaged_at: int = -1  # the first batch that was found by a search behind damage

    @cached_property
    def headers(self) -> Headers:
        """Headers of the batches that have rows in this chunk."""
        return np.frombuffer(self.chunk.batches, HEADER_DTYPE)

    @property
    def salvaged(self) -> npt.NDArray[np.bool_]:
        """Whether each row belongs to a batch found by a search, or follows one."""
        if self.salvaged_at < 0:
            return np.zeros(self.chunk.rows, bool)
        return self.per_row(self.headers["position"] >= self.salvaged_at).astype(bool)

    def per_row(self, per_batch: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Repeat a value of each batch for each of its rows."""
        return np.repeat(per_batch, self.headers["rows"])

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """Return ``offset`` or ``timestamp_ms`` as an array, not copied."""
        part = self.chunk.offsets if name == "offset" else self.chunk.timestamps_ms
        return np.frombuffer(part, np.int64)

    def array(self, name: str, kind: pa.DataType) -> pa.Array:
        """Return a column built by the native decoder."""
        return self.chunk.to_array(COLUMNS[name], pa.Array._import_from_c, kind)


def _timestamp_type_id(rows: DecodedRows) -> pa.Array:
    ids = TIMESTAMP_TYPE_IDS[timestamp_type_codes(rows.headers)]
    if (ids == ids[0]).all():
        return header_columns.repeated(int(ids[0]), pa.int32(), rows.chunk.rows)
    return array_of(rows.per_row(ids))


def _sequence(rows: DecodedRows) -> pa.Array:
    base = np.repeat(rows.headers["base_sequence"].astype(np.int64), rows.headers["rows"])
    delta = rows.numbers("offset") - np.repeat(rows.headers["base_offset"].astype(np.int64), rows.headers["rows"])
    return array_of(np.where(base < 0, -1, (base + delta) & 0x7FFFFFFF).astype(np.int32))


def _control_type(rows: DecodedRows) -> pa.Array:
    return header_columns.named(np.frombuffer(rows.chunk.control_types, np.int16), CONTROL_TYPES)


def _view(rows: DecodedRows) -> TransactionView:
    if rows.origin.transactions is None:
        raise ValueError("nothing is known of transactions here")
    return rows.origin.transactions


def _transaction_state(rows: DecodedRows) -> pa.Array:
    codes = _view(rows).states(rows.headers, rows.numbers("offset"))
    if rows.salvaged_at >= 0:  # nothing is known of the transactions behind damage
        codes = np.where(rows.salvaged & (codes != NO_TRANSACTION), TRANSACTION_STATES.index("unknown"), codes)
    return header_columns.named(codes, TRANSACTION_STATES)


def _visible_at(rows: DecodedRows) -> pa.Array:
    offsets = _view(rows).visible_at(rows.headers, rows.numbers("offset"))
    is_never = offsets == NEVER
    return array_of(offsets, mask=is_never)


def _of_batch(name: str) -> Callable[[DecodedRows], pa.Array]:
    """Build a column from the batch headers."""

    def column(rows: DecodedRows) -> pa.Array:
        values = header_columns.header_column(name, rows.headers)
        if len(values) == 1:
            return pa.repeat(values[0], rows.chunk.rows)
        if pa.types.is_integer(values.type) and not values.null_count:
            return array_of(rows.per_row(values.to_numpy()))
        return values.take(array_of(rows.per_row(np.arange(len(values)))))

    return column


def _of_origin(name: str) -> Callable[[DecodedRows], pa.Array]:
    kind = schema.RECORDS.select([name]).field(0).type
    return lambda rows: header_columns.repeated(getattr(rows.origin, name), kind, rows.chunk.rows)


@dataclass(frozen=True)
class _Column:
    build: Callable[[DecodedRows], pa.Array]
    needs: tuple[str, ...] = ()


_MADE_HERE = {
    "timestamp_type_id": _Column(_timestamp_type_id),
    "sequence": _Column(_sequence, ("offset",)),
    "control_type": _Column(_control_type, ("control_type",)),
    "transaction_state": _Column(_transaction_state, ("offset",)),
    "visible_at": _Column(_visible_at, ("offset",)),
    "salvaged": _Column(lambda rows: array_of(rows.salvaged)),
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


@dataclass(frozen=True)
class Selection:
    """Columns of the ``records`` table, and the way to build them.

    Attributes
    ----------
    bits : int
        Flags of ``WANT``: the columns that the native decoder must fill, and whether keys and values are views.
    native : tuple of int, optional
        Their indexes in ``COLUMNS``, if the native decoder builds all of them.
    """

    bits: int
    native: tuple[int, ...] | None

    @cached_property
    def has_names(self) -> bool:
        """Whether a column may repeat a few names in all rows."""
        return self.native is None or COLUMNS["timestamp_type"] in self.native

    @property
    def most_rows(self) -> int:
        """Maximum number of rows of a record batch, limited by 32-bit sizes of columns."""
        return MOST_NAMED_ROWS if self.has_names else MOST_ROWS

    @property
    def shared_rows(self) -> int:
        """Number of rows of a record batch up to which a column uses shared memory."""
        return SHARED_ROWS if self.has_names else MOST_ROWS


@lru_cache(maxsize=64)
def select(names: tuple[str, ...], layout: str = PLAIN) -> Selection:
    """Return the selection of columns with these names."""
    bits = VIEWS if layout == VIEW else 0
    for name in names:
        for need in _MADE_HERE[name].needs if name in _MADE_HERE else {name} & WANT.keys():
            bits |= WANT[need]
    is_native = bool(names) and not any(name in _MADE_HERE for name in names)
    return Selection(bits, tuple(COLUMNS[name] for name in names) if is_native else None)


def record_batch(rows: DecodedRows, arrow_schema: pa.Schema, selection: Selection) -> pa.RecordBatch:
    """Return the columns of the schema as one record batch that shares the chunk's memory."""
    if selection.native is not None:
        return rows.chunk.to_record_batch(selection.native, pa.RecordBatch._import_from_c, arrow_schema)
    columns = [
        _MADE_HERE[field.name].build(rows) if field.name in _MADE_HERE else rows.array(field.name, field.type)
        for field in arrow_schema
    ]
    return rows_of(columns, arrow_schema, rows.chunk.rows)
