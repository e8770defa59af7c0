"""The tables that Python, the command line and Spark show: names, types and order of their columns.

This is the only place where a table's columns are listed; readers, the command line, Spark and tests follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
IS_JSON = {b"content": b"json"}


@dataclass(frozen=True)
class TableSchema:
    """One table: the columns that it shows, and those that it shows when they are asked for.

    Text in columns of ``json`` is JSON; their fields say so in their metadata.
    """

    name: str
    row: str
    shown: dict[str, pa.DataType]
    on_request: dict[str, pa.DataType] = field(default_factory=dict)
    json: frozenset[str] = frozenset()

    def select(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """Return the Arrow schema of these columns, in the order asked for.

        Raises
        ------
        ValueError
            When the table has no such column; the message lists those it has.
        """
        every = self.shown | self.on_request
        names = list(self.shown) if columns is None else list(columns)
        for name in names:
            if name not in every:
                raise ValueError(f"table {self.name} has no column {name!r}; it has {', '.join(every)}")
        return pa.schema(
            [pa.field(name, every[name], metadata=IS_JSON if name in self.json else None) for name in names]
        )


_PARTITION = {"topic": pa.string(), "partition": pa.int32()}

SEGMENTS = TableSchema(
    "segments",
    "a segment of a partition: its log file and the index files beside it",
    {
        **_PARTITION,
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
        "first_timestamp_ms": pa.int64(),
        "max_timestamp_ms": pa.int64(),
    },
)

BATCHES = TableSchema(
    "batches",
    "a record batch, from its header alone",
    {
        **_PARTITION,
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
        "batch_length": pa.int32(),
        "last_offset_delta": pa.int32(),
        "base_timestamp_ms": pa.int64(),
        "max_timestamp_ms": pa.int64(),
        "delete_horizon_ms": pa.int64(),
        "salvaged": pa.bool_(),
    },
)

RECORDS = TableSchema(
    "records",
    "a record",
    {
        "key": pa.binary(),
        "value": pa.binary(),
        **_PARTITION,
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

TRANSACTIONS = TableSchema(
    "transactions",
    "a producer's transaction in a partition",
    {
        **_PARTITION,
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

PRODUCERS = TableSchema(
    "producers",
    "the state of a producer in a partition, as the log says it is",
    {
        **_PARTITION,
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
        **_PARTITION,
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "coordinator_epoch": pa.int32(),
        "start_offset": pa.int64(),
        "last_timestamp": TIMESTAMP,
        "transactional_id": pa.string(),
        "reason": pa.string(),
        "command": pa.string(),
    },
    {"last_timestamp_ms": pa.int64()},
)

OFFSETS = TableSchema(
    "offsets",
    "the committed offset of a group and partition, or one that is pending in a transaction",
    {
        "group": pa.string(),
        **_PARTITION,
        "offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "metadata": pa.string(),
        "commit_timestamp": TIMESTAMP,
        "expire_timestamp": TIMESTAMP,
        "topic_id": pa.string(),
        "state": pa.string(),
    },
    {
        "commit_timestamp_ms": pa.int64(),
        "expire_timestamp_ms": pa.int64(),
        "record_offset": pa.int64(),
        "producer_id": pa.int64(),
    },
)

_ASSIGNMENT = pa.list_(
    pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partitions", pa.list_(pa.int32()))])
)
_TASKS = pa.list_(pa.struct([("subtopology_id", pa.string()), ("partitions", pa.list_(pa.int32()))]))

GROUPS = TableSchema(
    "groups",
    "a group and its members",
    {
        "group": pa.string(),
        "group_type": pa.string(),
        "state": pa.string(),
        "protocol_type": pa.string(),
        "protocol": pa.string(),
        "leader": pa.string(),
        "generation_or_epoch": pa.int32(),
        "members": pa.list_(
            pa.struct(
                [
                    ("member_id", pa.string()),
                    ("instance_id", pa.string()),
                    ("client_id", pa.string()),
                    ("client_host", pa.string()),
                    ("rack_id", pa.string()),
                    ("member_epoch", pa.int32()),
                    ("state", pa.string()),
                    ("subscription", pa.list_(pa.string())),
                    ("subscribed_topic_regex", pa.string()),
                    ("assignment", _ASSIGNMENT),
                    ("target_assignment", _ASSIGNMENT),
                    ("active_tasks", _TASKS),
                    ("standby_tasks", _TASKS),
                    ("warmup_tasks", _TASKS),
                    ("raw_subscription", pa.binary()),
                    ("raw_assignment", pa.binary()),
                ]
            )
        ),
    },
    {"target_assignment_epoch": pa.int32()},
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

MESSAGES = TableSchema(
    "messages",
    "a record of an internal topic or of the metadata log, typed",
    {
        **_PARTITION,
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
        **_PARTITION,
        "file": pa.string(),
        "offset": pa.int64(),
        "position": pa.int64(),
        "timestamp": TIMESTAMP,
        "producer_id": pa.int64(),
        "last_offset": pa.int64(),
        "lso": pa.int64(),
    },
    {"timestamp_ms": pa.int64()},
)

ERRORS = TableSchema(
    "errors",
    "a piece of input that could not be read",
    {
        **_PARTITION,
        "segment_base_offset": pa.int64(),
        "position": pa.int64(),
        "size_in_bytes": pa.int64(),
        "base_offset": pa.int64(),
        "record_index": pa.int32(),
        "error": pa.string(),
        "message": pa.string(),
    },
)

# not tables that are read: what a broker would answer, and what is added up
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
        **_PARTITION,
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

# not a table of its own on the command line
LAST_STABLE_OFFSETS = TableSchema(
    "last_stable_offsets",
    "a partition, and where a read_committed reader stops in it",
    {**_PARTITION, "last_stable_offset": pa.int64()},
)

# what a broker answers to ListOffsets
PARTITION_OFFSETS = TableSchema(
    "partition_offsets",
    "a partition, and the offset that was asked for",
    {**_PARTITION, "offset": pa.int64(), "timestamp": TIMESTAMP},
    {
        "timestamp_ms": pa.int64(),
        "log_start_offset": pa.int64(),
        "last_stable_offset": pa.int64(),
        "log_end_offset": pa.int64(),
    },
)

# what kafka-consumer-groups answers to --describe
LAG = TableSchema(
    "lag",
    "what a group has committed in a partition, against the end of its log",
    {
        "group": pa.string(),
        **_PARTITION,
        "current_offset": pa.int64(),
        "log_end_offset": pa.int64(),
        "lag": pa.int64(),
        "last_stable_offset": pa.int64(),
        "read_committed_lag": pa.int64(),
        "reason": pa.string(),
    },
    {"log_start_offset": pa.int64()},
)

# not a table that is read, but what is done
RECOVERY = TableSchema(
    "recovery",
    "what is done with a file",
    {
        **_PARTITION,
        "file": pa.string(),
        "action": pa.string(),
        "size_before": pa.int64(),
        "size_after": pa.int64(),
        "reason": pa.string(),
    },
)

TABLES = {
    table.name: table
    for table in (
        SEGMENTS,
        BATCHES,
        RECORDS,
        MESSAGES,
        TRANSACTIONS,
        METADATA_TRANSACTIONS,
        METADATA_CHANGES,
        PRODUCERS,
        HANGING_TRANSACTIONS,
        OFFSETS,
        GROUPS,
        TRANSACTIONAL_IDS,
        INDEX_ENTRIES,
        ERRORS,
    )
}
