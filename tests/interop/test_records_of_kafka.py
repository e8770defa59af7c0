"""Bytes that no broker of today writes: rows and refusals are those of Kafka's own classes."""

from __future__ import annotations

import gzip
import itertools
import json
import struct
import zlib

import cramjam
from jvm import Jvm

import kraftlog

GZIP, ZSTD, APPEND_TIME = 1, 4, 8
Row = list[object]


def message(offset: int, magic: int, attributes: int, value: bytes | None, *, timestamp: int = 7, key: bytes = b"k"):
    """Return a message of magic 0 or 1."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic == 1 else b"")
    body += struct.pack(">i", len(key)) + key
    body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, magic: int, inner: bytes, attributes: int = 0) -> bytes:
    """Return a wrapper around messages, with a timestamp of its own."""
    return message(offset, magic, GZIP | attributes, gzip.compress(inner), timestamp=99)


def kafka(java: Jvm, cases: list[bytes]) -> list[dict]:
    """Return what Kafka makes of each."""
    return [json.loads(line) for line in java.run("Iterate", lines=[{"bytes": case.hex()} for case in cases])]


def ours(data: bytes) -> tuple[list[Row], str | None]:
    """Return the rows before the first fault, and its code."""
    stream = kraftlog.decode(data, columns=["offset", "timestamp_ms", "key", "value", "headers"])
    rows = [
        [row["offset"], row["timestamp_ms"], *(None if b is None else b.hex() for b in (row["key"], row["value"]))]
        + [header["key"].encode().hex() for header in row["headers"]]
        for row in stream.to_table().to_pylist()
    ]
    if not stream.faults:
        return rows, None
    return rows[: stream.faults[0].record_index or 0], stream.faults[0].error


def inner_messages(magic: int, offsets: list[int]) -> bytes:
    return b"".join(message(offset, magic, 0, b"v%d" % at, timestamp=at) for at, offset in enumerate(offsets))


def wrappers() -> list[bytes]:
    """Return wrappers of each magic around messages of each, at each offset around the last inner one, and broken."""
    cases = []
    for magic, inner, offset, append in itertools.product((0, 1), (0, 1), (0, 1, 8, 9, 10, 50), (0, APPEND_TIME)):
        cases.append(wrapper(offset, magic, inner_messages(inner, [0, 3, 9]), append))
    for magic in (0, 1):
        plain = inner_messages(magic, [0, 1, 2])
        cases += [wrapper(2, magic, b""), message(2, magic, GZIP, None), wrapper(2, magic, plain[:5])]
        cases.append(message(2, magic, ZSTD, bytes(cramjam.zstd.compress(plain))))
        nested = message(1, magic, GZIP, gzip.compress(message(1, magic, 0, b"x")))
        cases.append(wrapper(2, magic, inner_messages(magic, [0]) + nested + message(2, magic, 0, b"y")))
        for at in range(len(plain)):
            cases.append(wrapper(2, magic, plain[:at] + bytes([plain[at] ^ 1]) + plain[at + 1 :]))
    return cases


def test_legacy_wrappers(java: Jvm) -> None:
    """The same rows; and the same ones refused, but for a message cut off at the end, of which Kafka says nothing."""
    cases = wrappers()
    for case, answer in zip(cases, kafka(java, cases), strict=True):
        rows, fault = ours(case)
        assert rows == answer["rows"], (case.hex(), fault, answer["error"])
        is_cut_off = fault in ("bad_record_length", "truncated_field")
        assert is_cut_off or (fault is None) == (answer["error"] is None), (case.hex(), fault, answer["error"])
