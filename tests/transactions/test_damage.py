"""Damage among transactions: what a header seems to say is not believed where much would follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from model import ProducerModel

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.tables.user_options import read_options


def damaged_log(folder: Path, model: ProducerModel, batch: int, byte: int, value: int) -> kraftlog.Log:
    """Write a log with one byte of one of its batches changed."""
    data = bytearray(model.log)
    data[model.boundaries[batch] + byte] = value
    partition = folder / "t-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").write_bytes(data)
    return kraftlog.open(partition)


def offsets(log: kraftlog.Log) -> list[int]:
    return log.records(["offset"], isolation_level="read_committed").to_table()["offset"].to_pylist()


PRODUCER_ID, RECORD = 43 + 7, 65


def test_a_damaged_header_opens_no_transaction(tmp_path: Path):
    """With a changed producer id it would be open for ever, and hide all that follows."""
    model = ProducerModel()
    model.data(1, 1, transactional=True)
    model.data(1, 1, transactional=True)
    model.marker(1, "COMMIT")
    model.data(-1, 2, transactional=False)
    log = damaged_log(tmp_path, model, 1, PRODUCER_ID, 9)
    assert offsets(log) == [0, 3, 4]
    assert log.last_stable_offsets(strict=False, faults=[])["last_stable_offset"].to_pylist() == [5]
    assert [row["state"] for row in log.partition_transactions(strict=False, faults=[]).to_pylist()] == ["committed"]
    assert log.errors()["error"].to_pylist() == ["bad_crc"]


def test_a_damaged_marker_ends_nothing(tmp_path: Path):
    model = ProducerModel()
    model.data(1, 1, transactional=True)
    model.marker(1, "COMMIT")
    model.data(-1, 1, transactional=False)
    model.data(1, 1, transactional=True)
    model.marker(1, "ABORT")
    log = damaged_log(tmp_path, model, 1, RECORD, 0xFF)
    assert offsets(log) == [2]
    assert log.records(["offset", "transaction_state"]).to_table().to_pylist() == [
        {"offset": 0, "transaction_state": "aborted"},
        {"offset": 2, "transaction_state": None},
        {"offset": 3, "transaction_state": "aborted"},
    ]


def test_rows_do_not_depend_on_ranges_behind_damage(tmp_path: Path):
    model = ProducerModel()
    for number in range(8):
        model.data(number % 2, 2, transactional=True)
        model.marker(number % 2, "ABORT" if number % 3 else "COMMIT")
    for batch in range(0, 16, 3):
        for byte in (8, 11, 16, 21, 43, 57, 60):
            folder = tmp_path / f"{batch}-{byte}"
            folder.mkdir()
            log = damaged_log(folder, model, batch, byte, 0x5A)
            whole = offsets(log)
            options = read_options(isolation_level="read_committed")
            for range_bytes in (1, 500):
                stream = log.scan("records", ["offset"], options, range_bytes=range_bytes, workers=2)
                assert stream.to_table()["offset"].to_pylist() == whole


def test_strict_names_file_and_offset(tmp_path: Path):
    model = ProducerModel()
    model.data(1, 1, transactional=True)
    model.marker(1, "COMMIT")
    log = damaged_log(tmp_path, model, 0, RECORD, 0xFF)
    with pytest.raises(kraftlog.CorruptRecordError, match=r"t-0/0{20}\.log: batch at byte 0: stored crc"):
        log.scan("partition_transactions", None, read_options(strict=True)).to_table()


def test_a_bad_snapshot_is_reported(tmp_path: Path):
    model = ProducerModel()
    model.data(1, 1, transactional=True)
    model.marker(1, "COMMIT")
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").write_bytes(model.log)
    (partition / "00000000000000000000.snapshot").write_bytes(b"\x00\x01garbage")
    log = kraftlog.open(partition)
    stream = log.records(["offset"], isolation_level="read_committed")
    assert stream.to_table()["offset"].to_pylist() == [0]
    assert [fault.error for fault in stream.faults] == ["bad_snapshot"]
    assert log.producers(["producer_id"], strict=False, faults=[])["producer_id"].to_pylist() == [1]


def test_a_transaction_that_began_before_the_log(tmp_path: Path):
    """The snapshot of the first segment knows it, and keeps the last stable offset before the log."""
    whole = ProducerModel()
    whole.data(1, 2, transactional=True)
    whole.data(-1, 1, transactional=False)
    second = len(whole.log)
    whole.data(2, 1, transactional=True)
    whole.marker(2, "COMMIT")
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / f"{3:020d}.log").write_bytes(whole.log[second:])
    assert offsets(kraftlog.open(partition)) == [3]
    from kraftlog.layout.producer_snapshot import producer_snapshot_bytes
    from kraftlog.transactions.producer_state import ProducerStates

    states = ProducerStates()
    for headers in HeaderScan(whole.log[:second]).headers():
        states.add(headers)
    (partition / f"{3:020d}.snapshot").write_bytes(producer_snapshot_bytes(states.states()))
    log = kraftlog.open(partition)
    assert offsets(log) == []
    assert log.last_stable_offsets()["last_stable_offset"].to_pylist() == [3]  # a broker's is never before its log
    assert [row["first_offset"] for row in log.partition_transactions().to_pylist() if row["state"] == "open"] == [0]


BASE_OFFSET, BATCH_LENGTH, LAST_OFFSET_DELTA = 0, 8, 23


def among_aborted(*, still_open: bool = False) -> ProducerModel:
    """Return a log with a plain batch, an aborted transaction around another plain one, and more behind it."""
    model = ProducerModel()
    model.data(-1, 1, transactional=False)
    model.data(-1, 1, transactional=False)
    for _ in range(2):
        model.data(1, 1, transactional=True)
    model.marker(1, "ABORT")
    model.data(-1, 1, transactional=False)
    if still_open:
        model.data(2, 1, transactional=True)
    return model


@pytest.mark.parametrize("still_open", [False, True])
@pytest.mark.parametrize(
    ("batch", "byte", "value", "lost"),
    [
        (0, LAST_OFFSET_DELTA, 0x01, [0]),  # its last offset would be behind all others
        (0, BATCH_LENGTH + 3, 0xC8, [0, 1, 5]),  # its length leads into other batches: no header follows
        (0, BATCH_LENGTH, 0x01, [0, 1, 5]),  # and behind the end of the file
        (2, LAST_OFFSET_DELTA, 0x01, []),
        (2, BATCH_LENGTH + 3, 0xC8, [5]),
        (3, BATCH_LENGTH + 3, 0xC8, [5]),
        (3, BASE_OFFSET + 3, 0x01, []),  # which no crc covers
        (2, BASE_OFFSET + 3, 0x01, []),
    ],
)
def test_aborted_records_stay_hidden_beside_damage(
    tmp_path: Path, batch: int, byte: int, value: int, lost: list[int], still_open: bool
):
    model = among_aborted(still_open=still_open)
    log = damaged_log(tmp_path, model, batch, byte, value)
    expected = [offset for offset in model.visible if offset not in lost]
    assert offsets(log) == expected
    options = read_options(isolation_level="read_committed")
    ranged = log.scan("records", ["offset"], options, range_bytes=1, workers=2)
    assert ranged.to_table()["offset"].to_pylist() == expected


def test_damage_in_an_aborted_batch_is_reported(tmp_path: Path):
    """Its producer id may be what is damaged: then the records of somebody else would be passed over."""
    log = damaged_log(tmp_path, among_aborted(), 2, RECORD, 0xFF)
    stream = log.records(["offset"], isolation_level="read_committed")
    assert stream.to_table()["offset"].to_pylist() == [0, 1, 5]
    assert [fault.error for fault in stream.faults] == ["bad_crc"]


def test_a_log_that_was_appended_twice(tmp_path: Path):
    """Offsets go back; places in the file say what belongs to a transaction."""
    model = among_aborted()
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").write_bytes(2 * model.log)
    log = kraftlog.open(partition)
    options = read_options(isolation_level="read_committed")
    for range_bytes in (None, 1, 200):
        stream = log.scan("records", ["offset"], options, range_bytes=range_bytes)
        assert stream.to_table()["offset"].to_pylist() == 2 * model.visible


def test_a_metadata_batch_that_cannot_be_read_is_reported(tmp_path: Path):
    """It may have held a marker: the table must not look complete."""
    source = GOLDEN / "metadata_txn" / "controller_failover" / "log" / "__cluster_metadata-0"
    name = "00000000000000000000.log"
    folder = tmp_path / source.name
    folder.mkdir()
    data = bytearray((source / name).read_bytes())
    data[-1] ^= 1
    (folder / name).write_bytes(data)
    stream = kraftlog.open(folder).scan("metadata_transactions")
    assert [row["state"] for row in stream.to_table().to_pylist()] == ["aborted", "open"]
    assert [fault.error for fault in stream.faults] == ["bad_crc"]
    strict = read_options(strict=True)
    with pytest.raises(kraftlog.CorruptRecordError, match=r"__cluster_metadata-0/0{20}\.log: batch at byte"):
        kraftlog.open(folder).scan("metadata_transactions", None, strict).to_table()
