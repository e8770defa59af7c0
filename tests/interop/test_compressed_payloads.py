"""Compressed payloads that are odd or damaged: rows and refusals are those of Kafka's own classes."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Iterator

import cramjam
import lz4.frame
import pyarrow as pa
import pytest
from backports import zstd
from jvm import Jvm

import kraftlog
from kraftlog.codec import compression

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
GARBAGE = {"a zero": b"\0", "zeros": bytes(20), "text": b"some bytes that are no frame", "ones": b"\xff" * 9}
ROWS = [[at, at, b"k%d" % at, b"0123456789abcdef" * 4 + b"%d" % at] for at in range(40)]
BATCH = kraftlog.encode(
    pa.table({name: [row[at] for row in ROWS] for at, name in ((1, "timestamp_ms"), (2, "key"), (3, "value"))}),
    max_batch_bytes=1 << 20,
).to_pybytes()
RECORDS_AT = 61
RECORDS = BATCH[RECORDS_AT:]
HALVES = RECORDS[:1500], RECORDS[1500:]

# the docstring of kraftlog.codec.compression says why
READ_HERE_ALONE = {
    "lz4 with bit 5 of byte 4 changed and a right header checksum",
    "lz4 with an empty stored block first",
    "zstd with a window of 2^10 and content size 0",
    "zstd with a window of 2^28 and content size 0",
    "zstd with a window of 2^31 and content size 0",
}
REFUSED_HERE_ALONE = {f"gzip with flags {flags} and 0 bytes" for flags in (32, 64, 128)}
NOT_BY_PACKAGES = {"gzip of 2000 empty members first"}
# Java from 17.0.21 on also refuses what is behind the last record; before, and here, it is not looked at
BEHIND_THE_RECORDS = "Error checking for remaining bytes after reading batch"


def batch(payload: bytes, codec: int) -> bytes:
    data = bytearray(BATCH[:RECORDS_AT]) + payload
    data[22] |= codec
    struct.pack_into(">i", data, 8, len(data) - 12)
    data[17:21] = kraftlog.crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def changed(data: bytes, at: int, by: int = 1) -> bytes:
    out = bytearray(data)
    out[at] ^= by
    return bytes(out)


def everywhere(name: str, whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a payload as it is, cut off, twice, and followed by what is no frame."""
    yield name, whole
    for cut in (1, 2, 4, 5, 8, 9, 20, len(whole) // 2, len(whole) - 8, len(whole) - 4, len(whole) - 1, len(whole)):
        yield f"{name}, {cut} bytes cut off", whole[: len(whole) - cut]
    for what, tail in GARBAGE.items():
        yield f"{name}, and {what}", whole + tail
    yield f"{name}, twice", whole + whole


def lz4_frame(data: bytes, **options: int) -> bytes:
    usual = {"block_linked": False, "store_size": False, "block_size": lz4.frame.BLOCKSIZE_MAX64KB}
    return bytes(lz4.frame.compress(data, **usual | options))


def lz4_cases() -> Iterator[tuple[str, bytes]]:
    whole = lz4_frame(RECORDS)
    yield from everywhere("lz4", whole)
    yield "lz4 in two frames", lz4_frame(HALVES[0]) + lz4_frame(HALVES[1])
    yield "lz4 behind an empty frame", lz4_frame(b"") + whole
    yield "lz4 behind a skippable frame", struct.pack("<II", 0x184D2A50, 3) + b"abc" + whole
    yield "lz4 before a skippable frame", whole + struct.pack("<II", 0x184D2A50, 3) + b"abc"
    checked = lz4_frame(RECORDS, content_checksum=True)
    yield "lz4 with a content checksum", checked
    for cut in (1, 4, 5):
        yield f"lz4 with a content checksum, {cut} bytes cut off", checked[:-cut]
    yield "lz4 with a wrong content checksum", changed(checked, -1)
    blocks = lz4_frame(RECORDS, block_checksum=True)
    yield "lz4 with block checksums", blocks
    yield "lz4 with a wrong block checksum", changed(blocks, -5)
    yield "lz4 with a size", lz4_frame(RECORDS, store_size=True)
    sized = bytearray(lz4_frame(RECORDS, store_size=True))
    for less in (1, -1):
        sized[6:14] = struct.pack("<Q", len(RECORDS) - less)
        yield f"lz4 with a size that is {less} less", lz4_header(bytes(sized), 14)
    yield "lz4 with linked blocks", lz4_frame(RECORDS, block_linked=True)
    for size in (5, 6, 7):
        yield f"lz4 with blocks of size {size}", lz4_frame(RECORDS, block_size=size)
    for at in range(4, 7):
        for bit in range(8):
            yield f"lz4 with bit {bit} of byte {at} changed", changed(whole, at, 1 << bit)
            if at < 6:
                name = f"lz4 with bit {bit} of byte {at} changed and a right header checksum"
                yield name, lz4_header(changed(whole, at, 1 << bit), 6)
    head = lz4_header(whole[:7], 6)
    stored = struct.pack("<I", 1 << 31 | len(RECORDS)) + RECORDS
    yield "lz4 of a stored block", head + stored + bytes(4)
    bytewise = b"".join(struct.pack("<IB", 1 << 31 | 1, byte) for byte in RECORDS)
    yield "lz4 of many blocks", head + bytewise + bytes(4)
    yield "lz4 without an end mark", head + stored
    yield "lz4 with an empty stored block", head + stored + struct.pack("<I", 1 << 31) + bytes(4)
    yield "lz4 with an empty stored block first", head + struct.pack("<I", 1 << 31) + stored + bytes(4)
    large = struct.pack("<I", 1 << 31 | 65537) + RECORDS + bytes(65537 - len(RECORDS))
    yield "lz4 with a stored block that is too large", head + large + bytes(4)
    yield "lz4 with a block of noise", head + struct.pack("<I", 9) + b"noise noi" + bytes(4)
    for at in range(11, 40, 3):
        yield f"lz4 damaged at {at}", changed(whole, at, 0x55)


def lz4_header(frame: bytes, size: int) -> bytes:
    """Put in the header checksum that is right."""
    return frame[:size] + bytes([xxhash32(frame[4:size]) >> 8 & 0xFF]) + frame[size + 1 :]


def xxhash32(data: bytes) -> int:
    prime, mask = (2654435761, 2246822519, 3266489917, 668265263, 374761393), 0xFFFFFFFF
    h = prime[4] + len(data)
    while len(data) >= 4:
        h = h + int.from_bytes(data[:4], "little") * prime[2] & mask
        h = (h << 17 | h >> 15) * prime[3] & mask
        data = data[4:]
    for byte in data:
        h = h + byte * prime[4] & mask
        h = (h << 11 | h >> 21) * prime[0] & mask
    h = (h ^ h >> 15) * prime[1] & mask
    h = (h ^ h >> 13) * prime[2] & mask
    return h ^ h >> 16


def snappy_cases() -> Iterator[tuple[str, bytes]]:
    def block(data: bytes) -> bytes:
        return bytes(cramjam.snappy.compress_raw(data))

    def chunk(data: bytes) -> bytes:
        return struct.pack(">i", len(block(data))) + block(data)

    raw, framed = block(RECORDS), XERIAL + chunk(HALVES[0]) + chunk(HALVES[1])
    yield from everywhere("snappy", raw)
    yield from everywhere("xerial", framed)
    yield "xerial of one block", XERIAL + chunk(RECORDS)
    yield "xerial with an empty block", XERIAL + chunk(b"") + chunk(RECORDS)
    yield "xerial with a block of no bytes", XERIAL + bytes(4) + chunk(RECORDS)
    yield "xerial with a block of no bytes between", XERIAL + chunk(HALVES[0]) + bytes(4) + chunk(HALVES[1])
    yield "xerial with a block of no bytes last", XERIAL + chunk(RECORDS) + bytes(4)
    yield "xerial with a block of -1 bytes", XERIAL + chunk(HALVES[0]) + b"\xff" * 4 + chunk(HALVES[1])
    yield "xerial with two headers", XERIAL + chunk(HALVES[0]) + XERIAL + chunk(HALVES[1])
    yield "xerial with a header at the end", XERIAL + chunk(RECORDS) + XERIAL
    for version, compatible in ((0, 1), (2, 1), (1, 0), (1, 2), (7, 7), (-1, 1), (1, -1)):
        header = XERIAL[:8] + struct.pack(">ii", version, compatible)
        yield f"xerial of version {version}, {compatible}", header + chunk(RECORDS)
    yield "xerial header alone", XERIAL
    yield "xerial around raw", XERIAL + raw
    for less in (-1, 1, 100):
        size = len(RECORDS) - less
        head = bytes([size & 0x7F | 0x80, size >> 7])
        assert raw[:2] == bytes([len(RECORDS) & 0x7F | 0x80, len(RECORDS) >> 7])
        yield f"snappy with a size that is {less} less", head + raw[2:]
    yield "snappy of a large size", b"\xff\xff\xff\xff\x07" + raw[2:]
    yield "snappy of a size of 33 bits", b"\xff\xff\xff\xff\x1f" + raw[2:]
    for at in range(0, len(raw), max(1, len(raw) // 30)):
        yield f"snappy damaged at {at}", changed(raw, at, 0x55)
    for at in range(0, 60):
        yield f"xerial damaged at {at}", changed(framed, at, 0x55)
    yield "snappy framing of the snappy project", bytes(cramjam.snappy.compress(RECORDS))


def gzip_cases() -> Iterator[tuple[str, bytes]]:
    whole = gzip.compress(RECORDS, mtime=0)
    yield from everywhere("gzip", whole)
    first, second = (gzip.compress(half, mtime=0) for half in HALVES)
    yield "gzip of two members", first + second
    yield "gzip of an empty member first", gzip.compress(b"", mtime=0) + whole
    yield "gzip of an empty member between", first + gzip.compress(b"", mtime=0) + second
    yield "gzip of an empty member last", whole + gzip.compress(b"", mtime=0)
    yield "gzip of 2000 empty members first", gzip.compress(b"", mtime=0) * 2000 + whole
    yield "gzip of members with zeros between", first + bytes(8) + second
    for size in (1, 2, 3, 4, 9, 10, 11, 15):
        yield f"gzip and {size} bytes of a second member", whole + second[:size]
        yield f"gzip of two members, of which the second has {size} bytes", first + second[:size]
    yield "gzip and a damaged second member", whole + changed(second, 12, 0xFF)
    yield "gzip and a second member of a wrong crc", whole + changed(second, -5)
    yield "gzip and a second member of another method", whole + changed(second, 2)
    for at in range(-8, 0):
        yield f"gzip damaged at {at}", changed(whole, at)
    fields = [
        (4, b"\x03\0abc"),
        (4, b"\xff\xff"),
        (8, b"name\0"),
        (16, b"comment\0"),
        (28, b"\x03\0abcname\0comment\0"),
    ]
    for flags, field in fields + [(flags, b"") for flags in (1, 8, 32, 64, 128)]:
        yield (
            f"gzip with flags {flags} and {len(field)} bytes",
            whole[:3] + bytes([flags]) + whole[4:10] + field + whole[10:],
        )
    head = whole[:3] + b"\x02" + whole[4:10]
    yield "gzip of a header crc", head + struct.pack("<H", zlib.crc32(head) & 0xFFFF) + whole[10:]
    yield "gzip of a wrong header crc", head + b"ab" + whole[10:]
    yield "gzip of another method", changed(whole, 2)
    yield "zlib", zlib.compress(RECORDS)
    yield "deflate", zlib.compress(RECORDS, wbits=-15)
    for at in range(10, len(whole) - 8, max(1, len(whole) // 20)):
        yield f"gzip damaged at {at}", changed(whole, at, 0x55)


def zstd_cases() -> Iterator[tuple[str, bytes]]:
    whole = zstd.compress(RECORDS)
    skippable = struct.pack("<II", 0x184D2A53, 3) + b"abc"

    def stream(data: bytes, checksum: int = 0) -> bytes:
        frame = zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: checksum})
        return bytes(frame.compress(data) + frame.flush())

    unsized = stream(RECORDS)
    yield from everywhere("zstd", whole)
    yield from everywhere("zstd without a size", unsized)
    yield "zstd in two frames", zstd.compress(HALVES[0]) + zstd.compress(HALVES[1])
    yield "zstd in two frames without sizes", stream(HALVES[0]) + stream(HALVES[1])
    yield "zstd behind an empty frame", zstd.compress(b"") + whole
    yield "zstd before an empty frame", whole + zstd.compress(b"")
    yield "zstd behind a skippable frame", skippable + whole
    yield "zstd before a skippable frame", whole + skippable
    yield "zstd around a skippable frame", zstd.compress(HALVES[0]) + skippable + zstd.compress(HALVES[1])
    yield "a skippable frame alone", skippable
    yield "zstd before a cut skippable frame", whole + skippable[:-1]
    for cut in (3, 4, 5, 8, 9, 12):
        yield f"zstd and {cut} bytes of a second frame", whole + whole[:cut]
    yield "zstd and a damaged second frame", whole + changed(whole, 20, 0xFF)
    checked = stream(RECORDS, checksum=1)
    yield "zstd with a checksum", checked
    yield "zstd with a wrong checksum", changed(checked, -1)
    yield "zstd with a checksum, cut", checked[:-1]
    for log in (10, 26, 27, 28, 31):
        for content in (0, 1):
            yield f"zstd with a window of 2^{log} and content size {content}", windowed(log, content)
    for at in range(4, min(len(whole), 40)):
        yield f"zstd damaged at {at}", changed(whole, at, 0x55)
    for bit in range(8):
        yield f"zstd with bit {bit} of its descriptor changed", changed(whole, 4, 1 << bit)
    reserved = struct.pack("<I", len(RECORDS) << 3 | 7)[:3]
    yield "zstd with a reserved block type", windowed(20, 0)[:6] + reserved + RECORDS
    yield "zstd without a magic number", whole[4:]


def windowed(log: int, content: int) -> bytes:
    """Return a frame with a raw block and a window descriptor; its size takes 8 bytes, if it is there."""
    size = struct.pack("<Q", len(RECORDS)) if content else b""
    block = struct.pack("<I", len(RECORDS) << 3 | 1)[:3] + RECORDS
    return struct.pack("<I", 0xFD2FB528) + bytes([content * 0xC0, (log - 10) << 3]) + size + block


CASES = {GZIP: gzip_cases, SNAPPY: snappy_cases, LZ4: lz4_cases, ZSTD: zstd_cases}


def ours(data: bytes) -> tuple[list[list[object]], bool]:
    stream = kraftlog.decode(data, columns=["offset", "timestamp_ms", "key", "value"])
    rows = [[row["offset"], row["timestamp_ms"], row["key"], row["value"]] for row in stream.to_table().to_pylist()]
    return rows, bool(stream.faults)


@pytest.mark.parametrize("codec", CASES)
def test_payloads(java: Jvm, monkeypatch: pytest.MonkeyPatch, codec: int) -> None:
    """The same rows or a refusal, by the libraries and by the packages that take their place."""
    cases = {name: batch(payload, codec) for name, payload in CASES[codec]()}
    lines = java.run("Iterate", lines=[{"bytes": case.hex()} for case in cases.values()])
    different = []
    for by_libraries in (True, False):
        monkeypatch.setattr(compression, "BY_LIBRARIES", by_libraries)
        for (name, case), line in zip(cases.items(), lines, strict=True):
            answer = json.loads(line)
            is_refused = answer["error"] is not None
            rows, is_fault = ours(case)
            if name in REFUSED_HERE_ALONE or (name in NOT_BY_PACKAGES and not by_libraries):
                assert is_fault
                assert not is_refused
                continue
            if name in READ_HERE_ALONE:
                assert is_refused
                continue
            if not is_fault and name.startswith("gzip and ") and BEHIND_THE_RECORDS in (answer["error"] or ""):
                continue
            expected = [[*row[:2], *(bytes.fromhex(field) for field in row[2:4])] for row in answer["rows"]]
            if is_fault != is_refused or (not is_fault and rows != expected):
                different.append((name, by_libraries, answer["error"]))
    assert different == []
    assert any(json.loads(line)["error"] for line in lines)
