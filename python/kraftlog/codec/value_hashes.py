"""Hashes of the values of a binary or text array: Kafka's murmur2, Java's hash code, CRC32C."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import hashes as native
from kraftlog.codec.arrow_arrays import array_of

ValueArray: TypeAlias = pa.Array | pa.ChunkedArray
Numbers: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

_ENDS = np.dtype(np.int64)


def murmur2(values: ValueArray) -> pa.Array:
    """Return Kafka's murmur2 of each value, as int32; nulls remain null.

    Parameters
    ----------
    values : pyarrow.Array or pyarrow.ChunkedArray
        Binary or text, in any of Arrow's layouts.

    Raises
    ------
    ValueError
        When the values are of another type.

    Examples
    --------
    >>> murmur2(pa.array(["21", None])).to_pylist()
    [-973932308, None]
    """
    return _numbers(values, native.Values.murmur2, pa.int32())


def hash_code(values: ValueArray) -> pa.Array:
    """Return Java's ``String.hashCode()`` of each text, as int32; otherwise like ``murmur2``. Binary is read as UTF-8.

    Examples
    --------
    >>> hash_code(pa.array(["Hello", None])).to_pylist()
    [69609650, None]
    """
    return _numbers(values, native.Values.hash_code, pa.int32())


def crc32c(values: ValueArray) -> pa.Array:
    """Return the CRC32C of each value, as int64 from 0 to 2^32 - 1; otherwise like ``murmur2``.

    Examples
    --------
    >>> crc32c(pa.array([b"123456789", None])).to_pylist()
    [3808858755, None]
    """
    return _numbers(values, native.Values.crc32c, pa.int64())


def _numbers(values: ValueArray, of_values: Callable[[native.Values], Numbers], kind: pa.DataType) -> pa.Array:
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    found = [array_of(of_values(lent_values(chunk)), kind, _is_null(chunk)) for chunk in chunks if len(chunk)]
    return pa.concat_arrays(found) if found else pa.nulls(0, kind)


def lent_values(values: pa.Array) -> native.Values:
    """Return the values of a binary or text array for the native functions; null values have no bytes."""
    try:
        column = values.cast(pa.large_binary())
    except pa.ArrowNotImplementedError:
        raise ValueError(f"values are {values.type}, neither binary nor text") from None
    _, ends, data = column.buffers()
    return native.Values(np.frombuffer(ends, _ENDS, len(column) + 1, column.offset * _ENDS.itemsize), data or b"")


def _is_null(values: pa.Array) -> npt.NDArray[np.bool_] | None:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), bool) if values.null_count else None
