"""The table ``records``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from kraftlog.layout.discover import Discovery
from kraftlog.read.log_pass import Pass
from kraftlog.read.ranges import Range, plan
from kraftlog.read.records import read_ranges
from kraftlog.tables.read import Read

PARALLEL_RANGE_BYTES = 16 << 20


def record_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``records``."""
    cut = replace(read, range_bytes=read.range_bytes or PARALLEL_RANGE_BYTES if read.workers > 1 else None)
    parts = record_ranges(read.files, read.schema.names, cut, follows=read.workers == 1)
    return read_ranges(parts, read.schema, read)


def record_ranges(files: Discovery, columns: Sequence[str], read: Pass, *, follows: bool = False) -> Iterator[Range]:
    """Return the byte ranges with the requested records; each starts at a batch boundary."""
    from kraftlog.read.committed_ranges import needs_transactions, ranges_with_transactions

    if needs_transactions(read.options, columns):
        return ranges_with_transactions(files.segments, columns, read, follows=follows)
    return plan(files.segments, read.options, read.range_bytes)
