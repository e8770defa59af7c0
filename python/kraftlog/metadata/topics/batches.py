"""The records of a chunk that concern topics and partitions, as the kernels take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.metadata import columns, schemas
from kraftlog.metadata.topics.records import CLEAR_ELR, Clearings, Partitions
from kraftlog.metadata.topics.slots import DIRECTORIES, ID_LISTS, NONE, REPLICAS, SCALARS, SCALARS_END, SHORT, Slots

_NO_OFFSETS = columns.frozen(np.empty(0, np.int64))
_NO_UUIDS = columns.frozen(np.empty((0, 2), np.uint64))


@dataclass(frozen=True)
class Names:
    """Names of topics by number; ``TopicsState`` drops the names of removed topics when there are many."""

    pieces: tuple[pa.Array, ...] = ()

    @property
    def end(self) -> int:
        """How many there are: the number of the next one."""
        return sum(len(piece) for piece in self.pieces)

    def added(self, names: pa.Array) -> Names:
        """Return these and more."""
        pieces = [*self.pieces, pa.concat_arrays([names])] if len(names) else list(self.pieces)
        while len(pieces) > 1 and len(pieces[-2]) < 2 * len(pieces[-1]):
            last = pieces.pop()
            pieces[-1] = pa.concat_arrays([pieces[-1], last])
        return Names(tuple(pieces))

    def take(self, numbers: npt.NDArray[np.int64]) -> pa.Array:
        """Return names by their numbers."""
        taken = pa.chunked_array(self.pieces, pa.string()).take(pa.array(numbers))
        return pa.concat_arrays([pa.array([], pa.string()), *taken.chunks])


def offsets_or_none(batches: Mapping[str, pa.RecordBatch], name: str) -> npt.NDArray[np.int64]:
    """Return the offsets of the records of a type."""
    return columns.frozen(schemas.offsets_of(batches[name])) if name in batches else _NO_OFFSETS


def uuids_or_none(batches: Mapping[str, pa.RecordBatch], name: str) -> npt.NDArray[np.uint64]:
    """Return the topic ids of the records of a type."""
    return columns.uuids(schemas.column_of(batches[name], name, "topic_id")) if name in batches else _NO_UUIDS


@cache
def _no_partitions(name: str) -> tuple[Partitions, int, int]:
    schema = schemas.schema_of(name).insert(0, pa.field(schemas.OFFSET, pa.int64()))
    return partitions_of(pa.RecordBatch.from_pylist([], schema=schema), name)


def partitions_of(batch: pa.RecordBatch | None, name: str) -> tuple[Partitions, int, int]:
    """Return the columns of PartitionRecord or PartitionChangeRecord, and how much room in the pools they take."""
    if batch is None:
        return _no_partitions(name)
    known = schemas.schema_of(name).names
    scalars = np.zeros((batch.num_rows, SCALARS_END), np.int32)
    for scalar, at in SCALARS.items():
        if scalar in known:
            scalars[:, at] = columns.numbers(schemas.column_of(batch, name, scalar), np.int32)
    given = np.zeros(batch.num_rows, np.uint8)
    id_ends = np.zeros((len(ID_LISTS), batch.num_rows + 1), np.int32)
    pieces = []
    end = 0
    for bit, column in enumerate(ID_LISTS):
        ends, is_given, values = columns.list_parts(schemas.column_of(batch, name, column))
        given |= is_given.astype(np.uint8) << np.uint8(bit)
        pieces.append(columns.numbers(values, np.int32)[ends[0] : ends[-1]])
        if len(pieces[-1]):
            np.add(ends, end - ends[0], out=id_ends[bit])
        end += len(pieces[-1])
    pieces.append(np.zeros(SHORT, np.int32))
    uuid_ends, is_given, values = columns.list_parts(schemas.column_of(batch, name, "directories"))
    given |= is_given.astype(np.uint8) << np.uint8(DIRECTORIES)
    taken = Partitions(
        columns.frozen(schemas.offsets_of(batch)),
        columns.uuids(schemas.column_of(batch, name, "topic_id")),
        columns.frozen(scalars),
        columns.frozen(given),
        columns.frozen(id_ends),
        columns.frozen(np.concatenate(pieces)),
        uuid_ends,
        columns.uuids(values),
    )
    # each replica has a directory, also where the record gives none
    return taken, end, int(uuid_ends[-1] - uuid_ends[0]) + len(pieces[REPLICAS])


def clearings_of(
    batch: pa.RecordBatch | None, slots: Slots, names: Names, created: pa.Array
) -> tuple[Clearings, int, npt.NDArray[np.int64]]:
    """Return the columns of ClearElrRecord, how many topics have one of its names, and which created ones do."""
    none = columns.frozen(np.full(len(created), NONE, np.int64))
    if batch is None:
        return Clearings(_NO_OFFSETS, _NO_OFFSETS, np.empty((0, 3), np.int64)), 0, none
    cleared = schemas.column_of(batch, CLEAR_ELR, "topic_name")
    distinct = pc.unique(cleared.filter(pc.not_equal(cleared, "")))
    live = slots.topic_slots()
    live_names = slots.topic_names[live]
    found = _numbers_in(names.take(live_names), distinct)
    concerned = found != NONE
    candidates = np.empty((int(concerned.sum()) + len(created), 3), np.int64)
    count = int(concerned.sum())
    candidates[:count] = np.column_stack((live, live_names, found))[concerned]
    numbers = columns.frozen(_numbers_in(cleared, distinct))
    taken = Clearings(columns.frozen(schemas.offsets_of(batch)), numbers, candidates)
    return taken, count, columns.frozen(_numbers_in(created, distinct)) if len(created) else none


def _numbers_in(names: pa.Array, distinct: pa.Array) -> npt.NDArray[np.int64]:
    return columns.numbers(pc.fill_null(pc.index_in(names, value_set=distinct), NONE), np.int64)
