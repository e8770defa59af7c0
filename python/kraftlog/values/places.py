"""Where the values of a column lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog.types import Buffer

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def places_of(values: pa.Array) -> tuple[Buffer, Numbers, Numbers]:
    """Return the data of a column of bytes or text, and where in it each value starts and ends.

    Examples
    --------
    >>> import pyarrow as pa
    >>> data, starts, ends = places_of(pa.array([b"ab", None, b"c"]))
    >>> starts.tolist(), ends.tolist()
    ([0, 2, 2], [2, 2, 3])
    """
    _, offsets, data = values.buffers()
    if offsets is None or len(values) == 0:
        return b"", np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    is_large = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    places = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    places = places[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return (b"" if data is None else data), np.ascontiguousarray(places[:-1]), np.ascontiguousarray(places[1:])
