"""Tagged fields that records have: known ones with content, and those without a known definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS
from kraftlog.messages.definition import Field
from kraftlog.messages.differing import has_content
from kraftlog.messages.record_type import VALUE, RecordType

Rows = npt.NDArray[np.int64]


class PresentTag(NamedTuple):
    """A tagged field, the structs that contain it, its name (empty if unknown) and the rows that have it."""

    structs: str
    tag: int
    name: str
    rows: Rows


def present_tags(record_type: RecordType, fields: pa.RecordBatch) -> Iterator[PresentTag]:
    """Return the tagged fields in the values of a type.

    Parameters
    ----------
    record_type : RecordType
    fields : pyarrow.RecordBatch
        Columns of the type, UUIDs as text.
    """
    every = np.arange(fields.num_rows)
    for column, field, side in record_type.columns:
        if side == VALUE:
            yield from _of_field(field, fields.column(column), every, "")
    yield from _unknown(fields.column(UNKNOWN_TAGGED_FIELDS), every, "")


def _of_field(field: Field, column: pa.Array, rows: Rows, structs: str) -> Iterator[PresentTag]:
    if field.tag is not None:
        present = rows[has_content(field, column).to_numpy(zero_copy_only=False)]
        if len(present):
            yield PresentTag(structs, field.tag, field.name, np.unique(present))
    if field.kind != kinds.STRUCT:
        return
    if field.is_array:
        rows = rows[pc.list_parent_indices(column).to_numpy()]
        column = pc.list_flatten(column)
    is_there = column.is_valid()
    rows, column = rows[is_there.to_numpy(zero_copy_only=False)], column.filter(is_there)
    within = f"{structs}.{field.name}" if structs else field.name
    for child in field.fields:
        yield from _of_field(child, pc.struct_field(column, child.column), rows, within)
    yield from _unknown(pc.struct_field(column, UNKNOWN_TAGGED_FIELDS), rows, within)


def _unknown(column: pa.Array, rows: Rows, structs: str) -> Iterator[PresentTag]:
    parents = rows[pc.list_parent_indices(column).to_numpy()]
    tags = np.asarray(pc.struct_field(pc.list_flatten(column), "tag").to_numpy(zero_copy_only=False))
    for tag in np.unique(tags).tolist():
        yield PresentTag(structs, int(tag), "", np.unique(parents[tags == tag]))
