"""Producer state snapshots (``<offset>.snapshot``): reader and writer of Kafka's format."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.checksum import crc32c
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.transactions.producer_state import ProducerState

_SNAPSHOT_HEADER = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_ENTRY_TYPES = (">i8", ">i2", ">i4", ">i8", ">i4", ">i8", ">i4", ">i8")
_ENTRIES = np.dtype([(field.name, kind) for field, kind in zip(fields(ProducerState), _ENTRY_TYPES, strict=True)])
_CRC_END = 6
_SNAPSHOT_VERSION = 1
_NO_TRANSACTION = -1
_LEAST_TABLE = 16


class OpenProducer(NamedTuple):
    """A producer with an open transaction."""

    producer_id: int
    producer_epoch: int
    current_transaction_first_offset: int


def read_producer_snapshot(path: LogPath) -> list[ProducerState]:
    """Read a producer state snapshot (``<offset>.snapshot``).

    Layout: version int16, crc uint32 (CRC32C of what follows), count int32, entries of 46 bytes.

    Raises
    ------
    CorruptRecordError
        When the version, the checksum or the size is wrong.
    """
    columns = [column.tolist() for column in _entries(path).values()]
    first_offsets = (None if offset == _NO_TRANSACTION else offset for offset in columns.pop())
    return list(map(ProducerState, *columns, first_offsets))


def read_open_transactions(path: LogPath) -> list[OpenProducer]:
    """Read the producers of a snapshot that have an open transaction, in the order of the file.

    A log has a snapshot at each border of two segments, with an entry for each producer of the last day
    (``producer.id.expiration.ms``); few have an open transaction.

    Raises
    ------
    CorruptRecordError
        As in ``read_producer_snapshot``.
    """
    entries = _entries(path)
    is_open = entries["current_transaction_first_offset"] != _NO_TRANSACTION
    return [
        OpenProducer(*row)
        for row in zip(*(entries[name][is_open].tolist() for name in OpenProducer._fields), strict=True)
    ]


def _entries(path: LogPath) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a snapshot, after its version, checksum and size."""
    data = disk().read_bytes(path)
    if len(data) < _SNAPSHOT_HEADER.size:
        raise CorruptRecordError(
            f"{path.name}: expected a header of {_SNAPSHOT_HEADER.size} bytes, found {len(data)} bytes"
        )
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptRecordError(f"{path.name}: expected version {_SNAPSHOT_VERSION}, found {version}")
    computed = crc32c(memoryview(data)[_CRC_END:])
    if computed != crc:
        raise CorruptRecordError(f"{path.name}: stored crc {crc}, computed crc {computed}")
    size = len(data) - _SNAPSHOT_HEADER.size
    if size != count * _ENTRIES.itemsize:
        raise CorruptRecordError(
            f"{path.name}: expected {count * _ENTRIES.itemsize} bytes for {count} entries, found {size}"
        )
    entries = np.frombuffer(data, _ENTRIES, offset=_SNAPSHOT_HEADER.size)
    return {name: entries[name] for name in _ENTRIES.names or ()}


def producer_snapshot_bytes(states: Iterable[ProducerState]) -> bytes:
    """Return the ``.snapshot`` file that Kafka writes for states.

    Parameters
    ----------
    states : iterable of ProducerState
        In order of the producers' first occurrence, which determines Kafka's order in the file.
    """
    entries = []
    for state in _in_hash_order(list(states)):
        *fields, first_offset = astuple(state)
        entries.append(_SNAPSHOT_ENTRY.pack(*fields, _NO_TRANSACTION if first_offset is None else first_offset))
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", _SNAPSHOT_VERSION, crc32c(body)) + body


def _in_hash_order(states: list[ProducerState]) -> list[ProducerState]:
    """Return states in the order of Java's ``HashMap`` of their ids: by bucket, then in order of insertion."""
    buckets = _LEAST_TABLE
    while len(states) > buckets * 3 // 4:
        buckets *= 2

    def bucket(state: ProducerState) -> int:
        folded = (state.producer_id ^ state.producer_id >> 32) & 0xFFFFFFFF
        return (folded ^ folded >> 16) & (buckets - 1)

    return sorted(states, key=bucket)
