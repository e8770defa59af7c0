"""Readers of a log that is appended to, truncated, rolled and deleted meanwhile.

A process writes; others read in all ways, 10,000 times together with ``--all-cases``. Rows are in order or there is a
clear error, and no reader ends by a signal.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

READS, READS_OF_A_SAMPLE = 10_000, 400
READERS = 2

WRITER = """
import random, sys, time
from pathlib import Path
import pyarrow as pa
import kraftlog

folder, compression, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
random.seed(seed)
LARGEST = 400_000
epoch = 0

def data(offset, count):
    values = [b"%d:%d:" % (offset + i, epoch) + b"x" * random.randrange(2000) for i in range(count)]
    return kraftlog.encode(
        pa.table({"value": values}), base_offset=offset, compression=compression, max_batch_bytes=16384,
        partition_leader_epoch=epoch,
    )

def name(offset):
    return folder / f"{offset:020d}.log"

segments, sizes, following = [0], [(0, 0)], 0
name(0).touch()
print("ready", flush=True)
while not (folder.parent / "stop").exists():
    step = random.random()
    with name(segments[-1]).open("r+b") as file:
        if step < 0.7:
            file.seek(0, 2)
            count = random.randrange(1, 40)
            written = bytes(data(following, count))
            cut = random.randrange(len(written))
            file.write(written[:cut])  # a reader may see half of it
            file.flush()
            file.write(written[cut:])
            following += count
            sizes.append((file.tell(), following))
        elif step < 0.9 and len(sizes) > 1:  # a follower does that after an election
            epoch += 1
            del sizes[random.randrange(1, len(sizes)):]
            size, following = sizes[-1]
            file.truncate(size)
    if sizes[-1][0] > LARGEST or step > 0.98:
        segments.append(following)
        sizes = [(0, following)]
        name(following).touch()
        if segments[-1] == segments[-2]:
            segments.pop()
        while len(segments) > 3 and random.random() < 0.7:
            name(segments.pop(0)).unlink()
"""

READER = """
import collections, json, random, sys
from pathlib import Path
import kraftlog
from kraftlog.disk.local_file import LocalFile
from kraftlog.errors import RecordError

folder, reads, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
seen = collections.Counter()
LocalFile.window_bytes = 32 << 10  # files are small here

def in_order(rows):
    last, faults = -1, 0
    for batch in rows.batches():
        for offset, value in zip(batch["offset"].to_pylist(), batch["value"].to_pylist()):
            assert offset > last, (offset, last)
            last = offset
            assert value.startswith(b"%d:" % offset), (offset, value[:20])
    return rows.faults

def read(log, how):
    if how == "records":
        return in_order(log.records(["offset", "value"]))
    if how == "committed":
        return in_order(log.records(["offset", "value"], isolation_level="read_committed"))
    if how == "workers":
        return in_order(log.records(["offset", "value"], workers=2))
    if how == "bounds":
        return in_order(log.records(["offset", "value"], start_offset=random.randrange(2000)))
    if how == "batches":
        return [] if log.batches(faults=[]).num_rows >= 0 else []
    if how == "segments":
        return [] if log.segments(faults=[]).num_rows >= 0 else []
    if how == "strict":
        return in_order(log.records(["offset", "value"], strict=True))
    return [] if log.errors().num_rows >= 0 else []

for _ in range(reads):
    how = random.choice(["records", "committed", "workers", "bounds", "batches", "segments", "strict", "verify"])
    try:
        log = kraftlog.open(folder)
        for fault in read(log, how):
            seen[fault.error] += 1
            assert fault.message, fault
        seen["reads"] += 1
    except RecordError as error:
        assert how == "strict" and "orders-0/" in str(error), (how, error)
        seen["strict"] += 1
    except FileNotFoundError as error:
        seen["gone"] += 1
print(json.dumps(seen))
"""


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_reads_beside_a_writer(tmp_path: Path, compression: str, request: pytest.FixtureRequest):
    reads = READS if request.config.getoption("--all-cases") else READS_OF_A_SAMPLE
    folder = tmp_path / "orders-0"
    folder.mkdir()
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), compression, "1"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        each = reads // 2 // READERS
        readers = [
            subprocess.Popen(
                [sys.executable, "-c", READER, str(folder), str(each), str(seed)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for seed in range(READERS)
        ]
        answers = [reader.communicate(timeout=3000) for reader in readers]
        assert [(reader.returncode, errors[-2000:]) for reader, (_, errors) in zip(readers, answers, strict=True)] == [
            (0, "")
        ] * READERS
        seen = [json.loads(answer) for answer, _ in answers]
        assert sum(one["reads"] + one.get("strict", 0) + one.get("gone", 0) for one in seen) == reads // 2
    finally:
        (tmp_path / "stop").touch()
        assert writer.wait(60) == 0
