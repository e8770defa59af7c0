"""Batch headers as Arrow columns: the ``batches`` table, and columns of records from their batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.chunk import TIMESTAMP_TYPES
from kraftlog._native.scanner import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from kraftlog.codec.arrow_arrays import array_of, scalar_of, texts_of
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

LONGEST_REPEAT = 1 << 16
WORTH_SHARING = 1 << 10  # rows


@lru_cache(maxsize=8)
def _long_repeat(value: Any, kind: pa.DataType) -> pa.Array:
    return pa.repeat(scalar_of(value, kind), LONGEST_REPEAT)


def repeated(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column of one value; long columns share their memory."""
    if not WORTH_SHARING <= rows <= LONGEST_REPEAT:
        return pa.repeat(scalar_of(value, kind), rows)
    return _long_repeat(value, kind).slice(0, rows)


def named(codes: npt.NDArray[Any], names: list[str]) -> pa.Array:
    """Return the names of codes; codes without a name become numbers, negative ones null."""
    if len(codes) and (codes == codes[0]).all() and 0 <= codes[0] < len(names):
        return repeated(names[codes[0]], pa.string(), len(codes))
    known = list(names)
    known += [f"UNKNOWN({code})" for code in range(len(names), int(codes.max(initial=0)) + 1)] if len(codes) else []
    return texts_of(known).take(array_of(codes, pa.int64(), codes < 0))


def timestamps(milliseconds: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return milliseconds as timestamps; -1, masked values and overflows in microseconds become null."""
    null = (milliseconds == NO_TIMESTAMP) | (milliseconds > MAX_MILLISECONDS) | (milliseconds < -MAX_MILLISECONDS)
    if mask is not None:
        null |= mask
    return array_of(np.where(null, 0, milliseconds) * 1000, pa.int64(), null).cast(schema.TIMESTAMP)


def copied(headers: Headers) -> Headers:
    """Return a copy; numpy copies rows of a structured array field by field, this copies their bytes."""
    cells = np.ascontiguousarray(headers).view(np.uint8)
    return cells.copy().view(headers.dtype)


def last_offsets(headers: Headers) -> npt.NDArray[np.int64]:
    """Return the last offset of each batch, from its header."""
    return np.asarray(headers["base_offset"] + headers["last_offset_delta"])


def header_column(name: str, headers: Headers) -> pa.Array:
    """Return one column of the ``batches`` table that is computed from headers."""
    column = _DERIVED.get(name)
    if column is not None:
        return column(headers)
    return array_of(headers[name], schema.BATCHES.select([name]).field(0).type)


def _flag(headers: Headers, bit: int) -> npt.NDArray[np.bool_]:
    return np.asarray((headers["attributes"] & bit != 0) & (headers["magic"] >= 2))


def _timestamp_type(headers: Headers) -> pa.Array:
    return named(timestamp_type_codes(headers), TIMESTAMP_TYPES)


def timestamp_type_codes(headers: Headers) -> npt.NDArray[np.int64]:
    """Return indices into ``TIMESTAMP_TYPES`` and ``TIMESTAMP_TYPE_IDS``; messages of magic 0 have no timestamp."""
    return np.where(headers["magic"] == 0, 2, (headers["attributes"] & TIMESTAMP_TYPE_BIT != 0).astype(np.int64))


def _records_count(headers: Headers) -> pa.Array:
    unknown = (headers["records_count"] < 0) & (headers["magic"] < 2)
    return array_of(headers["records_count"], pa.int32(), unknown)


def _crc_ok(headers: Headers) -> pa.Array:
    return array_of(headers["crc_ok"] == 1, mask=headers["crc_ok"] < 0)


def _delete_horizon_ms(headers: Headers) -> pa.Array:
    return array_of(headers["base_timestamp"], pa.int64(), ~_flag(headers, DELETE_HORIZON_BIT))


_DERIVED: dict[str, Callable[[Headers], pa.Array]] = {
    "size_in_bytes": lambda h: array_of(h["batch_length"].astype(np.int64) + LOG_OVERHEAD),
    "last_offset": lambda h: array_of(last_offsets(h)),
    "crc_ok": _crc_ok,
    "compression": lambda h: named(h["attributes"] & COMPRESSION_MASK, COMPRESSION_NAMES),
    "timestamp_type": _timestamp_type,
    "base_timestamp": lambda h: timestamps(h["base_timestamp"]),
    "max_timestamp": lambda h: timestamps(h["max_timestamp"]),
    "delete_horizon": lambda h: timestamps(h["base_timestamp"], ~_flag(h, DELETE_HORIZON_BIT)),
    "base_timestamp_ms": lambda h: array_of(h["base_timestamp"]),
    "max_timestamp_ms": lambda h: array_of(h["max_timestamp"]),
    "delete_horizon_ms": _delete_horizon_ms,
    "records_count": _records_count,
    "is_transactional": lambda h: array_of(_flag(h, TRANSACTIONAL_BIT)),
    "is_control": lambda h: array_of(_flag(h, CONTROL_BIT)),
    "control_type": lambda h: named(h["control_type"], CONTROL_TYPES),
}
