"""Arrow arrays from NumPy arrays and short lists of texts and bytes, built from buffers.

pyarrow imports pandas, if it is installed, when it converts the first Python value or NumPy array; this takes longer
than reading a small log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def array_of(
    values: npt.NDArray[Any], kind: pa.DataType | None = None, mask: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return numbers or booleans as an Arrow array that shares their memory if possible.

    Parameters
    ----------
    values : numpy.ndarray
        A one-dimensional array.
    kind : pyarrow.DataType, optional
        An integer, float or bool type that can represent all values of the array's type, which is the default.
    mask : numpy.ndarray of bool, optional
        Mask of null values.

    Examples
    --------
    >>> array_of(np.array([1, 2]), mask=np.array([False, True])).to_pylist()
    [1, None]
    """
    kind = kind or pa.from_numpy_dtype(values.dtype)
    if pa.types.is_boolean(kind):
        data = np.packbits(values.astype(bool), bitorder="little")
    else:
        data = np.ascontiguousarray(values.astype(kind.to_pandas_dtype(), casting="safe", copy=False))
    has_nulls = mask is not None and bool(mask.any())
    validity = pa.py_buffer(np.packbits(~mask, bitorder="little")) if has_nulls and mask is not None else None
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(data)])


def texts_of(texts: Sequence[str | None]) -> pa.Array:
    """Return texts as an Arrow array.

    Examples
    --------
    >>> texts_of(["a", None]).to_pylist()
    ['a', None]
    """
    return bytes_of([None if text is None else text.encode() for text in texts], pa.string())


def bytes_of(values: Sequence[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    """Return values as an Arrow array of binary, or of another type of the same layout.

    Examples
    --------
    >>> bytes_of([b"a", None]).to_pylist()
    [b'a', None]
    """
    pieces = [value or b"" for value in values]
    ends = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=ends[1:])
    if ends[-1] >= 1 << 31:
        raise OverflowError(f"{ends[-1]} bytes of text, and an array of strings holds less than 2 GiB")
    is_there = np.packbits(np.array([value is not None for value in values], bool), bitorder="little")
    validity = pa.py_buffer(is_there) if None in values else None
    buffers = [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(kind or pa.binary(), len(pieces), buffers)


def scalar_of(value: str | bool | int | None, kind: pa.DataType) -> pa.Scalar:
    """Return a text, a number or null as an Arrow scalar.

    Examples
    --------
    >>> scalar_of(3, pa.int32())
    <pyarrow.Int32Scalar: 3>
    """
    if value is None:
        return pa.nulls(1, kind)[0]
    return (
        texts_of([value])[0] if isinstance(value, str) else array_of(np.array([value], kind.to_pandas_dtype()), kind)[0]
    )
