"""A record batch with a subset of its records, rebuilt as by Kafka's log cleaner (``MemoryRecords.filterTo``).

Offsets, the last offset, producer and sequence are unchanged. The base timestamp becomes that of the first kept record,
or, if attribute bit 6 is set, the delete horizon of the batch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kraftlog._native.checksum import crc32c
from kraftlog._native.cleaning import kept_records, rewritten_records
from kraftlog._native.compression import Decompressor
from kraftlog._native.scanner import DELETE_HORIZON_BIT, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, TIMESTAMP_TYPE_BIT
from kraftlog.codec.compression import DEFAULT_LEVELS, compress_batches

_HEADER = struct.Struct(">qiibIhiqqqhii")  # as native/c/batch/batch.h has it
_CRC_AT = 17
_BEHIND_CRC = 21
_COMPRESSION_MASK = 7
_NO_TIMESTAMP = -1

Fields = tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]
"""Key, value, and names and values of headers."""


def filtered_batch(
    batch: bytes,
    keeps: npt.NDArray[np.bool_],
    delete_horizon_ms: int | None,
    decompressor: Decompressor,
    compression: int | None = None,
) -> bytes:
    """Return a batch with the kept records, at least one.

    Parameters
    ----------
    batch : bytes
        A batch of magic 2 with a verified checksum.
    keeps : numpy.ndarray
        Whether to keep each record.
    delete_horizon_ms : int or None
        Time at which its tombstones and markers may be removed; None if not yet set.
    decompressor : Decompressor
    compression : int, optional
        Index into ``COMPRESSION_TYPES``, of the returned batch; by default unchanged.
    """
    header = list(_HEADER.unpack_from(batch))
    plain = _plain(batch, header[5], decompressor)
    filtered, count, base_timestamp, max_timestamp = kept_records(
        plain, keeps.view(np.uint8), header[7], delete_horizon_ms, RECORD_BATCH_OVERHEAD
    )
    attributes = _with_compression(header[5], compression) & ~DELETE_HORIZON_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    if attributes & TIMESTAMP_TYPE_BIT:
        max_timestamp = header[8]
    header[5], header[7], header[8], header[12] = attributes, base_timestamp, max_timestamp, count
    return _sealed(header, filtered)


def recompressed_batch(batch: bytes, compression: int, decompressor: Decompressor) -> bytes:
    """Return a batch with the same records in another compression.

    Parameters
    ----------
    batch : bytes
        A batch of magic 2 with a verified checksum.
    compression : int
        Index into ``COMPRESSION_TYPES``.
    decompressor : Decompressor
    """
    header = list(_HEADER.unpack_from(batch))
    plain = _plain(batch, header[5], decompressor)
    header[5] = _with_compression(header[5], compression)
    return _sealed(header, bytearray(RECORD_BATCH_OVERHEAD) + plain)


def rewritten_batch(
    batch: bytes,
    change: Callable[[list[Fields]], list[Fields]],
    decompressor: Decompressor,
    compression: int | None = None,
) -> bytes:
    """Return a batch with other keys, values and headers; all other fields of its records are unchanged.

    Parameters
    ----------
    batch : bytes
        A batch of magic 2 with a verified checksum and readable records.
    change : callable
        Returns the new key, value and headers of each record.
    decompressor : Decompressor
    compression : int, optional
        Index into ``COMPRESSION_TYPES``, of the returned batch; by default unchanged.
    """
    header = list(_HEADER.unpack_from(batch))
    plain = _plain(batch, header[5], decompressor)
    header[5] = _with_compression(header[5], compression)
    return _sealed(header, rewritten_records(plain, change, RECORD_BATCH_OVERHEAD))


def empty_batch(batch: bytes) -> bytes:
    """Return a batch without its records, to keep the sequence and the epoch of its producer."""
    header = list(_HEADER.unpack_from(batch))
    header[5] &= ~(DELETE_HORIZON_BIT | _COMPRESSION_MASK)
    header[7], header[12] = _NO_TIMESTAMP, 0
    return _sealed(header, bytearray(RECORD_BATCH_OVERHEAD))


def _plain(batch: bytes, attributes: int, decompressor: Decompressor) -> bytes:
    """Return the records of a batch, decompressed."""
    plain, compression = batch[RECORD_BATCH_OVERHEAD:], attributes & _COMPRESSION_MASK
    if not compression:
        return plain
    decompressor.decompress(plain, compression, 2)
    return decompressor.plain_bytes()


def _with_compression(attributes: int, compression: int | None) -> int:
    return attributes if compression is None else attributes & ~_COMPRESSION_MASK | compression


def _sealed(header: list[int], batch: bytearray) -> bytes:
    """Return a batch of records that follow the space for their header."""
    header[1] = len(batch) - LOG_OVERHEAD
    _HEADER.pack_into(batch, 0, *header)
    compression = header[5] & _COMPRESSION_MASK
    if compression:
        return bytes(compress_batches(batch, compression, DEFAULT_LEVELS[compression]))
    struct.pack_into(">I", batch, _CRC_AT, crc32c(memoryview(batch)[_BEHIND_CRC:]))
    return bytes(batch)
