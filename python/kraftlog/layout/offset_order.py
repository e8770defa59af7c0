"""Offsets rise from batch to batch; a batch's CRC does not cover its offset, so a torn batch may look sound."""

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
        Headers of consecutive batches.
    least_offset : int
        Minimum base offset of the first batch.
    """
    base, last = headers["base_offset"], last_offsets(headers)
    least = np.concatenate(([least_offset], last[:-1] + 1))
    is_wrapper = headers["magic"] < 2  # its offset is the offset of its last message
    for at in np.flatnonzero(np.where(is_wrapper, last, base) < least).tolist():
        position = int(headers["position"][at])
        what = f"expected base_offset {least[at]} or more, found {base[at]}"
        yield Fault("offset_goes_back", f"batch at byte {position}: {what}", position, base_offset=int(base[at]))
