"""Batch headers of a whole log in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import Scanner

HEADERS_AT_ONCE = 1 << 12


def parts(log: npt.NDArray[np.uint8]) -> Iterator[npt.NDArray[np.void]]:
    """Yield the headers of all batches, as many at a time as a reader might take."""
    scanner, more = Scanner(log, 0, log.nbytes, False), True
    while more:
        headers, more, fault = scanner.run(HEADERS_AT_ONCE)
        assert fault is None
        yield headers


def headers(log: npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    """Return the headers of all batches."""
    return np.concatenate(list(parts(log)))


def count_records(log: npt.NDArray[np.uint8]) -> int:
    """Return the sum of ``records_count``."""
    return sum(int(part["records_count"].sum()) for part in parts(log))
