"""The decoder of Avro against fastavro: any schema, any value, damaged bytes, and schemas that changed."""

import datetime
import decimal
import json

import fastavro
import pyarrow as pa
import pytest
from avro_cases import plain, read, records, types, values, with_names, written
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlog.values.avro_schema import parse_schema
from kraftlog.values.avro_values import AvroDecoder

STRICTER = (  # where fastavro takes what is damaged
    "bytes are left",
    "32 bits",
    "ten bytes",
    "0 or 1",
    "no such branch",
    "no such symbol",
    "length",
    "count of items",
)


@settings(max_examples=300, deadline=None)
@given(st.data(), types().map(with_names))
def test_any_value_of_any_schema(data, schema):
    wanted = data.draw(st.lists(values(schema), max_size=9))
    decoder = AvroDecoder(json.dumps(schema))
    got, bad = decoder.decode(pa.array([written(schema, one) for one in wanted], pa.binary()))
    got.validate(full=True)
    assert not bad
    expected = [read(written(schema, one), schema) for one in wanted]
    assert [plain(one, decoder.reader) for one in got.to_pylist()] == expected


@settings(max_examples=500, deadline=None)
@given(st.data(), records().map(with_names))
def test_damaged_values_are_never_wrong(data, schema):
    contents = []
    for one in data.draw(st.lists(values(schema), min_size=1, max_size=5)):
        content = bytearray(written(schema, one))
        for _ in range(data.draw(st.integers(0, 2))):
            if content:
                content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        contents.append(
            bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
        )
    decoder = AvroDecoder(json.dumps(schema))
    got, bad = decoder.decode(pa.array(contents, pa.binary()))
    got.validate(full=True)
    reasons = {one.row: one.reason for one in bad}
    for row, (content, value) in enumerate(zip(contents, got.to_pylist(), strict=True)):
        if row not in reasons:
            assert repr(plain(value, decoder.reader)) == repr(read(content, schema))
            continue
        assert value is None
        if not any(reason in reasons[row] for reason in STRICTER):
            assert _is_refused(content, schema), reasons[row]


def _is_refused(content, schema):
    try:
        read(content, schema)
    except Exception:  # fastavro raises whatever it runs into
        return True
    return False


PROMOTED = {"int": ("long", "double"), "long": ("double",), "float": ("double",), "string": ("bytes",)}


@st.composite
def evolved(draw):
    """Return a schema of a record, and another that reads it by Avro's rules."""
    writer = with_names(draw(records()))
    fields = []
    for one in writer["fields"]:
        change = draw(st.sampled_from(["keep", "drop", "promote", "rename", "nullable"]))
        type_ = one["type"]
        if change == "drop":
            continue
        if change == "promote" and isinstance(type_, str) and type_ in PROMOTED:
            fields.append({"name": one["name"], "type": draw(st.sampled_from(PROMOTED[type_]))})
        elif change == "rename":
            fields.append({"name": f"new_{one['name']}", "aliases": [one["name"]], "type": type_})
        elif change == "nullable" and type_ != "null" and not isinstance(type_, list):
            fields.append({"name": one["name"], "type": ["null", type_]})
        else:
            fields.append({"name": one["name"], "type": type_})
    added = [
        {"name": "more", "type": "long", "default": 7},
        {"name": "text", "type": ["null", "string"], "default": None},
        {"name": "list", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        {"name": "pair", "type": {"type": "map", "values": "boolean"}, "default": {"a": True}},
    ]
    fields += draw(st.lists(st.sampled_from(added), unique_by=lambda one: one["name"]))
    return writer, writer | {"fields": draw(st.permutations(fields))}


@settings(max_examples=300, deadline=None)
@given(st.data(), evolved())
def test_schemas_that_changed(data, schemas):
    writer, reader = schemas
    contents = [written(writer, one) for one in data.draw(st.lists(values(writer), min_size=1, max_size=4))]
    decoder = AvroDecoder(json.dumps(reader))
    got, bad = decoder.decode(pa.array(contents, pa.binary()), json.dumps(writer))
    got.validate(full=True)
    assert not bad
    expected = [read(content, writer, reader) for content in contents]
    assert [plain(one, decoder.reader) for one in got.to_pylist()] == [_as_bytes(one, reader) for one in expected]


def _as_bytes(record, reader):
    """Fastavro leaves text as text where a reader wants bytes."""
    return {
        one["name"]: record[one["name"]].encode()
        if one["type"] == "bytes" and isinstance(record[one["name"]], str)
        else record[one["name"]]
        for one in reader["fields"]
    }


LOGICAL = {
    "type": "record",
    "name": "Logical",
    "fields": [
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "millis", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "cost", "type": {"type": "fixed", "name": "C", "size": 20, "logicalType": "decimal", "precision": 45}},
    ],
}
TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "day": st.dates(),
            "millis": TIMES.map(
                lambda at: at.replace(microsecond=1000 * (at.microsecond // 1000), tzinfo=datetime.UTC)
            ),
            "micros": TIMES.map(lambda at: at.replace(tzinfo=datetime.UTC)),
            "local": TIMES,
            "price": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda cents: decimal.Decimal(cents).scaleb(-2)),
            "cost": st.integers(-(10**45) + 1, 10**45 - 1).map(lambda one: decimal.Context(60).create_decimal(one)),
        }
    )
)
def test_logical_types(value):
    got, bad = AvroDecoder(json.dumps(LOGICAL)).decode(pa.array([written(LOGICAL, value)]))
    got.validate(full=True)
    assert (got.to_pylist(), bad) == ([value], [])


@pytest.mark.parametrize("number", [10**9, -(10**9), 10**20, -(1 << 31) - 1])
def test_decimals_beyond_their_precision(number):
    schema = LOGICAL["fields"][4]["type"]
    content = number.to_bytes(12, "big", signed=True)
    got, bad = AvroDecoder(json.dumps(schema)).decode(pa.array([bytes([24]) + content]))
    assert got.to_pylist() == [None]
    assert "precision" in bad[0].reason


def test_times_beyond_microseconds():
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    got, bad = AvroDecoder(json.dumps(schema)).decode(pa.array([written("long", 1 << 62), written("long", 1)]))
    assert got.cast(pa.int64()).to_pylist() == [None, 1000]
    assert [one.row for one in bad] == [0]


def test_arrays_of_nothing_are_bounded():
    schema = {"type": "array", "items": {"type": "array", "items": "null"}}
    many = written("long", 1 << 40) + b"\0\0"
    inner = written("long", 60_000) + b"\0"
    decoder = AvroDecoder(json.dumps(schema))
    got, bad = decoder.decode(
        pa.array([many, b"\x02" + many, b"\x04" + inner + inner + b"\0", b"\x02" + inner + b"\0"])
    )
    assert [one.row for one in bad] == [0, 1, 2]
    assert [None if one is None else len(one[0]) for one in got.to_pylist()] == [None, None, None, 60_000]


NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
}


def test_a_record_that_holds_itself_is_passed_over():
    reader = {"type": "record", "name": "Node", "fields": [{"name": "id", "type": "int"}]}
    value = {"id": 1, "next": {"id": 2, "next": {"id": 3, "next": None}}}
    got, bad = AvroDecoder(json.dumps(reader)).decode(pa.array([written(NODE, value)]), json.dumps(NODE))
    assert (got.to_pylist(), bad) == ([{"id": 1}], [])
    deep = written("int", 1) + b"\x02\x02" * 1000 + b"\0"
    assert "deeply" in AvroDecoder(json.dumps(reader)).decode(pa.array([deep]), json.dumps(NODE))[1][0].reason
    with pytest.raises(ValueError, match="record Node holds itself"):
        AvroDecoder(json.dumps(NODE))


def test_enums_and_their_default():
    def enum(*symbols, **more):
        return json.dumps({"type": "enum", "name": "E", "symbols": symbols} | more)

    contents = pa.array([written("int", at) for at in range(3)])
    got, bad = AvroDecoder(enum("B", "A")).decode(contents, enum("A", "B", "C"))
    assert got.to_pylist() == ["A", "B", None]
    assert "none of the reader's" in bad[0].reason
    got, bad = AvroDecoder(enum("B", "A", default="B")).decode(contents, enum("A", "B", "C"))
    assert (got.to_pylist(), bad) == (["A", "B", "B"], [])


def test_units_are_not_mixed_up():
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    got, bad = AvroDecoder(json.dumps(millis)).decode(pa.array([written("long", 5)]), json.dumps(micros))
    assert got.to_pylist() == [None]
    assert "does not fit the reader's schema" in bad[0].reason


def test_a_field_without_default():
    def record(*fields):
        return json.dumps({"type": "record", "name": "R", "fields": [{"name": one, "type": "int"} for one in fields]})

    got, bad = AvroDecoder(record("a", "b")).decode(pa.array([b"\x02"]), record("a"))
    assert got.to_pylist() == [None]
    assert "does not fit the reader's schema" in bad[0].reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is JSON"),
        ('"nothing"', "no type 'nothing'"),
        ('["null", ["int"]]', "another union"),
        ('{"type": "record", "name": "R"}', "has no 'fields'"),
        ('{"type": "array"}', "has no 'items'"),
        ('{"type": "fixed", "name": "F", "size": -1}', "a size"),
        ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "each once"),
        ("5", "expected a name"),
    ],
)
def test_what_is_no_schema(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_schema(text)


def test_names_are_found_by_namespace():
    schema = {
        "type": "record",
        "name": "a.b.R",
        "fields": [
            {"name": "one", "type": {"type": "fixed", "name": "F", "size": 2}},
            {"name": "two", "type": "F"},
            {"name": "three", "type": "a.b.F"},
        ],
    }
    fastavro.parse_schema(schema)
    assert [one.type.name for one in parse_schema(json.dumps(schema)).fields] == ["a.b.F"] * 3
