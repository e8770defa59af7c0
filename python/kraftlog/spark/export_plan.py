"""What an export writes and where: settled by the driver, sent to every task."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from kraftlog.read.ranges import Range
from kraftlog.spark.parts import Part
from kraftlog.spark.request import Request
from kraftlog.spark.task import segments_of
from kraftlog.tables.table import TaskCut

PARTITION_COLUMNS = ("topic", "partition")

# Hive escapes these characters in names of folders; Spark does the same.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(0x20)}
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

COMPRESSIONS = ("zstd", "lz4", "snappy", "gzip", "brotli", "none")


@dataclass(frozen=True)
class FileOptions:
    """How Parquet files are written.

    Attributes
    ----------
    compression : str
        One of ``COMPRESSIONS``.
    compression_level : int or None
    row_group_rows : int
        Maximum rows of a row group.
    max_rows_per_file : int or None
    """

    compression: str
    compression_level: int | None
    row_group_rows: int
    max_rows_per_file: int | None

    def check(self) -> None:
        """Raise a ValueError for options that the Parquet writer cannot apply."""
        for name, rows in (("row_group_rows", self.row_group_rows), ("max_rows_per_file", self.max_rows_per_file)):
            if rows is not None and rows < 1:
                raise ValueError(f"{name} is {rows}, not a positive number")
        if self.compression not in COMPRESSIONS:
            raise ValueError(f"compression is {self.compression!r}, not one of {', '.join(COMPRESSIONS)}")
        if self.compression != "none":
            try:
                pa.Codec(self.compression, self.compression_level)
            except (ValueError, OSError) as error:
                raise ValueError(f"compression_level is {self.compression_level}: {error}") from error
        elif self.compression_level is not None:
            raise ValueError(f"compression_level is {self.compression_level}, but compression is none")


@dataclass(frozen=True)
class ExportPlan:
    """One export.

    Attributes
    ----------
    request : Request
    file_options : FileOptions
    staging : Path
        Where tasks write.
    """

    request: Request
    file_options: FileOptions
    staging: Path

    @property
    def by_partition(self) -> bool:
        """Whether files lie in folders of topics and partitions."""
        return by_partition(self.request)

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of a file."""
        schema = self.request.schema
        if not self.by_partition:
            return schema
        return pa.schema([field for field in schema if field.name not in PARTITION_COLUMNS])

    def file_name(self, part: Part, number: int) -> str:
        """Return a file's path within the output; its name has the segment's base offset, the part and a number."""
        segments = segments_of(part)
        base_offset = (segments[0].base_offset if segments else None) or 0
        name = f"{base_offset:020d}-{part.number:05d}-{number:03d}.parquet"
        if not self.by_partition:
            return name
        return f"topic={_escaped(segments[0].topic)}/partition={_escaped(segments[0].partition)}/{name}"


def by_partition(request: Request) -> bool:
    """Whether an export makes folders: its columns include topic and partition, and its parts have them."""
    table = request.definition
    is_of_part = table.has_log_partitions and not table.shows_unread and table.cut is not TaskCut.REPLICAS
    return is_of_part and set(PARTITION_COLUMNS) < set(request.columns)


def identity(options: dict[str, str], file_options: FileOptions, parts: list[Part]) -> str:
    """Return the name of an export: the same for the same options and the same files of the same sizes."""
    described = {
        "options": options,
        "file_options": asdict(file_options),
        "parts": [_described(part) for part in parts],
    }
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def _described(part: Part) -> list[object]:
    files = [[str(segment.path), segment.size] for segment in segments_of(part)]
    bytes_read = [part.work.start, part.work.end] if isinstance(part.work, Range) else []
    return [type(part.work).__name__, files, bytes_read, repr(part.options)]


def _escaped(value: str | int | None) -> str:
    """Return a value escaped as in the name of a folder."""
    if value is None:
        return _NULL_FOLDER
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in str(value))
