"""Numba kernels over the slots of topics and partitions: compiled on first use, cached on disk.

``replay`` is Kafka's ``TopicsDelta``, record by record in the order of the log, over columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlog.compiled import compiled, part
from kraftlog.metadata.topics.hash_tables import entry, fill, slot_at, take_out
from kraftlog.metadata.topics.lists import has_elr, put_directories, put_ids
from kraftlog.metadata.topics.partition_changes import change_partitions
from kraftlog.metadata.topics.records import (
    BAD_DIRECTORIES,
    BAD_RECOVERY_STATE,
    EVERY_TOPIC,
    OF_CHANGE,
    OF_PARTITION,
    OF_REMOVAL,
    OF_TOPIC,
    UNKNOWN_TOPIC,
)
from kraftlog.metadata.topics.slots import (
    CAPACITY,
    DIRECTORIES,
    ELR,
    IDS_WASTE,
    LAST_KNOWN_ELR,
    LEADER,
    LEADER_RECOVERY_STATE,
    LENGTH,
    NEXT,
    NONE,
    PARTITION_EPOCH,
    PARTITION_ID,
    PARTITIONS,
    PARTITIONS_END,
    PARTITIONS_FREE,
    PER_LIST,
    REPLICAS,
    SCALARS_END,
    TOPIC_SLOT,
    TOPICS,
    TOPICS_END,
    TOPICS_FREE,
    UUIDS_WASTE,
    WIDTH,
    WITH_ELR,
)

LAST = np.iinfo(np.int64).max


@part
def drop_partitions(slots: Any, topic: Any) -> None:
    """Remove all partitions of a topic."""
    counts, state = slots.counts, slots.state
    slot = slots.topic_heads[topic]
    while slot != NONE:
        take_out(slots.table, entry(slots.table, state, topic, state[slot, PARTITION_ID]))
        counts[WITH_ELR] -= has_elr(state, slot)
        for name in range(DIRECTORIES):
            counts[IDS_WASTE] += state[slot, PER_LIST * name + CAPACITY]
        counts[UUIDS_WASTE] += state[slot, PER_LIST * DIRECTORIES + CAPACITY]
        following = state[slot, NEXT]
        for at in range(WIDTH):
            state[slot, at] = 0
        state[slot, TOPIC_SLOT] = NONE
        state[slot, NEXT] = counts[PARTITIONS_FREE]
        counts[PARTITIONS_FREE] = slot
        counts[PARTITIONS] -= 1
        slot = following
    slots.topic_heads[topic] = NONE


@part
def new_topic(slots: Any, at: Any, low: Any, high: Any) -> Any:
    """Return the slot of a topic that was not there."""
    counts = slots.counts
    slot = counts[TOPICS_FREE]
    if slot != NONE:
        counts[TOPICS_FREE] = slots.topic_heads[slot]
    else:
        slot = counts[TOPICS_END]
        counts[TOPICS_END] += 1
    counts[TOPICS] += 1
    slots.topic_ids[slot, 0] = low
    slots.topic_ids[slot, 1] = high
    slots.topic_heads[slot] = NONE
    fill(slots.topic_table, at, low, high, slot)
    return slot


@part
def new_partition(slots: Any, at: Any, topic: Any, partition: Any) -> Any:
    """Return the slot of a partition that was not there."""
    counts, state = slots.counts, slots.state
    slot = counts[PARTITIONS_FREE]
    if slot != NONE:
        counts[PARTITIONS_FREE] = state[slot, NEXT]
    else:
        slot = counts[PARTITIONS_END]
        counts[PARTITIONS_END] += 1
    counts[PARTITIONS] += 1
    state[slot, TOPIC_SLOT] = topic
    state[slot, PARTITION_ID] = partition
    state[slot, NEXT] = slots.topic_heads[topic]
    slots.topic_heads[topic] = slot
    fill(slots.table, at, topic, partition, slot)
    return slot


@part
def put_partitions(slots: Any, given: Any, row: int, limit: int, faults: Any, count: int) -> tuple[int, int]:
    """Apply PartitionRecords up to an offset; return the next row and how many faults there are."""
    counts, topic_ids, topic_table, state = slots.counts, slots.topic_ids, slots.topic_table, slots.state
    ids, uuids, table = slots.ids, slots.uuids, slots.table
    id_ends, uuid_ends, values, directories = given.id_ends, given.uuid_ends, given.ids, given.uuids
    while row < len(given.offsets) and given.offsets[row] <= limit:
        topic = slot_at(topic_table, entry(topic_table, topic_ids, given.topic_ids[row, 0], given.topic_ids[row, 1]))
        replicas = id_ends[REPLICAS, row + 1] - id_ends[REPLICAS, row]
        start = uuid_ends[row]
        stop = uuid_ends[row + 1] if given.given[row] >> DIRECTORIES else start
        recovery = given.scalars[row, LEADER_RECOVERY_STATE]
        fault = 0
        if topic == NONE:
            fault = UNKNOWN_TOPIC
        elif stop > start and stop - start != replicas:
            fault = BAD_DIRECTORIES
        elif recovery != 0 and recovery != 1:
            fault = BAD_RECOVERY_STATE
        else:
            partition = given.scalars[row, PARTITION_ID]
            at = entry(table, state, topic, partition)
            slot = slot_at(table, at)
            if slot == NONE:
                slot = new_partition(slots, at, topic, partition)
            counts[WITH_ELR] -= has_elr(state, slot)
            for name in range(DIRECTORIES):
                at = id_ends[name, row]
                end = id_ends[name, row + 1] if (given.given[row] >> name) & 1 else at
                put_ids(state, counts, ids, slot, name, values, at, end)
            put_directories(state, counts, uuids, slot, directories, start, stop, replicas)
            counts[WITH_ELR] += has_elr(state, slot)
            for name in range(LEADER, SCALARS_END):
                state[slot, name] = given.scalars[row, name]
        if fault:
            faults[count, 0] = OF_PARTITION
            faults[count, 1] = row
            faults[count, 2] = fault
            count += 1
        row += 1
    return row, count


@part
def clear_partition(slots: Any, slot: Any) -> None:
    """Empty the eligible leader replicas of a partition."""
    if has_elr(slots.state, slot):
        slots.state[slot, PER_LIST * ELR + LENGTH] = 0
        slots.state[slot, PER_LIST * LAST_KNOWN_ELR + LENGTH] = 0
        slots.state[slot, PARTITION_EPOCH] += 1
        slots.counts[WITH_ELR] -= 1


@part
def clear(slots: Any, name: Any, candidates: Any, count: Any) -> Any:
    """Apply a ClearElrRecord; return the fault, 0 for none."""
    if name == EVERY_TOPIC:
        if slots.counts[WITH_ELR]:
            for slot in range(slots.counts[PARTITIONS_END]):
                clear_partition(slots, slot)
        return 0
    fault = UNKNOWN_TOPIC
    for i in range(count):
        topic = candidates[i, 0]
        if candidates[i, 2] == name and slots.topic_names[topic] == candidates[i, 1]:
            fault = 0
            slot = slots.topic_heads[topic]
            while slot != NONE:
                clear_partition(slots, slot)
                slot = slots.state[slot, NEXT]
    return fault


@compiled
def replay(
    slots: Any,
    topics: Any,
    partitions: Any,
    changes: Any,
    clearings: Any,
    candidates_count: int,
    faults: Any,
    removed: Any,
) -> int:
    """Apply records in the order of their offsets.

    ``faults`` is filled with kind of record, row and fault, ``removed`` with the number of the name of each topic that
    a RemoveTopicRecord removes. Returns how many faults there are.
    """
    ids, table = slots.topic_ids, slots.topic_table
    count = 0
    rows = np.zeros(5, np.int64)
    offsets = (topics.offsets, topics.removal_offsets, partitions.offsets, changes.offsets, clearings.offsets)
    while True:
        kind, first, limit = NONE, LAST, LAST
        for other in range(5):
            if rows[other] < len(offsets[other]):
                offset = offsets[other][rows[other]]
                if kind == NONE or offset < first:
                    kind, first, limit = other, offset, first
                elif offset < limit:
                    limit = offset
        if kind == NONE:
            return count
        row = rows[kind]
        if kind == OF_CHANGE:
            rows[kind], count = change_partitions(slots, changes, row, limit, faults, count)
            continue
        if kind == OF_PARTITION:
            rows[kind], count = put_partitions(slots, partitions, row, limit, faults, count)
            continue
        fault = 0
        if kind == OF_TOPIC:
            low, high = topics.topic_ids[row, 0], topics.topic_ids[row, 1]
            at = entry(table, ids, low, high)
            topic = slot_at(table, at)
            if topic == NONE:
                topic = new_topic(slots, at, low, high)
            else:
                drop_partitions(slots, topic)
            slots.topic_names[topic] = topics.first_name + row
            if topics.cleared[row] != NONE:
                clearings.candidates[candidates_count, 0] = topic
                clearings.candidates[candidates_count, 1] = topics.first_name + row
                clearings.candidates[candidates_count, 2] = topics.cleared[row]
                candidates_count += 1
        elif kind == OF_REMOVAL:
            at = entry(table, ids, topics.removal_ids[row, 0], topics.removal_ids[row, 1])
            topic = slot_at(table, at)
            removed[row] = NONE
            if topic == NONE:
                fault = UNKNOWN_TOPIC
            else:
                removed[row] = slots.topic_names[topic]
                drop_partitions(slots, topic)
                take_out(table, at)
                slots.topic_names[topic] = NONE
                slots.topic_heads[topic] = slots.counts[TOPICS_FREE]
                slots.counts[TOPICS_FREE] = topic
                slots.counts[TOPICS] -= 1
        else:
            fault = clear(slots, clearings.names[row], clearings.candidates, candidates_count)
        if fault:
            faults[count, 0] = kind
            faults[count, 1] = row
            faults[count, 2] = fault
            count += 1
        rows[kind] += 1
