"""Numba kernels that find topics and partitions by hash: open addressing, with each entry near its home.

The upper half of an entry is the hash, the lower half a slot, so that rows of other keys are rarely loaded. A row
begins with its key, two numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kraftlog.compiled import compiled, inlined, part
from kraftlog.metadata.topics.slots import NONE


@inlined
def hashed(low: Any, high: Any) -> Any:
    """Return the hash of a key, in 31 bits."""
    value = np.uint64(low) ^ (np.uint64(high) * np.uint64(0x9E3779B97F4A7C15))
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((value ^ (value >> np.uint64(32))) >> np.uint64(33))


@inlined
def slot_at(table: Any, at: Any) -> Any:
    """Return the slot of an entry; -1 for an empty one."""
    return np.int64(np.int32(table[at]))


@part
def entry(table: Any, rows: Any, low: Any, high: Any) -> Any:
    """Return the entry of a key, or the empty one where it would be."""
    mask = len(table) - 1
    key = hashed(low, high)
    at = key & mask
    while table[at] != NONE:
        if table[at] >> 32 == key:
            slot = slot_at(table, at)
            if rows[slot, 0] == low and rows[slot, 1] == high:
                break
        at = (at + 1) & mask
    return at


@part
def fill(table: Any, at: Any, low: Any, high: Any, slot: Any) -> None:
    """Put a slot in the empty entry of its key."""
    table[at] = (hashed(low, high) << 32) | slot


@part
def take_out(table: Any, at: Any) -> None:
    """Empty an entry, and move what stands behind it where it can be found."""
    mask = len(table) - 1
    behind = (at + 1) & mask
    while table[behind] != NONE:
        home = (table[behind] >> 32) & mask
        if ((behind - home) & mask) >= ((behind - at) & mask):
            table[at] = table[behind]
            at = behind
        behind = (behind + 1) & mask
    table[at] = NONE


@part
def look_up(table: Any, rows: Any, keys: Any, slots: Any, scratch: Any) -> None:
    """Fill in the slots of keys, -1 for those that are not there, and bring their rows near.

    Nearly all the time is spent on loads from memory. Independent loads overlap when there is little work between them
    and no branch is mispredicted, so the first two entries are tried without a branch.
    """
    mask = len(table) - 1
    for i in range(len(keys)):
        scratch[i] = hashed(keys[i, 0], keys[i, 1])
        slots[i] = table[scratch[i] & mask]
    for i in range(len(keys)):
        key = scratch[i]
        at = key & mask
        at = (at + np.int64(table[at] >> 32 != key)) & mask
        while table[at] != NONE and table[at] >> 32 != key:
            at = (at + 1) & mask
        slots[i] = slot_at(table, at)
    for i in range(len(keys)):
        scratch[i] = np.int64(rows[max(slots[i], 0), 0])
    for i in range(len(keys)):
        slot = slots[i]
        if slot != NONE and (rows[slot, 0] != keys[i, 0] or rows[slot, 1] != keys[i, 1]):
            slots[i] = slot_at(table, entry(table, rows, keys[i, 0], keys[i, 1]))


@compiled
def move_entries(table: Any, found: Any) -> None:
    """Put what is in a table into one of another size."""
    mask = len(found) - 1
    for one in table:
        if one != NONE:
            at = (one >> 32) & mask
            while found[at] != NONE:
                at = (at + 1) & mask
            found[at] = one


def resized(table: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Return a table of so many entries, with what is in another."""
    found = np.full(size, NONE, np.int64)
    move_entries(table, found)
    return found
