"""Programs that the core runs over Avro values: a writer's schema resolved against a reader's, by Avro's rules."""

from __future__ import annotations

import numpy as np

from kraftlog._native import avro
from kraftlog.values.avro_columns import Column, branches_with_values, column_of, numbered
from kraftlog.values.avro_default import encode_default
from kraftlog.values.avro_schema import NO_DEFAULT, AvroField, AvroType

_WIDER = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NAMED = ("record", "enum", "fixed")
_INTEGER_TO = {"int": avro.TO_INT, "long": avro.TO_LONG, "float": avro.TO_FLOAT, "double": avro.TO_DOUBLE}
_LEAST = {"null": 0, "float": 4, "double": 8}
_SKIPS = {
    "null": avro.NULL_VALUE,
    "boolean": avro.BOOLEAN,
    "int": avro.TO_INT,
    "long": avro.TO_LONG,
    "float": avro.FLOAT,
    "double": avro.DOUBLE,
    "string": avro.TEXT,
    "bytes": avro.BINARY,
}
NO_COLUMN = -1


class Programs:
    """The programs of one reader's schema, to which those of writers are added.

    Attributes
    ----------
    columns : list of Column
        Those of the reader; the first one holds the values.
    """

    def __init__(self, reader: AvroType) -> None:
        self.reader = reader
        self.columns = numbered(column_of(reader))
        self.constants = bytearray()
        self._nodes: list[tuple[int, ...]] = []

    def add(self, writer: AvroType) -> int:
        """Return the node at which the program of a writer's schema begins."""
        root = self._room(1)
        self._skipped: dict[AvroType, int] = {}
        self._read(root, writer, self.reader, self.columns[0])
        return root

    @property
    def nodes(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """All of them, as the core has them."""
        return np.array(self._nodes, np.int64).reshape(-1, 6)

    def _room(self, count: int) -> int:
        first = len(self._nodes)
        self._nodes += [(avro.NEVER, NO_COLUMN, 0, 0, avro.UNRESOLVED, 0)] * count
        return first

    def _put(self, at: int, op: int, column: int, *, first: int = 0, count: int = 0, a: int = 0, b: int = 0) -> None:
        self._nodes[at] = (op, column, first, count, a, b)

    def _constant(self, content: bytes) -> int:
        self.constants += content
        return len(self.constants) - len(content)

    def _read(self, at: int, writer: AvroType, reader: AvroType, column: Column) -> None:
        """Fill a node that reads what was written into a column; what does not fit stays a fault."""
        if writer.kind == "union":
            first, count = self._room(len(writer.branches)), len(writer.branches)
            self._put(at, avro.UNION, column.index, first=first, count=count)
            for number, branch in enumerate(writer.branches):
                self._read(first + number, branch, reader, column)
        elif reader.kind == "union":
            self._into_union(at, writer, reader, column)
        elif _fits(writer, reader):
            self._read_same(at, writer, reader, column)

    def _into_union(self, at: int, writer: AvroType, reader: AvroType, column: Column) -> None:
        branch = next((one for one in reader.branches if _is_same(writer, one)), None)
        branch = branch or next((one for one in reader.branches if _fits(writer, one)), None)
        if branch is None:
            return
        members = branches_with_values(reader)
        if branch.kind == "null":
            self._put(at, avro.NULL_VALUE, column.index)
        elif len(members) == 1:
            self._read(at, writer, branch, column)
        else:
            number, inner = members.index(branch), self._room(1)
            self._put(at, avro.MEMBER, column.index, first=inner, a=number)
            self._read(inner, writer, branch, column.children[number])

    def _read_same(self, at: int, writer: AvroType, reader: AvroType, column: Column) -> None:
        kind, index = writer.kind, column.index
        if reader.logical == "decimal":
            width = column.numbers[1]
            limit = self._constant((10**reader.precision).to_bytes(width, "little"))
            self._put(at, avro.TO_DECIMAL, index, a=writer.size if kind == "fixed" else -1, b=limit)
        elif kind in ("int", "long"):
            in_millis = reader.logical in ("timestamp-millis", "local-timestamp-millis")
            self._put(at, avro.TO_MICROS if in_millis else _INTEGER_TO[reader.kind], index, a=int(kind == "int"))
        elif kind == "float":
            self._put(at, avro.FLOAT if reader.kind == "float" else avro.WIDENED, index)
        elif kind in ("string", "bytes"):
            self._put(at, avro.TEXT if "string" in (kind, reader.kind) else avro.BINARY, index)
        elif kind == "fixed":
            self._put(at, avro.FIXED, index, a=writer.size)
        elif kind == "enum":
            numbers = {symbol: number for number, symbol in enumerate(reader.symbols)}
            otherwise = -1 if reader.symbol_default is None else numbers[reader.symbol_default]
            mapped = np.array([numbers.get(symbol, otherwise) for symbol in writer.symbols], np.int32)
            self._put(at, avro.ENUM, index, count=len(writer.symbols), b=self._constant(mapped.tobytes()))
        elif kind in ("array", "map"):
            first = self._room(1)
            op, item = (
                (avro.ARRAY, column.children[0]) if kind == "array" else (avro.MAP, column.children[0].children[1])
            )
            self._put(at, op, index, first=first, a=_least(writer.item))
            self._read(first, writer.item, reader.item, item)
        elif kind == "record":
            self._record(at, writer, reader, column)
        else:
            self._put(at, _SKIPS[kind], index)

    def _record(self, at: int, writer: AvroType, reader: AvroType, column: Column) -> None:
        sources = {one.name: _source(one, writer) for one in reader.fields}
        targets = {source.name: number for number, source in enumerate(sources.values()) if source is not None}
        absent = [number for number, source in enumerate(sources.values()) if source is None]
        count = len(writer.fields) + len(absent)
        first = self._room(count)
        for node, one in enumerate(writer.fields, first):
            number = targets.get(one.name)
            if number is None:
                self._skip(node, one.type)
            else:
                self._read(node, one.type, reader.fields[number].type, column.children[number])
        for node, number in enumerate(absent, first + len(writer.fields)):
            self._default(node, reader.fields[number], column.children[number])
        self._put(at, avro.RECORD, column.index, first=first, count=count)

    def _default(self, at: int, one: AvroField, column: Column) -> None:
        if one.default is NO_DEFAULT:
            return
        content = encode_default(one.default, one.type)
        inner = self._room(1)
        self._put(at, avro.DEFAULT, column.index, first=inner, a=len(content), b=self._constant(content))
        self._read(inner, one.type, one.type, column)

    def _skip(self, at: int, writer: AvroType) -> None:
        """Fill a node that passes over what was written; a record that holds itself has one node for all of them."""
        if writer in self._skipped:
            self._nodes[at] = self._nodes[self._skipped[writer]]
            return
        kind = writer.kind
        if kind in ("record", "union"):
            parts = [one.type for one in writer.fields] if kind == "record" else list(writer.branches)
            first = self._room(len(parts))
            self._put(at, avro.RECORD if kind == "record" else avro.UNION, NO_COLUMN, first=first, count=len(parts))
            self._skipped[writer] = at
            for number, part in enumerate(parts):
                self._skip(first + number, part)
        elif kind in ("array", "map"):
            first = self._room(1)
            self._put(at, avro.ARRAY if kind == "array" else avro.MAP, NO_COLUMN, first=first, a=_least(writer.item))
            self._skip(first, writer.item)
        elif kind == "enum":
            self._put(at, avro.ENUM, NO_COLUMN, count=len(writer.symbols))
        elif kind == "fixed":
            self._put(at, avro.FIXED, NO_COLUMN, a=writer.size)
        else:
            self._put(at, _SKIPS[kind], NO_COLUMN)


def _source(one: AvroField, writer: AvroType) -> AvroField | None:
    """Return the field that was written for one of the reader's: by its name, else by an alias."""
    found = {field.name: field for field in writer.fields}
    return found.get(one.name) or next((found[name] for name in sorted(one.aliases) if name in found), None)


def _is_same(writer: AvroType, reader: AvroType) -> bool:
    """Whether a branch of a union is what was written, without a promotion."""
    return writer.kind == reader.kind and _fits(writer, reader)


def _fits(writer: AvroType, reader: AvroType) -> bool:
    """Whether a reader's type, which is no union, can be read from what was written."""
    if writer.kind != reader.kind:
        return reader.kind in _WIDER.get(writer.kind, ()) and reader.logical in (None, *_LOGICAL_OF_WIDER)
    if writer.logical and reader.logical and _meaning(writer) != _meaning(reader):
        return False  # Avro would take the one for the other
    if writer.kind in _NAMED and not (writer.is_named([reader.name]) or writer.is_named(reader.aliases)):
        return False
    return writer.kind != "fixed" or writer.size == reader.size


_LOGICAL_OF_WIDER = ("timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros")


def _meaning(type_: AvroType) -> tuple[str | None, int, int]:
    return type_.logical, type_.precision, type_.scale


def _least(type_: AvroType, outer: tuple[AvroType, ...] = ()) -> int:
    """Return the least bytes that a value takes."""
    if type_.kind == "record":
        return 0 if type_ in outer else sum(_least(one.type, (*outer, type_)) for one in type_.fields)
    return type_.size if type_.kind == "fixed" else _LEAST.get(type_.kind, 1)
