"""Batch headers as NumPy arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import TIMESTAMP_TYPE_BIT
from kraftlog.codec.compression import COMPRESSION_TYPES

Headers = npt.NDArray[np.void]  # of kraftlog._native.scanner.HEADER_DTYPE

NO_TIMESTAMP = -1
MAX_MILLISECONDS = (2**63 - 1) // 1000

COMPRESSION_NAMES = [*COMPRESSION_TYPES, *(f"unknown({code})" for code in range(len(COMPRESSION_TYPES), 8))]
TIMESTAMP_TYPE_IDS = np.array([0, 1, -1], np.int32)
CONTROL_TYPES = [
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
]


def copied(headers: Headers) -> Headers:
    """Return a copy; numpy copies rows of a structured array field by field, this copies their bytes."""
    cells = np.ascontiguousarray(headers).view(np.uint8)
    return cells.copy().view(headers.dtype)


def last_offsets(headers: Headers) -> npt.NDArray[np.int64]:
    """Return the last offset of each batch, from its header."""
    return np.asarray(headers["base_offset"] + headers["last_offset_delta"])


def timestamp_type_codes(headers: Headers) -> npt.NDArray[np.int64]:
    """Return indices into ``TIMESTAMP_TYPES`` and ``TIMESTAMP_TYPE_IDS``; messages of magic 0 have no timestamp."""
    return np.where(headers["magic"] == 0, 2, (headers["attributes"] & TIMESTAMP_TYPE_BIT != 0).astype(np.int64))
