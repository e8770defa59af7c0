"""Which log files ``producers`` and ``hanging`` open: those behind the last snapshot that is known to be on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes
from kraftlog.read.log_pass import Pass
from kraftlog.tables.producer_tables import producer_states
from kraftlog.transactions.producer_state import ProducerState, ProducerStates

SEGMENTS, HANGING = 40, 99
CHECKPOINT, CLEAN = "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"


class Counting(Disk):
    """Notes the log files that are opened."""

    def __init__(self) -> None:
        self.opened: set[str] = set()

    def open(self, path: Any, size: int | None = None) -> ReadableFile:
        if str(path).endswith(".log"):
            self.opened.add(Path(str(path)).name)
        return super().open(path, size)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a log whose first segment begins a transaction that never ends, with a snapshot for each segment."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    states, offset, row = ProducerStates(), 0, pa.table({"key": [b"k"], "value": [b"v"]})
    for number in range(SEGMENTS):
        if number:
            (folder / f"{offset:020d}.snapshot").write_bytes(producer_snapshot_bytes(states.states()))
        ids = [HANGING, 7] if number == 0 else [7, 100 + number]
        batches = []
        for producer_id in ids:
            producer: Any = {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": True}
            batches.append(kraftlog.encode(row, base_offset=offset, base_sequence=number, **producer))
            offset += 1
        for producer_id in ids:
            if producer_id != HANGING:
                ends = kraftlog.encode_marker("COMMIT", producer_id=producer_id, producer_epoch=0, base_offset=offset)
                batches.append(ends)
                offset += 1
        data = b"".join(batch.to_pybytes() for batch in batches)
        (folder / f"{offset - len(batches):020d}.log").write_bytes(data)
        states.add(headers_of(data))
    return tmp_path


def headers_of(data: bytes) -> Any:
    (headers,) = HeaderScan(data, check_crc=True).headers()
    return headers


def bases(directory: Path) -> list[int]:
    return [segment.base_offset or 0 for segment in PartitionFolder.of(directory / "t-0").segments]


def answers(directory: Path, answer: Callable[[kraftlog.Log], pa.Table]) -> tuple[list[Any], int]:
    """Return the rows of a table, and how many log files were opened for it."""
    counting = Counting()
    with use_disk(counting):
        rows = answer(kraftlog.open(directory)).to_pylist()
    return rows, len(counting.opened)


@pytest.mark.parametrize(
    "answer",
    [lambda log: log.producers(), lambda log: log.hanging_transactions()],
    ids=["producers", "hanging_transactions"],
)
def test_log_files_are_opened_behind_the_last_snapshot_that_is_believed(
    directory: Path, answer: Callable[[kraftlog.Log], pa.Table]
) -> None:
    """As few as were written to since; what is said is the same."""
    expected, opened = answers(directory, answer)
    assert any(row["producer_id"] == HANGING for row in expected)
    assert opened == SEGMENTS
    found = bases(directory)
    for number in (1, SEGMENTS // 2, SEGMENTS - 1):
        for recovery_point, first in ((found[number], number), (found[number] - 1, number - 1)):
            (directory / CHECKPOINT).write_text(f"0\n1\nt 0 {recovery_point}\n")
            assert answers(directory, answer) == (expected, SEGMENTS - first)
    (directory / CLEAN).touch()
    assert answers(directory, answer) == (expected, 1)
    (directory / "t-0" / f"{found[-1]:020d}.snapshot").unlink()
    assert answers(directory, answer) == (expected, 2)


def test_a_snapshot_is_believed_before_the_recovery_point_alone(directory: Path) -> None:
    """One that names another producer shows whether it was read in the place of headers."""
    found = bases(directory)
    stale = producer_snapshot_bytes([ProducerState(500, 0, 0, 3, 0, 1, -1, 3)])
    (directory / "t-0" / f"{found[9]:020d}.snapshot").write_bytes(stale)
    for recovery_point, is_believed in ((found[9], True), (found[9] - 1, False)):
        (directory / CHECKPOINT).write_text(f"0\n1\nt 0 {recovery_point}\n")
        ids = kraftlog.open(directory).producers()["producer_id"].to_pylist()
        assert (500 in ids, HANGING in ids) == (is_believed, not is_believed)


def test_up_to_an_offset_the_snapshot_before_it_counts(directory: Path) -> None:
    (directory / CLEAN).touch()
    found = bases(directory)
    segments = kraftlog.open(directory).found.segments
    for number in (1, 10, SEGMENTS - 1):
        counting = Counting()
        with use_disk(counting):
            states = producer_states(segments, Pass(ReadOptions(end_offset=found[number] + 1)))
        assert [state.producer_id for state in states] == [7, HANGING, *range(101, 100 + number)]
        assert counting.opened == {segments[number].file_name}


@pytest.mark.parametrize("place", ["before the last segment", "at the end"])
@pytest.mark.parametrize("size", [0, 9, 30])
def test_a_snapshot_that_a_crash_has_left_is_no_fault(directory: Path, size: int, place: str) -> None:
    """Behind the recovery point a broker drops it, and the headers tell; before that it is damage."""
    expected = kraftlog.open(directory).producers().to_pylist()
    found = bases(directory)
    at = found[-1] if place == "before the last segment" else found[-1] + 4
    path = directory / "t-0" / f"{at:020d}.snapshot"
    path.write_bytes((directory / "t-0" / f"{found[-1]:020d}.snapshot").read_bytes()[:size])
    (directory / CHECKPOINT).write_text(f"0\n1\nt 0 {found[-1] - 1}\n")
    assert kraftlog.open(directory).producers().to_pylist() == expected
    (directory / CLEAN).touch()
    with pytest.raises(kraftlog.CorruptRecordError, match="snapshot"):
        kraftlog.open(directory).producers()
