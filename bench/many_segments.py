"""Backups of very many small segments in an object store: the memory that each step takes, and of one segment more."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import kraftlog

PROBE = Path(__file__).resolve().with_name("backup_probe.py")
OF_PARTITION = 50  # segments
FEW = 10  # as many segments as this part of them, for what one more takes
CHANGED = 100  # one of so many partitions has new batches in a later backup
FIRST, LATER = "first", "later"
STEPS = (FIRST, LATER, "list", "show", "verify", "diff", "plan")


def measured(segments: int) -> dict[str, tuple[int, float]]:
    """Return the peak of anonymous memory in bytes of each step, and how much of it is of one segment."""
    few, many = (_peaks(count) for count in (segments // FEW, segments))
    more = segments - segments // FEW
    return {step: (many[step], (many[step] - few[step]) / more) for step in STEPS}


def _peaks(segments: int) -> dict[str, int]:
    home = Path(tempfile.mkdtemp(prefix="kraftlog-many-"))
    try:
        directory = _directory(home / "log", max(segments // OF_PARTITION, 1))
        peaks = {}
        for step in STEPS:
            if step == LATER:
                _append(directory)
            command = [sys.executable, PROBE, step, directory, home / "store"]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            peaks[step] = found["peak_memory"]
        return peaks
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _directory(directory: Path, partitions: int) -> Path:
    """Write a log directory; the files of its partitions are links to those of the first one."""
    with kraftlog.LogStore(directory) as store:
        store.create_topic("orders", partitions)
    first, *others = (directory / f"orders-{number}" for number in range(partitions))
    first.mkdir()
    data = kraftlog.encode(pa.table({"value": [b"v" * 100] * 2})).to_pybytes()
    for number in range(OF_PARTITION):
        batch = bytearray(data)
        kraftlog.rewrite_batches(batch, base_offset=2 * number)
        stem = first / f"{2 * number:020d}"
        stem.with_suffix(".log").write_bytes(batch)
        stem.with_suffix(".index").touch()
        stem.with_suffix(".timeindex").touch()
    names = [path.name for path in first.iterdir()]
    for other in others:
        other.mkdir()
        for name in names:
            (other / name).hardlink_to(first / name)
    return directory


def _append(directory: Path) -> None:
    """Append a batch to the last segment of some partitions."""
    last = 2 * (OF_PARTITION - 1)
    for folder in sorted(directory.glob("orders-*"))[::CHANGED]:
        path = folder / f"{last:020d}.log"
        data = path.read_bytes()
        batch = bytearray(data)
        kraftlog.rewrite_batches(batch, base_offset=last + 2)
        path.unlink()  # of the other partitions it stays
        path.write_bytes(data + batch)
