"""``Log.verify``: sound logs have nothing to report; what does not hold is named."""

from __future__ import annotations

import itertools
import shutil
import struct
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, name_of, scenarios
from kraftlog.check.partitions import check_segments
from kraftlog.codec.options import ReadOptions
from kraftlog.read.log_pass import Pass

# Crafted by hand out of pieces, or damaged on purpose.
NOT_SOUND = {
    "coordinator_future": {"bad_message"},
    "legacy": {"bad_crc"},
    "transactions_hanging": {"bad_producer_epoch"},
    "remote_log_metadata": {"bad_message"},
    "schema_all": {"bad_message", "begin_inside_transaction", "end_outside_transaction"},
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


BOUNDS = [{"start_offset": 20}, {"end_offset": 20}, {"start_offset": 3, "end_offset": 60}, {"start_timestamp": 2**60}]


@pytest.mark.parametrize("compares", [True, False])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_what_is_left_out_by_bounds_is_no_fault(bounds: dict[str, int], compares: bool):
    """Files beside a log, and the state of producers, are of all of it."""
    for folder in scenarios():
        segments = kraftlog.open(folder / "log").found.segments
        every = {str(fault) for fault in check_segments(segments, Pass(), compares=compares)}
        assert {
            str(fault) for fault in check_segments(segments, Pass(ReadOptions(**bounds)), compares=compares)
        } <= every


def test_transactions_are_checked_as_a_whole_where_offsets_are_bounded(tmp_path: Path):
    shutil.copytree(GOLDEN / "transactions" / "log", tmp_path, dirs_exist_ok=True)
    (tmp_path / "orders-0" / f"{0:020d}.txnindex").write_bytes(b"")
    every = kraftlog.open(tmp_path).errors().column("error").to_pylist()
    assert set(every) == {"txnindex_mismatch"}
    for bounds in ({"start_offset": 125}, {"end_offset": 1}):
        assert kraftlog.open(tmp_path).errors(**bounds).column("error").to_pylist() == every


def test_offsets_that_go_back():
    faults = list(kraftlog.open(GOLDEN / "damaged" / "offsets_go_back" / "log").verify())
    assert [(fault.error, fault.position, fault.base_offset) for fault in faults] == [("offset_goes_back", 532, 5)]
    assert faults[0].message.endswith("batch at byte 532: expected base_offset 10 or more, found 5")


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


def test_index_entry_of_an_append_of_several_batches(tmp_path: Path):
    """Kafka's index has the largest offset of an append at the position of its first batch."""
    folder = tmp_path / "codec-none-0"
    shutil.copytree(GOLDEN / "codecs" / "log" / "codec-none-0", folder)
    index = folder / "00000000000000000000.index"
    entries = list(struct.iter_unpack(">ii", index.read_bytes()))
    batches = kraftlog.open(folder).batches(["segment_base_offset", "position", "last_offset"]).to_pylist()
    positions = [row["position"] for row in batches if row["segment_base_offset"] == 0]
    offset, position = entries[2]
    earlier = positions[positions.index(position) - 1]
    index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in [*entries[:2], (offset, earlier), *entries[3:]]))
    assert list(kraftlog.open(folder).verify()) == []
    beyond = batches[positions.index(entries[-1][1])]["last_offset"] + 100_000
    index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in [*entries[:-1], (beyond, entries[-1][1])]))
    found = [fault.message for fault in kraftlog.open(folder).verify()]
    assert found == [
        f"codec-none-0/00000000000000000000.log: 00000000000000000000.index: entry {len(entries) - 1}:"
        f" offset {beyond} at byte {entries[-1][1]}, but no batch from there on holds it"
    ]


def test_txnindex_of_a_cleaned_segment(tmp_path: Path):
    """The cleaner drops entries by its own rules; what contradicts the log is a fault all the same."""
    counts = {True: 0, False: 0}
    for source in sorted((GOLDEN / "compaction" / "log").glob("*/*.txnindex")):
        if not source.stat().st_size:
            continue
        folder = Path(shutil.copytree(source.parent, tmp_path / f"{source.stem}" / source.parent.name))
        log = kraftlog.open(folder / f"{source.stem}.log")
        batches = log.batches(["records_count", "base_offset", "last_offset"]).to_pylist()
        lacks_some = any(row["records_count"] <= row["last_offset"] - row["base_offset"] for row in batches)
        lacks_some |= any(
            row["base_offset"] != before["last_offset"] + 1 for before, row in itertools.pairwise(batches)
        )
        (folder / source.name).write_bytes(b"")
        found = {fault.error for fault in kraftlog.open(folder).verify()}
        assert found == (set() if lacks_some else {"txnindex_mismatch"}), source
        counts[lacks_some] += 1
    assert counts[True]
    assert counts[False]


def test_txnindex_of_a_transaction_of_which_the_cleaner_left_a_part(tmp_path: Path):
    """It ends in a segment that was not cleaned, whose entry has the offset at which it began."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    of_producer = {"producer_id": 1, "producer_epoch": 0}
    left = kraftlog.encode(
        pa.table({"key": [b"k"]}), base_offset=2, base_sequence=2, is_transactional=True, **of_producer
    )
    (folder / f"{0:020d}.log").write_bytes(left)
    (folder / f"{4:020d}.log").write_bytes(kraftlog.encode_marker("ABORT", base_offset=4, **of_producer))
    index = folder / f"{4:020d}.txnindex"
    index.write_bytes(struct.pack(">hqqqq", 0, 1, 0, 4, 0))
    assert list(kraftlog.open(folder).verify()) == []
    index.write_bytes(struct.pack(">hqqqq", 0, 2, 0, 4, 0))  # of another producer
    assert {fault.error for fault in kraftlog.open(folder).verify()} == {"txnindex_mismatch"}


def test_txnindex_that_names_a_committed_transaction(tmp_path: Path):
    folder = tmp_path / "orders-0"
    shutil.copytree(GOLDEN / "transactions" / "log" / "orders-0", folder)
    committed = kraftlog.open(folder).partition_transactions(["producer_id", "first_offset", "marker_offset", "state"])
    row = next(row for row in committed.to_pylist() if row["state"] == "committed" and row["first_offset"] is not None)
    segments = sorted(int(path.stem) for path in folder.glob("*.log"))
    base = max(offset for offset in segments if offset <= row["marker_offset"])
    path = folder / f"{base:020d}.txnindex"
    entry = struct.pack(">hqqqq", 0, row["producer_id"], row["first_offset"], row["marker_offset"], 0)
    path.write_bytes((path.read_bytes() if path.exists() else b"") + entry)
    (found,) = list(kraftlog.open(folder).verify())
    assert found.error == "txnindex_mismatch"
    assert f"from offset {row['first_offset']} to {row['marker_offset']}" in found.message


def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: Path):
    """As every table does."""
    shutil.copytree(GOLDEN / "damaged" / "good" / "log", tmp_path / "log")
    (tmp_path / "log" / "log-start-offset-checkpoint").write_bytes(b"not a checkpoint")
    assert [fault.error for fault in kraftlog.open(tmp_path / "log").verify()] == ["bad_checkpoint"]


def test_a_batch_that_cannot_be_decompressed_leaves_no_gap_in_sequences(tmp_path: Path):
    folder = tmp_path / "t-0"
    shutil.copytree(GOLDEN / "damaged" / "says_gzip_but_is_not" / "log" / "t-0", folder)
    assert {fault.error for fault in kraftlog.open(folder).verify()} == {"decompression_failed"}
