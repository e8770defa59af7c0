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
    PARTITION_ID,
    PER_LIST,
    REPLICAS,
    START,
    TOPIC_SLOT,
    WITH_ELR,
)
from kraftlog.metadata.slot_lists import are_zero, has_elr, put_directories, put_ids
from kraftlog.metadata.slot_tables import entry, home
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
    given_ids, scalars = given.topic_ids, given.scalars
    for i in range(end - row):
        topic = topic_table[entry(topic_table, topic_ids, given_ids[row + i, 0], given_ids[row + i, 1])]
        found[i, 0] = topic
        found[i, 1] = table[home(table, topic, scalars[row + i, PARTITION_ID])]
    for i in range(end - row):
        found[i, 1] = state[max(found[i, 1], 0), TOPIC_SLOT]
    for i in range(end - row):
        if found[i, 0] != NONE:
            found[i, 0] = table[entry(table, state, found[i, 0], scalars[row + i, PARTITION_ID])]
        found[i, 1] = ids[state[max(found[i, 0], 0), PER_LIST * ISR + START]]


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
            replicas = state[slot, PER_LIST * REPLICAS + LENGTH]
            if lists & 1:
                replicas = id_ends[REPLICAS, row + 1] - id_ends[REPLICAS, row]
            start = stop = 0
            placed = state[slot, PER_LIST * DIRECTORIES + LENGTH]
            if lists >> DIRECTORIES:
                start, stop = uuid_ends[row], uuid_ends[row + 1]
                placed = stop - start
                is_known = not are_zero(directories, start, stop)
            else:
                first_known = state[slot, PER_LIST * DIRECTORIES + START]
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
