"""One task of an export: a part of the log becomes Parquet files, and a receipt that lists them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.notes import Notes
from kraftlog.spark.counters import Counters
from kraftlog.spark.export_plan import ExportPlan, FileOptions
from kraftlog.spark.parts import Part
from kraftlog.spark.task import read_part, segments_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

NO_ROWS = "no-rows.parquet"
ROW_GROUP_BYTES = 64 << 20  # rows in memory; long values fill a row group before it has its number of rows


@dataclass(frozen=True)
class WrittenFile:
    """A file of an export.

    Attributes
    ----------
    path : str
        Relative to the output.
    topic : str or None
    partition : int or None
    rows : int
    size_in_bytes : int
    first_offset, last_offset : int or None
        Least and largest value of the column ``offset``, if the export has it.
    """

    path: str
    topic: str | None
    partition: int | None
    rows: int
    size_in_bytes: int
    first_offset: int | None
    last_offset: int | None


@dataclass(frozen=True)
class Receipt:
    """The files, rows and faults of one part, and the records of aborted transactions that it left out."""

    part: int
    files: list[WrittenFile]
    errors: list[Fault]
    aborted_records: int = 0

    def to_json(self) -> str:
        """Return it as a line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """Parse the output of ``to_json``."""
        given = json.loads(text)
        files = [WrittenFile(**file) for file in given["files"]]
        return cls(given["part"], files, [Fault(**fault) for fault in given["errors"]], given["aborted_records"])


def receipt_path(staging: Path, part: Part) -> Path:
    """Return the path of the receipt of a part."""
    return staging / "receipts" / f"{part.number:05d}.json"


def write_part(plan: ExportPlan, part: Part, counters: Counters | None = None) -> Receipt:
    """Write the rows of one part.

    The names and rows of a part are the same each time that it is read. So attempts may follow each other or overlap:
    each writes under its own temporary name, and renames its file over an earlier one. The receipt is written last.

    Parameters
    ----------
    plan : ExportPlan
    part : Part
    counters : Counters, optional
    """
    faults, notes = list[Fault](), Notes()
    options = plan.file_options
    most_rows = options.max_rows_per_file or options.row_group_rows
    batches = read_part(plan.request, part, faults, counters, notes=notes)
    groups = row_groups(batches, min(options.row_group_rows, most_rows))
    files: list[WrittenFile] = []
    group = next(groups, None)
    while group is not None:
        file = _File(plan, part, len(files))
        try:
            while group is not None and file.has_room(group):
                file.write(group)
                group = next(groups, None)
            files.append(file.close())
        finally:
            file.unfinished.unlink(missing_ok=True)
    receipt = Receipt(part.number, files, faults, notes.aborted_records)
    _put(receipt_path(plan.staging, part), receipt.to_json())
    return receipt


def write_empty(plan: ExportPlan) -> WrittenFile:
    """Write a file with all columns and no rows, so that readers find a schema in an empty output."""
    path = plan.staging / "files" / NO_ROWS
    path.parent.mkdir(parents=True, exist_ok=True)
    open_parquet(path, plan.request.schema, plan.file_options).close()
    disk().sync_file(path)
    return WrittenFile(NO_ROWS, None, None, 0, path.stat().st_size, None, None)


def row_groups(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.Table]:
    """Collect record batches into tables with the number of rows of a row group."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for whole in batches:
        rest = whole
        while rest.num_rows:
            piece = rest.slice(0, most_rows - rows)
            rest = rest.slice(piece.num_rows)
            pending.append(piece)
            rows += piece.num_rows
            size += piece.nbytes
            if rows == most_rows or size >= ROW_GROUP_BYTES:
                yield pa.Table.from_batches(pending)
                pending, rows, size = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending)


def open_parquet(path: Path, schema: pa.Schema, options: FileOptions) -> pq.ParquetWriter:
    """Open a file with encodings that suit logs.

    Offsets, timestamps and other large numbers are stored as differences. Columns that repeat use dictionaries. Keys
    and values do not: the dictionary would overflow, and their minimum and maximum help no reader.
    """
    import pyarrow.parquet as pq

    differences = [field.name for field in schema if field.type == pa.int64() or pa.types.is_timestamp(field.type)]
    plain = [
        field.name
        for field in schema
        if pa.types.is_binary(field.type)
        or pa.types.is_nested(field.type)
        or (field.name in ("key", "value") and pa.types.is_string(field.type))
    ]
    return pq.ParquetWriter(
        path,
        schema,
        compression=options.compression,
        compression_level=options.compression_level,
        use_dictionary=[name for name in schema.names if name not in (*differences, *plain)],
        column_encoding=dict.fromkeys(differences, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in schema.names if name not in plain],
    )


class _File:
    """A file that is being written."""

    def __init__(self, plan: ExportPlan, part: Part, number: int) -> None:
        self.plan = plan
        self.name = plan.file_name(part, number)
        self.path = plan.staging / "files" / self.name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.unfinished = self.path.with_name(f".{self.path.name}.{uuid4().hex}")
        segments = segments_of(part)
        self.topic, self.partition = (segments[0].topic, segments[0].partition) if plan.by_partition else (None, None)
        self.rows = 0
        self.offsets: list[int] = []
        self._schema = plan.file_schema
        self._writer = open_parquet(self.unfinished, self._schema, plan.file_options)

    def has_room(self, group: pa.Table) -> bool:
        """Whether a row group still fits."""
        most = self.plan.file_options.max_rows_per_file
        return most is None or self.rows + group.num_rows <= most

    def write(self, group: pa.Table) -> None:
        """Write a row group."""
        self._writer.write_table(group.select(self._schema.names), row_group_size=group.num_rows)
        self.rows += group.num_rows
        if "offset" in group.column_names:
            extremes: dict[str, Any] = pc.min_max(group["offset"]).as_py()
            self.offsets += [value for value in extremes.values() if value is not None]

    def close(self) -> WrittenFile:
        """Finish the file and rename it into place."""
        self._writer.close()
        disk().sync_file(self.unfinished)
        self.unfinished.replace(self.path)
        disk().sync_folder(self.path.parent)
        return WrittenFile(
            self.name,
            self.topic,
            self.partition,
            self.rows,
            self.path.stat().st_size,
            min(self.offsets, default=None),
            max(self.offsets, default=None),
        )


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}")
    unfinished.write_text(text)
    disk().sync_file(unfinished)
    unfinished.replace(path)
    disk().sync_folder(path.parent)
