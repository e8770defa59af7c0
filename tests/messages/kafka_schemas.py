"""What Kafka's JSON says of messages, and how definitions differ from it.

The JSON is read here without the package's own reader of it, so that the two cannot err alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kraftlog.messages.definition import Definition, Field

SCHEMAS = Path(__file__).parent / "schemas"
REQUESTS = Path(__file__).parent / "request_schemas"
NUMBERS = {"int8", "int16", "uint16", "int32", "uint32", "int64"}
KINDS = NUMBERS | {"bool", "float64", "string", "bytes", "uuid"}


def schemas(files: Iterable[Path] = tuple(sorted(SCHEMAS.glob("*/*.json")))) -> dict[str, dict[str, Any]]:
    """Return every message of Kafka's JSON by its name."""
    found = [json.loads(file.read_text()) for file in files]
    assert len({schema["name"] for schema in found}) == len(found)
    return {schema["name"]: schema for schema in found}


def versions(text: str | None, highest: int) -> set[int]:
    """Return the versions that a range of Kafka's JSON has, as far as there are any."""
    if text is None or text == "none":
        return set()
    first, _, last = text.removesuffix("+").partition("-")
    return set(range(int(first), (highest if text.endswith("+") else int(last or first)) + 1))


def differences(schemas: Mapping[str, dict[str, Any]], definitions: Mapping[str, Definition]) -> list[str]:
    """Return a sentence for each fact in which definitions differ from Kafka's JSON."""
    found = [f"{name}: only in the JSON" for name in schemas if name not in definitions]
    found += [f"{name}: only defined" for name in definitions if name not in schemas]
    for name in schemas.keys() & definitions.keys():
        found += differences_of_message(schemas[name], definitions[name])
    return found


def differences_of_message(schema: dict[str, Any], definition: Definition) -> Iterator[str]:
    highest = max(versions(schema["validVersions"], 0))
    valid = versions(schema["validVersions"], highest)
    expected = {
        "name": schema["name"],
        "role": schema["type"],
        "api key": schema.get("apiKey"),
        "versions": valid,
        "flexible": versions(schema["flexibleVersions"], highest) & valid,
    }
    actual = {
        "name": definition.name,
        "role": definition.role,
        "api key": definition.api_key,
        "versions": {version for version in range(100) if version in definition.versions},
        "flexible": {version for version in range(100) if version in definition.flexible},
    }
    for fact, value in expected.items():
        if value != actual[fact]:
            yield f"{schema['name']}, {fact}: {value} in the JSON, {actual[fact]} defined"
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
    for version in sorted(valid):
        in_json = facts_of_json(schema["fields"], structs, version, highest)
        defined = facts_of_fields(definition.fields, version)
        if in_json != defined:
            yield f"{schema['name']}, version {version}: {in_json} in the JSON, {defined} defined"
    named = list(names_in_json(schema["fields"], structs))
    if named != list(names_defined(definition.fields)):
        yield f"{schema['name']}: other fields, or in another order"


def facts_of_json(fields: list[dict[str, Any]], structs: Mapping[str, Any], version: int, highest: int) -> list[Any]:
    """Return all that matters about fields in one version."""
    facts: list[Any] = []
    for field in fields:
        if version not in versions(field.get("versions", field.get("taggedVersions")), highest):
            continue
        is_array = field["type"].startswith("[]")
        element = field["type"].removeprefix("[]").replace("records", "bytes")
        inner = None if element in KINDS else field.get("fields") or structs[element]
        facts.append(
            {
                "name": field["name"][0].lower() + field["name"][1:],
                "kind": element if element in KINDS else "struct",
                "is_array": is_array,
                "nullable": version in versions(field.get("nullableVersions"), highest),
                "tag": field["tag"] if version in versions(field.get("taggedVersions"), highest) else None,
                "default": default_of_json(element, is_array, field.get("default")),
                "ignorable": field.get("ignorable", False),
                "fields": [] if inner is None else facts_of_json(inner, structs, version, highest),
            }
        )
    return facts


def default_of_json(element: str, is_array: bool, default: Any) -> tuple[str, Any]:
    """Return a default with its type, since False equals 0."""
    if default == "null":
        return "null", None
    if is_array or element in {"string", "bytes"} or element not in KINDS:
        return "str", default or ""
    if element == "uuid":
        return "str", default or "A" * 22
    if element == "bool":
        return "bool", str(default).lower() == "true"
    return ("float", float(default or 0)) if element == "float64" else ("int", int(str(default or 0), 0))


def facts_of_fields(fields: tuple[Field, ...], version: int) -> list[Any]:
    return [
        {
            "name": field.name,
            "kind": field.kind,
            "is_array": field.is_array,
            "nullable": version in field.nullable,
            "tag": field.tag if version in field.tagged else None,
            "default": ("null" if field.default is None else type(field.default).__name__, field.default),
            "ignorable": field.is_ignorable,
            "fields": facts_of_fields(field.fields, version),
        }
        for field in fields
        if version in field.versions
    ]


def names_in_json(fields: list[dict[str, Any]], structs: Mapping[str, Any]) -> Iterator[str]:
    for field in fields:
        yield field["name"][0].lower() + field["name"][1:]
        element = field["type"].removeprefix("[]")
        yield from names_in_json(field.get("fields") or structs.get(element, []), structs)


def names_defined(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from names_defined(field.fields)
