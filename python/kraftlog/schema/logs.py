"""Tables of log files: segments, batches, records, index entries, and what cannot be read."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.schema.table import HEADERS, PARTITION, TIMESTAMP, TableSchema

SEGMENTS = TableSchema(
    "segments",
    "a segment of a partition: its log file and the index files beside it",
    {
        **PARTITION,
        "base_offset": pa.int64(),
        "next_offset": pa.int64(),
        "size_in_bytes": pa.int64(),
        "batches": pa.int64(),
        "records": pa.int64(),
        "first_timestamp": TIMESTAMP,
        "max_timestamp": TIMESTAMP,
        "clean": pa.bool_(),
        "torn_bytes": pa.int64(),
        "state": pa.string(),
    },
    {
        "file": pa.string(),
        "replica": pa.string(),
        "first_timestamp_ms": pa.int64(),
        "max_timestamp_ms": pa.int64(),
    },
)

TOPIC_SUMMARY = TableSchema(
    "topic_summary",
    "a topic: what its partitions hold, as their batch headers say",
    {
        "topic": pa.string(),
        "partitions": pa.int32(),
        "records": pa.int64(),
        "size_in_bytes": pa.int64(),
        "first_timestamp": TIMESTAMP,
        "last_timestamp": TIMESTAMP,
        "formats": pa.string(),
        "health": pa.string(),
    },
)

BATCHES = TableSchema(
    "batches",
    "a record batch, from its header alone",
    {
        **PARTITION,
        "segment_base_offset": pa.int64(),
        "position": pa.int64(),
        "size_in_bytes": pa.int64(),
        "base_offset": pa.int64(),
        "last_offset": pa.int64(),
        "partition_leader_epoch": pa.int32(),
        "magic": pa.int8(),
        "crc": pa.int64(),
        "crc_ok": pa.bool_(),
        "attributes": pa.int16(),
        "compression": pa.string(),
        "timestamp_type": pa.string(),
        "base_timestamp": TIMESTAMP,
        "max_timestamp": TIMESTAMP,
        "delete_horizon": TIMESTAMP,
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "base_sequence": pa.int32(),
        "records_count": pa.int32(),
        "is_transactional": pa.bool_(),
        "is_control": pa.bool_(),
        "control_type": pa.string(),
    },
    {
        "file": pa.string(),
        "replica": pa.string(),
        "batch_length": pa.int32(),
        "last_offset_delta": pa.int32(),
        "base_timestamp_ms": pa.int64(),
        "max_timestamp_ms": pa.int64(),
        "delete_horizon_ms": pa.int64(),
        "salvaged": pa.bool_(),
    },
)

REPLICAS = TableSchema(
    "replicas",
    "what a log directory, a remote tier, or a folder that Kafka marked, holds of a partition",
    {
        **PARTITION,
        "topic_id": pa.string(),
        "node_id": pa.int32(),
        "directory": pa.string(),
        "kind": pa.string(),
        "log_start_offset": pa.int64(),
        "end_offset": pa.int64(),
        "last_epoch": pa.int32(),
        "high_watermark": pa.int64(),
        "in_isr": pa.bool_(),
        "agrees_until": pa.int64(),
        "is_chosen": pa.bool_(),
        "missing": pa.list_(pa.struct([pa.field("first_offset", pa.int64()), pa.field("end_offset", pa.int64())])),
        "damaged": pa.list_(
            pa.struct(
                [
                    pa.field("segment_base_offset", pa.int64()),
                    pa.field("position", pa.int64()),
                    pa.field("size_in_bytes", pa.int64()),
                    pa.field("error", pa.string()),
                ]
            )
        ),
    },
    {"folder": pa.string()},
)

RECORDS = TableSchema(
    "records",
    "a record",
    {
        "key": pa.binary(),
        "value": pa.binary(),
        **PARTITION,
        "offset": pa.int64(),
        "timestamp": TIMESTAMP,
        "timestamp_type": pa.string(),
        "headers": HEADERS,
    },
    {
        "timestamp_ms": pa.int64(),
        "timestamp_type_id": pa.int32(),
        "base_offset": pa.int64(),
        "position": pa.int64(),
        "partition_leader_epoch": pa.int32(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "sequence": pa.int32(),
        "is_transactional": pa.bool_(),
        "is_control": pa.bool_(),
        "control_type": pa.string(),
        "transaction_state": pa.string(),
        "visible_at": pa.int64(),
        "salvaged": pa.bool_(),
    },
)

MESSAGES = TableSchema(
    "messages",
    "a record of an internal topic or of the metadata log, typed",
    {
        **PARTITION,
        "offset": pa.int64(),
        "timestamp": TIMESTAMP,
        "type": pa.string(),
        "key_version": pa.int16(),
        "value_version": pa.int16(),
        "key": pa.string(),
        "value": pa.string(),
        "is_tombstone": pa.bool_(),
        "transaction_state": pa.string(),
        "error": pa.string(),
    },
    {"raw_key": pa.binary(), "raw_value": pa.binary()},
    json=frozenset({"key", "value"}),
)

INDEX_ENTRIES = TableSchema(
    "index_entries",
    "an entry of an .index, .timeindex or .txnindex file",
    {
        **PARTITION,
        "file": pa.string(),
        "offset": pa.int64(),
        "position": pa.int64(),
        "timestamp": TIMESTAMP,
        "producer_id": pa.int64(),
        "last_offset": pa.int64(),
        "lso": pa.int64(),
    },
    {"replica": pa.string(), "timestamp_ms": pa.int64()},
)

ERRORS = TableSchema(
    "errors",
    "a piece of input that could not be read",
    {
        **PARTITION,
        "segment_base_offset": pa.int64(),
        "position": pa.int64(),
        "size_in_bytes": pa.int64(),
        "base_offset": pa.int64(),
        "record_index": pa.int32(),
        "error": pa.string(),
        "message": pa.string(),
    },
    {"replica": pa.string()},
)
