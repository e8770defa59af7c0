"""The table ``records``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.read.ranges import Range, plan
from kraftlog.read.records import read_ranges
from kraftlog.tables.read import Read

PARALLEL_RANGE_BYTES = 16 << 20


def record_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``records``."""
    size = read.range_bytes or PARALLEL_RANGE_BYTES if read.workers > 1 else None
    names, options, faults, notes = read.schema.names, read.options, read.faults, read.notes
    parts = record_ranges(read.files, options, size, names, faults, notes, follows=read.workers == 1)
    return read_ranges(parts, read.schema, options, faults, read.workers, read.on_progress, notes)


def record_ranges(
    found: Discovery,
    options: ReadOptions,
    range_bytes: int | None,
    columns: Sequence[str],
    faults: list[Fault],
    notes: list[str],
    *,
    follows: bool = False,
) -> Iterator[Range]:
    """Return the byte ranges with the requested records; each starts at a batch boundary."""
    from kraftlog.read.committed_ranges import needs_transactions, ranges_with_transactions

    if needs_transactions(options, columns):
        return ranges_with_transactions(found.segments, options, range_bytes, columns, faults, notes, follows=follows)
    return plan(found.segments, options, range_bytes)
