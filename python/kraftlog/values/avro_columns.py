"""The columns that values of a reader's schema are decoded into, and the Arrow arrays made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kraftlog._native import avro
from kraftlog.types import Buffer
from kraftlog.values.avro_schema import AvroType

_NUMBERS = {"boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8, "enum": 4, "null": 0}
_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
ColumnBuffers = tuple[int, Buffer | None, Buffer, Buffer]  # rows, validity, values, data
_MOST_DIGITS = 38  # of decimal128


@dataclass
class Column:
    """A column, and those inside of it. ``type`` is that of its values; of a union with null, what else there is.

    A union of several types is a struct of ``member0``, ``member1`` ..., of which one has a value, as Spark has it.
    """

    type: AvroType
    arrow: pa.DataType
    index: int = -1
    children: list[Column] = field(default_factory=list)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Kind, width, first child and number of children, as the core has them."""
        first, count = self.children[0].index if self.children else 0, len(self.children)
        if self.type.logical == "decimal":
            return avro.NUMBERS, 16 if self.type.precision <= _MOST_DIGITS else 32, 0, 0
        if self.type.kind in _NUMBERS:
            return avro.NUMBERS, _NUMBERS[self.type.kind], 0, 0
        if self.type.kind in ("string", "bytes", "fixed"):
            return avro.BYTES, 0, 0, 0
        return avro.LIST if self.type.kind in ("array", "map") else avro.STRUCT, 0, first, count


def branches_with_values(type_: AvroType) -> list[AvroType]:
    """Return the branches of a union but null."""
    return [branch for branch in type_.branches if branch.kind != "null"]


def column_of(type_: AvroType, outer: tuple[AvroType, ...] = ()) -> Column:
    """Return the column for values of a type.

    Raises
    ------
    ValueError
        When a record holds itself, for which Arrow has no type.
    """
    if type_.kind == "union":
        members = branches_with_values(type_)
        if not members:
            return Column(AvroType("null"), pa.null())
        if len(members) == 1:
            return column_of(members[0], outer)
        children = [column_of(branch, outer) for branch in members]
        names = [f"member{at}" for at in range(len(children))]
        return Column(type_, _struct(names, children), children=children)
    if type_.kind == "record":
        if type_ in outer:
            raise ValueError(f"record {type_.name} holds itself, for which Arrow has no type")
        children = [column_of(one.type, (*outer, type_)) for one in type_.fields]
        return Column(type_, _struct([one.name for one in type_.fields], children), children=children)
    if type_.kind == "array":
        item = column_of(type_.item, outer)
        return Column(type_, pa.list_(item.arrow), children=[item])
    if type_.kind == "map":
        pair = [Column(AvroType("string"), pa.string()), column_of(type_.item, outer)]
        kind = pa.map_(pa.string(), pair[1].arrow)
        entries = Column(AvroType("record"), pa.struct([kind.key_field, kind.item_field]), children=pair)
        return Column(type_, kind, children=[entries])
    if type_.logical == "decimal":
        decimal = pa.decimal128 if type_.precision <= _MOST_DIGITS else pa.decimal256
        return Column(type_, decimal(type_.precision, type_.scale))
    return Column(type_, _LOGICAL.get(type_.logical or "") or _PLAIN[type_.kind])


def numbered(root: Column) -> list[Column]:
    """Give each column its index, the children of one behind each other, and return them in that order."""
    found = [root]
    root.index = 0
    for column in _growing(found):
        for child in column.children:
            child.index = len(found)
            found.append(child)
    return found


def _growing(found: list[Column]) -> Iterator[Column]:
    at = 0
    while at < len(found):
        yield found[at]
        at += 1


def _struct(names: list[str], children: list[Column]) -> pa.DataType:
    return pa.struct([pa.field(name, child.arrow) for name, child in zip(names, children, strict=True)])


def array_of(column: Column, buffers: list[ColumnBuffers]) -> pa.Array:
    """Return a column, and those inside of it, as an array."""
    length, validity, values, data = buffers[column.index]
    valid = None if validity is None else pa.py_buffer(validity)
    kind = column.type.kind
    if kind == "null":
        return pa.nulls(length)
    if kind == "boolean":
        bits = np.packbits(np.frombuffer(memoryview(values), np.uint8), bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), length, [valid, pa.py_buffer(bits)])
    if kind == "enum":
        numbers = pa.Array.from_buffers(pa.int32(), length, [valid, pa.py_buffer(values)])
        return pa.array(column.type.symbols, pa.string()).take(numbers)
    if kind in ("record", "union"):
        children = [array_of(child, buffers) for child in column.children]
        return pa.Array.from_buffers(column.arrow, length, [valid], children=children)
    if kind in ("array", "map"):
        item = array_of(column.children[0], buffers)
        return pa.Array.from_buffers(column.arrow, length, [valid, pa.py_buffer(values)], children=[item])
    if column.type.logical != "decimal" and kind in ("string", "bytes", "fixed"):
        return pa.Array.from_buffers(column.arrow, length, [valid, pa.py_buffer(values), pa.py_buffer(data)])
    return pa.Array.from_buffers(column.arrow, length, [valid, pa.py_buffer(values)])
