"""Damage among transactions: what a header seems to say is not believed where much would follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from model import ProducerModel

import kraftlog
from kraftlog.log.scan import HeaderScan


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
    assert log.last_stable_offsets()["last_stable_offset"].to_pylist() == [5]
    assert [row["state"] for row in log.transactions().to_pylist()] == ["committed"]
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
            options = kraftlog.log.log.read_options(isolation_level="read_committed")
            for range_bytes in (1, 500):
                stream = log.scan("records", ["offset"], options, range_bytes=range_bytes, workers=2)
                assert stream.to_table()["offset"].to_pylist() == whole


def test_strict_names_file_and_offset(tmp_path: Path):
    model = ProducerModel()
    model.data(1, 1, transactional=True)
    model.marker(1, "COMMIT")
    log = damaged_log(tmp_path, model, 0, RECORD, 0xFF)
    with pytest.raises(kraftlog.CorruptRecordError, match=r"t-0/0{20}\.log: batch at byte 0: stored crc"):
        log.scan("transactions", None, kraftlog.log.log.read_options(strict=True)).to_table()


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
    assert log.producers(["producer_id"])["producer_id"].to_pylist() == [1]


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
    from kraftlog.log.small_files import producer_snapshot_bytes
    from kraftlog.transactions.producer_state import ProducerStates

    states = ProducerStates()
    for headers in HeaderScan(whole.log[:second]).headers():
        states.add(headers)
    (partition / f"{3:020d}.snapshot").write_bytes(producer_snapshot_bytes(states.states()))
    log = kraftlog.open(partition)
    assert offsets(log) == []
    assert log.last_stable_offsets()["last_stable_offset"].to_pylist() == [0]
    assert [row["first_offset"] for row in log.transactions().to_pylist() if row["state"] == "open"] == [0]
