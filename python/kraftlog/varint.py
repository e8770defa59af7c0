"""Varints (32 bits) and varlongs (64 bits): zigzag and groups of seven bits, as Kafka's records use them.

Format: "Variable-length integers" in ``native/c/base/varint.h``. Forms that are longer than needed are read, as
Kafka does.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kraftlog._native import varint as native
from kraftlog._native.status import CODES, TEXTS
from kraftlog.errors import Fault, InvalidRecordError
from kraftlog.types import Buffer

Integer = TypeVar("Integer", np.int32, np.int64)


def encode(values: npt.ArrayLike) -> bytearray:
    """Encode int32 values as varints.

    Parameters
    ----------
    values : array_like, int32[n]

    Returns
    -------
    bytearray
        The varints, one after another; owned by the caller.

    Raises
    ------
    OverflowError
        When a value does not fit in 32 bits.

    Examples
    --------
    >>> from kraftlog import varint
    >>> varint.encode([0, -1, 300]).hex()
    '0001d804'
    """
    return native.encode_varints(_exact(values, np.int32))


def encode_long(values: npt.ArrayLike) -> bytearray:
    """Encode int64 values as varlongs; otherwise like ``encode``."""
    return native.encode_varlongs(_exact(values, np.int64))


def decode(buffer: Buffer) -> npt.NDArray[np.int32]:
    """Decode a buffer of varints.

    Parameters
    ----------
    buffer : buffer
        Any contiguous buffer.

    Returns
    -------
    numpy.ndarray, int32[n]
        Owned by the caller.

    Raises
    ------
    InvalidRecordError
        When a varint has more than 5 bytes or the last one is truncated.

    Examples
    --------
    >>> from kraftlog import varint
    >>> varint.decode(bytes.fromhex("0001d804"))
    array([  0,  -1, 300], dtype=int32)
    """
    return _checked(native.decode_varints(buffer))


def decode_long(buffer: Buffer) -> npt.NDArray[np.int64]:
    """Decode a buffer of varlongs (at most 10 bytes each); otherwise like ``decode``."""
    return _checked(native.decode_varlongs(buffer))


def _exact(values: npt.ArrayLike, dtype: type[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    given = np.asarray(values)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError(f"values must be integers, not {given.dtype}")
    bounds = np.iinfo(dtype)
    if given.size and (given.min() < bounds.min or given.max() > bounds.max):
        raise OverflowError(f"values from {given.min()} to {given.max()} do not fit {bounds.bits} bits")
    return np.ascontiguousarray(given, dtype).reshape(-1)


def _checked(result: npt.NDArray[Integer] | tuple[int, int, int, int]) -> npt.NDArray[Integer]:
    if not isinstance(result, tuple):
        return result
    status, position, expected, actual = result
    sentence = TEXTS[CODES[status]].format(expected=expected, actual=actual)
    message = f"byte {position}: {sentence}"
    raise InvalidRecordError(message, Fault(CODES[status], message, position))
