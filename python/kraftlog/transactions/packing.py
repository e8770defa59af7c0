"""Packing plan: the number of records of each batch, computed only from sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog.codec.batch_encoder import MOST_RECORDS
from kraftlog.codec.cursor import uvarint
from kraftlog.errors import RecordTooLargeError
from kraftlog.transactions import packing_columns
from kraftlog.transactions.metadata_encoder import DEFAULT_BATCH_BYTES


def plan_batches(
    sizes: npt.ArrayLike, max_batch_bytes: int = DEFAULT_BATCH_BYTES, max_batch_records: int | None = None
) -> npt.NDArray[np.int64]:
    """Plan batches for records in order: as few as the limits allow.

    The plan is exact for records of the metadata log: null keys, no headers, and one timestamp for the whole batch.
    ``Encoder`` packs such records in the same way; ``batch_records`` makes it follow a plan.

    Parameters
    ----------
    sizes : array_like, int64[n] or int32[n]
        Size of each record's value in bytes; -1 for null.
    max_batch_bytes : int
        Maximum size of a batch in bytes, including the header.
    max_batch_records : int, optional
        Maximum number of records of a batch.

    Returns
    -------
    numpy.ndarray, int64[batches]
        Number of records in each batch.

    Raises
    ------
    RecordTooLargeError
        When a single record exceeds ``max_batch_bytes``; the message has its index, its size and the limit.
    ValueError
        When a size is less than -1, or a limit is out of bounds.

    Examples
    --------
    >>> plan_batches([4000, 4000, 100, 8000])
    array([3, 1])
    """
    if not RECORD_BATCH_OVERHEAD < max_batch_bytes < 2**31:
        raise ValueError(f"max_batch_bytes {max_batch_bytes} is not between {RECORD_BATCH_OVERHEAD + 1} and 2^31 - 1")
    if max_batch_records is not None and not 0 < max_batch_records <= MOST_RECORDS:
        raise ValueError(f"max_batch_records {max_batch_records} is not between 1 and {MOST_RECORDS}")
    integers = _integers(sizes)
    counts = np.empty(len(integers), np.int64)
    batches, bad = _planner()(integers, max_batch_bytes, max_batch_records or MOST_RECORDS, counts)
    if bad >= 0:
        raise _refusal(bad, int(integers[bad]), max_batch_bytes)
    return counts[:batches].copy()


@cache
def _planner() -> Callable[..., tuple[int, int]]:
    """Return the loop that Numba compiles, or its equivalent by columns if Numba is not installed."""
    if find_spec("numba") is None:
        return packing_columns.plan
    from kraftlog.transactions import packing_kernels

    return packing_kernels.plan


def _integers(sizes: npt.ArrayLike) -> npt.NDArray[np.int64] | npt.NDArray[np.int32]:
    integers = np.asarray(sizes)
    if integers.size == 0:
        return np.empty(0, np.int64)
    if integers.ndim != 1 or integers.dtype.kind not in "iu" or integers.dtype == np.uint64:
        raise ValueError(f"sizes are not a list of integers, but {integers.dtype} in {integers.ndim} dimensions")
    if integers.dtype != np.int32:
        integers = integers.astype(np.int64, copy=False)
    view = np.ascontiguousarray(integers).view()
    view.flags.writeable = False  # one compiled kernel for writable and read-only arrays
    return view


def _refusal(index: int, size: int, max_batch_bytes: int) -> ValueError:
    if size < -1:
        return ValueError(f"record {index}: size {size} is less than -1")
    length = max(size, 0)
    body = packing_columns.FRAME + _varint_size(length) + length
    alone = RECORD_BATCH_OVERHEAD + _varint_size(body) + body
    return RecordTooLargeError(
        f"record {index}: a batch of it alone takes {alone} bytes, max_batch_bytes is {max_batch_bytes}"
    )


def _varint_size(value: int) -> int:
    return len(uvarint(2 * value))
