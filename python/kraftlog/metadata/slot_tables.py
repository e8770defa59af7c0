"""Numba kernels that find topics and partitions by hash: open addressing, with each entry near its home.

A table has slots; what they are the slots of has its key, two numbers, at the beginning of its row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from kraftlog.metadata.partition_slots import NONE


@njit(inline="always")
def home(table: Any, low: Any, high: Any) -> Any:
    """Return where a key is looked for first."""
    value = np.uint64(low) ^ (np.uint64(high) * np.uint64(0x9E3779B97F4A7C15))
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((value ^ (value >> np.uint64(32))) >> np.uint64(1)) & (len(table) - 1)


@njit(inline="always")
def entry(table: Any, rows: Any, low: Any, high: Any) -> Any:
    """Return the entry of a key, or the empty one where it would be."""
    mask = len(table) - 1
    at = home(table, low, high)
    while table[at] != NONE and (rows[table[at], 0] != low or rows[table[at], 1] != high):
        at = (at + 1) & mask
    return at


@njit
def take_out(table: Any, rows: Any, at: Any) -> None:
    """Empty an entry, and move what stands behind it where it can be found."""
    mask = len(table) - 1
    behind = (at + 1) & mask
    while table[behind] != NONE:
        first = home(table, rows[table[behind], 0], rows[table[behind], 1])
        if ((behind - first) & mask) >= ((behind - at) & mask):
            table[at] = table[behind]
            at = behind
        behind = (behind + 1) & mask
    table[at] = NONE


@njit(cache=True, nogil=True)
def table_of(rows: Any, slots: Any, size: int) -> Any:
    """Return a table of so many entries."""
    table = np.full(size, NONE, np.int32)
    for slot in slots:
        table[entry(table, rows, rows[slot, 0], rows[slot, 1])] = slot
    return table
