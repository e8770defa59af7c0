"""Avro schemas and values for hypothesis, and Arrow's values in the form that fastavro gives them."""

import io
from typing import Any

import fastavro
from hypothesis import strategies as st

from kraftlog.values.avro_columns import branches_with_values
from kraftlog.values.avro_schema import AvroType

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def types(depth: int = 2) -> st.SearchStrategy[Any]:
    plain = st.sampled_from(PRIMITIVES)
    named = st.builds(lambda size: {"type": "fixed", "size": size}, st.integers(1, 20)) | st.builds(
        lambda count: {"type": "enum", "symbols": [f"S{at}" for at in range(count)]}, st.integers(1, 5)
    )
    if depth == 0:
        return plain | named
    inner = types(depth - 1)
    return (
        plain
        | named
        | inner.filter(lambda one: one != "null").map(lambda one: {"type": "array", "items": one})
        | inner.map(lambda one: {"type": "map", "values": one})
        | records(depth - 1)
        | inner.filter(_can_be_branch).map(lambda one: ["null", one])
        | st.just(["null", "int", "string"])
        | st.just(["double", "null", {"type": "array", "items": "long"}])
    )


def _can_be_branch(one: Any) -> bool:
    return one != "null" and not isinstance(one, list)


def records(depth: int = 2) -> st.SearchStrategy[Any]:
    return st.lists(types(depth), min_size=1, max_size=5).map(
        lambda found: {"type": "record", "fields": [{"name": f"f{at}", "type": one} for at, one in enumerate(found)]}
    )


def with_names(node: Any, counter: list[int] | None = None) -> Any:
    """Give each record, enum and fixed a name of its own."""
    counter = [0] if counter is None else counter
    if isinstance(node, list):
        return [with_names(one, counter) for one in node]
    if isinstance(node, str):
        return node
    named = dict(node)
    if node["type"] in ("record", "enum", "fixed"):
        counter[0] += 1
        named["name"] = f"N{counter[0]}"
    for part in ("items", "values"):
        if part in node:
            named[part] = with_names(node[part], counter)
    if "fields" in node:
        named["fields"] = [one | {"type": with_names(one["type"], counter)} for one in node["fields"]]
    return named


def values(schema: Any) -> st.SearchStrategy[Any]:
    if isinstance(schema, list):
        return st.one_of([values(one) for one in schema])
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return st.fixed_dictionaries({one["name"]: values(one["type"]) for one in schema["fields"]})
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=3)
    if kind == "map":
        return st.dictionaries(st.text(max_size=3), values(schema["values"]), max_size=3)
    if kind == "fixed":
        return st.binary(min_size=schema["size"], max_size=schema["size"])
    if kind == "enum":
        return st.sampled_from(schema["symbols"])
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "long": st.integers(-(1 << 63), (1 << 63) - 1),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "bytes": st.binary(max_size=20),
        "string": st.text(max_size=10),
    }[kind]


def written(schema: Any, value: Any) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, value)
    return file.getvalue()


def read(content: bytes, writer: Any, reader: Any = None) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(content), writer, reader)


def plain(value: Any, type_: AvroType) -> Any:
    """Return a value of Arrow as fastavro has it: maps as dicts, of a union the member that there is."""
    if type_.kind == "union":
        members = branches_with_values(type_)
        if value is None or len(members) < 2:
            return None if value is None else plain(value, members[0])
        return next(
            (plain(value[f"member{at}"], one) for at, one in enumerate(members) if value[f"member{at}"] is not None),
            None,
        )
    if type_.kind == "record":
        return {one.name: plain(value[one.name], one.type) for one in type_.fields}
    if type_.kind == "array":
        return [plain(one, type_.item) for one in value]
    if type_.kind == "map":
        return {name: plain(one, type_.item) for name, one in value}
    return value
