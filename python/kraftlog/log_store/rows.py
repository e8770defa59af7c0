"""Distribution of rows to partitions by the rules of Kafka's producers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.partitioner import partition_for_key
from kraftlog.log_store.topics import MOST_PARTITIONS

COLUMNS = ("key", "value", "headers", "topic", "partition", "timestamp")
_DATA = ("key", "value", "headers", "timestamp")


@dataclass(frozen=True)
class Routing:
    """The topics and partitions for rows; plain values, which the driver sends to tasks.

    Attributes
    ----------
    topic : str or None
        Topic of all rows; None if a column has it.
    existing : mapping of str to int
        Partition counts of existing topics.
    new : int or mapping of str to int or None
        Partition counts of new topics: of each, or by name. None: as many as the rows' partitions need, and at least
        one.
    """

    topic: str | None
    existing: Mapping[str, int] = field(default_factory=dict)
    new: int | Mapping[str, int] | None = None

    def partitions(self, topic: str) -> int | None:
        """Return the partition count of an existing or new topic; None if that is open."""
        if topic in self.existing:
            return self.existing[topic]
        return self.new if isinstance(self.new, int) or self.new is None else self.new.get(topic)


def check_columns(schema: pa.Schema, topic: str | None) -> None:
    """Raise for a table that cannot be written.

    Parameters
    ----------
    schema : pyarrow.Schema
    topic : str or None
        Topic of all rows, which makes the column optional.

    Raises
    ------
    ValueError
        When a column is missing or unknown, or has a wrong type.
    """
    unknown = [name for name in schema.names if name not in COLUMNS]
    if unknown:
        raise ValueError(f"unknown column {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    if "value" not in schema.names:
        raise ValueError("expected a column value, found none")
    if topic is None and "topic" not in schema.names:
        raise ValueError("expected the option topic or a column topic, found neither")
    for each in schema:
        if each.name in ("key", "value") and not (_is_text(each.type) or _is_binary(each.type)):
            raise ValueError(f"column {each.name} is {each.type}, neither binary nor string")
        if each.name == "topic" and not _is_text(each.type):
            raise ValueError(f"column topic is {each.type}, not string")
        if each.name == "partition" and not pa.types.is_integer(each.type):
            raise ValueError(f"column partition is {each.type}, not an integer")
        if each.name == "timestamp" and not (pa.types.is_timestamp(each.type) and each.type.tz):
            raise ValueError(f"column timestamp is {each.type}, not a timestamp with a time zone")
        if each.name == "headers" and not (_is_headers(each.type) or pa.types.is_null(each.type)):
            raise ValueError(f"column headers is {each.type}, not a list of struct<key: string, value: binary>")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_headers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = {field.name: field.type for field in kind.value_type}
    return fields.keys() == {"key", "value"} and all(_is_text(each) or _is_binary(each) for each in fields.values())


def rows_by_partition(rows: pa.RecordBatch, routing: Routing, spread: int) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Return the rows of each partition, in their order.

    A row without a partition is placed by its key; all rows without a key go together to the partition from ``spread``.
    A row without a timestamp gets the current time.

    Parameters
    ----------
    rows : pyarrow.RecordBatch
        Rows with ``COLUMNS``.
    routing : Routing
    spread : int
        A different number for each record batch, so that rows without keys reach all partitions.

    Returns
    -------
    iterator of (str, int, pyarrow.RecordBatch)
        Topic, partition, and rows for ``Stager.write``.

    Raises
    ------
    ValueError
        When a row has no topic, a partition that its topic lacks, or a time before 1970.

    Examples
    --------
    >>> rows = pa.record_batch({"value": ["a", "b"], "partition": [1, 0]})
    >>> [(at, part["value"].to_pylist()) for _, at, part in rows_by_partition(rows, Routing("orders"), 0)]
    [(0, ['b']), (1, ['a'])]
    """
    if not rows.num_rows:
        return
    topics, codes = _topics(rows, routing)
    counts = [routing.partitions(topic) for topic in topics]
    partitions = _explicit(rows, topics, codes, counts)
    missing = partitions < 0
    if missing.any():
        choices = np.array([count or 1 for count in counts], np.int64)[codes[missing]]
        partitions[missing] = _chosen(rows, missing, choices, spread)
    data = _with_timestamps(rows.select([name for name in rows.schema.names if name in _DATA]))
    places = codes << 32 | partitions
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    if len(starts) > 1:
        data = data.take(pa.array(order))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        code, partition = divmod(int(places[order[start]]), 1 << 32)
        yield topics[code], partition, data.slice(start, end - start)


def _topics(rows: pa.RecordBatch, routing: Routing) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the topics, and the index of each row's topic."""
    if routing.topic is not None:
        return [routing.topic], np.zeros(rows.num_rows, np.int64)
    column = rows.column("topic")
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise ValueError(f"row {row} of {rows.num_rows}: topic is null, and there is no option topic")
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)


def _explicit(
    rows: pa.RecordBatch, topics: list[str], codes: npt.NDArray[np.int64], counts: list[int | None]
) -> npt.NDArray[np.int64]:
    """Return the partitions that rows have; -1 where they have none."""
    if "partition" not in rows.schema.names:
        return np.full(rows.num_rows, -1, np.int64)
    column = rows.column("partition").cast(pa.int64())
    partitions = np.array(pc.fill_null(column, -1))
    ends = np.array([MOST_PARTITIONS if count is None else count for count in counts], np.int64)[codes]
    bad = np.asarray(column.is_valid()) & ((partitions < 0) | (partitions >= ends))
    for at in np.flatnonzero(bad)[:1]:
        raise ValueError(
            f"row {at} of {rows.num_rows}: partition {partitions[at]} of {topics[codes[at]]} is not in the range 0 to "
            f"{ends[at] - 1}"
        )
    return partitions


def _chosen(
    rows: pa.RecordBatch, missing: npt.NDArray[np.bool_], choices: npt.NDArray[np.int64], spread: int
) -> npt.NDArray[np.int64]:
    if "key" not in rows.schema.names or pa.types.is_null(rows.column("key").type):
        return spread % choices
    by_key = partition_for_key(rows.column("key").filter(pa.array(missing)), pa.array(choices))
    return np.asarray(pc.if_else(by_key.is_valid(), by_key.cast(pa.int64()), pa.array(spread % choices)))


def _with_timestamps(data: pa.RecordBatch) -> pa.RecordBatch:
    at = data.schema.get_field_index("timestamp")
    if at < 0:
        return data
    column = data.column(at)
    first = pc.index(pc.less(column.cast(pa.int64()), 0), True).as_py()
    if first >= 0:
        raise ValueError(f"row {first} of {len(column)}: timestamp {column[first]} is before 1970")
    if not column.null_count:
        return data
    column = column.cast(pa.timestamp("us", "UTC"))
    now = pa.scalar(time.time_ns() // 1000, pa.int64()).cast(column.type)
    return data.set_column(at, "timestamp", pc.fill_null(column, now))
