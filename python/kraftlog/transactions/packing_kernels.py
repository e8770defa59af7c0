"""The packing plan as a loop that Numba compiles on first use. ``packing`` imports it if Numba is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog.transactions.packing_columns import FRAME

SHORT_DELTAS = 1 << 6  # offset deltas below this take one byte

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function on its first call; it runs without the interpreter lock.

    The machine code is cached next to the package, or in the user's cache. If neither is writable, each process
    compiles it.
    """
    njit: Any = numba.njit
    try:
        kernel: Function = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        kernel = njit(nogil=True)(function)
    return kernel


def inlined(function: Function) -> Function:
    """Compile a function inline into its compiled callers."""
    njit: Any = numba.njit
    kernel: Function = njit(inline="always")(function)
    return kernel


@inlined
def varint_size(value: int) -> int:
    """Return the length of the varint of a nonnegative number, without a branch: sizes are hard to predict."""
    return 1 + (value >= 1 << 6) + (value >= 1 << 13) + (value >= 1 << 20) + (value >= 1 << 27)


@inlined
def body_size(size: int) -> int:
    """Return the bytes of a record after its length; null (-1) takes as much as an empty value."""
    length = max(size, 0)
    return FRAME + varint_size(length) + length


@compiled
def plan(
    sizes: npt.NDArray[np.int64] | npt.NDArray[np.int32],
    max_batch_bytes: int,
    max_batch_records: int,
    counts: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Fill ``counts``; return the number of batches, and the first record that fits no batch (-1: all do)."""
    batches = 0
    count = 0
    room = 0
    for i in range(len(sizes)):
        size = np.int64(sizes[i])
        if size < -1 or size > max_batch_bytes:
            return batches, i
        shortest = body_size(int(size))
        first = taken = shortest + varint_size(shortest)
        if count >= SHORT_DELTAS:
            body = shortest + varint_size(count) - 1
            taken = body + varint_size(body)
        if taken > room or count == max_batch_records:
            counts[batches] = count
            batches += count > 0
            count = 0
            taken = first
            room = max_batch_bytes - RECORD_BATCH_OVERHEAD
            if taken > room:
                return batches, i
        room -= taken
        count += 1
    if count:
        counts[batches] = count
        batches += 1
    return batches, -1
