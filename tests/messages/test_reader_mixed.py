"""Records of many types and versions in one read, tombstones, and Arrow arrays that are parts of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_answers import comparable, expected_json, in_order, typed_row
from message_strategies import messages, values_of
from twin_records import Record, encode_framed, encode_keyed

from kraftlog.messages.catalog import BUILT_IN, FORMATS
from kraftlog.messages.frames import NO_VERSION
from kraftlog.messages.reader import FRAMED, UNKNOWN_TYPE, MessageReader
from kraftlog.messages.record_type import RecordFormat

QUICK = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
PARTS: dict[str, Callable[[list[Any]], pa.BinaryArray]] = {
    "whole": lambda values: pa.array(values, pa.binary()),
    "slice": lambda values: pa.array([b"before", None, b"", *values, b"behind"], pa.binary()).slice(3, len(values)),
    "one of two chunks": lambda values: pa.chunked_array([[b"x"], values], pa.binary()).chunk(1),
    "slice of nine": lambda values: pa.array([*[None] * 9, *values], pa.binary()).slice(9),
}


@st.composite
def records(draw: st.DrawFn, record_format: RecordFormat) -> Record:
    """Draw a record of any type and version; every other one of a coordinator may be a tombstone."""
    record_type = draw(st.sampled_from([one for one in record_format.types.values() if one.value is not None]))
    key = None if record_type.key is None else draw(messages(record_type.key, 0))
    if key is not None and draw(st.integers(0, 4)) == 0:
        return Record(record_type, NO_VERSION, key, None)
    version, value = draw(values_of(record_type))
    return Record(record_type, version, key, value)


def encoded(record: Record) -> tuple[bytes | None, bytes | None]:
    return (None, encode_framed(record)) if record.key is None else encode_keyed(record)


@pytest.mark.sweep(7)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("part", PARTS)
@QUICK
@given(data=st.data())
def test_records_of_many_types(name: str, part: str, data: st.DataObject) -> None:
    record_format = BUILT_IN.formats[name]
    wanted = data.draw(st.lists(records(record_format), max_size=6))
    keys, values = [encoded(record)[0] for record in wanted], [encoded(record)[1] for record in wanted]
    key_column = None if name in FRAMED else PARTS[part](keys)
    found = MessageReader(record_format).read(key_column, PARTS[part](values))
    assert found.types.tolist() == [record.record_type.api_key for record in wanted]
    assert found.type_names.to_pylist() == [record.record_type.name for record in wanted]
    assert found.value_versions.tolist() == [record.version for record in wanted]
    assert found.is_tombstone.tolist() == [record.value is None for record in wanted]
    seen = []
    for type_name in found.types_there:
        typed = found.typed(type_name)
        seen += typed.rows.tolist()
        assert typed.rows.tolist() == sorted(typed.rows.tolist())
        assert comparable(typed.fields.to_pylist()) == comparable([typed_row(wanted[row]) for row in typed.rows])
        assert typed.is_tombstone.tolist() == [wanted[row].value is None for row in typed.rows]
    assert sorted(seen) == list(range(len(wanted)))
    for texts, side in zip(found.json(), ("key", "value"), strict=True):
        shown = [None if text is None else json.loads(text) for text in texts.to_pylist()]
        assert in_order(shown) == in_order([side_json(record, side) for record in wanted])
    assert found.errors.null_count == len(wanted)


def side_json(record: Record, side: str) -> Any:
    message, definition = getattr(record, side), getattr(record.record_type, side)
    version = record.version if side == "value" else 0
    return None if message is None else expected_json(definition.fields, version, message)


EMPTY = [
    pa.array([], pa.binary()),
    pa.array([b"a", None], pa.binary()).slice(2),
    pa.array([b"a"], pa.binary()).slice(0, 0),
    pa.array([None], pa.binary()).slice(1),
    pa.chunked_array([], pa.binary()).combine_chunks(),
    pa.Array.from_buffers(pa.binary(), 0, [None, None, pa.py_buffer(b"")]),
    pa.Array.from_buffers(pa.binary(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")]),
]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("nothing", EMPTY)
def test_no_records(name: str, nothing: pa.BinaryArray) -> None:
    record_format = BUILT_IN.formats[name]
    found = MessageReader(record_format).read(None if name in FRAMED else nothing, nothing)
    assert (found.types.tolist(), found.types_there, found.unknown_types) == ([], [], {})
    assert [len(texts) for texts in found.json()] == [0, 0]
    assert (len(found.errors), len(found.type_names)) == (0, 0)
    for record_type in record_format.types.values():
        typed = found.typed(record_type.name)
        names = [column for column, _, _ in record_type.columns]
        assert typed.fields.schema.names == [*names, twin.UNKNOWN]
        assert (typed.fields.num_rows, len(typed.rows), len(typed.is_tombstone)) == (0, 0, 0)


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in FRAMED])
def test_tombstones_alone(name: str) -> None:
    for record_type in BUILT_IN.formats[name].types.values():
        assert record_type.key is not None
        key = twin.default_message(record_type.key.fields)
        record = Record(record_type, NO_VERSION, key, None)
        keys = pa.array([encode_keyed(record)[0]] * 3, pa.binary())
        found = MessageReader(BUILT_IN.formats[name]).read(keys, pa.nulls(3, pa.binary()))
        typed = found.typed(record_type.name)
        assert typed.fields.to_pylist() == [typed_row(record)] * 3
        assert typed.is_tombstone.all()
        assert found.value_versions.tolist() == [NO_VERSION] * 3
        assert found.json()[1].null_count == 3


def test_nothing_but_nulls() -> None:
    nulls = pa.nulls(4, pa.binary())
    found = MessageReader(BUILT_IN.formats["consumer_offsets"]).read(nulls, nulls)
    assert found.types.tolist() == [UNKNOWN_TYPE] * 4
    assert found.type_names.null_count == 4
    assert found.errors.to_pylist() == ["key: the key is null"] * 4
    found = MessageReader(BUILT_IN.formats["metadata"]).read(None, nulls)
    assert found.errors.to_pylist() == ["value: the value is null"] * 4
    assert [texts.null_count for texts in found.json()] == [4, 4]


def test_unknown_types_are_counted() -> None:
    keys = [bytes.fromhex(text) for text in ("0063", "0063 0000", "ffff", "0002 0001 67")]
    values = pa.array([b"\0\0", None, b"", None], pa.binary())
    found = MessageReader(BUILT_IN.formats["consumer_offsets"]).read(pa.array(keys, pa.binary()), values)
    assert found.unknown_types == {0x63: 2, -1: 1}
    assert found.type_names.to_pylist() == [None, None, None, "GroupMetadata"]
    assert found.errors.to_pylist() == ["unknown type 99", "unknown type 99", "unknown type -1", None]
    assert found.json()[0].to_pylist() == [None, None, None, '{"group":"g"}']
