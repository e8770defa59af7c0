"""JSON values: what is one value of the type is what Python reads, and all else is an error."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry import write

import kraftlog
from kraftlog.values.json_format import JsonFormat, json_type

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
    rows = {one.row for one in bad}
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
