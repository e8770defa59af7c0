"""Write times: the number of records with a timestamp in each minute, hour or day."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog import schema
from kraftlog.codec.header_columns import timestamps
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.layout.discover import Discovery
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_ranges
from kraftlog.tables.deleted_records import notes_of_deleted

MILLISECONDS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}


def writes(files: Discovery, unit: str, read: Pass) -> pa.Table:
    """Count the records of each partition by timestamp.

    Parameters
    ----------
    files : Discovery
    unit : {"minute", "hour", "day"}
    read : Pass
        Notes are about records before the log start offset, which are not counted.

    Returns
    -------
    pyarrow.Table
        A row for each interval with records, in UTC; sizes are those of keys and values. ``start`` is null for records
        without a timestamp.
    """
    if unit not in MILLISECONDS:
        raise ValueError(f"unit {unit!r} is not one of {', '.join(MILLISECONDS)}")
    arrow_schema = schema.RECORDS.select(["timestamp_ms", "key", "value"])
    read.notes.extend(notes_of_deleted(files.segments, read.options))
    tables = []
    for group in by_partition(files.segments):
        sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
        for rows in read_ranges(plan(group, read.options, None), arrow_schema, read):
            stamps = rows["timestamp_ms"].to_numpy()
            starts = np.where(stamps == NO_TIMESTAMP, NO_TIMESTAMP, stamps // MILLISECONDS[unit] * MILLISECONDS[unit])
            sizes = pc.add(
                *(pc.fill_null(pc.binary_length(rows[name]), 0).cast(pa.int64()) for name in ("key", "value"))
            )
            each = pa.table({"start": starts, "size": sizes}).group_by("start")
            for start, count, size in zip(*each.aggregate([([], "count_all"), ("size", "sum")]).columns, strict=True):
                sums[start.as_py()][0] += count.as_py()
                sums[start.as_py()][1] += size.as_py()
        order = sorted(sums)
        columns = {
            "topic": pa.array([group[0].topic] * len(order), pa.string()),
            "partition": pa.array([group[0].partition] * len(order), pa.int32()),
            "start": timestamps(np.array(order, np.int64)),
            "records": pa.array([sums[start][0] for start in order], pa.int64()),
            "size_in_bytes": pa.array([sums[start][1] for start in order], pa.int64()),
        }
        tables.append(pa.table(columns, schema=schema.WRITES.select()))
    return pa.concat_tables(tables) if tables else schema.WRITES.select().empty_table()
