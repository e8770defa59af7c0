"""The last offset of each key, in memory that is bounded, as Kafka's ``OffsetMap``."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native import cleaning as native
from kraftlog.messages.frames import native_values

Flags = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]


class OffsetMap:
    """The last offset of each key.

    Keys are kept and compared by their bytes. Kafka keeps a hash in the place of a key, by default MD5: of two keys
    with the same hash, which can be made on purpose, it drops the value of one.

    Parameters
    ----------
    most_bytes : int
        For keys, and 72 to 96 bytes more for each; one key is taken whatever it needs.

    Examples
    --------
    >>> known = OffsetMap(1 << 20)
    >>> keys, offsets = pa.array([b"a", b"b", b"a"]), np.arange(3)
    >>> known.put(keys, offsets, np.ones(3, bool), 0)
    3
    >>> known.superseded(keys, offsets).tolist()
    [True, False, False]
    """

    def __init__(self, most_bytes: int) -> None:
        self._native = native.OffsetMap(int.from_bytes(os.urandom(8)), most_bytes)

    def put(self, keys: pa.BinaryArray, offsets: Offsets, wanted: Flags, row: int) -> int:
        """Take the keys of wanted rows from a row on, in the order of the log; null is no key.

        Returns
        -------
        int
            The row whose key has no room, or the number of rows.
        """
        return self._native.put(native_values(keys), offsets, wanted.view(np.uint8), row)

    def superseded(self, keys: pa.BinaryArray, offsets: Offsets) -> Flags:
        """Return which rows have a key that is known at a later offset."""
        return self._native.superseded(native_values(keys), offsets)
