"""The last offset of each key, in bounded memory, as Kafka's ``OffsetMap``."""

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

    Keys are kept and compared by their bytes. Kafka keeps a hash instead of the key, by default MD5: of two keys with
    the same hash, which an attacker can construct, it drops one value.

    Parameters
    ----------
    most_bytes : int
        Limit for keys, each with an overhead of 72 to 96 bytes; one key is always taken.

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

    def put(self, keys: pa.BinaryArray, offsets: Offsets, flags: Flags, row: int) -> int:
        """Add the keys of selected rows from a row on, in the order of the log; null is not a key.

        Returns
        -------
        int
            The row whose key does not fit, or the number of rows.
        """
        return self._native.put(native_values(keys), offsets, flags.view(np.uint8), row)

    def superseded(self, keys: pa.BinaryArray, offsets: Offsets) -> Flags:
        """Return which rows have a key with a later offset in the map."""
        return self._native.superseded(native_values(keys), offsets)
