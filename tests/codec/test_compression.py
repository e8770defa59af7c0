"""Compressed batches: framings that occur, bombs, and damage."""

from __future__ import annotations

import gzip
import struct

import cramjam
import lz4.frame
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import XERIAL_HEADER, Record, crc32c, decode_batches, encode_batch, encode_message
from their_codecs import COMPRESS, DECOMPRESS

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec import compression
from kraftlog.codec.compression import COMPRESSION_TYPES

PROFILE = settings(
    derandomize=True, max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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


@pytest.fixture(params=[True, False], ids=["libraries", "fallback"], autouse=True)
def by_libraries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Each test runs without the libraries as well, as where they cannot be found."""
    monkeypatch.setattr(compression, "BY_LIBRARIES", request.param)
    return bool(request.param)


def test_libraries_are_found():
    assert compression.LIBRARIES == {"gzip": True, "lz4": True, "zstd": True}


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


@pytest.mark.parametrize("sized", [True, False])
def test_header_fault_of_the_first_lz4_frames(sized: bool):
    """Kafka 0.8 and 0.9 wrote another checksum of the header; only frames of message format 0 may have it."""
    frame = bytearray(lz4.frame.compress(encode_message(Record(0, -1, None, b"v" * 99), 0), store_size=sized))
    frame[14 if sized else 6] ^= 0xFF
    assert values(encode_message(Record(0, -1, None, bytes(frame)), 0, attributes=3)) == [b"v" * 99]
    [(error, message)] = faults(encode_message(Record(0, 0, None, bytes(frame)), 1, attributes=3))
    assert error == "decompression_failed"
    assert message.startswith("batch at byte 0: lz4: ")


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


def test_gzip_of_very_many_members(by_libraries: bool):
    """As Java reads them; Python's zlib copies what is left for each one, so that these are limited."""
    data = batch("gzip", lambda data: gzip.compress(b"") * 5000 + gzip.compress(data))
    if by_libraries:
        assert values(data) == VALUES
    else:
        assert faults(data) == [("decompression_failed", "batch at byte 0: gzip: more than 1024 members")]


def test_gzip_that_says_less_than_it_holds():
    """The size at the end is that of the last member."""
    assert values(batch("gzip", lambda data: gzip.compress(data) + gzip.compress(b""))) == VALUES


def test_bytes_behind_a_gzip_stream():
    assert values(batch("gzip", lambda data: gzip.compress(data) + b"behind it")) == VALUES


@pytest.mark.parametrize("batch_bytes", [1000, 2500, 1 << 20])
def test_each_batch_is_decompressed_once(batch_bytes: int, monkeypatch: pytest.MonkeyPatch):
    """Plain bytes that do not fit a chunk are kept until the next one is there."""
    table = kraftlog.decode(encode_batch(RECORDS)).to_table()
    data = kraftlog.encode(table, compression="zstd", max_batch_bytes=2000)
    batches = kraftlog.encode(table, max_batch_bytes=2000).to_pybytes().count(b"\xff\xff\xff\xff\x02")  # epoch, magic
    calls = []
    monkeypatch.setattr(compression, "BY_LIBRARIES", False)
    decompress = compression._decompress
    monkeypatch.setattr(compression, "_decompress", lambda *args: calls.append(args) or decompress(*args))
    chunks = list(kraftlog.decode(data, columns=["value"], batch_bytes=batch_bytes).batches())
    assert [value for chunk in chunks for value in chunk["value"].to_pylist()] == VALUES
    assert len(chunks) == (1 if batch_bytes == 1 << 20 else len(calls))
    assert len(calls) == batches > 3


TEXT = b"".join(b'{"user":%d,"name":"%x"}' % (i * 7919 % 1000, i * i) for i in range(20_000))
PLAIN = {
    "empty": b"",
    "text": TEXT,
    "repeats": b"abcdefg" * 30_000,
    "zeros": bytes(200_000),
    "noise": b"".join(crc32c(TEXT[at : at + 9]).to_bytes(4, "big") for at in range(0, 90_000, 3)),
    "far": TEXT[:70_000] * 3,
}


@pytest.mark.parametrize("content", PLAIN)
@pytest.mark.parametrize("codec", COMPRESSION_TYPES[1:])
def test_large_values(codec: str, content: str):
    """More than a block of any format; packages that are not called here read what is written."""
    value = PLAIN[content]
    table = pa.table({"value": [value, b"next"]})
    data = kraftlog.encode(table, compression=codec, max_batch_bytes=1 << 20).to_pybytes()
    assert values(data) == [value, b"next"]
    assert decode_batches(data, DECOMPRESS[codec])[0].value == value
    theirs = encode_batch(
        [Record(0, 0, None, value)], attributes=COMPRESSION_TYPES.index(codec), compress=COMPRESS[codec]
    )
    assert values(theirs) == [value]


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_levels(codec: str):
    fast, small = (
        kraftlog.encode(pa.table({"value": [TEXT]}), compression=codec, compression_level=level) for level in (1, 9)
    )
    assert values(fast) == values(small) == [TEXT]
    assert small.size != fast.size  # which one is smaller depends on the data


@pytest.mark.parametrize(
    ("codec", "level", "expected"),
    [
        ("gzip", 0, "compression_level 0 of gzip is not between 1 and 9"),
        ("gzip", 10, "compression_level 10 of gzip is not between 1 and 9"),
        ("lz4", 0, "compression_level 0 of lz4 is not between 1 and 17"),
        ("lz4", 18, "compression_level 18 of lz4 is not between 1 and 17"),
        ("zstd", 23, "compression_level 23 of zstd is not between -131072 and 22"),
        ("zstd", -131073, "compression_level -131073 of zstd is not between -131072 and 22"),
        ("zstd", 10**12, "compression_level 1000000000000 of zstd is not between -131072 and 22"),
        ("none", 1, "compression_level is 1, but compression none has no levels"),
        ("snappy", 1, "compression_level is 1, but compression snappy has no levels"),
    ],
)
def test_levels_that_kafka_does_not_have(codec: str, level: int, expected: str):
    for made in (kraftlog.Encoder, kraftlog.RecordBatchBuilder):
        with pytest.raises(ValueError, match=f"^{expected}$"):
            made(compression=codec, compression_level=level)


def test_levels_are_integers():
    with pytest.raises(TypeError, match=r"compression_level 1\.5 is not an integer"):
        kraftlog.Encoder(compression="zstd", compression_level=1.5)  # type: ignore[arg-type]
    default, kafkas = (
        kraftlog.encode(pa.table({"value": [TEXT]}), compression="gzip", compression_level=level)
        for level in (None, -1)
    )
    assert default == kafkas


@pytest.mark.parametrize("codec", COMPRESSION_TYPES[1:])
@PROFILE
@given(data=st.data())
def test_damaged_frames(codec: str, data: st.DataObject, by_libraries: bool):
    """A frame with bytes changed is refused, or it makes what other packages make of it.

    Of lz4, the size of all and the checksum over all are not compared, as in Kafka.
    """
    frame = bytearray(COMPRESS[codec](PLAIN["text"][: data.draw(st.integers(0, 3000))]))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    del frame[data.draw(st.integers(0, len(frame))) if data.draw(st.booleans()) else len(frame) :]
    plain = compression.decompressor(1 << 20)
    try:
        size = plain.decompress(frame, COMPRESSION_TYPES.index(codec), 2)
    except compression.DecompressionError:
        return
    try:
        expected = len(DECOMPRESS[codec](bytes(frame)))
    except RuntimeError as error:
        if codec != "lz4" or not str(error).endswith(("frameSize_wrong", "contentChecksum_invalid")):
            raise
    else:
        assert size == expected


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_damaged_frame_says_nothing_of_the_next(codec: str):
    """A context that has met damage is not used again, whatever was damaged."""
    sound = bytes(kraftlog.encode(pa.table({"value": VALUES}), compression=codec))
    plain = COMPRESS[codec](b"".join(VALUES))
    for at in range(min(len(plain), 60)):
        broken = plain[:at] + bytes([plain[at] ^ 0x55]) + plain[at + 1 :]
        assert faults(batch(codec, lambda _, payload=broken: payload)) is not None
        assert values(sound) == VALUES
