"""Types of Arrow for JSON Schema: the part of it that says which fields there are and of which type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

_SCALARS = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
_ANY_OF = ("anyOf", "oneOf")


def type_of_json_schema(text: str) -> pa.DataType:
    """Return the type of the values that a JSON Schema describes.

    Objects with properties are structs, arrays with items lists. A type beside null is the type, as all fields may be
    null. ``$ref`` may name a definition of the same document.

    Raises
    ------
    ValueError
        When it is no JSON Schema, or has no single type of Arrow; the message says where.

    Examples
    --------
    >>> type_of_json_schema('{"type": "object", "properties": {"id": {"type": ["integer", "null"]}}}')
    StructType(struct<id: int64>)
    """
    try:
        whole = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the JSON Schema is not JSON: {error}") from None
    return _type(whole, whole, "#", ())


def _type(schema: Any, whole: Any, place: str, outer: tuple[str, ...]) -> pa.DataType:
    if not isinstance(schema, dict):
        raise ValueError(f"JSON Schema, {place}: expected an object, found {json.dumps(schema)[:80]}")
    if "$ref" in schema:
        target = schema["$ref"]
        if target in outer:
            raise ValueError(f"JSON Schema, {place}: {target} contains itself, which has no type of Arrow")
        return _type(_referenced(target, whole, place), whole, str(target), (*outer, target))
    kinds = set(_kinds(schema, whole, place, outer))
    if kinds == {pa.int64(), pa.float64()}:
        return pa.float64()
    if len(kinds) != 1:
        found = ", ".join(sorted(map(str, kinds))) or "none"
        raise ValueError(f"JSON Schema, {place}: expected one type besides null, found {found}")
    return kinds.pop()


def _kinds(schema: dict[str, Any], whole: Any, place: str, outer: tuple[str, ...]) -> Iterator[pa.DataType]:
    """Return the types that values may have, but null."""
    for word in _ANY_OF:
        for number, one in enumerate(schema.get(word, ())):
            if one != {"type": "null"}:
                yield _type(one, whole, f"{place}/{word}/{number}", outer)
    if any(word in schema for word in _ANY_OF):
        return
    names = schema.get("type", "object" if "properties" in schema else "array" if "items" in schema else None)
    if names is None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        names = [_name_of(value) for value in values]
    for name in [names] if isinstance(names, str) else names:
        if name == "object":
            if not schema.get("properties"):
                raise ValueError(f"JSON Schema, {place}: an object without properties has no type of Arrow")
            fields = schema["properties"].items()
            yield pa.struct([(key, _type(one, whole, f"{place}/properties/{key}", outer)) for key, one in fields])
        elif name == "array":
            yield pa.list_(_type(schema.get("items"), whole, f"{place}/items", outer))
        elif name in _SCALARS:
            yield _SCALARS[name]
        elif name != "null":
            raise ValueError(f"JSON Schema, {place}: unknown type {name!r}")


def _name_of(value: object) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array"}
    return names.get(type(value), "object")


def _referenced(target: Any, whole: Any, place: str) -> Any:
    found = whole
    if not isinstance(target, str) or not target.startswith("#"):
        raise ValueError(f"JSON Schema, {place}: $ref {target!r} is outside of this document")
    for step in target.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            raise ValueError(f"JSON Schema, {place}: no definition {target}")
        found = found[name]
    return found
