"""Where producers put keys: Kafka's own answers, those of aiokafka, and a plain-Python twin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st
from reference import crc32c as reference_crc32c

import kraftlog
from kraftlog._native.hashes import Values
from kraftlog.codec.value_hashes import crc32c, murmur2

# UtilsTest.testMurmur2
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
KEYS = st.lists(st.none() | st.binary(max_size=40), max_size=12)
LAYOUTS = [pa.binary(), pa.string(), pa.large_binary(), pa.large_string(), pa.dictionary(pa.int32(), pa.binary())]


def plain_murmur2(key: bytes) -> int:
    """Return what ``Utils.murmur2`` does, as an unsigned number."""
    multiplier, wrap = 0x5BD1E995, (1 << 32) - 1
    whole = len(key) - len(key) % 4
    code = 0x9747B28C ^ len(key)
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * multiplier & wrap
        word = (word ^ word >> 24) * multiplier & wrap
        code = code * multiplier & wrap ^ word
    if whole < len(key):
        code = (code ^ int.from_bytes(key[whole:], "little")) * multiplier & wrap
    code = (code ^ code >> 13) * multiplier & wrap
    return code ^ code >> 15


def test_murmur2_is_kafkas():
    assert murmur2(pa.array(list(KNOWN))).to_pylist() == list(KNOWN.values())


@given(KEYS, st.integers(1, 2**31 - 1))
def test_twin_and_aiokafka(keys: list[bytes | None], partitions: int):
    codes = [None if key is None else plain_murmur2(key) for key in keys]
    assert codes == [None if key is None else aiokafka_murmur2(key) for key in keys]
    found = kraftlog.partition_for_key(pa.array(keys, pa.binary()), partitions)
    assert found.type == pa.int32()
    assert found.to_pylist() == [None if code is None else (code & 0x7FFFFFFF) % partitions for code in codes]


@given(KEYS, st.integers(0, 12), st.integers(0, 12))
def test_slices_and_chunks(keys: list[bytes | None], start: int, length: int):
    whole = pa.array(keys, pa.binary())
    expected = kraftlog.partition_for_key(whole, 12)
    assert kraftlog.partition_for_key(whole.slice(start, length), 12).equals(expected.slice(start, length))
    chunks = pa.chunked_array([whole.slice(0, start), whole.slice(start)])
    assert kraftlog.partition_for_key(chunks, 12).equals(expected)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts(layout: pa.DataType):
    keys = pa.array([*KNOWN, None]).cast(layout)
    assert murmur2(keys).to_pylist() == [*KNOWN.values(), None]


def test_nothing():
    no_ends = pa.Array.from_buffers(pa.binary(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])  # as Java sends it
    for keys in (no_ends, pa.array([], pa.string()), pa.chunked_array([], pa.binary()), pa.nulls(0)):
        assert kraftlog.partition_for_key(keys, 3).equals(pa.array([], pa.int32()))
    assert kraftlog.partition_for_key(pa.nulls(2), 3).to_pylist() == [None, None]


def test_partitions_of_each_row():
    keys = pa.array(["foobar", "foobar", "foobar", None])
    found = kraftlog.partition_for_key(keys, pa.array([1, 12, None, 12], pa.int32()))
    assert found.to_pylist() == [0, (KNOWN[b"foobar"] & 0x7FFFFFFF) % 12, None, None]


@pytest.mark.parametrize("partitions", [0, -1, pa.array([3, 0])])
def test_a_topic_has_partitions(partitions: int | pa.Array):
    with pytest.raises(ValueError, match="at least one partition, not"):
        kraftlog.partition_for_key(pa.array(["a", "b"]), partitions)


def test_keys_are_bytes_or_text():
    with pytest.raises(ValueError, match="values are int64, neither binary nor text"):
        kraftlog.partition_for_key(pa.array([1]), 3)


@given(KEYS)
def test_crc32c(values: list[bytes | None]):
    found = crc32c(pa.array(values, pa.binary()))
    assert found.type == pa.int64()
    assert found.to_pylist() == [None if value is None else reference_crc32c(value) for value in values]


def test_ends_must_be_within_the_data():
    with pytest.raises(ValueError, match="value 1 is from byte 2 to 9, but the data has 3 bytes"):
        Values(np.array([0, 2, 9]), b"abc")
    with pytest.raises(ValueError, match="ends has no values"):
        Values(np.array([], np.int64), b"")
