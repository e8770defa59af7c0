"""Headers of a buffer: what Kafka's own classes said of each batch, and how far whole batches go."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import encode_batch
from strategies import ROWS, records_of

import kraftlog
from golden_files import by_file, damaged_cases, lines, log_files, name_of, scenarios
from kraftlog.codec.options import ReadOptions

ANSWERED = {
    "position": "position",
    "size_in_bytes": "size_in_bytes",
    "magic": "magic",
    "base_offset": "base_offset",
    "last_offset": "last_offset",
    "partition_leader_epoch": "partition_leader_epoch",
    "crc": "crc",
    "attributes": "attributes",
    "max_timestamp_ms": "max_timestamp",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "base_sequence": "base_sequence",
    "timestamp_type": "timestamp_type",
    "compression": "compression",
    "is_transactional": "is_transactional",
    "is_control": "is_control",
    "crc_ok": "is_valid",
}


@pytest.mark.parametrize("scenario", scenarios(), ids=name_of)
def test_answers_of_kafka(scenario: Path):
    answers = by_file(lines(scenario / "expected" / "batches.jsonl"))
    for path in log_files(scenario):
        expected = answers.get(str(path.relative_to(scenario / "log")), [])
        stream = kraftlog.batches(path.read_bytes(), columns=list(ANSWERED), check_crc=True)
        assert stream.to_table().to_pylist() == [
            {ours: row[theirs] for ours, theirs in ANSWERED.items()} for row in expected
        ]
        if expected and all(row["is_valid"] for row in expected):
            assert stream.next_offset == expected[-1]["last_offset"] + 1
            assert stream.consumed == expected[-1]["position"] + expected[-1]["size_in_bytes"]


@pytest.mark.parametrize("folder", damaged_cases(), ids=name_of)
def test_damage_as_in_the_table_of_a_file(folder: Path):
    for path in log_files(folder):
        stream = kraftlog.batches(path.read_bytes(), check_crc=True)
        table = kraftlog.open(path).scan("batches", stream.schema.names, ReadOptions(check_crc=True))
        assert stream.to_table().equals(table.to_table())
        found = [(fault.error, fault.position, fault.size_in_bytes) for fault in stream.faults]
        assert found == [(fault.error, fault.position, fault.size_in_bytes) for fault in table.faults]


@given(st.lists(ROWS, min_size=1, max_size=4), st.data())
def test_any_cut(groups: list[list[tuple]], draw: st.DataObject):
    starts = [sum(map(len, groups[:i])) for i in range(len(groups) + 1)]
    parts = [encode_batch(records_of(rows, start)) for rows, start in zip(groups, starts, strict=False)]
    data = b"".join(parts)
    cut = draw.draw(st.integers(0, len(data)))
    ends = [sum(map(len, parts[: i + 1])) for i in range(len(parts))]
    whole = [i for i, end in enumerate(ends) if end <= cut]
    stream = kraftlog.batches(data[:cut], columns=["base_offset", "records_count"], strict=True)
    assert stream.to_table().to_pylist() == [{"base_offset": starts[i], "records_count": len(groups[i])} for i in whole]
    assert stream.consumed == (ends[whole[-1]] if whole else 0)
    assert stream.next_offset == (starts[whole[-1] + 1] if whole else None)


def test_faults():
    good = encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 10))
    flipped = bytearray(encode_batch(records_of([(b"k", b"v", 5, [])] * 3, 13)))
    flipped[-1] ^= 1
    stream = kraftlog.batches(good + flipped, columns=["crc_ok"], check_crc=True)
    assert stream.to_table().column("crc_ok").to_pylist() == [True, False]
    assert [(fault.error, fault.position) for fault in stream.faults] == [("bad_crc", len(good))]
    assert (stream.consumed, stream.next_offset) == (len(good) + len(flipped), 13)
    with pytest.raises(kraftlog.CorruptRecordError, match=f"batch at byte {len(good)}: stored crc"):
        kraftlog.batches(good + flipped, check_crc=True, strict=True).to_table()
    assert kraftlog.batches(good + flipped, columns=["crc_ok"]).to_table().column("crc_ok").to_pylist() == [None, None]


def test_columns():
    with pytest.raises(ValueError, match="topic, file: only known of a log"):
        kraftlog.batches(b"", columns=["topic", "crc", "file"])
    with pytest.raises(ValueError, match="table batches has no column 'colour'"):
        kraftlog.batches(b"", columns=["colour"])
    assert kraftlog.batches(b"", columns=[]).to_table().num_rows == 0
