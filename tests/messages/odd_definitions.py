"""Definitions that have every kind of field in every place, which no message of Kafka's has all of."""

from __future__ import annotations

from typing import Any

import twin

from kraftlog.messages.definition import KINDS, Definition, Field
from kraftlog.messages.definition_text import parse

_SCALARS = [kind for kind in KINDS if kind != "struct"]
_NULLABLE = ("string", "bytes")


def _text() -> str:
    lines = ["EveryKind: data, versions 0-3, flexible 2+"]
    for kind in _SCALARS:
        lines.append(f"    {kind}Plain  {kind}")
        lines.append(f"    {kind}Later  {kind}  1+  ignorable")
        lines.append(f"    {kind}List  []{kind}")
        lines.append(f"    {kind}NullList  []{kind}  nullable 1+, default null")
    lines += [f"    {kind}Null  {kind}  nullable" for kind in _NULLABLE]
    lines.append("    defaulted  int32  1+  default -7, ignorable")
    lines.append("    named  string  1+  nullable, default none at all, ignorable")

    lines.append("\nEveryTag: data, versions 0-1, flexible 0+")
    for tag, kind in enumerate(_SCALARS):
        lines.append(f"    {kind}  {kind}  tag {3 * tag}")
    lines.append("    nested  struct")
    for tag, kind in enumerate(_SCALARS):
        lines.append(f"        {kind}List  []{kind}  nullable, tag {tag}, default null")
    lines.append("    last  string  1+  nullable, tag 40, default null")
    return "\n".join(lines)


_STRUCTS = """
EveryStruct: data, versions 0-2, flexible 1+
    plain          struct
        number     int16
        inner      struct
            word   string
            words  []string   nullable
    nullable       struct     nullable, default null
        number     int32      default 5
        list       []struct   nullable
            ids    []uuid
            id     uuid
    tagged         struct     1+  tag 0
        number     int64
        text       string     tag 0, default word
        flag       bool
    nullableTag    struct     1+  nullable, tag 1, default null
        bytes      bytes
        number     uint32     tag 3
    list           []struct   1+  nullable, tag 9
        nullable   struct     nullable
            port   uint16
        late       int64      2+  default -1, ignorable
        list       []struct
            value  float64
    end            int8       2+  ignorable

Nothing: data, versions 0-1, flexible 1+
"""


def odd_definitions() -> list[Definition]:
    return [*parse(_text(), "kinds"), *parse(_STRUCTS, "structs")]


def filled_message(fields: tuple[Field, ...], version: int, is_flexible: bool) -> twin.Message:
    """Return a message in which every field of a version has a value that is not its default."""
    message = {field.column: filled(field, version, is_flexible) for field in fields}
    return message | {twin.UNKNOWN: [(99, b"?"), (1000, b"")] if is_flexible else []}


def filled(field: Field, version: int, is_flexible: bool) -> Any:
    if version not in field.versions:
        return twin.default_of(field)
    values = {
        "bool": True,
        "string": "word",
        "bytes": b"\xff",
        "uuid": twin.uuid_text(bytes(range(16))),
        "float64": 2.5,
    }
    value = values.get(field.kind, 77)
    if field.kind == "struct":
        value = filled_message(field.fields, version, is_flexible)
    return [value, value] if field.is_array else value
