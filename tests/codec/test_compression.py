"""Compressed batches: framings that occur, bombs, and damage."""

from __future__ import annotations

import gzip
import struct

import cramjam
import lz4.frame
import pytest
from reference import Record, encode_batch, encode_message

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.compression import COMPRESSION_TYPES, XERIAL_HEADER
from kraftlog.codec.lz4_header import mend_lz4_header, xxhash32_short

RECORDS = [Record(i, 1000, b"key", b"value %d" % i * 20) for i in range(50)]
VALUES = [record.value for record in RECORDS]


def batch(codec: str, compress: object) -> bytes:
    return encode_batch(RECORDS, attributes=COMPRESSION_TYPES.index(codec), compress=compress)


def values(data: bytes) -> list[bytes]:
    return kraftlog.decode(data, columns=["value"], strict=True).to_table()["value"].to_pylist()


def faults(data: bytes, **options: int) -> list[tuple[str, str]]:
    stream = kraftlog.decode(data, **options)
    stream.to_table()
    return [(fault.error, fault.message) for fault in stream.faults]


def test_gzip_of_several_members():
    assert values(batch("gzip", lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]))) == VALUES


def test_raw_snappy():
    assert values(batch("snappy", lambda data: bytes(cramjam.snappy.compress_raw(data)))) == VALUES


def test_xerial_snappy_in_small_blocks():
    def compress(data: bytes) -> bytes:
        blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + 64])) for at in range(0, len(data), 64)]
        return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)

    assert values(batch("snappy", compress)) == VALUES


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("sized", [True, False])
def test_lz4_frames(linked: bool, sized: bool):
    options = {"block_linked": linked, "store_size": sized, "content_checksum": True, "block_checksum": True}
    assert values(batch("lz4", lambda data: lz4.frame.compress(data, **options))) == VALUES


def test_lz4_is_written_in_independent_blocks():
    """Kafka's reader refuses others."""
    frame = kraftlog.encode(kraftlog.decode(encode_batch(RECORDS)).to_table(), compression="lz4").to_pybytes()[61:]
    assert lz4.frame.get_frame_info(frame)["block_linked"] is False


def test_header_fault_of_the_first_lz4_frames():
    message = encode_message(Record(0, -1, None, b"v" * 99), 0)
    right = lz4.frame.compress(message, store_size=False)
    assert right[6] == xxhash32_short(right[4:6]) >> 8 & 0xFF
    sized = lz4.frame.compress(message, store_size=True)
    assert sized[14] == xxhash32_short(sized[4:14]) >> 8 & 0xFF
    wrong = right[:6] + bytes([xxhash32_short(right[:6]) >> 8 & 0xFF]) + right[7:]
    assert wrong != right
    assert mend_lz4_header(memoryview(wrong)) == right
    assert values(encode_message(Record(0, -1, None, wrong), 0, attributes=3)) == [b"v" * 99]
    assert faults(encode_message(Record(0, 0, None, wrong), 1, attributes=3))[0][0] == "decompression_failed"


@pytest.mark.parametrize("codec", COMPRESSION_TYPES[1:])
def test_bombs_stop_at_the_limit(codec: str):
    data = kraftlog.encode(
        kraftlog.decode(encode_batch([Record(0, 0, None, bytes(3_000_000))])).to_table(),
        compression=codec,
        max_batch_bytes=4_000_000,
    ).to_pybytes()
    assert kraftlog.decode(data, columns=["value"]).to_table().num_rows == 1
    assert faults(data, max_decompressed_bytes=1_000_000) == [
        ("decompression_limit", "batch at byte 0: more than the allowed 1000000 bytes after decompression")
    ]


@pytest.mark.parametrize("codec", COMPRESSION_TYPES[1:])
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty"])
def test_damage(codec: str, damage: str):
    """A batch whose crc matches, but whose data does not decompress, is left out; the next one is read."""
    whole = kraftlog.encode(kraftlog.decode(encode_batch(RECORDS)).to_table(), compression=codec).to_pybytes()[61:]
    broken = {"cut": whole[: len(whole) // 2], "garbage": b"\x07" * 100, "empty": b""}[damage]
    data = batch(codec, lambda _: broken) + encode_batch([Record(50, 0, None, b"next")])
    stream = kraftlog.decode(data, columns=["offset"])
    offsets = stream.to_table()["offset"].to_pylist()
    assert offsets[-1] == 50
    assert [fault.position for fault in stream.faults] == [0]
    assert stream.faults[0].error in ("decompression_failed", "missing_records", "bad_record_length", "truncated_field")
    assert len(offsets) == 1 or damage == "cut"


def test_snappy_block_that_lies_about_its_size():
    lie = b"\xff\xff\xff\xff\x0f" + b"\x00a"
    assert faults(batch("snappy", lambda _: lie))[0][0] == "decompression_failed"


def test_broker_compressed_topic():
    log = kraftlog.open(GOLDEN / "codecs" / "log" / "codec-broker-zstd-0")
    assert set(log.batches(["compression"])["compression"].to_pylist()) == {"zstd"}


def test_gzip_of_very_many_members():
    many = gzip.compress(b"") * 5000
    assert faults(batch("gzip", lambda _: many)) == [
        ("decompression_failed", "batch at byte 0: gzip: more than 1024 members")
    ]
