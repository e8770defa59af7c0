"""What the cleaner leaves of a log in which each key comes twice on average: large batches, and those of one record."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import corpus
import kraftlog
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.write.log_cleaner import CleanOptions, LogCleaner
from rounds import Contender

CLEANED, SINGLES = "LogCleaner, 100 B", "LogCleaner, batches of one record"
BYTES_OF_A_RECORD = 124
ONE_RECORD = 200  # bytes of a batch, less than two records take
SMALLER = 10  # times; a batch takes longer than a record in it


def clean(megabytes: float) -> list[Contender]:
    """Return what stays of all segments but the last one; it is not written."""
    home = Path(tempfile.mkdtemp(prefix="kraftlog-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    records = int(megabytes * 1e6 / BYTES_OF_A_RECORD)
    return [
        _cleaner(CLEANED, home / "large" / "t-0", records, 1 << 20),
        _cleaner(SINGLES, home / "single" / "t-0", records // SMALLER, ONE_RECORD),
    ]


def _cleaner(name: str, folder: Path, records: int, max_batch_bytes: int) -> Contender:
    numbers = np.random.default_rng(corpus.SEED).integers(0, records // 2, records)
    keys = pa.array([b"k%012d" % number for number in numbers])
    rows = pa.table({"key": keys, "value": [b"v" * 100] * records})
    folder.mkdir(parents=True)
    log = kraftlog.encode(rows, max_batch_bytes=max_batch_bytes)
    (folder / f"{0:020d}.log").write_bytes(log)
    (folder / f"{records:020d}.log").write_bytes(b"")
    options = CleanOptions(now=0, delete_retention_ms=0, segment_bytes=log.size)

    def left() -> bytes:
        first, last = PartitionFolder.of(folder).segments
        cleaner = LogCleaner([first], [last], [], options)
        return b"".join(piece for group in cleaner.groups() for piece in cleaner.cleaned(group))

    def run() -> None:
        left()

    def check() -> None:
        kept = kraftlog.decode(left(), columns=["key"], strict=True).to_table()["key"]
        assert len(kept) == len(set(kept.to_pylist())) == len(np.unique(numbers))

    return Contender(name, run, log.size, log.size, check)
