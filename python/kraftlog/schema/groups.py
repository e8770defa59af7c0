"""Tables of groups and what they have committed."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.schema.table import PARTITION, TIMESTAMP, TableSchema

OFFSETS = TableSchema(
    "offsets",
    "the committed offset of a group and partition, or one that is pending in a transaction",
    {
        "group": pa.string(),
        **PARTITION,
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
