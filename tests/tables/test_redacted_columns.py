"""Columns are redacted as their values are one by one: ``Redaction.record``, in plain Python, is the oracle."""

from __future__ import annotations

import hashlib
import hmac
import json

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kraftlog.tables.digests import Digests
from kraftlog.tables.redaction import Redaction
from kraftlog.tables.redaction_rule import HOW

SECRET = b"0123456789abcdef"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SPACE = st.sampled_from(["", "", " ", "\n\t ", "\r"])
# the last ones are spelled with escapes, or are no names at all
NAMES = ['"a"', '"b"', '"c"', '"ü"', '""', '"a.b"', '"longer than eight bytes"', '"\\u0061"', '"\\n"', '"a', "a"]
TEXTS = [
    *(
        '"anna"',
        '""',
        '"\\"quoted\\\\ \\n"',
        '"\\u00fc"',
        '"\\ud83d\\ude00"',
        '"\\ud800"',
        '"\\/"',
        '"😀 ü \u2028"',
        '"\x7f"',
    ),
    *('"tab\t"', '"\\x"', '"open', "'a'", '"***"'),
]
NUMBERS = ["0", "-0", "1.50", "12345678901234567890", "-1e+5", "1E400", "01", "1.", ".5", "-", "+1", "1e", "NaN"]
WORDS = ["null", "null", "true", "false", "nul", "Infinity", ""]
STEPS = [".a", ".b", ".c", ".ü", "['']", "['a.b']", "['longer than eight bytes']", "[0]", "[1]", "[-1]", "[*]", ".*"]


def mostly(good: int, items: list[str]) -> st.SearchStrategy[str]:
    """Return items, those from number ``good`` on rarely."""
    return st.sampled_from(items[:good] * 8 + items)


def array(items: list[tuple[str, str, str]]) -> str:
    return "[" + ",".join(map("".join, items)) + "]"


def document(items: list[tuple[str, str, str, str, str]]) -> str:
    return "{" + ",".join(f"{a}{name}{b}:{value}{c}" for a, name, b, value, c in items) + "}"


LEAVES = mostly(7, TEXTS) | mostly(6, NUMBERS) | mostly(4, WORDS)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(st.tuples(SPACE, inner, SPACE), max_size=3).map(array)
        | st.lists(st.tuples(SPACE, mostly(7, NAMES), SPACE, inner, SPACE), max_size=4).map(document)
    ),
    max_leaves=12,
)


@st.composite
def values(draw: st.DrawFn) -> bytes | None:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.none() | st.binary(max_size=6))
    data = (draw(SPACE) + draw(DOCUMENTS) + draw(SPACE)).encode()
    change = draw(st.integers(0, 11))
    if change == 0:
        data = data[: draw(st.integers(0, len(data)))]
    elif change == 1 and data:
        at = draw(st.integers(0, len(data) - 1))
        data = data[:at] + draw(st.binary(max_size=2)) + data[at + 1 :]
    return data


PATHS = st.lists(st.sampled_from(STEPS), min_size=1, max_size=3).map("".join)
RULES = st.lists(st.tuples(PATHS, st.sampled_from(HOW)).map(lambda rule: f"value{rule[0]}={rule[1]}"), max_size=3)


def check(rules: list[str], rows: pa.RecordBatch) -> None:
    """Compare the rows with the records, one by one; also where the rows are a part of others."""
    for batch in (rows, rows.slice(1, max(rows.num_rows - 2, 0))):
        found, twin = Redaction(rules, SECRET), Redaction(rules, SECRET)
        made = found.rows(batch)
        made.validate(full=True)
        assert made.schema == batch.schema
        for before, after in zip(batch.to_pylist(), made.to_pylist(), strict=True):
            headers = [(one["key"].encode(), one["value"]) for one in before["headers"]]
            expected = twin.record((before["key"], before["value"], headers))
            left = [(one["key"].encode(), one["value"]) for one in after["headers"]]
            assert (after["key"], after["value"], left) == expected, before
        assert found.not_json == twin.not_json
    fields = [
        (row["key"], row["value"], [(one["key"].encode(), one["value"]) for one in row["headers"]])
        for row in rows.to_pylist()
    ]
    twin = Redaction(rules, SECRET)
    assert Redaction(rules, SECRET).records(fields) == list(map(twin.record, fields))


def batch_of(
    documents: list[bytes | None], keys: list[bytes | None] | None = None, headers: list[object] | None = None
) -> pa.RecordBatch:
    count = len(documents)
    columns = {
        "key": pa.array(keys or [None] * count, pa.binary()),
        "value": pa.array(documents, pa.binary()),
        "headers": pa.array(headers or [[]] * count, HEADERS),
    }
    return pa.RecordBatch.from_pydict(columns)


@given(st.lists(values(), max_size=8), RULES)
@example([b'{"a": "x", "a": "y"}', b'{"b": {"c": 1, "c": 2}}', b'{"\\u0061": "x"}'], ["value.a=mask"])
@example([b'{"a": [1, {"b":"x"}]}', b'{"a": "\\ud83d\\ude00"}', b'{"a": "\\ud800"}'], ["value.a=hash"])
@example([b'{"a": {"b": "x"}}'], ["value.a.b=hash", "value.a=hash"])
@example([b'{"a": {"b": "x"}}'], ["value.a=mask", "value.*=null", "value.a.b=hash"])
@example([b'{"a": null, "b": 1}', b' {"a" : null}'], ["value.a=mask", "value.a=hash"])
@example([b"[1, 2, 3]", b"[]", b"[[1]]"], ["value[-1]=mask"])
def test_documents(documents: list[bytes | None], rules: list[str]):
    check(rules, batch_of(documents))


def test_an_item_that_no_document_has():
    check(["value[99999999999999999999]=mask", "value.a=mask"], batch_of([b"[1]", b'{"a":1}', None]))


@given(st.data())
def test_keys_values_and_headers_as_a_whole(data: st.DataObject):
    content = st.none() | st.sampled_from([b"", b"a", b"***"]) | st.binary(max_size=3)
    one = st.fixed_dictionaries({"key": st.sampled_from(["user", "ü", ""]), "value": content})
    rows = data.draw(st.lists(st.tuples(content, content, st.lists(one, max_size=3)), max_size=6))
    places = ["key", "value", "header.user", "header.ü", "header.*", "header['']", "key.a"]
    rule = st.tuples(st.sampled_from(places), st.sampled_from(HOW)).map("=".join)
    rules = data.draw(st.lists(rule, max_size=4))
    check(rules, batch_of([row[1] for row in rows], [row[0] for row in rows], [row[2] for row in rows]))


@pytest.mark.parametrize("how", HOW)
def test_deep_and_wide_documents(how: str):
    wide = {f"name {number}": number for number in range(3000)}
    twins = json.dumps({f"n{number}": 1 for number in range(100)})[:-1] + ', "n40": 2}'
    deep = [b"[" * depth + b'{"a":"x"}' + b"]" * depth for depth in (1, 62, 63, 64, 65, 500, 20_000)]
    some = [
        json.dumps(dict(list(wide.items())[:count])).encode() for count in (1, 24, 25, 26, 900, 1023, 1024, 1025, 3000)
    ]
    check([f"value['name 20']={how}", f"value.n40={how}"], batch_of([None, *some, twins.encode(), *deep, None]))
    check([f"value{'[0]' * 62}.a={how}"], batch_of([None, *deep, None]))


def test_places_that_need_more_room_than_there_was():
    documents = [b"[" + b"1," * 5000 + b"1]", b'{"a":1}'] * 20
    check(["value[*]=hash"], batch_of(documents))
    check(["value[*]=mask", "value.a=null"], batch_of(documents))


def test_many_rules():
    rules = [f"value.n{number}={HOW[number % 3]}" for number in range(65)]
    content = json.dumps({f"n{number}": number for number in range(70)}).encode()
    for count in (63, 64, 65):
        check(rules[:count], batch_of([content, b"x", None]))


@given(st.lists(st.binary(max_size=200), max_size=4), st.binary(min_size=1, max_size=200))
def test_digests(data: list[bytes], key: bytes):
    expected = [hmac.new(key, one, hashlib.sha256).hexdigest().encode() for one in data]
    assert Digests(key).of(data) == expected
