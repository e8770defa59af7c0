"""Frames of messages: the type and version in front of them; ``native/c/message/frame.h`` draws their form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kraftlog._native import message as native
from kraftlog._native import status
from kraftlog.codec.cursor import uvarint
from kraftlog.messages.record_type import KEY, VALUE

if TYPE_CHECKING:
    import pyarrow as pa

FRAME_VERSION = native.FRAME_VERSION
UNKNOWN_TYPE = native.NO_TYPE
NO_VERSION = native.NO_VERSION


@dataclass
class Side:
    """The keys or the values of some records.

    Attributes
    ----------
    values : native.Values
        The bytes.
    versions : numpy.ndarray of int32
        Version of each; ``NO_VERSION`` for none.
    starts : numpy.ndarray of int32
        Byte at which each message starts.
    """

    values: native.Values
    versions: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]


@dataclass
class Frames:
    """The frames of some records.

    Attributes
    ----------
    types : numpy.ndarray of int32
        The api key of each record; ``UNKNOWN_TYPE`` if it cannot be read.
    value : Side
    key : Side or None
        None for records without keys.
    is_tombstone : numpy.ndarray of bool
    is_strict : bool
        Whether bytes after a message are an error. Kafka's coordinators ignore them, its metadata log does not.
    faults : dict of int to str
        Error of each frame that cannot be read.
    """

    types: npt.NDArray[np.int32]
    value: Side
    key: Side | None
    is_tombstone: npt.NDArray[np.bool_]
    is_strict: bool
    faults: dict[int, str] = field(default_factory=dict)

    def note(self, side: str, faults: list[native.FrameFault]) -> None:
        """Note faults of frames."""
        for row, number, expected, actual in faults:
            self.faults.setdefault(row, f"{side}: {fault_sentence(number, expected, actual)}")


def framed(values: pa.BinaryArray) -> Frames:
    """Read the frames of values of the metadata log or of ``__remote_log_metadata``."""
    source = native_values(values)
    types, versions, starts, faults = native.read_frames(source)
    frames = Frames(types, Side(source, versions, starts), None, np.zeros(len(values), bool), is_strict=True)
    frames.note(VALUE, faults)
    return frames


def keyed(keys: pa.BinaryArray, values: pa.BinaryArray, key_version: int = 0) -> Frames:
    """Read the types and versions of coordinators' records: int16 before each key and each value."""
    native_keys, source = native_values(keys), native_values(values)
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys, but {len(values)} values")
    types, key_starts, key_faults = native.read_prefixes(native_keys, True)
    versions, starts, value_faults = native.read_prefixes(source, False)
    key = Side(native_keys, np.full(len(keys), key_version, np.int32), key_starts)
    is_tombstone = np.asarray(values.is_null().to_numpy(zero_copy_only=False), bool)
    frames = Frames(types, Side(source, versions, starts), key, is_tombstone, is_strict=False)
    frames.note(KEY, key_faults)
    frames.note(VALUE, value_faults)
    return frames


def unnamed(keys: pa.BinaryArray, values: pa.BinaryArray, *, has_versions: bool) -> Frames:
    """Read the frames of records of a single type, whose keys do not name it.

    Parameters
    ----------
    keys, values : pyarrow.BinaryArray
    has_versions : bool
        Whether values begin with their version; otherwise it is 0.
    """
    native_keys, source = native_values(keys), native_values(values)
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys, but {len(values)} values")
    zeros = np.zeros(len(keys), np.int32)
    has_no_key, is_tombstone = (
        np.asarray(one.is_null().to_numpy(zero_copy_only=False), bool) for one in (keys, values)
    )
    versions, starts, value_faults = native.read_prefixes(source, False)
    if not has_versions:
        versions, starts, value_faults = np.where(is_tombstone, NO_VERSION, zeros).astype(np.int32), zeros, []
    types = np.where(has_no_key, UNKNOWN_TYPE, zeros).astype(np.int32)
    key = Side(native_keys, zeros, zeros)
    frames = Frames(types, Side(source, versions, starts), key, is_tombstone, is_strict=False)
    for row in np.flatnonzero(has_no_key).tolist():
        frames.faults[row] = "key: the key is null"
    frames.note(VALUE, value_faults)
    return frames


def control(types: Sequence[int], values: pa.BinaryArray, prefixed: Sequence[bool]) -> Frames:
    """Read the versions of control records, the first int16 of their values.

    Parameters
    ----------
    types : sequence of int
        Types of the records, from their keys.
    values : pyarrow.BinaryArray
    prefixed : sequence of bool
        Whether the version precedes the message; otherwise it is the message's first field.
    """
    source = native_values(values)
    versions, _, faults = native.read_prefixes(source, False)
    starts = np.where(prefixed, 2, 0).astype(np.int32)
    side = Side(source, versions, starts)
    frames = Frames(np.array(types, np.int32), side, None, np.zeros(len(values), bool), is_strict=False)
    frames.note(VALUE, faults)
    return frames


@dataclass(frozen=True)
class RowsOfType:
    """The rows of a type, and the lowest and highest version of their values; ``NO_VERSION`` without any."""

    first_version: int
    last_version: int
    rows: native.Int64s


def rows_by_type(types: native.Int32s, versions: native.Int32s) -> dict[int, RowsOfType]:
    """Return the rows of each type."""
    found = native.group_rows(types, versions)
    if found is not None:
        return {api_key: RowsOfType(first, last, rows) for api_key, first, last, rows in found}
    groups = {}
    for api_key in np.unique(types).tolist():
        rows = np.flatnonzero(types == api_key)
        there = versions[rows][versions[rows] != NO_VERSION]
        first, last = (int(there.min()), int(there.max())) if len(there) else (NO_VERSION, NO_VERSION)
        groups[api_key] = RowsOfType(first, last, rows)
    return groups


def frame(api_key: int, version: int) -> bytes:
    """Return the frame of a message of the metadata log: frame version, type and version."""
    return uvarint(FRAME_VERSION) + uvarint(api_key) + uvarint(version)


def int16_prefix(number: int) -> bytes:
    """Return the prefix of a message of a coordinator: a key's type, or a value's version."""
    return number.to_bytes(2, "big", signed=True)


def fault_sentence(number: int, expected: int, actual: int) -> str:
    """Return the sentence of a status of ``native/c/base/status.h``."""
    return status.TEXTS[status.CODES[number]].format(expected=expected, actual=actual)


def native_values(array: pa.BinaryArray) -> native.Values:
    """Return the buffers of a column for the native code, without a copy."""
    import pyarrow as pa

    if not isinstance(array, pa.BinaryArray):
        raise ValueError(f"keys and values are a BinaryArray, not {type(array).__name__}")
    if not len(array):  # an empty array may lack offsets
        return native.Values(0, 0, None, bytes(4), None)
    valid, ends, data = array.buffers()
    return native.Values(len(array), array.offset, data, ends, valid)
