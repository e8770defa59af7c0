"""Records of the metadata log and of ``__remote_log_metadata`` as kafka-dump-log prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pyarrow as pa

from kraftlog.cli.dump.java_text import double
from kraftlog.cli.dump.kafka_messages import json_of_kafka
from kraftlog.cli.dump.remote_log_texts import text_of_remote
from kraftlog.cli.dump.texts import Texts
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import snake_case
from kraftlog.messages.format_of import METADATA, REMOTE_LOG_METADATA
from kraftlog.messages.frames import FRAME_VERSION
from kraftlog.messages.reader import MessageReader, Messages
from kraftlog.messages.record_type import VALUE
from kraftlog.metadata.secrets import TYPES_WITH_SECRETS, has_secrets, json_without_secrets

LARGEST_NUMBER = 2**15 - 1
_WITH_DOUBLE = "CLIENT_QUOTA_RECORD"
_DOUBLE = re.compile(r'"value":(-?[0-9][0-9.eE+-]*),')
_PREVIEW = (
    "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of KRaft "
    "in 2.8 to newer versions are not supported."
)
_NULL_VALUE = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
    '"org.apache.kafka.common.record.internal.Record.value()" is null'
)


def metadata_texts(records: pa.RecordBatch, *, show_secrets: bool = False) -> Texts:
    """Return the payloads of records of the metadata log; Kafka's tool shows secrets, this one where it is asked to."""

    def shown(messages: Messages, row: int, data: str) -> str:
        type_name = messages.format.types[int(messages.types[row])].name
        if not show_secrets and type_name in TYPES_WITH_SECRETS and has_secrets(type_name, data):
            data = json_without_secrets(type_name, data)
        name = snake_case(type_name).upper()
        if name == _WITH_DOUBLE:
            data = _DOUBLE.sub(lambda value: f'"value":{double(float(value[1]))},', data)
        return f'{{"type":"{name}","version":{messages.value_versions[row]},"data":{data}}}'

    return _texts(records, METADATA, "Error at ", shown)


def remote_log_texts(records: pa.RecordBatch) -> Texts:
    """Return the payloads of records of ``__remote_log_metadata``."""

    def shown(messages: Messages, row: int, data: str) -> str:
        return text_of_remote(int(messages.types[row]), json.loads(data))

    return _texts(records, REMOTE_LOG_METADATA, "Error at offset ", shown)


def _texts(records: pa.RecordBatch, format_name: str, before: str, shown: Callable[[Messages, int, str], str]) -> Texts:
    messages = MessageReader(BUILT_IN.formats[format_name]).read(None, records.column("value"))
    jsons = json_of_kafka(messages.json()[1])
    texts = Texts([None] * len(jsons), [])
    for row, (offset, data) in enumerate(zip(records.column("offset").to_pylist(), jsons, strict=True)):
        try:
            if data is None or row in messages.faults:
                value = records.column("value")[row].as_py()
                raise ValueError(_why_not(messages, row, value, is_remote=format_name == REMOTE_LOG_METADATA))
            texts.payloads.append(shown(messages, row, data))
        except ValueError as error:
            texts.payloads.append(f"{before}{offset}, skipping. {error}")
    return texts


def _why_not(messages: Messages, row: int, value: bytes | None, *, is_remote: bool) -> str:
    """Return the message of the exception that Kafka's serde throws."""
    if value is None and is_remote:
        return _NULL_VALUE
    numbers, rest = [], value or b""
    for entity in ("frame version", "type", "version"):
        number, size = _varint(rest)
        if size == 0:
            return f"Error while reading {entity}"
        if number > LARGEST_NUMBER:
            return f"Value for {entity} was too large."
        if entity == "frame version" and number == 0:
            return _PREVIEW
        if entity == "frame version" and number != FRAME_VERSION:
            known = f"only frame version {FRAME_VERSION} is supported"
            return f"Could not deserialize metadata record due to unknown frame version {number}({known})"
        numbers.append(number)
        rest = rest[size:]
    if numbers[1] not in messages.format.types:
        return f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {numbers[1]}"
    found = messages.found.get((row, VALUE))
    if found is not None and found.is_trailing:
        return f"Found {found.native[5]} byte(s) of garbage after {numbers[1]}"
    return f"Failed to deserialize record with type {numbers[1]}"


def _as_short(value: int) -> int:
    """Return what Java makes of a negative int that is cast to a short."""
    return (value & 0xFFFF ^ 0x8000) - 0x8000


def _varint(data: bytes) -> tuple[int, int]:
    """Return an unsigned varint of up to five bytes, and its size, which is 0 when there is none.

    Kafka takes it for an int, refuses one above 32,767, and casts the others to a short.
    """
    value = 0
    for size, byte in enumerate(data[:5], 1):
        value |= (byte & 0x7F) << 7 * (size - 1)
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value if value >> 31 == 0 else _as_short(value)), size
    return 0, 0
