"""What a Python user has today: aiokafka's record module, in its compiled form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from aiokafka.record import default_records, memory_records

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]  # timestamp, key, value, headers

for module in (memory_records.MemoryRecords, default_records.DefaultRecordBatchBuilder):
    assert "_crecords" in module.__module__, "aiokafka without its compiled part would make a slow yardstick"


def iterate(log: bytes) -> int:
    """Visit every record, with the checksum compared, and look at nothing but key and value."""
    count = 0
    for batch in _batches(log):
        for record in batch:
            record.key  # noqa: B018  (made when asked for)
            record.value  # noqa: B018
            count += 1
    return count


def to_arrow(log: bytes) -> pa.Table:
    """Collect four lists and make a table of them."""
    keys, values, offsets, timestamps = [], [], [], []
    for batch in _batches(log):
        for record in batch:
            keys.append(record.key)
            values.append(record.value)
            offsets.append(record.offset)
            timestamps.append(record.timestamp)
    return pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(timestamps, pa.timestamp("ms", "UTC")),
        }
    )


def to_rows(log: bytes) -> list[list[Row]]:
    """Return the records of each batch as the tuples that ``build`` takes."""
    return [[(r.timestamp, r.key, r.value, list(r.headers)) for r in batch] for batch in _batches(log)]


def build(batches: list[list[Row]], max_batch_bytes: int) -> int:
    """Build the batches again, without compression; returns how many records went in."""
    count = 0
    for rows in batches:
        builder = default_records.DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=max_batch_bytes,
        )
        for offset, (timestamp, key, value, headers) in enumerate(rows):
            builder.append(offset, timestamp, key, value, headers)
        builder.build()
        count += len(rows)
    return count


def _batches(log: bytes) -> Iterator[Any]:
    records = memory_records.MemoryRecords(log)
    while (batch := records.next_batch()) is not None:
        if not batch.validate_crc():
            raise ValueError("checksum")
        yield batch
