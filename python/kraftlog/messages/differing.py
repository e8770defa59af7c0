"""The values of a field's column that differ from its default."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS
from kraftlog.messages.defaults import default_value
from kraftlog.messages.definition import Field


def differs(field: Field, column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return whether each value of a field's column differs from the default.

    Examples
    --------
    >>> from kraftlog.messages.catalog import BUILT_IN
    >>> epoch = next(f for f in BUILT_IN.messages["OffsetCommitValue"].fields if f.name == "leaderEpoch")
    >>> differs(epoch, pa.array([-1, 0], pa.int32())).to_pylist()
    [False, True]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if field.default is None:
        return column.is_valid()
    if field.is_array:
        found = pc.greater(pc.list_value_length(column), 0)
    elif field.kind == kinds.STRUCT:
        parts = [differs(one, pc.struct_field(column, one.column)) for one in field.fields]
        found = pc.greater(pc.list_value_length(pc.struct_field(column, UNKNOWN_TAGGED_FIELDS)), 0)
        found = pc.fill_null(found, False)
        for part in parts:
            found = pc.or_(found, part)
        found = pc.or_(found, column.is_null())
    else:
        found = pc.not_equal(column, pa.scalar(default_value(field, column.type), column.type))
    return pc.fill_null(found, True)


def has_content(field: Field, column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return whether dropping the field loses each value of its column: neither default, null nor empty."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    found = pc.and_(differs(field, column), column.is_valid())
    return pc.and_(found, pc.fill_null(pc.greater(pc.list_value_length(column), 0), False)) if field.is_array else found
