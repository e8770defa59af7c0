"""The table metadata_changes: changes of the cluster's image by visible records of a metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec import header_columns
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.metadata.changed import ChangedByType
from kraftlog.metadata.column_texts import json_texts
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.diff.images import changed_records
from kraftlog.metadata.diff.rows import change_rows
from kraftlog.metadata.image import Image
from kraftlog.metadata_log.changes import Changes, changes
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read

Stamps = npt.NDArray[np.int64]


def metadata_change_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table metadata_changes, for each metadata log among the segments.

    Changes start after the image at the offset before the first requested one: the image of the last snapshot before
    it, and the following records of the log. With ``include_image`` the records of that image come first, as added at
    its offset. A snapshot without a log has no changes.
    """
    options, faults = read.options, read.faults
    for group in by_partition(read.segments):
        if not is_metadata(group[0]):
            continue
        log, known = MetadataLog(group), len(faults)
        first = max(options.start_offset, log.start_offset)
        before = image_at(log, first - 1, faults)
        _refuse(faults, known, strict=options.strict)
        if options.include_image:
            image = changed_records(Image.empty(), before.image, before.offset)
            yield from _rows(read, image, np.array([before.offset]), np.array([before.timestamp]))
        if log.is_snapshot or first >= options.end_offset:
            continue
        last = None if options.end_offset == NO_BOUND else options.end_offset - 1
        for steps in changes(log, before, last, faults, on_progress=read.on_progress):
            _refuse(faults, known, strict=options.strict)
            yield from _rows(read, _in_time(steps, options), steps.offsets, steps.timestamps)
        _refuse(faults, known, strict=options.strict)


def _refuse(faults: list[Fault], known: int, *, strict: bool) -> None:
    if strict and len(faults) > known:
        raise error_from_fault(faults[known])


def _in_time(steps: Changes, options: ReadOptions) -> ChangedByType:
    """Return the changes within the bounds of time."""
    if not options.bounds_timestamps:
        return steps.changed
    is_in = (steps.timestamps >= options.start_timestamp) & (steps.timestamps < options.end_timestamp)
    offsets = steps.offsets[is_in]
    return {name: one.take(np.isin(one.groups, offsets)) for name, one in steps.changed.items()}


def _rows(read: Read, changed: ChangedByType, offsets: Stamps, timestamps: Stamps) -> Iterator[pa.RecordBatch]:
    options, arrow_schema = read.options, read.schema
    where = ChangeFilter() if read.where is None else read.where
    rows = change_rows(
        where.records(changed),
        partial(json_texts, show_secrets=options.show_secrets),
        show_secrets=options.show_secrets,
        with_brokers="brokers" in arrow_schema.names or where.brokers is not None,
    )
    rows = where.rows(rows).combine_chunks()
    if not rows.num_rows:
        return
    stamps = timestamps[np.searchsorted(offsets, rows.column("group").to_numpy())]
    found = {
        "offset": rows.column("group"),
        "timestamp": header_columns.timestamps(stamps),
        "timestamp_ms": pa.array(stamps, mask=stamps == -1),
    }
    columns = [found[name] if name in found else rows.column(name) for name in arrow_schema.names]
    whole = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    batch = rows_of([pa.concat_arrays([column]) for column in whole], arrow_schema, rows.num_rows)
    for at in range(0, batch.num_rows, options.batch_rows):
        yield batch.slice(at, options.batch_rows)
