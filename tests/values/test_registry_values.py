"""Values that real serializers wrote, by the ``_schemas`` of a real registry: what is read is what they were given."""

from __future__ import annotations

from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN, lines

FOLDER = GOLDEN / "schema_registry" / "serializers"
NEW_IN_SECOND = {"tags": [], "note": None}  # what the second schema of avro adds


def given(topic: str) -> list[dict[str, Any]]:
    return [line["written"] for line in lines(FOLDER / "written.jsonl") if line["topic"] == topic]


def read(topic: str, name: str) -> tuple[list[Any], list[str | None]]:
    stream = kraftlog.open(FOLDER / "log", topics=[topic]).records(["value", "value_error"], value_format=name)
    rows = stream.to_table()
    assert len(stream.faults) == sum(error is not None for error in rows["value_error"].to_pylist())
    return rows["value"].to_pylist(maps_as_pydicts="strict"), rows["value_error"].to_pylist()


@pytest.mark.parametrize("topic", ["avro", "avro-references", "avro-context", "json"])
def test_values(topic: str):
    expected = [(NEW_IN_SECOND if topic == "avro" else {}) | one for one in given(topic)]
    assert expected
    assert read(topic, "json" if topic == "json" else "avro") == (expected, [None] * len(expected))


def test_protobuf():
    expected = given("protobuf")
    assert len(expected) == 3
    assert expected[0]["counts"] == {"x": 3}
    assert read("protobuf", "protobuf") == (expected, [None] * 3)


def test_the_second_message_of_a_file():
    assert given("protobuf-other") == [{"id": 7}]
    assert read("protobuf-other", "protobuf") == ([{"id": 7}], [None])
