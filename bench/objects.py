"""Segments in an object store, read as records, beside plain reads of the same ranges."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus
import kraftlog
import range_server
from kraftlog.disk.chunk_cache import AHEAD_BYTES
from kraftlog.disk.disk import ReadableFile, disk
from kraftlog.disk.remote_files import READ_BYTES
from material import Material
from rounds import Contender

LATENCY = 0.05
SEGMENTS = 40
SEGMENT_MB = 16
CONNECTIONS = AHEAD_BYTES // READ_BYTES  # as many as a reader has in use
RANGES, RECORDS = "ranges of {} objects", "records of {} objects, {} workers"
WORKERS = (1, 2)


def objects(megabytes: float) -> list[Contender]:
    """Read many segments from a store that answers each request after 50 ms; fewer than 40 if there are fewer bytes."""
    folder = Path(tempfile.mkdtemp(prefix="kraftlog-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    m = Material(corpus.Workload(1000, 64), SEGMENT_MB)
    (folder / "log-0").mkdir()
    for number in range(SEGMENTS if megabytes >= SEGMENT_MB else 2):
        data = kraftlog.encode(
            m.table.drop_columns(["offset"]), base_offset=number * m.records, max_batch_bytes=m.max_batch_bytes
        )
        (folder / "log-0" / f"{number * m.records:020d}.log").write_bytes(data)
    log = kraftlog.open("s3://bucket/log-0", storage_options=range_server.serve(folder, LATENCY))
    count, size = len(log.found.segments), log.size_in_bytes
    found = [Contender(RANGES.format(count), _ranges(log), size, size, cpu_clock=None)]
    for workers in WORKERS:
        name = RECORDS.format(count, workers)
        found.append(Contender(name, _records(log, workers, count * m.records), size, size, cpu_clock=None))
    return found


def _ranges(log: kraftlog.Log) -> Callable[[], None]:
    """Return what requests the same ranges over the same number of connections, and drops them."""

    def run() -> None:
        files = [disk().open(segment.path, segment.size) for segment in log.found.segments]
        ranges = [(file, at) for file in files for at in range(0, file.size, READ_BYTES)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            assert sum(pool.map(lambda each: _read(*each), ranges)) == log.size_in_bytes

    return run


def _read(file: ReadableFile, at: int) -> int:
    target = memoryview(bytearray(min(READ_BYTES, file.size - at)))
    file.read_into(target, at)
    return len(target)


def _records(log: kraftlog.Log, workers: int, expected: int) -> Callable[[], None]:
    def run() -> None:
        rows = sum(batch.num_rows for batch in log.records(["offset", "key", "value"], workers=workers))
        assert rows == expected, (rows, expected)

    return run
