"""Which rows of two columns differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bools = npt.NDArray[np.bool_]


def differing(before: pa.Array, after: pa.Array) -> Bools:
    """Return whether each row of a column differs from the same row of another one of its type.

    Lists and structs are looked into; null is equal to null only, and what is not a number to itself.

    Examples
    --------
    >>> differing(pa.array([[1], None, [1, 2]]), pa.array([[1], [], [1, 3]])).tolist()
    [False, True, True]
    """
    was_null, is_null = _nulls(before), _nulls(after)
    if pa.types.is_list(before.type):
        differs = _lists_differ(before, after)
    elif pa.types.is_struct(before.type):
        differs = np.zeros(len(before), bool)
        for at in range(before.type.num_fields):
            differs |= differing(before.field(at), after.field(at))
    else:
        if pa.types.is_float64(before.type):
            before, after = before.view(pa.int64()), after.view(pa.int64())
        unequal = pc.fill_null(pc.not_equal(before, after), False)
        differs = np.asarray(unequal.to_numpy(zero_copy_only=False), bool)
    both = ~(was_null | is_null)
    return np.asarray((differs & both) | (was_null != is_null), bool)


def _nulls(column: pa.Array) -> Bools:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


def _lists_differ(before: pa.ListArray, after: pa.ListArray) -> Bools:
    lengths = _lengths(before)
    differs = lengths != _lengths(after)
    alike = np.flatnonzero(~differs)
    if lengths[alike].any():
        rows = pa.array(alike)
        items = differing(before.take(rows).flatten(), after.take(rows).flatten())
        differs[np.repeat(alike, lengths[alike])[items]] = True
    return np.asarray(differs, bool)


def _lengths(column: pa.ListArray) -> npt.NDArray[np.int64]:
    return np.asarray(pc.fill_null(column.value_lengths(), 0).to_numpy(zero_copy_only=False), np.int64)
