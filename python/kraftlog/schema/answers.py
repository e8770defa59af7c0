"""What is computed of logs when it is asked for: these are not among the tables that are read."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.schema.table import PARTITION, TIMESTAMP, TableSchema

# what a broker would answer
VERDICTS = TableSchema(
    "verdicts",
    "a record batch, as a broker would answer a producer that sends it",
    {
        "position": pa.int64(),
        "size_in_bytes": pa.int64(),
        "base_offset": pa.int64(),
        "error_code": pa.int16(),
        "error": pa.string(),
        "record_index": pa.int32(),
        "message": pa.string(),
    },
)

STATS = TableSchema(
    "stats",
    "a partition, or a producer in it",
    {
        **PARTITION,
        "producer_id": pa.int64(),
        "batches": pa.int64(),
        "records": pa.int64(),
        "size_in_bytes": pa.int64(),
        "mean_batch_bytes": pa.float64(),
        "compression": pa.string(),
        "compression_ratio": pa.float64(),
        "first_timestamp": TIMESTAMP,
        "max_timestamp": TIMESTAMP,
    },
)

# what takes the space; on request what compaction and retention would leave
SPACE = TableSchema(
    "space",
    "a partition, and what takes its bytes: size = key + value + header + overhead - saved + unread",
    {
        **PARTITION,
        "records": pa.int64(),
        "size_in_bytes": pa.int64(),
        "key_bytes": pa.int64(),
        "value_bytes": pa.int64(),
        "header_bytes": pa.int64(),
        "overhead_bytes": pa.int64(),
        "saved_bytes": pa.int64(),
        "unread_bytes": pa.int64(),
        "index_bytes": pa.int64(),
        "allocated_bytes": pa.int64(),
        "compression": pa.string(),
    },
    {
        "compacted_records": pa.int64(),
        "compacted_bytes": pa.int64(),
        "retained_offset": pa.int64(),
        "retained_bytes": pa.int64(),
    },
)

KEY_STATS = TableSchema(
    "key_stats",
    "a partition, and how many keys its records have",
    {
        **PARTITION,
        "records": pa.int64(),
        "null_keys": pa.int64(),
        "tombstones": pa.int64(),
        "distinct_keys": pa.int64(),
        "duplicates": pa.int64(),
        "is_estimate": pa.bool_(),
    },
)

TOP_KEYS = TableSchema(
    "top_keys",
    "a key of a partition that many records have",
    {
        **PARTITION,
        "key": pa.binary(),
        "records": pa.int64(),
        "size_in_bytes": pa.int64(),
        "tombstones": pa.int64(),
        "is_estimate": pa.bool_(),
    },
)

WRITES = TableSchema(
    "writes",
    "a stretch of time, and what records of a partition have a timestamp in it",
    {**PARTITION, "start": TIMESTAMP, "records": pa.int64(), "size_in_bytes": pa.int64()},
)

# what kraftlog grep --count answers
MATCHES = TableSchema("matches", "a partition, and how many of its records match", {**PARTITION, "records": pa.int64()})

LAST_STABLE_OFFSETS = TableSchema(
    "last_stable_offsets",
    "a partition, and where a read_committed reader stops in it",
    {**PARTITION, "last_stable_offset": pa.int64()},
)

# what an audit answers
FINDINGS = TableSchema(
    "findings",
    "something that the files of a cluster prove",
    {
        "code": pa.string(),
        "severity": pa.string(),
        **PARTITION,
        "offset": pa.int64(),
        "node_id": pa.int32(),
        "file": pa.string(),
        "known": pa.string(),
        "meaning": pa.string(),
        "next_command": pa.string(),
    },
    {"sentence": pa.string()},
)

# what a broker answers to ListOffsets
PARTITION_OFFSETS = TableSchema(
    "partition_offsets",
    "a partition, and the offset that was asked for",
    {**PARTITION, "offset": pa.int64(), "timestamp": TIMESTAMP},
    {
        "timestamp_ms": pa.int64(),
        "log_start_offset": pa.int64(),
        "last_stable_offset": pa.int64(),
        "log_end_offset": pa.int64(),
        "high_watermark_at_least": pa.int64(),
        "high_watermark_at_most": pa.int64(),
    },
)

# what kafka-consumer-groups answers to --describe
LAG = TableSchema(
    "lag",
    "a partition that a group has committed an offset in, or that a member has, against the end of its log",
    {
        "group": pa.string(),
        **PARTITION,
        "current_offset": pa.int64(),
        "log_end_offset": pa.int64(),
        "lag": pa.int64(),
        "last_stable_offset": pa.int64(),
        "read_committed_lag": pa.int64(),
        "member_id": pa.string(),
        "reason": pa.string(),
        "cause": pa.string(),
    },
    {
        "log_start_offset": pa.int64(),
        "client_id": pa.string(),
        "client_host": pa.string(),
        "sentence": pa.string(),
    },
)

# not a table that is read, but what is done
RECOVERY = TableSchema(
    "recovery",
    "what is done with a file",
    {
        **PARTITION,
        "file": pa.string(),
        "action": pa.string(),
        "size_before": pa.int64(),
        "size_after": pa.int64(),
        "reason": pa.string(),
    },
)
