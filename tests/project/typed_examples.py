"""Types of the public functions, for a type checker and at run time; test_types.py has both look at it."""

from collections.abc import Iterator
from typing import Any, assert_type

import pyarrow as pa

import kraftlog

Headers = tuple[tuple[str, bytes | None], ...]

TABLE = pa.table({"key": [b"k", None], "value": [b"a", b"b"], "timestamp_ms": [5, 6]})


def of_the_codec(buffer: bytes) -> None:
    stream = assert_type(kraftlog.decode(buffer, columns=["offset"], start_offset=1), kraftlog.BufferStream)
    assert_type(stream.batches(), Iterator[Any])
    assert_type(stream.consumed, int)
    assert_type(stream.next_offset, int | None)
    assert_type(stream.faults, list[kraftlog.Fault])
    assert_type(stream.faults[0].position if stream.faults else None, int | None)
    assert_type(kraftlog.batches(buffer, check_crc=True), kraftlog.BufferStream)
    assert_type(kraftlog.crc32c(buffer), int)
    assert_type(kraftlog.decode_control(b"\0\0\0\1", bytes(6)), kraftlog.ControlRecord)
    kraftlog.decode(buffer, aborted_transactions=[])
    kraftlog.decode(memoryview(buffer), isolation_level="read_committed", aborted_transactions=[(1, 2)])


def of_records(buffer: bytes) -> None:
    records = assert_type(kraftlog.records(buffer), kraftlog.RecordIterator)
    record = assert_type(next(records), kraftlog.Record)
    assert_type(record.offset, int)
    assert_type(record.timestamp_ms, int)
    assert_type(record.key, bytes | None)
    assert_type(record.value, bytes | None)
    assert_type(record.headers, Headers)
    assert_type(record.is_control, bool)
    assert_type(records.consumed, int)
    assert_type(records.next_offset, int | None)
    assert_type(records.faults, list[kraftlog.Fault])
    assert_type([one.offset for one in records], list[int])


def of_logs(path: str) -> None:
    log = assert_type(kraftlog.open(path), kraftlog.Log)
    assert_type(log.records(columns=["offset"]), kraftlog.Stream)
    log.records(isolation_level="read_committed", start_timestamp="2024-01-01T12:00:00Z")
    assert_type(log.messages(), kraftlog.Stream)


def what_is_refused(buffer: bytes) -> None:
    """Each line is an error to the type checker: an ignore that is not needed is one, too."""
    kraftlog.decode("text")  # type: ignore[arg-type]
    kraftlog.decode(buffer, columns=[1])  # type: ignore[list-item]
    kraftlog.decode(buffer, aborted_transactions=[(1, 2, 3)])  # type: ignore[list-item]
    kraftlog.decode(buffer, isolation_level=1)  # type: ignore[arg-type]
    kraftlog.decode(buffer, isolation_level="read_comitted")  # type: ignore[arg-type]
    kraftlog.batches(buffer, start_offset=1)  # type: ignore[call-arg]
    kraftlog.records(buffer, start_offset="1")  # type: ignore[arg-type]
    kraftlog.validate(buffer, compacted="yes")  # type: ignore[arg-type]
    next(kraftlog.records(buffer)).offset = 1  # type: ignore[misc]
