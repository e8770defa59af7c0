"""How far the rows of a stream go: what a client cuts its buffer by, and the offset that it asks for next."""

from __future__ import annotations

import zlib
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import decode_batches, encode_batch
from strategies import COLUMNS, ROWS, decoded_records, records_of

import kraftlog
from golden_files import by_file, lines, log_files, name_of, scenarios


def gzipped(plain: bytes) -> bytes:
    made = zlib.compressobj(wbits=31)
    return made.compress(plain) + made.flush()


def marker(offset: int) -> bytes:
    return kraftlog.encode_marker("ABORT", producer_id=3, producer_epoch=0, base_offset=offset).to_pybytes()


@st.composite
def batches_of(draw: st.DrawFn) -> list[tuple[bytes, int]]:
    """Batches of data, compressed or not, and markers; each with the offset behind it."""
    offset, made = draw(st.integers(0, 100)), []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            records = records_of(draw(ROWS), offset)
            is_compressed = draw(st.booleans())
            data = encode_batch(records, attributes=int(is_compressed), compress=gzipped if is_compressed else None)
            offset += len(records)
        else:
            data = marker(offset)
            offset += 1
        made.append((data, offset))
        offset += draw(st.integers(0, 3))  # offsets that compaction took away
    return made


def whole(batches: list[tuple[bytes, int]], cut: int) -> tuple[int, int | None]:
    """Return the bytes and the offset behind the batches that end at the cut or before."""
    ends = accumulate(len(data) for data, _ in batches)
    done = [(end, offset) for end, (_, offset) in zip(ends, batches, strict=True) if end <= cut]
    return done[-1] if done else (0, None)


@given(batches_of(), st.data(), st.integers(1, 40), st.booleans())
def test_any_cut(batches: list[tuple[bytes, int]], draw: st.DataObject, batch_rows: int, strict: bool):
    data = b"".join(part for part, _ in batches)
    cut = draw.draw(st.integers(0, len(data)))
    stream = kraftlog.decode(data[:cut], batch_rows=batch_rows, strict=strict)
    assert (stream.consumed, stream.next_offset) == (0, None)
    seen = 0
    for rows in stream.batches():
        seen += rows.num_rows
        whole_batches = kraftlog.decode(data[: stream.consumed]).to_table()
        assert whole_batches.num_rows == seen  # a caller that stops here has the rows of these bytes
        assert rows.column("offset")[-1].as_py() < stream.next_offset
    assert (stream.consumed, stream.next_offset) == whole(batches, cut)
    assert stream.faults == []


@given(batches_of(), st.integers(1, 700))
def test_a_client_that_receives_piece_by_piece(batches: list[tuple[bytes, int]], piece: int):
    data = b"".join(part for part, _ in batches)
    waiting, rows, position = b"", [], None
    for at in range(0, len(data), piece):
        waiting += data[at : at + piece]
        stream = kraftlog.decode(waiting, columns=COLUMNS)
        rows += decoded_records(stream.to_table().to_pylist())
        waiting = waiting[stream.consumed :]
        position = stream.next_offset or position
    assert (waiting, position) == (b"", batches[-1][1])
    of_data = b"".join(part for part, _ in batches if len(part) != len(marker(0)) or part[17:] != marker(0)[17:])
    plain = decode_batches(of_data, lambda body: zlib.decompress(body, wbits=31))
    assert rows == plain


@pytest.mark.parametrize("scenario", scenarios(), ids=name_of)
def test_batches_of_brokers(scenario: Path):
    """Old formats, compacted and emptied batches, batches of one marker: each prefix ends behind its last batch."""
    answers = by_file(lines(scenario / "expected" / "batches.jsonl"))
    for path in log_files(scenario):
        data = path.read_bytes()
        for row in answers.get(str(path.relative_to(scenario / "log")), [])[:40]:
            if not row["is_valid"]:
                continue
            end = row["position"] + row["size_in_bytes"]
            stream = kraftlog.decode(data[row["position"] : end + 20], columns=["offset"])
            stream.to_table()
            assert (stream.consumed, stream.next_offset) == (end - row["position"], row["last_offset"] + 1)


def test_what_is_passed_over_moves_a_consumer_on():
    records = records_of([(b"k", b"v", 5, [])] * 3, 10)
    data = encode_batch(records) + marker(13)
    stream = kraftlog.decode(data)
    assert stream.to_table().num_rows == 3
    assert stream.next_offset == 14
    assert kraftlog.decode(b"").next_offset is None


def test_what_cannot_be_read():
    """A batch with a bad crc is no whole batch of known offsets; one whose records are bad has them."""
    good = encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 10))
    flipped = bytearray(encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 13)))
    flipped[-1] ^= 1
    stream = kraftlog.decode(good + bytes(flipped))
    assert stream.to_table().num_rows == 3
    assert [fault.error for fault in stream.faults] == ["bad_crc"]
    assert (stream.consumed, stream.next_offset) == (len(good + flipped), 13)
    broken = encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 13), attributes=1, compress=lambda plain: b"no gzip")
    stream = kraftlog.decode(good + broken)
    assert stream.to_table().num_rows == 3
    assert [fault.error for fault in stream.faults] == ["decompression_failed"]
    assert (stream.consumed, stream.next_offset) == (len(good + broken), 16)


def test_strict_stops_at_the_rows_that_were_handed_out():
    good = encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 10))
    flipped = bytearray(encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 13)))
    flipped[-1] ^= 1
    stream = kraftlog.decode(good + bytes(flipped) + good, strict=True, batch_rows=3)
    rows = []
    with pytest.raises(kraftlog.CorruptRecordError):
        rows.extend(stream.batches())
    assert sum(batch.num_rows for batch in rows) in (0, 3)
    assert stream.consumed == (len(good) if rows else 0)


def test_the_least_timestamp_is_within_no_bounds():
    """A header may say anything; nothing is passed over unless bounds were asked for."""
    record = records_of([(b"k", b"v", -(2**63), [])], 10)
    stream = kraftlog.decode(encode_batch(record), columns=COLUMNS)
    assert decoded_records(stream.to_table().to_pylist()) == record
    assert stream.faults == []
