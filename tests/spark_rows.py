"""Rows of Spark and of the library in one form, so that they can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from click import UsageError
from click.testing import CliRunner

import kraftlog
from golden_files import GOLDEN, name_of, scenarios
from kraftlog.cli import commands
from kraftlog.codec.options import ReadOptions
from kraftlog.tables.all_tables import TABLES

NUMBERS = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": -1}


class NoJob:
    """A session without settings, for calls that end before they run a job."""

    def __init__(self) -> None:
        self.conf = SimpleNamespace(getAll={})


def folders() -> list[Path]:
    """Return the golden folders that hold undamaged logs."""
    return [folder / "log" for folder in scenarios() if name_of(folder) != "legacy"]


def comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as sorted text: Spark gives partitions in no fixed order."""
    return sorted(repr(sorted(row.items())) for row in rows)


def expected_rows(table: str, folder: Path, *, commits: bool = False) -> list[dict[str, Any]]:
    """Return what the library reads, with Spark's column for the timestamp type; ``commits``: committed ones."""
    options = ReadOptions(isolation_level="read_committed") if commits else ReadOptions()
    return as_in_spark(table, plain_rows(kraftlog.open(folder).scan(table, None, options).to_table()))


def command_line_rows(table: str, paths: list[Path], folder: Path, *options: str) -> list[dict[str, Any]]:
    """Return what the command line writes for a table, with Spark's column for the timestamp type.

    It refuses logs that do not hold the topic of a table, which has no rows in Spark.
    """
    # the command of errors, verify, compares files as well; that of metadata_changes reads one directory
    if table in ("errors", "metadata_changes"):
        return plain_rows(kraftlog.open(paths).scan(table).to_table())
    output = folder / f"{table}.arrows"
    arguments = [TABLES[table].command, *map(str, paths), "--format", "arrow", "--output", str(output), "--no-progress"]
    arguments += options
    result = CliRunner().invoke(commands, arguments, standalone_mode=False)
    if isinstance(result.exception, UsageError) and ", and found " in str(result.exception):
        return []
    assert not isinstance(result.exception, Exception), result.output
    rows = plain_rows(pa.ipc.open_stream(output).read_all())
    output.unlink()
    return as_in_spark(table, rows)


def as_in_spark(table: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table with what is different in Spark, as its own Kafka source has it."""
    if table != "records":
        return rows
    return [
        {
            **{name: value for name, value in row.items() if name != "timestamp_type"},
            "timestampType": NUMBERS[row["timestamp_type"]],
            "headers": row["headers"] or None,
        }
        for row in rows
    ]


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with timestamps as numbers: Python has none for some that Arrow has."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.itercolumns()
    ]
    return pa.table(columns, names=table.column_names).to_pylist()


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame."""
    return plain_rows(frame.toArrow())


def clusters() -> list[list[Path]]:
    """Return the golden log directories, together as far as they are not of different clusters or topics of a name."""
    groups: list[list[Path]] = []
    for folder in scenarios():
        path = folder / "log"
        for group in groups:
            try:
                _ = kraftlog.open([*group, path]).lines
            except ValueError:
                continue
            group.append(path)
            break
        else:
            groups.append([path])
    return groups


def log_directories() -> list[Path]:
    """Return one folder of each kind, for the slower sessions."""
    return [GOLDEN / name / "log" for name in ("codecs", "transactions", "metadata", "compaction")]


def write_schemas(folder: Path) -> Path:
    """Write the topic of a registry that knows two versions of a subject, and return its log directory."""
    with kraftlog.LogStore(folder) as store, store.producer() as producer:
        store.create_topic("_schemas")
        for version, schema in enumerate(('"int"', '"long"'), 1):
            key = {"keytype": "SCHEMA", "subject": "orders-value", "version": version, "magic": 1}
            value = {"subject": "orders-value", "version": version, "id": 10 + version, "schema": schema}
            producer.send("_schemas", key=json.dumps(key), value=json.dumps(value))
    return folder
