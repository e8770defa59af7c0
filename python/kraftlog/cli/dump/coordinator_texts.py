"""Records of the coordinators' topics as kafka-dump-log prints them."""

from __future__ import annotations

import re

import pyarrow as pa

from kraftlog.cli.dump.kafka_messages import json_of_kafka, words_of_kafka
from kraftlog.cli.dump.texts import Parser, Texts
from kraftlog.coordinator.consumer_protocol import ASSIGNMENT, SUBSCRIPTION, blobs_as_json
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.reader import MessageReader, Messages
from kraftlog.messages.record_type import KEY, VALUE

LEGACY_OFFSET_COMMIT = 0  # a type of its own since 4.0, whose values have version 0
GROUP_METADATA = 2
DELETED = "<DELETE>"
_PREFIX_SIZE = 2
_OF_CONSUMERS = '"protocolType":"consumer"'
_BLOB = re.compile(r'"(subscription|assignment)":"([0-9A-Za-z+/=]*)"')  # quotes within a string have a backslash
_NAMES = {"subscription": SUBSCRIPTION, "assignment": ASSIGNMENT}


def coordinator_texts(format_name: str) -> Parser:
    """Return the parser of the records of a format, such as ``consumer_offsets``."""
    reader = MessageReader(BUILT_IN.formats[format_name])
    return lambda records: _texts(reader, records)


def _texts(reader: MessageReader, records: pa.RecordBatch) -> Texts:
    keys, values = records.column("key"), records.column("value")
    messages = reader.read(keys, values)
    sizes = [
        [-1 if size is None else size for size in pa.compute.binary_length(one).to_pylist()] for one in (keys, values)
    ]
    texts = Texts([], [])
    jsons = map(json_of_kafka, messages.json())
    for row, (offset, key, value) in enumerate(zip(records.column("offset").to_pylist(), *jsons, strict=True)):
        if sizes[0][row] < 0:
            texts.faults[row] = f"record at offset {offset}: the message has no key, which the decoder needs"
            shown: tuple[str | None, str | None] = None, None
        elif (why := _why_not(messages, row, key, value, sizes[0][row], sizes[1][row])) is not None:
            shown = why.replace("{offset}", str(offset)), None
        else:
            shown = _key(messages, row, key), _value(messages, row, value)
        texts.keys.append(shown[0])
        texts.payloads.append(shown[1])
    return texts


def _why_not(
    messages: Messages, row: int, key: str | None, value: str | None, key_size: int, value_size: int
) -> str | None:
    """Return what is printed of a record that Kafka's serde refuses; None when it takes it."""
    number, version = int(messages.types[row]), int(messages.value_versions[row])
    refused = "Error at offset {offset}, skipping. "
    if key_size < _PREFIX_SIZE:
        return f"{refused}Could not read version from key's buffer."
    record_type = messages.format.types.get(number)
    if record_type is None or record_type.value is None:
        return f"Unknown record type {number} at offset {{offset}}, skipping."
    if key is None:
        why = words_of_kafka(messages.found.get((row, KEY)), KEY)
        return f"{refused}Could not read record with version {number} from key's buffer due to: {why}."
    if value_size < 0:
        return None
    if value_size < _PREFIX_SIZE:
        return f"{refused}Could not read version from value's buffer."
    is_legacy = messages.format.name == "consumer_offsets" and number == LEGACY_OFFSET_COMMIT
    if version not in record_type.value.versions or (is_legacy and version != 0):
        return f"{refused}Found an unknown record version {version} for {number} type"
    if value is None:
        why = words_of_kafka(messages.found.get((row, VALUE)), VALUE)
        return f"{refused}Could not read record with version {version} from value's buffer due to: {why}."
    return None


def _key(messages: Messages, row: int, key: str | None) -> str:
    return f'{{"type":"{messages.types[row]}","data":{key}}}'


def _value(messages: Messages, row: int, value: str | None) -> str:
    if value is None:
        return DELETED
    if messages.types[row] == GROUP_METADATA and messages.format.name == "consumer_offsets":
        value = _with_members(value)
    return f'{{"version":"{messages.value_versions[row]}","data":{value}}}'


def _with_members(value: str) -> str:
    """Replace the subscriptions and assignments of consumers by what they say, where they can be read."""
    if not value.startswith("{" + _OF_CONSUMERS):
        return value
    return _BLOB.sub(lambda blob: f'"{blob[1]}":{blobs_as_json(_NAMES[blob[1]], [blob[2]])[0]}', value)
