"""Seeded log files of a given size, made once and kept in ``build/bench-corpus``.

A record has a key of 8 random bytes and a value: random bytes of one length, or a line of JSON in compressed files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import kraftlog

CACHE = Path(__file__).resolve().parent.parent / "build" / "bench-corpus"
SEED = 42
VERSION = 1  # in the name of every file; to be raised when the contents change
MB = 1_000_000
FIRST_TIMESTAMP = 1_700_000_000_000
KEY_BYTES = 8
HEADER_VALUE_BYTES = 16
OVERHEAD_OF_ONE = 90  # bytes of a batch of one record beside its value
STRETCH_BYTES = 1 << 20  # of records that are made at a time

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Workload:
    """What one file holds.

    Attributes
    ----------
    value_bytes : int
        Length of every value.
    batch_kib : int
        Cap on a record batch, before compression; 0 for batches of one record.
    headers : int
        Headers of each record.
    compression : str
        Unless it is ``none``, values are lines of JSON.
    """

    value_bytes: int
    batch_kib: int
    headers: int = 0
    compression: str = "none"

    @property
    def max_batch_bytes(self) -> int:
        """The cap in bytes; a batch of two records would not fit into that of batches of one."""
        return self.batch_kib << 10 or OVERHEAD_OF_ONE + self.value_bytes

    @property
    def name(self) -> str:
        """Short name, such as ``v100_b64_lz4``."""
        name = f"v{self.value_bytes}_b{self.batch_kib}"
        if self.headers:
            name += f"_h{self.headers}"
        return name if self.compression == "none" else f"{name}_{self.compression}"


PLAIN = [Workload(size, kib) for size in (20, 100, 1000) for kib in (8, 64)]
WITH_HEADERS = Workload(100, 64, headers=2)
COMPRESSED = [Workload(100, 64, compression=name) for name in ("lz4", "zstd", "snappy", "gzip")]
LARGE = [*PLAIN, WITH_HEADERS, *COMPRESSED]
SMALL = Workload(100, 0)
WORKLOADS = [*LARGE, SMALL]


def path(workload: Workload, megabytes: float) -> Path:
    """Return the log file of a workload with that many MB of records before compression; it is made if need be."""
    file = CACHE / f"{workload.name}-{megabytes:g}MB-{VERSION}.log"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        with unfinished.open("wb") as out:
            out.writelines(_encoded(workload, megabytes * MB))
        unfinished.rename(file)
    return file


def rows(workload: Workload) -> Iterator[pa.RecordBatch]:
    """Return endless rows with columns key, value, timestamp_ms and, if the workload has them, headers."""
    random = np.random.default_rng(SEED)
    timestamp, first = FIRST_TIMESTAMP, 0
    count = STRETCH_BYTES // (workload.value_bytes + KEY_BYTES)
    while True:
        stamps = timestamp + np.cumsum(random.integers(0, 2, count))
        columns = {
            "key": _binary(_random_bytes(random, count, KEY_BYTES)),
            "value": _binary(_values(workload, random, first, count)),
            "timestamp_ms": pa.array(stamps),
        }
        if workload.headers:
            columns["headers"] = _headers(random, count, workload.headers)
        yield pa.record_batch(columns)
        timestamp, first = int(stamps[-1]), first + count


def _encoded(workload: Workload, size: float) -> Iterator[pa.Buffer]:
    options = {"max_batch_bytes": workload.max_batch_bytes}
    encoder = kraftlog.Encoder(compression=workload.compression, **options)
    plain = 0
    for stretch in rows(workload):
        encoder.write(stretch)
        yield encoder.take()
        plain += kraftlog.encode(stretch, **options).size
        if plain >= size:
            break
    yield encoder.finish()


def _random_bytes(random: np.random.Generator, count: int, width: int) -> Bytes:
    return random.integers(0, 256, (count, width), np.uint8)


def _binary(cells: Bytes) -> pa.Array:
    """Rows of bytes as an Arrow column of binary values, all of one length."""
    count, width = cells.shape
    ends = np.arange(0, (count + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(cells)])


def _values(workload: Workload, random: np.random.Generator, first: int, count: int) -> Bytes:
    if workload.compression == "none":
        return _random_bytes(random, count, workload.value_bytes)
    values = _json_lines(random, first, count)
    assert values.shape[1] == workload.value_bytes
    return values


def _json_lines(random: np.random.Generator, first: int, count: int) -> Bytes:
    """Lines of one length that repeat and vary as business events do."""
    statuses = np.frombuffer(b"accepted rejected shipping returned", np.uint8)[np.arange(4)[:, None] * 9 + np.arange(8)]
    parts = [
        b'{"order":"',
        _digits(np.arange(first, first + count), 9),
        b'","customer":"',
        _digits(random.zipf(1.3, count) % 100_000, 5),
        b'","status":"',
        statuses[random.integers(0, len(statuses), count)],
        b'","amount":',
        _digits(random.integers(10_000, 100_000, count), 5),
        b',"currency":"EUR","rev":1}',
    ]
    cells = [np.tile(np.frombuffer(p, np.uint8), (count, 1)) if isinstance(p, bytes) else p for p in parts]
    return np.hstack(cells)


def _digits(numbers: npt.NDArray[np.int64], places: int) -> Bytes:
    powers = 10 ** np.arange(places - 1, -1, -1)
    return (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)


def _headers(random: np.random.Generator, count: int, each: int) -> pa.Array:
    keys = pa.array([f"header-{i}" for i in range(each)] * count)
    values = _binary(_random_bytes(random, count * each, HEADER_VALUE_BYTES))
    pairs = pa.StructArray.from_arrays([keys, values], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(np.arange(0, count * each + 1, each, dtype=np.int32)), pairs)
