"""Damaged files: everything that Kafka reads is read, what lies behind the damage too, and each fault is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kraftlog
from golden_files import ANSWER_COLUMNS, as_answer, damaged_cases, lines
from kraftlog.codec.options import ReadOptions

# The fault of each case, as (error, position of the batch, record_index, offsets that Kafka's reader does not return).
# Cases that are not listed have none: Kafka accepts them, or they are torn tails. SALVAGED are offsets that only a
# search finds: no header says how to go on behind the fault.
BAD_LENGTH = ("bad_batch_length", 532, None, [])
FAULTS = {
    "batch_length_13": BAD_LENGTH,
    "batch_length_30_less_than_header": BAD_LENGTH,
    "batch_length_negative": BAD_LENGTH,
    "batch_length_zero": BAD_LENGTH,
    "bit_flip_batch_length_low": ("bad_crc", 532, None, []),
    "bit_flip_compressed_payload": ("bad_crc", 350, None, []),
    "bit_flip_crc_field": ("bad_crc", 532, None, []),
    "bit_flip_gzip_crc_recomputed": ("decompression_failed", 350, None, []),
    "bit_flip_lz4_crc_recomputed": ("decompression_failed", 670, None, []),
    "bit_flip_payload": ("bad_crc", 254, None, []),
    "garbage_between_batches": ("bad_batch_length", 350, None, []),
    "garbage_between_batches_plausible_length": ("bad_crc", 350, None, []),
    "magic_0_on_a_v2_batch": ("bad_crc", 532, None, []),
    "magic_1_on_a_v2_batch": ("bad_crc", 532, None, []),
    "magic_255": ("bad_magic", 532, None, []),
    "rec_bytes_left_after_headers": ("bad_record_size", 350, 0, []),
    "rec_bytes_left_after_last_record": ("trailing_bytes", 350, None, [6]),
    "rec_header_count_huge": ("bad_headers_count", 350, 0, []),
    "rec_header_count_more_than_there_are": ("truncated_field", 350, 0, []),
    "rec_header_count_negative": ("bad_headers_count", 350, 0, []),
    "rec_header_key_null": ("bad_header_key_length", 350, 0, []),
    "rec_key_length_beyond_record": ("bad_key_length", 350, 0, []),
    "rec_record_length_beyond_batch": ("bad_record_length", 350, 0, []),
    "rec_record_length_negative": ("bad_record_length", 350, 0, []),
    "rec_record_length_too_large_by_one_pad": ("bad_record_size", 350, 0, []),
    "rec_record_length_too_small": ("bad_value_length", 350, 0, []),
    "rec_record_length_zero": ("truncated_field", 350, 0, []),
    "rec_timestamp_delta_11_bytes": ("varint_too_long", 350, 0, []),
    "rec_value_length_beyond_record": ("bad_value_length", 350, 0, []),
    "rec_varint_length_never_ends": ("varint_too_long", 350, 0, []),
    "rec_varint_overlong_6_bytes": ("varint_too_long", 350, 0, []),
    "records_count_gzip_minus_1": ("trailing_bytes", 350, None, [6, 7, 8]),
    "records_count_gzip_negative": ("bad_records_count", 350, None, []),
    "records_count_gzip_plus_1": ("missing_records", 350, None, [6, 7, 8, 9]),
    "records_count_gzip_plus_1000000": ("missing_records", 350, None, [6, 7, 8, 9]),
    "records_count_minus_1": ("trailing_bytes", 254, None, []),
    "records_count_negative": ("bad_records_count", 254, None, []),
    "records_count_plus_1": ("missing_records", 254, None, []),
    "records_count_plus_1000000": ("missing_records", 254, None, []),
    "records_count_zero_with_records": ("trailing_bytes", 254, None, []),
    "says_gzip_but_is_not": ("decompression_failed", 532, None, []),
    "says_uncompressed_but_is_gzip": ("bad_record_length", 350, 0, []),
    "unknown_codec_5": ("unknown_compression", 532, None, []),
}
SALVAGED = {
    "batch_length_13": range(12, 18),
    "batch_length_30_less_than_header": range(12, 18),
    "batch_length_negative": range(12, 18),
    "batch_length_zero": range(12, 18),
    "bit_flip_batch_length_high": range(12, 18),
    "bit_flip_batch_length_low": range(12, 18),
    "garbage_between_batches": range(6, 18),
}
TORN = {
    "bit_flip_batch_length_high": 500,
    "length_larger_than_file": 217,
    "only_zeros": 4096,
    "truncated_17_bytes_of_header": 17,
    "truncated_5_bytes_of_header": 5,
    "truncated_in_last_header": 30,
    "truncated_in_last_records": 210,
    "zero_tail_preallocated": 4096,
    "zero_tail_small": 11,
}


def test_every_case_is_known():
    names = {case.name for case in damaged_cases()}
    assert len(names) == 77
    assert set(FAULTS) | set(TORN) <= names


@pytest.mark.parametrize("case", damaged_cases(), ids=lambda case: case.name)
def test_records_and_faults(case: Path):
    stream = kraftlog.open(case / "log").records(ANSWER_COLUMNS, include_control=True)
    got = [as_answer(row) for row in stream.to_table().to_pylist()]
    expected = [{name: value for name, value in row.items() if name != "file"} for row in kafka_records(case)]
    assert [row for row in expected if row not in got] == []
    error, position, record_index, behind = FAULTS.get(case.name, (None, None, None, []))
    assert [row["offset"] for row in got if row not in expected] == behind
    found = [(fault.error, fault.position, fault.record_index) for fault in stream.faults]
    assert found == ([(error, position, record_index)] if error else [])
    for fault in stream.faults:
        assert fault.message.startswith(f"t-0/00000000000000000000.log: batch at byte {position}")
        is_rest = case.name in SALVAGED
        assert ("are not read, salvage searches them" in fault.message) is is_rest


@pytest.mark.parametrize("case", damaged_cases(), ids=lambda case: case.name)
def test_salvage(case: Path):
    """A search brings out what lies behind damage, marked; read_committed never has it."""
    log = kraftlog.open(case / "log")
    plain = log.records(["offset", "value"], include_control=True).to_table().to_pylist()
    stream = log.records(["offset", "value", "salvaged"], include_control=True, salvage=True)
    rows = stream.to_table().to_pylist()
    assert [row["offset"] for row in rows if row["salvaged"]] == [*SALVAGED.get(case.name, [])]
    assert [{name: row[name] for name in ("offset", "value")} for row in rows if not row["salvaged"]] == plain
    count = len(SALVAGED.get(case.name, []))
    says = f"{count} records were salvaged from behind damage; the column salvaged says which"
    assert any(says in note for note in stream.notes) is (count > 0)
    committed = log.records(["offset"], salvage=True, isolation_level="read_committed")
    assert committed.to_table().equals(log.records(["offset"], isolation_level="read_committed").to_table())
    assert committed.notes[0].startswith("nothing is salvaged")
    positions = log.scan("batches", ["position", "salvaged"], ReadOptions(salvage=True)).to_table().to_pylist()
    assert any(row["salvaged"] for row in positions) is (count > 0)


def kafka_records(case: Path) -> list[dict[str, object]]:
    rows = lines(case / "expected" / "records.jsonl")
    reader = json.loads((case / "expected" / "reader.json").read_text())
    assert len(rows) == reader["file_records_with_ensure_valid"]["records_returned"]
    return rows


@pytest.mark.parametrize("case", damaged_cases(), ids=lambda case: case.name)
def test_strict(case: Path):
    stream = kraftlog.open(case / "log").records(["offset"], strict=True)
    if case.name not in FAULTS:
        stream.to_table()
        return
    with pytest.raises(kraftlog.RecordError) as raised:
        stream.to_table()
    assert raised.value.position == FAULTS[case.name][1]
    assert raised.value.record_index == FAULTS[case.name][2]
    assert "t-0/00000000000000000000.log" in str(raised.value)


@pytest.mark.parametrize("case", damaged_cases(), ids=lambda case: case.name)
def test_torn_tails(case: Path):
    segment = kraftlog.open(case / "log").segments(faults=[]).to_pylist()[0]
    assert segment["torn_bytes"] == TORN.get(case.name, 0)
    if case.name in TORN:
        assert segment["clean"] is False
        recovery = json.loads((case / "expected" / "reader.json").read_text())["broker_recovery"]
        assert segment["torn_bytes"] == recovery["bytes_truncated"]


@pytest.mark.parametrize("case", damaged_cases(), ids=lambda case: case.name)
def test_workers_and_small_ranges_see_the_same(case: Path):
    log = kraftlog.open(case / "log")
    alone = log.scan("records", ["offset", "value"])
    table = alone.to_table()
    for range_bytes in (1, 100, 300):
        together = log.scan("records", ["offset", "value"], workers=3, range_bytes=range_bytes)
        assert together.to_table().equals(table)
        assert together.faults == alone.faults


def test_messages():
    """What was expected, what was found, and where."""

    def message(case: str) -> str:
        folder = next(path for path in damaged_cases() if path.name == case)
        return kraftlog.open(folder / "log").errors()["message"].to_pylist()[0]

    where = "t-0/00000000000000000000.log: batch at byte "
    assert message("rec_key_length_beyond_record") == f"{where}350, record 0: key_length 4000 exceeds 10 bytes left"
    assert message("bit_flip_payload") == f"{where}254: stored crc 1973285820, computed crc 2762825390"
    assert message("records_count_plus_1") == f"{where}254: records_count 2, but the batch ends after 1 records"
    assert message("batch_length_13") == (
        f"{where}532: batch_length 13 is not between 49 and the bytes left; the 500 bytes from here to the end are not"
        " read, salvage searches them"
    )
    assert message("says_gzip_but_is_not").startswith(f"{where}532: gzip: ")
