"""A partition of a coordinator's topic, made by kraftlog: typed records, transactions around them, unknown records."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from jvm import Line

import kraftlog
from kraftlog.messages.arrow_types import message_schema
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Definition
from kraftlog.messages.frames import int16_prefix
from kraftlog.messages.writer import encode_messages

# Not so old that a coordinator forgets what it reads.
NOW = time.time_ns() // 1_000_000
START = NOW - 3_600_000

_RECORDS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp_ms", pa.int64())])


@dataclass(frozen=True)
class Row:
    """A record of a known type: the fields of its key and of its value, by column; without a value a tombstone."""

    api_key: int
    key: Line
    value_version: int = 0
    value: Line | None = None


@dataclass(frozen=True)
class Unknown:
    """A record of a type that no release knows."""

    api_key: int
    key: bytes = b"?"
    value: bytes | None = b"\x00\x00?"


class CoordinatorLog:
    """A partition that grows by a batch or a marker at a time."""

    def __init__(self, topic_format: str) -> None:
        self.data = b""
        self.next_offset = 0
        self._types = BUILT_IN.formats[topic_format].types
        self._sequences: dict[int, int] = {}

    def append(self, rows: Iterable[Row | Unknown], producer_id: int | None = None) -> None:
        """Append records as one batch: of a transaction of a producer, if there is one."""
        encoded = [self._encoded(row) for row in rows]
        lines = [{"key": key, "value": value, "timestamp_ms": START + self.next_offset} for key, value in encoded]
        producer: Line = {}
        if producer_id is not None:
            sequence = self._sequences.get(producer_id, 0)
            self._sequences[producer_id] = sequence + len(lines)
            producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        self._extend(
            kraftlog.encode(
                pa.Table.from_pylist(lines, _RECORDS),
                base_offset=self.next_offset,
                partition_leader_epoch=0,
                is_transactional=producer_id is not None,
                **producer,
            ),
            len(lines),
        )

    def end(self, control_type: str, producer_id: int) -> None:
        """Append the marker that ends a producer's transaction."""
        marker = kraftlog.encode_marker(
            control_type,
            producer_id=producer_id,
            producer_epoch=0,
            base_offset=self.next_offset,
            partition_leader_epoch=0,
            timestamp_ms=START + self.next_offset,
        )
        self._extend(marker, 1)

    def _extend(self, batch: pa.Buffer, count: int) -> None:
        self.data += batch.to_pybytes()
        self.next_offset += count

    def _encoded(self, row: Row | Unknown) -> tuple[bytes, bytes | None]:
        if isinstance(row, Unknown):
            return int16_prefix(row.api_key) + row.key, row.value
        record_type = self._types[row.api_key]
        assert record_type.key is not None
        assert record_type.value is not None
        key = _message(record_type.key, 0, row.key, row.api_key)
        value = None if row.value is None else _message(record_type.value, row.value_version, row.value)
        return key, value


def _message(definition: Definition, version: int, fields: Line, prefix: int | None = None) -> bytes:
    schema = message_schema(definition)
    assert fields.keys() <= set(schema.names), fields
    given = pa.schema([field for field in schema if field.name in fields])
    columns = pa.Table.from_pylist([fields], given)
    start = int16_prefix(version if prefix is None else prefix)
    (message,) = encode_messages(definition, version, columns, prefix=start).to_pylist()
    return bytes(message)
