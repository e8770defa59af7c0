"""The table ``producers`` equals what the broker said of its producers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from golden_files import GOLDEN
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.discover import discover
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read


def producers(
    path: Path, columns: list[str] | None = None, options: ReadOptions | None = None
) -> tuple[pa.Table, list[Fault]]:
    faults: list[Fault] = []
    read = Read.of_segments(TABLES["producers"], discover(path).segments, columns, options or ReadOptions(), faults)
    return pa.Table.from_batches(read.rows(), schema=read.schema), faults


@pytest.mark.parametrize(
    "scenario", ["transactions", "transactions_live", "transactions_tv0", "transactions_hanging", "deleted_records"]
)
def test_equals_what_the_broker_said(scenario: str):
    log = GOLDEN / scenario / "log"
    said = json.loads((GOLDEN / scenario / "expected" / "broker_state.json").read_text())["partitions"]
    expected = [
        {
            "topic": partition.rpartition("-")[0],
            "partition": int(partition.rpartition("-")[2]),
            "producer_id": row["producer_id"],
            "producer_epoch": row["producer_epoch"],
            "last_sequence": None if row["last_sequence"] == -1 else row["last_sequence"],
            "last_timestamp_ms": row["last_timestamp"],
            "current_transaction_first_offset": row["current_transaction_start_offset"],
            "coordinator_epoch": row["coordinator_epoch"],
        }
        for partition, answer in said.items()
        if (log / partition).exists()
        for row in answer["producers"]
    ]
    table, faults = producers(log, list(expected[0]))
    got = [row for row in table.to_pylist() if f"{row['topic']}-{row['partition']}" in said]
    assert got == sorted(expected, key=lambda row: (row["topic"], row["partition"], row["producer_id"]))
    assert faults == []


def test_columns_and_nulls():
    table, _ = producers(GOLDEN / "transactions" / "log" / "orders-0")
    assert table.column_names == list(TABLES["producers"].schema.shown)
    after_marker = table.to_pylist()[1]
    assert after_marker["last_sequence"] is None
    assert after_marker["last_offset"] is None
    assert after_marker["last_timestamp"] is not None
    none, _ = producers(GOLDEN / "transactions" / "log" / "orders-0", [])
    assert none.num_rows == table.num_rows


def test_up_to_an_offset():
    table, _ = producers(GOLDEN / "transactions" / "log" / "orders-0", ["producer_id"], ReadOptions(end_offset=32))
    assert table["producer_id"].to_pylist() == [1, 2, 5]


def test_snapshot_that_cannot_be_read(tmp_path: Path):
    folder = Path(shutil.copytree(GOLDEN / "deleted_records" / "log" / "orders-del-7-0", tmp_path / "orders-0"))
    (folder / "00000000000000000061.snapshot").write_bytes(b"not a snapshot")
    table, faults = producers(folder)
    assert [fault.error for fault in faults] == ["bad_snapshot"]
    assert table.num_rows > 0
    with pytest.raises(CorruptRecordError):
        producers(folder, None, ReadOptions(strict=True))


def test_marker_with_a_bad_crc(tmp_path: Path):
    """It may be anything, and ends no transaction."""
    golden = GOLDEN / "transactions_hanging" / "log" / "orders-late-0"
    folder = Path(shutil.copytree(golden, tmp_path / "orders-late-0"))
    log = folder / "00000000000000000003.log"
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    last = producers(folder)[0].to_pylist()[1]
    assert producers(golden)[0].to_pylist()[1]["current_transaction_first_offset"] is None
    assert last["current_transaction_first_offset"] is not None
