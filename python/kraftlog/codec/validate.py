"""``validate``: the answer of a broker to a producer, without a broker."""

from __future__ import annotations

import time

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.produce_checks import (
    DEFAULT_MAX_MESSAGE_BYTES,
    DEFAULT_TIMESTAMP_AFTER_MAX_MS,
    Topic,
    verdicts,
)
from kraftlog.types import Buffer


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
