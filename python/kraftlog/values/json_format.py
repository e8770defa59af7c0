"""JSON values, parsed by Arrow, as columns of one type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from kraftlog.codec.arrow_arrays import array_of
from kraftlog.values.bad_value import BadValue
from kraftlog.values.places import Numbers, places_of
from kraftlog.values.scalars import text_of

_NAME = "v"
_BEFORE, _BEHIND, _BETWEEN = b'{"v":', b"}\n", b""
_ID_BYTES = 5
_LARGEST_BLOCK = (1 << 31) - 1
_UNKNOWN = "field {} is not in the type of these values: sample all of them, or give a schema"


class JsonFormat:
    """JSON values as columns of one type.

    A value of another type does not fit. One with a field that the type lacks does not fit either, but its other fields
    are kept. What a registry's serializer puts before a value is passed over: JSON never begins with a byte 0.

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
        parsed: list[pa.Array] = []
        bad: list[BadValue] = []
        _parse(there, self.arrow_type, 0, parsed, bad)
        at = np.full(len(values), -1, np.int64)
        is_null = np.zeros(len(there), bool)
        is_null[[one.row for one in bad if not one.is_in_part]] = True
        at[rows[~is_null]] = np.arange(len(rows) - is_null.sum())
        made = (
            pa.concat_arrays(parsed).take(array_of(at, mask=at < 0))
            if parsed
            else pa.nulls(len(values), self.arrow_type)
        )
        return made, not_text + [replace(one, row=int(rows[one.row])) for one in bad]


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
    kind = pa.null()
    for values in samples:
        for one in _types(text_of(_plain(values))[0].drop_null()):
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
        return [_read(values).column(0).type]
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
    return pc.if_else(mask, pc.binary_replace_slice(values, 0, _ID_BYTES, b""), values)


def _parse(values: pa.Array, kind: pa.DataType, first: int, found: list[pa.Array], bad: list[BadValue]) -> None:
    """Append the values that fit, and those that do not; where some do not, halves are tried."""
    if not len(values):
        return
    try:
        found += _read(values, kind).column(0).chunks
    except pa.ArrowInvalid as error:
        if _parse_known(values, kind, first, found, bad):
            return
        if len(values) == 1:
            reason = str(error).removeprefix("JSON parse error: ")
            bad.append(BadValue(first, f"expected JSON of type {kind}: {reason}"))
            return
        half = len(values) // 2
        _parse(values[:half], kind, first, found, bad)
        _parse(values[half:], kind, first + half, found, bad)


def _parse_known(values: pa.Array, kind: pa.DataType, first: int, found: list[pa.Array], bad: list[BadValue]) -> bool:
    """Take values whose known fields fit; returns whether they do, and unknown fields are of one type each.

    An unknown field that is null says nothing, so that a value with no other one fits.
    """
    try:
        known = _read(values, kind, "ignore").column(0)
        every = _read(values, kind, "infer").column(0).combine_chunks()
    except pa.ArrowInvalid:
        return False
    unknown = dict(_unknown(every, kind, np.arange(len(values)), ""))
    found += known.chunks
    for row in sorted(unknown):
        bad.append(BadValue(first + row, _UNKNOWN.format(unknown[row]), is_in_part=True))
    return True


def _unknown(found: pa.Array, kind: pa.DataType, rows: Numbers, path: str) -> Iterator[tuple[int, str]]:
    """Return the rows that have fields which a type lacks, and the path of one."""
    if pa.types.is_list(kind):
        yield from _unknown(found.flatten(), kind.value_type, rows[np.asarray(pc.list_parent_indices(found))], path)
    elif pa.types.is_struct(kind):
        names = {one.name: one.type for one in kind}
        for field in found.type:
            column, inner = found.field(field.name), f"{path}.{field.name}".removeprefix(".")
            if field.name in names:
                yield from _unknown(column, names[field.name], rows, inner)
            else:
                yield from ((int(row), inner) for row in rows[np.asarray(column.is_valid()).astype(bool)])


def _read(values: pa.Array, kind: pa.DataType | None = None, unexpected: str = "error") -> pa.Table:
    """Return a row for each value; without a type, as what they are.

    Parameters
    ----------
    values : pyarrow.StringArray
    kind : pyarrow.DataType, optional
    unexpected : {"error", "ignore", "infer"}
        What fields are that the type lacks.

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
            unexpected_field_behavior="infer" if kind is None else unexpected,
        ),
    )
    if table.num_rows != len(values) or table.column_names != [_NAME]:
        raise pa.ArrowInvalid(f"found {table.num_rows} values where there is one")
    return table
