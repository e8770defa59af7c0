"""Numba kernel of PartitionChangeRecord, of which a metadata log has most."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from kraftlog.metadata.partition_slots import (
    DIRECTORIES,
    ELR,
    ISR,
    LAST_KNOWN_ELR,
    LEADER,
    LEADER_EPOCH,
    LEADER_RECOVERY_STATE,
    LENGTH,
    NONE,
    PARTITION_EPOCH,
    REPLICAS,
    START,
    WITH_ELR,
)
from kraftlog.metadata.slot_lists import are_zero, has_elr, put_directories, put_ids
from kraftlog.metadata.slot_tables import entry, key_of, topic_entry
from kraftlog.metadata.topic_records import BAD_DIRECTORIES, BAD_RECOVERY_STATE, OF_CHANGE, UNKNOWN_PARTITION

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
PLACED = 1 << REPLICAS | 1 << DIRECTORIES
ELR_LISTS = 1 << ELR | 1 << LAST_KNOWN_ELR
ID_LISTS_GIVEN = (1 << DIRECTORIES) - 1
BLOCK = 256


@njit(nogil=True)
def find_slots(slots: Any, given: Any, row: int, end: int, found: Any) -> None:
    """Fill in the slots of the partitions of some records, and touch what will be needed of them.

    Nearly all of a change is waiting for memory; loads that do not depend on each other wait together.
    """
    topic_ids, topic_table, table, state, ids = slots.topic_ids, slots.topic_table, slots.table, slots.state, slots.ids
    given_ids, partitions = given.topic_ids, given.partitions
    for at in range(row, end):
        topic = topic_table[topic_entry(topic_table, topic_ids, given_ids[at, 0], given_ids[at, 1])]
        found[at - row, 0] = key_of(topic, partitions[at]) if topic != NONE else NONE
    for i in range(end - row):
        key = found[i, 0]
        if key != NONE:
            at = entry(table, key)
            found[i, 0] = table[at, 1] if table[at, 0] == key else NONE
    for i in range(end - row):
        found[i, 1] = state[max(found[i, 0], 0), START + ISR]
    for i in range(end - row):
        found[i, 1] = ids[found[i, 1]]


@njit(nogil=True)
def change_partitions(slots: Any, given: Any, row: int, limit: int, faults: Any, count: int) -> tuple[int, int]:
    """Apply PartitionChangeRecords up to an offset, as ``PartitionRegistration.merge`` does.

    Returns the next row and how many faults there are.
    """
    counts, state, ids, uuids = slots.counts, slots.state, slots.ids, slots.uuids
    id_ends, uuid_ends, values, directories = given.id_ends, given.uuid_ends, given.ids, given.uuids
    offsets, changed, lists_given = given.offsets, given.scalars, given.given
    found = np.empty((BLOCK, 2), np.int64)
    first = end = row
    while row < len(offsets) and offsets[row] <= limit:
        if row == end:
            first, end = row, row + 1
            while end < len(offsets) and end - first < BLOCK and offsets[end] <= limit:
                end += 1
            find_slots(slots, given, first, end, found)
        slot = found[row - first, 0]
        recovery, lists = changed[row, LEADER_RECOVERY_STATE], lists_given[row]
        fault = 0
        if slot == NONE:
            fault = UNKNOWN_PARTITION
        elif recovery != NO_RECOVERY_CHANGE and recovery != 0 and recovery != 1:
            fault = BAD_RECOVERY_STATE
        elif lists & PLACED:
            replicas = state[slot, LENGTH + REPLICAS]
            if lists & 1:
                replicas = id_ends[REPLICAS, row + 1] - id_ends[REPLICAS, row]
            start = stop = 0
            placed = state[slot, LENGTH + DIRECTORIES]
            if lists >> DIRECTORIES:
                start, stop = uuid_ends[row], uuid_ends[row + 1]
                placed = stop - start
                is_known = not are_zero(directories, start, stop)
            else:
                first_known = state[slot, START + DIRECTORIES]
                is_known = not are_zero(uuids, first_known, first_known + placed)
            if placed > 0 and placed != replicas and (is_known or lists & PLACED == PLACED):
                fault = BAD_DIRECTORIES
            elif lists >> DIRECTORIES or placed != replicas:
                # where no directory is known, as in logs of releases without them, each replica has MIGRATING
                stop = stop if is_known else start
                put_directories(state, counts, uuids, slot, directories, start, stop, replicas)
        if fault:
            faults[count, 0] = OF_CHANGE
            faults[count, 1] = row
            faults[count, 2] = fault
            count += 1
        else:
            if lists & ELR_LISTS:
                counts[WITH_ELR] -= has_elr(state, slot)
            if lists & ID_LISTS_GIVEN:
                for name in range(DIRECTORIES):
                    if (lists >> name) & 1:
                        put_ids(state, counts, ids, slot, name, values, id_ends[name, row], id_ends[name, row + 1])
            if lists & ELR_LISTS:
                counts[WITH_ELR] += has_elr(state, slot)
            if recovery != NO_RECOVERY_CHANGE:
                state[slot, LEADER_RECOVERY_STATE] = recovery
            if changed[row, LEADER] != NO_LEADER_CHANGE:
                state[slot, LEADER] = changed[row, LEADER]
                state[slot, LEADER_EPOCH] += 1
            state[slot, PARTITION_EPOCH] += 1
        row += 1
    return row, count
