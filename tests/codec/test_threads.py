"""Threads that decode and encode at the same time get what one thread gets, from memory that is used again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.compression import COMPRESSION_TYPES
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.schema import RECORDS

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


class WaitingFile:
    """A file whose bytes come when the test lets them."""

    def __init__(self, data: bytes) -> None:
        self.path, self.size, self.window_bytes, self.long_batch = "memory", len(data), 1 << 20, 100
        self.data, self.asked, self.allowed = data, Event(), Event()

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]

    def read_into(self, target: memoryview, start: int) -> None:
        self.asked.set()
        assert self.allowed.wait(60)
        target[:] = self.data[start : start + len(target)]


def test_a_decoder_that_is_busy():
    """A second thread is refused; the first one gets all rows."""
    file = WaitingFile(FILES[0])
    schema = RECORDS.select(COLUMNS)
    decoder = RecordDecoder(file, 0, NO_BOUND, DecodePlan(schema, ReadOptions()))
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: pa.Table.from_batches(decoder.batches([]), schema))
        assert file.asked.wait(60)
        with pytest.raises(RuntimeError, match="another thread runs this decoder"):
            next(decoder.batches([]))
        file.allowed.set()
        assert found.result().equals(kraftlog.decode(FILES[0], columns=COLUMNS).to_table())
    assert list(decoder.batches([])) == []
