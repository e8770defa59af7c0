"""Defaults of fields, which schemas have as JSON, in Avro's binary form."""

from __future__ import annotations

import struct
from typing import Any

from kraftlog.values.avro_schema import NO_DEFAULT, AvroType


def encode_default(value: Any, type_: AvroType) -> bytes:
    """Return a default in the binary form of its type.

    Raises
    ------
    ValueError
        When it is no value of the type.
    """
    kind = type_.kind
    if kind == "union":
        for at, branch in enumerate(type_.branches):
            try:
                return _varint(at) + encode_default(value, branch)
            except ValueError:
                continue
    elif kind == "null" and value is None:
        return b""
    elif kind == "boolean" and isinstance(value, bool):
        return bytes([value])
    elif kind in ("int", "long") and type(value) is int and abs(value) < 1 << (32 if kind == "int" else 63):
        return _varint(value)
    elif kind in ("float", "double") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return struct.pack("<f" if kind == "float" else "<d", value)
    elif kind == "string" and isinstance(value, str):
        return _sized(value.encode())
    elif kind in ("bytes", "fixed") and isinstance(value, str):
        content = value.encode("latin-1")
        if kind == "bytes":
            return _sized(content)
        if len(content) == type_.size:
            return content
    elif kind == "enum" and value in type_.symbols:
        return _varint(type_.symbols.index(value))
    elif kind == "array" and isinstance(value, list):
        return _blocks([encode_default(one, type_.item) for one in value])
    elif kind == "map" and isinstance(value, dict):
        return _blocks([_sized(name.encode()) + encode_default(one, type_.item) for name, one in value.items()])
    elif kind == "record" and isinstance(value, dict):
        parts = [value.get(one.name, one.default) for one in type_.fields]
        if NO_DEFAULT not in parts:
            return b"".join(encode_default(part, one.type) for part, one in zip(parts, type_.fields, strict=True))
    raise ValueError(f"the default {value!r} is no {type_.name or kind}")


def _varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _sized(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _blocks(items: list[bytes]) -> bytes:
    return (_varint(len(items)) + b"".join(items) if items else b"") + b"\0"
