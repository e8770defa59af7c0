"""Which topic, partition and brokers a change concerns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.last_by_key import NOWHERE
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.changed import Changed, Rows
from kraftlog.metadata.kafka_names import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftlog.metadata.record_types import BROKERS, CONFIGS, PARTITIONS, TOPICS, ImageType

BROKER_LIST = pa.list_(pa.int32())
_REPLICAS = "replicas"


def topics_concerned(kind: ImageType, named: pa.Table, topics: pa.Array | None) -> tuple[pa.Array, pa.Array]:
    """Return the topic and the partition of records; null where there is none.

    Parameters
    ----------
    kind : ImageType
    named : pyarrow.Table
        The columns of the records' keys.
    topics : pyarrow.Array or None
        Of partitions: the names of their topics.
    """
    count = named.num_rows
    none = pa.nulls(count, pa.string()), pa.nulls(count, pa.int32())
    if kind is PARTITIONS:
        return topics, named.column("partition_id")
    if kind is TOPICS:
        return named.column("name"), none[1]
    if kind is CONFIGS:
        is_of_topic = pc.equal(named.column("resource_type"), TOPIC_RESOURCE)
        return pc.if_else(is_of_topic, named.column("resource_name"), pa.scalar(None, pa.string())), none[1]
    return none


def brokers_concerned(kind: ImageType, changed: Changed, named: pa.Table, records: Rows, columns: Rows) -> pa.Array:
    """Return the brokers that each row concerns.

    They are a broker itself, the one that a config is of, the replicas of a partition that comes or goes, and of a
    partition's field the brokers that come or go in it: the old and the new leader, the one that leaves the ISR.

    Parameters
    ----------
    kind : ImageType
    changed : Changed
    named : pyarrow.Table
        The columns of the keys, row by row.
    records : int64[rows]
        Which of the changed records each row is of.
    columns : int64[rows]
        The number of the field that changed; -1 for records that were added or removed.
    """
    if kind is BROKERS:
        return pa.array([[broker] for broker in named.column("broker_id").to_pylist()], BROKER_LIST)
    if kind is CONFIGS:
        resources = zip(
            named.column("resource_type").to_pylist(), named.column("resource_name").to_pylist(), strict=True
        )
        return pa.array(
            [[int(name)] if kind == BROKER_RESOURCE and name.isdigit() else [] for kind, name in resources], BROKER_LIST
        )
    if kind is not PARTITIONS:
        return pa.array([[]] * len(records), BROKER_LIST)
    found: list[list[int]] = [[]] * len(records)
    for number in sorted(set(columns.tolist())):
        name = _REPLICAS if number < 0 else BUILT_IN.messages[kind.name].fields[number].column
        column = changed.before.schema.field(name).type
        if column != BROKER_LIST and name != "leader":
            continue
        at = (columns == number).nonzero()[0]
        before, after = (
            _values(table, name, rows[records[at]])
            for table, rows in ((changed.before, changed.was), (changed.after, changed.now))
        )
        for row, was, now in zip(at.tolist(), before, after, strict=True):
            found[row] = sorted(_brokers(was) ^ _brokers(now))
    return pa.array(found, BROKER_LIST)


def _values(table: pa.Table, column: str, rows: Rows) -> list[Any]:
    return list(table.column(column).take(pa.array(rows, mask=rows == NOWHERE)).to_pylist())


def _brokers(value: int | Iterable[int] | None) -> set[int]:
    brokers = [] if value is None else [value] if isinstance(value, int) else value
    return {broker for broker in brokers if broker >= 0}
