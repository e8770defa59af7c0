"""What rules take out of records is gone, and all else stays as it was."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.tables.redaction import Redaction

SECRET = b"0123456789abcdef"


def digest(data: bytes) -> str:
    return hmac.new(SECRET, data, hashlib.sha256).hexdigest()


def value(data: bytes | None, *rules: str) -> bytes | None:
    return Redaction(rules, SECRET).record((b"k", data, []))[1]


def test_keys_and_values_as_a_whole():
    rules = Redaction(["key=hash", "value=null"], SECRET)
    assert rules.record((b"k", b"v", [(b"a", b"b")])) == (digest(b"k").encode(), None, [(b"a", b"b")])
    assert rules.record((None, None, [])) == (None, None, [])
    assert value(b"v", "value=mask") == b"***"
    assert value(b"", "value=hash") == digest(b"").encode()


def test_headers():
    headers = [(b"user", b"me"), (b"user", None), (b"x.y", b"1"), (b"other", b"o")]
    rules = Redaction(["header.user=hash", "header['x.y']=mask"], SECRET)
    expected = [(b"user", digest(b"me").encode()), (b"user", None), (b"x.y", b"***"), (b"other", b"o")]
    assert rules.record((None, None, headers))[2] == expected
    every = Redaction(["header.*=null"]).record((None, None, headers))[2]
    assert every == [(name, None) for name, _ in headers]


def test_the_same_value_has_the_same_hash_everywhere():
    """A key, and a text in a document, can be joined; so can a number, by its digits."""
    rules = Redaction(["key=hash", "value.user=hash", "header.user=hash"], SECRET)
    key, document, headers = rules.record((b"anna", b'{"user": "anna"}', [(b"user", b"anna")]))
    assert key == headers[0][1] == json.loads(document or b"")["user"].encode() == digest(b"anna").encode()
    assert json.loads(value(b'{"n": 1.50}', "value.n=hash") or b"") == {"n": digest(b"1.50")}


@pytest.mark.parametrize(
    ("data", "rule", "expected"),
    [
        (b'{"a": {"b": [1, "x"]}}', "value.a.b[1]=mask", b'{"a":{"b":[1,"***"]}}'),
        (b'{"a": [{"b": 1}, {"b": 2}, {"c": 3}]}', "value.a[*].b=null", b'{"a":[{"b":null},{"b":null},{"c":3}]}'),
        (b'{"a": {"b": 1, "c": [2]}}', "value.a.*=mask", b'{"a":{"b":"***","c":"***"}}'),
        (b'{"a": {"b": 1}}', "value.a=mask", b'{"a":"***"}'),
        (b'[{"a": 1}]', "value[0].a=null", b'[{"a":null}]'),
        (b'{"x.y": 1, "n": 1e400, "m": 12345678901234567890.10}', "value['x.y']=null", None),
        (b'{"a":  1}', "value.b=mask", b'{"a":  1}'),
        (b'{"a": null}', "value.a=mask", b'{"a":null}'),
        ('{"a": 1, "ключ": "ü\\u0001\\ud800"}'.encode(), "value.a=null", None),
        (b'"text"', "value.a=mask", b'"text"'),
    ],
)
def test_places_in_documents(data: bytes, rule: str, expected: bytes | None):
    """Numbers keep their digits, and a document without the place its bytes."""
    found = value(data, rule)
    if expected is None:
        kept = json.loads(data, parse_float=str, parse_int=str)
        assert json.loads(found or b"", parse_float=str, parse_int=str) == {**kept, next(iter(kept)): None}
    elif b"null" in data:
        assert json.loads(found or b"") == json.loads(expected)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "data",
    [
        *(b"secret", b"", b"\xff", b'{"a": "secret"', b'{"a": NaN}', b'\xef\xbb\xbf{"a": "secret"}'),
        *(b"[" * 100_000, '{"a": "secret"}'.encode("utf-16"), b'\0\0\0\0\x01{"a": "secret"}', b"1" * 5000 + b"x"),
    ],
)
def test_what_is_no_json_goes_as_a_whole(data: bytes):
    rules = Redaction(["value.a=hash", "value.b=mask"], SECRET)
    assert rules.record((None, data, []))[1] == b"***"
    assert rules.not_json == 1
    assert rules.notes() == ["1 key or value is no JSON, and was redacted as a whole"]
    assert value(data, "value.a=hash") == digest(data).encode()
    assert value(data, "value.a=hash", "value.c=null") is None


@pytest.mark.parametrize("rule", ["value.a=mask", "value.b=mask", "value.a.c=null"])
def test_a_name_that_stands_twice(rule: str):
    """Readers take one or the other: neither slips through."""
    assert b"secret" not in (value(b'{"a": "secret", "a": "x"}', rule) or b"")


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def replaced(document: Any, steps: list[Any]) -> Any:
    """Mask a place, in plain Python."""
    if not steps:
        return None if document is None else "***"
    step, rest = steps[0], steps[1:]
    if isinstance(document, dict):
        return {name: replaced(one, rest) if step in ("*", name) else one for name, one in document.items()}
    if isinstance(document, list):
        wanted = range(len(document)) if step == "*" else [step] if isinstance(step, int) else []
        return [replaced(one, rest) if at in wanted else one for at, one in enumerate(document)]
    return document


@given(DOCUMENTS, st.lists(st.sampled_from(["a", "b", 0, 1, "*"]), min_size=1, max_size=3), st.booleans())
def test_as_plain_python_does(document: Any, steps: list[Any], is_ascii: bool):
    path = "".join(f"[{step}]" if isinstance(step, int) or step == "*" else f".{step}" for step in steps)
    data = json.dumps(document, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    if "\\ud" in data.decode("utf-8", "replace") or b"\xed" in data:
        return  # half a pair has no UTF-8
    assert json.loads(value(data, f"value{path}=mask") or b"") == replaced(document, steps)


def test_rows_are_what_records_are():
    schema = pa.schema(
        [
            ("offset", pa.int64()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ]
    )
    headers = [[], [{"key": "ü", "value": b"x"}, {"key": "n", "value": None}], []]
    rows = pa.RecordBatch.from_pydict(
        {"offset": [1, 2, 5], "key": [b"a", None, b""], "value": [b'{"a":1}', None, b"x"], "headers": headers}, schema
    )
    redaction = Redaction(["key=hash", "value.a=mask", "header.ü=null"], SECRET)
    found = redaction.rows(rows).to_pylist()
    for before, after in zip(rows.to_pylist(), found, strict=True):
        pairs = [(one["key"].encode(), one["value"]) for one in before["headers"]]
        key, data, others = redaction.record((before["key"], before["value"], pairs))
        assert (after["offset"], after["key"], after["value"]) == (before["offset"], key, data)
        assert [(one["key"].encode(), one["value"]) for one in after["headers"]] == others


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("value", "expected key=HOW"),
        ("value=drop", "expected key=HOW"),
        ("values.a=mask", "expected key=HOW"),
        ("header=null", "expected the name of a header"),
        ("header.a.b=null", "expected the name of a header"),
        ("header[0]=null", "expected the name of a header"),
        ("value.=mask", "JSON path"),
        ("value.a[x]=mask", "JSON path"),
    ],
)
def test_rules_that_are_none(rule: str, message: str):
    with pytest.raises(ValueError, match=message):
        Redaction([rule])


def test_hash_needs_a_key():
    with pytest.raises(ValueError, match="hash needs a key"):
        Redaction(["key=hash"])
    with pytest.raises(ValueError, match="expected a key of 16 bytes or more, found 3"):
        Redaction(["key=hash"], b"abc")
