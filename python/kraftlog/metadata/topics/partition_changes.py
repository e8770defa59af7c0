"""Numba kernel of PartitionChangeRecord, the most frequent record of a metadata log."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlog.compiled import part
from kraftlog.metadata.topics.hash_tables import look_up
from kraftlog.metadata.topics.lists import are_zero, has_elr, put_directories, put_ids
from kraftlog.metadata.topics.records import BAD_DIRECTORIES, BAD_RECOVERY_STATE, OF_CHANGE, UNKNOWN_PARTITION
from kraftlog.metadata.topics.slots import (
    DIRECTORIES,
    ISR,
    LEADER,
    LEADER_EPOCH,
    LEADER_RECOVERY_STATE,
    LENGTH,
    NONE,
    PARTITION_EPOCH,
    PARTITION_ID,
    PER_LIST,
    REPLICAS,
    START,
    WITH_ELR,
)

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
PLACED = 1 << REPLICAS | 1 << DIRECTORIES
REST = 0xFF ^ 1 << ISR
BLOCK = 256


@part
def change_rest(slots: Any, given: Any, row: Any, slot: Any) -> Any:
    """Change all fields but ISR and leader, which few records do; return the fault, 0 for none."""
    counts, state, ids, uuids = slots.counts, slots.state, slots.ids, slots.uuids
    id_ends, directories = given.id_ends, given.uuids
    recovery, lists = given.scalars[row, LEADER_RECOVERY_STATE], given.given[row]
    if recovery != NO_RECOVERY_CHANGE and recovery != 0 and recovery != 1:
        return BAD_RECOVERY_STATE
    if lists & PLACED:
        replicas = state[slot, PER_LIST * REPLICAS + LENGTH]
        if (lists >> REPLICAS) & 1:
            replicas = id_ends[REPLICAS, row + 1] - id_ends[REPLICAS, row]
        start = stop = 0
        placed = state[slot, PER_LIST * DIRECTORIES + LENGTH]
        if lists >> DIRECTORIES:
            start, stop = given.uuid_ends[row], given.uuid_ends[row + 1]
            placed = stop - start
            is_known = not are_zero(directories, start, stop)
        else:
            first_known = state[slot, PER_LIST * DIRECTORIES + START]
            is_known = not are_zero(uuids, first_known, first_known + placed)
        if placed > 0 and placed != replicas and (is_known or lists & PLACED == PLACED):
            return BAD_DIRECTORIES
        if lists >> DIRECTORIES or placed != replicas:
            # where no directory is known, as in logs of releases without them, each replica has MIGRATING
            stop = stop if is_known else start
            put_directories(state, counts, uuids, slot, directories, start, stop, replicas)
    counts[WITH_ELR] -= has_elr(state, slot)
    for name in range(REPLICAS, DIRECTORIES):
        if (lists >> name) & 1:
            put_ids(state, counts, ids, slot, name, given.ids, id_ends[name, row], id_ends[name, row + 1])
    counts[WITH_ELR] += has_elr(state, slot)
    if recovery != NO_RECOVERY_CHANGE:
        state[slot, LEADER_RECOVERY_STATE] = recovery
    return 0


@part
def change_partitions(slots: Any, given: Any, row: int, limit: int, faults: Any, count: int) -> tuple[int, int]:
    """Apply PartitionChangeRecords up to an offset, as ``PartitionRegistration.merge`` does.

    Returns the next row and how many faults there are.
    """
    state, offsets, changed, id_ends = slots.state, given.offsets, given.scalars, given.id_ends
    keys = np.empty((BLOCK, 2), np.int64)
    found, scratch = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    first = end = row
    while row < len(offsets) and offsets[row] <= limit:
        if row == end:
            first, end = row, row + 1
            while end < len(offsets) and end - first < BLOCK and offsets[end] <= limit:
                end += 1
            look_up(slots.topic_table, slots.topic_ids, given.topic_ids[first:end], found, scratch)
            for i in range(end - first):
                keys[i, 0] = found[i]
                keys[i, 1] = changed[first + i, PARTITION_ID]
            look_up(slots.table, state, keys[: end - first], found, scratch)
        slot, lists = found[row - first], given.given[row]
        fault = 0
        if slot == NONE:
            fault = UNKNOWN_PARTITION
        elif lists & REST or changed[row, LEADER_RECOVERY_STATE] != NO_RECOVERY_CHANGE:
            fault = change_rest(slots, given, row, slot)
        if fault:
            faults[count, 0] = OF_CHANGE
            faults[count, 1] = row
            faults[count, 2] = fault
            count += 1
        else:
            if (lists >> ISR) & 1:
                put_ids(state, slots.counts, slots.ids, slot, ISR, given.ids, id_ends[ISR, row], id_ends[ISR, row + 1])
            leader = changed[row, LEADER]
            state[slot, LEADER] = leader if leader != NO_LEADER_CHANGE else state[slot, LEADER]
            state[slot, LEADER_EPOCH] += np.int32(leader != NO_LEADER_CHANGE)
            state[slot, PARTITION_EPOCH] += 1
        row += 1
    return row, count
