"""Protocol Buffers behind the framing of a registry, read by Google's package: one message after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog.stream import optional_package
from kraftlog.values.bad_value import BadValue
from kraftlog.values.framing import NO_SCHEMA, SchemaKey, Side, unframed
from kraftlog.values.protobuf_schema import file_descriptor, message_at, message_named
from kraftlog.values.schema_store import PROTOBUF, Schema, SchemaStore, unknown_schema

_GUID_BYTES = 16
_MOST_INDEXES = 64


class ProtobufFormat:
    """Values of Protocol Buffers as structs of a message of the reader's schema.

    Other schemas may have written them: fields are told apart by their numbers. A value of another message does not
    fit, nor does one with a field whose number the reader's schema has with another wire type.

    Parameters
    ----------
    reader : Schema
    store : SchemaStore
    framing, side : str
        As ``unframed`` has them.
    message : str, optional
        By its full name; by default, and where the schema has none of this name, the first one.
    """

    reads_headers = True

    def __init__(
        self, reader: Schema, store: SchemaStore, framing: str, side: Side, message: str | None = None
    ) -> None:
        self._store, self._framing, self._side, self._reader = store, framing, side, reader
        self._file = file_descriptor(reader, store)
        self._descriptor = message_named(self._file, message) or message_at(self._file, [0])
        if self._descriptor is None:
            raise ValueError(f"{reader} has no message")
        factory = optional_package("google.protobuf.message_factory", "the format protobuf")
        self._unknown = optional_package("google.protobuf.unknown_fields", "the format protobuf").UnknownFieldSet
        self._message = factory.GetMessageClass(self._descriptor)
        self._decode_error = optional_package("google.protobuf.message", "the format protobuf").DecodeError
        self.arrow_type = struct_type(self._descriptor)
        self._files: dict[SchemaKey, Any] = {}

    def convert(self, values: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, list[BadValue]]:
        """Return the values as structs."""
        framed = unframed(values, headers, self._framing, self._side)
        data = memoryview(framed.data)
        rows: list[dict[str, Any] | None] = [None] * len(values)
        bad = list(framed.bad)
        for row in np.flatnonzero(framed.numbers != NO_SCHEMA):
            key = framed.schemas[int(framed.numbers[row])]
            content = data[int(framed.starts[row]) : int(framed.ends[row])]
            try:
                rows[row] = self._read(key, bytes(content))
            except (ValueError, self._decode_error) as error:
                bad.append(BadValue(int(row), str(error)))
        return pa.array(rows, self.arrow_type), bad

    def _read(self, key: SchemaKey, content: bytes) -> dict[str, Any]:
        if key is not None:
            content = self._without_indexes(key, content)
        return self._struct(self._message.FromString(content))

    def _without_indexes(self, key: SchemaKey, content: bytes) -> bytes:
        """Return a message without the path of indexes before it, or in the header, which must name the reader's."""
        file = self._file_of(key[:_GUID_BYTES] if isinstance(key, bytes) else key)
        if isinstance(key, bytes):
            indexes, rest = _indexes(key[_GUID_BYTES:])[0], content
        else:
            indexes, rest = _indexes(content)
        named = message_at(file, indexes)
        if named is None:
            raise ValueError(f"the schema has no message {indexes}")
        if named.full_name != self._descriptor.full_name:
            raise ValueError(f"expected a message {self._descriptor.full_name}, found {named.full_name}")
        return rest

    def _file_of(self, key: SchemaKey) -> Any:
        if key not in self._files:
            found = (
                self._store.by_guid(key)
                if isinstance(key, bytes)
                else self._store.by_id(key or 0, self._reader.subject)
            )
            try:
                if found is None:
                    raise ValueError(unknown_schema(key, self._store))
                self._files[key] = file_descriptor(found, self._store)
            except ValueError as error:
                self._files[key] = error
        if isinstance(self._files[key], ValueError):
            raise self._files[key]
        return self._files[key]

    def _struct(self, message: Any) -> dict[str, Any]:
        descriptor = message.DESCRIPTOR
        for one in self._unknown(message):
            if one.field_number in descriptor.fields_by_number:
                name = descriptor.fields_by_number[one.field_number].name
                raise ValueError(f"field {name} of {descriptor.full_name} was written as another type")
        return {field.name: self._field(message, field) for field in descriptor.fields}

    def _field(self, message: Any, field: Any) -> Any:
        if field.is_repeated:
            found = getattr(message, field.name)
            if _is_map(field):
                inner = field.message_type.fields_by_name["value"]
                return [(name, self._one(found[name], inner)) for name in found]
            return [self._one(one, field) for one in found]
        if field.has_presence and not message.HasField(field.name):
            return None
        return self._one(getattr(message, field.name), field)

    def _one(self, value: Any, field: Any) -> Any:
        if field.message_type is not None:
            return self._struct(value)
        if field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            return str(value) if known is None else known.name
        return value


def message_of_first(
    samples: Iterable[pa.Array], reader: Schema, store: SchemaStore, framing: str, side: Side
) -> str | None:
    """Return the full name of the message that the first value is; None where it is the first of the reader's schema.

    Values whose schema is named by a header, or cannot be read, are left out.

    Parameters
    ----------
    samples : iterable of pyarrow.BinaryArray
    reader : Schema
    store : SchemaStore
    framing, side : str
        As ``unframed`` has them.
    """
    for values in samples:
        framed = unframed(values, None, framing, side)
        data = memoryview(framed.data)
        for row in np.flatnonzero(framed.numbers != NO_SCHEMA):
            key = framed.schemas[int(framed.numbers[row])]
            writer = store.by_id(key, reader.subject) if isinstance(key, int) else None
            if writer is None or writer.type != PROTOBUF:
                continue
            try:
                indexes, _ = _indexes(bytes(data[int(framed.starts[row]) : int(framed.ends[row])]))
                if indexes == [0] and writer == reader:
                    return None
                found = message_at(file_descriptor(writer, store), indexes)
            except ValueError:
                continue
            if found is not None:
                return str(found.full_name)
    return None


def _indexes(content: bytes) -> tuple[list[int], bytes]:
    """Return the path of indexes with which bytes begin, and the rest; none at all is the first message."""
    count, at = _varint(content, 0)
    if not 0 <= count <= _MOST_INDEXES:
        raise ValueError(f"expected the indexes of a message, found {count} of them")
    found = []
    for _ in range(count):
        index, at = _varint(content, at)
        found.append(index)
    return found or [0], content[at:]


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(content):
            break
        value |= (content[at] & 0x7F) << shift
        at += 1
        if content[at - 1] < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise ValueError("the indexes of a message are cut off")


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def struct_type(descriptor: Any, outer: tuple[str, ...] = ()) -> pa.DataType:
    """Return the Arrow type of a message.

    Raises
    ------
    ValueError
        When a message holds itself, for which Arrow has no type.
    """
    if descriptor.full_name in outer:
        raise ValueError(f"message {descriptor.full_name} holds itself, for which Arrow has no type")
    inner = (*outer, descriptor.full_name)
    return pa.struct([pa.field(field.name, _field_type(field, inner)) for field in descriptor.fields])


def _field_type(field: Any, outer: tuple[str, ...]) -> pa.DataType:
    if _is_map(field):
        pair = field.message_type.fields_by_name
        return pa.map_(_plain_type(pair["key"], outer), _plain_type(pair["value"], outer))
    plain = _plain_type(field, outer)
    return pa.list_(plain) if field.is_repeated else plain


def _plain_type(field: Any, outer: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        return struct_type(field.message_type, outer)
    return {
        field.CPPTYPE_INT32: pa.int32(),
        field.CPPTYPE_INT64: pa.int64(),
        field.CPPTYPE_UINT32: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20, 0),
        field.CPPTYPE_DOUBLE: pa.float64(),
        field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_BOOL: pa.bool_(),
        field.CPPTYPE_ENUM: pa.string(),
        field.CPPTYPE_STRING: pa.binary() if field.type == field.TYPE_BYTES else pa.string(),
    }[field.cpp_type]
