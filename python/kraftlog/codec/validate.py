"""The checks of a broker on the batches of a producer, without a broker."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog import schema
from kraftlog._native.checksum import crc32c
from kraftlog._native.scanner import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    LAST_COMPRESSION,
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    header_at,
)
from kraftlog.codec.decode import RecordDecoder, schema_of
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.records import VIEW
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
_RECORD_COLUMNS = ("offset", "key", "timestamp_ms", "headers", "value")
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


def validate(
    buffer: Buffer,
    *,
    compacted: bool = False,
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
    timestamp_type: str = "CreateTime",
    timestamp_before_max_ms: int = NO_BOUND,
    timestamp_after_max_ms: int = DEFAULT_TIMESTAMP_AFTER_MAX_MS,
    now_ms: int | None = None,
    one_batch: bool = True,
    max_decompressed_bytes: int = ReadOptions.max_decompressed_bytes,
) -> pa.Table:
    """Return the answer of a broker to a producer, for each batch.

    The checks are those that require no state of a broker, in its order: size, magic and number of batches; base
    offset, ``max_message_bytes``, crc, compression; offsets against counts, no control batch, sequences; then the
    records, their keys, timestamps and, in a compressed batch, offsets. Checks against the state of a producer (epochs,
    the next sequence, its transaction) are not done. In compressed batches a broker does not check keys, values and
    headers of records; here each byte is checked, because no consumer could read such records.

    A few unusual compressed payloads are accepted here and refused by a broker, or vice versa;
    ``kraftlog.codec.compression`` lists them. A broker decompresses a batch in pieces: if a record is bad and
    compressed bytes after it are damaged as well, it answers INVALID_RECORD, and here the damage is reported, except
    for the checksum of gzip. The broker refuses the batch in both cases.

    Parameters
    ----------
    buffer : buffer
        Record batches of one partition, as in a produce request. A truncated batch at the end has no row, because a
        broker ignores it.
    compacted : bool
        Whether the topic's cleanup.policy includes ``compact``: each record then requires a key.
    max_message_bytes : int
        ``max.message.bytes`` of the topic: the maximum size of a batch.
    timestamp_type : {"CreateTime", "LogAppendTime"}
        ``message.timestamp.type`` of the topic. Timestamps are only checked with CreateTime.
    timestamp_before_max_ms, timestamp_after_max_ms : int
        Maximum distance of timestamps from ``now_ms``.
    now_ms : int, optional
        The time of the broker, in milliseconds since the epoch; default: the current time.
    one_batch : bool
        Refuse all batches after the first, because produce requests of version 3 and above have one batch per
        partition.
    max_decompressed_bytes : int
        Maximum size of a batch after decompression, in bytes; a broker has no such limit.

    Returns
    -------
    pyarrow.Table
        A row for each batch: ``position``, ``size_in_bytes`` and ``base_offset``; ``error_code`` and ``error`` as in
        Kafka's Errors, 0 and ``NONE`` for a valid batch; ``record_index`` of the first bad record if it is known;
        ``message``, null for a valid batch. There are no rows after a batch with an impossible size or magic.

    Raises
    ------
    ValueError
        When ``timestamp_type`` is invalid.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> records = pa.table({"key": [b"k", None], "value": [b"a", b"b"], "timestamp_ms": [1700000000000, 1700000000001]})
    >>> kraftlog.validate(kraftlog.encode(records)).column("error").to_pylist()
    ['NONE']
    >>> kraftlog.validate(kraftlog.encode(records), compacted=True).select(["error", "record_index"]).to_pylist()
    [{'error': 'INVALID_RECORD', 'record_index': 1}]
    >>> kraftlog.validate(kraftlog.encode(records, base_offset=7)).column("message").to_pylist()
    ['batch at byte 0: base_offset 7 is not 0']
    """
    if timestamp_type not in ("CreateTime", "LogAppendTime"):
        raise ValueError(f"timestamp_type {timestamp_type!r} is not one of CreateTime, LogAppendTime")
    topic = Topic(
        max_message_bytes,
        compacted,
        timestamp_type,
        timestamp_before_max_ms,
        timestamp_after_max_ms,
        time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        max_decompressed_bytes,
    )
    rows = [one._asdict() for one in verdicts(buffer, topic, one_batch=one_batch)]
    return pa.Table.from_pylist(rows, schema=schema.VERDICTS.select())


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
    faults: list[Fault] = []
    before = 0
    missing: int | None = None
    untimely: tuple[int, str] | None = None
    misplaced: tuple[int, int] | None = None
    for rows in RecordDecoder(data, 0, NO_BOUND, _plan(topic.max_decompressed_bytes)).batches(faults):
        is_needed = _are_null(rows.column("key")) if topic.compacted else np.zeros(rows.num_rows, bool)
        if missing is None and is_needed.any():
            missing = before + int(is_needed.argmax())
        stamps = _numbers(rows.column("timestamp_ms"))
        is_bad = _are_untimely(stamps, header, topic) & ~is_needed
        if untimely is None and is_bad.any():
            at = int(is_bad.argmax())
            untimely = before + at, _why_untimely(int(stamps[at]), topic)
        offsets = _numbers(rows.column("offset"))
        is_elsewhere = offsets != np.arange(before, before + rows.num_rows)
        if misplaced is None and is_elsewhere.any():
            at = int(is_elsewhere.argmax())
            misplaced = before + at, int(offsets[at])
        before += rows.num_rows
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


@lru_cache(maxsize=16, typed=True)
def _plan(max_decompressed_bytes: int) -> DecodePlan:
    """Return a plan for all columns with bytes of records; keys and values are not copied."""
    options = ReadOptions(check_crc=False, max_decompressed_bytes=max_decompressed_bytes)
    return DecodePlan(schema_of(_RECORD_COLUMNS, VIEW), options, layout=VIEW)


def _numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return a column without nulls; ``to_numpy`` would import pandas."""
    data = column.buffers()[1]
    return np.frombuffer(data or b"", np.int64)[column.offset : column.offset + len(column)]


def _are_null(column: pa.Array) -> npt.NDArray[np.bool_]:
    validity = column.buffers()[0]
    if validity is None:
        return np.zeros(len(column), bool)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    is_null: npt.NDArray[np.bool_] = bits[column.offset : column.offset + len(column)] == 0
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
    for _ in RecordDecoder(batch, 0, NO_BOUND, _plan(topic.max_decompressed_bytes)).batches(faults):
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
