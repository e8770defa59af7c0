"""The same bytes and rows as aiokafka's own codec, where that is right."""

from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import COLUMNS, decoded_records

import kraftlog
from kraftlog.codec.compression import COMPRESSION_TYPES

ROW = st.tuples(
    st.one_of(st.none(), st.binary(max_size=30)),
    st.one_of(st.none(), st.binary(max_size=200)),
    st.integers(0, 2**40),
    st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=2),
)
ROWS = st.lists(ROW, min_size=1, max_size=20)
PROFILE = settings(derandomize=True, max_examples=40, deadline=None)
CODECS = [name for name in COMPRESSION_TYPES if name != "snappy"]  # aiokafka's snappy needs a library of the system


def as_rows(data: bytes) -> list[tuple]:
    records = kraftlog.decode(data, columns=COLUMNS, strict=True).to_table().to_pylist()
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in decoded_records(records)]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@PROFILE
@given(rows=ROWS)
def test_their_builder(compression: str, rows: list[tuple]):
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=COMPRESSION_TYPES.index(compression),
        is_transactional=1,
        producer_id=5,
        producer_epoch=2,
        base_sequence=10,
        batch_size=1 << 20,
    )
    for i, (key, value, timestamp, headers) in enumerate(rows):
        assert builder.append(i, timestamp, key, value, headers)
    data = bytes(builder.build())
    assert as_rows(data) == [(i, ts, key, value, headers) for i, (key, value, ts, headers) in enumerate(rows)]
    if compression == "none":
        from strategies import table_of

        ours = kraftlog.encode(
            table_of(rows), is_transactional=True, producer_id=5, producer_epoch=2, base_sequence=10
        ).to_pybytes()
        assert ours[21:] == data[21:]  # all that the crc covers


@pytest.mark.parametrize("compression", ["none", "gzip"])
@PROFILE
@given(rows=ROWS)
def test_their_reader(compression: str, rows: list[tuple]):
    from strategies import table_of

    data = kraftlog.encode(table_of(rows), compression=compression, max_batch_bytes=1000).to_pybytes()
    records = MemoryRecords(data)
    got = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        got += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert got == [(i, ts, key, value, headers) for i, (key, value, ts, headers) in enumerate(rows)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [0, 1])
@PROFILE
@given(rows=ROWS)
def test_their_old_messages(magic: int, compression: int, rows: list[tuple]):
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=compression, batch_size=1 << 20)
    for i, (key, value, timestamp, _) in enumerate(rows):
        assert builder.append(i, timestamp=timestamp, key=key, value=value)
    data = bytearray(builder.build())
    if compression:
        data[:8] = (len(rows) - 1).to_bytes(8, "big")  # a broker gives the wrapper the offset of its last message
    assert as_rows(bytes(data)) == [
        (i, timestamp if magic else -1, key, value, []) for i, (key, value, timestamp, _) in enumerate(rows)
    ]
