"""Which topic, partition and brokers a change concerns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.last_by_key import NOWHERE
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.metadata.changed import Changed, Rows
from kraftlog.metadata.kafka_names import BROKER_RESOURCE, TOPIC_RESOURCE
from kraftlog.metadata.record_types import BROKERS, CONFIGS, PARTITIONS, PRODUCER_IDS, TOPICS, ImageType

BROKER_LIST = pa.list_(pa.int32())
_REPLICAS, _LEADER = "replicas", "leader"


def key_columns(kind: ImageType) -> list[str]:
    """Return the columns that say which record it is, and what it concerns."""
    return [*kind.keys, *(kind.shown if kind is PRODUCER_IDS else ()), *(("name",) if kind is TOPICS else ())]


def topics_concerned(kind: ImageType, named: pa.Table, topics: pa.Array | None) -> tuple[pa.Array, pa.Array]:
    """Return the topic and the partition of records; null where there is none.

    Parameters
    ----------
    kind : ImageType
    named : pyarrow.Table
        The columns of the records' keys: ``key_columns``.
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
        return pa.array([_broker_of_config(kind, name) for kind, name in resources], BROKER_LIST)
    if kind is not PARTITIONS:
        return pa.array([[]] * len(records), BROKER_LIST)
    of_records: list[list[int]] = [[]] * len(records)
    for number in sorted(set(columns.tolist())):
        name = _REPLICAS if number < 0 else BUILT_IN.messages[kind.name].fields[number].column
        column = changed.before.schema.field(name).type
        if column != BROKER_LIST and name != _LEADER:
            continue
        at = (columns == number).nonzero()[0]
        before, after = (
            _values(table, name, rows[records[at]])
            for table, rows in ((changed.before, changed.was), (changed.after, changed.now))
        )
        for row, was, now in zip(at.tolist(), before, after, strict=True):
            of_records[row] = sorted(_brokers(was) ^ _brokers(now))
    return pa.array(of_records, BROKER_LIST)


def records_of_brokers(kind: ImageType, changed: Changed, brokers: Collection[int]) -> npt.NDArray[np.bool_]:
    """Return which records have a change that concerns one of some brokers, as ``brokers_concerned`` says of rows."""
    concerned = np.zeros(len(changed), bool)
    broker_ids = np.array(sorted(broker for broker in brokers if 0 <= broker < 1 << 31), np.int64)
    if kind is BROKERS:
        return np.isin(changed.keys(kind.keys).column("broker_id").to_numpy(), broker_ids)
    if kind is CONFIGS:
        named = changed.keys(kind.keys)
        rows = np.flatnonzero(pc.equal(named.column("resource_type"), BROKER_RESOURCE).to_numpy())
        names = named.column("resource_name").take(pa.array(rows)).to_pylist()
        concerned[rows] = [not set(_broker_of_config(BROKER_RESOURCE, name)).isdisjoint(brokers) for name in names]
        return concerned
    if kind is not PARTITIONS:
        return concerned
    both = (changed.was != NOWHERE) & (changed.now != NOWHERE)
    for name in changed.before.schema.names:
        if changed.before.schema.field(name).type != BROKER_LIST and name != _LEADER:
            continue
        sides = [
            _with_brokers(_side(table, name, rows), broker_ids)
            for table, rows in ((changed.before, changed.was), (changed.after, changed.now))
        ]
        differs = (sides[0] != sides[1]).any(axis=0)
        concerned |= differs if name == _REPLICAS else differs & both
    return concerned


def _with_brokers(values: pa.Array, broker_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return for each broker which of the values are it, or have it; bool[brokers, rows]."""
    has_broker = np.zeros((len(broker_ids), len(values)), bool)
    if values.type == BROKER_LIST:
        rows, brokers = pc.list_parent_indices(values).to_numpy(), values.flatten().to_numpy()
    else:
        rows, brokers = np.arange(len(values)), pc.fill_null(values, -1).to_numpy()
    for number, broker in enumerate(broker_ids.tolist()):
        has_broker[number, rows[brokers == broker]] = True
    return has_broker


def _broker_of_config(kind: int, name: str) -> list[int]:
    return [int(name)] if kind == BROKER_RESOURCE and name.isdigit() else []


def _side(table: pa.Table, column: str, rows: Rows) -> pa.Array:
    """Return a column of records before or after; null where there was, or is, no such record."""
    return table.column(column).combine_chunks().take(pa.array(rows, mask=rows == NOWHERE))


def _values(table: pa.Table, column: str, rows: Rows) -> list[Any]:
    return list(_side(table, column, rows).to_pylist())


def _brokers(value: int | Iterable[int] | None) -> set[int]:
    brokers = [] if value is None else [value] if isinstance(value, int) else value
    return {broker for broker in brokers if broker >= 0}
