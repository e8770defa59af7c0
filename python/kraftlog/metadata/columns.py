"""Arrow columns as NumPy arrays and back, as the kernels take and give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

UUID = pa.binary(16)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array as kernels take it: contiguous and read-only, so that each kernel is compiled once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def numbers(column: pa.Array, kind: type) -> npt.NDArray[Any]:
    """Return a column of numbers."""
    return np.asarray(column.to_numpy(zero_copy_only=False), kind)


def uuids(column: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint64]:
    """Return 16-byte values as two numbers each."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return frozen(np.empty((0, 2), np.uint64))
    flat = np.frombuffer(buffer, np.uint64, 2 * len(column), 16 * column.offset)
    return frozen(flat.reshape(len(column), 2))


def uuid_array(values: npt.NDArray[np.uint64]) -> pa.FixedSizeBinaryArray:
    """Return the 16-byte values of pairs of numbers: the reverse of ``uuids``."""
    return pa.Array.from_buffers(UUID, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def list_parts(column: pa.ListArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], pa.Array]:
    """Return where each list ends (the first number is where the first one starts), which are not null, the items.

    Where a list is null there may be items that belong to none.
    """
    count = len(column)
    if column.null_count == count:
        return frozen(np.zeros(count + 1, np.int32)), np.zeros(count, bool), column.values.slice(0, 0)
    given = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.ones(count, bool)
    return frozen(column.offsets.to_numpy()), given, column.values


def list_array(ends: npt.NDArray[np.int32], items: pa.Array, *, empty_is_null: bool = False) -> pa.ListArray:
    """Return lists from where each ends."""
    mask = pa.array(ends[1:] == ends[:-1]) if empty_is_null else None
    return pa.ListArray.from_arrays(pa.array(ends), items, mask=mask)
