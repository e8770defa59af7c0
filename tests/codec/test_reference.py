"""Native code against the plain-Python reference, both ways, with every compression."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Record, decode_batches, encode_batch, encode_message
from strategies import BASE_OFFSETS, COLUMNS, ROWS, decoded_records, records_of, table_of
from their_codecs import COMPRESS, DECOMPRESS

import kraftlog
from kraftlog.codec.compression import COMPRESSION_TYPES

PROFILE = settings(derandomize=True, max_examples=60, deadline=None)


@pytest.mark.parametrize("compression", COMPRESSION_TYPES)
@PROFILE
@given(rows=ROWS, base_offset=BASE_OFFSETS)
def test_encode(compression: str, rows: list[tuple], base_offset: int):
    data = kraftlog.encode(table_of(rows), compression=compression, base_offset=base_offset, max_batch_bytes=1500)
    assert decode_batches(data.to_pybytes(), DECOMPRESS[compression]) == records_of(rows, base_offset)


@pytest.mark.parametrize("compression", COMPRESSION_TYPES)
@PROFILE
@given(rows=ROWS, base_offset=BASE_OFFSETS, extra=st.integers(0, 3), chunk=st.sampled_from([1, 7, 1 << 16]))
def test_decode(compression: str, rows: list[tuple], base_offset: int, extra: int, chunk: int):
    """Any number of batches, small chunks as well as large ones."""
    data = b""
    expected = []
    for number in range(extra + 1):
        records = records_of(rows, base_offset + number * len(rows))
        attributes = COMPRESSION_TYPES.index(compression)
        data += encode_batch(records, attributes=attributes, compress=COMPRESS[compression])
        expected += records
    stream = kraftlog.decode(data, columns=COLUMNS, strict=True, batch_rows=chunk, batch_bytes=chunk * 64)
    assert decoded_records(stream.to_table().to_pylist()) == expected


@PROFILE
@given(rows=ROWS, base_offset=BASE_OFFSETS)
def test_bytes_are_those_of_the_reference(rows: list[tuple], base_offset: int):
    settings_ = {"producer_id": 77, "producer_epoch": 3, "base_sequence": 2**31 - 2}
    data = kraftlog.encode(
        table_of(rows), base_offset=base_offset, partition_leader_epoch=5, is_transactional=True, **settings_
    )
    expected = encode_batch(records_of(rows, base_offset), attributes=0x10, leader_epoch=5, **settings_)
    assert data.to_pybytes() == expected


@PROFILE
@given(rows=ROWS, cap=st.integers(800, 2500), most=st.integers(1, 9))
def test_packing_is_greedy(rows: list[tuple], cap: int, most: int):
    """No batch is over a cap, and no batch could have taken the first record of the next one."""
    data = kraftlog.encode(
        table_of(rows), max_batch_bytes=cap, max_batch_records=most, base_sequence=2**31 - 3
    ).to_pybytes()
    records = records_of(rows, 0)
    batches = kraftlog.decode(data, columns=["position", "base_offset", "sequence"]).to_table().to_pylist()
    starts = sorted({row["base_offset"] for row in batches})
    for first, following in zip(starts, [*starts[1:], len(rows)], strict=True):
        size = len(encode_batch(records[first:following]))
        assert size <= cap
        assert following - first <= most
        if following < len(rows):
            assert len(encode_batch(records[first : following + 1])) > cap or following - first == most
    assert [row["sequence"] for row in batches] == [(2**31 - 3 + i) % 2**31 for i in range(len(rows))]


@PROFILE
@given(rows=ROWS, magic=st.integers(0, 1), base_offset=st.integers(0, 1000))
def test_messages(rows: list[tuple], magic: int, base_offset: int):
    """Messages of magic 0 and 1, plain and in a gzip wrapper whose offset is that of its last message."""
    records = [
        Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in records_of(rows, base_offset + 1)
    ]
    plain = b"".join(encode_message(record, magic) for record in records)
    assert decoded_records(kraftlog.decode(plain, columns=COLUMNS, strict=True).to_table().to_pylist()) == records
    inner = [Record(i, r.timestamp, r.key, r.value) for i, r in enumerate(records)] if magic else records
    packed = gzip.compress(b"".join(encode_message(record, magic) for record in inner))
    wrapper = encode_message(Record(records[-1].offset, 0, None, packed), magic, attributes=1)
    assert decoded_records(kraftlog.decode(wrapper, columns=COLUMNS, strict=True).to_table().to_pylist()) == records


def test_log_append_time():
    records = [Record(i, 1000 + i, b"k", b"v") for i in range(3)]
    data = encode_batch(records, attributes=8)
    rows = kraftlog.decode(data, columns=["timestamp_ms", "timestamp_type"]).to_table().to_pylist()
    assert rows == [{"timestamp_ms": 1002, "timestamp_type": "LogAppendTime"}] * 3
    inner = b"".join(encode_message(Record(i, 5, None, b"v"), 1) for i in range(2))
    wrapper = encode_message(Record(9, 777, None, zlib.compress(inner, wbits=31)), 1, attributes=1 | 8)
    rows = kraftlog.decode(wrapper, columns=["offset", "timestamp_ms", "timestamp_type"]).to_table().to_pylist()
    assert [(row["offset"], row["timestamp_ms"]) for row in rows] == [(8, 777), (9, 777)]
    assert {row["timestamp_type"] for row in rows} == {"LogAppendTime"}


def test_timestamp_types():
    """They have Kafka's numbers; batches of one type, and of several."""
    batches = {
        ("CreateTime", 0): encode_batch([Record(0, 1000, b"k", b"v")]),
        ("LogAppendTime", 1): encode_batch([Record(1, 1000, b"k", b"v")], attributes=8),
        ("NoTimestampType", -1): encode_message(Record(2, -1, b"k", b"v"), 0),
    }
    for some in (list(batches), *([one] for one in batches)):
        data = b"".join(batches[one] for one in some)
        rows = kraftlog.decode(data, columns=["timestamp_type", "timestamp_type_id"]).to_table().to_pylist()
        assert [tuple(row.values()) for row in rows] == some


def test_max_timestamp():
    """It is the largest, not the last; Kafka finds records by time with it."""
    rows = [(b"k", b"v", stamp, []) for stamp in (5, 9, -1, 7)]
    data = kraftlog.encode(table_of(rows)).to_pybytes()
    assert data == encode_batch(records_of(rows, 0))
    assert int.from_bytes(data[35:43], "big") == 9
