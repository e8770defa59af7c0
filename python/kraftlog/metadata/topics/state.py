"""Topics and partitions of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native.topic_slots import LISTS, SCALARS, TopicSlots
from kraftlog.errors import Fault
from kraftlog.metadata import columns, schemas
from kraftlog.metadata.topics import batches as given
from kraftlog.metadata.topics.faults import topic_faults
from kraftlog.metadata.topics.names import Names
from kraftlog.metadata.topics.types import PARTITION, PARTITION_CHANGE, REMOVE_TOPIC, TOPIC, TYPES

Removed = tuple[npt.NDArray[np.int64], pa.Array]
NONE_REMOVED: Removed = np.empty(0, np.int64), pa.nulls(0, pa.string())
_LEAST = 1024
_NO_NAMES = pa.nulls(0, pa.string())
_NULL_WHEN_EMPTY = ("eligible_leader_replicas", "last_known_elr")


class TopicsState:
    """Topics by id, and their partitions.

    A copy shares everything until one of the two is given records.
    """

    def __init__(self) -> None:
        self._slots = TopicSlots()
        self._names = Names()
        self._is_shared = self._is_noting = False
        self._tables: dict[str, pa.Table] = {}

    def copy(self) -> TopicsState:
        """Return the same topics, without notes; changes of one of the two are not in the other."""
        copied = TopicsState()
        self._is_shared = copied._is_shared = True
        copied._slots, copied._names, copied._tables = self._slots, self._names, self._tables
        return copied

    def apply(self, batches: Mapping[str, pa.RecordBatch], faults: list[Fault]) -> Removed:
        """Apply the records of a chunk; return offsets and names of the topics that it removes."""
        concerned = {name: batches[name] for name in TYPES if name in batches and batches[name].num_rows}
        if not concerned:
            return NONE_REMOVED
        self._unshare()
        self._tables = {}
        created = schemas.column_of(concerned[TOPIC], TOPIC, "name") if TOPIC in concerned else _NO_NAMES
        clearings = given.clearings_of(concerned, self._slots, self._names, created)
        first_name, self._names = self._names.end, self._names.added(created)
        removals = given.ids_of(concerned, REMOVE_TOPIC)
        found, removed = self._slots.replay(
            given.ids_of(concerned, TOPIC),
            first_name,
            clearings.cleared,
            removals,
            given.partitions_of(concerned, PARTITION),
            given.partitions_of(concerned, PARTITION_CHANGE),
            clearings[:2],
            clearings.candidates,
            clearings.candidates_count,
        )
        faults.extend(topic_faults(found, concerned))
        known = removed >= 0
        gone = (removals[0][known], self._names.take(removed[known])) if known.any() else NONE_REMOVED
        self._drop_names()
        return gone

    def _unshare(self) -> None:
        if self._is_shared:
            self._slots, self._is_shared = self._slots.copy(), False
            if not self._is_noting:
                self._slots.begin_notes(is_noting=False)

    def begin_notes(self) -> None:
        """Note what records change from here on; what was noted is forgotten."""
        self._unshare()
        self._is_noting = False
        self._drop_names()
        self._is_noting = True
        self._slots.begin_notes()

    def changed(self) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
        """Return the topics and partitions that were noted as they were, and as they are; in any order.

        A topic is among them when one of its partitions is.
        """
        partitions: dict[tuple[int, int, int], tuple[int, bool]] = {}
        topics: dict[tuple[int, int], int] = {}
        for at, (low, high, partition, was_there, name) in enumerate(self._slots.notes()):
            if partition is None:
                topics.setdefault((low, high), name)
            else:
                partitions.setdefault((low, high, partition), (at, was_there))
        for low, high, _ in partitions:
            topics.setdefault((low, high), self._slots.name_of(low, high))
        were = [(key, at) for key, (at, was_there) in partitions.items() if was_there]
        keys = list(partitions)
        there, held = self._slots.partitions_at(keys)
        noted = self._slots.noted_partitions(np.array([at for _, at in were], np.int64))
        before = {
            TOPIC: self._named({key: name for key, name in topics.items() if name >= 0}),
            PARTITION: _partitions(noted, _ids([key[:2] for key, _ in were])),
        }
        names = {key: self._slots.name_of(*key) for key in topics}
        after = {
            TOPIC: self._named({key: name for key, name in names.items() if name >= 0}),
            PARTITION: _partitions(held, _ids([keys[at][:2] for at in there])),
        }
        return before, after

    def _named(self, topics: Mapping[tuple[int, int], int]) -> pa.Table:
        names = self._names.take(np.array(list(topics.values()), np.int64))
        rows = pa.table({"name": names, "topic_id": columns.uuid_array(_ids(list(topics)))})
        return _topics(rows.take(_order(rows)))

    def _drop_names(self) -> None:
        if self._is_noting:
            return
        if self._names.end > 2 * self._slots.counts[0] + _LEAST:
            topics, names, _ = self._slots.topics()
            self._names = Names((self._names.take(names),))
            self._slots.renumber_names(topics)

    @property
    def counts(self) -> tuple[int, int]:
        """How many topics and partitions there are."""
        return self._slots.counts

    def tables(self) -> dict[str, pa.Table]:
        """Return TopicRecord by name, and PartitionRecord in the order of the topics and by partition."""
        if not self._tables:
            numbers, names, ids = self._slots.topics()
            rows = pa.table({"name": self._names.take(names), "topic_id": columns.uuid_array(ids)})
            order = _order(rows)
            self._tables[TOPIC] = _topics(rows.take(order))
            held = self._slots.partitions(np.ascontiguousarray(numbers[order.to_numpy()]))
            self._tables[PARTITION] = _partitions(held, ids[np.searchsorted(numbers, held["topic"])])
        return dict(self._tables)


def _order(topics: pa.Table) -> pa.Array:
    """Return the order of an image's topics."""
    return pc.sort_indices(topics, [("name", "ascending"), ("topic_id", "ascending")])


def _topics(rows: pa.Table) -> pa.Table:
    columns_of = dict(zip(rows.column_names, rows.combine_chunks().columns, strict=True))
    return _table(TOPIC, columns_of, rows.num_rows)


def _ids(topics: Sequence[tuple[int, int]]) -> npt.NDArray[np.uint64]:
    return np.array(topics, np.uint64).reshape(-1, 2)


def _partitions(held: Mapping[str, Any], ids: npt.NDArray[np.uint64]) -> pa.Table:
    """Return partitions as PartitionRecords; the ids are those of their topics."""
    found: dict[str, pa.Array] = {"topic_id": columns.uuid_array(ids)}
    for name in SCALARS[2:]:
        found[name] = pa.array(held[name])
    for name in LISTS:
        ends, values = held[name]
        is_uuid = name == "directories"
        items = columns.uuid_array(values.view(np.uint64).reshape(-1, 2)) if is_uuid else pa.array(values)
        found[name] = columns.list_array(ends, items, empty_is_null=name in _NULL_WHEN_EMPTY)
    return _table(PARTITION, found, len(ids))


def _table(name: str, found: Mapping[str, pa.Array], count: int) -> pa.Table:
    schema = schemas.schema_of(name)
    arrays = [found[field.name] if field.name in found else pa.nulls(count, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
