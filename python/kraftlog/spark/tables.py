"""The columns of tables in Spark. Importing this does not need Spark.

Records have the columns of Spark's own Kafka source: the timestamp type is a number, and headers are null for records
without any.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.stream import rows_of
from kraftlog.tables.all_tables import table_named
from kraftlog.tables.user_options import catalog_of

TIMESTAMP_TYPE = "timestampType"


def default_columns(table: str, definitions: str | None, *, include_headers: bool) -> tuple[str, ...]:
    """Return the default columns of a table; records have headers on request, as in Spark's Kafka source."""
    names = spark_schema(table, None, definitions).names
    return tuple(name for name in names if include_headers or table != "records" or name != "headers")


def spark_schema(table: str, columns: tuple[str, ...] | None = None, definitions: str | None = None) -> pa.Schema:
    """Return the Arrow schema of a table, or of a type of message, in Spark."""
    definition = table_named(table, catalog_of(definitions)).schema
    names = tuple(definition.shown) if columns is None else columns
    if table != "records":
        return definition.select(names)
    fields = definition.select(library_columns(names))
    return pa.schema([field.with_name(name) for field, name in zip(fields, spark_names(names), strict=True)])


def spark_names(columns: Sequence[str]) -> list[str]:
    """Return Spark's names for columns of records."""
    return [TIMESTAMP_TYPE if name == "timestamp_type" else name for name in columns]


def library_columns(columns: Sequence[str]) -> list[str]:
    """Return the library's names for Spark's columns."""
    return ["timestamp_type_id" if name in (TIMESTAMP_TYPE, "timestamp_type") else name for name in columns]


def as_spark(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return the library's records with Spark's columns."""
    columns = batch.columns
    if "headers" in target.names:
        at = target.names.index("headers")
        columns[at] = _null_where_empty(columns[at])
    return rows_of(columns, target, batch.num_rows)


def _null_where_empty(column: pa.Array) -> pa.Array:
    """Return headers as in Spark's Kafka source: null if a record has none."""
    has_some = pc.greater(pc.list_value_length(column), 0)
    if pc.all(has_some).as_py():
        return column
    return pc.if_else(has_some, column, pa.scalar(None, column.type))
