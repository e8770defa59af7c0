"""Records of internal topics in plain Python: what stands before the messages in keys and values."""

from __future__ import annotations

from dataclasses import dataclass

from twin import MalformedError, Message, Reader, decode, decode_first, encode, unsigned_varint

from kraftlog.messages.catalog import RecordFormat, RecordType

FRAME_VERSION = 1
OF_MIRROR_MAKER = ("offset_syncs", "checkpoints", "heartbeats")  # keys have no type, as a topic has only one
WITHOUT_VERSION = "offset_syncs"


@dataclass
class Record:
    """A record; a tombstone has no value."""

    record_type: RecordType
    version: int
    key: Message | None
    value: Message | None
    left_over: bytes = b""


def _type(record_format: RecordFormat, api_key: int) -> RecordType:
    if api_key not in record_format.types:
        raise MalformedError(f"{record_format.name} has no records of type {api_key}")
    return record_format.types[api_key]


def decode_framed(record_format: RecordFormat, value: bytes) -> Record:
    """Return a record of the metadata log, or of remote log metadata; its key is null."""
    reader = Reader(value)
    if (frame_version := reader.unsigned_varint()) != FRAME_VERSION:
        raise MalformedError(f"frame version {frame_version}")
    record_type = _type(record_format, reader.unsigned_varint())
    version = reader.unsigned_varint()
    assert record_type.value is not None
    return Record(record_type, version, None, decode(record_type.value, version, reader.take(reader.left())))


def encode_framed(record: Record) -> bytes:
    """Return the value of such a record."""
    assert record.record_type.value is not None
    assert record.value is not None
    frame = (FRAME_VERSION, record.record_type.api_key, record.version)
    message = encode(record.record_type.value, record.version, record.value)
    return b"".join(unsigned_varint(number) for number in frame) + message


def decode_keyed(record_format: RecordFormat, key: bytes | None, value: bytes | None) -> Record:
    """Return a record of a coordinator; bytes behind the value's message are left over, as Kafka leaves them."""
    if key is None:
        raise MalformedError("a null key")
    reader = Reader(key)
    record_type = _type(record_format, 0 if record_format.name in OF_MIRROR_MAKER else reader.number("int16"))
    assert record_type.key is not None
    message, _ = decode_first(record_type.key, record_type.key_version, reader.take(reader.left()))
    if value is None:
        return Record(record_type, -1, message, None)
    reader = Reader(value)
    version = 0 if record_format.name == WITHOUT_VERSION else reader.number("int16")
    if record_type.value is None:
        raise MalformedError(f"{record_type.name} has no value")
    return Record(record_type, version, message, *decode_first(record_type.value, version, reader.take(reader.left())))


def encode_keyed(record: Record) -> tuple[bytes, bytes | None]:
    """Return the key and the value of such a record."""
    record_type = record.record_type
    assert record_type.key is not None
    assert record.key is not None
    format_name = record_type.key.format
    named = b"" if format_name in OF_MIRROR_MAKER else record_type.api_key.to_bytes(2, "big")
    key = named + encode(record_type.key, record_type.key_version, record.key)
    if record.value is None:
        return key, None
    assert record_type.value is not None
    message = encode(record_type.value, record.version, record.value)
    versioned = b"" if format_name == WITHOUT_VERSION else record.version.to_bytes(2, "big")
    return key, versioned + message + record.left_over
