"""A table is decoded in larger pieces than a stream, to the same rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kraftlog

ROWS = 150_000
TABLE = pa.table({"key": [b"%d" % number for number in range(ROWS)], "value": [bytes(60)] * ROWS})
HALVES = [
    kraftlog.encode(TABLE.slice(0, ROWS // 2), timestamp_ms=1_700_000_000_000),
    kraftlog.encode(TABLE.slice(ROWS // 2), base_offset=ROWS // 2, compression="lz4"),
]


def streamed(data: bytes, columns: list[str] | None) -> pa.Table:
    stream = kraftlog.decode(data, columns=columns)
    return pa.Table.from_batches(stream.batches(), stream.schema)


@pytest.mark.parametrize(
    "columns", [None, ["key", "value", "offset", "timestamp"], ["value", "timestamp_type", "producer_id"]]
)
@pytest.mark.parametrize("parts", [[0], [1], [0, 1], [1, 0]])
def test_equal_to_streamed(parts: list[int], columns: list[str] | None):
    data = b"".join(HALVES[part].to_pybytes() for part in parts)
    expected = streamed(data, columns)
    found = kraftlog.decode(data, columns=columns)
    table = found.to_table()
    table.validate(full=True)
    assert table.equals(expected)
    assert found.consumed == len(data)
    assert table.num_rows == len(parts) * ROWS // 2


def test_columns_of_both_timestamp_types():
    """Names are repeated in pieces of rows; batches of both types meet in one of them."""
    data = bytearray(b"".join(half.to_pybytes() for half in HALVES[:1] * 2))
    second = len(HALVES[0])
    while second < len(data):
        data[second + 22] |= 8  # LogAppendTime
        second += 12 + int.from_bytes(data[second + 8 : second + 12], "big")
    table = kraftlog.decode(bytes(data), columns=["offset", "timestamp_type"], check_crc=False).to_table()
    half = ROWS // 2
    assert table["timestamp_type"].to_pylist() == ["CreateTime"] * half + ["LogAppendTime"] * half


def test_few_pieces():
    data = HALVES[0].to_pybytes()
    columns = ["key", "value", "offset", "timestamp"]
    assert kraftlog.decode(data, columns=columns).to_table().column(0).num_chunks <= 1 + len(data) // (7 << 20)
    assert kraftlog.decode(data, columns=columns, batch_rows=20_000).to_table().column(0).num_chunks >= 3
