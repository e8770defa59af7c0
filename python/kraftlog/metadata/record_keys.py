"""The key of each record of an image as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.metadata.readable import readable_text
from kraftlog.metadata.record_types import CONFIGS, IMAGE_TYPES, PARTITIONS, QUOTAS, TOPICS, named
from kraftlog.metadata.uuids import uuid_text

_DEFAULT = "<default>"  # the name of the default resource or entity, which has none


def record_keys(name: str, rows: pa.Table, topics: pa.Array | None) -> pa.Array:
    """Return a text for each record: ``orders-0`` of a partition, ``alice SCRAM-SHA-256`` of a credential.

    Parameters
    ----------
    name : str
        Of the type.
    rows : pyarrow.Table
        With the columns of the type's key, and the names of topics.
    topics : pyarrow.Array or None
        Of partitions: the names of their topics.
    """
    if name == PARTITIONS.name:
        return _whole(pc.binary_join_element_wise(topics, pc.cast(rows.column("partition_id"), pa.string()), "-"))
    if name == TOPICS.name:
        return _whole(rows.column("name"))
    keys = rows.select(list(IMAGE_TYPES[name].keys))
    return pa.array([_key(name, row) for row in keys.to_pylist()], pa.string())


def _key(name: str, row: Mapping[str, Any]) -> str:
    if name == QUOTAS.name:
        entities = ((one["entity_type"], one["entity_name"]) for one in row["entity"])
        return ", ".join(f"{kind}={_DEFAULT if entity is None else entity}" for kind, entity in entities)
    if name == CONFIGS.name:
        return f"{named(name, 'resource_type', row['resource_type'])} {row['resource_name'] or _DEFAULT}"
    return " ".join(readable_text(name, key, row[key]) or "" for key in IMAGE_TYPES[name].keys)


def topic_names(name: str, rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Array | None:
    """Return the names of the topics of partitions of an image; None for records of other types."""
    if name != PARTITIONS.name:
        return None
    ids = rows.column("topic_id").unique()
    names = pa.array([uuid_text(topic) for topic in ids.to_pylist()], pa.string())
    topics = tables.get(TOPICS.name)
    if topics is not None and topics.num_rows:
        places = pc.index_in(ids, value_set=_whole(topics.column("topic_id")))
        names = pc.coalesce(_whole(topics.column("name")).take(places), names)
    return _whole(pc.take(names, pc.index_in(rows.column("topic_id"), value_set=ids)))


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
