"""One message to bytes and back, without Arrow: single records and requests, for which columns would cost too much.

``writer`` and ``reader`` do the same for columns; all follow the definition, and tests compare them.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any, TypeAlias

from kraftlog.codec.cursor import uvarint
from kraftlog.errors import InvalidRecordError
from kraftlog.messages import definition as kinds
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.default_text import EMPTY
from kraftlog.messages.definition import Definition, Field
from kraftlog.types import Buffer

Pieces: TypeAlias = list[bytes | memoryview]
Write: TypeAlias = Callable[[Any, Pieces], object]
Read: TypeAlias = Callable[[memoryview, int, "Elements"], tuple[Any, int]]
"""Returns the value at a byte, and the byte after it."""

MOST_ELEMENTS = 1 << 18
"""Of all arrays of a message together: an element of two bytes can take hundreds of bytes of memory when it is read."""

MOST_TEXT_BYTES = 32767
"""Of a string, also where a compact length could tell more: what Kafka reads has to fit into versions without them."""

_NEGATIVE = 0x80
_MESSAGE = "error_message"  # it quotes what a client names, and is cut

_NUMBERS = {
    kinds.BOOL: "?",
    kinds.INT8: "b",
    kinds.INT16: "h",
    kinds.UINT16: "H",
    kinds.INT32: "i",
    kinds.UINT32: "I",
    kinds.INT64: "q",
    kinds.FLOAT64: "d",
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
    return b"".join(encoded(definition, version, values))


def encoded(definition: Definition, version: int, values: Mapping[str, Any]) -> Pieces:
    """Encode a message as ``encode_message`` does; large values are pieces of their own, not copied.

    Returns
    -------
    list of bytes or memoryview
        Their concatenation is the message.
    """
    pieces: Pieces = []
    try:
        _message_writer(definition, version)(values, pieces)
    except (struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{definition.name}, version {version}: {error}") from error
    return pieces


class Elements:
    """How many elements of arrays, and tagged fields, a message can have yet."""

    def __init__(self) -> None:
        self._left = MOST_ELEMENTS

    def take(self, count: int) -> None:
        """Count elements that are about to be read.

        Raises
        ------
        IndexError
            When the message has too many.
        """
        self._left -= count
        if self._left < 0:
            raise IndexError(f"an array of {count} elements leads to more than {MOST_ELEMENTS} in the message")


def decode_message(definition: Definition, version: int, data: Buffer) -> dict[str, Any]:
    """Decode one message.

    Parameters
    ----------
    definition : Definition
    version : int
        One of its versions.
    data : buffer
        The message, without a prefix. Bytes behind it are ignored, as Kafka does: librdkafka sends such bytes.

    Returns
    -------
    dict
        All fields of the definition by the names of their columns; those that the version does not have are their
        defaults. ``bytes`` are views into ``data``, UUIDs 16 bytes. Unknown tagged fields are skipped.

    Raises
    ------
    InvalidRecordError
        When the data is no such message, or has more than ``MOST_ELEMENTS`` elements of arrays.
    """
    view = memoryview(data)
    try:
        values: dict[str, Any] = _message_reader(definition, version)(view, 0, Elements())[0]
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise InvalidRecordError(f"{definition.name}, version {version}, of {len(view)} bytes: {error}") from error
    return values


@cache
def _message_writer(definition: Definition, version: int) -> Write:
    """Return a writer of a message; to find it, no fields are hashed."""
    return _struct(definition, definition.fields, version)


@cache
def _struct(definition: Definition, fields: tuple[Field, ...], version: int) -> Write:
    """Return a writer of the fields of a struct; adjacent numbers are written at once."""
    is_flexible = version in definition.flexible
    known = {field.column for field in fields}
    steps = [
        _numbers(adjacent) if are_numbers else _of_field(definition, adjacent[0], version)
        for are_numbers, adjacent in _adjacent(fields, version)
    ]
    tagged = sorted(
        (field.tag or 0, field.column, field, _value(definition, field, version))
        for field in fields
        if version in field.tagged and version in field.versions
    )
    absent = [field for field in fields if version not in field.versions and not field.is_ignorable]

    def write(values: Mapping[str, Any], pieces: Pieces) -> None:
        for unknown in values.keys() - known:
            raise ValueError(f"{definition.name} has no field {unknown!r}")
        for field in absent:
            if not _is_default(field, values.get(field.column, field.default)):
                raise InvalidRecordError(f"{definition.name}: version {version} has no field {field.name}")
        for step in steps:
            step(values, pieces)
        if not is_flexible:
            return
        cells: list[Pieces] = []
        for tag, column, field, put in tagged:
            if not _is_default(field, values.get(column, field.default)):
                cell: Pieces = []
                put(values[column], cell)
                cells.append([uvarint(tag), uvarint(sum(map(len, cell))), *cell])
        pieces.append(uvarint(len(cells)))
        for cell in cells:
            pieces += cell

    return write


def _adjacent(fields: tuple[Field, ...], version: int) -> Iterator[tuple[bool, list[Field]]]:
    """Return the fields that are not tagged: adjacent numbers together, others one by one."""
    plain = [field for field in fields if version in field.versions and version not in field.tagged]
    for are_numbers, some in groupby(plain, lambda field: field.kind in _NUMBERS and not field.is_array):
        if are_numbers:
            yield True, list(some)
        else:
            yield from ((False, [field]) for field in some)


def _layout(numbers: list[Field]) -> struct.Struct:
    return struct.Struct(">" + "".join(_NUMBERS[field.kind] for field in numbers))


def _numbers(fields: list[Field]) -> Write:
    """Return a writer of the fields of a struct that are adjacent numbers."""
    pack = _layout(fields).pack
    cells = [(field.column, field.default) for field in fields]
    return lambda values, pieces: pieces.append(pack(*[values.get(column, default) for column, default in cells]))


def _of_field(definition: Definition, field: Field, version: int) -> Write:
    """Return a writer of a field of a struct."""
    column, default = field.column, _default(field)
    put = _value(definition, field, version)
    return lambda values, pieces: put(values.get(column, default), pieces)


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

    if field.is_array:
        null = _size(-1, is_flexible)

        def write(value: Any, pieces: Pieces) -> None:
            if value is None:
                pieces.append(_null(definition, field, is_nullable, null))
                return
            pieces.append(_size(len(value), is_flexible))
            for one in value:
                element(one, pieces)

        return write
    if field.kind in (kinds.STRING, kinds.BYTES):
        null = _size(-1, is_flexible, field.kind)

        def write_text(value: Any, pieces: Pieces) -> None:
            if value is None:
                pieces.append(_null(definition, field, is_nullable, null))
            else:
                element(value, pieces)

        return write_text
    if field.kind == kinds.STRUCT and field.nullable:  # a byte marks whether it is present

        def write_struct(value: Any, pieces: Pieces) -> None:
            if value is None:
                pieces.append(_null(definition, field, is_nullable, b"\0" if version in field.tagged else b"\xff"))
                return
            if is_nullable:
                pieces.append(b"\x01")
            element(value, pieces)

        return write_struct
    return element


def _single(definition: Definition, field: Field, version: int) -> Write:
    """Return a writer of a value, or of an element of an array."""
    is_flexible = version in definition.flexible
    if field.kind in _NUMBERS:
        pack = struct.Struct(">" + _NUMBERS[field.kind]).pack
        return lambda value, pieces: pieces.append(pack(value))
    if field.kind == kinds.STRUCT:
        return _struct(definition, field.fields, version)
    if field.kind == kinds.UUID:
        return lambda value, pieces: pieces.append(
            value if isinstance(value, bytes) else urlsafe_b64decode(value + "==")
        )

    is_text = field.kind == kinds.STRING
    is_message = field.column.endswith(_MESSAGE)

    def write(value: Any, pieces: Pieces) -> None:
        content = value.encode() if isinstance(value, str) else value
        if is_text and len(content) > MOST_TEXT_BYTES:
            if not is_message:
                found = f"{field.name} of {len(content)} bytes, of at most {MOST_TEXT_BYTES}"
                raise ValueError(f"{definition.name}: {found}")
            content = content[:MOST_TEXT_BYTES].decode(errors="ignore").encode()
        pieces += (_size(len(content), is_flexible, field.kind), content)

    return write


def _size(count: int, is_flexible: bool, kind: str = kinds.BYTES) -> bytes:
    """Return a length, or -1 for null, of an array, bytes or a string."""
    return uvarint(count + 1) if is_flexible else struct.pack(">h" if kind == kinds.STRING else ">i", count)


def _null(definition: Definition, field: Field, is_nullable: bool, null: bytes) -> bytes:
    if not is_nullable:
        raise InvalidRecordError(f"{definition.name}: {field.name} cannot be null in this version")
    return null


@cache
def _message_reader(definition: Definition, version: int) -> Read:
    """Return a reader of a message; to find it, no fields are hashed."""
    return _struct_reader(definition, definition.fields, version)


@cache
def _struct_reader(definition: Definition, fields: tuple[Field, ...], version: int) -> Read:
    """Return a reader of the fields of a struct; adjacent numbers are read at once."""
    is_flexible = version in definition.flexible
    defaults = {field.column: _default_read(definition, field, version) for field in fields}
    steps: list[tuple[tuple[str, ...], struct.Struct | None, Read | None]] = []
    for are_numbers, adjacent in _adjacent(fields, version):
        columns = tuple(field.column for field in adjacent)
        if are_numbers:
            steps.append((columns, _layout(adjacent), None))
        else:
            steps.append((columns, None, _reader(definition, adjacent[0], version)))
    tagged = {
        field.tag: (field.column, _reader(definition, field, version))
        for field in fields
        if version in field.tagged and version in field.versions
    }

    def read(data: memoryview, at: int, elements: Elements) -> tuple[dict[str, Any], int]:
        values = defaults.copy()
        for columns, layout, read_one in steps:
            if layout is not None:
                values.update(zip(columns, layout.unpack_from(data, at), strict=True))
                at += layout.size
            elif read_one is not None:
                values[columns[0]], at = read_one(data, at, elements)
        if is_flexible:
            count, at = _uvarint(data, at)
            elements.take(max(count, 0))
            for _ in range(count):
                tag, at = _uvarint(data, at)
                size, at = _uvarint(data, at)
                end = _end(data, at, size)
                if tag in tagged:
                    column, read_one = tagged[tag]
                    values[column], read_until = read_one(data[:end], at, elements)
                    if read_until != end:
                        raise IndexError(f"tag {tag} of {size} bytes ends after {read_until - at} bytes")
                at = end
        return values, at

    return read


def _default_read(definition: Definition, field: Field, version: int) -> Any:
    """Return the value of a field that is absent, as a reader returns it; it must not be changed."""
    default = _default(field)
    if field.kind == kinds.STRUCT and default == {}:
        return {one.column: _default_read(definition, one, version) for one in field.fields}
    return urlsafe_b64decode(default + "==") if field.kind == kinds.UUID and isinstance(default, str) else default


def _reader(definition: Definition, field: Field, version: int) -> Read:
    element = _single_reader(definition, field, version)
    is_flexible = version in definition.flexible
    is_nullable = version in field.nullable
    if field.is_array:

        def read(data: memoryview, at: int, elements: Elements) -> tuple[list[Any] | None, int]:
            count, at = _count(data, at, is_flexible)
            if count < 0:
                _check_nullable(field, is_nullable)
                return None, at
            elements.take(count)
            values = []
            for _ in range(count):
                value, at = element(data, at, elements)
                values.append(value)
            return values, at

        return read
    if field.kind == kinds.STRUCT and field.nullable:
        is_tagged = version in field.tagged

        def read_struct(data: memoryview, at: int, elements: Elements) -> tuple[Any, int]:
            if not is_nullable:
                return element(data, at, elements)
            if is_tagged:
                mark, at = _uvarint(data, at)
                return (None, at) if mark <= 0 else element(data, at, elements)
            return (None, at + 1) if data[at] & _NEGATIVE else element(data, at + 1, elements)

        return read_struct
    return element


def _single_reader(definition: Definition, field: Field, version: int) -> Read:
    """Return a reader of a value, or of an element of an array."""
    is_flexible = version in definition.flexible
    is_nullable = version in field.nullable and not field.is_array
    if field.kind in _NUMBERS:
        layout = struct.Struct(">" + _NUMBERS[field.kind])
        return lambda data, at, _: (layout.unpack_from(data, at)[0], at + layout.size)
    if field.kind == kinds.STRUCT:
        return _struct_reader(definition, field.fields, version)
    if field.kind == kinds.UUID:

        def read_uuid(data: memoryview, at: int, _: Elements) -> tuple[bytes, int]:
            end = _end(data, at, 16)
            return bytes(data[at:end]), end

        return read_uuid
    is_text = field.kind == kinds.STRING

    def read(data: memoryview, at: int, _: Elements) -> tuple[str | memoryview | None, int]:
        size, at = _count(data, at, is_flexible, field.kind)
        if size < 0:
            _check_nullable(field, is_nullable)
            return None, at
        end = _end(data, at, size)
        if not is_text:
            return data[at:end], end
        if size > MOST_TEXT_BYTES:
            raise IndexError(f"{field.name} of {size} bytes, of at most {MOST_TEXT_BYTES}")
        return str(data[at:end], "utf-8"), end

    return read


def _check_nullable(field: Field, is_nullable: bool) -> None:
    if not is_nullable:
        raise IndexError(f"{field.name} is null, which this version does not allow")


def _end(data: memoryview, at: int, size: int) -> int:
    if not 0 <= size <= len(data) - at:
        raise IndexError(f"{size} bytes at byte {at}")
    return at + size


def _count(data: memoryview, at: int, is_flexible: bool, kind: str = kinds.BYTES) -> tuple[int, int]:
    """Read what ``_size`` writes; negative numbers are null."""
    if is_flexible:
        count, at = _uvarint(data, at)
        return count - 1, at
    if kind == kinds.STRING:
        return int(_INT16.unpack_from(data, at)[0]), at + 2
    return int(_INT32.unpack_from(data, at)[0]), at + 4


_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


def _uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """Read what Kafka keeps in an int of 32 bits, with a sign."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 35:
            raise IndexError(f"a varint of more than 5 bytes ends at byte {at}")
    value &= 0xFFFFFFFF
    return value - (value >> 31 << 32), at + 1
