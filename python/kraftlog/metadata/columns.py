"""Arrow columns as NumPy arrays and back, as the core takes and gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec.arrow_arrays import array_of

UUID = pa.binary(16)


def numbers(column: pa.Array, kind: type) -> npt.NDArray[Any]:
    """Return a column of numbers without nulls."""
    dtype = np.dtype(column.type.to_pandas_dtype())
    cells = column.buffers()[1]  # pyarrow would import pandas to make an array of NumPy
    if cells is None or not len(column):
        return np.empty(0, kind)
    return np.asarray(np.frombuffer(cells, dtype, len(column), dtype.itemsize * column.offset), kind)


def uuids(column: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint64]:
    """Return 16-byte values as two numbers each."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.empty((0, 2), np.uint64)
    flat = np.frombuffer(buffer, np.uint64, 2 * len(column), 16 * column.offset)
    return flat.reshape(len(column), 2)


def uuid_array(values: npt.NDArray[np.uint64]) -> pa.FixedSizeBinaryArray:
    """Return the 16-byte values of pairs of numbers: the reverse of ``uuids``."""
    return pa.Array.from_buffers(UUID, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def list_array(ends: npt.NDArray[np.int32], items: pa.Array, *, empty_is_null: bool = False) -> pa.ListArray:
    """Return lists from where each ends."""
    mask = array_of(ends[1:] == ends[:-1]) if empty_is_null else None
    return pa.ListArray.from_arrays(array_of(ends), items, mask=mask)
