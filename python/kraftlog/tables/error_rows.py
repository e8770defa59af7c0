"""The table ``errors``."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kraftlog.check.partitions import check_segments
from kraftlog.stream import errors_table
from kraftlog.tables.message_tables import note_bad_messages
from kraftlog.tables.read import Read
from kraftlog.tables.unread_files import left_alone


def error_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``errors``: unreadable data, and ignored files."""
    faults, segments = read.faults, read.segments
    checks = check_segments(segments, read, compares=False)
    for fault in checks:
        faults.append(fault)
    note_bad_messages(segments, read)
    table = errors_table([*faults, *left_alone(read.files)], read.schema.names)
    yield from table.to_batches()
