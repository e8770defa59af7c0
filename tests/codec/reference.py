"""The record format in plain Python: slow, straightforward, and independent of the package's own code."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

Header = tuple[str, bytes | None]

XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


@dataclass
class Record:
    """One record; offset and timestamp are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header] = field(default_factory=list)


def _crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def crc32c(data: bytes) -> int:
    """Return the CRC32C, a byte at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    """Return a number as a zigzag varint."""
    number = value << 1 if value >= 0 else ((-value) << 1) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def int64(number: int) -> int:
    """Return a number as 64 bits hold it: Java's sums and differences wrap around."""
    return (number + 2**63) % 2**64 - 2**63


class Cursor:
    """Reads numbers off bytes; reading behind the end raises IndexError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise IndexError(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, layout: str) -> int:
        return struct.unpack(f">{layout}", self.take(struct.calcsize(f">{layout}")))[0]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return -((number + 1) >> 1) if number & 1 else number >> 1
            shift += 7

    def nullable(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.take(size)


def _field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def _encoded_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    body = b"\0" + varint(int64(record.timestamp - base_timestamp)) + varint(record.offset - base_offset)
    body += _field(record.key) + _field(record.value) + varint(len(record.headers))
    for key, value in record.headers:
        body += _field(key.encode()) + _field(value)
    return varint(len(body)) + body


def encode_batch(
    records: list[Record],
    *,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compress: object = None,
) -> bytes:
    """Return one record batch of magic 2."""
    first = records[0]
    plain = b"".join(_encoded_record(record, first.offset, first.timestamp) for record in records)
    body = compress(plain) if callable(compress) else plain
    checked = struct.pack(
        ">hiqqqhii",
        attributes,
        records[-1].offset - first.offset,
        first.timestamp,
        max(record.timestamp for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    checked += body
    header = struct.pack(">qiibI", first.offset, 9 + len(checked), leader_epoch, 2, crc32c(checked))
    return header + checked


def decode_batches(data: bytes, decompress: object = None) -> list[Record]:
    """Return the records of whole, sound batches of magic 2."""
    records = []
    cursor = Cursor(data)
    while cursor.at < len(data):
        base_offset, length = cursor.number("q"), cursor.number("i")
        batch = Cursor(cursor.take(length))
        batch.number("i")
        assert batch.number("b") == 2
        assert batch.number("I") == crc32c(batch.data[batch.at :])
        attributes, _, base, largest = (batch.number(layout) for layout in "hiqq")
        batch.take(14)
        count = batch.number("i")
        body = batch.take(len(batch.data) - batch.at)
        walk = Cursor(decompress(body) if callable(decompress) and attributes & 7 else body)
        for _ in range(count):
            record = Cursor(walk.take(walk.varint()))
            record.take(1)
            delta, offset = record.varint(), base_offset + record.varint()
            timestamp = largest if attributes & 8 else int64(base + delta)
            key, value = record.nullable(), record.nullable()
            pairs = [((record.nullable() or b"").decode(), record.nullable()) for _ in range(record.varint())]
            assert record.at == len(record.data)
            records.append(Record(offset, timestamp, key, value, pairs))
        assert walk.at == len(walk.data)
    return records


def encode_message(record: Record, magic: int, *, attributes: int = 0) -> bytes:
    """Return one message of magic 0 or 1."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", record.timestamp)
    for data in (record.key, record.value):
        body += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", record.offset, len(message)) + message
