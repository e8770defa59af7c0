"""The places of a definition's fields: in programs, in columns and in generated decoders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from kraftlog.messages import definition as kinds
from kraftlog.messages.default_text import ZERO_UUID
from kraftlog.messages.definition import LAST_VERSION, Definition, Field, Versions

DEEPEST, MOST_FIELDS, MOST_TAGGED = 8, 64, 16
PLACE_NONE, PLACE_IN_ORDER, PLACE_TAGGED = 0, 1, 2


@dataclass(frozen=True)
class Node:
    """A field and where it is in a program.

    Attributes
    ----------
    index : int
        Index of the field, and of its column.
    children : tuple of Node
        Fields of a struct.
    unknown : int
        For a struct, the column of its unknown tagged fields.
    """

    field: Field
    index: int
    children: tuple[Node, ...]
    unknown: int


@dataclass(frozen=True)
class Layout:
    """The fields of a definition in one sequence; the fields of a struct are adjacent.

    Attributes
    ----------
    root : Node
        The message, as a struct.
    nodes : tuple of Node
        By index.
    columns : int
        Number of columns, including those of unknown tagged fields.
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
        When a struct has more fields than the interpreter supports, is nested too deeply, or a UUID has a default.
    """
    every = Versions(0, LAST_VERSION)
    fields = [
        Field(definition.name, kinds.STRUCT, is_array=False, versions=every, default="", fields=definition.fields)
    ]
    first: list[int] = []
    depths = [0]
    for field in fields:  # the loop appends the fields of structs
        depth = depths[len(first)]
        first.append(len(fields))
        fields += field.fields
        depths += [depth + 1] * len(field.fields)
        if depth > DEEPEST:
            raise ValueError(f"{definition.name}: {field.name} is in more than {DEEPEST} structs")
        if field.kind == kinds.UUID and field.default not in (None, "", ZERO_UUID):
            raise ValueError(f"{definition.name}: the default of {field.name} is a uuid that is not zero")
        tagged = sum(child.tag is not None for child in field.fields)
        if len(field.fields) > MOST_FIELDS or tagged > MOST_TAGGED:
            raise ValueError(
                f"{definition.name}: {field.name} has {len(field.fields)} fields, of which {tagged} are tagged; "
                f"at most {MOST_FIELDS} and {MOST_TAGGED} are supported"
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


def place(definition: Definition, field: Field, version: int) -> int:
    """Return whether and how a field of a definition is on the wire in a version."""
    if version not in field.versions:
        return PLACE_NONE
    is_tagged = version in definition.flexible and field.tag is not None and version in field.tagged
    return PLACE_TAGGED if is_tagged else PLACE_IN_ORDER


def field_path(definition: Definition, index: int) -> str:
    """Return the dotted name of the field at an index.

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
