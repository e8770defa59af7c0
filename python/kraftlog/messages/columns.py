"""Columns of the native interpreter as Arrow arrays, and Arrow arrays as its input. Buffers are not copied."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import message as native
from kraftlog._native.message_encode import Source
from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS, message_schema
from kraftlog.messages.definition import Definition
from kraftlog.messages.layout import Node, layout
from kraftlog.messages.record_type import VALUE, RecordType

_WIDTHS = {"bool": 0, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "double": 8}


@cache
def record_schema(record_type: RecordType, uuid: str, *, with_key: bool) -> pa.Schema:
    """Return the columns of a type of record: the fields of the key, if there are keys, and of the value."""
    assert record_type.value is not None
    fields = list(message_schema(record_type.value, uuid))
    if with_key and record_type.key is not None:
        fields = [*list(message_schema(record_type.key, uuid))[:-1], *fields]
    names = [name for name, _, side in record_type.columns if with_key or side == VALUE]
    return pa.schema(
        [pa.field(name, field.type) for name, field in zip([*names, UNKNOWN_TAGGED_FIELDS], fields, strict=True)]
    )


def record_batch(
    decoded: list[native.Columns],
    rows: int,
    schema: pa.Schema,
    is_absent: npt.NDArray[np.bool_] | None = None,
) -> pa.RecordBatch:
    """Return columns of messages side by side, as a record batch.

    Parameters
    ----------
    decoded : list of Columns
        Columns of ``rows`` messages each. The last ones end in unknown tagged fields.
    rows : int
    schema : pyarrow.Schema
        The fields of all columns.
    is_absent : numpy.ndarray of bool, optional
        Rows in which the fields of the last message are null.
    """
    if not decoded:
        return pa.RecordBatch.from_pylist([], schema=schema)
    flags = None if is_absent is None else is_absent.view(np.uint8)
    return native.to_record_batch(decoded, rows, pa.RecordBatch._import_from_c, schema, flags)


def with_tombstones(
    record_type: RecordType,
    uuid: str,
    keys: list[native.Columns],
    values: list[native.Columns],
    is_tombstone: npt.NDArray[np.bool_],
) -> pa.RecordBatch:
    """Return columns of records; the value's fields are null for records without a value.

    Parameters
    ----------
    record_type : RecordType
    uuid : str
    keys : list of Columns
        Columns of all keys; empty if keys are left out.
    values : list of Columns
        Columns of the existing values; empty without any.
    is_tombstone : numpy.ndarray of bool
        Whether each record has no value.
    """
    assert record_type.value is not None
    count = len(is_tombstone)
    of_values = record_batch(values, count - int(is_tombstone.sum()), message_schema(record_type.value, uuid))
    of_values = of_values.take(pa.array(np.cumsum(~is_tombstone) - 1, mask=is_tombstone))
    schema = record_schema(record_type, uuid, with_key=bool(keys))
    if not keys:
        return pa.RecordBatch.from_arrays(of_values.columns, schema=schema)
    assert record_type.key is not None
    of_keys = record_batch(keys, count, message_schema(record_type.key, uuid)).columns[:-1]
    return pa.RecordBatch.from_arrays([*of_keys, *of_values.columns], schema=schema)


def sources(definition: Definition, columns: pa.StructArray) -> list[Source]:
    """Return the buffers of a message's columns in the order of its layout.

    Parameters
    ----------
    definition : Definition
    columns : pyarrow.StructArray
        A field for each of the message's, with the types of ``message_schema``.
    """
    places = layout(definition)
    found = [Source() for _ in range(places.columns)]
    _add(places.root, columns, found)
    return found


def _add(node: Node, array: pa.Array, found: list[Source]) -> None:
    lists = None
    if node.field.is_array:
        lists = (array.offset, *array.buffers()[:2], None)
        array = array.values
    if node.field.kind == kinds.STRUCT:
        found[node.index] = Source(lists, (array.offset, array.buffers()[0], None, (None, 0)))
        for number, child in enumerate(node.children):
            _add(child, array.field(number), found)
        _add_unknown(node, array.field(len(node.children)), found)
        return
    found[node.index] = Source(lists, _item_level(array))


def _item_level(array: pa.Array) -> tuple[Any, ...]:
    buffers = array.buffers()
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return (array.offset, buffers[0], buffers[1], (buffers[2] or b"", 0))
    width = array.type.byte_width if pa.types.is_fixed_size_binary(array.type) else _WIDTHS[str(array.type)]
    return (array.offset, buffers[0], None, (buffers[1], width))


def _add_unknown(node: Node, array: pa.ListArray, found: list[Source]) -> None:
    tags, data = array.values.field(0), array.values.field(1)
    lists = (array.offset, *array.buffers()[:2], None)
    found[node.unknown] = Source(lists, _item_level(data), (tags.offset, tags.buffers()[1]))
