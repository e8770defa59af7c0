"""The ``.txnindex`` of a segment under writing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kraftlog.disk.disk import disk
from kraftlog.layout.index_files import ENTRY_TYPES


def kept_txnindex(path: Path, rebuilt: bytes, end_offset: int) -> bytes:
    """Return the ``.txnindex`` of a segment that ends at an offset.

    Parameters
    ----------
    path : Path
        Path of the file, which may list transactions whose beginning the log no longer has.
    rebuilt : bytes
        Entries derived from the log.
    end_offset : int
        Entries of transactions that ended there or later are left out.
    """
    kind = ENTRY_TYPES["txnindex"]
    data = disk().read_bytes(path) if disk().entry(path) is not None else b""
    there = np.frombuffer(data, kind, len(data) // kind.itemsize)
    there = there[there["last_offset"] < end_offset]
    new = np.frombuffer(rebuilt, kind)
    new = new[~np.isin(new["last_offset"], there["last_offset"])]
    every = np.concatenate((there, new)).astype(kind)  # big-endian again
    return every[np.argsort(every["last_offset"], kind="stable")].tobytes()
