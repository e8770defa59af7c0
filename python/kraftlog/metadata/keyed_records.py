"""Records whose last one per key counts: all types of an image except brokers, topics and partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.arrow_arrays import array_of, scalar_of
from kraftlog.codec.metadata_version import METADATA_VERSION
from kraftlog.errors import Fault
from kraftlog.last_by_key import NOWHERE, Codes, Column, LastByKey, Rows, codes_of, last_of
from kraftlog.metadata import schemas
from kraftlog.metadata.changed import ONE_GROUP, Changed, Groups, groups_at
from kraftlog.metadata.kafka_names import KRAFT_VERSION, TOPIC_RESOURCE
from kraftlog.metadata.keyed_index import KeyedIndex
from kraftlog.metadata.quota_entities import comparable, sorted_entities
from kraftlog.metadata.record_types import (
    BROKERS,
    CONFIGS,
    CONTROLLERS,
    FEATURES,
    IMAGE_TYPES,
    PARTITIONS,
    PRODUCER_IDS,
    QUOTAS,
    TOPICS,
    ImageType,
)
from kraftlog.metadata.registrations import by_name

KEYED = tuple(one for one in IMAGE_TYPES.values() if one not in (BROKERS, TOPICS, PARTITIONS))
_IS_REMOVED = "is_removed"

RemovedTopics = tuple[npt.NDArray[np.int64], pa.Array]


def key_codes(key: Sequence[Column], count: int) -> Codes:
    """Return a number for each row that is the same for the same key; lists are those of quotas' entities."""
    return codes_of([comparable(column) for column in key], count)


class KeyedRecords(LastByKey):
    """The records of one type that an image holds.

    Parameters
    ----------
    keyed : ImageType
    """

    def __init__(self, keyed: ImageType) -> None:
        self._type = keyed
        self._schema = schemas.schema_of(keyed.name).append(pa.field(_IS_REMOVED, pa.bool_()))
        others = [name for name in self._schema.names[:-1] if name not in keyed.keys]
        super().__init__(keyed.keys, others, _IS_REMOVED)
        self._index: KeyedIndex | None = None

    def copy(self) -> Self:
        """Return the same records, without notes; records that are applied to one of the two are not in the other."""
        copied = super().copy()
        copied._index = None
        return copied

    def begin_notes(self) -> None:
        """Note what records change from here on."""
        self._index = KeyedIndex(self._type, self.table())

    def take_changes(self) -> Changed | None:
        """Return what was noted, and forget it; None when that is nothing."""
        return self._index.take_changes() if self._index else None

    def apply(
        self,
        batches: Mapping[str, pa.RecordBatch],
        removed_topics: RemovedTopics,
        faults: list[Fault],
        groups: Groups = ONE_GROUP,
    ) -> None:
        """Apply the records of a chunk.

        Parameters
        ----------
        batches : Mapping of str to pyarrow.RecordBatch
        removed_topics : tuple
            Offsets and names of topics that the chunk removes, and with them their configs.
        faults : list of Fault
            Receives the records that Kafka refuses.
        groups : int64[groups, 2]
            For what is noted.
        """
        keyed = self._type
        parts: list[pa.RecordBatch] = []
        offsets: list[npt.NDArray[np.int64]] = []
        if keyed.name in batches and batches[keyed.name].num_rows:
            given_rows = batches[keyed.name]
            if keyed is FEATURES:
                given_rows = _features(given_rows, faults)
            rows = _normalised(keyed, schemas.rows_of_type(given_rows, keyed.name))
            is_removed = keyed.is_removed(rows) if keyed.is_removed else array_of(np.zeros(rows.num_rows, bool))
            parts.append(pa.RecordBatch.from_arrays([*rows.columns, is_removed], schema=self._schema))
            offsets.append(schemas.offsets_of(given_rows))
        if keyed.remover in batches and batches[keyed.remover].num_rows:
            removing = batches[keyed.remover]
            keys = {key: schemas.column_of(removing, keyed.remover, key) for key in keyed.keys}
            parts.append(self._removals(keys, removing.num_rows))
            offsets.append(schemas.offsets_of(removing))
        if keyed is CONFIGS and len(removed_topics[0]):
            count = len(removed_topics[0])
            keys = {"resource_type": pa.repeat(scalar_of(TOPIC_RESOURCE, pa.int8()), count)}
            parts.append(self._removals(keys | {"resource_name": removed_topics[1]}, count))
            offsets.append(removed_topics[0])
        if not parts:
            return
        rows, at = pa.concat_batches(parts), np.concatenate(offsets)
        if len(parts) > 1:
            order = np.argsort(at, kind="stable")
            rows, at = rows.take(array_of(order)), at[order]
        if self._index:
            self._index.apply(rows, groups_at(groups, at))
        self.add(rows)

    def table(self) -> pa.Table:
        """Return the records, by key; of features ``metadata.version`` is the first."""
        rows = self.rows()
        if rows is None:
            return self._schema.remove(len(self._schema) - 1).empty_table()
        keys = {key: comparable(rows.column(key)) for key in self._type.keys}
        if self._type is FEATURES:  # readers need metadata.version to read the records behind it
            keys = {"is_other": pc.not_equal(keys["name"], METADATA_VERSION), **keys}
        if keys:
            rows = rows.take(pc.sort_indices(pa.table(keys), [(key, "ascending") for key in keys]))
        return rows.select(self._schema.names[:-1])

    def _removals(self, keys: dict[str, pa.Array], count: int) -> pa.RecordBatch:
        columns = keys | {_IS_REMOVED: array_of(np.ones(count, bool))}
        arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _last(self, table: pa.Table) -> Rows:
        keys = [table.column(key) for key in self._type.keys]
        if self._type is not CONFIGS:
            return _last_rows(key_codes(keys, table.num_rows))
        # a row without a config's name removes all configs of its resource
        *resource, config = keys
        resources = codes_of(resource, table.num_rows)
        removals = np.flatnonzero(config.is_null().to_numpy())
        last_removal = np.full(resources.end, NOWHERE, np.int64)
        last_removal[resources.rows[removals]] = removals
        last = _last_rows(resources.with_column(config))
        return last[last >= last_removal[resources.rows[last]]]


def _last_rows(codes: Codes) -> Rows:
    last = last_of(codes)
    return np.asarray(last[last != NOWHERE])


def _features(rows: pa.RecordBatch, faults: list[Fault]) -> pa.RecordBatch:
    """Leave out the version of KRaft, which control records say, and levels that metadata.version does not have."""
    names, levels = rows.column("name"), rows.column("feature_level")
    version, kraft = (scalar_of(name, names.type) for name in (METADATA_VERSION, KRAFT_VERSION))
    is_refused = pc.and_(pc.equal(names, version), pc.less(levels, scalar_of(1, levels.type)))
    for offset, level in zip(
        rows.column(schemas.OFFSET).filter(is_refused).to_pylist(), levels.filter(is_refused).to_pylist(), strict=True
    ):
        words = f"offset {offset}: {FEATURES.name} of {METADATA_VERSION}: expected a level of 1 or more, found {level}"
        faults.append(Fault("bad_feature_level", words, base_offset=offset))
    return rows.filter(pc.invert(pc.or_(is_refused, pc.equal(names, kraft))))


def _normalised(keyed: ImageType, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return records as an image holds them: Kafka's maps in order, and no more than Kafka keeps."""
    if keyed is CONTROLLERS:
        return pa.RecordBatch.from_pylist([by_name(row) for row in rows.to_pylist()], schema=rows.schema)
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    if keyed is QUOTAS:
        columns["entity"] = sorted_entities(columns["entity"])
    elif keyed is PRODUCER_IDS:  # Kafka keeps the next id, not the broker that took the last block
        columns["broker_id"] = pa.repeat(scalar_of(-1, pa.int32()), rows.num_rows)
        columns["broker_epoch"] = pa.repeat(scalar_of(-1, pa.int64()), rows.num_rows)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=rows.schema)
