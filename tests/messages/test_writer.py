"""The writer on parts of columns, on columns that are left out, and on what a version has no place for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_answers import message_batch
from message_strategies import messages, versions
from odd_definitions import odd_definitions

from kraftlog.errors import InvalidRecordError
from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition
from kraftlog.messages.definition_text import parse
from kraftlog.messages.writer import encode_messages

NAMES = ["PartitionRecord", "GroupMetadataValue", "StreamsGroupMemberMetadataValue", "ShareSnapshotValue"]
DEFINITIONS = {one.name: one for one in [*odd_definitions(), *(BUILT_IN.messages[name] for name in NAMES)]}
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def draw(data: st.DataObject, most: int = 6) -> tuple[Definition, int, list[twin.Message], str]:
    definition = data.draw(st.sampled_from(list(DEFINITIONS.values())))
    version = data.draw(st.sampled_from(versions(definition)))
    wanted = data.draw(st.lists(messages(definition, version), min_size=1, max_size=most))
    return definition, version, wanted, data.draw(st.sampled_from(["text", "binary"]))


@QUICK
@given(data=st.data())
def test_slices(data: st.DataObject) -> None:
    definition, version, wanted, uuid = draw(data)
    first = data.draw(st.integers(0, len(wanted)))
    last = data.draw(st.integers(first, len(wanted)))
    expected = [twin.encode(definition, version, message) for message in wanted[first:last]]
    batch = message_batch(definition, wanted, uuid).slice(first, last - first)
    assert encode_messages(definition, version, batch).to_pylist() == expected
    columns = [column.slice(0, len(column)) for column in batch.columns]
    again = pa.RecordBatch.from_arrays([pa.concat_arrays([one[:0], one]) for one in columns], schema=batch.schema)
    assert encode_messages(definition, version, again).to_pylist() == expected


@QUICK
@given(data=st.data())
def test_tables_of_several_chunks(data: st.DataObject) -> None:
    definition, version, wanted, uuid = draw(data)
    at = data.draw(st.integers(0, len(wanted)))
    whole = message_batch(definition, wanted, uuid)
    table = pa.Table.from_batches([whole.slice(0, at), whole.slice(at), whole.slice(0, at)])
    expected = [twin.encode(definition, version, message) for message in [*wanted, *wanted[:at]]]
    assert encode_messages(definition, version, table).to_pylist() == expected


@QUICK
@given(data=st.data())
def test_rows(data: st.DataObject) -> None:
    definition, version, wanted, uuid = draw(data)
    rows = data.draw(st.lists(st.integers(0, len(wanted) - 1), max_size=9))
    encoded = encode_messages(
        definition, version, message_batch(definition, wanted, uuid), prefix=b"before", rows=np.array(rows, np.int64)
    )
    assert encoded.to_pylist() == [b"before" + twin.encode(definition, version, wanted[row]) for row in rows]
    encoded.validate(full=True)


@QUICK
@given(data=st.data())
def test_columns_that_are_left_out_have_their_defaults(data: st.DataObject) -> None:
    definition, version, (message,), uuid = draw(data, most=1)
    batch = message_batch(definition, [message], uuid)
    kept = [name for name in batch.schema.names if data.draw(st.booleans())] or batch.schema.names[-1:]
    kept += [one.column for one in definition.fields if one.default is None and version not in one.nullable]
    kept = data.draw(st.permutations(sorted(set(kept))))
    defaults = twin.default_message(definition.fields)
    expected = twin.encode(definition, version, {**defaults, **{name: message[name] for name in kept}})
    assert encode_messages(definition, version, batch.select(kept)).to_pylist() == [expected]


@pytest.mark.parametrize("name", DEFINITIONS)
def test_no_rows(name: str) -> None:
    definition = DEFINITIONS[name]
    for uuid in ("text", "binary"):
        schema = message_schema(definition, uuid)
        for columns in (
            schema.empty_table(),
            pa.Table.from_batches([], schema),
            pa.RecordBatch.from_pylist([], schema),
        ):
            encoded = encode_messages(definition, 0, columns, prefix=b"x")
            assert (encoded.type, encoded.to_pylist()) == (pa.binary(), [])
    some = message_batch(definition, [twin.default_message(definition.fields)])
    assert encode_messages(definition, definition.versions.last, some, rows=np.array([], np.int64)).to_pylist() == []


@QUICK
@given(data=st.data())
def test_what_is_ignorable_is_left_out(data: st.DataObject) -> None:
    """An earlier version leaves out what it has no place for; the rest is there."""
    definition = BUILT_IN.messages["GroupMetadataValue"]
    message = data.draw(messages(definition, 3))
    batch = message_batch(definition, [message])
    for version in (0, 1, 2):
        assert encode_messages(definition, version, batch).to_pylist() == [twin.encode(definition, version, message)]


FIELDS = parse(
    """
Word: data, versions 0-1, flexible 1+
    word     string    1+
    number   uint16
    wide     uint32
    id       uuid
    ids      []uuid    nullable, default null
    maybe    string    nullable, default null
    inner    struct
        list     []struct
            flag     bool
            text     string
        tagged   int32     1+  tag 4
""",
    "test",
)[0]


def word(**changes: Any) -> tuple[Definition, twin.Message]:
    return FIELDS, twin.default_message(FIELDS.fields) | changes


def inner(**changes: Any) -> dict[str, Any]:
    return {"list": [], "tagged": 0, "unknown_tagged_fields": []} | changes


@pytest.mark.parametrize(
    ("changes", "version", "text"),
    [
        ({"word": "a"}, 0, ", word: version 0 has no place for its value"),
        ({"number": -1}, 1, ", number: -1 is not between 0 and 65535"),
        ({"number": 65536}, 1, ", number: 65536 is not between 0 and 65535"),
        ({"wide": 2**32}, 0, ", wide: 4294967296 is not between 0 and 4294967295"),
        ({"word": None}, 1, ", word: null, which this version does not allow"),
        ({"number": None}, 1, ", number: null, which this version does not allow"),
        ({"word": "é" * 16384}, 1, ", word: a string of 32768 bytes, more than 32767"),
        ({"id": "A" * 21}, 1, ", id: text of 21 bytes is not a uuid, which has 22 characters of base64"),
        ({"id": "A" * 21 + "+"}, 1, ", id: text of 22 bytes is not a uuid, which has 22 characters of base64"),
        ({"id": "A" * 21 + "B"}, 1, ", id: text of 22 bytes is not a uuid, which has 22 characters of base64"),
        ({"ids": ["A" * 22, ""]}, 0, ", ids: text of 0 bytes is not a uuid, which has 22 characters of base64"),
        ({"ids": [None]}, 0, ", ids: null, which this version does not allow"),
        ({"inner": None}, 1, ", inner: null, which this version does not allow"),
        ({"inner": inner(list=None)}, 1, ", inner.list: null, which this version does not allow"),
        ({"inner": inner(tagged=1)}, 0, ", inner.tagged: version 0 has no place for its value"),
        ({"unknown_tagged_fields": [{"tag": 0, "data": b""}]}, 0, ": version 0 has no place for its value"),
        ({"unknown_tagged_fields": [{"tag": -1, "data": b""}]}, 1, ": -1 is not between 0 and 2147483647"),
        ({"unknown_tagged_fields": [{"tag": 2**31, "data": b""}]}, 1, ": 2147483648 is not between 0 and 2147483647"),
        (
            {"inner": inner(tagged=1, unknown_tagged_fields=[{"tag": 4, "data": b""}])},
            1,
            ", inner: tag 4 stands there twice",
        ),
        (
            {"unknown_tagged_fields": [{"tag": 3, "data": b""}, {"tag": 3, "data": b"x"}]},
            1,
            ": tag 3 comes after tag 3 and is not higher",
        ),
        (
            {"inner": inner(tagged=1, unknown_tagged_fields=[{"tag": 9, "data": b""}, {"tag": 4, "data": b""}])},
            1,
            ", inner: tag 4 comes after tag 9 and is not higher",
        ),
        (
            {"unknown_tagged_fields": [{"tag": 9, "data": b""}, {"tag": 4, "data": b""}]},
            1,
            ": tag 4 comes after tag 9 and is not higher",
        ),
    ],
)
def test_refusals(changes: dict[str, Any], version: int, text: str) -> None:
    """The row is named, and nothing is written."""
    definition, message = word(**changes)
    good = twin.default_message(definition.fields)
    rows = pa.RecordBatch.from_pylist([good, good, message], schema=message_schema(definition))
    with pytest.raises(InvalidRecordError, match=f"^row 2: Word, version {version}{re.escape(text)}$"):
        encode_messages(definition, version, rows)
    assert len(encode_messages(definition, version, rows.slice(0, 2))) == 2


def test_wrong_arguments() -> None:
    topic = BUILT_IN.messages["TopicRecord"]
    good = pa.table({"name": ["orders"], "topic_id": ["xxmuDHBfSWqUkjNiXl8dFQ"]})
    with pytest.raises(ValueError, match="TopicRecord: version 1 is not between 0 and 0"):
        encode_messages(topic, 1, good)
    with pytest.raises(ValueError, match="TopicRecord: version 1 is not between 0 and 0"):
        encode_messages(topic, 1, good.slice(1))
    with pytest.raises(
        ValueError, match="TopicRecord has no field 'nam'; it has name, topic_id, unknown_tagged_fields"
    ):
        encode_messages(topic, 0, good.rename_columns(["nam", "topic_id"]))
    with pytest.raises(ValueError, match="TopicRecord: column name is binary, not string"):
        encode_messages(topic, 0, good.set_column(0, "name", pa.array([b"orders"])))
    with pytest.raises(ValueError, match="TopicRecord: column name is large_string, not string"):
        encode_messages(topic, 0, good.set_column(0, "name", pa.array(["orders"], pa.large_string())))
    with pytest.raises(ValueError, match=r"TopicRecord: column topic_id is fixed_size_binary\[8\]"):
        encode_messages(topic, 0, good.set_column(1, "topic_id", pa.array([b"8 bytes."], pa.binary(8))))
    for rows in ([1], [-1], [0, 1]):
        with pytest.raises(ValueError, match="rows are not all between 0 and 0"):
            encode_messages(topic, 0, good, rows=np.array(rows, np.int64))
    with pytest.raises(ValueError, match="TopicRecord: two columns name"):
        encode_messages(topic, 0, pa.Table.from_arrays([good["name"], good["name"]], ["name", "name"]))


def test_null_structs_hide_what_is_in_them() -> None:
    """Values below a null struct are not looked at, whatever they are."""
    definition = {one.name: one for one in odd_definitions()}["EveryStruct"]
    schema = message_schema(definition)
    default = twin.default_message(definition.fields)
    batch = pa.RecordBatch.from_pylist([default, default], schema=schema)
    nullable = batch.column("nullable")
    filled = pa.StructArray.from_arrays(
        [pa.array([7, 7], field.type) if field.name == "number" else nullable.field(number)
         for number, field in enumerate(nullable.type)],
        fields=list(nullable.type),
        mask=pa.array([True, True]),
    )  # fmt: skip
    hidden = batch.set_column(batch.schema.get_field_index("nullable"), schema.field("nullable"), filled)
    for version in versions(definition):
        assert (
            encode_messages(definition, version, hidden).to_pylist() == [twin.encode(definition, version, default)] * 2
        )


def test_minus_zero_is_the_default() -> None:
    """As for Kafka, to which 0.0 and -0.0 are equal; in a field that is not tagged it is written as it is."""
    every = {one.name: one for one in odd_definitions()}
    default = twin.default_message(every["EveryTag"].fields)
    batches = [message_batch(every["EveryTag"], [{**default, "float64": value}]) for value in (0.0, -0.0)]
    assert encode_messages(every["EveryTag"], 0, batches[0]) == encode_messages(every["EveryTag"], 0, batches[1])
    plain = {**twin.default_message(every["EveryKind"].fields), "float64_plain": -0.0}
    for version in (1, 2):
        encoded = encode_messages(every["EveryKind"], version, message_batch(every["EveryKind"], [plain]))
        assert encoded.to_pylist() == [twin.encode(every["EveryKind"], version, plain)]
