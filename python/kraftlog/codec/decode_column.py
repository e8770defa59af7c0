"""A column of values, each with record batches, decoded in one pass over the buffer of the column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec.decode import RecordDecoder, strict_plan
from kraftlog.codec.options import NO_BOUND
from kraftlog.errors import Fault, error_from_fault

BINARY = (pa.binary(), pa.large_binary())


def decode_column(
    column: pa.Array, columns: Sequence[str], *, include_control: bool = False, on_fault_null: bool = False
) -> pa.ListArray:
    """Return the records of each value as ``decode`` with ``strict`` returns them, as a list of structs.

    Parameters
    ----------
    column : pyarrow.Array of binary
        Any number of record batches in each value; an incomplete batch at the end of a value is left out.
    columns : sequence of str
        As for ``decode``.
    include_control : bool
    on_fault_null : bool
        Whether a value with a fault becomes null instead of an exception.

    Returns
    -------
    pyarrow.ListArray
        Null for null.

    Raises
    ------
    RecordError
        For the first value with a fault; positions in the message count from the start of that value.
    """
    if column.type not in BINARY:
        column = column.cast(pa.binary())
    is_null = ~np.asarray(column.is_valid())
    plan = strict_plan(tuple(columns), include_control=include_control)
    decoder = RecordDecoder(column.buffers()[2] or b"", 0, NO_BOUND, plan, whole=True, pieces=_bounds(column, is_null))
    faults: list[Fault] = []
    batches = list(decoder.batches(faults))
    ends, bad = decoder.piece_rows()
    if bad and not on_fault_null:
        raise error_from_fault(bad[0][1])
    is_null[[piece for piece, _ in bad]] = True
    return pa.ListArray.from_arrays(_list_ends(ends), _rows(batches, plan.schema), mask=pa.array(is_null))


def _bounds(column: pa.Array, is_null: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the start and end of each value in the buffer; a null value may have bytes, which do not count."""
    if not len(column):
        return np.empty((0, 2), np.int64)
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    ends = np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column) + 1]
    bounds = np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int64)
    bounds[is_null] = 0
    return bounds


def _list_ends(ends: npt.NDArray[np.int64]) -> pa.Array:
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]} records do not fit one column of lists")
    return pa.array(np.concatenate([[0], ends]).astype(np.int32))


def _rows(batches: list[pa.RecordBatch], arrow_schema: pa.Schema) -> pa.StructArray:
    if len(batches) == 1:
        return batches[0].to_struct_array()
    return pa.Table.from_batches(batches, arrow_schema).combine_chunks().to_struct_array().combine_chunks()
