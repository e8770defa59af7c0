"""Records of a buffer as Python objects: for small batches, where Arrow around each costs more than the records."""

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
    """Let the decoder go on, at a batch that is compressed, of an old format, damaged or cut off."""
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

    What is returned is what ``decode`` returns, without Arrow: for fetches of a few records. An object a record costs
    some 0.1 to 0.2 us, and a buffer 0.5 us; ``decode`` costs more for each buffer and hundreds of times less for a
    record, so that it is the faster one from some hundred records on, and where columns are what is wanted. Batches
    that are compressed, damaged or of an older format go through ``decode``, and so does all behind the first of them.

    Parameters
    ----------
    buffer : buffer
        Any contiguous buffer with record batches one behind the other. It is held as long as the iterator is.
    start_offset : int, optional
        Records before it are left out: the first batch of a fetch response begins at or before the offset asked for.
    isolation_level : {"read_uncommitted", "read_committed"}
        Whether records of ``aborted_transactions`` are left out.
    aborted_transactions : iterable of (producer_id, first_offset), optional
        As the fetch response has them, taken once; needed with read_committed, and empty when there are none.
    include_control : bool
        Whether records of control batches are shown.
    strict : bool
        Raise at the first fault instead of noting it in ``faults``.
    check_crc : bool
        Whether the checksum of each batch is compared.
    max_decompressed_bytes : int
        Most bytes that one batch may take after decompression.

    Returns
    -------
    RecordIterator
        Of ``Record``, with ``offset``, ``timestamp_ms``, ``key``, ``value``, ``headers`` and ``is_control``. It also
        has ``consumed``, ``next_offset`` and ``faults``, which are complete when it is used up.

    Raises
    ------
    ValueError
        When an option is not what it should be, or ``aborted_transactions`` do not go with the isolation level.
    TypeError
        When a number is none, or is no integer.
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
