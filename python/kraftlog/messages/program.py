"""Compiles a definition to the programs that the native interpreter runs: one for each of its versions.

All versions have the same fields at the same places, so that one set of columns takes messages of all of them;
``native/c/message/program.h`` draws the form.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from kraftlog._native import message as native
from kraftlog.messages import definition as kinds
from kraftlog.messages.default_text import default_bits, default_wire
from kraftlog.messages.definition import Definition, digest
from kraftlog.messages.layout import PLACE_TAGGED, Node, layout, place


@cache
def program(definition: Definition, version: int) -> native.Program:
    """Return the program of one version of a message.

    Raises
    ------
    ValueError
        When the definition has no such version.
    """
    if version not in definition.versions:
        versions = definition.versions
        raise ValueError(f"{definition.name}: version {version} is not between {versions.first} and {versions.last}")
    fields, text = compiled(definition, version)
    return native.Program(fields, text, version in definition.flexible, layout(definition).columns)


def compiled(definition: Definition, version: int) -> tuple[bytes, bytes]:
    """Return the fields of a program, each a ``kr_field``, and the text that they refer to."""
    places = layout(definition)
    text = bytearray()
    rows = np.zeros(len(places.nodes), native.FIELD_DTYPE)
    for node, row in zip(places.nodes, rows, strict=True):
        _write_field(row, node, definition, version, text)
    for node in places.nodes:
        tagged = [child.index for child in node.children if rows["place"][child.index] == PLACE_TAGGED]
        rows["tagged"][node.index] = len(tagged)
        rows["tagged_slot"][tagged] = np.arange(len(tagged))
        for number, child in enumerate(node.children, 1):
            if rows["place"][child.index] == PLACE_TAGGED and rows["tag"][child.index] < native.LOW_TAGS:
                rows["by_tag"][node.index, rows["tag"][child.index]] = number
    return rows.tobytes(), bytes(text)


@cache
def programs(definition: Definition, *, interpreted: bool = False) -> native.Programs:
    """Return the programs of all versions of a message, together with its generated decoder.

    Parameters
    ----------
    definition : Definition
    interpreted : bool
        Whether to leave out that decoder.
    """
    every = [program(definition, version) for version in range(definition.versions.first, definition.versions.last + 1)]
    of_code = None if interpreted else digest(definition)
    return native.Programs(definition.versions.first, every, layout(definition).columns, definition.name, of_code)


def _write_field(row: np.void, node: Node, definition: Definition, version: int, text: bytearray) -> None:
    field = node.field
    row["kind"] = native.KINDS[field.kind]
    row["is_array"] = field.is_array
    row["is_nullable"] = version in field.nullable
    row["null_default"] = field.default is None
    row["is_ignorable"] = field.is_ignorable
    row["place"] = place(definition, field, version)
    row["tag"] = -1 if field.tag is None else field.tag
    row["first"] = node.children[0].index if node.children else 0
    row["count"] = len(node.children)
    row["unknown"] = node.unknown
    row["name_at"], row["name_size"] = _append(text, field.name)
    if isinstance(field.default, int | float):
        wire = default_wire(field.kind, field.default)
        row["default_bits"] = default_bits(field.default)
        row["default_wire"][: len(wire)] = np.frombuffer(wire, np.uint8)
    elif field.default and field.kind == kinds.STRING:
        row["default_at"], row["default_size"] = _append(text, field.default)


def _append(text: bytearray, word: str) -> tuple[int, int]:
    at = len(text)
    text += word.encode()
    return at, len(text) - at
