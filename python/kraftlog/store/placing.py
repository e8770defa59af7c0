"""A staged file becomes part of a log: its headers get their offsets, sequences and epoch, in place."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import LOG_OVERHEAD
from kraftlog.codec.headers import Headers
from kraftlog.disk.durable import give_to_owner
from kraftlog.store.crc_shift import changed_crcs
from kraftlog.transactions.producer_state import SEQUENCES

# Where a header has the fields that change, as big-endian numbers: see native/c/batch.h.
_PLACES = {"base_offset": (0, ">i8"), "partition_leader_epoch": (12, ">i4"), "crc": (17, ">u4")}
_BASE_SEQUENCE = 53
_BASE_SEQUENCE_END = _BASE_SEQUENCE + 4


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
        behind = staged["batch_length"].astype(np.int64) + LOG_OVERHEAD - _BASE_SEQUENCE_END
        headers["crc"] = changed_crcs(staged["crc"], changes, behind)
    return headers


def write_headers(path: Path, headers: Headers, folder: Path) -> None:
    """Write headers over those of a file, and wait for the disk; that may be done again after a crash in between.

    Parameters
    ----------
    path : Path
        A staged file.
    headers : structured array of HEADER_DTYPE
        As ``placed_headers`` returns them.
    folder : Path
        Of the partition, whose owner gets the file.
    """
    data = np.memmap(path, np.uint8, "r+")
    for name, (place, kind) in {**_PLACES, "base_sequence": (_BASE_SEQUENCE, ">i4")}.items():
        _put(data, headers["position"] + place, headers[name].astype(kind))
    data.flush()
    del data
    with path.open("r+b") as file:
        give_to_owner(file.fileno(), folder)
        os.fsync(file.fileno())


def _put(data: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], values: npt.NDArray[np.generic]) -> None:
    width = values.dtype.itemsize
    data[positions[:, np.newaxis] + np.arange(width)] = values.view(np.uint8).reshape(-1, width)
