"""The small files beside segments: checkpoints, properties, and the producer state snapshot."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path

from kraftlog._native.checksum import crc32c
from kraftlog.errors import CorruptRecordError

_SNAPSHOT_HEADER = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_END = 6
_SNAPSHOT_VERSION = 1


@dataclass(frozen=True)
class ProducerState:
    """One entry of a ``.snapshot`` file; names are those of Kafka's ``ProducerSnapshot``."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int | None


def read_producer_snapshot(path: Path) -> list[ProducerState]:
    """Read a producer state snapshot (``<offset>.snapshot``).

    Layout: version int16, crc uint32 (CRC32C of what follows), count int32, entries of 46 bytes.

    Raises
    ------
    CorruptRecordError
        When the version, the checksum or the size is not what it should be.
    """
    data = path.read_bytes()
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
    if state.current_transaction_first_offset == -1:
        return replace(state, current_transaction_first_offset=None)
    return state


def read_leader_epochs(path: Path) -> list[tuple[int, int]]:
    """Read ``leader-epoch-checkpoint``: pairs of epoch and its first offset."""
    return [(int(epoch), int(offset)) for epoch, offset in _checkpoint_rows(path, 2)]


def read_offset_checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """Read a checkpoint of the log directory, such as ``log-start-offset-checkpoint``: offsets by partition."""
    return {(topic, int(partition)): int(offset) for topic, partition, offset in _checkpoint_rows(path, 3)}


def _checkpoint_rows(path: Path, width: int) -> list[list[str]]:
    lines = path.read_text().splitlines()
    if len(lines) < 2 or lines[0].strip() != "0":
        raise CorruptRecordError(f"{path.name}: line 1: version {lines[0] if lines else ''!r} is not 0")
    rows = [line.split() for line in lines[2:] if line.strip()]
    if int(lines[1]) != len(rows):
        raise CorruptRecordError(f"{path.name}: line 2: {lines[1]} entries expected, {len(rows)} found")
    for number, row in enumerate(rows, 3):
        if len(row) != width:
            raise CorruptRecordError(f"{path.name}: line {number}: {width} words expected, {len(row)} found")
    return rows


def read_properties(path: Path) -> dict[str, str]:
    """Read ``meta.properties`` (``key=value``) or ``partition.metadata`` (``key: value``)."""
    properties = {}
    for line in path.read_text().splitlines():
        separator = ":" if path.name == "partition.metadata" else "="
        if line.strip() and not line.startswith("#"):
            key, found, value = line.partition(separator)
            if not found:
                raise CorruptRecordError(f"{path.name}: no {separator!r} in the line {line!r}")
            properties[key.strip()] = value.strip()
    return properties
