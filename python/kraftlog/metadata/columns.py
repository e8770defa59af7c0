"""Arrow columns as NumPy arrays and back, as the core takes and gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

UUID = pa.binary(16)


def numbers(column: pa.Array, kind: type) -> npt.NDArray[Any]:
    """Return a column of numbers."""
    return np.asarray(column.to_numpy(zero_copy_only=False), kind)


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
    mask = pa.array(ends[1:] == ends[:-1]) if empty_is_null else None
    return pa.ListArray.from_arrays(pa.array(ends), items, mask=mask)
