"""Columns as columns of text: what JSON Lines and CSV have in each cell. No loop of Python goes over rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native import cell_text as native
from kraftlog.codec.value_hashes import lent_values
from kraftlog.schema import IS_JSON

TEXT = pa.large_string()
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
# well-formed UTF-8 (Unicode 15, table 3-7); Arrow matches patterns with bytes as they are
_IS_UTF8 = (
    r"\A(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    r"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*\z"
)
MARK = "base64:"  # in CSV before the base64 of bytes that are no text; a text that begins so is written as base64, too
SIZE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
MOST_BYTES = 32 << 20  # of rows that become text at a time


def json_lines(batch: pa.RecordBatch, binary: str) -> pa.Buffer:
    """Return rows as JSON Lines in UTF-8.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    binary : str
        base64, hex, utf8, or text: what bytes become. With text it is text where they are UTF-8, else
        ``{"base64": "..."}``.
    """
    parts: list[pa.Array | str] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        parts += [("," if parts else "{") + json.dumps(field.name) + ":", json_cells(column, field, binary)]
    return bytes_of(joined([*parts, "}\n"], batch.num_rows))


def csv_lines(batch: pa.RecordBatch, binary: str) -> pa.Buffer:
    """Return rows as CSV in UTF-8: null is an empty field, an empty value a quoted one.

    With binary text, bytes that are no UTF-8 are base64 after ``base64:``.
    """
    parts: list[pa.Array | str] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        parts += [*([","] if parts else []), csv_cells(column, field, binary)]
    return bytes_of(joined([*parts, "\n"], batch.num_rows))


def pieces(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return a batch in slices of which the text fits memory well."""
    count = min(max(1, batch.nbytes // MOST_BYTES), max(1, batch.num_rows))
    edges = [batch.num_rows * at // count for at in range(count + 1)]
    return [batch.slice(start, end - start) for start, end in pairwise(edges)]


def json_cells(column: pa.Array, field: pa.Field, binary: str) -> pa.Array:
    """Return the JSON of each value; ``null`` of null."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        texts = _json_of_lists(column, binary)
    elif pa.types.is_map(kind):
        texts = _json_of_maps(column, binary)
    elif pa.types.is_struct(kind):
        names = [inner.name for inner in kind]
        parts: list[pa.Array | str] = []
        for name, inner, values in zip(names, kind, column.flatten(), strict=True):
            parts += [("," if parts else "{") + json.dumps(name) + ":", json_cells(values, inner, binary)]
        texts = _where_valid(joined([*parts, "}"] if parts else ["{}"], len(column)), column)
    elif _is_binary(kind) and binary == "text":
        texts = _json_of_bytes(column)
    elif field.metadata == IS_JSON or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        texts = column.cast(TEXT)
    elif pa.types.is_floating(kind):
        texts = pa.array([None if value is None else json.dumps(value) for value in column.to_pylist()], TEXT)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or (_is_binary(kind) and binary == "utf8"):
        texts = _formed(native.JSON, plain_cells(column, binary))
    else:
        texts = joined(['"', plain_cells(column, binary), '"'], len(column))
    return texts.fill_null("null")


def csv_cells(column: pa.Array, field: pa.Field, binary: str) -> pa.Array:
    """Return the field of CSV of each value; nested ones are JSON."""
    kind = column.type
    if pa.types.is_nested(kind):
        texts = _where_valid(json_cells(column, field, binary), column)
    elif _is_binary(kind) and binary == "text":
        texts = _marked(column)
    else:
        texts = plain_cells(column, binary)
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind)):
        texts = _formed(native.CSV, texts)
    return texts.fill_null("")


def plain_cells(column: pa.Array, binary: str) -> pa.Array:
    """Return the text of each value that is not nested, without quotes; null of null.

    Timestamps are RFC 3339 in UTC with milliseconds, or microseconds where they have them.
    """
    kind = column.type
    if _is_binary(kind):
        if binary == "text":
            return _text_or_hex(column)
        return _utf8(column) if binary == "utf8" else _formed(getattr(native, binary.upper()), column)
    if pa.types.is_timestamp(kind):
        microseconds = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).fill_null(0)
        return _array(*native.timestamp_texts(np.asarray(microseconds)), column)
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], TEXT)
    return column.cast(TEXT)


def size_cells(column: pa.Array) -> pa.Array:
    """Return numbers of bytes as people read them, such as ``1.2 MiB``; null of null."""
    sizes = pc.round(column).cast(pa.int64())
    texts = joined([sizes.cast(TEXT), " B"], len(sizes))
    for power, unit in enumerate(SIZE_UNITS, 1):
        tenths = pc.round(pc.multiply(sizes.cast(pa.float64(), safe=False), 10 / 1024**power)).cast(pa.int64())
        whole = pc.divide(tenths, 10)
        tenth = pc.subtract(tenths, pc.multiply(whole, 10))
        in_unit = joined([whole.cast(TEXT), ".", tenth.cast(TEXT), f" {unit}"], len(sizes))
        # from where the next smaller unit would show 1024.0
        is_large = pc.greater_equal(sizes, 1024 if power == 1 else 1024**power - int(1024 ** (power - 1) / 20))
        texts = pc.if_else(is_large, in_unit, texts)
    return texts


def joined(parts: Sequence[pa.Array | str | bytes], rows: int, kind: pa.DataType = TEXT) -> pa.Array:
    """Return the texts, or bytes, of each row as one; what is no array is the same in all rows."""
    nothing = b"" if kind == pa.large_binary() else ""
    if not any(isinstance(part, pa.Array) for part in parts):
        return pa.array([nothing.join(parts)] * rows, kind)  # type: ignore[arg-type]
    scalars = [part if isinstance(part, pa.Array) else pa.scalar(part, kind) for part in parts]
    return pc.binary_join_element_wise(*scalars, pa.scalar(nothing, kind))


def _json_of_lists(column: pa.Array, binary: str) -> pa.Array:
    elements = json_cells(column.flatten(), column.type.value_field, binary)
    return _json_of_items(column, elements, "[", "]")


def _json_of_maps(column: pa.Array, binary: str) -> pa.Array:
    kind = column.type
    pairs = pairs_of(column)
    keys, values = (pairs.flatten().field(at) for at in range(2))
    texts = joined(
        [json_cells(keys, kind.key_field, binary), ":", json_cells(values, kind.item_field, binary)], len(keys)
    )
    return _json_of_items(pairs, texts, "{", "}")


def pairs_of(column: pa.Array) -> pa.Array:
    """Return maps as lists of pairs."""
    return column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))


def _json_of_items(column: pa.Array, elements: pa.Array, first: str, last: str) -> pa.Array:
    ends = np.concatenate([[0], np.cumsum(np.asarray(column.value_lengths().fill_null(0)), dtype=np.int64)])
    lists = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), elements), pa.scalar(",", TEXT))
    return _where_valid(joined([first, lists, last], len(column)), column)


def _utf8(column: pa.Array) -> pa.Array:
    """Return bytes as UTF-8, with U+FFFD for what is none."""
    try:
        return column.cast(TEXT)
    except pa.ArrowInvalid:
        texts = [None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist()]
        return pa.array(texts, TEXT)


def _text_or_hex(column: pa.Array) -> pa.Array:
    """Return bytes as text where they are UTF-8 without control characters, else their number and hex."""
    texts, is_text = _texts(column)
    is_text = pc.and_(is_text, pc.invert(pc.match_substring_regex(texts, _CONTROL))).fill_null(False)
    if pc.all(is_text).as_py() or len(column) == column.null_count:
        return texts
    sizes = pc.binary_length(column).cast(TEXT)
    return pc.if_else(is_text, texts, joined([sizes, " bytes: 0x", _formed(native.HEX, column)], len(column)))


def _texts(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return bytes as text, empty where they are no UTF-8, and where they are."""
    try:
        return column.cast(TEXT), column.is_valid()
    except pa.ArrowInvalid:
        values = column.cast(pa.large_binary())
        is_text = pc.match_substring_regex(values, _IS_UTF8)
        return pc.if_else(is_text, values, pa.scalar(b"", pa.large_binary())).cast(TEXT), is_text


def _json_of_bytes(column: pa.Array) -> pa.Array:
    """Return strings of JSON, or ``{"base64":"..."}`` where bytes are no UTF-8."""
    texts, is_text = _texts(column)
    strings = _formed(native.JSON, texts)
    if pc.all(is_text).as_py() or len(column) == column.null_count:
        return strings
    others = joined(['{"base64":"', _formed(native.BASE64, column), '"}'], len(column))
    return pc.if_else(is_text, strings, others)


def _marked(column: pa.Array) -> pa.Array:
    """Return text, or base64 after ``MARK`` where bytes are no UTF-8, or begin with that themselves."""
    texts, is_text = _texts(column)
    is_text = pc.and_(is_text, pc.invert(pc.starts_with(texts, MARK)))
    if pc.all(is_text).as_py() or len(column) == column.null_count:
        return texts
    return pc.if_else(is_text, texts, joined([MARK, _formed(native.BASE64, column)], len(column)))


def _formed(form: int, column: pa.Array) -> pa.Array:
    return _array(*native.cell_texts(form, lent_values(column)), column)


def _array(ends: npt.NDArray[np.int64], text: npt.NDArray[np.uint8], like: pa.Array) -> pa.Array:
    array = pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(text))
    return _where_valid(array, like)


def _where_valid(texts: pa.Array, like: pa.Array) -> pa.Array:
    return pc.if_else(like.is_valid(), texts, pa.scalar(None, TEXT)) if like.null_count else texts


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def bytes_of(lines: pa.Array) -> pa.Buffer:
    """Return texts, or bytes, one behind the other."""
    _, ends, data = lines.buffers()
    first, last = np.frombuffer(ends, np.int64)[[lines.offset, lines.offset + len(lines)]]
    return pa.py_buffer(b"") if data is None else data.slice(int(first), int(last - first))
