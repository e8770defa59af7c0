"""Which tables Spark can read, how each is cut into parts, and its columns. No Spark is needed to import this."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.codec.headers import TIMESTAMP_TYPES
from kraftlog.log.arguments import catalog_of
from kraftlog.log.table_rows import table_schema

RANGE_TABLES = ("records", "errors")
SEGMENT_TABLES = ("segments", "batches", "index_entries")
PARTITION_TABLES = ("messages", "transactions", "metadata_transactions", "producers")
WHOLE_TABLES = ("hanging_transactions", "offsets", "groups", "transactional_ids")
TABLES = (*RANGE_TABLES, *SEGMENT_TABLES, *PARTITION_TABLES, *WHOLE_TABLES)

# Spark's own Kafka source has the timestamp type as a number, under this name.
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
    if TIMESTAMP_TYPE not in target.names:
        return batch
    columns = [
        _timestamp_type_numbers(column) if field.name == TIMESTAMP_TYPE else column
        for column, field in zip(batch.columns, target, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


_NAMES = pa.array(TIMESTAMP_TYPES)
_NUMBERS = pa.array([TIMESTAMP_TYPE_NUMBERS[name] for name in TIMESTAMP_TYPES], pa.int32())


def _timestamp_type_numbers(column: pa.Array) -> pa.Array:
    return _NUMBERS.take(pc.index_in(column, value_set=_NAMES))
