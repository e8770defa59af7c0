"""Which tables Spark can read, how each is cut into parts, and its columns. No Spark is needed to import this.

Records have the columns of Spark's own Kafka source: the timestamp type is a number, and records without headers have
null there.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.log.arguments import catalog_of
from kraftlog.log.table_rows import table_schema

RANGE_TABLES = ("records", "errors")
SEGMENT_TABLES = ("segments", "batches", "index_entries")
PARTITION_TABLES = ("messages", "transactions", "metadata_transactions", "producers")
WHOLE_TABLES = ("hanging_transactions", "offsets", "groups", "transactional_ids")
TABLES = (*RANGE_TABLES, *SEGMENT_TABLES, *PARTITION_TABLES, *WHOLE_TABLES)

TIMESTAMP_TYPE = "timestampType"
TIMESTAMP_TYPE_NUMBERS = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": -1}


def default_columns(table: str, definitions: str | None, *, include_headers: bool) -> tuple[str, ...]:
    """Return the columns that a table has when none are asked for; records have headers on request, as in Spark."""
    names = spark_schema(table, None, definitions).names
    return tuple(name for name in names if include_headers or table != "records" or name != "headers")


def spark_schema(table: str, columns: tuple[str, ...] | None = None, definitions: str | None = None) -> pa.Schema:
    """Return the Arrow schema of a table, or of a type of message, as Spark shows it."""
    definition = table_schema(table, catalog_of(definitions))
    names = tuple(definition.shown) if columns is None else columns
    fields = []
    for name in names:
        if table == "records" and name in ("timestamp_type", TIMESTAMP_TYPE):
            fields.append(pa.field(TIMESTAMP_TYPE, pa.int32()))
        else:
            fields.append(definition.select([name]).field(0))
    return pa.schema(fields)


def library_columns(columns: tuple[str, ...]) -> list[str]:
    """Return the names that the library has for Spark's."""
    return ["timestamp_type" if name == TIMESTAMP_TYPE else name for name in columns]


def as_spark(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return the library's records with Spark's columns."""
    changes = [_CHANGES.get(name) for name in target.names]
    if not any(changes):
        return batch
    columns = [
        column if change is None else change(column) for column, change in zip(batch.columns, changes, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


@cache  # not made when this is imported: pa.array imports pandas, for half a second of every worker
def _numbers_by_length() -> pa.Array:
    """No two names are of the same length, and a length is looked up ten times faster than a name."""
    numbers = {len(name): number for name, number in TIMESTAMP_TYPE_NUMBERS.items()}
    return pa.array([numbers.get(length) for length in range(max(numbers) + 1)], pa.int32())


def _timestamp_type_numbers(column: pa.Array) -> pa.Array:
    return _numbers_by_length().take(pc.binary_length(column))


def _null_where_empty(column: pa.Array) -> pa.Array:
    """Return headers as Spark's Kafka source has them: null where a record has none."""
    has_some = pc.greater(pc.list_value_length(column), 0)
    if pc.all(has_some).as_py():
        return column
    return pc.if_else(has_some, column, pa.scalar(None, column.type))


_CHANGES = {TIMESTAMP_TYPE: _timestamp_type_numbers, "headers": _null_where_empty}
