"""Batch headers of a whole log in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import Scanner

HEADERS_AT_ONCE = 1 << 16  # as kraftlog's own readers


def parts(log: npt.NDArray[np.uint8]) -> Iterator[npt.NDArray[np.void]]:
    """Yield the headers of all batches, as many at a time as a reader takes."""
    scanner, more = Scanner(log, 0, log.nbytes, False), True
    while more:
        headers, more, fault = scanner.run(HEADERS_AT_ONCE)
        assert fault is None
        yield headers


def headers(log: npt.NDArray[np.uint8]) -> npt.NDArray[np.void]:
    """Return the headers of all batches."""
    return np.concatenate(list(parts(log)))


def count_batches(log: npt.NDArray[np.uint8]) -> int:
    """Read all headers and keep none."""
    return sum(len(part) for part in parts(log))
