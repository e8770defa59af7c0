"""Offsets near the end of 64 bits: no table fails, and what has no next offset is a fault."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.tables.all_tables import TABLES

LARGEST = 2**63 - 1
SOURCE = GOLDEN / "transactions" / "log" / "orders-0"


def with_last_base_offset(tmp_path: Path, base_offset: int) -> tuple[Path, int, int]:
    """Return a copy whose last data batch has another base offset, which no crc covers; its position and delta."""
    folder = Path(shutil.copytree(SOURCE, tmp_path / "orders-0"))
    path = max(folder.glob("*.log"))
    batches = kraftlog.open(path).batches(["position", "last_offset_delta", "is_control"]).to_pylist()
    last = [row for row in batches if not row["is_control"]][-1]
    data = bytearray(path.read_bytes())
    data[last["position"] : last["position"] + 8] = struct.pack(">q", base_offset)
    path.write_bytes(data)
    return folder, last["position"], last["last_offset_delta"]


@pytest.mark.parametrize("table", [name for name in TABLES if name != "errors"])
@pytest.mark.parametrize("below", [0, 1])
def test_every_table(tmp_path: Path, table: str, below: int):
    folder, position, _ = with_last_base_offset(tmp_path, LARGEST - below)
    stream = kraftlog.open(folder).scan(table)
    stream.to_table()
    found = [(fault.error, fault.position) for fault in stream.faults if fault.error == "offset_overflow"]
    if table in ("segments", "batches", "records", "partition_transactions", "producers"):
        assert found == ([("offset_overflow", position)] if below == 0 else [])


def test_errors_and_verify(tmp_path: Path):
    folder, position, delta = with_last_base_offset(tmp_path, LARGEST)
    log = kraftlog.open(folder)
    message = f"batch at byte {position}: base_offset {LARGEST} and last_offset_delta {delta} leave no next offset"
    faults = [row for row in log.errors().to_pylist() if row["error"] == "offset_overflow"]
    assert [row["position"] for row in faults] == [position]
    assert faults[0]["message"].endswith(message)
    assert "offset_overflow" in {fault.error for fault in log.verify()}
    with pytest.raises(kraftlog.CorruptRecordError, match="leave no next offset"):
        log.records(strict=True).to_table()
    assert log.last_stable_offsets(strict=False, faults=[]).num_rows == 1


@pytest.mark.parametrize("base_offset", [LARGEST - 2**31, LARGEST - 2**31 - 5])
def test_just_below_is_read(tmp_path: Path, base_offset: int):
    folder, _, _ = with_last_base_offset(tmp_path, base_offset)
    log = kraftlog.open(folder)
    assert base_offset in log.records(["offset"]).to_table()["offset"].to_pylist()
    assert max(log.segments(["next_offset"])["next_offset"].to_pylist()) > base_offset
    assert "offset_overflow" not in {fault.error for fault in log.verify()}


def test_a_header_that_is_being_written_is_a_torn_tail(tmp_path: Path):
    """In a preallocated segment zeros stand behind the bytes that were written so far."""
    folder = Path(shutil.copytree(GOLDEN / "damaged" / "good" / "log" / "t-0", tmp_path / "t-0"))
    path = folder / "00000000000000000000.log"
    data = path.read_bytes()
    for begun in range(1, 9):
        path.write_bytes(data + struct.pack(">q", 0x0102030405060708)[:begun] + bytes(4096 - begun))
        log = kraftlog.open(folder)
        stream = log.records(["offset"])
        assert stream.to_table().num_rows == 18
        assert stream.faults == []
        assert list(log.verify()) == []
        assert log.segments(["torn_bytes"])["torn_bytes"].to_pylist() == [4096]
