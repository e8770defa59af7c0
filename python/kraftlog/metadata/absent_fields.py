"""Fields that a version of a record does not have, and what is lost without them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.definition import Field
from kraftlog.messages.differing import has_content
from kraftlog.metadata import schemas
from kraftlog.metadata.uuids import MIGRATING

DIRECTORIES = "directories"


def fields_without_place(name: str, version: int) -> list[Field]:
    """Return the fields of a type that a version does not have."""
    return [field for field in BUILT_IN.messages[name].fields if version not in field.versions]


def loses_content(field: Field, column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return for each value of a field whether it is lost with the field.

    Directories that are all ``DirectoryId.MIGRATING`` are not: each replica has that where no directory is known.
    """
    if field.name != DIRECTORIES:
        return has_content(field, column)
    assigned = pc.is_in(pc.list_flatten(column), value_set=pa.array([MIGRATING], pa.binary(16)))
    rows = pc.list_parent_indices(column).filter(pc.invert(assigned)).to_numpy()
    is_assigned = np.zeros(len(column), bool)
    is_assigned[rows] = True
    return pa.array(is_assigned)


def without_absent_fields(name: str, version: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return records as a version can hold them; of fields that it does not have those with content are left."""
    for field in fields_without_place(name, version):
        column = rows.column(field.column)
        if not pc.any(loses_content(field, column), min_count=0).as_py():
            at = rows.schema.get_field_index(field.column)
            rows = rows.set_column(at, rows.schema.field(at), schemas.absent_column(name, field.column, rows.num_rows))
    return rows
