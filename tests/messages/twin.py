"""Messages by their definitions in plain Python: slow, and simple enough to be seen to be right.

A message is a dict: its fields' columns, each with its value, and ``unknown_tagged_fields``, a list of (tag, bytes).
Uuids are text as Kafka prints them. What the bytes do not have is there with its default.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from typing import Any

from kraftlog.messages.definition import Definition, Field

UNKNOWN = "unknown_tagged_fields"
NUMBERS = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}

Message = dict[str, Any]


class MalformedError(ValueError):
    """The bytes are no message, or the message has no bytes."""


def default_of(field: Field) -> Any:
    """Return what a field is where it is absent."""
    if field.default is None:
        return None
    if field.is_array:
        return []
    if field.kind == "bytes":
        return b""
    return default_message(field.fields) if field.kind == "struct" else field.default


def default_message(fields: tuple[Field, ...]) -> Message:
    """Return a message or struct of defaults."""
    return {**{field.column: default_of(field) for field in fields}, UNKNOWN: []}


# Bytes to messages


class Reader:
    """Bytes, and how far they have been read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left():
            raise MalformedError(f"{size} bytes wanted, {self.left()} left")
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, kind: str) -> Any:
        if kind == "bool":
            return self.take(1) != b"\0"
        return struct.unpack(NUMBERS[kind], self.take(struct.calcsize(NUMBERS[kind])))[0]

    def unsigned_varint(self) -> int:
        """Return an unsigned varint as the int that Kafka holds it in: one of 32 bits, with a sign."""
        value = 0
        for index in range(5):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                value &= 0xFFFFFFFF
                return value - (1 << 32) if value >= 1 << 31 else value
        raise MalformedError("a varint of more than 5 bytes")

    def length(self, kind: str, is_flexible: bool) -> int:
        """Return a length; below 0 for null."""
        return self.unsigned_varint() - 1 if is_flexible else self.number(kind)


def decode(definition: Definition, version: int, data: bytes) -> Message:
    """Return the message that bytes are, none of them left over."""
    message, rest = decode_first(definition, version, data)
    if rest:
        raise MalformedError(f"{len(rest)} bytes after the message")
    return message


def decode_first(definition: Definition, version: int, data: bytes) -> tuple[Message, bytes]:
    """Return the message that bytes begin with, and the bytes behind it."""
    if version not in definition.versions:
        raise MalformedError(f"{definition.name} has no version {version}")
    reader = Reader(data)
    message = read_struct(definition.fields, version, version in definition.flexible, reader)
    return message, reader.take(reader.left())


def read_struct(fields: tuple[Field, ...], version: int, is_flexible: bool, reader: Reader) -> Message:
    message = default_message(fields)
    tagged = {}
    for field in fields:
        if version in field.tagged:
            tagged[field.tag] = field
        elif version in field.versions:
            message[field.column] = read_value(field, version, is_flexible, reader)
    if is_flexible:
        for _ in range(reader.unsigned_varint()):
            tag = reader.unsigned_varint()
            data = reader.take(reader.unsigned_varint())
            if tag in tagged:
                inner = Reader(data)
                message[tagged[tag].column] = read_value(tagged[tag], version, is_flexible, inner)
                if inner.left():
                    raise MalformedError(f"{inner.left()} bytes after the tagged field {tag}")
            else:
                message[UNKNOWN].append((tag, data))
    return message


def read_value(field: Field, version: int, is_flexible: bool, reader: Reader) -> Any:
    if field.is_array:
        count = reader.length("int32", is_flexible)
        if count > reader.left():
            raise MalformedError(f"an array of {count}, {reader.left()} bytes left")
        value = None if count < 0 else [read_one(field, version, is_flexible, reader) for _ in range(count)]
        if value and None in value:
            raise MalformedError(f"an element of {field.name} is null")
    elif field.kind == "struct" and version in field.nullable and is_absent(field, version, reader):
        value = None
    else:
        value = read_one(field, version, is_flexible, reader)
    if value is None and version not in field.nullable:
        raise MalformedError(f"{field.name} is null")
    return value


def is_absent(field: Field, version: int, reader: Reader) -> bool:
    """Return whether a struct that may be null is null: tagged ones say it otherwise."""
    return reader.unsigned_varint() <= 0 if version in field.tagged else reader.number("int8") < 0


def read_one(field: Field, version: int, is_flexible: bool, reader: Reader) -> Any:
    if field.kind == "struct":
        return read_struct(field.fields, version, is_flexible, reader)
    if field.kind == "uuid":
        return uuid_text(reader.take(16))
    if field.kind not in ("string", "bytes"):
        return reader.number(field.kind)
    size = reader.length("int16" if field.kind == "string" else "int32", is_flexible)
    if size < 0:
        return None
    if field.kind == "bytes":
        return reader.take(size)
    if size > 0x7FFF:
        raise MalformedError(f"a string of {size} bytes")
    # a surrogate is one broken character to Java, whole or cut off
    data = re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xef\xbf\xbd", reader.take(size))
    return data.decode("utf-8", errors="replace")


# Messages to bytes


def encode(definition: Definition, version: int, message: Message) -> bytes:
    """Return the bytes of a message."""
    if version not in definition.versions:
        raise MalformedError(f"{definition.name} has no version {version}")
    return struct_bytes(definition.fields, version, version in definition.flexible, message)


def struct_bytes(fields: tuple[Field, ...], version: int, is_flexible: bool, message: Message) -> bytes:
    written = b""
    tagged = list(message.get(UNKNOWN) or [])
    if tagged and not is_flexible:
        raise MalformedError("this version has no tagged fields")
    for field in fields:
        value = message[field.column]
        if version in field.tagged:
            if value != default_of(field):
                tagged.append((field.tag, value_bytes(field, version, is_flexible, value)))
        elif version in field.versions:
            written += value_bytes(field, version, is_flexible, value)
        elif value != default_of(field) and not field.is_ignorable:
            raise MalformedError(f"version {version} has no {field.name}")
    if is_flexible:
        written += unsigned_varint(len(tagged))
        for tag, data in sorted(tagged, key=lambda one: one[0]):
            written += unsigned_varint(tag) + unsigned_varint(len(data)) + data
    return written


def value_bytes(field: Field, version: int, is_flexible: bool, value: Any) -> bytes:
    if value is None and version not in field.nullable:
        raise MalformedError(f"{field.name} is null in version {version}")
    if not field.is_array:
        if field.kind != "struct" or version not in field.nullable:
            return one_bytes(field, version, is_flexible, value)
        if value is None:
            return unsigned_varint(0) if version in field.tagged else struct.pack(">b", -1)
        return b"\x01" + one_bytes(field, version, is_flexible, value)
    length = length_bytes("int32", is_flexible, None if value is None else len(value))
    return length + b"".join(one_bytes(field, version, is_flexible, one) for one in value or [])


def one_bytes(field: Field, version: int, is_flexible: bool, value: Any) -> bytes:
    if field.kind == "struct":
        return struct_bytes(field.fields, version, is_flexible, value)
    if field.kind == "uuid":
        return uuid_bytes(value)
    if field.kind == "string":
        data = None if value is None else value.encode()
        return length_bytes("int16", is_flexible, None if data is None else len(data)) + (data or b"")
    if field.kind == "bytes":
        return length_bytes("int32", is_flexible, None if value is None else len(value)) + (value or b"")
    return struct.pack(NUMBERS[field.kind], value)


def length_bytes(kind: str, is_flexible: bool, length: int | None) -> bytes:
    if is_flexible:
        return unsigned_varint(0 if length is None else length + 1)
    return struct.pack(NUMBERS[kind], -1 if length is None else length)


def unsigned_varint(value: int) -> bytes:
    written = b""
    while value >= 0x80:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def uuid_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


# Messages to the JSON that Kafka makes of them


def to_json(definition: Definition, version: int, message: Message) -> dict[str, Any]:
    """Return a message as Kafka's JSON converters do: tagged fields only where they are not their default."""
    return struct_json(definition.fields, version, message)


def struct_json(fields: tuple[Field, ...], version: int, message: Message) -> dict[str, Any]:
    shown = {}
    for field in fields:
        value = message[field.column]
        if version in field.versions and (version not in field.tagged or value != default_of(field)):
            if field.is_array and value is not None:
                shown[field.name] = [one_json(field, version, one) for one in value]
            else:
                shown[field.name] = one_json(field, version, value)
    return shown


def one_json(field: Field, version: int, value: Any) -> Any:
    if value is None:
        return None
    if field.kind == "struct":
        return struct_json(field.fields, version, value)
    if field.kind == "bytes":
        return base64.b64encode(value).decode()
    if field.kind == "float64" and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
