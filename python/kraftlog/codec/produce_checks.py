"""The checks of a broker on the batches of a producer, without a broker."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog._native.checksum import crc32c
from kraftlog._native.chunk import COLUMNS, Chunk
from kraftlog._native.decoder import VIEWS, WANT
from kraftlog._native.scanner import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    LAST_COMPRESSION,
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    header_at,
)
from kraftlog.codec.chunk_decoder import ChunkDecoder, rules_of
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault
from kraftlog.types import Buffer

# Kafka's Errors, of which this module needs some
NONE = (0, "NONE")
UNKNOWN_SERVER_ERROR = (-1, "UNKNOWN_SERVER_ERROR")
CORRUPT_MESSAGE = (2, "CORRUPT_MESSAGE")
MESSAGE_TOO_LARGE = (10, "MESSAGE_TOO_LARGE")
INVALID_TIMESTAMP = (32, "INVALID_TIMESTAMP")
INVALID_RECORD = (87, "INVALID_RECORD")

DEFAULT_MAX_MESSAGE_BYTES = 1048588
DEFAULT_TIMESTAMP_AFTER_MAX_MS = 3600000

_HEADER_UP_TO_MAGIC = 17
_CRC_END = 21
_ATTRIBUTES_END = 23
_LEAST_BATCH_LENGTH = 14
_GZIP, _ZSTD = 1, 4
_GZIP_HEADER = 10
_PLAIN_GZIP = b"\x1f\x8b\x08\x00"  # without optional fields
_NO_TIMESTAMP = -1
# all columns with bytes of records; keys and values are not copied
_WANT = VIEWS | sum(WANT[name] for name in ("offset", "key", "timestamp_ms", "headers", "value"))
_OF_SERVER = {"decompression_failed": UNKNOWN_SERVER_ERROR, "decompression_limit": MESSAGE_TOO_LARGE}


@dataclass(frozen=True)
class Topic:
    """Parameters of the checks; names are those of ``validate``."""

    max_message_bytes: int
    compacted: bool
    timestamp_type: str
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    now_ms: int
    max_decompressed_bytes: int = ReadOptions.max_decompressed_bytes


class Verdict(NamedTuple):
    """A row of ``validate``."""

    position: int
    size_in_bytes: int
    base_offset: int
    error_code: int
    error: str
    record_index: int | None
    message: str | None


class Refusal(Exception):  # noqa: N818  (it never leaves this module)
    """The first check that a batch fails."""

    def __init__(self, error: tuple[int, str], message: str, record_index: int | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.record_index = record_index


def verdicts(buffer: Buffer, topic: Topic, *, one_batch: bool = True) -> list[Verdict]:
    """Return the rows of ``validate``.

    Parameters
    ----------
    buffer : buffer
    topic : Topic
    one_batch : bool
        As in ``validate``.
    """
    rows = []
    for number, (position, size, refusal) in enumerate(_batches(memoryview(buffer).cast("B"))):
        data = memoryview(buffer).cast("B")[position : position + size]
        if refusal is None and one_batch and number > 0:
            refusal = Refusal(INVALID_RECORD, f"{number} batches before it, where one is allowed")
        rows.append(_verdict(data, position, size, topic, refusal))
    return rows


def _batches(data: memoryview) -> Iterator[tuple[int, int, Refusal | None]]:
    """Step from batch to batch like a broker: position and size of each, and the reason for the end of the walk."""
    position = 0
    while len(data) - position >= _HEADER_UP_TO_MAGIC:
        length = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        magic = int.from_bytes(data[position + 16 : position + _HEADER_UP_TO_MAGIC], "big", signed=True)
        left = len(data) - position
        if length < _LEAST_BATCH_LENGTH:
            refusal = Refusal(CORRUPT_MESSAGE, f"batch_length {length} is less than {_LEAST_BATCH_LENGTH}")
            yield position, left, refusal
            return
        if not 0 <= magic <= 2:
            yield position, left, Refusal(CORRUPT_MESSAGE, f"magic {magic} is not 0, 1 or 2")
            return
        if length > left - LOG_OVERHEAD:
            return
        yield position, LOG_OVERHEAD + length, None
        position += LOG_OVERHEAD + length


def _verdict(data: memoryview, position: int, size: int, topic: Topic, refusal: Refusal | None) -> Verdict:
    try:
        if refusal is not None:
            raise refusal
        _check_batch(data, topic)
    except Refusal as found:
        refusal = found
    code, name = NONE if refusal is None else refusal.error
    return Verdict(
        position,
        size,
        int.from_bytes(data[:8], "big", signed=True),
        code,
        name,
        None if refusal is None else refusal.record_index,
        None if refusal is None else f"batch at byte {position}: {refusal}",
    )


def _check_batch(data: memoryview, topic: Topic) -> None:
    size, magic = len(data), data[16]
    if magic != 2:
        raise Refusal(INVALID_RECORD, f"magic {magic} is not 2")
    base_offset = int.from_bytes(data[:8], "big", signed=True)
    if base_offset != 0:
        raise Refusal(INVALID_RECORD, f"base_offset {base_offset} is not 0")
    if size > topic.max_message_bytes:
        raise Refusal(MESSAGE_TOO_LARGE, f"{size} bytes, more than max_message_bytes {topic.max_message_bytes}")
    if size < RECORD_BATCH_OVERHEAD:
        raise Refusal(CORRUPT_MESSAGE, f"{size} bytes, less than a header of {RECORD_BATCH_OVERHEAD} bytes")
    stored, computed = int.from_bytes(data[17:_CRC_END], "big"), crc32c(data[_CRC_END:])
    if stored != computed:
        raise Refusal(CORRUPT_MESSAGE, f"stored crc {stored}, computed crc {computed}")
    header = header_at(data, 0)[0]
    _check_header(header)
    _check_records(data, header, topic)


def _check_header(header: np.void) -> None:
    compression = int(header["attributes"]) & COMPRESSION_MASK
    if compression > LAST_COMPRESSION:
        raise Refusal(UNKNOWN_SERVER_ERROR, f"compression type {compression} is not between 0 and {LAST_COMPRESSION}")
    offsets, count = int(header["last_offset_delta"]) + 1, int(header["records_count"])
    if offsets <= 0:
        raise Refusal(INVALID_RECORD, f"last_offset_delta {offsets - 1} is negative")
    if count <= 0:
        raise Refusal(INVALID_RECORD, f"records_count {count} is not positive")
    if offsets != count:
        raise Refusal(INVALID_RECORD, f"last_offset_delta {offsets - 1} and records_count {count} do not match")
    if int(header["attributes"]) & CONTROL_BIT:
        raise Refusal(INVALID_RECORD, "a control batch, which clients may not write")
    if int(header["producer_id"]) >= 0 and int(header["base_sequence"]) < 0:
        producer_id, sequence = int(header["producer_id"]), int(header["base_sequence"])
        raise Refusal(INVALID_RECORD, f"base_sequence {sequence} is negative, and producer_id {producer_id} is not")


def _check_records(data: memoryview, header: Headers | np.void, topic: Topic) -> None:
    """Check the records: a malformed one decides first, then timestamps, keys, and offsets."""
    compression = int(header["attributes"]) & COMPRESSION_MASK
    if compression and len(data) == RECORD_BATCH_OVERHEAD:  # to a broker that is a stream of zstd without records
        raise Refusal(INVALID_RECORD if compression == _ZSTD else UNKNOWN_SERVER_ERROR, "nothing to decompress")
    options = ReadOptions(check_crc=False, max_decompressed_bytes=topic.max_decompressed_bytes)
    faults: list[Fault] = []
    before = 0
    missing: int | None = None
    untimely: tuple[int, str] | None = None
    misplaced: tuple[int, int] | None = None
    for chunk in _decoder(data, options).native_chunks(faults):
        is_needed = _have_no_key(chunk) if topic.compacted else np.zeros(chunk.rows, bool)
        if missing is None and is_needed.any():
            missing = before + int(is_needed.argmax())
        stamps = np.frombuffer(chunk.timestamps_ms, np.int64)
        is_bad = _are_untimely(stamps, header, topic) & ~is_needed
        if untimely is None and is_bad.any():
            at = int(is_bad.argmax())
            untimely = before + at, _why_untimely(int(stamps[at]), topic)
        offsets = np.frombuffer(chunk.offsets, np.int64)
        is_elsewhere = offsets != np.arange(before, before + chunk.rows)
        if misplaced is None and is_elsewhere.any():
            at = int(is_elsewhere.argmax())
            misplaced = before + at, int(offsets[at])
        before += chunk.rows
    if faults:
        fault = _fault_before_the_trailer(data, topic) or faults[0]
        what = fault.message.removeprefix("batch at byte 0: ").removeprefix("batch at byte 0, ")
        raise Refusal(_OF_SERVER.get(fault.error, INVALID_RECORD), what, fault.record_index)
    if untimely is not None:
        raise Refusal(INVALID_TIMESTAMP, f"record {untimely[0]}: {untimely[1]}", untimely[0])
    if missing is not None:
        raise Refusal(INVALID_RECORD, f"record {missing}: no key, which a compacted topic needs", missing)
    if misplaced is not None and compression:  # a broker numbers those of a batch without compression itself
        at, offset = misplaced
        raise Refusal(UNKNOWN_SERVER_ERROR, f"record {at}: offset_delta {offset} is not {at}", at)


def _decoder(data: Buffer, options: ReadOptions) -> ChunkDecoder:
    return ChunkDecoder(
        data, 0, NO_BOUND, rules_of(_WANT, options), options, rows=options.batch_rows, size=options.batch_bytes
    )


def _have_no_key(chunk: Chunk) -> npt.NDArray[np.bool_]:
    import pyarrow as pa  # topics that are compacted are few

    keys = chunk.to_array(COLUMNS["key"], pa.Array._import_from_c, pa.binary_view())
    validity = keys.buffers()[0]
    if validity is None:
        return np.zeros(len(keys), bool)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    is_null: npt.NDArray[np.bool_] = bits[keys.offset : keys.offset + len(keys)] == 0
    return is_null


def _fault_before_the_trailer(data: memoryview, topic: Topic) -> Fault | None:
    """Return the first bad record of a gzip batch: a broker reads it before the checksum at the end."""
    payload = data[RECORD_BATCH_OVERHEAD:]
    if data[_ATTRIBUTES_END - 1] & COMPRESSION_MASK != _GZIP or payload[:4] != _PLAIN_GZIP:
        return None
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        plain = inflater.decompress(payload[_GZIP_HEADER:], topic.max_decompressed_bytes)
    except zlib.error:
        return None
    batch = bytearray(data[:RECORD_BATCH_OVERHEAD]) + plain
    batch[_ATTRIBUTES_END - 1] &= ~COMPRESSION_MASK
    struct.pack_into(">i", batch, 8, len(batch) - LOG_OVERHEAD)
    faults: list[Fault] = []
    for _ in _decoder(batch, ReadOptions(check_crc=False)).native_chunks(faults):
        pass
    return faults[0] if inflater.eof and faults else None


def _are_untimely(stamps: npt.NDArray[np.int64], header: Headers | np.void, topic: Topic) -> npt.NDArray[np.bool_]:
    """Return whether a broker refuses timestamps; differences wrap around as in the broker."""
    is_append_time = bool(int(header["attributes"]) & TIMESTAMP_TYPE_BIT)
    if topic.timestamp_type != "CreateTime":
        return np.full(len(stamps), is_append_time)
    age = np.int64(topic.now_ms) - stamps
    is_out_of_range = (age > topic.timestamp_before_max_ms) | (-age > topic.timestamp_after_max_ms)
    return np.where(stamps == _NO_TIMESTAMP, is_append_time, is_out_of_range)


def _why_untimely(stamp: int, topic: Topic) -> str:
    if topic.timestamp_type != "CreateTime" or stamp == _NO_TIMESTAMP:
        return "timestamp_type LogAppendTime, which producers may not set"
    return (
        f"timestamp {stamp} is not within {topic.timestamp_before_max_ms} ms before and "
        f"{topic.timestamp_after_max_ms} ms after {topic.now_ms}"
    )
