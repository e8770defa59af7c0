"""The value of a field that is absent: the one rule, from which columns and programs are filled.

Kafka's generated classes decide by the same rule which values need a version that has the field: those that differ from
its default. ``native/c/message_encode.h`` has the rule for values that are written.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kraftlog._native.message import ZERO_UUID
from kraftlog.messages import definition as kinds
from kraftlog.messages.arrow_types import UNKNOWN_TAGGED_FIELDS
from kraftlog.messages.definition import Field

INTEGERS = {
    kinds.INT8: (-(1 << 7), (1 << 7) - 1),
    kinds.INT16: (-(1 << 15), (1 << 15) - 1),
    kinds.UINT16: (0, (1 << 16) - 1),
    kinds.INT32: (-(1 << 31), (1 << 31) - 1),
    kinds.UINT32: (0, (1 << 32) - 1),
    kinds.INT64: (-(1 << 63), (1 << 63) - 1),
}
EMPTY = ""
_BOOLS = {"": False, "false": False, "true": True}


def parse_default(kind: str, is_array: bool, text: str) -> bool | int | float | str | None:
    """Return the default of a field as its definition writes it.

    Parameters
    ----------
    kind : str
    is_array : bool
    text : str
        ``null``, or empty for the zero of the kind.

    Raises
    ------
    ValueError
        It is not one of the kind.
    """
    if text == "null":
        return None
    if is_array or kind in (kinds.BYTES, kinds.STRUCT):
        if text:
            raise ValueError(f"the default of an array, bytes or a struct is null or empty, not {text!r}")
        return EMPTY
    if kind == kinds.BOOL:
        if text not in _BOOLS:
            raise ValueError(f"the default of a bool is true or false, not {text!r}")
        return _BOOLS[text]
    if kind in INTEGERS:
        return _integer(kind, text or "0")
    if kind == kinds.FLOAT64:
        return float(text or "0")
    return text or (ZERO_UUID if kind == kinds.UUID else EMPTY)


def _integer(kind: str, text: str) -> int:
    number = int(text, 16 if text.lower().lstrip("-").startswith("0x") else 10)
    low, high = INTEGERS[kind]
    if not low <= number <= high:
        raise ValueError(f"the default of an {kind} is from {low} to {high}, not {text}")
    return number


def default_value(field: Field, kind: pa.DataType) -> Any:
    """Return the default of a field as a column of a type holds it.

    Parameters
    ----------
    field : Field
    kind : pyarrow.DataType
        Of the column: that of a uuid may be text or 16 bytes.
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
