"""A column of values, each with record batches, decoded in one pass over the buffer of the column."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kraftlog.codec.decode import RecordDecoder, strict_plan
from kraftlog.codec.list_column import binary_values, by_chunk, lists_of
from kraftlog.codec.options import NO_BOUND
from kraftlog.errors import Fault, error_from_fault


@by_chunk
def decode_column(
    column: pa.Array, columns: Sequence[str], *, include_control: bool = False, on_fault_null: bool = False
) -> pa.ListArray:
    """Return the records of each value as ``decode`` with ``strict`` returns them, as a list of structs.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray of binary
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
    data, bounds, is_null = binary_values(column)
    plan = strict_plan(tuple(columns), include_control=include_control)
    decoder = RecordDecoder(data, 0, NO_BOUND, plan, whole=True, pieces=bounds)
    faults: list[Fault] = []
    batches = list(decoder.batches(faults))
    ends, bad = decoder.piece_ends()
    if bad and not on_fault_null:
        raise error_from_fault(bad[0][1])
    is_null[[piece for piece, _ in bad]] = True
    return lists_of(_rows(batches, plan.schema), ends[:, 0], is_null)


def _rows(batches: list[pa.RecordBatch], arrow_schema: pa.Schema) -> pa.StructArray:
    if len(batches) == 1:
        return batches[0].to_struct_array()
    return pa.Table.from_batches(batches, arrow_schema).combine_chunks().to_struct_array().combine_chunks()
