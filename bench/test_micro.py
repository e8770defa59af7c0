"""Single calls under pytest-benchmark: what a call costs before there is much to do. Answers are checked, too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import kraftlog
from kraftlog.messages.catalog import BUILT_IN, Catalog

SEED = 42
BATCH_BYTES = 8 << 10
VALUE_BYTES = 100
COLUMNS = ["key", "value", "offset", "timestamp_ms"]


def crc32c_bit_by_bit(data: bytes) -> int:
    """CRC32C as its definition has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.fixture(scope="module")
def rows() -> pa.RecordBatch:
    """Return rows that fill one batch of 8 KiB nearly."""
    random = np.random.default_rng(SEED)
    count = (BATCH_BYTES - 61) // (VALUE_BYTES + 18)
    return pa.record_batch(
        {
            "key": pa.array([random.bytes(8) for _ in range(count)]),
            "value": pa.array([random.bytes(VALUE_BYTES) for _ in range(count)]),
            "timestamp_ms": pa.array(1_700_000_000_000 + np.arange(count)),
        }
    )


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    """Return a thousand int32 that take one to five bytes."""
    random = np.random.default_rng(SEED)
    return (random.integers(-(2**31), 2**31, 1000) >> random.choice([0, 8, 16, 24], 1000)).astype(np.int32)


def test_varint_encode(benchmark: BenchmarkFixture, values: np.ndarray) -> None:
    """A thousand int32 to varints."""
    encoded = benchmark(kraftlog.varint.encode, values)
    assert np.array_equal(kraftlog.varint.decode(encoded), values)


def test_varint_decode(benchmark: BenchmarkFixture, values: np.ndarray) -> None:
    """A thousand varints to int32."""
    decoded = benchmark(kraftlog.varint.decode, kraftlog.varint.encode(values))
    assert np.array_equal(decoded, values)


def test_crc32c(benchmark: BenchmarkFixture) -> None:
    """The sum of 8 KiB."""
    data = np.random.default_rng(SEED).bytes(BATCH_BYTES)
    assert benchmark(kraftlog.crc32c, data) == crc32c_bit_by_bit(data)


def test_decode(benchmark: BenchmarkFixture, rows: pa.RecordBatch) -> None:
    """One batch to a table."""
    data = kraftlog.encode(rows, base_offset=7)
    table = benchmark(lambda: kraftlog.decode(data, columns=COLUMNS).to_table())
    offsets = pa.array(range(7, 7 + rows.num_rows))
    assert table == pa.table(rows.append_column("offset", offsets)).select(COLUMNS)


def test_encode(benchmark: BenchmarkFixture, rows: pa.RecordBatch) -> None:
    """One batch from columns."""
    data = benchmark(lambda: kraftlog.encode(rows, max_batch_bytes=BATCH_BYTES))
    batch_length = int.from_bytes(memoryview(data)[8:12], "big")
    assert batch_length + 12 == data.size  # all of it is one batch
    assert kraftlog.decode(data, columns=rows.schema.names).to_table() == pa.table(rows)


def test_definitions(benchmark: BenchmarkFixture) -> None:
    """All definitions of messages, read from their files and grouped by topic."""
    formats = benchmark(lambda: Catalog(BUILT_IN._load).formats)
    assert formats.keys() == BUILT_IN.formats.keys()
