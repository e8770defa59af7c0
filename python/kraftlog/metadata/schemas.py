"""The columns of the records that an image consists of, and batches brought into that form."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.messages import arrow_types
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.defaults import default_column
from kraftlog.messages.definition import Field
from kraftlog.metadata import columns

OFFSET = "offset"


@cache
def schema_of(name: str) -> pa.Schema:
    """Return the columns of a type of metadata record, uuids as 16 bytes."""
    return arrow_types.message_schema(BUILT_IN.messages[name], uuid=arrow_types.UUID_BINARY)


@cache
def _fields(name: str) -> dict[str, Field]:
    return {field.column: field for field in BUILT_IN.messages[name].fields}


def offsets_of(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the offsets of records."""
    return columns.numbers(batch.column(OFFSET), np.int64)


def column_of(batch: pa.RecordBatch, name: str, column: str) -> pa.Array:
    """Return a field of a type of record as ``schema_of`` has it; its default where the batch has no such column."""
    arrow_type = schema_of(name).field(column).type
    at = batch.schema.get_field_index(column)
    if at < 0 or column == arrow_types.UNKNOWN_TAGGED_FIELDS:
        return absent_column(name, column, batch.num_rows)
    values = batch.column(at)
    return values if values.type == arrow_type else pa.array(values.to_pylist(), arrow_type)


def rows_of_type(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Return records in the form of ``schema_of``; as Kafka's image does, without tagged fields that are not known."""
    schema = schema_of(name)
    return pa.RecordBatch.from_arrays([column_of(batch, name, column) for column in schema.names], schema=schema)


def absent_column(name: str, column: str, count: int) -> pa.Array:
    """Return the default of a field for rows that lack it; uuids have 16 bytes."""
    arrow_type = schema_of(name).field(column).type
    field = _fields(name).get(column)
    return pa.nulls(count, arrow_type) if field is None else default_column(field, arrow_type, count)
