"""Logs and units that the suites share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import corpus

MEGABYTES = 20  # of a log before compression
SIZES = ([20, 100, 1000], [8, 64])
SIZE_NAMES = ("value_bytes", "batch_kib")
CODECS = ["gzip", "snappy", "lz4", "zstd"]
COLUMNS = ("key", "value", "offset", "timestamp")
REPEATS = 5


def log(value_bytes: int, batch_kib: int, **options: object) -> Path:
    """Return a log file of 20 MB before compression."""
    return corpus.path(corpus.Workload(value_bytes, batch_kib, **options), MEGABYTES)


def plain_bytes() -> int:
    """Return the bytes of such a log before compression."""
    return MEGABYTES * corpus.MB


def speed(work: Callable[[], object], size: int) -> float:
    """Return bytes a second of the fastest of a few runs."""
    work()
    seconds = []
    for _ in range(REPEATS):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return size / min(seconds)
