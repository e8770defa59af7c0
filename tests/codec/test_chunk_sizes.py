"""Rows and faults do not depend on how large the record batches are that are asked for, lenient or strict."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Record, crc32c, encode_batch, encode_message
from strategies import COLUMNS, ROWS, decoded_records, records_of

import kraftlog
from kraftlog.errors import RecordError

PROFILE = settings(derandomize=True, max_examples=150, deadline=None)
SIZES = [(1 << 16, 2 << 20), (1, 1), (3, 200), (1 << 16, 500), (10, 2 << 20)]
HEADER = 61


def resealed(batch: bytes) -> bytes:
    """Return a batch with the checksum of what it holds."""
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches, plain, compressed and of magic 1, of which some have records with a wrong bit, and some a wrong crc."""
    data, offset = b"", 0
    for rows in draw(st.lists(ROWS, min_size=1, max_size=4)):
        records = records_of(rows, offset)
        offset += len(rows)
        kind = draw(st.sampled_from(["plain", "plain", "gzip", "wrapper"]))
        bits = draw(st.lists(st.integers(0, 1 << 16), max_size=1))
        if kind == "plain":
            data += resealed(flipped(encode_batch(records), bits, HEADER))
        elif kind == "gzip":
            data += encode_batch(
                records, attributes=1, compress=lambda plain, bits=bits: gzip.compress(flipped(plain, bits, 0))
            )
        else:
            messages = b"".join(encode_message(record, 1) for record in records)
            outer = records[-1]
            outer.value = gzip.compress(flipped(messages, bits, 0))
            data += encode_message(outer, 1, attributes=1)
        if draw(st.integers(0, 5)) == 0:
            data = flipped(data, [draw(st.integers(0, 1 << 30))], 0)
    return data


def flipped(data: bytes, bits: list[int], start: int) -> bytes:
    changed = bytearray(data)
    for bit in bits:
        at = start + bit // 8 % (len(data) - start)
        changed[at] ^= 1 << bit % 8
    return bytes(changed)


def rows_until(batches: Iterator) -> tuple[list, str | None]:
    """Return all rows, and the error that ends them."""
    rows = []
    try:
        for batch in batches:
            rows += decoded_records(batch.to_pylist())
    except RecordError as error:
        return rows, str(error)
    return rows, None


@PROFILE
@given(data=logs())
def test_rows_and_faults(data: bytes):
    answers = []
    for batch_rows, batch_bytes in SIZES:
        lenient = kraftlog.decode(data, columns=COLUMNS, batch_rows=batch_rows, batch_bytes=batch_bytes)
        strict = kraftlog.decode(data, columns=COLUMNS, batch_rows=batch_rows, batch_bytes=batch_bytes, strict=True)
        rows, _ = rows_until(lenient.batches())
        before, error = rows_until(strict.batches())
        assert before == rows[: len(before)]
        assert error == (lenient.faults[0].message if lenient.faults else None)
        assert error is not None or before == rows
        answers.append((rows, lenient.faults, before, error))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("bad", range(7))
def test_strict_ends_with_the_row_before_the_fault(bad: int):
    """Also within a batch whose other records could be read."""
    batches = [encode_batch([Record(offset + i, 0, None, b"v%d" % i) for i in range(3)]) for offset in (0, 3, 6)]
    batch = bytearray(batches[bad // 3])
    at = batch.index(b"v%d" % (bad % 3)) - 1
    batch[at] = 0x7E
    data = b"".join([*batches[: bad // 3], resealed(bytes(batch)), *batches[bad // 3 + 1 :]])
    for batch_rows, batch_bytes in SIZES:
        strict = kraftlog.decode(data, columns=COLUMNS, batch_rows=batch_rows, batch_bytes=batch_bytes, strict=True)
        rows, error = rows_until(strict.batches())
        assert [row.offset for row in rows] == list(range(bad))
        assert error is not None
        assert f"record {bad % 3}: value_length" in error


@pytest.mark.parametrize("columns", [["timestamp_type"], ["offset", "timestamp_type", "value"], ["offset"]])
def test_rows_of_names_have_a_bound(monkeypatch: pytest.MonkeyPatch, columns: list[str]):
    """A batch of more rows than a column of names may have comes in pieces; the bound itself is 143 million rows."""
    monkeypatch.setattr("kraftlog.codec.records.MOST_NAMED_ROWS", 70)
    data = encode_batch([Record(i, 1000 + i, None, b"v") for i in range(300)])
    batches = list(kraftlog.decode(data, columns=columns))
    assert [batch.num_rows for batch in batches] == ([300] if columns == ["offset"] else [70, 70, 70, 70, 20])
    if "offset" in columns:
        assert [offset for batch in batches for offset in batch["offset"].to_pylist()] == list(range(300))
    if "timestamp_type" in columns:
        assert {name for batch in batches for name in batch["timestamp_type"].to_pylist()} == {"CreateTime"}
