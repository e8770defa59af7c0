"""Tables of the metadata log."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.schema.table import TIMESTAMP, TableSchema

METADATA_TRANSACTIONS = TableSchema(
    "metadata_transactions",
    "a transaction of the metadata log",
    {
        "name": pa.string(),
        "state": pa.string(),
        "reason": pa.string(),
        "begin_offset": pa.int64(),
        "end_offset": pa.int64(),
        "begin_epoch": pa.int32(),
        "end_epoch": pa.int32(),
        "records_count": pa.int64(),
        "batches": pa.int64(),
        "size_in_bytes": pa.int64(),
    },
)

METADATA_CHANGES = TableSchema(
    "metadata_changes",
    "a field that a record of the metadata log changed, or what it added or removed",
    {
        "offset": pa.int64(),
        "timestamp": TIMESTAMP,
        "kind": pa.string(),
        "key": pa.string(),
        "change": pa.string(),
        "field": pa.string(),
        "before": pa.string(),
        "after": pa.string(),
    },
    {"timestamp_ms": pa.int64(), "topic": pa.string(), "partition": pa.int32(), "brokers": pa.list_(pa.int32())},
)
