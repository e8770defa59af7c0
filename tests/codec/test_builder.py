"""The builder of one batch: its bytes are the encoder's, and it is full where Kafka's and aiokafka's builders are."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Record, decode_batches, encode_batch
from strategies import ROW, records_of, table_of

import kraftlog
from kraftlog.codec.compression import COMPRESSION_TYPES

PROFILE = settings(derandomize=True, max_examples=60, deadline=None)
# single records have no negative timestamps, as Kafka's builder takes none
ROWS = st.lists(ROW.map(lambda row: (*row[:2], max(row[2], -1), row[3])), min_size=1, max_size=30)
STATE = {"producer_id": 9, "producer_epoch": 3, "base_sequence": 70}


def append_all(builder: kraftlog.RecordBatchBuilder, rows: list[tuple]) -> int:
    """Append rows until one is refused; return how many were taken."""
    for count, (key, value, timestamp_ms, headers) in enumerate(rows):
        if not builder.append(key, value, headers, timestamp_ms):
            return count
    return len(rows)


@PROFILE
@given(rows=ROWS, pieces=st.lists(st.tuples(st.booleans(), st.integers(1, 5)), max_size=12))
def test_records_and_arrow_mixed(rows: list[tuple], pieces: list[tuple[bool, int]]):
    """The same bytes as the reference and the encoder, in whatever pieces the rows come."""
    builder = kraftlog.RecordBatchBuilder(batch_size=1 << 20)
    left = rows
    for is_arrow, count in [*pieces, (True, len(rows))]:
        piece, left = left[:count], left[count:]
        if not piece:
            break
        taken = builder.write(table_of(piece)) if is_arrow else append_all(builder, piece)
        assert taken == len(piece)
    assert builder.records_count == len(rows)
    assert builder.size_in_bytes == builder.estimated_size_in_bytes
    data = builder.close(base_offset=5, partition_leader_epoch=4, is_transactional=True, **STATE)
    assert builder.size_in_bytes == data.size
    expected = encode_batch(records_of(rows, 5), attributes=0x10, leader_epoch=4, **STATE)
    assert data.to_pybytes() == expected
    assert data == kraftlog.encode(
        table_of(rows), base_offset=5, partition_leader_epoch=4, is_transactional=True, **STATE
    )


@PROFILE
@given(rows=ROWS, batch_size=st.integers(62, 1200), is_arrow=st.booleans())
def test_where_it_is_full(rows: list[tuple], batch_size: int, is_arrow: bool):
    """A record that would pass the size is refused, unless it is the first."""
    records = records_of(rows, 0)
    expected = 1
    while expected < len(rows) and len(encode_batch(records[: expected + 1])) <= batch_size:
        expected += 1
    builder = kraftlog.RecordBatchBuilder(batch_size=batch_size)
    taken = builder.write(table_of(rows)) if is_arrow else append_all(builder, rows)
    assert taken == expected == builder.records_count
    assert builder.close().to_pybytes() == encode_batch(records[:expected])


@PROFILE
@given(rows=ROWS, batch_size=st.integers(62, 1200))
def test_it_is_full_where_aiokafkas_is(rows: list[tuple], batch_size: int):
    """Of records without headers, whose sizes it estimates, and of timestamps that it does not take for none."""
    rows = [(key, value, abs(timestamp_ms), []) for key, value, timestamp_ms, _ in rows]
    theirs = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=batch_size,
    )
    taken = 0
    for key, value, timestamp_ms, headers in rows:
        if theirs.append(taken, timestamp_ms, key, value, headers) is None:
            break
        taken += 1
    builder = kraftlog.RecordBatchBuilder(batch_size=batch_size)
    assert append_all(builder, rows) == taken
    assert builder.close().to_pybytes()[21:] == bytes(theirs.build())[21:]


def test_batches_one_after_the_other_are_those_of_the_encoder():
    rows = [(b"%d" % number, b"v" * (number % 40), number, []) for number in range(500)]
    batches, left = b"", rows
    while left:
        builder = kraftlog.RecordBatchBuilder(batch_size=400)
        taken = append_all(builder, left)
        first = len(rows) - len(left)
        batches += builder.close(base_offset=first, producer_id=1, producer_epoch=0, base_sequence=first).to_pybytes()
        left = left[taken:]
    encoder = {"max_batch_bytes": 400, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    assert batches == kraftlog.encode(table_of(rows), **encoder).to_pybytes()


@pytest.mark.parametrize("compression", COMPRESSION_TYPES)
def test_compression(compression: str):
    rows = [(b"key", b"value %d" % number, 7, [("h", None)]) for number in range(50)]
    builder = kraftlog.RecordBatchBuilder(compression=compression)
    assert append_all(builder, rows) == 50
    data = builder.close(**STATE)
    assert data == kraftlog.encode(table_of(rows), compression=compression, **STATE)
    found = kraftlog.decode(data, columns=["value"], strict=True).to_table()["value"].to_pylist()
    assert found == [value for _, value, _, _ in rows]
    assert builder.compression_ratio == (data.size - 61) / (builder.size_in_bytes - 61)
    if compression != "snappy":  # of aiokafka's it needs a library of the system
        batch = MemoryRecords(data.to_pybytes()).next_batch()
        assert batch.validate_crc()
        assert [record.value for record in batch] == found


def test_estimated_sizes():
    """Kafka takes five percent more than the ratio says."""
    records = 40 * (b"v" * 100,)
    builder = kraftlog.RecordBatchBuilder(batch_size=1061, compression="gzip", compression_ratio=0.5)
    taken = sum(builder.append(None, value) for value in records)
    one = len(encode_batch([Record(0, -1, None, records[0])])) - 61
    assert taken == int(1000 / 0.525) // one
    assert builder.size_in_bytes == 61 + taken * one
    assert builder.estimated_size_in_bytes == 61 + int(taken * one * 0.525)
    assert builder.close().size < 1061
    plain = kraftlog.RecordBatchBuilder(batch_size=1061, compression_ratio=0.5)
    assert sum(plain.append(None, value) for value in records) == 1000 // one
    assert plain.compression_ratio == 1


def test_a_first_record_of_any_size():
    large = pa.table({"value": [b"x" * 5000, b"y"]})
    for take_first in (lambda b: b.append(None, b"x" * 5000), lambda b: b.write(large)):
        builder = kraftlog.RecordBatchBuilder(batch_size=100)
        assert take_first(builder) == 1
        assert not builder.append(b"", b"")
        assert builder.write(large) == 0
        assert [record.value for record in decode_batches(builder.close().to_pybytes())] == [b"x" * 5000]


def test_forms_of_fields():
    rows = [
        (memoryview(b"0key0")[1:4], bytearray(b"value"), 5, ()),
        ("\u043a", "", 6, (pair for pair in [("a", b"1"), ("a", None), ("\u043a", bytearray(b"2"))])),
        (None, None, -1, [("many", b"x" * 300)] * 40),
        (pa.py_buffer(b"k"), b"v", 2**60, [("", b"")]),
    ]
    builder = kraftlog.RecordBatchBuilder(timestamp_ms=3)
    assert append_all(builder, rows) == 4
    assert builder.append(b"k")
    found = [
        (record.key, record.value, record.timestamp, record.headers)
        for record in decode_batches(builder.close().to_pybytes())
    ]
    assert found == [
        (b"key", b"value", 5, []),
        ("\u043a".encode(), b"", 6, [("a", b"1"), ("a", None), ("\u043a", b"2")]),
        (None, None, -1, [("many", b"x" * 300)] * 40),
        (b"k", b"v", 2**60, [("", b"")]),
        (b"k", None, 3, []),
    ]


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"key": 7}, TypeError, "bytes-like object is required, not 'int'"),
        ({"value": "\ud800"}, UnicodeEncodeError, "surrogates not allowed"),
        ({"headers": [(b"a", b"")]}, TypeError, "^the key of a header is bytes, not str$"),
        ({"headers": [(None, b"")]}, TypeError, "^the key of a header is NoneType, not str$"),
        ({"headers": [("a",)]}, ValueError, "unpack"),
        ({"headers": [("a", 1)]}, TypeError, "bytes-like object is required, not 'int'"),
        ({"timestamp_ms": 2**63}, ValueError, "^timestamp_ms 9223372036854775808 is not between -1 and"),
        ({"timestamp_ms": "now"}, TypeError, "^timestamp_ms 'now' is not an integer$"),
    ],
)
def test_refused_fields(fields: dict[str, Any], error: type[Exception], text: str):
    """What is refused leaves no trace, and buffers are given back."""
    held = bytearray(b"value")
    builder = kraftlog.RecordBatchBuilder()
    assert builder.append(b"k", b"before")
    with pytest.raises(error, match=text):
        builder.append(**{"key": held, **fields})
    held.clear()
    assert builder.append(b"k", b"after")
    assert [record.value for record in decode_batches(builder.close().to_pybytes())] == [b"before", b"after"]


def test_rows_that_are_refused():
    builder = kraftlog.RecordBatchBuilder()
    moments = pa.chunked_array([pa.array([1], pa.timestamp("s")), pa.array([2**62], pa.timestamp("s"))])
    with pytest.raises(ValueError, match="out of bounds timestamp"):
        builder.write(pa.table({"timestamp": moments}))
    with pytest.raises(ValueError, match=r"^column 'vale' is not one of key, value, "):
        builder.write(pa.table({"vale": [b"a"]}))
    assert builder.records_count == 0
    assert builder.close().size == 0


def test_a_closed_batch():
    builder = kraftlog.RecordBatchBuilder()
    assert builder.append(None, b"v")
    assert builder.close().size == builder.size_in_bytes
    for call in (lambda: builder.append(b"k"), lambda: builder.write(pa.table({"key": [b"k"]}))):
        with pytest.raises(ValueError, match=r"^the batch is closed; a new builder takes the next one$"):
            call()
    with pytest.raises(ValueError, match=r"^the batch is closed already$"):
        builder.close()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: kraftlog.RecordBatchBuilder(batch_size=61), "^batch_size 61 is not between 62 and "),
        (lambda: kraftlog.RecordBatchBuilder(compression="brotli"), "^compression 'brotli' is not one of none, gzip,"),
        (
            lambda: kraftlog.RecordBatchBuilder(compression_ratio=0.0),
            "^compression_ratio 0.0 is not a finite number more than 0$",
        ),
        (lambda: kraftlog.RecordBatchBuilder(timestamp_ms=2**63), "^timestamp_ms 9223372036854775808 is not between"),
        (lambda: kraftlog.RecordBatchBuilder().close(producer_epoch=40000), "^producer_epoch 40000 is not between -1"),
        (lambda: kraftlog.RecordBatchBuilder().close(is_transactional=True), "transactional batch needs a producer_id"),
        (lambda: kraftlog.RecordBatchBuilder().close(base_offset=2**63), "^base_offset 9223372036854775808 is not"),
    ],
)
def test_bad_options(call: Any, text: str):
    with pytest.raises(ValueError, match=text):
        call()


def test_offsets_end_before_the_largest_number():
    builder = kraftlog.RecordBatchBuilder()
    assert builder.append(b"k")
    with pytest.raises(ValueError, match=r"^base_offset 9223372036854775807 and 1 records do not fit 64 bits$"):
        builder.close(base_offset=2**63 - 1)
    assert decode_batches(builder.close(base_offset=2**63 - 2).to_pybytes())[0].offset == 2**63 - 2


def test_a_busy_builder_refuses_others():
    builder = kraftlog.RecordBatchBuilder()
    refused = []

    def headers() -> Any:
        """Return the headers of a record, which the builder is busy with meanwhile."""
        for call in (builder.append, builder.close, lambda: builder.write(pa.table({"value": [b"v"]}))):
            try:
                call()
            except RuntimeError as error:
                refused.append(str(error))
        yield "h", b"1"

    thread = threading.Thread(target=builder.append, args=(b"k", b"v", headers()))
    thread.start()
    thread.join()
    assert refused == ["RecordBatchBuilder is in use by another thread"] * 3
    [record] = decode_batches(builder.close().to_pybytes())
    assert (record.key, record.headers) == (b"k", [("h", b"1")])


def test_headers_as_a_mapping():
    headers = {"ab": b"value-of-ab", "a": None, "": b"", "long": "text"}
    of_pairs, of_mapping = kraftlog.RecordBatchBuilder(), kraftlog.RecordBatchBuilder()
    assert of_pairs.append(b"k", b"v", list(headers.items()))
    assert of_mapping.append(b"k", b"v", headers)
    assert of_mapping.close() == of_pairs.close()


@pytest.mark.parametrize("header", ["ab", b"ab"])
def test_text_is_no_header(header: Any):
    with pytest.raises(TypeError, match=r"a header is .*, not a pair"):
        kraftlog.RecordBatchBuilder().append(b"k", b"v", [header])


def test_a_batch_that_cannot_be_finished_stays_open(monkeypatch: pytest.MonkeyPatch):
    """Whatever fails while a batch is closed, it goes on as if it had not been asked for."""
    from kraftlog.codec import builder as module

    def fail(*_: object) -> bytes:
        raise MemoryError("no memory")

    for compression in ("gzip", "zstd"):
        built, untouched = (kraftlog.RecordBatchBuilder(compression=compression) for _ in range(2))
        for each in (built, untouched):
            each.append(b"k", b"before")
        with monkeypatch.context() as broken:
            broken.setattr(module, "compress_batches", fail)
            with pytest.raises(MemoryError):
                built.close(producer_id=5, producer_epoch=1, base_sequence=7, is_transactional=True)
        assert built.records_count == 1
        for each in (built, untouched):
            assert each.append(b"k", b"after")
        assert built.close() == untouched.close()


def test_a_builder_that_was_not_initialised():
    class Odd(kraftlog.RecordBatchBuilder):
        def __init__(self) -> None: ...

    for call in (
        lambda: Odd().append(b"k"),
        lambda: Odd().records_count,
        lambda: Odd().size_in_bytes,
        lambda: kraftlog.RecordBatchBuilder.__new__(kraftlog.RecordBatchBuilder).append(b"k"),
    ):
        with pytest.raises(RuntimeError, match="__init__ was not called"):
            call()
