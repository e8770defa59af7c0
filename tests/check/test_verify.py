"""``Log.verify``: sound logs have nothing to report; what does not hold is named."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import kraftlog
from golden_files import GOLDEN, name_of, scenarios

# Crafted by hand out of pieces, or damaged on purpose.
NOT_SOUND = {
    "legacy": {"bad_crc"},
    "transactions_hanging": {"bad_producer_epoch"},
    "schema_all": {"begin_inside_transaction", "end_outside_transaction"},
    "metadata_txn/abort_without_begin_illegal": {"end_outside_transaction"},
    "metadata_txn/end_without_begin_illegal": {"end_outside_transaction"},
    "metadata_txn/nested_begin_illegal": {"begin_inside_transaction", "end_outside_transaction"},
    "metadata_txn/begin_in_missing_segment_then_abort": {"begun_before_log"},
    "metadata_txn/begin_in_missing_segment_then_end": {"begun_before_log"},
}


def test_golden_logs():
    for folder in scenarios():
        found = {fault.error for fault in kraftlog.open(folder / "log").verify()}
        assert found == NOT_SOUND.get(name_of(folder), set()), folder


def test_offsets_that_go_back():
    faults = list(kraftlog.open(GOLDEN / "damaged" / "offsets_go_back" / "log").verify())
    assert [(fault.error, fault.position, fault.base_offset) for fault in faults] == [("offset_goes_back", 532, 5)]
    assert faults[0].message.endswith("batch at byte 532: base_offset 5, but 10 or more was expected")


def test_index_that_does_not_match(tmp_path: Path):
    folder = tmp_path / "codec-none-0"
    shutil.copytree(GOLDEN / "codecs" / "log" / "codec-none-0", folder)
    index = folder / "00000000000000000000.index"
    entries = list(struct.iter_unpack(">ii", index.read_bytes()))
    moved = [(entries[0][0], entries[0][1] + 1), (entries[1][0] - 1000, entries[1][1]), *entries[2:]]
    moved = [moved[0], (moved[0][0], entries[1][1]), *entries[2:]]
    index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in moved))
    faults = list(kraftlog.open(folder).verify())
    assert [fault.error for fault in faults] == ["index_mismatch", "index_mismatch"]
    offset, position = entries[0]
    assert f"entry 0: offset {offset} at byte {position + 1}, but no batch starts there" in faults[0].message
    assert f"entry 1: offset {offset} at byte {entries[1][1]}, but the batch there holds" in faults[1].message


def test_time_index_that_says_too_little(tmp_path: Path):
    folder = tmp_path / "codec-none-0"
    shutil.copytree(GOLDEN / "codecs" / "log" / "codec-none-0", folder)
    index = folder / "00000000000000000000.timeindex"
    entries = list(struct.iter_unpack(">qi", index.read_bytes()))
    stamp, offset = entries[-1]
    index.write_bytes(struct.pack(">qi", 1, offset))
    faults = list(kraftlog.open(folder).verify())
    assert [fault.error for fault in faults] == ["index_mismatch"]
    assert f"timestamp 1 up to offset {offset}, but the log holds {stamp}" in faults[0].message or stamp
