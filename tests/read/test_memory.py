"""Memory of a reader with several threads does not depend on how well the log was compressed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import kraftlog

MIB = 1 << 20
PLAIN_MIB = 320  # of each partition
READER = """
import sys
import kraftlog

def peak_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

log = kraftlog.open(sys.argv[1])
stream = log.records(["offset", "value"], workers=4)
before = peak_kib()
rows = plain = 0
for batch in stream.batches():
    rows += batch.num_rows
    plain += batch.column("value").nbytes
print(rows, plain, len(stream.faults), peak_kib() - before)
"""


def test_four_workers(tmp_path: Path):
    values = pa.chunked_array([pa.array([bytes(MIB)] * 8)] * (PLAIN_MIB // 8))
    data = kraftlog.encode(pa.table({"value": values}), compression="zstd", max_batch_bytes=8 * MIB)
    assert memoryview(data).nbytes < MIB
    for partition in range(4):
        folder = tmp_path / f"orders-{partition}"
        folder.mkdir()
        (folder / "00000000000000000000.log").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(tmp_path)], capture_output=True, text=True, timeout=300, check=True
    )
    rows, plain, faults, more_kib = map(int, done.stdout.split())
    assert (rows, faults) == (4 * PLAIN_MIB, 0)
    assert plain >= 4 * PLAIN_MIB * MIB
    assert more_kib < 320 << 10  # 64 MiB that wait, and of four threads and the reader a batch each, plain and as rows
