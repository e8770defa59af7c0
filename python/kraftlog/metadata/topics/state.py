"""Topics and partitions of an image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native.topic_slots import TopicSlots
from kraftlog.errors import Fault
from kraftlog.metadata import columns, schemas
from kraftlog.metadata.changed import ONE_GROUP, Changed, Groups
from kraftlog.metadata.topics import batches as given
from kraftlog.metadata.topics.faults import topic_faults
from kraftlog.metadata.topics.names import Names
from kraftlog.metadata.topics.noted import changed_topics
from kraftlog.metadata.topics.tables import partition_table, topic_table
from kraftlog.metadata.topics.types import PARTITION, PARTITION_CHANGE, REMOVE_TOPIC, TOPIC, TYPES

Removed = tuple[npt.NDArray[np.int64], pa.Array]
NONE_REMOVED: Removed = np.empty(0, np.int64), pa.nulls(0, pa.string())
_LEAST = 1024
_NO_NAMES = pa.nulls(0, pa.string())


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

    def apply(self, batches: Mapping[str, pa.RecordBatch], faults: list[Fault], groups: Groups = ONE_GROUP) -> Removed:
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
        native_faults, removed = self._slots.replay(
            given.ids_of(concerned, TOPIC),
            first_name,
            clearings.cleared,
            removals,
            given.partitions_of(concerned, PARTITION),
            given.partitions_of(concerned, PARTITION_CHANGE),
            clearings[:2],
            clearings.candidates,
            clearings.candidates_count,
            groups,
        )
        self._tables = {}
        faults.extend(topic_faults(native_faults, concerned))
        has_name = removed >= 0
        removals_of_names = (
            (removals[0][has_name], self._names.take(removed[has_name])) if has_name.any() else NONE_REMOVED
        )
        self._drop_names()
        return removals_of_names

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

    def take_changes(self) -> dict[str, Changed]:
        """Return what was noted of topics and of partitions, and forget it."""
        changes = changed_topics(self._slots, self._names)
        self.begin_notes()
        return changes

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
        tables = self._tables  # another thread that applies records begins with new ones
        if not tables:
            ((topics, partitions),) = self.pieces(max(1, self.counts[0]))
            tables |= {TOPIC: topics, PARTITION: partitions}
        return dict(tables)

    def pieces(self, topics_at_once: int) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Return TopicRecord and PartitionRecord as ``tables`` does, of so many topics at a time."""
        numbers, names, ids = self._slots.topics()
        rows = topic_table(self._names.take(names), ids)
        order = pc.sort_indices(rows, [("name", "ascending"), ("topic_id", "ascending")])
        rows, in_order = rows.take(order), columns.numbers(order, np.int64)
        for first in range(0, max(1, len(numbers)), topics_at_once):
            some = numbers[in_order[first : first + topics_at_once]]
            held = self._slots.partitions(np.ascontiguousarray(some))
            partitions = partition_table(held, ids[np.searchsorted(numbers, held["topic"])])
            yield rows.slice(first, topics_at_once), partitions
