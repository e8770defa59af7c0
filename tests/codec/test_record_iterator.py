"""Records as objects are those of ``decode``, whatever the buffer holds."""

from __future__ import annotations

import gc
import pickle
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Record as Expected
from reference import encode_batch, encode_message
from strategies import BASE_OFFSETS, ROWS, records_of

import kraftlog
from golden_files import damaged_cases, log_files, name_of, scenarios

COLUMNS = ["offset", "timestamp_ms", "key", "value", "headers", "is_control"]


def decoded(data: bytes, **options: object) -> tuple[list[kraftlog.Record], kraftlog.BufferStream]:
    stream = kraftlog.decode(data, columns=COLUMNS, **options)
    rows = [
        kraftlog.Record(
            row["offset"],
            row["timestamp_ms"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
            row["is_control"],
        )
        for row in stream.to_table().to_pylist()
    ]
    return rows, stream


def assert_same(data: bytes, **options: object) -> list[kraftlog.Record]:
    expected, stream = decoded(data, **options)
    records = kraftlog.records(data, **options)
    assert list(records) == expected
    assert (records.consumed, records.next_offset) == (stream.consumed, stream.next_offset)
    assert records.faults == stream.faults
    assert list(records) == []  # once through
    return expected


def gzipped(plain: bytes) -> bytes:
    made = zlib.compressobj(wbits=31)
    return made.compress(plain) + made.flush()


@given(ROWS, BASE_OFFSETS, st.sampled_from([0, 8, 0x20, 0x28, 0x40]), st.booleans())
def test_the_reference(rows: list[tuple], base_offset: int, attributes: int, include_control: bool):
    """Every field against the bytes that the plain-Python encoder wrote."""
    expected = records_of(rows, base_offset)
    data = encode_batch(expected, attributes=attributes)
    largest = max(record.timestamp for record in expected)
    is_control = bool(attributes & 0x20)
    shown = expected if include_control or not is_control else []
    assert list(kraftlog.records(data, include_control=include_control)) == [
        kraftlog.Record(
            record.offset,
            largest if attributes & 8 else record.timestamp,
            record.key,
            record.value,
            tuple(record.headers),
            is_control,
        )
        for record in shown
    ]
    assert_same(data, include_control=include_control)


@st.composite
def buffers(draw: st.DrawFn) -> bytes:
    """Batches of all kinds, cut off, with flipped bits and bytes in between."""
    offset, parts = draw(st.integers(0, 100)), []
    for _ in range(draw(st.integers(1, 5))):
        records = records_of(draw(ROWS), offset)
        kind = draw(st.sampled_from(["plain", "plain", "plain", "gzip", "marker", "message", "noise"]))
        if kind == "plain":
            parts.append(encode_batch(records))
        elif kind == "gzip":
            parts.append(encode_batch(records, attributes=1, compress=gzipped))
        elif kind == "marker":
            parts.append(
                kraftlog.encode_marker("COMMIT", producer_id=1, producer_epoch=0, base_offset=offset).to_pybytes()
            )
        elif kind == "message":
            parts.append(b"".join(encode_message(Expected(r.offset, 5, r.key, r.value), 1) for r in records))
        else:
            parts.append(draw(st.binary(min_size=1, max_size=90)))
        offset += len(records) + draw(st.integers(0, 2))
    data = bytearray(b"".join(parts))
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@given(buffers(), st.one_of(st.none(), st.integers(0, 150)), st.booleans())
def test_any_buffer(data: bytes, start_offset: int | None, include_control: bool):
    assert_same(data, start_offset=start_offset, include_control=include_control)


@given(buffers(), st.integers(0, 100))
def test_read_committed(data: bytes, first_offset: int):
    assert_same(data, isolation_level="read_committed", aborted_transactions=[(1, first_offset)])


def test_aborted_transactions():
    of_producer = {"attributes": 0x10, "producer_id": 3, "producer_epoch": 0, "base_sequence": 0}
    parts = [
        encode_batch(records_of([(None, b"a", 5, [])] * 2, 0), **of_producer),
        encode_batch(records_of([(None, b"b", 5, [])] * 2, 2)),
        kraftlog.encode_marker("ABORT", producer_id=3, producer_epoch=0, base_offset=4).to_pybytes(),
        encode_batch(records_of([(None, b"c", 5, [])] * 2, 5), **of_producer),
    ]
    shown = assert_same(b"".join(parts), isolation_level="read_committed", aborted_transactions=[(3, 0)])
    assert [record.offset for record in shown] == [2, 3, 5, 6]
    with pytest.raises(ValueError, match="read_committed needs aborted_transactions"):
        kraftlog.records(b"", isolation_level="read_committed")
    with pytest.raises(ValueError, match="isolation_level 'all' is not one of"):
        kraftlog.records(b"", isolation_level="all")


@pytest.mark.parametrize("folder", [*scenarios(), *damaged_cases()], ids=name_of)
def test_files(folder: Path):
    """What is in files of brokers is compared with Kafka's answers in tests/read."""
    for path in log_files(folder)[:6]:
        assert_same(path.read_bytes()[:200_000], include_control=True)


def test_strict():
    data = encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 10))
    records = kraftlog.records(data + data[:-1] + b"\xff" + data, strict=True)
    assert [next(records).offset for _ in range(3)] == [10, 11, 12]
    with pytest.raises(kraftlog.CorruptRecordError, match=f"batch at byte {len(data)}: stored crc"):
        next(records)


def test_memory():
    """Records own their bytes; the buffer is held as long as the iterator is, and no longer."""
    data = bytearray(encode_batch(records_of([(b"k", b"v", 5, [("h", b"w")])] * 3, 10)))
    records = kraftlog.records(data)
    first = next(records)
    with pytest.raises(BufferError):
        data.append(0)
    del records
    gc.collect()
    data[:] = bytes(len(data))
    assert (first.key, first.value, first.headers) == (b"k", b"v", (("h", b"w"),))
    assert pickle.loads(pickle.dumps(first)) == first
    assert {first: 1}[kraftlog.Record(10, 5, b"k", b"v", (("h", b"w"),))] == 1
    with pytest.raises(TypeError):
        kraftlog.records("text")


def test_mutations():
    """Each byte of a batch changed, with a checksum that matches all the same: what ``decode`` makes of it."""
    batch = encode_batch(records_of([(b"key", b"value", 5, [("h", b"w"), ("i", None)])] * 4, 10))
    random_ = random.Random(1)
    for at in range(21, len(batch)):
        changed = bytearray(batch)
        changed[at] = random_.randrange(256)
        changed[17:21] = kraftlog.crc32c(changed[21:]).to_bytes(4, "big")
        assert_same(bytes(changed) + batch)


@given(st.lists(ROWS, min_size=1, max_size=4), st.data())
def test_without_checksums(batches: list[list[tuple]], draw: st.DataObject):
    """What ``decode`` returns with and without them, of batches of which some have another one."""
    data = b""
    for rows in batches:
        batch = bytearray(encode_batch(records_of(rows, 0)))
        batch[17] ^= draw.draw(st.sampled_from([0, 1]))
        data += batch
    for check_crc in (True, False):
        records = kraftlog.records(data, check_crc=check_crc)
        stream = kraftlog.decode(data, columns=["offset", "value"], check_crc=check_crc)
        expected = [(row["offset"], row["value"]) for row in stream.to_table().to_pylist()]
        assert [(record.offset, record.value) for record in records] == expected
        assert records.faults == stream.faults
        assert records.consumed == stream.consumed


def test_threads_share_an_iterator_of_large_batches():
    """Their checksums are compared while other threads run: each record comes once, whichever thread asks."""
    count = 120
    value = bytes(200_000)
    batch = encode_batch([Expected(0, 1000, None, value)])
    data = b"".join(struct.pack(">q", i) + batch[8:] for i in range(count))  # the checksum is of what follows
    for _ in range(3):
        records = kraftlog.records(data)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _, records=records: [record.offset for record in records], range(4)))
        assert sorted(offset for part in found for offset in part) == list(range(count))
        assert records.consumed == len(data)


def test_an_iterator_that_was_not_initialised():
    """Nothing of it reads memory that is not there."""
    kind = type(kraftlog.records(b""))
    for name in dir(kind):
        bare = kind.__new__(kind)
        if not name.startswith("__"):
            getattr(bare, name)
    assert kind.__new__(kind).buffer is None
    assert kind.__new__(kind).consumed == 0
