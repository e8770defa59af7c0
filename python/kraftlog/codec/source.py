"""Rows as callers have them, to columns as the encoder takes them: int32 offsets, int64 milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog._native import encoder as native
from kraftlog.codec.headers import NO_TIMESTAMP

DATA_COLUMNS = ("key", "value", "headers")  # of any number of bytes
ENCODED_COLUMNS = ("key", "value", "timestamp", "timestamp_ms", "headers")
_OTHER_COLUMNS = (schema.RECORDS.shown.keys() | schema.RECORDS.on_request.keys()) - set(ENCODED_COLUMNS)
_INT64 = pa.int64()
_UNITS_PER_MILLISECOND = {"ms": 1, "us": 1000, "ns": 1_000_000}
MOST_BYTES = 1 << 30  # of the columns of one source: their offsets then fit 32 bits, whatever type they had

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable["Rows"]


def record_batches(rows: Rows) -> Iterator[pa.Table | pa.RecordBatch]:
    """Return what holds rows, in order: tables and record batches, out of iterables and streams of them.

    Raises
    ------
    TypeError
        When something is neither.
    """
    if isinstance(rows, pa.Table | pa.RecordBatch):
        yield rows
    elif hasattr(rows, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(rows)
    elif hasattr(rows, "__arrow_c_array__"):
        yield pa.record_batch(rows)
    elif isinstance(rows, Iterable) and not isinstance(rows, str | bytes | dict):
        for each in rows:
            yield from record_batches(each)
    else:
        raise TypeError(f"rows are a {type(rows).__name__}, not a pyarrow Table, a RecordBatch or an iterable of these")


def sources(rows: pa.Table | pa.RecordBatch) -> Iterator[native.Source]:
    """Lend the columns of rows, a record batch at a time."""
    places = _places(tuple(rows.schema.names))
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        for piece in _pieces(batch):
            yield _source(piece, places)


@lru_cache(maxsize=64)
def _places(names: tuple[str, ...]) -> tuple[int, ...]:
    """Return where each of ``ENCODED_COLUMNS`` is; -1 when it is not there."""
    for name in names:
        if name in ENCODED_COLUMNS:
            if names.count(name) > 1:
                raise ValueError(f"column {name} is there {names.count(name)} times")
        elif name not in _OTHER_COLUMNS:
            raise ValueError(f"column {name!r} is not one of {', '.join(ENCODED_COLUMNS)}")
    if not any(name in ENCODED_COLUMNS for name in names):
        raise ValueError(f"none of the columns {', '.join(names)} is one of {', '.join(ENCODED_COLUMNS)}")
    return tuple(names.index(name) if name in names else -1 for name in ENCODED_COLUMNS)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows > 1 and batch.get_total_buffer_size() > MOST_BYTES and batch.nbytes > MOST_BYTES:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif batch.num_rows:
        yield batch


def _source(rows: pa.RecordBatch, places: tuple[int, ...]) -> native.Source:
    key, value, timestamp, timestamp_ms, headers = places
    source = native.Source(rows.num_rows)
    if key >= 0:
        source.set_key(*_parts(_binary("key", rows.column(key))))
    if value >= 0:
        source.set_value(*_parts(_binary("value", rows.column(value))))
    if timestamp_ms >= 0:
        stamps = _whole_numbers(rows.column(timestamp_ms))
        source.set_timestamp(stamps.buffers()[1], stamps.offset, native.TIME_UNITS["ms"])
    elif timestamp >= 0:
        stamps, unit = _timestamps(rows.column(timestamp))
        source.set_timestamp(stamps.buffers()[1], stamps.offset, native.TIME_UNITS[unit])
    if headers >= 0:
        _set_headers(source, rows.column(headers))
    return source


def _binary(name: str, column: pa.Array) -> pa.Array:
    given = column.type
    if pa.types.is_binary(given) or pa.types.is_string(given):
        return column
    if pa.types.is_dictionary(given):
        column = column.dictionary_decode()
    try:
        return column.cast(pa.binary())
    except pa.ArrowNotImplementedError:
        raise ValueError(f"column {name} is {given}, neither binary nor string") from None


def _parts(column: pa.Array) -> tuple[Any, Any, Any, int]:
    """Return validity, ends and data of a binary array, and how many of its values are skipped."""
    validity, ends, data = column.buffers()
    return validity, ends, data, column.offset


def _whole_numbers(column: pa.Array) -> pa.Array:
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise ValueError(f"column timestamp_ms is {column.type}, not int64")
    if column.type != _INT64:
        column = column.cast(_INT64)
    return column.fill_null(NO_TIMESTAMP) if column.null_count else column


def _timestamps(column: pa.Array) -> tuple[pa.Array, str]:
    """Return int64 timestamps without nulls, and their unit: one of ``native.TIME_UNITS``."""
    if pa.types.is_null(column.type):
        return _whole_numbers(column), "ms"
    if not pa.types.is_timestamp(column.type):
        raise ValueError(f"column timestamp is {column.type}, not a timestamp; milliseconds belong in timestamp_ms")
    if column.type.unit == "s":
        column = column.cast(pa.timestamp("ms", tz=column.type.tz))
    unit = column.type.unit
    if column.null_count:
        column = column.cast(_INT64).fill_null(NO_TIMESTAMP * _UNITS_PER_MILLISECOND[unit])
    return column, unit


def _set_headers(source: native.Source, column: pa.Array) -> None:
    if pa.types.is_null(column.type):
        return
    if column.type != schema.HEADERS:
        if not _is_headers(column.type):
            raise ValueError(f"column headers is {column.type}, neither a list of struct<key, value> nor a map")
        column = column.cast(schema.HEADERS)
    if column.null_count:
        import pyarrow.compute as pc  # takes longer to import than all of the codec

        column = pc.if_else(column.is_valid(), column, pa.array([[]], column.type).take(pa.array([0] * len(column))))
    ends = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    used = column.values.slice(ends[0], ends[-1] - ends[0])
    if used.null_count or used.field(0).null_count:
        raise ValueError("a header, or its key, is null; Kafka does not allow that")
    keys, values = column.values.field(0), column.values.field(1)
    source.set_headers(column.buffers()[1], column.offset)
    source.set_header_key(*_parts(keys))
    source.set_header_value(*_parts(values))


def _is_headers(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_text(kind.key_type) and _is_text(kind.item_type)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = kind.value_type
    return sorted(field.name for field in fields) == ["key", "value"] and all(_is_text(f.type) for f in fields)


def _is_text(kind: pa.DataType) -> bool:
    try:
        pa.nulls(0, kind).cast(pa.binary())
    except pa.ArrowNotImplementedError:
        return False
    return True
