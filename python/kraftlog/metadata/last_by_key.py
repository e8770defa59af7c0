"""The last row of each key, by columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[np.int64]
_SPARSE = 8  # codes that may go unused for each row: below this, to number anew costs more than it saves


class Codes(NamedTuple):
    """A number for each row, the same for rows with the same key.

    Attributes
    ----------
    rows : int64[rows]
    end : int
        All numbers are below it; there may be gaps.
    """

    rows: Rows
    end: int

    def with_key(self, key: pa.Array) -> Codes:
        """Return the codes of a key that has one more column."""
        codes, count = encode(key)
        combined = Codes(self.rows * count + codes, self.end * count)
        return combined if combined.end <= _SPARSE * len(self.rows) else encode(pa.array(combined.rows))


def codes_of(keys: list[pa.Array], count: int) -> Codes:
    """Return the codes of so many rows.

    Parameters
    ----------
    keys : list of pyarrow.Array
        The columns that a key consists of; null is a value of its own. Without any, all rows have the same key.
    count : int
    """
    codes = encode(keys[0]) if keys else Codes(np.zeros(count, np.int64), 1)
    for key in keys[1:]:
        codes = codes.with_key(key)
    return codes


def encode(key: pa.Array) -> Codes:
    """Return the codes of one column."""
    encoded = key.dictionary_encode(null_encoding="encode")
    return Codes(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(len(encoded.dictionary), 1))


def last_rows(codes: Codes) -> Rows:
    """Return the last row of each code, ascending.

    Examples
    --------
    >>> last_rows(Codes(np.array([0, 1, 0, 2, 1]), 3)).tolist()
    [2, 3, 4]
    """
    last = np.full(codes.end, -1, np.int64)
    last[codes.rows] = np.arange(len(codes.rows))  # of an index that is given twice, NumPy keeps the last value
    is_last = np.zeros(len(codes.rows), bool)
    is_last[last[last >= 0]] = True
    return np.flatnonzero(is_last)
