"""The input of a producer: Arrow in its forms, single records that are written together, and their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import index
from typing import Any, TypeAlias

import pyarrow as pa

from kraftlog import schema
from kraftlog.log_store.errors import UnknownTopicOrPartitionError
from kraftlog.log_store.rows import COLUMNS, Routing, check_columns, rows_by_partition
from kraftlog.stream import Stream

Sent: TypeAlias = "pa.RecordBatch | pa.Table | Stream | Any"

PIECE_BYTES = 8 << 20  # bytes of rows that are encoded at once
MOST_WAITING = 10_000
MOST_WAITING_BYTES = 1 << 20
LATEST_TIMESTAMP = 2**63 - 1

_HEADERS = schema.RECORDS.shown["headers"]
_NO_HEADERS: list[dict[str, object]] = []  # shared by all records without headers; never modified
_WAITING = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("partition", pa.int32()),
    ]
)


def arrow_batches(rows: Sent) -> Iterator[pa.RecordBatch]:
    """Return the rows as Arrow record batches, none of them much larger than ``PIECE_BYTES``.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(rows, pa.RecordBatch):
        batches = iter([rows])
    elif isinstance(rows, pa.Table):
        batches = iter(rows.to_batches())
    elif isinstance(rows, Stream):
        batches = rows.batches()
    elif hasattr(rows, "__arrow_c_stream__"):
        batches = iter(pa.RecordBatchReader.from_stream(rows))
    else:
        raise TypeError(f"expected an Arrow record batch, table or stream, found {type(rows).__name__}")
    for batch in batches:
        pieces = max(1, -(-batch.nbytes // PIECE_BYTES))
        step = max(1, -(-batch.num_rows // pieces))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def routed(
    topic: str, rows: pa.RecordBatch, partitions: int, partition: int | None, spread: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Return the rows of each partition.

    Parameters
    ----------
    topic : str
    rows : pyarrow.RecordBatch
    partitions : int
        Partition count of the topic.
    partition : int or None
        Partition of all rows.
    spread : int
        A different number for each call, so that rows without keys reach all partitions.

    Raises
    ------
    UnknownTopicOrPartitionError
        When the topic has no such partition.
    ValueError
        When a column is invalid.
    """
    columns = [name for name in rows.schema.names if name in COLUMNS and name != "topic"]
    left_out = [name for name in rows.schema.names if name not in COLUMNS and name not in schema.RECORDS.shown]
    if left_out:
        check_columns(rows.schema, topic)
    rows = _plain(rows.select(columns))
    check_columns(rows.schema, topic)
    if partition is not None:
        if not 0 <= partition < partitions:
            raise UnknownTopicOrPartitionError(f"topic {topic!r} has {partitions} partitions, and no {partition}")
        own = pa.repeat(pa.scalar(partition, pa.int32()), rows.num_rows)
        rows = rows.drop_columns(["partition"]) if "partition" in columns else rows
        rows = rows.append_column("partition", own)
    for _, number, part in rows_by_partition(rows, Routing(topic, {topic: partitions}), spread):
        yield number, part


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with dictionary and view columns of keys and values as plain types."""
    for at, field in enumerate(rows.schema):
        if field.name in ("key", "value"):
            column = rows.column(at)
            if pa.types.is_dictionary(field.type):
                column = column.dictionary_decode()
            if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
                column = column.cast(pa.string() if pa.types.is_string_view(column.type) else pa.binary())
            elif pa.types.is_fixed_size_binary(column.type):
                column = column.cast(pa.binary())
            if column.type != field.type:
                rows = rows.set_column(at, field.name, column)
    return rows


class Waiting:
    """Single records that wait to be written together."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[object, ...]]] = {}
        self._count = self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether there are enough of them."""
        return self._count >= MOST_WAITING or self._bytes >= MOST_WAITING_BYTES

    def add(
        self,
        topic: str,
        partitions: int,
        key: bytes | str | None,
        value: bytes | str | None,
        headers: list[tuple[str, bytes]] | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> None:
        """Add a record of a topic with this partition count.

        Raises
        ------
        TypeError, ValueError, UnknownTopicOrPartitionError
            When it cannot be written; it is not added then.
        """
        if not (key is None or type(key) is bytes):
            key = _as_bytes("key", key)
        if not (value is None or type(value) is bytes):
            value = _as_bytes("value", value)
        if partition is not None:
            partition = index(partition)
            if not 0 <= partition < partitions:
                raise UnknownTopicOrPartitionError(f"topic {topic!r} has {partitions} partitions, and no {partition}")
        if timestamp_ms is not None:
            timestamp_ms = _as_timestamp(timestamp_ms)
        pairs = _as_headers(headers) if headers else _NO_HEADERS
        rows = self._rows.get(topic)
        if rows is None:
            rows = self._rows[topic] = []
        rows.append((key, value, pairs, timestamp_ms, partition))  # one step: a signal leaves all of it or nothing
        self._count += 1
        self._bytes += (len(key) if key else 0) + (len(value) if value else 0)

    @property
    def is_empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._rows

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return topic and rows of all queued records, which stay queued."""
        for topic, records in self._rows.items():
            columns = [list(column) for column in zip(*records, strict=True)]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, _WAITING, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=_WAITING)
            if batch.column("timestamp").null_count == batch.num_rows:
                batch = batch.drop_columns(["timestamp"])
            yield topic, batch

    def clear(self) -> None:
        """Empty the queue."""
        self._rows, self._count, self._bytes = {}, 0, 0


def _as_timestamp(timestamp_ms: int) -> int:
    timestamp_ms = index(timestamp_ms)
    if not 0 <= timestamp_ms <= LATEST_TIMESTAMP:
        when = "before 1970" if timestamp_ms < 0 else f"later than {LATEST_TIMESTAMP}"
        raise ValueError(f"timestamp_ms {timestamp_ms} is {when}")
    return timestamp_ms


def _as_headers(headers: Iterable[tuple[str, bytes]]) -> list[dict[str, object]]:
    pairs: list[dict[str, object]] = [{"key": name, "value": content} for name, content in headers]
    pa.scalar(pairs, _HEADERS)  # raises for invalid text
    if any(pair["key"] is None for pair in pairs):
        raise TypeError("a header has no name")
    return pairs


def _as_bytes(name: str, content: bytes | str | None) -> bytes | None:
    if isinstance(content, str):
        return content.encode()
    if content is not None and not isinstance(content, bytes):
        raise TypeError(f"{name} {content!r} is neither bytes nor text")
    return content
