"""JSON values, parsed by Arrow. Their type is that of the values that are looked at first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from kraftlog.codec.arrow_arrays import array_of
from kraftlog.values.bad_value import BadValue
from kraftlog.values.places import places_of
from kraftlog.values.scalars import text_of

_NAME = "v"
_BEFORE, _BEHIND, _BETWEEN = b'{"v":', b"}\n", b""
_ID_BYTES = 5
_LARGEST_BLOCK = (1 << 31) - 1


class JsonFormat:
    """JSON values as columns of one type.

    A value with a field that the type does not have, or one of another type, does not fit. What a registry's serializer
    puts before a value is passed over: JSON never begins with a byte 0.

    Parameters
    ----------
    arrow_type : pyarrow.DataType
    """

    reads_headers = False

    def __init__(self, arrow_type: pa.DataType) -> None:
        self.arrow_type = arrow_type

    def convert(self, values: pa.Array, _: pa.Array | None = None) -> tuple[pa.Array, list[BadValue]]:
        """Return values of the type."""
        texts, not_text = text_of(_plain(values))
        rows = np.flatnonzero(np.asarray(texts.is_valid()).astype(bool))
        there = texts.drop_null()
        parsed, bad = _parsed(there, self.arrow_type, 0)
        at = np.full(len(values), -1, np.int64)
        is_bad = np.zeros(len(there), bool)
        is_bad[[one.row for one in bad]] = True
        at[rows[~is_bad]] = np.arange(len(rows) - len(bad))
        made = (
            pa.concat_arrays(parsed).take(array_of(at, mask=at < 0))
            if parsed
            else pa.nulls(len(values), self.arrow_type)
        )
        return made, not_text + [BadValue(int(rows[one.row]), one.reason) for one in bad]


def json_type(samples: Iterable[pa.Array]) -> pa.DataType:
    """Return a type that fits values, as far as one does: those that are no JSON, or contradict others, are left out.

    Parameters
    ----------
    samples : iterable of pyarrow.BinaryArray

    Examples
    --------
    >>> import pyarrow as pa
    >>> json_type([pa.array([b'{"id": 1}', b'{"id": 2, "note": "late"}'])])
    StructType(struct<id: int64, note: string>)
    """
    found: list[pa.DataType] = []
    for values in samples:
        found += _types(text_of(_plain(values))[0].drop_null())
    kind = pa.null()
    for one in found:
        try:
            kind = pa.unify_schemas(
                [pa.schema([(_NAME, kind)]), pa.schema([(_NAME, one)])], promote_options="permissive"
            )[0].type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            continue
    return _settled(kind)


def _types(values: pa.Array) -> list[pa.DataType]:
    if not len(values):
        return []
    try:
        return [_read(values, None).column(0).type]
    except pa.ArrowInvalid:
        half = len(values) // 2
        return _types(values[:half]) + _types(values[half:]) if half else []


def _settled(kind: pa.DataType) -> pa.DataType:
    """Return a type without guesses: text that looks like a time stays text, and so does what was always null."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _settled(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(_settled(kind.value_type))
    return pa.string() if pa.types.is_null(kind) or pa.types.is_temporal(kind) else kind


def _plain(values: pa.Array) -> pa.Array:
    """Return values without the id of a schema before them."""
    data, starts, ends = places_of(values)
    content = np.frombuffer(memoryview(data), np.uint8)
    is_framed = ends - starts > _ID_BYTES
    is_framed[is_framed] = content[starts[is_framed]] == 0
    if not is_framed.any():
        return values
    mask = pa.Array.from_buffers(
        pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(is_framed, bitorder="little"))]
    )
    return pc.if_else(mask, pc.binary_slice(values, _ID_BYTES), values)


def _parsed(values: pa.Array, kind: pa.DataType, first: int) -> tuple[list[pa.Array], list[BadValue]]:
    """Return the values that fit, and those that do not; where some do not, halves are tried."""
    if not len(values):
        return [], []
    try:
        return _read(values, kind).column(0).chunks, []
    except pa.ArrowInvalid as error:
        if len(values) == 1:
            return [], [
                BadValue(first, f"expected JSON of type {kind}: {str(error).removeprefix('JSON parse error: ')}")
            ]
    half = len(values) // 2
    good, bad = _parsed(values[:half], kind, first)
    more, others = _parsed(values[half:], kind, first + half)
    return good + more, bad + others


def _read(values: pa.Array, kind: pa.DataType | None) -> pa.Table:
    """Return a row for each value.

    Raises
    ------
    pyarrow.ArrowInvalid
        When one of them is no JSON, more than one value, or not of the type.
    """
    before, behind, between = (pa.scalar(one, pa.large_binary()) for one in (_BEFORE, _BEHIND, _BETWEEN))
    lines = pc.binary_join_element_wise(before, values.cast(pa.large_string()).cast(pa.large_binary()), behind, between)
    data, starts, ends = places_of(lines)
    text = pa.py_buffer(data).slice(int(starts[0]), int(ends[-1] - starts[0]))
    schema = None if kind is None else pa.schema([(_NAME, kind)])
    table = arrow_json.read_json(
        pa.BufferReader(text),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=min(len(text) + 1, _LARGEST_BLOCK)),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=True,
            unexpected_field_behavior="infer" if kind is None else "error",
        ),
    )
    if table.num_rows != len(values) or table.column_names != [_NAME]:
        raise pa.ArrowInvalid(f"found {table.num_rows} values where there is one")
    return table
