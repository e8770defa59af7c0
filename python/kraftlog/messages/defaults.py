"""The value of an absent field: the single rule behind columns and programs.

Kafka's generated classes decide by the same rule which values need a version that has the field: those that differ from
its default. ``native/c/message/encode.h`` has the rule for values that are written.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS
from kraftlog.messages.default_text import ZERO_UUID
from kraftlog.messages.definition import Field


def default_value(field: Field, kind: pa.DataType) -> Any:
    """Return the default of a field as a value of a column's type.

    Parameters
    ----------
    field : Field
    kind : pyarrow.DataType
        Type of the column; for a UUID text or 16 bytes.
    """
    if field.default is None:
        return None
    if field.is_array:
        return []
    if field.kind == kinds.STRUCT:
        inner = {one.column: default_value(one, kind.field(one.column).type) for one in field.fields}
        return inner | {UNKNOWN_TAGGED_FIELDS: []}
    if field.kind == kinds.UUID:  # the only uuid that is a default
        return bytes(kind.byte_width) if pa.types.is_fixed_size_binary(kind) else ZERO_UUID
    return b"" if field.kind == kinds.BYTES else field.default


def default_column(field: Field, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column of a field that is absent in all rows."""
    return pa.repeat(pa.scalar(default_value(field, kind), kind), count)
