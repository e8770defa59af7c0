"""A reader says what is wrong with what it is given."""

from __future__ import annotations

import pyarrow as pa
import pytest
import twin
from message_answers import arrow_message
from odd_definitions import filled_message

from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition_text import parse
from kraftlog.messages.frames import frame
from kraftlog.messages.layout import layout
from kraftlog.messages.program import program
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.record_type import RecordFormat, RecordType

METADATA, OFFSETS = BUILT_IN.formats["metadata"], BUILT_IN.formats["consumer_offsets"]
BINARY = pa.array([b"a"], pa.binary())


def test_records_with_keys_need_them() -> None:
    with pytest.raises(ValueError, match="records of consumer_offsets have keys"):
        MessageReader(OFFSETS).read(None, BINARY)


def test_as_many_keys_as_values() -> None:
    for keys in (pa.nulls(0, pa.binary()), pa.nulls(2, pa.binary())):
        with pytest.raises(ValueError, match=f"{len(keys)} keys, but 1 values"):
            MessageReader(OFFSETS).read(keys, BINARY)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a"], pa.large_binary()),
        pa.array([b"a"], pa.binary_view()),
        pa.array([b"a"], pa.binary(1)),
        pa.array(["a"]),
        pa.array([1]),
        pa.nulls(1),
        pa.array([b"a"], pa.binary()).dictionary_encode(),
        pa.chunked_array([[b"a"]], pa.binary()),
        [b"a"],
    ],
)
def test_columns_of_another_type(column: pa.Array) -> None:
    with pytest.raises(ValueError, match="are a BinaryArray, not"):
        MessageReader(METADATA).read(None, column)
    with pytest.raises(ValueError, match="are a BinaryArray, not"):
        MessageReader(OFFSETS).read(column, BINARY)


def test_the_form_of_uuids() -> None:
    with pytest.raises(ValueError, match="uuid is text or binary, not 'hex'"):
        MessageReader(METADATA, uuid="hex")
    with pytest.raises(ValueError, match="uuid is text or binary, not 'hex'"):
        message_schema(BUILT_IN.messages["TopicRecord"], uuid="hex")


def test_types_that_a_format_has_not() -> None:
    with pytest.raises(ValueError, match="metadata has no records of type 'OffsetCommit'"):
        MessageReader(METADATA).read(None, BINARY).typed("OffsetCommit")


def fields(count: int, remarks: str = "") -> str:
    return "\n".join(f"    field{number}  int8  {remarks.format(number)}" for number in range(count))


def structs(count: int) -> str:
    """Return structs in each other, all with as many tagged fields as there may be."""
    lines = []
    for depth in range(count):
        indent = "    " * (depth + 1)
        lines += [f"{indent}f{number}  int8  tag {number}" for number in range(15)]
        lines.append(f"{indent}inner  struct  tag 15")
    return "\n".join([*lines, "    " * (count + 1) + "last  int8"])


HEAD = "Large: data, versions 0, flexible 0+\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (fields(65), "Large has 65 fields, of which 0 are tagged; at most 64 and 16 are supported"),
        (fields(17, "tag {}"), "Large has 17 fields, of which 17 are tagged; at most 64 and 16 are supported"),
        (structs(8), "last is in more than 8 structs"),
        ("    id  uuid  default AAAAAAAAAAAAAAAAAAAAAQ", "the default of id is a uuid that is not zero"),
    ],
)
def test_definitions_that_are_too_large(text: str, error: str) -> None:
    (definition,) = parse(HEAD + text, "test")
    with pytest.raises(ValueError, match=f"^Large: {error}$"):
        layout(definition)


@pytest.mark.parametrize("text", [fields(64), fields(16, "tag {}"), structs(7)])
def test_definitions_that_are_just_small_enough(text: str) -> None:
    (definition,) = parse(HEAD + text, "test")
    message = filled_message(definition.fields, 0, True)
    values = pa.array([frame(1, 0) + twin.encode(definition, 0, message)] * 300, pa.binary())
    found = MessageReader(RecordFormat("metadata", {1: RecordType("Large", 1, None, definition)})).read(None, values)
    typed = found.typed("Large").fields
    assert typed.to_pylist() == [arrow_message(definition.fields, message)] * 300
    assert found.errors.null_count == 300


def test_versions_that_a_definition_has_not() -> None:
    with pytest.raises(ValueError, match="OffsetCommitValue: version 5 is not between 0 and 4"):
        program(BUILT_IN.messages["OffsetCommitValue"], 5)
