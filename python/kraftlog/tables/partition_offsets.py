"""Offsets of partitions, like a broker's answers to ListOffsets: start and end of a log, and offsets for timestamps.

A broker's own answers are never after its high watermark, which is not in the log; ``HighWatermarks`` has bounds for
it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kraftlog.codec.header_columns import timestamps
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.errors import error_from_fault
from kraftlog.read.partitions import by_partition
from kraftlog.stream import rows_of
from kraftlog.tables.high_watermarks import HighWatermarks
from kraftlog.tables.lines import Lines
from kraftlog.tables.partition_ends import PartitionEnds, live_logs
from kraftlog.tables.read import Read

_WATERMARKS = {"high_watermark_at_least", "high_watermark_at_most"}


def partition_offset_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table partition_offsets; what cannot be found is null."""
    lines, options, faults = Lines(read.files), read.options, read.faults
    arrow_schema = read.schema
    watermarks = HighWatermarks(lines, faults)
    for group in live_logs(lines.found.segments):
        known = len(faults)
        ends = PartitionEnds(group, faults)
        found = ends.at(options.time, read)
        values = {
            "topic": group[0].topic,
            "partition": group[0].partition,
            "offset": found.offset,
            "timestamp_ms": None if found.timestamp == NO_TIMESTAMP else found.timestamp,
            **dict.fromkeys(_WATERMARKS),
        }
        if not _WATERMARKS.isdisjoint(arrow_schema.names) and ends.log_end_offset is not None:
            bounds = watermarks.of(group[0], ends.log_end_offset)
            values |= {f"high_watermark_{name}": getattr(bounds, name) for name in ("at_least", "at_most")}
        columns = []
        for field in arrow_schema:
            if field.name == "timestamp":
                columns.append(timestamps(np.array([found.timestamp], np.int64)))
            else:
                value = values[field.name] if field.name in values else getattr(ends, field.name)
                columns.append(pa.array([value], field.type))
        if options.strict and len(faults) > known:
            raise error_from_fault(faults[known])
        yield rows_of(columns, arrow_schema, 1)
    read.notes.extend(note for note in lines.metadata_notes if note not in read.notes)


def last_stable_offset_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the last stable offset of each folder's partition, as far as its log tells; null where it is not known."""
    for group in by_partition(segment for segment in read.segments if not segment.state):
        stable = PartitionEnds(group, read.faults).last_stable_offset
        row = {"topic": group[0].topic, "partition": group[0].partition, "last_stable_offset": stable}
        yield pa.RecordBatch.from_pylist([row], schema=read.schema)
