"""The reader and the writer against Kafka's own answers: JSON, columns, and the same bytes back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import twin
from message_answers import (
    FORMAT_OF_ANSWERS,
    Golden,
    answered,
    decode_record,
    expected_json,
    golden,
    golden_names,
    in_order,
    side_columns,
    typed_row,
    without_unknown,
)
from twin_records import Record

from kraftlog.messages.frames import NO_VERSION, frame, int16_prefix
from kraftlog.messages.reader import FRAMED, MessageReader, Messages
from kraftlog.messages.record_type import KEY, VALUE, RecordType
from kraftlog.messages.typed_pass import Typed
from kraftlog.messages.writer import encode_messages

NAMES = golden_names()


def is_more_lenient(found: Golden, answer: dict[str, Any]) -> bool:
    """Return whether Kafka 4 refuses what earlier releases wrote: commits of type 0 with values of any version."""
    message = answer.get("error_message") or ""
    return found.record_format.name == "consumer_offsets" and message in [
        f"Found an unknown record version {version} for 0 type" for version in (1, 2, 3, 4)
    ]


def twin_records(found: Golden) -> dict[int, Record]:
    """Return the records that can be decoded, by row."""
    records = {}
    for row, (key, value) in enumerate(zip(found.keys, found.values, strict=True)):
        try:
            records[row] = decode_record(found.record_format, key, value)
        except twin.MalformedError:
            continue
    return records


def read(found: Golden, uuid: str = "text") -> Messages:
    return MessageReader(found.record_format, uuid).read(found.keys_array(), found.values_array())


def test_every_list_of_answers_is_found() -> None:
    scenarios = {name.split(":")[0].split("/")[0] for name in NAMES}
    assert scenarios == {
        "coordinator_future",
        "groups",
        "metadata",
        "metadata_dynamic",
        "metadata_txn",
        "remote_log_metadata",
        "schema_all",
        "share_state",
        "transactions",
        "transactions_hanging",
        "transactions_tv0",
    }
    assert {name.split(":")[1] for name in NAMES} == set(FORMAT_OF_ANSWERS)


@pytest.mark.parametrize("name", NAMES)
def test_json(name: str) -> None:
    for found in golden(name):
        messages = read(found)
        keys, values = (texts.to_pylist() for texts in messages.json())
        errors = messages.errors.to_pylist()
        records = twin_records(found)
        for row, answer in enumerate(found.answers):
            ours = [None if text is None else json.loads(text) for text in (keys[row], values[row])]
            if "error_class" in answer and not is_more_lenient(found, answer):
                assert errors[row] is not None
                assert row not in records
                continue
            record = records[row]
            if "error_class" not in answer:
                assert in_order(without_unknown(ours)) == in_order(list(answered(answer)))
            assert in_order(ours) == in_order(twin_json(record))
            assert errors[row] is None or "bytes left behind the message" in errors[row]
            assert (ours[1] or {}).get("unknownTaggedFields", []) == unknown(answer, record)


def twin_json(record: Record) -> list[Any]:
    record_type = record.record_type
    key = record.key and record_type.key and expected_json(record_type.key.fields, 0, record.key)
    assert record_type.value is not None
    return [
        key,
        None if record.value is None else expected_json(record_type.value.fields, record.version, record.value),
    ]


def unknown(answer: dict[str, Any], record: Record) -> list[dict[str, Any]]:
    """Return Kafka's list of unknown tagged fields; where it gave none, the twin's."""
    if record.value is None:
        return []
    side = answer.get("value", answer)
    listed = side.get("unknown_tagged_fields") if isinstance(side, dict) else None
    if listed is None:
        listed = [[tag, data.hex()] for tag, data in record.value[twin.UNKNOWN]]
    data = [(tag, bytes.fromhex(text)) for tag, text in listed]
    shown: list[dict[str, Any]] = expected_json((), 0, {twin.UNKNOWN: data}).get("unknownTaggedFields", [])
    return shown


@pytest.mark.parametrize("name", NAMES)
def test_types_and_versions(name: str) -> None:
    for found in golden(name):
        messages = read(found)
        names = messages.type_names.to_pylist()
        for row, answer in enumerate(found.answers):
            if "error_class" in answer:
                continue
            if "key" in answer:
                expected_name = answer["key"]["name"].removesuffix("Key").removeprefix("Legacy")
                number, version = answer["key"]["type"], answer["value"]["version"] if answer["value"] else NO_VERSION
                assert messages.key_versions[row] == number
                assert messages.is_tombstone[row] == (answer["value"] is None)
            else:
                expected_name, number, version = answer["type"], answer["type_id"], answer["version"]
                assert messages.key_versions[row] == NO_VERSION
                assert not messages.is_tombstone[row]
            assert names[row].upper() == expected_name.upper().replace("_", "")
            assert (messages.types[row], messages.value_versions[row]) == (number, version)


@pytest.mark.parametrize("uuid", ["text", "binary"])
@pytest.mark.parametrize("name", NAMES)
def test_columns_and_the_same_bytes_back(name: str, uuid: str) -> None:
    for found in golden(name):
        messages = read(found, uuid)
        records = twin_records(found)
        seen: set[int] = set()
        for type_name in messages.types_there:
            typed = messages.typed(type_name)
            rows = typed.rows.tolist()
            expected = [records[row] for row in rows]
            assert {record.record_type.name for record in expected} <= {type_name}
            assert typed.fields.to_pylist() == [typed_row(record, uuid) for record in expected]
            assert typed.is_tombstone.tolist() == [found.values[row] is None for row in rows]
            typed.fields.validate(full=True)
            check_bytes(found, typed, expected)
            seen.update(rows)
        assert seen == set(records)


def check_bytes(found: Golden, typed: Typed, records: list[Record]) -> None:
    """Encode what was decoded, a version and a type at a time."""
    for api_key, version in {(record.record_type.api_key, record.version) for record in records}:
        at = [
            place
            for place, record in enumerate(records)
            if (record.record_type.api_key, record.version) == (api_key, version)
        ]
        record_type = records[at[0]].record_type
        rows = [int(typed.rows[place]) for place in at]
        if found.record_format.name in FRAMED:
            assert encoded(record_type, VALUE, version, typed, at, frame(api_key, version)) == [
                found.values[row] for row in rows
            ]
            continue
        keys = encoded(record_type, KEY, 0, typed, at, int16_prefix(api_key))
        for row, ours in zip(rows, keys, strict=True):
            key = found.keys[row]
            assert key is not None
            assert key.startswith(ours)  # what is behind a key is nothing that a message has
        if version < 0:
            continue
        values = encoded(record_type, VALUE, version, typed, at, int16_prefix(version))
        for row, ours, place in zip(rows, values, at, strict=True):
            assert ours + records[place].left_over == found.values[row]


def encoded(
    record_type: RecordType, side: str, version: int, typed: Typed, at: list[int], prefix: bytes
) -> list[bytes]:
    definition = getattr(record_type, side)
    columns = side_columns(record_type, side, typed.fields)
    messages: list[bytes] = encode_messages(
        definition, version, columns, prefix=prefix, rows=np.array(at, np.int64)
    ).to_pylist()
    return messages
