"""Numba kernels over the lists of partitions: each has a range of a pool, as long as the list ever was."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlog.compiled import compiled, inlined, part
from kraftlog.metadata.topics.slots import (
    CAPACITY,
    DIRECTORIES,
    ELR,
    IDS_END,
    IDS_WASTE,
    ISR,
    ISR_IDS,
    LAST_KNOWN_ELR,
    LENGTH,
    PER_LIST,
    SHORT,
    START,
    UUIDS_END,
    UUIDS_WASTE,
)


@inlined
def has_elr(state: Any, slot: Any) -> Any:
    """Whether a partition has eligible leader replicas."""
    return state[slot, PER_LIST * ELR + LENGTH] > 0 or state[slot, PER_LIST * LAST_KNOWN_ELR + LENGTH] > 0


@inlined
def place(state: Any, counts: Any, slot: Any, name: Any, length: Any, end: Any, waste: Any) -> Any:
    """Return where a list of so many items is to be written: in its place if it fits, else at the pool's end."""
    first = PER_LIST * name
    if length > state[slot, first + CAPACITY]:
        counts[waste] += state[slot, first + CAPACITY]
        state[slot, first + START] = counts[end]
        state[slot, first + CAPACITY] = length
        counts[end] += length
    state[slot, first + LENGTH] = length
    return state[slot, first + START]


@inlined
def put_ids(state: Any, counts: Any, pool: Any, slot: Any, name: Any, values: Any, start: Any, stop: Any) -> None:
    """Set one of the lists of broker ids; ``values`` has ``SHORT`` more, which are read and not used."""
    if name == ISR and state[slot, CAPACITY] == 0 and stop - start <= SHORT:
        state[slot, LENGTH] = stop - start
        for i in range(SHORT):  # a fixed count needs no branch prediction
            state[slot, ISR_IDS + i] = values[start + i]
    else:
        at = place(state, counts, slot, name, stop - start, IDS_END, IDS_WASTE)
        for i in range(stop - start):
            pool[at + i] = values[start + i]


@part
def put_directories(
    state: Any, counts: Any, pool: Any, slot: Any, values: Any, start: Any, stop: Any, replicas: Any
) -> None:
    """Set the directories; for none, each replica has Kafka's MIGRATING, which is zero."""
    length = stop - start if stop > start else replicas
    at = place(state, counts, slot, DIRECTORIES, length, UUIDS_END, UUIDS_WASTE)
    for i in range(length):
        pool[at + i, 0] = values[start + i, 0] if stop > start else np.uint64(0)
        pool[at + i, 1] = values[start + i, 1] if stop > start else np.uint64(0)


@part
def are_zero(uuids: Any, start: Any, stop: Any) -> Any:
    """Whether no directory is known, which Kafka calls MIGRATING."""
    known = np.uint64(0)
    for at in range(start, stop):
        known |= uuids[at, 0] | uuids[at, 1]
    return known == 0


@compiled
def move_lists(state: Any, end: int, ids: Any, uuids: Any, new_ids: Any, new_uuids: Any) -> tuple[int, int]:
    """Copy every list into new pools, one behind the other; return where they end."""
    ids_end = uuids_end = 0
    for slot in range(end):
        for name in range(DIRECTORIES + 1):
            first = PER_LIST * name
            start, length = state[slot, first + START], state[slot, first + LENGTH]
            if name == ISR and state[slot, CAPACITY] == 0:
                continue
            state[slot, first + CAPACITY] = length
            if name == DIRECTORIES:
                new_uuids[uuids_end : uuids_end + length] = uuids[start : start + length]
                state[slot, first + START] = uuids_end
                uuids_end += length
            else:
                new_ids[ids_end : ids_end + length] = ids[start : start + length]
                state[slot, first + START] = ids_end
                ids_end += length
    return ids_end, uuids_end


@compiled
def gather(state: Any, name: int, order: Any, pool: Any, items: Any, ends: Any) -> None:
    """Fill a column of lists, in an order of slots."""
    at = 0
    for i in range(len(order)):
        slot = order[i]
        start = state[slot, PER_LIST * name + START]
        length = state[slot, PER_LIST * name + LENGTH]
        is_in_row = name == ISR and state[slot, CAPACITY] == 0
        for item in range(length):
            if is_in_row:
                items[at + item] = state[slot, ISR_IDS + item]
            else:
                items[at + item] = pool[start + item]
        at += length
        ends[i + 1] = at
