"""Backups: a first one beside cp, and one of many partitions of which few have new batches; all are on disk."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

import corpus
import kraftlog
from rounds import Contender

FIRST, CP = "a first backup", "cp, and sync"
FIRST_OF_MANY, LATER = "a first backup of many partitions", "a later one, 1 % is new"
SEGMENTS = 8  # in half as many partitions
CHANGED = 100  # one of so many partitions has new batches


def backup(megabytes: float, partitions: int = 1000) -> list[Contender]:
    """Back up some large partitions, and many small ones."""
    home = Path(tempfile.mkdtemp(prefix="kraftlog-backup-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return [*_large(home / "large", int(megabytes * 1e6)), *_many(home / "many", int(megabytes * 1e6), partitions)]


def _batches(size: int) -> bytes:
    """Return batches of records of 100 bytes, about so many bytes of them."""
    values = np.random.default_rng(corpus.SEED).bytes(100 * max(size // 108, 1))
    rows = [values[at : at + 100] for at in range(0, len(values), 100)]
    return kraftlog.encode(pa.table({"value": rows}), max_batch_bytes=64 << 10).to_pybytes()


def _moved(batches: bytes, base_offset: int) -> tuple[bytearray, int]:
    """Return batches that begin at an offset, and the offset at which they end."""
    moved = bytearray(batches)
    return moved, kraftlog.rewrite_batches(moved, base_offset=base_offset)


def _large(home: Path, size: int) -> list[Contender]:
    log, data = home / "log", _batches(size // SEGMENTS)
    _, end = _moved(data, 0)
    for number in range(SEGMENTS // 2):
        folder = log / f"orders-{number}"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(data)
        (folder / f"{end:020d}.log").write_bytes(_moved(data, end)[0])
    total = sum(path.stat().st_size for path in log.rglob("*.log"))
    numbers = count()

    def target() -> Path:
        """Return a new place; what was made before goes."""
        number = next(numbers)
        shutil.rmtree(home / f"copy-{number - 1}", ignore_errors=True)
        return home / f"copy-{number}"

    def stored() -> None:
        kraftlog.Repository(target()).backup(log)

    def copied() -> None:
        place = target()
        subprocess.run(["cp", "-r", str(log), str(place)], check=True)
        subprocess.run(["sync", *map(str, place.rglob("*.log"))], check=True)

    def check() -> None:
        repository = kraftlog.Repository(target())
        assert repository.backup(log).stored_size == total
        assert repository.verify(data=True) == []

    return [_waiting(Contender(FIRST, stored, total, total, check)), _waiting(Contender(CP, copied, total, total))]


def _many(home: Path, size: int, partitions: int) -> list[Contender]:
    log, data = home / "log", _batches(size // partitions)
    more = _batches(1000)
    ends = [_moved(data, 0)[1]] * partitions
    for number in range(partitions):
        folder = log / f"orders-{number}"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(data)
    total = partitions * len(data)
    repository = kraftlog.Repository(home / "kept")
    repository.backup(log)
    numbers, changed = count(), count()

    def first() -> None:
        number = next(numbers)
        shutil.rmtree(home / f"first-{number - 1}", ignore_errors=True)
        kraftlog.Repository(home / f"first-{number}").backup(log)

    def later() -> None:
        for _ in range(max(partitions // CHANGED, 1)):
            number = next(changed) % partitions
            batches, ends[number] = _moved(more, ends[number])
            with (log / f"orders-{number}" / f"{0:020d}.log").open("ab") as file:
                file.write(batches)
        repository.backup(log)

    return [
        _waiting(Contender(FIRST_OF_MANY, first, total, total)),
        _waiting(Contender(LATER, later, total, total, lambda: _check(repository))),
    ]


def _check(repository: kraftlog.Repository) -> None:
    assert repository.verify() == []


def _waiting(contender: Contender) -> Contender:
    contender.cpu_clock = None  # what counts is when it is on disk
    return contender
