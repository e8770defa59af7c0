"""How much memory is asked for follows from the input, not from what it says of itself, and not from the options."""

from __future__ import annotations

import subprocess
import sys

import cramjam
import pytest
from reference import Record, encode_batch

from kraftlog._native import decoder as native
from kraftlog.codec.compression import decompressor

MIB = 1 << 20
PLAIN = 64 * MIB
BATCH = encode_batch([Record(0, 5, b"12345678", bytes(100))])

HOLDER = """
import sys
import pyarrow as pa
import kraftlog

def kib():
    with open("/proc/self/status") as file:
        sizes = dict(line.split(":", 1) for line in file)
    return {name: int(sizes[name].split()[0]) for name in ("VmRSS", "VmSize")}

data = bytes.fromhex(sys.argv[1])
columns = sys.argv[2].split(",") if sys.argv[2] else None
kraftlog.decode(data, columns=columns).to_table()
before = kib()
largest = {"batch_rows": 2**31 - 2, "batch_bytes": 512 << 20}
held = [kraftlog.decode(data, columns=columns, **largest).to_table() for _ in range(500)]
after = kib()
print(sum(table.num_rows for table in held), *(after[name] - before[name] for name in before))
"""


DROPPER = """
import sys
import pyarrow as pa
import kraftlog

def mib():
    with open("/proc/self/smaps_rollup") as file:
        sizes = dict(line.split(":", 1) for line in file if line.endswith("kB\\n"))
    return [int(sizes[name].split()[0]) >> 10 for name in ("Anonymous", "LazyFree")]

rows = pa.table({"key": [b"12345678"] * 100_000, "value": [bytes(1000)] * 100_000})
parts = [kraftlog.encode(rows) for _ in range(6)]
data = b"".join(part.to_pybytes() for part in parts)
del rows, parts
before, _ = mib()
for _ in range(2):
    table = kraftlog.decode(data).to_table()
    size = table.nbytes >> 20
    del table
    buffer = kraftlog.encode(kraftlog.decode(data[: len(data) // 2], columns=["value"]).to_table())
    del buffer
after, offered = mib()
print(size, after - before, offered)
"""


def held_by(data: bytes, columns: str) -> tuple[int, int, int]:
    """Rows of 500 tables, and the KiB of memory and of address space that they take."""
    command = [sys.executable, "-c", HOLDER, data.hex(), columns]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    rows, resident, addresses = map(int, done.stdout.split())
    return rows, resident, addresses


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("columns", ["", "key,value,offset,timestamp", "offset,position,timestamp_ms"])
def test_small_tables_that_are_held(columns: str):
    rows, resident, addresses = held_by(BATCH, columns)
    assert rows == 500
    assert resident < 500 * 64
    assert addresses < 64 << 10


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_small_compressed_tables_that_are_held():
    batch = encode_batch([Record(0, 5, None, bytes(1000))] * 10, attributes=4, compress=cramjam.zstd.compress)
    rows, resident, _ = held_by(batch, "")
    assert rows == 5000
    assert resident < 500 * 128


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_little_is_held_when_large_tables_are_dropped():
    """128 MiB; the rest, which is bounded as well, is the system's to take."""
    done = subprocess.run([sys.executable, "-c", DROPPER], capture_output=True, text=True, timeout=300, check=True)
    size, kept, offered = map(int, done.stdout.split())
    assert size > 550
    assert kept < 128 + 384 + 64
    assert kept - offered < 128 + 64


@pytest.mark.parametrize("records", [1, 2**31 - 1])
def test_a_large_batch_takes_a_few_times_its_size(records: int):
    """Room for the value, for keys and for headers that may grow; not for a header of a batch per record."""
    batch = bytearray(encode_batch([Record(0, 0, None, bytes(PLAIN))], attributes=4, compress=cramjam.zstd.compress))
    batch[57:61] = records.to_bytes(4, "big")
    decoder = decoder_of(bytes(batch), chunk_rows=100, chunk_bytes=1000)
    assert decoder.run() == native.END
    chunk = decoder.take_chunk()
    assert chunk.rows == 1
    assert chunk.capacity // PLAIN <= (11 if records == 1 else 20)


def test_one_record_takes_a_few_kilobytes():
    decoder = decoder_of(BATCH, chunk_rows=1 << 16, chunk_bytes=2 << 20)
    assert decoder.run() == native.END
    assert decoder.take_chunk().capacity <= 8 << 10
    assert decoder.take_chunk() is None


def decoder_of(data: bytes, *, chunk_rows: int, chunk_bytes: int) -> native.Decoder:
    rules = native.Rules(
        sum(native.WANT.values()),
        check_crc=False,
        include_control=False,
        strict=False,
        salvage=False,
        start_offset=0,
        end_offset=10,
        start_timestamp=0,
    )
    return native.Decoder(data, 0, len(data), rules, chunk_rows, chunk_bytes, decompressor(2 * PLAIN))
