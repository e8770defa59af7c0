"""Numba kernels that find topics and partitions by hash: open addressing, with each entry near its home."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from kraftlog.metadata.partition_slots import LOW, NONE


@njit(inline="always")
def mixed(low: Any, high: Any) -> Any:
    """Return a hash."""
    value = np.uint64(low) ^ (np.uint64(high) * np.uint64(0x9E3779B97F4A7C15))
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((value ^ (value >> np.uint64(32))) >> np.uint64(1))


@njit(inline="always")
def key_of(topic: Any, partition: Any) -> Any:
    """Return the key of a partition of the topic in a slot."""
    return (np.int64(topic) << 32) | (np.int64(partition) & LOW)


@njit(inline="always")
def topic_entry(table: Any, ids: Any, low: Any, high: Any) -> Any:
    """Return the entry of a topic, or the empty one where it would be."""
    mask = len(table) - 1
    at = mixed(low, high) & mask
    while table[at] != NONE and (ids[table[at], 0] != low or ids[table[at], 1] != high):
        at = (at + 1) & mask
    return at


@njit(inline="always")
def entry(table: Any, key: Any) -> Any:
    """Return the entry of a partition, or the empty one where it would be."""
    mask = len(table) - 1
    at = mixed(key, 0) & mask
    while table[at, 0] != NONE and table[at, 0] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def topic_table(ids: Any, names: Any, end: int, size: int) -> Any:
    """Return the table of topics, of another size."""
    table = np.full(size, NONE, np.int32)
    for slot in range(end):
        if names[slot] != NONE:
            table[topic_entry(table, ids, ids[slot, 0], ids[slot, 1])] = slot
    return table


@njit(cache=True, nogil=True)
def partition_table(keys: Any, end: int, size: int) -> Any:
    """Return the table of partitions, of another size."""
    table = np.full((size, 2), NONE, np.int64)
    for slot in range(end):
        if keys[slot] != NONE:
            at = entry(table, keys[slot])
            table[at, 0] = keys[slot]
            table[at, 1] = slot
    return table


@njit
def take_topic_out(slots: Any, at: Any) -> None:
    """Empty an entry, and move what stands behind it where it can be found."""
    table, ids = slots.topic_table, slots.topic_ids
    mask = len(table) - 1
    behind = (at + 1) & mask
    while table[behind] != NONE:
        home = mixed(ids[table[behind], 0], ids[table[behind], 1]) & mask
        if ((behind - home) & mask) >= ((behind - at) & mask):
            table[at] = table[behind]
            at = behind
        behind = (behind + 1) & mask
    table[at] = NONE


@njit
def take_out(table: Any, at: Any) -> None:
    """Empty an entry, and move what stands behind it where it can be found."""
    mask = len(table) - 1
    behind = (at + 1) & mask
    while table[behind, 0] != NONE:
        home = mixed(table[behind, 0], 0) & mask
        if ((behind - home) & mask) >= ((behind - at) & mask):
            table[at, 0] = table[behind, 0]
            table[at, 1] = table[behind, 1]
            at = behind
        behind = (behind + 1) & mask
    table[at, 0] = NONE
