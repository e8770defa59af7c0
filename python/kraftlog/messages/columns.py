"""Columns of the native interpreter as Arrow arrays, and Arrow arrays as what it reads. Buffers are not copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import message as native
from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import TAGGED_FIELD, UUID_TEXT, item_type, message_schema
from kraftlog.messages.definition import Definition
from kraftlog.messages.layout import Node, layout

_SIZED = frozenset({kinds.STRING, kinds.BYTES})
_WIDTHS = {"bool": 0, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "double": 8}


def assemble(definition: Definition, taken: Sequence[native.TakenColumn], uuid: str) -> pa.RecordBatch:
    """Return a message's columns as a record batch that has the schema of ``message_schema``.

    Parameters
    ----------
    definition : Definition
    taken : sequence
        What ``Columns.take`` returned.
    uuid : {"text", "binary"}
    """
    root = layout(definition).root
    arrays = [_array(child, taken, uuid) for child in root.children]
    arrays.append(_unknown(root, taken))
    return pa.RecordBatch.from_arrays(arrays, schema=message_schema(definition, uuid))


def _array(node: Node, taken: Sequence[native.TakenColumn], uuid: str) -> pa.Array:
    items = _items(node, taken, uuid)
    if not node.field.is_array:
        return items
    count, nulls, _, ends, valid = taken[node.index][0]
    return pa.Array.from_buffers(
        pa.list_(items.type), count, [_bits(valid, nulls), pa.py_buffer(ends)], nulls, children=[items]
    )


def _items(node: Node, taken: Sequence[native.TakenColumn], uuid: str) -> pa.Array:
    count, nulls, data, ends, valid = taken[node.index][1]
    kind = item_type(node.field, uuid)
    if node.field.kind == kinds.STRUCT:
        children = [_array(child, taken, uuid) for child in node.children]
        children.append(_unknown(node, taken))
        return pa.Array.from_buffers(kind, count, [_bits(valid, nulls)], nulls, children=children)
    if node.field.kind == kinds.BOOL:
        return pa.Array.from_buffers(kind, count, [_bits(valid, nulls), _pack(data)], nulls)
    buffers = [_bits(valid, nulls), pa.py_buffer(data)]
    if node.field.kind in _SIZED or (node.field.kind == kinds.UUID and uuid == UUID_TEXT):
        buffers.insert(1, pa.py_buffer(ends))
    return pa.Array.from_buffers(kind, count, buffers, nulls)


def _unknown(node: Node, taken: Sequence[native.TakenColumn]) -> pa.Array:
    (lists, _, _, list_ends, _), (count, _, data, ends, _), tags = taken[node.unknown]
    pairs = pa.StructArray.from_arrays(
        [
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(tags)]),
            pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(data)]),
        ],
        fields=list(TAGGED_FIELD),
    )
    return pa.Array.from_buffers(pa.list_(TAGGED_FIELD), lists, [None, pa.py_buffer(list_ends)], children=[pairs])


def _bits(valid: native.Grown, nulls: int) -> pa.Buffer | None:
    return _pack(valid) if nulls else None


def _pack(flags: native.Grown) -> pa.Buffer:
    bits: npt.NDArray[np.uint8] = np.packbits(np.frombuffer(flags, np.uint8), bitorder="little")
    return pa.py_buffer(bits)


def sources(definition: Definition, columns: pa.StructArray) -> list[native.Source]:
    """Return the buffers of a message's columns in the order of its layout.

    Parameters
    ----------
    definition : Definition
    columns : pyarrow.StructArray
        With a field for each of the message's, of the types of ``message_schema``.
    """
    places = layout(definition)
    found = [native.Source() for _ in range(places.columns)]
    _add(places.root, columns, found)
    return found


def _add(node: Node, array: pa.Array, found: list[native.Source]) -> None:
    lists = None
    if node.field.is_array:
        lists = (array.offset, *array.buffers()[:2], None)
        array = array.values
    if node.field.kind == kinds.STRUCT:
        found[node.index] = native.Source(lists, (array.offset, array.buffers()[0], None, (None, 0)))
        for number, child in enumerate(node.children):
            _add(child, array.field(number), found)
        _add_unknown(node, array.field(len(node.children)), found)
        return
    found[node.index] = native.Source(lists, _item_level(array))


def _item_level(array: pa.Array) -> tuple[Any, ...]:
    buffers = array.buffers()
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return (array.offset, buffers[0], buffers[1], (buffers[2] or b"", 0))
    width = array.type.byte_width if pa.types.is_fixed_size_binary(array.type) else _WIDTHS[str(array.type)]
    return (array.offset, buffers[0], None, (buffers[1], width))


def _add_unknown(node: Node, array: pa.ListArray, found: list[native.Source]) -> None:
    tags, data = array.values.field(0), array.values.field(1)
    lists = (array.offset, *array.buffers()[:2], None)
    found[node.unknown] = native.Source(lists, _item_level(data), (tags.offset, tags.buffers()[1]))
