"""A staged file becomes part of a log: its headers get their offsets, sequences and epoch, in place."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kraftlog._native.scanner import LOG_OVERHEAD
from kraftlog.codec.headers import Headers
from kraftlog.disk.disk import disk
from kraftlog.store.crc_shift import changed_crcs
from kraftlog.transactions.producer_state import SEQUENCES

# The fields of a header up to its base sequence, behind which nothing changes: see native/c/batch.h.
_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", ">i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
    ]
)


def placed_headers(staged: Headers, *, base_offset: int, base_sequence: int, partition_leader_epoch: int) -> Headers:
    """Return the headers that a staged file has in its place.

    The offset and the epoch lie outside of what the crc covers; for the sequence it is worked out from the old one.

    Parameters
    ----------
    staged : structured array of HEADER_DTYPE
        As ``read_headers`` returns them.
    base_offset, base_sequence : int
        Of the first batch.
    partition_leader_epoch : int
    """
    headers = staged.copy()
    headers["base_offset"] += base_offset - int(staged["base_offset"][0])
    headers["partition_leader_epoch"] = partition_leader_epoch
    headers["base_sequence"] = (headers["base_offset"] - base_offset + base_sequence) % SEQUENCES
    changes = (staged["base_sequence"] ^ headers["base_sequence"]).astype(">i4").view("<u4").astype(np.uint32)
    if changes.any():
        behind = staged["batch_length"].astype(np.int64) + LOG_OVERHEAD - _HEADER.itemsize
        headers["crc"] = changed_crcs(staged["crc"], changes, behind)
    return headers


def write_headers(path: Path, headers: Headers) -> None:
    """Write headers over those of a file, and wait for the disk; that may be done again after a crash in between.

    Parameters
    ----------
    path : Path
        A staged file.
    headers : structured array of HEADER_DTYPE
        As ``placed_headers`` returns them.
    """
    rows = np.empty(len(headers), _HEADER)
    for name in _HEADER.names or ():
        rows[name] = headers[name]
    data = memoryview(rows.tobytes())
    with disk().open_update(path) as file:
        for at, position in enumerate(headers["position"].tolist()):
            file.pwrite(data[at * _HEADER.itemsize : (at + 1) * _HEADER.itemsize], position)
        file.sync()
