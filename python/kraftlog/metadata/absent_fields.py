"""Fields that a version of a record has no place for, and what they are where they are absent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field
from kraftlog.metadata import schemas
from kraftlog.metadata.uuids import MIGRATING

DIRECTORIES = "directories"


def fields_without_place(name: str, version: int) -> list[Field]:
    """Return the fields of a type that a version does not have."""
    return [field for field in BUILT_IN.messages[name].fields if version not in field.versions]


def has_content(column: pa.ChunkedArray | pa.Array, field: Field) -> pa.ChunkedArray | pa.Array:
    """Return for each value whether it says more than an absent field.

    Directories that are all ``DirectoryId.MIGRATING`` do not: each replica has that where no directory is known.
    """
    if not field.is_array:
        return pc.fill_null(pc.not_equal(column, pa.scalar(field.default, column.type)), field.default is not None)
    if field.name == DIRECTORIES:
        assigned = pc.is_in(pc.list_flatten(column), value_set=pa.array([MIGRATING], pa.binary(16)))
        rows = pc.list_parent_indices(column).filter(pc.invert(assigned)).to_numpy()
        found = np.zeros(len(column), bool)
        found[rows] = True
        return pa.array(found)
    return pc.fill_null(pc.greater(pc.list_value_length(column), 0), False)


def absent(name: str, field: Field, count: int) -> pa.Array:
    """Return a column of what a field is where it is absent."""
    rows = pa.RecordBatch.from_arrays([pa.nulls(count)], ["none"])
    return schemas.column_of(rows, name, field.column)


def without_absent_fields(name: str, version: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return records as a version can hold them; a field without a place that says something is left as it is."""
    for field in fields_without_place(name, version):
        column = rows.column(field.column)
        if not pc.any(has_content(column, field), min_count=0).as_py():
            at = rows.schema.get_field_index(field.column)
            rows = rows.set_column(at, rows.schema.field(at), absent(name, field, rows.num_rows))
    return rows
