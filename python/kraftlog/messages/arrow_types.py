"""The Arrow types of messages and of their fields."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from kraftlog.messages import definition as kinds
from kraftlog.messages.definition import Definition, Field

UUID_TEXT, UUID_BINARY = "text", "binary"
UNKNOWN_TAGGED_FIELDS = "unknown_tagged_fields"
TAGGED_FIELD = pa.struct([("tag", pa.int64()), ("data", pa.binary())])

_SCALARS = {
    kinds.BOOL: pa.bool_(),
    kinds.INT8: pa.int8(),
    kinds.INT16: pa.int16(),
    kinds.UINT16: pa.int32(),
    kinds.INT32: pa.int32(),
    kinds.UINT32: pa.int64(),
    kinds.INT64: pa.int64(),
    kinds.FLOAT64: pa.float64(),
    kinds.STRING: pa.string(),
    kinds.BYTES: pa.binary(),
}
_UUIDS = {UUID_TEXT: pa.string(), UUID_BINARY: pa.binary(16)}


def uuid_form(uuid: str) -> str:
    """Return the form of UUIDs.

    Raises
    ------
    ValueError
        For an unknown form.
    """
    if uuid not in _UUIDS:
        raise ValueError(f"uuid is {' or '.join(_UUIDS)}, not {uuid!r}")
    return uuid


@cache
def item_type(field: Field, uuid: str = UUID_TEXT) -> pa.DataType:
    """Return the type of a field's value, or of an array's elements."""
    if field.kind == kinds.STRUCT:
        return pa.struct([*struct_fields(field.fields, uuid), _unknown()])
    return _UUIDS[uuid] if field.kind == kinds.UUID else _SCALARS[field.kind]


def arrow_type(field: Field, uuid: str = UUID_TEXT) -> pa.DataType:
    """Return the type of a field's column.

    Parameters
    ----------
    field : Field
    uuid : {"text", "binary"}
        UUIDs as in Kafka's output, 22 characters of base64; or their 16 bytes, for computing with them.
    """
    item = item_type(field, uuid)
    return pa.list_(item) if field.is_array else item


def struct_fields(fields: tuple[Field, ...], uuid: str = UUID_TEXT) -> list[pa.Field]:
    """Return a column for each field."""
    return [pa.field(field.column, arrow_type(field, uuid)) for field in fields]


@cache
def message_schema(definition: Definition, uuid: str = UUID_TEXT) -> pa.Schema:
    """Return the columns of a message: its fields, then the tagged fields that its definition does not know.

    Parameters
    ----------
    definition : Definition
    uuid : {"text", "binary"}

    Returns
    -------
    pyarrow.Schema
        Unsigned numbers have the next larger signed type. Structs end in ``unknown_tagged_fields``, like messages.
    """
    return pa.schema([*struct_fields(definition.fields, uuid_form(uuid)), _unknown()])


def _unknown() -> pa.Field:
    return pa.field(UNKNOWN_TAGGED_FIELDS, pa.list_(TAGGED_FIELD))
