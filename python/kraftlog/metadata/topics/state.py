"""Topics and partitions of an image."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.errors import Fault
from kraftlog.metadata import columns, schemas
from kraftlog.metadata.topics import batches as given
from kraftlog.metadata.topics.faults import topic_faults
from kraftlog.metadata.topics.records import CLEAR_ELR, PARTITION, PARTITION_CHANGE, REMOVE_TOPIC, TOPIC, TYPES, Topics
from kraftlog.metadata.topics.slots import (
    DIRECTORIES,
    ELR,
    ID_LISTS,
    LENGTH,
    PARTITION_ID,
    PER_LIST,
    SCALARS,
    TOPIC_SLOT,
    TOPICS,
    Slots,
    no_slots,
)

Removed = tuple[npt.NDArray[np.int64], pa.Array]
NONE_REMOVED: Removed = np.empty(0, np.int64), pa.nulls(0, pa.string())
_LEAST = 1024


class TopicsState:
    """Topics by id, and their partitions.

    A copy shares everything until one of the two is given records.
    """

    def __init__(self) -> None:
        self._slots = no_slots()
        self._names = given.Names()
        self._is_shared = False
        self._tables: dict[str, pa.Table] = {}

    def copy(self) -> TopicsState:
        """Return the same topics; changes of one of the two are not in the other."""
        copied = TopicsState()
        self._is_shared = copied._is_shared = True
        copied._slots, copied._names, copied._tables = self._slots, self._names, self._tables
        return copied

    def apply(self, batches: Mapping[str, pa.RecordBatch], faults: list[Fault]) -> Removed:
        """Apply the records of a chunk; return offsets and names of the topics that it removes."""
        concerned = {name: batches[name] for name in TYPES if name in batches and batches[name].num_rows}
        if not concerned:
            return NONE_REMOVED
        from kraftlog.metadata.topics.replay import replay
        from kraftlog.metadata.topics.room import with_room

        if self._is_shared:
            self._slots, self._is_shared = self._slots.copy(), False
        self._tables = {}
        created = pa.array([], pa.string())
        if TOPIC in concerned:
            created = schemas.column_of(concerned[TOPIC], TOPIC, "name")
        partitions, ids, uuids = given.partitions_of(concerned.get(PARTITION), PARTITION)
        changes, more_ids, more_uuids = given.partitions_of(concerned.get(PARTITION_CHANGE), PARTITION_CHANGE)
        count = concerned[PARTITION].num_rows if PARTITION in concerned else 0
        self._slots = with_room(self._slots, len(created), count, ids + more_ids, uuids + more_uuids)
        clearings, candidates, cleared = given.clearings_of(concerned.get(CLEAR_ELR), self._slots, self._names, created)
        topics = Topics(
            given.offsets_or_none(concerned, TOPIC),
            given.uuids_or_none(concerned, TOPIC),
            self._names.end,
            cleared,
            given.offsets_or_none(concerned, REMOVE_TOPIC),
            given.uuids_or_none(concerned, REMOVE_TOPIC),
        )
        self._names = self._names.added(created)
        found = np.empty((sum(batch.num_rows for batch in concerned.values()), 3), np.int64)
        removed = np.empty(len(topics.removal_offsets), np.int64)
        faulty = replay(self._slots, topics, partitions, changes, clearings, candidates, found, removed)
        faults.extend(topic_faults(found[:faulty], concerned))
        known = removed >= 0
        removals = NONE_REMOVED
        if known.any():
            removals = topics.removal_offsets[known], self._names.take(removed[known])
        self._drop_names()
        return removals

    def _drop_names(self) -> None:
        live = int(self._slots.counts[TOPICS])
        if self._names.end > 2 * live + _LEAST:
            slots = self._slots.topic_slots()
            self._names = given.Names((self._names.take(self._slots.topic_names[slots]),))
            self._slots.topic_names[slots] = np.arange(len(slots))

    @property
    def counts(self) -> tuple[int, int]:
        """How many topics and partitions there are."""
        return int(self._slots.counts[TOPICS]), len(self._slots.partition_slots())

    def tables(self) -> dict[str, pa.Table]:
        """Return TopicRecord by name, and PartitionRecord in the order of the topics and by partition."""
        if not self._tables:
            slots = self._slots.topic_slots()
            names = self._names.take(self._slots.topic_names[slots])
            ids = columns.uuid_array(self._slots.topic_ids[slots])
            rows = pa.table({"name": names, "topic_id": ids})
            order = pc.sort_indices(rows, [("name", "ascending"), ("topic_id", "ascending")])
            ranks = np.zeros(len(self._slots.topic_names), np.int64)
            ranks[slots[order.to_numpy()]] = np.arange(len(order))
            found = {"name": names.take(order), "topic_id": ids.take(order)}
            self._tables[TOPIC] = _table(TOPIC, found, len(order))
            self._tables[PARTITION] = _partitions(self._slots, ranks)
        return dict(self._tables)


def _partitions(slots: Slots, ranks: npt.NDArray[np.int64]) -> pa.Table:
    from kraftlog.metadata.topics.lists import gather

    live = slots.partition_slots()
    topics, numbers = slots.state[live, TOPIC_SLOT], slots.state[live, PARTITION_ID].view(np.uint32)
    order = np.argsort((ranks[topics] << 32) | numbers, kind="stable")
    live, topics = live[order], topics[order]
    found: dict[str, pa.Array] = {"topic_id": columns.uuid_array(slots.topic_ids[topics])}
    for name, at in SCALARS.items():
        wanted = schemas.schema_of(PARTITION).field(name).type
        found[name] = pa.array(slots.state[live, at]).cast(wanted)
    ends = np.zeros(len(live) + 1, np.int32)
    for at, name in enumerate(ID_LISTS):
        ids = np.empty(int(slots.state[live, PER_LIST * at + LENGTH].sum()), np.int32)
        gather(slots.state, at, live, slots.ids, ids, ends)
        found[name] = columns.list_array(ends.copy(), pa.array(ids), empty_is_null=at >= ELR)
    uuids = np.empty((int(slots.state[live, PER_LIST * DIRECTORIES + LENGTH].sum()), 2), np.uint64)
    gather(slots.state, DIRECTORIES, live, slots.uuids, uuids, ends)
    found["directories"] = columns.list_array(ends, columns.uuid_array(uuids))
    return _table(PARTITION, found, len(live))


def _table(name: str, found: dict[str, pa.Array], count: int) -> pa.Table:
    schema = schemas.schema_of(name)
    arrays = [found[field.name] if field.name in found else pa.nulls(count, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
