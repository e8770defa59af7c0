"""Requests and responses are defined as Kafka's JSON defines them, and read and written as other code does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import twin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka_schemas import REQUESTS, differences, schemas
from message_strategies import messages, versions
from test_definitions import mutants
from test_one_message import with_no_unknown, without_unknown

from kraftlog.codec.cursor import uvarint
from kraftlog.errors import InvalidRecordError
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition
from kraftlog.messages.one_message import MOST_TEXT_BYTES, decode_message, encoded
from kraftlog.protocol.api import apis

DEFINED = {one.name: one for api in apis().values() for one in (api.request, api.response)}
EVERY = {**BUILT_IN.messages, **DEFINED}


def test_definitions_equal_kafkas():
    in_json = schemas(sorted(REQUESTS.glob("*.json")))
    assert len(in_json) == 2 * len(apis())
    assert differences(in_json, DEFINED) == []


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_a_changed_fact_is_found(name: str):
    schema = {name: schemas([REQUESTS / f"{name}.json"])[name]}
    for changed in mutants(DEFINED[name]):
        assert differences(schema, {name: changed}), changed


def test_both_messages_of_an_api_have_the_same_versions():
    for key, api in apis().items():
        assert (api.key, api.request.api_key, api.response.api_key) == (key, key, key)
        assert api.request.versions == api.response.versions
        assert api.request.flexible == api.response.flexible


def plain(value: Any) -> Any:
    """Return what is decoded in the twin's form: UUIDs as text."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return bytes(value) if isinstance(value, memoryview) else value


def with_uuids(definition: Definition, message: Any) -> Any:
    return _uuids(definition.fields, message)


def _uuids(fields: Any, message: Any) -> Any:
    if message is None:
        return None
    found = dict(message)
    for field in fields:
        value = found.get(field.column)
        if field.kind == "uuid" and value is not None:
            found[field.column] = [twin.uuid_text(one) for one in value] if field.is_array else twin.uuid_text(value)
        elif field.kind == "struct" and value is not None:
            found[field.column] = (
                [_uuids(field.fields, one) for one in value] if field.is_array else _uuids(field.fields, value)
            )
    return found


@pytest.mark.sweep(60)
@pytest.mark.parametrize("name", sorted(EVERY))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_messages(name: str, data: st.DataObject):
    definition = EVERY[name]
    version = data.draw(st.sampled_from(versions(definition)))
    message = data.draw(messages(definition, version))
    content = twin.encode(definition, version, with_no_unknown(message))
    assert b"".join(encoded(definition, version, without_unknown(message))) == content  # type: ignore[arg-type]
    decoded = without_unknown(twin.decode(definition, version, content))
    assert with_uuids(definition, plain(decode_message(definition, version, content))) == decoded
    with_unknown = twin.encode(definition, version, message)  # tagged fields that nobody knows are skipped
    assert with_uuids(definition, plain(decode_message(definition, version, with_unknown))) == decoded


@pytest.mark.sweep(30)
@pytest.mark.parametrize("name", sorted(DEFINED))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_cut_and_changed_bytes(name: str, data: st.DataObject):
    """Whatever the bytes: the message of the twin, or an error that says that they are none."""
    definition = DEFINED[name]
    version = data.draw(st.sampled_from(versions(definition)))
    content = bytearray(twin.encode(definition, version, with_no_unknown(data.draw(messages(definition, version)))))
    cut = data.draw(st.integers(0, max(len(content) - 1, 0)))
    if content:
        with pytest.raises(InvalidRecordError, match=name):
            decode_message(definition, version, content[:cut])
    for _ in range(min(len(content), 3)):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidRecordError):
        found = with_uuids(definition, plain(decode_message(definition, version, content)))
        assert found == without_unknown(twin.decode_first(definition, version, bytes(content))[0])


@pytest.mark.parametrize("version", [8, 9])
def test_strings_are_as_long_as_kafka_reads_them(version: int):
    """A compact length could tell more, which the records of a coordinator could not hold."""
    definition = DEFINED["OffsetCommitRequest"]
    frame = b"".join(encoded(definition, version, {"group_id": "g" * MOST_TEXT_BYTES}))
    assert decode_message(definition, version, frame)["group_id"] == "g" * MOST_TEXT_BYTES
    with pytest.raises(ValueError, match="groupId of 32768 bytes, of at most 32767"):
        encoded(definition, version, {"group_id": "g" * (MOST_TEXT_BYTES + 1)})
    if version in definition.flexible:
        longer = uvarint(MOST_TEXT_BYTES + 2) + b"g" * (MOST_TEXT_BYTES + 1) + frame[MOST_TEXT_BYTES + 3 :]
        with pytest.raises(InvalidRecordError, match="groupId of 32768 bytes, of at most 32767"):
            decode_message(definition, version, longer)


@pytest.mark.parametrize("version", [4, 5])
def test_a_message_about_a_long_name_is_cut(version: int):
    definition = DEFINED["CreateTopicsResponse"]
    message = "names " + "é" * MOST_TEXT_BYTES
    frame = b"".join(encoded(definition, version, {"topics": [{"name": "t", "error_message": message}]}))
    (topic,) = decode_message(definition, version, frame)["topics"]
    assert topic["error_message"] == "names " + "é" * ((MOST_TEXT_BYTES - 6) // 2)


PARTITIONS = b"\x02\x02t\0" + bytes(4)  # of DescribeTopicPartitions: one topic, and a limit
CURSOR = {"topic_name": "t", "partition_index": 7}


@pytest.mark.parametrize(
    ("name", "version", "content", "expected"),
    [
        ("DescribeTopicPartitionsRequest", 0, PARTITIONS + b"\xff\0", {"cursor": None}),
        ("DescribeTopicPartitionsRequest", 0, PARTITIONS + b"\x80\0", {"cursor": None}),
        ("DescribeTopicPartitionsRequest", 0, PARTITIONS + b"\0\x02t\0\0\0\x07\0\0", {"cursor": CURSOR}),
        ("DescribeTopicPartitionsRequest", 0, PARTITIONS + b"\x7f\x02t\0\0\0\x07\0\0", {"cursor": CURSOR}),
        ("MetadataRequest", 9, b"\xff\xff\xff\xff\x0f\0\0\0\0", {"topics": None}),
        ("MetadataRequest", 9, b"\x80\x80\x80\x80\x08\0\0\0\xff\xff\xff\xff\x0f", {"topics": None}),
    ],
    ids=["null", "another null", "zero is not null", "any other mark", "negative length", "negative count of tags"],
)
def test_nulls_as_kafka_reads_them(name: str, version: int, content: bytes, expected: dict[str, Any]):
    """Marks and lengths are numbers with a sign, and all negative ones are null."""
    decoded = plain(decode_message(DEFINED[name], version, content))
    assert {field: decoded[field] for field in expected} == expected
    assert without_unknown(twin.decode(DEFINED[name], version, content)) == decoded


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08"])
def test_a_tagged_field_of_a_negative_size_is_refused(size: bytes):
    with pytest.raises(InvalidRecordError, match=r"-\d+ bytes at byte 11"):
        decode_message(DEFINED["MetadataRequest"], 9, b"\x01\0\0\0\x01\x07" + size)


@pytest.mark.parametrize(
    ("mark", "is_null"), [(b"\0", True), (b"\xff\xff\xff\xff\x0f", True), (b"\x01", False), (b"\x02", False)]
)
def test_a_tagged_struct_may_be_null(mark: bytes, is_null: bool):
    """Its mark is a varint, in which zero is null as well."""
    definition = EVERY["ConsumerGroupMemberMetadataValue"]
    fields = {"session_timeout_ms": 7, "supported_protocols": []}
    content = mark + (b"" if is_null else b"\0\0\0\x07\x01\0")
    frame = b"".join(encoded(definition, 0, {}))[:-1] + b"\x01\0" + uvarint(len(content)) + content
    decoded = decode_message(definition, 0, frame)
    assert decoded["classic_member_metadata"] == (None if is_null else fields)
    assert without_unknown(twin.decode(definition, 0, frame)) == decoded
