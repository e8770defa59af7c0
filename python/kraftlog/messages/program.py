"""Compiles a definition to the programs that the native interpreter runs: one for each of its versions.

All versions have the same fields at the same places, so that one set of columns takes messages of all of them;
``native/c/message_program.h`` draws the form.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache

import numpy as np

from kraftlog._native import message as native
from kraftlog.messages import definition as kinds
from kraftlog.messages.definition import LAST_VERSION, Definition, Field, Versions

_WIRE_WIDTHS = {
    **dict.fromkeys((kinds.BOOL, kinds.INT8), 1),
    **dict.fromkeys((kinds.INT16, kinds.UINT16), 2),
    **dict.fromkeys((kinds.INT32, kinds.UINT32), 4),
    **dict.fromkeys((kinds.INT64, kinds.FLOAT64), 8),
}


@dataclass(frozen=True)
class Node:
    """A field and where it is in a program.

    Attributes
    ----------
    index : int
        Of the field, and of its column.
    children : tuple of Node
        Of a struct.
    unknown : int
        Of a struct: the column of the tagged fields that its definition does not know.
    """

    field: Field
    index: int
    children: tuple[Node, ...]
    unknown: int


@dataclass(frozen=True)
class Layout:
    """The fields of a definition in a row: those of a struct stand next to each other.

    Attributes
    ----------
    root : Node
        The message, as a struct.
    nodes : tuple of Node
        By index.
    columns : int
        Of fields and of unknown tagged fields together.
    """

    root: Node
    nodes: tuple[Node, ...]
    columns: int


@cache
def layout(definition: Definition) -> Layout:
    """Return the places of a definition's fields.

    Raises
    ------
    ValueError
        When a struct has more fields than the interpreter takes, stands too deep, or a uuid has a default.
    """
    every = Versions(0, LAST_VERSION)
    fields = [
        Field(definition.name, kinds.STRUCT, is_array=False, versions=every, default="", fields=definition.fields)
    ]
    first: list[int] = []
    depths = [0]
    for field in fields:  # grows in the loop: the fields of a struct are appended
        depth = depths[len(first)]
        first.append(len(fields))
        fields += field.fields
        depths += [depth + 1] * len(field.fields)
        if depth > native.DEEPEST:
            raise ValueError(f"{definition.name}: {field.name} is in more than {native.DEEPEST} structs")
        if field.kind == kinds.UUID and field.default not in (None, "", native.ZERO_UUID):
            raise ValueError(f"{definition.name}: the default of {field.name} is a uuid that is not zero")
        tagged = sum(child.tag is not None for child in field.fields)
        if len(field.fields) > native.MOST_FIELDS or tagged > native.MOST_TAGGED:
            raise ValueError(
                f"{definition.name}: {field.name} has {len(field.fields)} fields, of which {tagged} are tagged; "
                f"at most {native.MOST_FIELDS} and {native.MOST_TAGGED} are supported"
            )
    structs = [index for index, field in enumerate(fields) if field.kind == kinds.STRUCT]
    unknown = {index: len(fields) + number for number, index in enumerate(structs)}
    nodes: dict[int, Node] = {}
    for index in reversed(range(len(fields))):
        inner = range(first[index], first[index] + len(fields[index].fields))
        children = tuple(nodes[child] for child in inner)
        nodes[index] = Node(fields[index], index, children, unknown.get(index, -1))
    ordered = tuple(nodes[index] for index in range(len(fields)))
    return Layout(nodes[0], ordered, len(fields) + len(structs))


@cache
def program(definition: Definition, version: int) -> native.Program:
    """Return the program of a message of one version.

    Raises
    ------
    ValueError
        When the definition has no such version.
    """
    if version not in definition.versions:
        versions = definition.versions
        raise ValueError(f"{definition.name}: version {version} is not between {versions.first} and {versions.last}")
    places = layout(definition)
    is_compact = version in definition.flexible
    text = bytearray()
    rows = np.zeros(len(places.nodes), native.FIELD_DTYPE)
    for node, row in zip(places.nodes, rows, strict=True):
        _write_field(row, node, version, text, is_compact=is_compact)
    for node in places.nodes:
        tagged = [child.index for child in node.children if rows["place"][child.index] == native.PLACE_TAGGED]
        rows["tagged"][node.index] = len(tagged)
        rows["tagged_slot"][tagged] = np.arange(len(tagged))
        for number, child in enumerate(node.children, 1):
            if rows["place"][child.index] == native.PLACE_TAGGED and rows["tag"][child.index] < native.LOW_TAGS:
                rows["by_tag"][node.index, rows["tag"][child.index]] = number
    return native.Program(rows.tobytes(), bytes(text), is_compact, places.columns)


def _write_field(row: np.void, node: Node, version: int, text: bytearray, *, is_compact: bool) -> None:
    field = node.field
    row["kind"] = native.KINDS[field.kind]
    row["is_array"] = field.is_array
    row["is_nullable"] = version in field.nullable
    row["null_default"] = field.default is None
    row["is_ignorable"] = field.is_ignorable
    row["place"] = _place(field, version, is_compact=is_compact)
    row["tag"] = -1 if field.tag is None else field.tag
    row["first"] = node.children[0].index if node.children else 0
    row["count"] = len(node.children)
    row["unknown"] = node.unknown
    row["name_at"], row["name_size"] = _append(text, field.name)
    if isinstance(field.default, int | float):
        bits = _bits(field.default)
        row["default_bits"] = bits
        wire = (bits % (1 << 64)).to_bytes(8, "big")[-_WIRE_WIDTHS[field.kind] :]
        row["default_wire"][: len(wire)] = np.frombuffer(wire, np.uint8)
    elif field.default and field.kind == kinds.STRING:
        row["default_at"], row["default_size"] = _append(text, field.default)


def _bits(number: float) -> int:
    """Return an integer, or the bits of a double as one."""
    return int.from_bytes(struct.pack(">d", number), "big", signed=True) if isinstance(number, float) else number


def _place(field: Field, version: int, *, is_compact: bool) -> int:
    if version not in field.versions:
        return native.PLACE_NONE
    is_tagged = is_compact and field.tag is not None and version in field.tagged
    return native.PLACE_TAGGED if is_tagged else native.PLACE_IN_ORDER


def _append(text: bytearray, word: str) -> tuple[int, int]:
    at = len(text)
    text += word.encode()
    return at, len(text) - at


def field_path(definition: Definition, index: int) -> str:
    """Return the name of the field at an index, behind those of the structs that it is in.

    Examples
    --------
    >>> from kraftlog.messages.catalog import BUILT_IN
    >>> field_path(BUILT_IN.messages["RegisterBrokerRecord"], 14)
    'endPoints.port'
    """
    for node in layout(definition).nodes:
        for child in node.children:
            if child.index == index:
                before = field_path(definition, node.index)
                return f"{before}.{child.field.name}" if before else child.field.name
    return ""
