"""What may be decoded, who owns what is decoded, and threads."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN

SEGMENT = GOLDEN / "codecs" / "log" / "codec-none-0" / "00000000000000000000.log"
DATA = SEGMENT.read_bytes()
EXPECTED = kraftlog.decode(DATA).to_table()


def test_any_contiguous_buffer():
    with SEGMENT.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    buffers = [
        bytearray(DATA),
        memoryview(DATA),
        mapped,
        pa.py_buffer(DATA),
        np.frombuffer(DATA, np.uint8),
        np.frombuffer(DATA, np.int8),
        np.frombuffer(DATA[: len(DATA) // 8 * 8] + b"", np.int64) if len(DATA) % 8 == 0 else array("B", DATA),
    ]
    for buffer in buffers:
        assert kraftlog.decode(buffer).to_table().equals(EXPECTED)
        assert kraftlog.crc32c(buffer) == kraftlog.crc32c(DATA)


def test_other_buffers_are_refused():
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        kraftlog.decode(np.zeros((10, 10), np.uint8)[:, ::2]).to_table()
    with pytest.raises(TypeError):
        kraftlog.decode("text").to_table()


def test_batches_own_their_memory():
    """Chunks are used again for later batches, never those that somebody still looks at."""
    copy = bytearray(DATA)
    kept = list(kraftlog.decode(copy, batch_rows=16, batch_bytes=2000).batches())
    copy[:] = bytes(len(copy))
    del copy
    for _ in range(20):
        kraftlog.decode(DATA[::-1], batch_rows=16, batch_bytes=2000).to_table()
        kraftlog.decode(DATA, batch_rows=16, batch_bytes=2000).to_table()
    gc.collect()
    assert pa.Table.from_batches(kept).equals(EXPECTED)


def test_a_column_outlives_its_batch():
    column = next(kraftlog.decode(DATA).batches()).column("value")
    gc.collect()
    for _ in range(5):
        kraftlog.decode(DATA).to_table()
    assert column.equals(EXPECTED["value"].combine_chunks().slice(0, len(column)))


def test_encoded_bytes_outlive_the_encoder():
    encoder = kraftlog.Encoder(max_batch_bytes=4096)
    taken = []
    for batch in EXPECTED.to_batches(max_chunksize=50):
        encoder.write(batch.drop_columns(["offset", "timestamp_type"]))
        taken.append(encoder.take())
    taken.append(encoder.finish())
    data = b"".join(taken)
    assert (
        data == kraftlog.encode(EXPECTED.drop_columns(["offset", "timestamp_type"]), max_batch_bytes=4096).to_pybytes()
    )
    assert kraftlog.decode(data, strict=True).to_table().drop_columns("offset").equals(EXPECTED.drop_columns("offset"))


def test_threads():
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda _: kraftlog.decode(DATA, batch_rows=64).to_table(), range(40)))
    assert all(table.equals(EXPECTED) for table in tables)


def test_stream_is_an_arrow_stream():
    stream = kraftlog.decode(DATA)
    assert pa.table(stream).equals(EXPECTED)
    assert stream.to_reader().read_all().equals(EXPECTED)


def test_no_columns():
    assert sum(batch.num_rows for batch in kraftlog.decode(DATA, columns=[]).batches()) == EXPECTED.num_rows


def test_log_of_this_test_is_not_empty():
    assert EXPECTED.num_rows > 100
    assert Path(SEGMENT).stat().st_size == len(DATA)


LEFT_BEHIND = """
import gc, sys
import kraftlog
from kraftlog._native.memory import Input

class Node:
    pass

def leave(make):
    view = memoryview(bytearray(data))
    made = make(view)
    node = Node()
    node.own, node.view, node.made = node, view, made

data = open(sys.argv[1], "rb").read()
for make in (Input, kraftlog.decode, lambda view: next(kraftlog.decode(view).batches()), kraftlog.records):
    for _ in range(5):
        leave(make)
        gc.collect()
"""


def test_a_memoryview_in_a_cycle():
    """CPython before 3.12.7 takes the memory of a memoryview away while another object uses it (gh-77894)."""
    done = subprocess.run([sys.executable, "-c", LEFT_BEHIND, SEGMENT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
