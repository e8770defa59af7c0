"""Topics and partitions as tables of their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.topic_slots import LISTS, SCALARS
from kraftlog.codec.arrow_arrays import array_of
from kraftlog.metadata import columns, schemas
from kraftlog.metadata.topics.types import PARTITION, TOPIC

_NULL_WHEN_EMPTY = ("eligible_leader_replicas", "last_known_elr")

Uuids = npt.NDArray[np.uint64]


def topic_table(names: pa.Array, ids: Uuids) -> pa.Table:
    """Return TopicRecords."""
    return _table(TOPIC, {"name": names, "topic_id": columns.uuid_array(ids)}, len(ids))


def partition_table(held: Mapping[str, Any], ids: Uuids) -> pa.Table:
    """Return partitions as PartitionRecords; the ids are those of their topics."""
    arrays: dict[str, pa.Array] = {"topic_id": columns.uuid_array(ids)}
    for name in SCALARS[2:]:
        arrays[name] = array_of(held[name])
    for name in LISTS:
        ends, values = held[name]
        is_uuid = name == "directories"
        items = columns.uuid_array(values.view(np.uint64).reshape(-1, 2)) if is_uuid else array_of(values)
        arrays[name] = columns.list_array(ends, items, empty_is_null=name in _NULL_WHEN_EMPTY)
    return _table(PARTITION, arrays, len(ids))


def _table(name: str, by_column: Mapping[str, pa.Array], count: int) -> pa.Table:
    schema = schemas.schema_of(name)
    arrays = [by_column[field.name] if field.name in by_column else pa.nulls(count, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
