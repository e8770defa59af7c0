"""A closed segment that ends in a part of a batch: what is missing is in the middle of the log, and is a fault."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN, lines

LOG = GOLDEN / "codecs" / "log" / "codec-none-0"
FIRST, LAST = "00000000000000000000.log", "00000000000000000600.log"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(LOG, tmp_path / LOG.name)


def cut(folder: Path, name: str, size: int) -> int:
    """Cut so many bytes off a segment; return where its last whole batch ends, as Kafka's answers have it."""
    path = folder / name
    left = path.stat().st_size - size
    path.write_bytes(path.read_bytes()[:left])
    file = f"{LOG.name}/{name}"
    rows = [row for row in lines(GOLDEN / "codecs" / "expected" / "batches.jsonl") if row["file"].endswith(file)]
    ends = [row["position"] + row["size_in_bytes"] for row in rows]
    return max([end for end in ends if end <= left], default=0)


@pytest.mark.parametrize("size", [1, 30])
@pytest.mark.parametrize("workers", [1, 2])
def test_records(folder: Path, size: int, workers: int):
    whole = kraftlog.open(folder).records(["offset", "position"]).to_table().to_pylist()
    position = cut(folder, FIRST, size)
    log = kraftlog.open(folder).records(["offset", "position"], workers=workers)
    rows = log.to_table().to_pylist()
    assert rows == [row for row in whole if row["offset"] >= 271 or row["position"] < position]
    (fault,) = log.faults
    left = (folder / FIRST).stat().st_size - position
    assert (fault.error, fault.position, fault.size_in_bytes) == ("batch_cut_off", position, left)
    assert (fault.topic, fault.partition, fault.segment_base_offset) == ("codec-none", 0, 0)
    assert fault.message == (
        f"codec-none-0/{FIRST}: batch at byte {position}: "
        f"expected a whole batch before the next segment, found {left} bytes of one"
    )
    with pytest.raises(kraftlog.CorruptRecordError, match="before the next segment"):
        kraftlog.open(folder).records(["offset"], strict=True, workers=workers).to_table()


def test_errors(folder: Path):
    """The table has it once."""
    position = cut(folder, FIRST, 30)
    rows = kraftlog.open(folder).errors().to_pylist()
    assert [(row["error"], row["position"]) for row in rows] == [("batch_cut_off", position)]


def test_a_few_bytes_of_a_header(folder: Path):
    path = folder / FIRST
    path.write_bytes(path.read_bytes() + b"\0\0\0\0\0\0\1")
    (fault,) = kraftlog.open(folder).errors().to_pylist()
    assert (fault["error"], fault["size_in_bytes"]) == ("batch_cut_off", 7)


def test_zeros_are_preallocated(folder: Path):
    path = folder / FIRST
    path.write_bytes(path.read_bytes() + bytes(100))
    log = kraftlog.open(folder).records(["offset"])
    assert log.to_table().num_rows == kraftlog.open(LOG).records(["offset"]).to_table().num_rows
    assert log.faults == []


def test_the_last_segment_may_end_so(folder: Path):
    cut(folder, LAST, 30)
    log = kraftlog.open(folder).records(["offset"])
    log.to_table()
    assert log.faults == []
    assert "hold no complete batch" in log.notes[0]


def test_what_lies_outside_of_bounds_is_not_missed(folder: Path):
    cut(folder, FIRST, 30)
    for bounds in ({"start_offset": 271}, {"end_offset": 100}):
        log = kraftlog.open(folder).records(["offset"], **bounds)
        assert log.to_table().num_rows
        assert log.faults == []
