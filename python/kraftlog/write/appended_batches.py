"""Checks of batches before they are appended to a log."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.types import Buffer


def headers_of(batches: memoryview) -> Headers:
    """Return the headers of whole batches.

    Raises
    ------
    RecordError
        When a header is damaged.
    ValueError
        When the last batch is truncated.
    """
    if not len(batches):
        return np.zeros(0, HEADER_DTYPE)
    scan = HeaderScan(batches)
    blocks = list(scan.headers(strict=True))
    if scan.torn_at >= 0:
        raise ValueError(f"{len(batches) - scan.torn_at} bytes at the end are a truncated batch")
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def largest_batch(batches: Buffer) -> int:
    """Return the size of the largest of some batches; 0 without any."""
    headers = headers_of(memoryview(batches).cast("B"))
    return int(np.diff(ends(headers), prepend=0).max()) if len(headers) else 0


def check_offsets(headers: Headers, next_offset: int, folder: Path, *, allows_gaps: bool = False) -> None:
    """Raise a ValueError unless batches of magic 2 follow the end of a log, and each the one before.

    Parameters
    ----------
    headers : structured array of HEADER_DTYPE
    next_offset : int
        End offset of the log.
    folder : Path
        Folder of the partition, for the message.
    allows_gaps : bool
        Whether there may be gaps between batches.
    """
    if not len(headers):
        return
    if len(headers) == 1 and headers["base_offset"][0] == next_offset and headers["magic"][0] == 2:
        return  # nearly all appends to a metadata log
    expected = np.concatenate(([next_offset], last_offsets(headers)[:-1] + 1))
    misplaced = np.less if allows_gaps else np.not_equal
    bad = misplaced(headers["base_offset"], expected) | (headers["magic"] != 2)
    for at in np.flatnonzero(bad)[:1]:
        header = headers[at]
        raise ValueError(
            f"{folder}: batch {at}: expected offset {expected[at]}{' or more' if allows_gaps else ''} and magic 2, "
            f"found offset {header['base_offset']} and magic {header['magic']}"
        )
