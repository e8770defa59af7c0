"""Eligible leader replicas of partitions (KIP-966), which belong to a feature of their own."""

from __future__ import annotations

import pyarrow as pa

from kraftlog.metadata.topics.types import PARTITION

_COLUMNS = ("eligible_leader_replicas", "last_known_elr")


def without_elr(name: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return records of a type; PartitionRecords without their eligible leader replicas."""
    if name != PARTITION:
        return rows
    columns = [
        pa.nulls(rows.num_rows, field.type) if field.name in _COLUMNS else rows.column(field.name)
        for field in rows.schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
