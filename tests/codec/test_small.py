"""Checksums and varints."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from reference import Cursor, crc32c
from reference import varint as reference_varint

import kraftlog
from kraftlog import varint
from kraftlog._native.checksum import crc32

EDGES = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8193, 2**20 - 1, 2**20, 2**27 - 1, 2**27, 2**31 - 1, -(2**31)]
LONG_EDGES = [*EDGES, 2**34, 2**41 - 1, 2**48, 2**55 - 1, 2**62, 2**63 - 1, -(2**63)]


def test_crc_vectors():
    assert kraftlog.crc32c(b"") == 0
    assert kraftlog.crc32c(b"123456789") == 0xE3069283
    assert kraftlog.crc32c(bytes(32)) == 0x8A9136AA
    assert kraftlog.crc32c(b"\xff" * 32) == 0x62A8AB43
    assert kraftlog.crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32(b"123456789") == 0xCBF43926


def test_crc_of_every_length():
    data = random.Random(1).randbytes(3000)
    for size in [*range(130), 191, 192, 193, 767, 768, 769, 1535, 2999]:
        assert kraftlog.crc32c(data[:size]) == crc32c(data[:size])
        assert crc32(data[:size]) == zlib.crc32(data[:size])
        assert kraftlog.crc32c(data[size:], kraftlog.crc32c(data[:size])) == kraftlog.crc32c(data)


def test_varints():
    expected = b"".join(reference_varint(value) for value in EDGES)
    assert bytes(varint.encode(EDGES)) == expected
    assert varint.decode(expected).tolist() == EDGES
    assert varint.decode(expected).dtype == np.int32
    random_values = np.random.default_rng(2).integers(-(2**31), 2**31, 1000)
    assert varint.decode(varint.encode(random_values)).tolist() == random_values.tolist()


def test_varlongs():
    expected = b"".join(reference_varint(value) for value in LONG_EDGES)
    assert bytes(varint.encode_long(LONG_EDGES)) == expected
    assert varint.decode_long(expected).tolist() == LONG_EDGES
    cursor = Cursor(bytes.fromhex("a2d99eea8268"))
    assert varint.decode_long(cursor.data).tolist() == [cursor.varint()] == [1787086231121]


def test_longer_forms_are_read():
    assert varint.decode(bytes.fromhex("80808080 00 8100")).tolist() == [0, -1]
    assert varint.decode(bytes.fromhex("ffffffff7f")).tolist() == [-(2**31)]  # surplus bits are dropped


def test_bad_varints():
    with pytest.raises(kraftlog.InvalidRecordError, match="byte 5: a varint of more than 5 bytes"):
        varint.decode(bytes.fromhex("808080808000"))
    with pytest.raises(kraftlog.InvalidRecordError, match="byte 1: a field of 1 bytes, but 0 bytes left"):
        varint.decode(b"\x80")
    with pytest.raises(kraftlog.InvalidRecordError, match="more than 10 bytes"):
        varint.decode_long(b"\x80" * 10 + b"\x00")
    with pytest.raises(OverflowError, match="do not fit 32 bits"):
        varint.encode([2**31])
    with pytest.raises(TypeError, match="values must be integers"):
        varint.encode([1.5])
    assert varint.decode(b"").tolist() == []
    assert bytes(varint.encode([])) == b""
