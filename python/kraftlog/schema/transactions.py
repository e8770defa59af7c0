"""Tables of transactions of producers, and of the producers."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.schema.table import PARTITION, TIMESTAMP, TableSchema

_PART = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("marker_offset", pa.int64()),
        ("state", pa.string()),
        ("records_count", pa.int64()),
    ]
)
_INPUT_OFFSET = pa.struct(
    [("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
)

TRANSACTIONS = TableSchema(
    "transactions",
    "a transaction of a producer, over all its partitions",
    {
        "transactional_id": pa.string(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "state": pa.string(),
        "decision_timestamp": TIMESTAMP,
        "ended_by": pa.string(),
        "identified_by": pa.string(),
        "partitions": pa.list_(_PART),
        "input_offsets": pa.list_(_INPUT_OFFSET),
    },
    {"contradiction": pa.string(), "decision_timestamp_ms": pa.int64()},
)

PARTITION_TRANSACTIONS = TableSchema(
    "partition_transactions",
    "what a partition has of a producer's transaction",
    {
        **PARTITION,
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "state": pa.string(),
        "first_offset": pa.int64(),
        "last_offset": pa.int64(),
        "marker_offset": pa.int64(),
        "marker_epoch": pa.int16(),
        "coordinator_epoch": pa.int32(),
        "records_count": pa.int64(),
        "batches": pa.int64(),
        "size_in_bytes": pa.int64(),
        "start_timestamp": TIMESTAMP,
        "end_timestamp": TIMESTAMP,
    },
    {"start_timestamp_ms": pa.int64(), "end_timestamp_ms": pa.int64()},
)

PRODUCERS = TableSchema(
    "producers",
    "the state of a producer in a partition, as the log says it is",
    {
        **PARTITION,
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "last_sequence": pa.int32(),
        "last_offset": pa.int64(),
        "last_timestamp": TIMESTAMP,
        "current_transaction_first_offset": pa.int64(),
        "coordinator_epoch": pa.int32(),
    },
    {"last_timestamp_ms": pa.int64()},
)

HANGING_TRANSACTIONS = TableSchema(
    "hanging_transactions",
    "an open transaction that no coordinator will end",
    {
        **PARTITION,
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "coordinator_epoch": pa.int32(),
        "start_offset": pa.int64(),
        "last_timestamp": TIMESTAMP,
        "transactional_id": pa.string(),
        "reason": pa.string(),
        "command": pa.string(),
    },
    {"last_timestamp_ms": pa.int64(), "cause": pa.string(), "sentence": pa.string()},
)

WAITS = TableSchema(
    "waits",
    "a partition as a group meets it, or with no group as any consumer does that has read up to where it stops",
    {
        **PARTITION,
        "group": pa.string(),
        "cause": pa.string(),
        "position": pa.int64(),
        "log_end_offset": pa.int64(),
        "transactional_id": pa.string(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "silent_since": TIMESTAMP,
        "ends_at": TIMESTAMP,
        "sentence": pa.string(),
    },
)

TRANSACTIONAL_IDS = TableSchema(
    "transactional_ids",
    "a transactional id, as its coordinator knows it",
    {
        "transactional_id": pa.string(),
        "producer_id": pa.int64(),
        "previous_producer_id": pa.int64(),
        "next_producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "status": pa.string(),
        "partitions": pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])),
        "timeout_ms": pa.int32(),
        "start_timestamp": TIMESTAMP,
        "last_update_timestamp": TIMESTAMP,
    },
    {
        "start_timestamp_ms": pa.int64(),
        "last_update_timestamp_ms": pa.int64(),
        "next_producer_epoch": pa.int16(),
        "client_transaction_version": pa.int16(),
    },
)
