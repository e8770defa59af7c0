"""Random messages of every definition and version: bytes, columns and JSON are the twin's."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_answers import comparable, expected_json, in_order, message_batch, typed_row
from message_strategies import messages, versions
from odd_definitions import odd_definitions
from twin_records import Record

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition
from kraftlog.messages.frames import frame
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.record_type import RecordFormat, RecordType
from kraftlog.messages.writer import encode_messages

API_KEY = 300  # a type of two bytes
DEFINITIONS = {one.name: one for one in [*BUILT_IN.messages.values(), *odd_definitions()]}
CASES = [(one.name, version) for one in DEFINITIONS.values() for version in versions(one)]
QUICK = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


def type_of(definition: Definition) -> RecordType:
    """Return a type that reads a message whatever log it is of."""
    return RecordType(definition.name, API_KEY, None, definition)


@pytest.mark.sweep(40)
@pytest.mark.parametrize(("name", "version"), CASES)
@QUICK
@given(data=st.data())
def test_messages(name: str, version: int, data: st.DataObject) -> None:
    definition = DEFINITIONS[name]
    uuid = data.draw(st.sampled_from(["text", "binary"]))
    wanted = data.draw(st.lists(messages(definition, version), min_size=1, max_size=4))
    prefix = frame(API_KEY, version)
    values = encode_messages(definition, version, message_batch(definition, wanted, uuid), prefix=prefix)
    assert values.to_pylist() == [prefix + twin.encode(definition, version, message) for message in wanted]

    record_type = type_of(definition)
    found = MessageReader(RecordFormat("metadata", {API_KEY: record_type}), uuid).read(None, values)
    typed = found.typed(name)
    records = [Record(record_type, version, None, message) for message in wanted]
    typed.fields.validate(full=True)
    assert comparable(typed.fields.to_pylist()) == comparable([typed_row(record, uuid) for record in records])
    assert typed.rows.tolist() == list(range(len(wanted)))
    keys, texts = found.json()
    assert keys.null_count == len(wanted)
    shown = [json.loads(text) for text in texts.to_pylist()]
    assert in_order(shown) == in_order([expected_json(definition.fields, version, message) for message in wanted])
    assert found.errors.null_count == len(wanted)


@QUICK
@given(data=st.data())
def test_more_rows_than_a_block(data: st.DataObject) -> None:
    """A block of rows is read field by field: what each row has must not depend on those around it."""
    definition = DEFINITIONS[data.draw(st.sampled_from(["EveryTag", "EveryStruct", "PartitionRecord"]))]
    version = data.draw(st.sampled_from(versions(definition)))
    few = data.draw(st.lists(messages(definition, version), min_size=2, max_size=4))
    order = data.draw(st.randoms(use_true_random=False)).choices(range(len(few)), k=600)
    bad = frame(API_KEY, version) + b"\x80"
    encoded = [frame(API_KEY, version) + twin.encode(definition, version, message) for message in few]
    values = [encoded[one] if row % 97 else bad for row, one in enumerate(order)]
    record_type = type_of(definition)
    found = MessageReader(RecordFormat("metadata", {API_KEY: record_type})).read(None, pa.array(values, pa.binary()))
    rows = [typed_row(Record(record_type, version, None, message)) for message in few]
    typed = found.typed(definition.name)
    assert typed.rows.tolist() == [row for row in range(600) if row % 97]
    assert comparable(typed.fields.to_pylist()) == comparable([rows[order[row]] for row in typed.rows])
    assert np.flatnonzero(found.errors.is_valid().to_numpy(zero_copy_only=False)).tolist() == list(range(0, 600, 97))
