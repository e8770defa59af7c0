"""Batches that aiokafka compressed, and that it decompresses: the codecs that ``test_aiokafka`` leaves out."""

from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from strategies import COLUMNS, ROWS, decoded_records, records_of, table_of

import kraftlog
from kraftlog.codec.compression import COMPRESSION_TYPES

CODECS = ["snappy", "lz4", "zstd"]
PROFILE = settings(derandomize=True, max_examples=25, deadline=None)


@pytest.mark.parametrize("compression", CODECS)
@PROFILE
@given(rows=ROWS)
def test_their_batches(compression: str, rows: list[tuple]):
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=COMPRESSION_TYPES.index(compression),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    rows = [(key, value, abs(timestamp), headers) for key, value, timestamp, headers in rows]
    for i, (key, value, timestamp, headers) in enumerate(rows):
        assert builder.append(i, timestamp, key, value, headers)
    decoded = kraftlog.decode(bytes(builder.build()), columns=COLUMNS, strict=True).to_table().to_pylist()
    assert decoded_records(decoded) == records_of(rows, 0)


@pytest.mark.parametrize("compression", CODECS)
@PROFILE
@given(rows=ROWS)
def test_our_batches(compression: str, rows: list[tuple]):
    records = MemoryRecords(kraftlog.encode(table_of(rows), compression=compression, max_batch_bytes=1500).to_pybytes())
    got = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        assert batch.compression_type == COMPRESSION_TYPES.index(compression)
        got += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert got == [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records_of(rows, 0)]


@pytest.mark.parametrize(("magic", "compression"), [(0, "snappy"), (1, "snappy"), (1, "lz4")])
@PROFILE
@given(rows=ROWS)
def test_their_wrappers(magic: int, compression: str, rows: list[tuple]):
    """The offset of a wrapper is that of its last message, as a broker sets it."""
    builder = LegacyRecordBatchBuilder(
        magic=magic, compression_type=COMPRESSION_TYPES.index(compression), batch_size=1 << 20
    )
    rows = [(key, value, abs(timestamp) if magic else -1, []) for key, value, timestamp, _ in rows]
    for i, (key, value, timestamp, _) in enumerate(rows):
        assert builder.append(i, timestamp=timestamp, key=key, value=value)
    data = bytearray(builder.build())
    data[:8] = (len(rows) - 1).to_bytes(8, "big")
    decoded = kraftlog.decode(data, columns=COLUMNS, strict=True).to_table().to_pylist()
    assert decoded_records(decoded) == records_of(rows, 0)
