"""Batches with other keys, values and headers, as plain Python rewrites them; damaged records are refused."""

from __future__ import annotations

import random
import struct

import pytest
from reference import Cursor, Record, encode_batch, int64, varint

import kraftlog
from kraftlog._native.cleaning import rewritten_records
from kraftlog.codec.compression import decompressor
from kraftlog.codec.filtered_batch import Fields, recompressed_batch, rewritten_batch
from kraftlog.codec.header_scan import HeaderScan

HEADER_BYTES = 61


def field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(attributes: int, delta: bytes, offset_delta: bytes, fields: Fields) -> bytes:
    key, value, headers = fields
    body = bytes([attributes]) + delta + offset_delta + field(key) + field(value) + varint(len(headers))
    body += b"".join(field(name) + field(content) for name, content in headers)
    return varint(len(body)) + body


def fields_of(cursor: Cursor) -> Fields:
    key, value = cursor.nullable(), cursor.nullable()
    return key, value, [(cursor.nullable() or b"", cursor.nullable()) for _ in range(cursor.varint())]


def rewritten(plain: bytes, change) -> bytes:
    cursor, fronts, fields = Cursor(plain), [], []
    while cursor.at < len(plain):
        cursor.varint()
        fronts.append((cursor.number("B"), varint(int64(cursor.varint())), varint(cursor.varint())))
        fields.append(fields_of(cursor))
    return b"".join(record(*front, one) for front, one in zip(fronts, change(fields), strict=True))


def random_bytes(source: random.Random) -> bytes | None:
    return source.choice([None, b"", b"\xff\xfe", source.randbytes(source.choice([1, 63, 64, 200, 9000]))])


def random_fields(source: random.Random) -> Fields:
    headers = [(random_bytes(source) or b"", random_bytes(source)) for _ in range(source.choice([0, 0, 1, 3]))]
    return random_bytes(source), random_bytes(source), headers


def random_record(source: random.Random) -> bytes:
    """Return a record with attributes and deltas of any size, in varints that may be longer than they need to be."""
    delta = varint(source.choice([0, -1, 1, 2**40, -(2**63), 2**63 - 1]))
    if len(delta) < 10 and source.random() < 0.2:
        delta = delta[:-1] + bytes([delta[-1] | 0x80, 0])
    return record(source.choice([0, 1, 255]), delta, varint(source.choice([0, 7, 2**31 - 1])), random_fields(source))


def test_all_but_key_value_and_headers_stays():
    source = random.Random(5)
    for _ in range(60):
        plain = b"".join(random_record(source) for _ in range(source.choice([0, 1, 1, 5])))
        seen: list[list[Fields]] = []

        def change(fields, seen=seen):
            seen.append(fields)
            return [random_fields(random.Random(len(fields) + at)) for at in range(len(fields))]

        room = source.choice([0, HEADER_BYTES])
        assert bytes(rewritten_records(plain, change, room)) == bytes(room) + rewritten(plain, change)
        assert seen[0] == seen[1]  # what C has found is what plain Python finds


def test_a_batch_keeps_its_header_and_its_compression():
    records = [Record(5, 10, b"k", b"v", [("h", b"x"), ("i", None)]), Record(9, 7, None, b"w" * 300, [])]
    plain = encode_batch(records, producer_id=7, producer_epoch=2, base_sequence=3)
    (header,) = next(HeaderScan(plain).headers())
    for compression in range(5):
        batch = recompressed_batch(plain, compression, decompressor())
        made = rewritten_batch(
            batch, lambda fields: [(b"K", None, headers) for _, _, headers in fields], decompressor()
        )
        (found,) = next(HeaderScan(made, check_crc=True).headers())
        assert found["crc_ok"]
        assert found["attributes"] == compression
        for name in ("base_offset", "base_timestamp", "max_timestamp", "producer_id", "base_sequence", "records_count"):
            assert found[name] == header[name], name
        rows = kraftlog.decode(
            made, columns=["offset", "timestamp_ms", "key", "value", "headers"], strict=True
        ).to_table()
        assert rows["key"].to_pylist() == [b"K", b"K"]
        assert rows["value"].to_pylist() == [None, None]
        assert rows["offset"].to_pylist() == [5, 9]
        assert rows["timestamp_ms"].to_pylist() == [10, 7]
        assert rows["headers"].to_pylist() == [[{"key": "h", "value": b"x"}, {"key": "i", "value": None}], []]


def test_a_record_that_is_cut_or_damaged_is_refused():
    whole = record(0, varint(3), varint(0), (b"key", b"value", [(b"h", b"x")]))
    for size in range(1, len(whole)):
        with pytest.raises(ValueError, match=f"no sound record at byte {len(whole)} of {len(whole) + size}"):
            rewritten_records(whole + whole[:size], list, 0)
    source, refused = random.Random(3), 0
    for _ in range(400):
        damaged = bytearray(whole + whole)
        damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
        try:
            made = rewritten_records(bytes(damaged), list, 0)
        except ValueError:
            refused += 1
        else:
            assert bytes(made) == rewritten(bytes(damaged), list)
    assert 100 < refused < 400


def test_each_record_gets_its_fields():
    plain = record(0, varint(0), varint(0), (b"k", b"v", [])) * 2
    for count in (1, 3):
        with pytest.raises(ValueError, match=f"2 records became {count}"):
            rewritten_records(plain, lambda fields, count=count: [fields[0]] * count, 0)
    with pytest.raises(ValueError, match="room of -1 bytes"):
        rewritten_records(plain, list, -1)
    with pytest.raises(TypeError):
        rewritten_records(plain, lambda fields: [("k", None, [])] * 2, 0)
    assert struct.unpack_from(">q", rewritten_records(plain, list, 8)) == (0,)
