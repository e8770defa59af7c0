"""Records of a buffer as Python objects: for small batches, where Arrow has more overhead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kraftlog import schema
from kraftlog._native.record_objects import Record, RecordIterator, iterate
from kraftlog.codec.aborted_transactions import aborted_ranges, named_transactions
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.options import (
    ISOLATION_LEVELS,
    MOST_DECOMPRESSED_BYTES,
    NO_BOUND,
    READ_UNCOMMITTED,
    ReadOptions,
    checked_integer,
)
from kraftlog.errors import Fault
from kraftlog.types import Buffer, IsolationLevel

_COLUMNS = ("offset", "timestamp_ms", "key", "value", "headers", "is_control")


def _take_over(records: RecordIterator, position: int) -> tuple[RecordDecoder, Iterator[Record]]:
    """Continue with the decoder at a batch that is compressed, of an older format, damaged or truncated."""
    options = ReadOptions(
        start_offset=ReadOptions.start_offset if records.start_offset is None else records.start_offset,
        isolation_level=records.isolation_level,
        include_control=records.include_control,
        strict=records.strict,
        check_crc=records.check_crc,
        max_decompressed_bytes=records.max_decompressed_bytes,
    )
    aborted = None if records.aborted is None else np.frombuffer(records.aborted, np.int64).reshape(-1, 3)
    arrow_schema = schema.RECORDS.select(_COLUMNS)
    buffer = records.buffer
    assert buffer is not None, "it was initialised"
    decoder = RecordDecoder(buffer, position, NO_BOUND, DecodePlan(arrow_schema, options), aborted)
    return decoder, _decoded(decoder, records.faults)


def _decoded(decoder: RecordDecoder, faults: list[Fault]) -> Iterator[Record]:
    for rows in decoder.batches(faults):
        columns = (rows.column(name).to_pylist() for name in _COLUMNS)
        for offset, timestamp_ms, key, value, pairs, is_control in zip(*columns, strict=True):
            headers = tuple((pair["key"], pair["value"]) for pair in pairs)
            yield Record(offset, timestamp_ms, key, value, headers, is_control)


def records(
    buffer: Buffer,
    *,
    start_offset: int | None = None,
    isolation_level: IsolationLevel = READ_UNCOMMITTED,
    aborted_transactions: Iterable[tuple[int, int]] | None = None,
    include_control: bool = False,
    strict: bool = False,
    check_crc: bool = True,
    max_decompressed_bytes: int = ReadOptions.max_decompressed_bytes,
) -> RecordIterator:
    """Iterate over the records of a buffer as Python objects.

    The records are those of ``decode``, without Arrow: for fetches of a few records. An object takes about 0.1 to 0.2
    us per record and 0.5 us per buffer. ``decode`` takes longer per buffer and hundreds of times less per record, so
    that it is faster from some hundred records on. Compressed and damaged batches, batches of older formats, and all
    batches after the first of these are decoded with ``decode``.

    Parameters
    ----------
    buffer : buffer
        Any contiguous buffer with consecutive record batches. It is referenced as long as the iterator exists.
    start_offset : int, optional
        Records before it are left out: the first batch of a fetch response may begin before the requested offset.
    isolation_level : {"read_uncommitted", "read_committed"}
        ``read_committed`` leaves out records of ``aborted_transactions``.
    aborted_transactions : iterable of (producer_id, first_offset), optional
        The aborted transactions of the fetch response; the iterable is read once. Required with read_committed; empty
        if there are none.
    include_control : bool
        Whether to include records of control batches.
    strict : bool
        Raise at the first fault instead of adding it to ``faults``.
    check_crc : bool
        Whether to verify the checksum of each batch.
    max_decompressed_bytes : int
        Maximum size of a batch after decompression, in bytes.

    Returns
    -------
    RecordIterator
        Iterates over ``Record``, with ``offset``, ``timestamp_ms``, ``key``, ``value``, ``headers`` and ``is_control``.
        The attributes ``consumed``, ``next_offset`` and ``faults`` are complete at the end of the iteration.

    Raises
    ------
    ValueError
        When an option is invalid, or ``aborted_transactions`` contradict the isolation level.
    TypeError
        When a number is not an integer.
    RecordError
        While records are read, with ``strict``.

    Examples
    --------
    >>> import pyarrow as pa, kraftlog
    >>> table = pa.table({"key": [b"k", None], "value": [b"a", b"b"], "timestamp_ms": [5, 6]})
    >>> data = kraftlog.encode(table, base_offset=7)
    >>> records = kraftlog.records(data)
    >>> [(record.offset, record.key, record.value) for record in records]
    [(7, b'k', b'a'), (8, None, b'b')]
    >>> records.consumed == len(data), records.next_offset, records.faults
    (True, 9, [])
    >>> next(kraftlog.records(data))
    Record(offset=7, timestamp_ms=5, key=b'k', value=b'a', headers=(), is_control=False)
    """
    aborted = None
    if start_offset is not None:
        start_offset = checked_integer("start_offset", start_offset, -NO_BOUND - 1, NO_BOUND)
    checked_integer("max_decompressed_bytes", max_decompressed_bytes, 1, MOST_DECOMPRESSED_BYTES)
    if isolation_level != READ_UNCOMMITTED or aborted_transactions is not None:
        if isolation_level not in ISOLATION_LEVELS:
            raise ValueError(f"isolation_level {isolation_level!r} is not one of {', '.join(ISOLATION_LEVELS)}")
        pairs = named_transactions(isolation_level, aborted_transactions)
        ranges = None if pairs is None else aborted_ranges(buffer, pairs)
        aborted = None if ranges is None else ranges.tobytes()
    return iterate(
        buffer,
        start_offset,
        isolation_level,
        aborted,
        include_control,
        strict,
        check_crc,
        max_decompressed_bytes,
        _take_over,
    )
