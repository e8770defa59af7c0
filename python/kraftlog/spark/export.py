"""Log files to Parquet by Spark's workers, without a row going through the JVM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import READ_COMMITTED
from kraftlog.layout.log_directory import refuse_inside
from kraftlog.spark.counters import Counters
from kraftlog.spark.export_part import Receipt, WrittenFile, receipt_path, write_empty, write_part
from kraftlog.spark.export_plan import PARTITION_COLUMNS, ExportPlan, FileOptions, identity
from kraftlog.spark.export_publish import MANIFEST, begin, decide, is_decided, only_writer, publish, read_json
from kraftlog.spark.header_stage import in_cluster
from kraftlog.spark.options import parse_request
from kraftlog.spark.over_parts import over_parts
from kraftlog.spark.parts import Part, plan_parts
from kraftlog.spark.paths import local_folder
from kraftlog.spark.quarantine import begin_quarantine, make_quarantine
from kraftlog.spark.ranges import option_texts
from kraftlog.spark.request import Request
from kraftlog.spark.s3a import S3aSettings
from kraftlog.spark.title import title
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.left_out import LeftOut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_GROUP_ROWS = 1 << 17

_UNTOLD = re.compile(
    r"storageOptions|remoteTier|tierKeys|redactKey|paths?|kafka\.(?!isolation\.level$).*", re.IGNORECASE
)

_RECEIPT = pa.schema([pa.field("receipt", pa.string())])


@dataclass(frozen=True)
class Export:
    """The result of ``to_parquet``.

    Attributes
    ----------
    manifest : Path
        The file that lists all files, with rows and offsets.
    schema : str
        Columns in Spark's notation: ``spark.read.schema(export.schema).parquet(...)``.
    rows, files, size_in_bytes : int
        Totals of the whole output.
    errors : pyarrow.Table
        What could not be read, as the table ``errors``.
    notes : list of str
        With read_committed: the number of records of aborted transactions that were left out.
    """

    manifest: Path
    schema: str = field(repr=False)
    rows: int
    files: int
    size_in_bytes: int
    errors: pa.Table = field(repr=False)
    notes: list[str] = field(repr=False)


def to_parquet(
    spark: SparkSession,
    path: str | list[str],
    output: str,
    *,
    compression: str = "zstd",
    compression_level: int | None = None,
    row_group_rows: int = ROW_GROUP_ROWS,
    max_rows_per_file: int | None = None,
    overwrite: bool = False,
    counters: Counters | None = None,
    **options: object,
) -> Export:
    """Write a table of log files as Parquet: each task reads a part of the log and writes its own files.

    When the columns include topic and partition (the default) and rows belong to partitions, files lie in
    ``topic=.../partition=...`` and do not repeat these columns; readers take them from the folders. Spark guesses their
    types there: when all topics look like numbers or dates, pass it the schema of the result, or set
    ``spark.sql.sources.partitionColumnTypeInference.enabled`` to false.

    The output becomes visible at the end. Until then it is staged in ``_kraftlog``, which readers ignore; then files
    are renamed into place one by one, and ``_manifest.json`` and finally ``_SUCCESS`` are written. A reader that waits
    for ``_SUCCESS``, or reads the files of ``_manifest.json``, sees all or nothing. With ``overwrite`` the earlier
    output stays until all parts of the new one are written; ``_SUCCESS`` is absent while files change.

    After a crash or an error the same call resumes: it does not write finished parts again. A call is the same if its
    options, its files and their sizes are; for a log that grows, set ``endingOffsets``.

    Parameters
    ----------
    spark : SparkSession
        Classic, or of Spark Connect.
    path : str or list of str
        Segment files, partition folders, log directories or globs; executors must see the same paths.
    output : str
        A folder on a file system that the driver and all executors mount. It must be new, empty, or hold an earlier
        export.
    compression : str
        zstd, lz4, snappy, gzip, brotli or none.
    compression_level : int, optional
        By default the codec's.
    row_group_rows : int
        Maximum rows of a row group.
    max_rows_per_file : int, optional
        By default each part is one file; the option ``rangeBytes`` sets its size: by default 128 MiB of log, or one
        segment if there are 512 or more.
    overwrite : bool
        Replace a finished export, or an unfinished one with other options or files.
    counters : Counters, optional
        Count what is read; parts that an earlier call wrote are not counted.
    **options
        Those of ``spark.read.format("kraftlog")``, such as ``onError="skip"``. For tables of records the default of
        ``isolationLevel`` is ``read_committed``: records of aborted and open transactions are left out.

    Returns
    -------
    Export

    Raises
    ------
    ValueError
        For invalid options.
    FileExistsError
        When the output holds something that the export must not replace.
    pyspark.errors.PythonException
        When a part cannot be read, with ``onError="fail"``, or written.

    Examples
    --------
    >>> from kraftlog.spark import to_parquet
    >>> export = to_parquet(spark, "backup/", "lake/backup", onError="skip")  # doctest: +SKIP
    >>> spark.read.schema(export.schema).parquet("lake/backup").count() == export.rows  # doctest: +SKIP
    True
    """
    folder = local_folder("output", output).absolute()
    refuse_inside(folder, is_folder=True)
    given = _committed(option_texts(path, options))
    file_options = FileOptions(compression, compression_level, row_group_rows, max_rows_per_file)
    file_options.check()
    request = parse_request(S3aSettings.of(spark).added_to(given))
    if request.quarantine is not None:
        local_folder("quarantinePath", request.quarantine)  # raised before anything is staged
    parts = plan_parts(request, in_cluster(spark))
    told = _told(given, request)
    export_id = identity(told, file_options, parts)
    with only_writer(folder):
        staging = begin(folder, export_id, overwrite=overwrite)
        if not is_decided(staging):
            plan = ExportPlan(request, file_options, staging)
            receipts = _write(spark, plan, parts, counters)
            decide(folder, staging, _manifest(told, plan, receipts))
        publish(folder, staging)
    return _export(folder / MANIFEST)


def _committed(given: dict[str, str]) -> dict[str, str]:
    """Return the options with the isolation level of what is handed on, where they name none."""
    lower = {name.lower(): value for name, value in given.items()}
    if lower.keys() & {"isolationlevel", "kafka.isolation.level"}:
        return given
    messages = TABLES["messages"]  # a type of message is one of its options, or the name of a table
    table = messages if "type" in lower else TABLES.get(lower.get("table", "records"), messages)
    takes_it = table.has_records and "isolation_level" in table.option_names
    return {**given, "isolationLevel": READ_COMMITTED} if takes_it else given


def _told(given: dict[str, str], request: Request) -> dict[str, str]:
    """Return the options without passwords and keys, which may change before an export resumes.

    Schemas are among them: after a topic gets a newer schema, the call is another export and does not resume the old
    one.
    """
    told = {name: value for name, value in given.items() if not _UNTOLD.fullmatch(name)}
    if request.typed is not None:
        told["formats"] = repr(request.typed.formats)
    if request.redaction is not None:
        told["redact"] = repr(request.redaction.identity)
    return told | {"paths": json.dumps(request.shown_paths)}


def _write(spark: SparkSession, plan: ExportPlan, parts: list[Part], counters: Counters | None) -> list[Receipt]:
    """Write the parts that an earlier call has not written; return the receipts of all parts."""
    texts, rest = [], []
    for part in parts:
        receipt = receipt_path(plan.staging, part)
        if receipt.exists():
            texts.append(receipt.read_text())
        else:
            rest.append(part)
    quarantine = plan.request.quarantine
    if quarantine is not None and texts:
        make_quarantine(quarantine)  # what the parts of an earlier call put there belongs to this export
    elif quarantine is not None:
        begin_quarantine(quarantine)

    def rows(part: Part) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[write_part(plan, part, counters).to_json()]], schema=_RECEIPT)

    if rest:
        texts += [row.receipt for row in over_parts(spark, rest, rows, _RECEIPT, title(plan.request, rest)).collect()]
    receipts = sorted(map(Receipt.from_json, texts), key=lambda receipt: receipt.part)
    if not any(receipt.files for receipt in receipts):
        receipts.append(Receipt(len(parts), [write_empty(plan)], []))
    return receipts


def _manifest(options: dict[str, str], plan: ExportPlan, receipts: list[Receipt]) -> dict[str, Any]:
    files = [file for receipt in receipts for file in receipt.files]
    return {
        "kraftlog_version": version("kraftlog"),
        "table": plan.request.table,
        "schema": _spark_schema(plan),
        "options": options,
        "file_options": asdict(plan.file_options),
        "rows": sum(file.rows for file in files),
        "size_in_bytes": sum(file.size_in_bytes for file in files),
        "partitions": _partitions(files),
        "files": [asdict(file) for file in files],
        "errors": [asdict(fault) for receipt in receipts for fault in receipt.errors],
        "notes": _notes(plan, receipts),
    }


def _notes(plan: ExportPlan, receipts: list[Receipt]) -> list[str]:
    if plan.request.options.isolation_level != READ_COMMITTED:
        return []
    return [str(LeftOut(sum(receipt.aborted_records for receipt in receipts)))]


def _partitions(files: list[WrittenFile]) -> list[dict[str, Any]]:
    """Return rows and offsets of each partition."""
    together: dict[tuple[str | None, int | None], list[WrittenFile]] = {}
    for file in files:
        together.setdefault((file.topic, file.partition), []).append(file)
    return [
        {
            "topic": topic,
            "partition": partition,
            "rows": sum(file.rows for file in group),
            "first_offset": min((f.first_offset for f in group if f.first_offset is not None), default=None),
            "last_offset": max((f.last_offset for f in group if f.last_offset is not None), default=None),
        }
        for (topic, partition), group in together.items()
    ]


def _spark_schema(plan: ExportPlan) -> str:
    """Return the columns as Spark shows them: columns from folder names come last."""
    from pyspark.sql.pandas.types import from_arrow_schema

    fields = list(from_arrow_schema(plan.request.schema))
    if plan.by_partition:
        fields.sort(key=lambda field: field.name in PARTITION_COLUMNS)
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in fields)


def _export(manifest: Path) -> Export:
    """Return the result that the manifest of a finished output describes."""
    content = read_json(manifest)
    return Export(
        manifest=manifest,
        schema=content["schema"],
        rows=content["rows"],
        files=len(content["files"]),
        size_in_bytes=content["size_in_bytes"],
        errors=pa.Table.from_pylist(content["errors"], schema=schema.ERRORS.select()),
        notes=content["notes"],
    )
