"""One message to bytes, without Arrow: for writers of single records, for which columns would cost too much.

``writer`` does the same for columns; both follow the definition, and tests compare them.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from kraftlog.codec.cursor import uvarint
from kraftlog.errors import InvalidRecordError
from kraftlog.messages import definition as kinds
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.default_text import EMPTY
from kraftlog.messages.definition import Definition, Field

Write: TypeAlias = Callable[[Any], bytes]

_NUMBERS = {
    kinds.BOOL: ">?",
    kinds.INT8: ">b",
    kinds.INT16: ">h",
    kinds.UINT16: ">H",
    kinds.INT32: ">i",
    kinds.UINT32: ">I",
    kinds.INT64: ">q",
    kinds.FLOAT64: ">d",
}


def encode_message(name: str, version: int, values: Mapping[str, Any]) -> bytes:
    """Encode one message, without a prefix.

    Parameters
    ----------
    name : str
        Name of the message, such as ``TransactionLogValue``.
    version : int
        Version to write.
    values : mapping of str to object
        Its fields by the names of their columns; a missing field has its default. Structs are mappings, UUIDs text or
        16 bytes.

    Returns
    -------
    bytes

    Raises
    ------
    InvalidRecordError
        When the version cannot represent a value.
    ValueError
        For an unknown message, version or field, or a value with a wrong type or out of range.

    Examples
    --------
    >>> encode_message("OffsetCommitKey", 0, {"group": "g", "topic": "orders", "partition": 3}).hex()
    '00016700066f726465727300000003'
    """
    definition = BUILT_IN.messages.get(name)
    if definition is None or version not in definition.versions:
        raise ValueError(f"no message {name!r} of version {version} is known")
    try:
        return _struct(definition, definition.fields, version)(values)
    except (struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{name}, version {version}: {error}") from error


@cache
def _struct(definition: Definition, fields: tuple[Field, ...], version: int) -> Write:
    """Return a writer of the fields of a struct."""
    is_flexible = version in definition.flexible
    known = {field.column for field in fields}
    plain = [(field.column, field, _value(definition, field, version)) for field in fields if _is_plain(field, version)]
    tagged = sorted(
        (field.tag or 0, field.column, field, _value(definition, field, version))
        for field in fields
        if version in field.tagged and version in field.versions
    )
    absent = [field for field in fields if version not in field.versions and not field.is_ignorable]

    def write(values: Mapping[str, Any]) -> bytes:
        for unknown in values.keys() - known:
            raise ValueError(f"{definition.name} has no field {unknown!r}")
        for field in absent:
            if not _is_default(field, values.get(field.column, field.default)):
                raise InvalidRecordError(f"{definition.name}: version {version} has no field {field.name}")
        written = b"".join([put(values.get(column, _default(field))) for column, field, put in plain])
        if not is_flexible:
            return written
        cells = [
            uvarint(tag) + uvarint(len(cell)) + cell
            for tag, column, field, put in tagged
            if not _is_default(field, values.get(column, field.default))
            for cell in [put(values[column])]
        ]
        return b"".join([written, uvarint(len(cells)), *cells])

    return write


def _is_plain(field: Field, version: int) -> bool:
    return version in field.versions and version not in field.tagged


def _default(field: Field) -> Any:
    """Return the value of a missing field."""
    if field.default is None or not (field.is_array or field.kind in (kinds.BYTES, kinds.STRUCT)):
        return field.default
    return [] if field.is_array else b"" if field.kind == kinds.BYTES else {}


def _is_default(field: Field, value: Any) -> bool:
    if field.default != EMPTY or value is None:
        return bool(value == field.default)
    if field.kind == kinds.STRUCT and not field.is_array and value != EMPTY:
        return all(_is_default(one, value.get(one.column, one.default)) for one in field.fields)
    return not value


def _value(definition: Definition, field: Field, version: int) -> Write:
    element = _single(definition, field, version)
    is_flexible = version in definition.flexible
    is_nullable = version in field.nullable

    def size(count: int) -> bytes:
        return uvarint(count + 1) if is_flexible else struct.pack(">i", count)

    if field.is_array:

        def write(value: Any) -> bytes:
            if value is None:
                return _null(definition, field, is_nullable, size(-1))
            return b"".join([size(len(value)), *map(element, value)])

        return write
    if field.kind in (kinds.STRING, kinds.BYTES):
        null = size(-1) if is_flexible or field.kind == kinds.BYTES else struct.pack(">h", -1)

        def write_text(value: Any) -> bytes:
            return _null(definition, field, is_nullable, null) if value is None else element(value)

        return write_text
    if field.kind == kinds.STRUCT and field.nullable:  # a byte marks whether it is present

        def write_struct(value: Any) -> bytes:
            if value is None:
                return _null(definition, field, is_nullable, b"\0" if version in field.tagged else b"\xff")
            return b"\x01" + element(value) if is_nullable else element(value)

        return write_struct
    return element


def _single(definition: Definition, field: Field, version: int) -> Write:
    """Return a writer of a value, or of an element of an array."""
    is_flexible = version in definition.flexible
    if field.kind in _NUMBERS:
        return struct.Struct(_NUMBERS[field.kind]).pack
    if field.kind == kinds.STRUCT:
        return _struct(definition, field.fields, version)
    if field.kind == kinds.UUID:
        return lambda value: value if isinstance(value, bytes) else urlsafe_b64decode(value + "==")
    length = ">h" if field.kind == kinds.STRING else ">i"

    def write(value: Any) -> bytes:
        content = value.encode() if isinstance(value, str) else value
        return (uvarint(len(content) + 1) if is_flexible else struct.pack(length, len(content))) + content

    return write


def _null(definition: Definition, field: Field, is_nullable: bool, null: bytes) -> bytes:
    if not is_nullable:
        raise InvalidRecordError(f"{definition.name}: {field.name} cannot be null in this version")
    return null
