"""Offsets rise from batch to batch; the crc of a batch does not cover its offset, so that a torn one may look sound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.errors import Fault


def going_back(headers: Headers, least_offset: int) -> Iterator[Fault]:
    """Return a fault ``offset_goes_back`` for each batch that begins before the end of the one before.

    Parameters
    ----------
    headers : structured array of HEADER_DTYPE
        Of batches that follow one another.
    least_offset : int
        That the first of them may have.
    """
    base, last = headers["base_offset"], last_offsets(headers)
    least = np.concatenate(([least_offset], last[:-1] + 1))
    is_wrapper = headers["magic"] < 2  # its offset is that of its last message
    for at in np.flatnonzero(np.where(is_wrapper, last, base) < least).tolist():
        position = int(headers["position"][at])
        what = f"base_offset {base[at]}, but {least[at]} or more was expected"
        yield Fault("offset_goes_back", f"batch at byte {position}: {what}", position, base_offset=int(base[at]))
