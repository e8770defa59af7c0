"""Columns of values with several items each: lists of records, and binary values with record batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column: TypeAlias = pa.Array | pa.ChunkedArray

BINARY = (pa.binary(), pa.large_binary())


def by_chunk(work: Callable[..., pa.Array]) -> Callable[..., Column]:
    """Apply a function of an array to each chunk of a chunked array."""

    @wraps(work)
    def each(column: Column, *args: Any, **options: Any) -> Column:
        if not isinstance(column, pa.ChunkedArray):
            return work(column, *args, **options)
        made = [work(chunk, *args, **options) for chunk in column.chunks]
        return pa.chunked_array(made or [work(pa.array([], column.type), *args, **options)])

    return each


def binary_values(column: pa.Array) -> tuple[pa.Buffer | bytes, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the bytes of a column, the start and end of each value in them, and which values are null.

    A null value may have bytes in the buffer, which do not count.

    Parameters
    ----------
    column : pyarrow.Array
        Binary in any of Arrow's layouts, or a dictionary of it.
    """
    if column.type not in BINARY:
        column = column.cast(pa.large_binary())
    is_null = ~np.asarray(column.is_valid())
    if not len(column):
        return b"", np.empty((0, 2), np.int64), is_null
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    ends = np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column) + 1]
    bounds = np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int64)
    bounds[is_null] = 0
    return column.buffers()[2] or b"", bounds, is_null


def list_items(column: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the items of a column of lists without nulls, and the number of items up to the end of each list.

    Raises
    ------
    ValueError
        When the column does not consist of lists.
    """
    import pyarrow.compute as pc  # costs more than the rest of the codec

    if not any(is_list(column.type) for is_list in _LISTS):
        raise ValueError(f"values are {column.type}, not lists of records")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    return column.flatten(), np.cumsum(lengths, dtype=np.int64)


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def lists_of(items: pa.Array, ends: npt.NDArray[np.int64], is_null: npt.NDArray[np.bool_]) -> pa.ListArray:
    """Return a column of lists.

    Parameters
    ----------
    items : pyarrow.Array
    ends : numpy.ndarray of int64
        The number of items up to the end of each list.
    is_null : numpy.ndarray of bool

    Raises
    ------
    OverflowError
        When there are more items than a column of lists can have.
    """
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"{ends[-1]} records do not fit one column of lists")
    return pa.ListArray.from_arrays(_from_zero(ends), items, mask=pa.array(is_null))


def binary_of(data: pa.Buffer, ends: npt.NDArray[np.int64], is_valid: npt.NDArray[np.bool_]) -> pa.Array:
    """Return a binary column.

    Parameters
    ----------
    data : pyarrow.Buffer
        The values that are not null, one after the other.
    ends : numpy.ndarray of int64
        The end of each of them.
    is_valid : numpy.ndarray of bool

    Raises
    ------
    OverflowError
        When the buffer is too large for a column.
    """
    if data.size > np.iinfo(np.int32).max:
        raise OverflowError(f"{data.size} bytes do not fit one binary column")
    bits = None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    every = np.append(0, ends)[np.cumsum(is_valid)]
    return pa.Array.from_buffers(pa.binary(), len(is_valid), [bits, _from_zero(every).buffers()[1], data])


def _from_zero(ends: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(np.append(0, ends).astype(np.int32))
