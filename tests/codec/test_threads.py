"""Threads that decode and encode at the same time get what one thread gets, from memory that is used again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.compression import COMPRESSION_TYPES

FILES = [
    path.read_bytes()
    for name in ("codec-mixed-0", "codec-none-0", "codec-zstd-0", "codec-gzip-0")
    for path in sorted((GOLDEN / "codecs" / "log" / name).glob("*.log"))
]
COLUMNS = ["key", "value", "offset", "timestamp_ms", "headers"]
THREADS, ROUNDS = 4, 12


@pytest.mark.parametrize("rows", [1, 50, 1 << 16])
def test_decode(rows: int):
    """All batches of all threads are held to the end: none may be written over by another."""

    def run(number: int) -> list[pa.RecordBatch]:
        return list(kraftlog.decode(FILES[number % len(FILES)], columns=COLUMNS, batch_rows=rows).batches())

    expected = [pa.Table.from_batches(run(number)) for number in range(len(FILES))]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(run, range(ROUNDS)))
    for number, batches in enumerate(found):
        assert pa.Table.from_batches(batches).equals(expected[number % len(FILES)])


def test_streams_of_one_object():
    """A stream that is read by several threads starts anew for each."""
    stream = kraftlog.decode(FILES[0], columns=COLUMNS, batch_rows=20)
    expected = stream.to_table()
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: pa.Table.from_batches(stream.batches()), range(ROUNDS)))
    assert all(table.equals(expected) for table in found)


def test_encode():
    table = kraftlog.decode(FILES[0], columns=["key", "value", "timestamp_ms", "headers"]).to_table()

    def run(number: int) -> bytes:
        compression = COMPRESSION_TYPES[number % len(COMPRESSION_TYPES)]
        return kraftlog.encode(table, compression=compression, max_batch_bytes=8192).to_pybytes()

    expected = [run(number) for number in range(len(COMPRESSION_TYPES))]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(run, range(ROUNDS)))
    assert found == [expected[number % len(COMPRESSION_TYPES)] for number in range(ROUNDS)]
