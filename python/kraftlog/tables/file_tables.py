"""Tables about files: segments, batches and index entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.scanner import DELETE_HORIZON_BIT, LOG_OVERHEAD, TIMESTAMP_TYPE_BIT
from kraftlog.codec import header_columns
from kraftlog.codec.header_scan import HeaderScan, within
from kraftlog.codec.headers import NO_TIMESTAMP, Headers, last_offsets
from kraftlog.errors import Fault
from kraftlog.layout.index_files import ENTRY_TYPES, read_index
from kraftlog.layout.replica_directory import replica_of
from kraftlog.layout.segment import Segment
from kraftlog.read.ranges import relevant
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import located, scanned, segment_file
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read

ROWS_AT_ONCE = 1 << 12


def batch_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the ``batches`` table; the crc is only verified if the options require it."""
    options, faults = read.options, read.faults
    for segment in relevant(read.segments, options):
        with segment_file(segment, faults, strict=options.strict) as file:
            scan = HeaderScan(file, *seek(segment, file, options), check_crc=options.check_crc, salvage=options.salvage)
            for headers in scanned(segment, scan, faults, strict=options.strict):
                chosen = within(headers, options)
                if len(chosen):
                    yield _batch_columns(segment, chosen, read.schema, scan.salvaged_at)
        read.advance(segment.size)


def _batch_columns(segment: Segment, headers: Headers, arrow_schema: pa.Schema, salvaged_at: int) -> pa.RecordBatch:
    constant = {
        "topic": segment.topic,
        "partition": segment.partition,
        "segment_base_offset": segment.base_offset,
        "file": segment.name,
    }
    if "replica" in arrow_schema.names:
        constant["replica"] = replica_of(segment)
    columns = []
    for field in arrow_schema:
        if field.name in constant:
            columns.append(header_columns.repeated(constant[field.name], field.type, len(headers)))
        elif field.name == "salvaged":
            columns.append(pa.array((headers["position"] >= salvaged_at) & (salvaged_at >= 0)))
        else:
            columns.append(header_columns.header_column(field.name, headers))
    return rows_of(columns, arrow_schema, len(headers))


def segment_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the ``segments`` table: live segments with data of their headers, others only with name and size."""
    rows = []
    segments = list(relevant(read.segments, read.options))
    for segment in segments:
        rows.append(_segment_row(segment, read.faults, strict=read.options.strict))
        read.advance(segment.size)
    rows += [_plain_row(segment) for segment in read.files.set_aside]
    if "replica" in read.schema.names:
        for row, segment in zip(rows, [*segments, *read.files.set_aside], strict=True):
            row["replica"] = replica_of(segment)
    rows.sort(key=lambda row: (row["topic"] or "", row["partition"] or 0, row["base_offset"] or 0, row["file"]))
    for at in range(0, len(rows), ROWS_AT_ONCE):
        yield from_rows(rows[at : at + ROWS_AT_ONCE], schema.SEGMENTS, read.schema)


def from_rows(rows: list[dict[str, Any]], table: schema.TableSchema, arrow_schema: pa.Schema) -> pa.RecordBatch:
    """Return rows whose ``*_ms`` values also make the timestamp columns."""
    columns = []
    for field in table.select(arrow_schema.names):
        values = [row.get(f"{field.name}_ms" if field.type == schema.TIMESTAMP else field.name) for row in rows]
        if field.type == schema.TIMESTAMP:
            known = np.array([NO_TIMESTAMP if v is None else v for v in values], np.int64)
            columns.append(header_columns.timestamps(known))
        else:
            columns.append(pa.array(values, field.type))
    return rows_of(columns, arrow_schema, len(rows))


def _plain_row(segment: Segment) -> dict[str, Any]:
    return {
        "topic": segment.topic,
        "partition": segment.partition,
        "base_offset": segment.base_offset,
        "size_in_bytes": segment.size,
        "file": segment.name,
        "state": segment.state.lstrip(".") or "live",
    }


def _segment_row(segment: Segment, faults: list[Fault], *, strict: bool) -> dict[str, Any]:
    totals, torn, before = SegmentTotals(segment), 0, len(faults)
    with segment_file(segment, faults, strict=strict) as file:
        scan = HeaderScan(file)
        for headers in scanned(segment, scan, faults, strict=strict):
            totals.add(headers)
        torn = segment.size - scan.torn_at if scan.torn_at >= 0 else 0
    return _plain_row(segment) | totals.row() | {"clean": len(faults) == before and not torn, "torn_bytes": torn}


class SegmentTotals:
    """Sums over the headers of a segment.

    Attributes
    ----------
    batches : int
    size_in_bytes : int
        Size of these batches.
    """

    def __init__(self, segment: Segment) -> None:
        self.batches = self.size_in_bytes = 0
        self._records: int | None = 0  # None: compressed messages of old formats do not say how many they hold
        self._next_offset = segment.base_offset
        self._stamps: dict[str, int] = {}

    def add(self, headers: Headers) -> None:
        """Add the next headers, at least one."""
        wrappers = (headers["magic"] < 2) & (headers["records_count"] < 0)
        counted = int(headers["records_count"].clip(min=0).sum(dtype=np.int64))
        self._records = None if wrappers.any() or self._records is None else self._records + counted
        reached = int(last_offsets(headers).max()) + 1
        self._next_offset = max(reached, self._next_offset or 0) if self.batches else reached
        self.size_in_bytes += int((headers["batch_length"].astype(np.int64) + LOG_OVERHEAD).sum())
        first, latest = headers[0], int(headers["max_timestamp"].max())
        starts_with_base = not first["attributes"] & (TIMESTAMP_TYPE_BIT | DELETE_HORIZON_BIT)
        self._stamps.setdefault(
            "first_timestamp_ms", int(first["base_timestamp" if starts_with_base else "max_timestamp"])
        )
        self._stamps["max_timestamp_ms"] = max(latest, self._stamps.get("max_timestamp_ms", latest))
        self.batches += len(headers)

    def row(self) -> dict[str, Any]:
        """Return columns of the table ``segments``."""
        columns = {"batches": self.batches, "records": self._records, "next_offset": self._next_offset}
        return columns | self._stamps


def index_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the ``index_entries`` table."""
    faults = read.faults
    for segment in relevant(read.segments, read.options):
        for kind in ENTRY_TYPES:
            path = segment.beside.get(kind)
            if path is None:
                continue
            found: list[Fault] = []
            try:
                entries = read_index(path, kind, segment.base_offset or 0, found)
            except OSError as error:
                faults.append(located(segment, Fault("unreadable_file", f"{path.name}: {error.strerror or error}")))
                continue
            faults.extend(located(segment, fault) for fault in found)
            yield _index_columns(segment, f"{path.parent.name}/{path.name}", entries, read.schema)


def _index_columns(
    segment: Segment, file: str, entries: dict[str, np.ndarray], arrow_schema: pa.Schema
) -> pa.RecordBatch:
    count = len(entries["offset"])
    constant = {"topic": segment.topic, "partition": segment.partition, "file": file}
    if "replica" in arrow_schema.names:
        constant["replica"] = replica_of(segment)
    columns = []
    for field in arrow_schema:
        source = "timestamp" if field.name == "timestamp_ms" else field.name
        if field.name in constant:
            columns.append(header_columns.repeated(constant[field.name], field.type, count))
        elif source not in entries:
            columns.append(pa.nulls(count, field.type))
        elif field.type == schema.TIMESTAMP:
            columns.append(header_columns.timestamps(entries[source]))
        else:
            columns.append(pa.array(entries[source], field.type))
    return rows_of(columns, arrow_schema, count)
