"""Conversion of rows in Arrow to the columns of the encoder.

The encoder reads int32 offsets of values, and int64 timestamps. Columns of these types are borrowed. Others are copied
in pieces of the rows, whose size is computed first. Offsets, views and indexes are checked against the buffers, because
the producer of the arrays may not have validated them (``native/c/arrow/text_column.h``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa

from kraftlog import schema
from kraftlog._native import encoder as native
from kraftlog._native.text_column import FAULTS, LAYOUTS, ListColumn, TextColumn
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.errors import RecordTooLargeError

ENCODED_COLUMNS = ("key", "value", "timestamp", "timestamp_ms", "headers")
_OTHER_COLUMNS = (schema.RECORDS.shown.keys() | schema.RECORDS.on_request.keys()) - set(ENCODED_COLUMNS)
_INT64 = pa.int64()
_UNITS_PER_MILLISECOND = {"ms": 1, "us": 1000, "ns": 1_000_000}
PIECE_BYTES = 4 << 20  # of one column, when it is copied
PIECE_ROWS = 1 << 16
NO_BOUND = 2**63 - 1
_MOST_SIZE = 2**31 - 1  # of one value, and of the headers of one record
_TEXT_LAYOUTS = {
    pa.null().id: LAYOUTS["nulls"],
    pa.binary().id: LAYOUTS["ends32"],
    pa.string().id: LAYOUTS["ends32"],
    pa.large_binary().id: LAYOUTS["ends64"],
    pa.large_string().id: LAYOUTS["ends64"],
    pa.binary_view().id: LAYOUTS["views"],
    pa.string_view().id: LAYOUTS["views"],
    pa.binary(1).id: LAYOUTS["fixed"],
}
_NULLS, _FIXED = LAYOUTS["nulls"], LAYOUTS["fixed"]
_BINARY = {pa.binary().id, pa.large_binary().id, pa.binary_view().id, pa.binary(1).id}
_DICTIONARY = pa.dictionary(pa.int32(), pa.string()).id
_NULL = pa.null().id
_TIMESTAMP = pa.timestamp("ms").id

Fault: TypeAlias = tuple[int, int, int, int]

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable["Rows"]


def record_batches(rows: Rows) -> Iterator[pa.Table | pa.RecordBatch]:
    """Return the tables and record batches of iterables and streams, in order.

    Raises
    ------
    TypeError
        When an object is neither.
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


def check_rows(rows: object) -> None:
    """Raise TypeError unless it is a table or a record batch."""
    if not isinstance(rows, pa.Table | pa.RecordBatch):
        raise TypeError(f"rows are a {type(rows).__name__}, not a pyarrow Table or RecordBatch")


def sources(
    rows: pa.Table | pa.RecordBatch, *, first_row: int = 0, most_bytes: int | None = None
) -> Iterator[native.Source]:
    """Yield the columns of rows in pieces, in order.

    Parameters
    ----------
    rows : pyarrow.Table or pyarrow.RecordBatch
    first_row : int
        Number of the first row, for error messages.
    most_bytes : int, optional
        Maximum size of a column in a piece with several rows. By default borrowed columns are not split.

    Raises
    ------
    ValueError
        When the type of a column is not supported, or its offsets, views or indexes exceed its buffers.
    RecordTooLargeError
        When a value, or the headers of a row, exceed 2^31 - 1 bytes.
    """
    places = _places(tuple(rows.schema.names))
    # a reader makes batches of chunks when they are asked for: a builder may take a few rows of thousands of chunks
    for batch in rows.to_reader() if isinstance(rows, pa.Table) else [rows]:
        if batch.num_rows:
            yield from _Gate(batch, places, first_row).pieces(most_bytes)
            first_row += batch.num_rows


def lent_bytes(rows: pa.Table) -> int:
    """Return the approximate size of borrowed columns."""
    lent = [
        name
        for name in ("key", "value")
        if name in rows.column_names and _layout(rows.schema.field(name).type) == LAYOUTS["ends32"]
    ]
    return max(0, int(rows.select(lent).nbytes)) if lent else 0


@lru_cache(maxsize=64)
def _places(names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the index of each of ``ENCODED_COLUMNS``; -1 for missing ones."""
    for name in names:
        if name in ENCODED_COLUMNS:
            if names.count(name) > 1:
                raise ValueError(f"column {name} is there {names.count(name)} times")
        elif name not in _OTHER_COLUMNS:
            raise ValueError(f"column {name!r} is not one of {', '.join(ENCODED_COLUMNS)}")
    if not any(name in ENCODED_COLUMNS for name in names):
        raise ValueError(f"none of the columns {', '.join(names)} is one of {', '.join(ENCODED_COLUMNS)}")
    return tuple(names.index(name) if name in names else -1 for name in ENCODED_COLUMNS)


class _Gate:
    """The columns of one record batch, to be split into pieces. Batches may have one row: the overhead is small."""

    def __init__(self, batch: pa.RecordBatch, places: tuple[int, ...], first_row: int) -> None:
        key, value, timestamp, timestamp_ms, headers = places
        self._rows, self._first_row = batch.num_rows, first_row
        self._is_lent = True
        self._key = None if key < 0 else self._text("key", batch.column(key))
        self._value = None if value < 0 else self._text("value", batch.column(value))
        self._timestamps: pa.Array | None = None
        if timestamp_ms >= 0:
            self._set_timestamps("timestamp_ms", batch.column(timestamp_ms))
        elif timestamp >= 0:
            self._set_timestamps("timestamp", batch.column(timestamp))
        self._headers: tuple[ListColumn, TextColumn, TextColumn] | None = None
        if headers >= 0 and (column := batch.column(headers)).type.id != _NULL:
            self._set_headers(column)

    def pieces(self, most_bytes: int | None) -> Iterator[native.Source]:
        most_rows = self._rows if self._is_lent else PIECE_ROWS
        most = most_bytes or (NO_BOUND if self._is_lent else PIECE_BYTES)
        first = 0
        while first < self._rows:
            count = self._measured(first, min(most_rows, self._rows - first), most)
            yield self._source(first, count)
            first += count

    def _text(self, name: str, column: pa.Array) -> TextColumn:
        made = _text_column(column)
        if made is None:
            raise ValueError(f"column {name} is {column.type}, neither binary nor string")
        if made.fault is not None:
            raise self._refused(name, made.fault)
        if not made.is_lent:
            self._is_lent = False
        return made

    def _refused(self, name: str, fault: Fault) -> ValueError:
        code, row, found, limit = fault
        where = f"column {name}" if row < 0 else f"column {name}, row {self._first_row + row}"
        return ValueError(f"{where}: {FAULTS[code].format(found=found, limit=limit)}")

    def _set_timestamps(self, name: str, column: pa.Array) -> None:
        """Keep a column whose buffers are large enough for its rows."""
        kind = column.type
        if kind.id != _NULL:
            if not (pa.types.is_integer(kind) if name == "timestamp_ms" else kind.id == _TIMESTAMP):
                expected = "int64" if name == "timestamp_ms" else "a timestamp; milliseconds belong in timestamp_ms"
                raise ValueError(f"column {name} is {kind}, not {expected}")
            validity, data = column.buffers()
            rows = column.offset + len(column)
            _check_buffer(name, data, rows * kind.bit_width // 8)
            if validity is not None:
                _check_buffer(name, validity, -(-rows // 8))
        self._timestamps = column
        self._unit = _lent_unit(column)
        if self._unit is None:
            self._is_lent = False

    def _set_headers(self, column: pa.Array) -> None:
        kind = column.type
        if kind == schema.HEADERS:
            key, value, width, self._checks_utf8 = 0, 1, 4, False
        elif _is_headers(kind):
            is_map = pa.types.is_map(kind)
            key = 0 if is_map else kind.value_type.get_field_index("key")
            value = 1 - key
            width = 8 if pa.types.is_large_list(kind) else 4
            self._checks_utf8 = _is_binary(kind.key_type if is_map else kind.value_type.field(key).type)
        else:
            raise ValueError(f"column headers is {kind}, neither a list of struct<key, value> nor a map")
        items = column.values
        keys, values = items.field(key), items.field(value)
        if len(keys) < len(items) or len(values) < len(items):
            raise ValueError(f"column headers: {len(items)} headers have {len(keys)} keys and {len(values)} values")
        validity, ends = column.buffers()[:2]
        lists = ListColumn(len(column), column.offset, validity, ends, width, len(items))
        if lists.fault is not None:
            raise self._refused("headers", lists.fault)
        self._headers = lists, self._text("headers.key", keys), self._text("headers.value", values)
        # whether an item is null, as values of no bytes
        self._items = TextColumn(_FIXED, len(items), items.offset, items.buffers()[0], None, (None,), 0)
        if self._items.fault is not None:
            raise self._refused("headers", self._items.fault)

    def _measured(self, first: int, count: int, most: int) -> int:
        """Return the number of rows in the piece that begins with ``first``."""
        for name, text in (("key", self._key), ("value", self._value)):
            if text is None:
                continue
            count, size, fault = text.measure(first, count, most)
            if fault is not None:
                raise self._refused(name, fault)
            if not count:
                raise self._too_large(f"its {name}", "bytes", first, size)
        return count if self._headers is None else self._measured_headers(*self._headers, first, count, most)

    def _measured_headers(
        self, lists: ListColumn, keys: TextColumn, values: TextColumn, first: int, count: int, most: int
    ) -> int:
        count, items, fault = lists.measure(first, count, NO_BOUND if most == NO_BOUND else max(1, most // 8))
        if fault is not None:
            raise self._refused("headers", fault)
        if not count:
            raise self._too_large("it", "headers", first, items)
        first_item = lists.first_item(first)
        for name, text in (("headers.key", keys), ("headers.value", values)):
            taken, _, fault = text.measure(first_item, items, most)
            if fault is None and taken < items:
                whole = lists.row_of(first, count, first_item + taken) - first
                count = whole or 1  # the headers of one row belong together
                items = lists.first_item(first + count) - first_item
                if not whole:
                    taken, _, fault = text.measure(first_item, items, _MOST_SIZE)
                    if fault is None and taken < items:
                        raise self._too_large("its headers", "bytes", first, _MOST_SIZE + 1)
            if fault is not None:
                code, item, found, limit = fault
                raise self._refused(name, (code, lists.row_of(first, count, item), found, limit))
        bad = lists.headers_fault(first, count, self._items, keys, self._checks_utf8)
        if bad is not None:
            row, is_text = bad
            what = (
                "the key of a header is not UTF-8"
                if is_text
                else "a header, or its key, is null; Kafka does not allow that"
            )
            raise ValueError(f"column headers, row {self._first_row + row}: {what}")
        return count

    def _too_large(self, what: str, of: str, row: int, size: int) -> RecordTooLargeError:
        return RecordTooLargeError(
            f"record {self._first_row + row}: {what} alone takes {size} {of} or more, more than {_MOST_SIZE}"
        )

    def _source(self, first: int, count: int) -> native.Source:
        source = native.Source(count)
        if self._key is not None:
            source.set_key(self._key, first)
        if self._value is not None:
            source.set_value(self._value, first)
        if self._timestamps is not None:
            if self._unit is not None:
                stamps, skipped, unit = self._timestamps, self._timestamps.offset + first, self._unit
            else:
                stamps, unit = _milliseconds(self._timestamps.slice(first, count))
                skipped = stamps.offset
            source.set_timestamp(stamps.buffers()[1], skipped, native.TIME_UNITS[unit])
        if self._headers is not None:
            lists, keys, values = self._headers
            source.set_headers(lists, first, keys, values)
        return source


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _layout(kind: pa.DataType) -> int | None:
    """Return the layout of binary or text; None of other types."""
    return _TEXT_LAYOUTS.get(_storage(kind).id)


def _text_column(column: pa.Array) -> TextColumn | None:
    """Return a column of binary or text, or a dictionary of these; None of other types."""
    kind = column.type
    layout = _TEXT_LAYOUTS.get(kind.id)
    indexes = None
    if layout is None:
        if isinstance(column, pa.ExtensionArray):
            return _text_column(column.storage)
        if kind.id != _DICTIONARY:
            return None
        index, given = kind.index_type, column.indices
        validity, buffer = given.buffers()
        indexes = len(given), given.offset, validity, buffer, index.bit_width // 8, pa.types.is_signed_integer(index)
        column = column.dictionary
        layout = _layout(column.type)
        if layout is None:
            return None
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
    if layout == _NULLS:
        return TextColumn(layout, len(column), 0, None, None, (), 0, indexes)
    validity, places, *data = column.buffers()
    if layout == _FIXED:
        return TextColumn(
            layout, len(column), column.offset, validity, None, (places,), column.type.byte_width, indexes
        )
    return TextColumn(layout, len(column), column.offset, validity, places, data, 0, indexes)


def _lent_unit(column: pa.Array) -> str | None:
    """Return the unit of timestamps that are not converted: one of ``native.TIME_UNITS``."""
    kind = column.type
    if column.null_count:
        return None
    if kind.id == _TIMESTAMP:
        return kind.unit if kind.unit in native.TIME_UNITS else None
    return "ms" if kind.id == _INT64.id else None


def _check_buffer(name: str, buffer: pa.Buffer | None, needed: int) -> None:
    found = 0 if buffer is None else buffer.size
    if found < needed:
        raise ValueError(f"column {name}: a buffer has {found} bytes, the rows take {needed}")


def _milliseconds(column: pa.Array) -> tuple[pa.Array, str]:
    """Return int64 timestamps without nulls, and their unit: one of ``native.TIME_UNITS``."""
    if not pa.types.is_timestamp(column.type):
        column = column if column.type == _INT64 else column.cast(_INT64)
        return column.fill_null(NO_TIMESTAMP) if column.null_count else column, "ms"
    if column.type.unit == "s":
        column = column.cast(pa.timestamp("ms", tz=column.type.tz))
    unit = column.type.unit
    if column.null_count:
        column = column.cast(_INT64).fill_null(NO_TIMESTAMP * _UNITS_PER_MILLISECOND[unit])
    return column, unit


def _is_headers(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _is_text(kind.key_type) and _is_text(kind.item_type)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = kind.value_type
    return sorted(field.name for field in fields) == ["key", "value"] and all(_is_text(f.type) for f in fields)


def _is_text(kind: pa.DataType) -> bool:
    kind = _storage(kind)
    return _layout(kind.value_type if kind.id == _DICTIONARY else kind) is not None


def _is_binary(kind: pa.DataType) -> bool:
    kind = _storage(kind)
    return _storage(kind.value_type).id in _BINARY if kind.id == _DICTIONARY else kind.id in _BINARY
