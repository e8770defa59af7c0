"""The records of a chunk that concern topics and partitions, as the core takes them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog._native.topic_slots import LISTS, NONE, SCALARS, PartitionRows, TopicSlots
from kraftlog.codec.arrow_arrays import array_of
from kraftlog.metadata import columns, schemas
from kraftlog.metadata.topics.names import Names
from kraftlog.metadata.topics.types import CLEAR_ELR

Ints = npt.NDArray[np.int64]
Uuids = npt.NDArray[np.uint64]

_NO_OFFSETS = np.empty(0, np.int64)
_NO_UUIDS = np.empty((0, 2), np.uint64)


class Clearings(NamedTuple):
    """The ClearElrRecords of a chunk.

    Attributes
    ----------
    offsets : int64[rows]
    names : int64[rows]
        Which of the distinct names each one has; -1 for every topic.
    candidates : int64[count + created, 3]
        The topics that have one of the names: number, number of the name, which of the distinct names; with room for
        those that the chunk creates.
    candidates_count : int
    cleared : int64[created]
        Which of the distinct names each topic has that the chunk creates; -1 for none.
    """

    offsets: Ints
    names: Ints
    candidates: Ints
    candidates_count: int
    cleared: Ints


def ids_of(batches: Mapping[str, pa.RecordBatch], name: str) -> tuple[Ints, Uuids]:
    """Return the offsets and the topic ids of the records of a type."""
    if name not in batches:
        return _NO_OFFSETS, _NO_UUIDS
    return schemas.offsets_of(batches[name]), columns.uuids(schemas.column_of(batches[name], name, "topic_id"))


def partitions_of(batches: Mapping[str, pa.RecordBatch], name: str) -> PartitionRows:
    """Return the columns of PartitionRecord or PartitionChangeRecord."""
    batch = batches.get(name)
    if batch is None:
        return _no_partitions(name)
    schema = _lent(name)
    if batch.schema != schema:
        offsets, rows = array_of(schemas.offsets_of(batch)), schemas.rows_of_type(batch, name)
        batch = pa.RecordBatch.from_arrays([offsets, *rows.columns], schema=schema)
    return PartitionRows(batch, _places(name))


@cache
def _lent(name: str) -> pa.Schema:
    return schemas.schema_of(name).insert(0, pa.field(schemas.OFFSET, pa.int64()))


@cache
def _places(name: str) -> tuple[int, ...]:
    return tuple(_lent(name).get_field_index(column) for column in (*SCALARS, *LISTS))


@cache
def _no_partitions(name: str) -> PartitionRows:
    none = [pa.nulls(0, field.type) for field in _lent(name)]
    return PartitionRows(pa.RecordBatch.from_arrays(none, schema=_lent(name)), _places(name))


def clearings_of(
    batches: Mapping[str, pa.RecordBatch], slots: TopicSlots, names: Names, created: pa.Array
) -> Clearings:
    """Return the columns of ClearElrRecord, and the topics that they concern by their names."""
    if CLEAR_ELR not in batches:
        none = np.full(len(created), NONE, np.int64)
        return Clearings(_NO_OFFSETS, _NO_OFFSETS, np.empty((len(created), 3), np.int64), 0, none)
    cleared = schemas.column_of(batches[CLEAR_ELR], CLEAR_ELR, "topic_name")
    distinct = pc.unique(cleared.filter(pc.not_equal(cleared, "")))
    live, live_names, _ = slots.topics()
    topic_numbers = _numbers_in(names.take(live_names), distinct)
    concerned = topic_numbers != NONE
    count = int(concerned.sum())
    candidates = np.empty((count + len(created), 3), np.int64)
    candidates[:count] = np.column_stack((live, live_names, topic_numbers))[concerned]
    offsets, numbers = schemas.offsets_of(batches[CLEAR_ELR]), _numbers_in(cleared, distinct)
    return Clearings(offsets, numbers, candidates, count, _numbers_in(created, distinct))


def _numbers_in(names: pa.Array, distinct: pa.Array) -> Ints:
    return columns.numbers(pc.fill_null(pc.index_in(names, value_set=distinct), NONE), np.int64)
