"""Producer state snapshots (``<offset>.snapshot``): read, and written as Kafka writes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import astuple, replace

from kraftlog._native.checksum import crc32c
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.transactions.producer_state import ProducerState

_SNAPSHOT_HEADER = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_END = 6
_SNAPSHOT_VERSION = 1
_NO_TRANSACTION = -1
_LEAST_TABLE = 16


def read_producer_snapshot(path: LogPath) -> list[ProducerState]:
    """Read a producer state snapshot (``<offset>.snapshot``).

    Layout: version int16, crc uint32 (CRC32C of what follows), count int32, entries of 46 bytes.

    Raises
    ------
    CorruptRecordError
        When the version, the checksum or the size is not what it should be.
    """
    data = disk().read_bytes(path)
    if len(data) < _SNAPSHOT_HEADER.size:
        raise CorruptRecordError(f"{path.name}: a header of {_SNAPSHOT_HEADER.size} bytes, but {len(data)} bytes left")
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptRecordError(f"{path.name}: version {version} is not {_SNAPSHOT_VERSION}")
    computed = crc32c(memoryview(data)[_CRC_END:])
    if computed != crc:
        raise CorruptRecordError(f"{path.name}: stored crc {crc}, computed crc {computed}")
    body = memoryview(data)[_SNAPSHOT_HEADER.size :]
    if len(body) != count * _SNAPSHOT_ENTRY.size:
        raise CorruptRecordError(
            f"{path.name}: {count} entries take {count * _SNAPSHOT_ENTRY.size} bytes, not {len(body)}"
        )
    states = [ProducerState(*entry) for entry in _SNAPSHOT_ENTRY.iter_unpack(body)]
    return [_without_sentinel(state) for state in states]


def _without_sentinel(state: ProducerState) -> ProducerState:
    if state.current_transaction_first_offset == _NO_TRANSACTION:
        return replace(state, current_transaction_first_offset=None)
    return state


def producer_snapshot_bytes(states: Iterable[ProducerState]) -> bytes:
    """Return the ``.snapshot`` file that Kafka writes for states.

    Parameters
    ----------
    states : iterable of ProducerState
        In the order in which the producers were met; Kafka's order in the file follows from it.
    """
    entries = []
    for state in _in_hash_order(list(states)):
        *fields, first_offset = astuple(state)
        entries.append(_SNAPSHOT_ENTRY.pack(*fields, _NO_TRANSACTION if first_offset is None else first_offset))
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return struct.pack(">hI", _SNAPSHOT_VERSION, crc32c(body)) + body


def _in_hash_order(states: list[ProducerState]) -> list[ProducerState]:
    """Return states as Java iterates over a ``HashMap`` of their ids: by bucket, in one bucket as they were added."""
    buckets = _LEAST_TABLE
    while len(states) > buckets * 3 // 4:
        buckets *= 2

    def bucket(state: ProducerState) -> int:
        folded = (state.producer_id ^ state.producer_id >> 32) & 0xFFFFFFFF
        return (folded ^ folded >> 16) & (buckets - 1)

    return sorted(states, key=bucket)
