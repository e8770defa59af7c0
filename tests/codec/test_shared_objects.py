"""Threads at work on objects of their own and on shared ones: with a GIL and without, each gets what one thread gets.

``ci/free-threaded`` runs this without a GIL.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog._native import scanner as native_scanner
from kraftlog._native.scanner import Scanner
from kraftlog.codec.compression import COMPRESSION_TYPES, decompressor

THREADS, ROUNDS = 4, 25
COLUMNS = ["key", "value", "offset", "timestamp", "headers"]
CODECS = {
    name: next(iter(sorted((GOLDEN / "codecs" / "log" / f"codec-{name}-0").glob("*.log")))).read_bytes()
    for name in COMPRESSION_TYPES
}
MIXED = next(iter(sorted((GOLDEN / "codecs" / "log" / "codec-mixed-0").glob("*.log")))).read_bytes()
Found = TypeVar("Found")


def together(work: Callable[[int], Found]) -> list[Found]:
    """Call ``work`` in all threads at once, as often as there are rounds; what each returned last."""
    start = Barrier(THREADS)

    def run(number: int) -> Found:
        start.wait(60)
        for _ in range(ROUNDS - 1):
            work(number)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def round_trip(number: int) -> tuple[bytes, pa.Table, int]:
    """Decode, encode, build, iterate and validate, with objects that only this thread has."""
    name = COMPRESSION_TYPES[number % len(COMPRESSION_TYPES)]
    table = kraftlog.decode(CODECS[name], columns=["key", "value", "timestamp_ms", "headers"], batch_rows=30).to_table()
    packed = kraftlog.encode(table, compression=name, max_batch_bytes=8192).to_pybytes()
    builder = kraftlog.RecordBatchBuilder(batch_size=1 << 14, compression=name)
    records = [
        record for record in kraftlog.records(packed) if builder.append(record.key, record.value, record.headers)
    ]
    packed += builder.close(base_offset=len(records)).to_pybytes()
    return packed, kraftlog.validate(packed), len(records)


def test_objects_of_their_own():
    expected = [round_trip(number) for number in range(THREADS)]
    assert all(records for _, _, records in expected)
    assert together(round_trip) == expected


def test_one_buffer_and_one_table():
    """Arrays made by one thread are read, cut and dropped by others."""
    table = kraftlog.decode(MIXED, columns=["key", "value", "timestamp_ms", "headers"], batch_rows=7).to_table()
    stream = kraftlog.decode(MIXED, columns=COLUMNS, batch_rows=11)
    scan = kraftlog.batches(MIXED)
    expected = (
        kraftlog.encode(table, max_batch_bytes=8192).to_pybytes(),
        stream.to_table(),
        scan.to_table(),
        kraftlog.decode(MIXED, columns=COLUMNS, layout="view").to_table(),
    )

    def work(number: int) -> bool:
        views = kraftlog.decode(MIXED, columns=COLUMNS, layout="view").to_table()
        return (
            kraftlog.encode(table, max_batch_bytes=8192).to_pybytes() == expected[0]
            and stream.to_table().equals(expected[1])
            and scan.to_table().equals(expected[2])
            and views.equals(expected[3])
            and kraftlog.decode(MIXED, columns=COLUMNS, batch_rows=number + 1).to_table().equals(expected[1])
        )

    assert together(work) == [True] * THREADS


def test_contexts_of_the_compression_libraries_are_shared():
    plain = pa.table({"value": [b"abc" * n for n in range(400)]})

    def work(number: int) -> tuple[int, ...]:
        own = decompressor()
        sizes = []
        for compression in range(1, len(COMPRESSION_TYPES)):
            name = COMPRESSION_TYPES[(compression + number) % 4 + 1]
            packed = kraftlog.encode(plain, compression=name, max_batch_bytes=2048)
            assert kraftlog.decode(packed, columns=["value"]).to_table().equals(plain)
            with pytest.raises(ValueError, match=r"."):
                own.decompress(b"\xff" * 40, compression, 2)
            sizes.append(packed.size)
        return tuple(sorted(sizes))

    assert len(set(together(work))) == 1


def test_one_iterator_of_records():
    """Each record comes out once, in whichever thread."""
    count = sum(1 for _ in kraftlog.records(CODECS["none"] * 3))
    for _ in range(ROUNDS):
        iterator = kraftlog.records(CODECS["none"] * 3)
        start = Barrier(THREADS)

        def drain(_: int, iterator: kraftlog.RecordIterator = iterator, start: Barrier = start) -> int:
            start.wait(60)
            return sum(1 for _ in iterator)

        with ThreadPoolExecutor(THREADS) as pool:
            assert sum(pool.map(drain, range(THREADS))) == count


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


def test_a_scanner_that_is_busy():
    """A second thread is refused; the first one gets all headers."""
    file = WaitingFile(MIXED)
    scanner = Scanner(file, 0, len(MIXED), native_scanner.CHECK_ALL)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(scanner.run, 1 << 20)
        assert file.asked.wait(60)
        with pytest.raises(RuntimeError, match="Scanner is in use by another thread"):
            scanner.run(1)
        with pytest.raises(RuntimeError, match="Scanner is in use by another thread"):
            scanner.skip(1)
        file.allowed.set()
        headers, _, fault = found.result()
    assert fault is None
    assert np.array_equal(headers["base_offset"], kraftlog.batches(MIXED).to_table()["base_offset"].to_numpy())
