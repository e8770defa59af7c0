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
    TRANSACTIONAL_BIT,
)
from kraftlog.codec.arrow_arrays import array_of, scalar_of, texts_of
from kraftlog.codec.headers import (
    COMPRESSION_NAMES,
    CONTROL_TYPES,
    MAX_MILLISECONDS,
    NO_TIMESTAMP,
    Headers,
    last_offsets,
    timestamp_type_codes,
)

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
