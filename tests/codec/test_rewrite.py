"""Batches changed in place are those that would have been encoded so, and nothing is changed by halves."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Record, crc32c, decode_batches, encode_batch, encode_message
from strategies import ROWS, records_of

import kraftlog
from kraftlog.codec.compression import COMPRESSION_TYPES

PROFILE = settings(derandomize=True, max_examples=60, deadline=None)
LOG_APPEND_TIME_BIT = 8
TWO = pa.table({"value": [b"a", b"b", b"c"], "timestamp_ms": [5, 9, 7]})


def batches(**options: Any) -> bytearray:
    """Return a batch of two records and one of one."""
    return bytearray(kraftlog.encode(TWO, max_batch_records=2, **options))


@PROFILE
@given(pieces=st.lists(ROWS, max_size=4), base_offset=st.integers(0, 2**62), epoch=st.integers(-1, 2**31 - 1), old=ROWS)
def test_offsets_and_epochs(pieces: list[list[tuple]], base_offset: int, epoch: int, old: list[tuple]):
    """What the reference encodes at other offsets becomes what it encodes at these, to the byte."""
    data, expected, offset = b"", b"", base_offset
    for number, rows in enumerate(pieces):
        data += encode_batch(records_of(rows, 1000 * number), leader_epoch=number)
        expected += encode_batch(records_of(rows, offset), leader_epoch=epoch)
        offset += len(rows)
    buffer = bytearray(data)
    assert kraftlog.rewrite_batches(buffer, base_offset=base_offset, partition_leader_epoch=epoch) == offset
    assert bytes(buffer) == expected


@pytest.mark.parametrize("compression", COMPRESSION_TYPES)
def test_log_append_time_and_back(compression: str):
    data = batches(compression=compression, is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    before = bytes(data)
    assert kraftlog.rewrite_batches(data, timestamp_type="LogAppendTime", max_timestamp_ms=77) == 3
    rows = kraftlog.decode(data, columns=["timestamp_ms", "timestamp_type", "value"], strict=True).to_table()
    assert rows["timestamp_ms"].to_pylist() == [77] * 3
    assert set(rows["timestamp_type"].to_pylist()) == {"LogAppendTime"}
    headers = kraftlog.batches(bytes(data), check_crc=True).to_table().to_pylist()
    assert [(h["crc_ok"], h["is_transactional"], h["compression"]) for h in headers] == [(True, True, compression)] * 2
    assert kraftlog.rewrite_batches(data, timestamp_type="CreateTime") == 3
    assert kraftlog.decode(data, columns=["timestamp_ms"], strict=True).to_table()["timestamp_ms"].to_pylist() == [
        5,
        9,
        7,
    ]
    size = len(kraftlog.encode(TWO.slice(0, 2), compression=compression))
    first, second = memoryview(data)[:size], memoryview(data)[size:]
    kraftlog.rewrite_batches(first, max_timestamp_ms=9)
    kraftlog.rewrite_batches(second, max_timestamp_ms=7)
    assert bytes(data) == before


def test_the_bytes_of_log_append_time():
    """By the reference, whose batch differs in the attributes and the largest timestamp alone."""
    records = [Record(4, 5, b"k", b"v"), Record(5, 9, None, b"w", [("h", None)])]
    data = bytearray(encode_batch(records))
    kraftlog.rewrite_batches(data, timestamp_type="LogAppendTime", max_timestamp_ms=2**63 - 1)
    expected = bytearray(encode_batch(records, attributes=LOG_APPEND_TIME_BIT))
    expected[35:43] = struct.pack(">q", 2**63 - 1)
    expected[17:21] = struct.pack(">I", crc32c(bytes(expected[21:])))
    assert data == expected
    assert [record.timestamp for record in decode_batches(bytes(data))] == [2**63 - 1] * 2


def test_batches_with_gaps():
    """What compaction took out of a batch stays out: offsets go on behind its last_offset_delta."""
    records = [Record(0, 1, b"a", b""), Record(9, 1, b"b", b""), Record(20, 1, b"c", b"")]
    data = bytearray(encode_batch(records[:2]) + encode_batch(records[2:]))
    assert kraftlog.rewrite_batches(data, base_offset=100) == 111
    assert [record.offset for record in decode_batches(bytes(data))] == [100, 109, 110]


@pytest.mark.parametrize("make", [bytearray, lambda data: np.frombuffer(data, np.uint8).copy(), memoryview])
def test_writable_buffers(make: Any):
    buffer = make(batches())
    assert kraftlog.rewrite_batches(buffer, base_offset=7) == 10
    assert [record.offset for record in decode_batches(bytes(buffer))] == [7, 8, 9]


def test_buffers_of_arrow():
    data = kraftlog.encode(TWO)
    assert kraftlog.rewrite_batches(data, base_offset=7) == 10
    assert decode_batches(data.to_pybytes())[0].offset == 7


def test_no_batches():
    assert kraftlog.rewrite_batches(bytearray()) == -1
    assert kraftlog.rewrite_batches(bytearray(), base_offset=5) == 5


def test_nothing_to_change():
    data = batches()
    before = bytes(data)
    assert kraftlog.rewrite_batches(data) == 3
    assert data == before


CHANGES = {"base_offset": 3, "partition_leader_epoch": 2, "timestamp_type": "LogAppendTime", "max_timestamp_ms": 4}


def second_batch(**fields: tuple[int, str, int]) -> bytearray:
    """Return two batches, of which the second has other fields: where, how and what."""
    data = batches()
    start = len(data) - len(kraftlog.encode(TWO.slice(2)))
    for at, layout, number in fields.values():
        struct.pack_into(layout, data, start + at, number)
    return data


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (batches() + b"\0" * 9, kraftlog.CorruptRecordError, "9 bytes at the end hold no complete batch"),
        (batches()[:-1], kraftlog.CorruptRecordError, "bytes at the end hold no complete batch"),
        (
            second_batch(length=(8, ">i", 48)),
            kraftlog.CorruptRecordError,
            "batch_length 48 is not between 49 and the bytes",
        ),
        (second_batch(length=(8, ">i", 2**31 - 1)), kraftlog.CorruptRecordError, "hold no complete batch"),
        (second_batch(crc=(17, ">I", 1)), kraftlog.CorruptRecordError, "stored crc 1, computed crc "),
        (second_batch(delta=(23, ">i", -1)), kraftlog.CorruptRecordError, "last_offset_delta -1 leave no next offset"),
        (second_batch(magic=(16, ">b", 3)), ValueError, "magic 3; only magic 2 is changed in place"),
        (second_batch(magic=(16, ">b", -1)), ValueError, "magic -1; only magic 2 is changed in place"),
        (
            batches() + encode_message(Record(0, 5, b"k", b"v"), 1),
            ValueError,
            "magic 1; only magic 2 is changed in place",
        ),
        (
            batches() + encode_message(Record(0, -1, b"k", b"v"), 0),
            ValueError,
            "magic 0; only magic 2 is changed in place",
        ),
    ],
)
def test_what_is_refused_is_not_changed(data: bytearray, error: type[Exception], text: str):
    before = bytes(data)
    with pytest.raises(error, match=text) as raised:
        kraftlog.rewrite_batches(data, **CHANGES)
    assert data == before
    assert str(raised.value).startswith("batch at byte ")


def test_a_bad_checksum_is_kept():
    """Offsets and epochs are not part of it, so they can be set; the damage is still seen afterwards."""
    data = second_batch(crc=(17, ">I", 1))
    assert kraftlog.rewrite_batches(data, base_offset=8, partition_leader_epoch=1) == 11
    assert [h["crc_ok"] for h in kraftlog.batches(bytes(data), check_crc=True).to_table().to_pylist()] == [True, False]


def test_offsets_end_before_the_largest_number():
    data = batches()
    before = bytes(data)
    with pytest.raises(ValueError, match=f"base_offset {2**63 - 3} leaves no offsets for the batch at byte") as raised:
        kraftlog.rewrite_batches(data, base_offset=2**63 - 3)
    assert not isinstance(raised.value, kraftlog.RecordError)  # the option is wrong, not the data
    assert data == before
    assert kraftlog.rewrite_batches(data, base_offset=2**63 - 4) == 2**63 - 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"base_offset": -1}, "^base_offset -1 is not between 0 and"),
        ({"partition_leader_epoch": 2**31}, "^partition_leader_epoch 2147483648 is not between -1 and"),
        (
            {"timestamp_type": "NoTimestampType"},
            "^timestamp_type 'NoTimestampType' is not one of CreateTime, LogAppendTime",
        ),
        (
            {"timestamp_type": "LogAppendTime"},
            "^timestamp_type LogAppendTime needs max_timestamp_ms, the time of the append",
        ),
        ({"max_timestamp_ms": 2**63}, "^max_timestamp_ms 9223372036854775808 does not fit 64 bits"),
    ],
)
def test_bad_options(changes: dict[str, Any], text: str):
    with pytest.raises(ValueError, match=text):
        kraftlog.rewrite_batches(batches(), **changes)


def test_a_buffer_that_cannot_be_written_to():
    with pytest.raises(BufferError):
        kraftlog.rewrite_batches(bytes(batches()), base_offset=1)
