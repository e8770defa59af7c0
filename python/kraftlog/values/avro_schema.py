"""Avro schemas: their JSON to types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class _NoDefault(Enum):
    """What a field without a default has in its place."""

    NO_DEFAULT = "no default"


NO_DEFAULT = _NoDefault.NO_DEFAULT
_LARGEST_FIXED = 1 << 20


@dataclass(eq=False)
class AvroType:
    """A type of a schema. ``name`` is the full one, of a record, an enum or a fixed."""

    kind: str
    name: str = ""
    aliases: frozenset[str] = frozenset()
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    symbol_default: str | None = None
    fields: list[AvroField] = field(default_factory=list)
    items: AvroType | None = None
    branches: tuple[AvroType, ...] = ()

    @property
    def item(self) -> AvroType:
        """What an array or a map holds."""
        assert self.items is not None
        return self.items

    def is_named(self, names: Sequence[str] | frozenset[str]) -> bool:
        """Whether its name without the namespace is that of one of the names."""
        return _unqualified(self.name) in {_unqualified(name) for name in names}


@dataclass(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    aliases: frozenset[str]
    default: object = NO_DEFAULT


def parse_schema(text: str, references: Sequence[str] = ()) -> AvroType:
    """Return the type that a schema says.

    Parameters
    ----------
    text : str
    references : sequence of str
        Schemas whose named types this one may use; each may use those before it.

    Raises
    ------
    ValueError
        When it is no schema of Avro; the message says where.

    Examples
    --------
    >>> parse_schema('{"type": "array", "items": "long"}').item.kind
    'long'
    """
    names: dict[str, AvroType] = {}
    for one in references:
        _parse(_json(one), "", names, "a referenced schema")
    return _parse(_json(text), "", names, "the schema")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        if text.strip() in PRIMITIVE:
            return text.strip()
        raise ValueError(f"an Avro schema is JSON, and this is not: {error}") from None


def _parse(node: Any, namespace: str, names: dict[str, AvroType], where: str) -> AvroType:
    if isinstance(node, str):
        return _named(node, namespace, names, where)
    if isinstance(node, list):
        branches = tuple(_parse(one, namespace, names, f"branch {at} of {where}") for at, one in enumerate(node))
        if any(one.kind == "union" for one in branches):
            raise ValueError(f"{where}: a union holds another union")
        return AvroType("union", branches=branches)
    if not isinstance(node, dict) or "type" not in node:
        raise ValueError(f"{where}: expected a name, a list, or an object with a type, found {node!r}")
    kind = node["type"]
    if not isinstance(kind, str):
        return _parse(kind, namespace, names, where)
    if kind in ("record", "error", "enum", "fixed"):
        return _definition(kind, node, namespace, names, where)
    if kind in ("array", "map"):
        part = "items" if kind == "array" else "values"
        return AvroType(kind, items=_parse(_part(node, part, where), namespace, names, f"{part} of {where}"))
    if kind in PRIMITIVE:
        return _with_logical(AvroType(kind), node)
    return _named(kind, namespace, names, where)


def _definition(kind: str, node: dict[str, Any], namespace: str, names: dict[str, AvroType], where: str) -> AvroType:
    name = _part(node, "name", where)
    if not isinstance(name, str) or not name:
        raise ValueError(f"{where}: expected a name, found {name!r}")
    full = _full(name, node.get("namespace", namespace))
    inner = full.rpartition(".")[0]
    if full in names:
        raise ValueError(f"{where}: {full} is defined twice")
    made = AvroType(
        "record" if kind == "error" else kind, full, frozenset(_full(one, inner) for one in node.get("aliases") or ())
    )
    names[full] = made
    if kind == "enum":
        made.symbols = tuple(_part(node, "symbols", full))
        made.symbol_default = node.get("default")
        if len(set(made.symbols)) < len(made.symbols) or not all(isinstance(one, str) for one in made.symbols):
            raise ValueError(f"{full}: symbols are names, each once")
        if made.symbol_default is not None and made.symbol_default not in made.symbols:
            raise ValueError(f"{full}: the default {made.symbol_default!r} is none of the symbols")
    elif kind == "fixed":
        made.size = _part(node, "size", full)
        if not isinstance(made.size, int) or not 0 <= made.size <= _LARGEST_FIXED:
            raise ValueError(f"{full}: a size is a number up to {_LARGEST_FIXED}, found {made.size!r}")
        _with_logical(made, node)
    else:
        for one in _part(node, "fields", full):
            made.fields.append(_field(one, inner, names, full))
        if len({one.name for one in made.fields}) < len(made.fields):
            raise ValueError(f"{full}: two fields have the same name")
    return made


def _field(node: Any, namespace: str, names: dict[str, AvroType], record: str) -> AvroField:
    if not isinstance(node, dict):
        raise ValueError(f"{record}: expected fields, found {node!r}")
    name = _part(node, "name", record)
    where = f"field {name} of {record}"
    return AvroField(
        str(name),
        _parse(_part(node, "type", where), namespace, names, where),
        frozenset(node.get("aliases") or ()),
        node.get("default", NO_DEFAULT),
    )


def _part(node: dict[str, Any], name: str, where: str) -> Any:
    if name not in node:
        raise ValueError(f"{where} has no {name!r}")
    return node[name]


def _named(name: str, namespace: str, names: dict[str, AvroType], where: str) -> AvroType:
    if name in PRIMITIVE:
        return AvroType(name)
    found = names.get(_full(name, namespace)) or names.get(name)
    if found is None:
        raise ValueError(f"{where}: there is no type {name!r}; a schema that defines it must be among the references")
    return found


def _full(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _unqualified(name: str) -> str:
    return name.rpartition(".")[2]


def _with_logical(made: AvroType, node: dict[str, Any]) -> AvroType:
    """Take the logical type over, where it is one; one that does not fit its type is ignored, as Avro asks for."""
    logical = node.get("logicalType")
    if logical == "decimal" and made.kind in ("bytes", "fixed"):
        precision, scale = node.get("precision"), node.get("scale", 0)
        if isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision <= 76 and precision:
            made.logical, made.precision, made.scale = logical, precision, scale
    elif (logical == "date" and made.kind == "int") or (logical in TIMESTAMPS and made.kind == "long"):
        made.logical = logical
    return made


TIMESTAMPS = ("timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros")
