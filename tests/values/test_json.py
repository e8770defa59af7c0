"""JSON values: what is one value of the type is what Python reads, and all else is an error."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import write

import kraftlog
from kraftlog.values.json_format import JsonFormat, json_type
from kraftlog.values.json_schema import type_of_json_schema

TYPE = pa.struct([("id", pa.int64()), ("name", pa.string()), ("list", pa.list_(pa.float64()))])
PIECES = [
    b'{"id":1}',
    b'"name"',
    b":",
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b"1.5",
    b"null",
    b"\n",
    b'"a',
    b'"list"',
    b'"id"',
    b"2",
]
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
        "name": st.text() | st.none(),
        "list": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3) | st.none(),
    },
)


@given(st.lists(VALUES | st.none(), max_size=9), st.sampled_from([None, 1, 3]))
def test_any_value(wanted, indent):
    texts = [json.dumps(one, indent=indent, ensure_ascii=indent == 1).encode() for one in wanted]
    got, bad = JsonFormat(TYPE).convert(pa.array(texts, pa.binary()))
    got.validate(full=True)
    assert not bad
    expected = [None if one is None else {name: one.get(name) for name in ("id", "name", "list")} for one in wanted]
    assert got.to_pylist() == expected


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=7).map(b"".join) | st.binary(max_size=5), max_size=5))
def test_what_is_no_value_is_an_error(texts):
    got, bad = JsonFormat(TYPE).convert(pa.array(texts, pa.binary()))
    got.validate(full=True)
    rows = {one.row for one in bad if not one.is_in_part}
    for row, (text, value) in enumerate(zip(texts, got.to_pylist(), strict=True)):
        if row in rows:
            assert value is None
        else:
            plain = text[5:] if text[:1] == b"\0" and len(text) > 5 else text
            read = json.loads(plain)
            assert value == (None if read is None else {name: read.get(name) for name in ("id", "name", "list")})


def test_a_type_of_what_is_there():
    values = pa.array([b'{"id": 1, "at": "2026-11-23T08:00:00Z"}', b'{"id": 1.5, "no": null}', b"{", None, b"[]"])
    expected = pa.struct([("id", pa.float64()), ("at", pa.string()), ("no", pa.string())])
    assert json_type([values]) == expected
    assert json_type([values[2:4]]) == pa.string()


@pytest.mark.parametrize("prefix", [b"", b"\0\0\0\0\x05"])
def test_records(tmp_path, prefix):
    contents = [b'{"id": 1, "tags": ["a"]}', b'{"id": 2}', b"{", None, b'{"id": "x"}']
    records = [("k", one if one is None else prefix + one) for one in contents]
    rows = kraftlog.open(write(tmp_path / "log", orders=records), topics=["orders"])
    rows = rows.records(["value", "value_error"], value_format="json").to_table()
    assert rows["value"].to_pylist() == [{"id": 1, "tags": ["a"]}, {"id": 2, "tags": None}, None, None, None]
    errors = [one is not None for one in rows["value_error"].to_pylist()]
    assert errors == [False, False, True, False, True]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("prefix", [b"\0\0\0\0\5", b""])
def test_framed_values(count, prefix):
    """What stands before values is taken off each, whether their number is even or odd; null and short ones stay."""
    values = pa.array([*(prefix + b"%d" % number for number in range(count)), None, b"\0"], pa.binary())
    got, bad = JsonFormat(pa.int64()).convert(values)
    assert got.to_pylist() == [*range(count), None, None]
    assert [one.row for one in bad] == [count + 1]


KNOWN = pa.struct([("id", pa.int64()), ("items", pa.list_(pa.struct([("sku", pa.string())])))])


def test_unknown_fields_keep_those_that_are_known():
    values = [
        (b'{"id": 1}', {"id": 1, "items": None}, None),
        (b'{"id": 2, "late": {"x": 1}}', {"id": 2, "items": None}, "late"),
        (None, None, None),
        (
            b'{"id": 3, "items": [{"sku": "a"}, {"sku": "b", "size": 7}]}',
            {"id": 3, "items": [{"sku": "a"}, {"sku": "b"}]},
            "items.size",
        ),
        (b'{"id": "x", "late": 1}', None, ""),
        (b'{"id": 4, "late": "another type"}', {"id": 4, "items": None}, "late"),
        (b'{"id": 5, "gone": null}', {"id": 5, "items": None}, None),
        (b'{"items": [{"size": 7}]}', {"id": None, "items": [{"sku": None}]}, "items.size"),
    ]
    got, bad = JsonFormat(KNOWN).convert(pa.array([text for text, _, _ in values], pa.binary()))
    assert got.to_pylist() == [value for _, value, _ in values]
    paths = {one.row: one.reason.split(" ")[1] if one.is_in_part else "" for one in bad}
    assert paths == {row: path for row, (_, _, path) in enumerate(values) if path is not None}


def test_what_does_not_fit_keeps_its_bytes(tmp_path):
    texts = [b'{"id": 1}', b'{"id": 2}', b'{"id": 3, "late": "x"}', b"{", b"\0\0\0\0\5{", None]
    log = kraftlog.open(write(tmp_path / "log", orders=[("k", one) for one in texts]), topics=["orders"])
    stream = log.records(["value_raw", "value"], value_format="json", json_sample=2)
    assert stream.schema.field("value").type == pa.struct([("id", pa.int64())])
    rows = stream.to_table().to_pylist()
    assert [row["value_raw"] for row in rows] == [None, None, *texts[2:5], None]
    assert [row["value"] for row in rows] == [{"id": 1}, {"id": 2}, {"id": 3}, None, None, None]
    assert stream.faults[0].message.startswith(
        "orders-0: 3 values could not be read, the first at offset 2: field late"
    )
    assert log.records(value_format="json", json_sample=2).schema.names[-2:] == ["value_raw", "value_error"]
    every = log.records(["value"], value_format="json", json_sample="all")
    assert every.schema.field("value").type == pa.struct([("id", pa.int64()), ("late", pa.string())])
    assert every.to_table()["value"].to_pylist()[2] == {"id": 3, "late": "x"}


SCHEMA = {
    "$defs": {"money": {"type": "object", "properties": {"amount": {"type": "number"}}}},
    "type": "object",
    "properties": {
        "id": {"type": ["integer", "null"]},
        "price": {"anyOf": [{"$ref": "#/$defs/money"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", None]}},
        "ok": {"const": True},
        "any": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    },
}


def test_a_schema_in_a_file(tmp_path):
    """The columns are those of the schema, whichever values there are."""
    file = tmp_path / "order.json"
    file.write_text(json.dumps(SCHEMA))
    texts = [b'{"id": 1, "tags": ["a"], "ok": true}', b'{"price": {"amount": 1.5}}', b'{"other": 1}']
    path = write(tmp_path / "log", orders=[("k", one) for one in texts])
    columns = {
        "id": pa.int64(),
        "price": pa.struct([("amount", pa.float64())]),
        "tags": pa.list_(pa.string()),
        "ok": pa.bool_(),
        "any": pa.float64(),
    }
    log = kraftlog.open(path, topics=["orders"])
    stream = log.records(["value", "value_raw"], value_format="json", value_schema=str(file))
    assert stream.schema.field("value").type == pa.struct(columns.items())
    rows = stream.to_table().to_pylist()
    assert [row["value"]["id"] for row in rows] == [1, None, None]
    assert rows[1]["value"]["price"] == {"amount": 1.5}
    assert [row["value_raw"] for row in rows] == [None, None, texts[2]]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "is not JSON"),
        ({"type": "object"}, "#: an object without properties"),
        ({"properties": {"a": {"type": ["string", "integer"]}}}, "#/properties/a: expected one type .* int64, string"),
        ({"type": "array"}, "#/items: expected an object, found null"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "#/properties/a: .* is outside of this document"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "#/properties/a: no definition"),
        ({"properties": {"a": {"items": {"$ref": "#"}}}}, "# contains itself"),
        ({"type": "text"}, "#: unknown type 'text'"),
        ({"type": "null"}, "#: expected one type besides null, found none"),
    ],
)
def test_schemas_without_a_type(schema, said):
    with pytest.raises(ValueError, match=said):
        type_of_json_schema(schema if isinstance(schema, str) else json.dumps(schema))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value_format": "json", "json_sample": 0}, "json_sample is 0, not all or a number above 0"),
        ({"value_format": "json", "json_sample": "many"}, "json_sample is 'many'"),
        ({"value_format": "avro", "json_sample": 5}, "json_sample requires the format json"),
        ({"value_format": "json", "value_schema": "absent.json"}, "no schema 'absent.json': .* or a file"),
    ],
)
def test_options_that_say_nothing(tmp_path, options, said):
    log = kraftlog.open(write(tmp_path / "log", orders=[("k", b"1")]), topics=["orders"])
    with pytest.raises(ValueError, match=said):
        log.records(**options)
