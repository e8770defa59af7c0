"""Transactional ids in a transaction coordinator that has loaded ``__transaction_state``.

An id that has expired or was deleted has a tombstone and is left out. While a coordinator removes an expired id its
status is ``Dead``: the id is in the log until the tombstone is, and Admin does not list it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.header_columns import timestamps
from kraftlog.last_by_key import numbers
from kraftlog.stream import rows_of

TRANSACTION_LOG = "TransactionLog"
STATUSES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_NONE = -1


def transactional_id_columns(last: pa.RecordBatch, arrow_schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the table ``transactional_ids`` by transactional id; None if it is empty.

    ``last`` has the last record of each id. Kafka's -1 is null; an id without partitions has an empty list.
    """
    if not last.num_rows:
        return None
    rows = pa.Table.from_batches([last])
    rows = rows.take(pc.sort_indices(rows, [("transactional_id", "ascending")])).combine_chunks()
    columns = [_whole(_COLUMNS[field.name](rows)).cast(field.type) for field in arrow_schema]
    return rows_of(columns, arrow_schema, rows.num_rows)


def status_name(status: int) -> str:
    """Return the name of a transaction's status; of one that is not known, its number."""
    return STATUSES[status] if 0 <= status < len(STATUSES) else f"UNKNOWN({status})"


def _statuses(rows: pa.Table) -> pa.Array:
    statuses, places = np.unique(numbers(rows, "transaction_status"), return_inverse=True)
    names = pa.array([status_name(int(status)) for status in statuses], pa.string())
    return names.take(pa.array(places))


def _partitions(rows: pa.Table) -> pa.Array:
    lists = _whole(rows.column("transaction_partitions"))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    topics = lists.flatten()
    fields = [pc.struct_field(topics, name) for name in ("topic", "partition_ids")]
    items = pa.StructArray.from_arrays(fields, ["topic", "partitions"])
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), items)


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _plain(name: str) -> Callable[[pa.Table], pa.ChunkedArray]:
    return lambda rows: rows.column(name)


def _or_null(name: str) -> Callable[[pa.Table], pa.ChunkedArray]:
    return lambda rows: pc.if_else(pc.equal(rows.column(name), _NONE), None, rows.column(name))


def _timestamp(name: str) -> Callable[[pa.Table], pa.Array]:
    return lambda rows: timestamps(numbers(rows, name))


_COLUMNS: dict[str, Callable[[pa.Table], pa.ChunkedArray | pa.Array]] = {
    "transactional_id": _plain("transactional_id"),
    "producer_id": _plain("producer_id"),
    "previous_producer_id": _or_null("previous_producer_id"),
    "next_producer_id": _or_null("next_producer_id"),
    "producer_epoch": _plain("producer_epoch"),
    "status": _statuses,
    "partitions": _partitions,
    "timeout_ms": _plain("transaction_timeout_ms"),
    "start_timestamp": _timestamp("transaction_start_timestamp_ms"),
    "last_update_timestamp": _timestamp("transaction_last_update_timestamp_ms"),
    "start_timestamp_ms": _plain("transaction_start_timestamp_ms"),
    "last_update_timestamp_ms": _plain("transaction_last_update_timestamp_ms"),
    "next_producer_epoch": _or_null("next_producer_epoch"),
    "client_transaction_version": _plain("client_transaction_version"),
}
