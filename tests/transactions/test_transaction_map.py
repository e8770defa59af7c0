"""Ranges that are read by themselves, in any order, add up to the log as it is read in one go."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model import ProducerModel
from random_logs import STEPS, in_segments, producer_log, write_indexes, write_snapshots, written

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.committed_ranges import PartitionRanges
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition
from kraftlog.read.ranges import Range
from kraftlog.read.records import read_range
from kraftlog.read.transaction_map import TransactionMap
from kraftlog.tables.user_options import read_options

COLUMNS = ["offset", "value", "transaction_state", "visible_at"]
FEWER = COLUMNS[:-1]  # what the files beside segments tell
LEVELS = ("read_committed", "read_uncommitted")
WHOLE = 1 << 30
WITH_TRANSACTIONS = (
    "transactions",
    "transactions_hanging",
    "transactions_live",
    "transactions_tv0",
    "compaction",
    "groups",
)
DAMAGED = sorted(path.parent.name for path in GOLDEN.glob("damaged/*/log"))

Rows = list[dict[str, Any]]


def planned(
    segments: list[Segment], options: ReadOptions, range_bytes: int, faults: list[Fault], columns: list[str] = COLUMNS
) -> list[Range]:
    """Plan the ranges of a partition as a driver does: by the files beside the segments, as far as these are there."""
    found = TransactionMap(segments, every="visible_at" in columns, strict=options.strict)
    ranges = list(PartitionRanges(found, Pass(options, range_bytes=range_bytes), all_at_once=True).ranges())
    faults += found.faults
    return ranges


def rows_of_ranges(
    folder: Path, range_bytes: int, faults: list[Fault] | None = None, columns: list[str] = COLUMNS, **bounds: Any
) -> Rows:
    """Read ranges backwards, each as another process gets it, and put their rows into the order of the log."""
    options = read_options(**bounds)
    faults = [] if faults is None else faults
    rows: Rows = []
    for group in by_partition(kraftlog.open(folder).found.segments):
        ranges = [pickle.dumps(one) for one in planned(group, options, range_bytes, faults, columns)]
        of_ranges: list[Rows] = []
        for packed in reversed(ranges):
            batches = read_range(pickle.loads(packed), schema.RECORDS.select(columns), Pass(options, faults))
            of_ranges.append([row for batch in batches for row in batch.to_pylist()])
        rows += [row for of_range in reversed(of_ranges) for row in of_range]
    return rows


def rows_of_log(folder: Path, columns: list[str] = COLUMNS, **bounds: Any) -> Rows:
    return kraftlog.open(folder).records(columns, **bounds).to_table().to_pylist()


def log_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.log"))


@pytest.fixture
def without_snapshots(tmp_path: Path) -> Callable[[Path], Path]:
    """Return a copy of a folder as a backup of log files alone has it."""

    def copy(folder: Path) -> Path:
        return shutil.copytree(folder, tmp_path / "log", ignore=shutil.ignore_patterns("*.snapshot"))

    return copy


@pytest.mark.sweep(4)
@pytest.mark.parametrize("columns", [COLUMNS, FEWER], ids=len)
@pytest.mark.parametrize("name", WITH_TRANSACTIONS)
def test_golden_logs(name: str, columns: list[str], without_snapshots: Callable[[Path], Path]):
    folder = GOLDEN / name / "log"
    for level in LEVELS:
        expected = rows_of_log(folder, columns, isolation_level=level)
        assert expected
        for source in (folder, without_snapshots(folder) if level == LEVELS[0] else folder):
            for range_bytes in (100, 1000, WHOLE):
                assert rows_of_ranges(source, range_bytes, columns=columns, isolation_level=level) == expected


@pytest.mark.parametrize("columns", [COLUMNS, FEWER], ids=len)
@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_logs(name: str, columns: list[str]):
    folder = GOLDEN / "damaged" / name / "log"
    log = kraftlog.open(folder).records(columns, isolation_level="read_committed")
    expected = log.to_table().to_pylist()
    for range_bytes in (200, WHOLE):
        faults: list[Fault] = []
        assert rows_of_ranges(folder, range_bytes, faults, columns, isolation_level="read_committed") == expected
        assert faults == log.faults


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=25), st.lists(st.integers(0, 30), max_size=4), st.booleans())
def test_random_logs(steps: list[tuple], cuts: list[int], has_snapshots: bool):
    model = producer_log(steps)
    with written(in_segments(model, cuts)) as folder:
        if has_snapshots:
            write_snapshots(folder)
        for range_bytes in (1, 300, WHOLE):
            committed = rows_of_ranges(folder, range_bytes, isolation_level="read_committed")
            assert [row["offset"] for row in committed] == model.visible
            rows = rows_of_ranges(folder, range_bytes)
            assert {row["offset"]: row["transaction_state"] for row in rows} == model.state
            shown = {row["offset"]: row["visible_at"] for row in rows if row["visible_at"] is not None}
            assert shown == model.visible_at


@settings(max_examples=100, deadline=None)
@given(
    st.lists(STEPS, min_size=1, max_size=25),
    st.lists(st.integers(0, 30), max_size=4),
    st.lists(st.sampled_from(["index", "snapshot"]), max_size=2),
    st.integers(0, 3),
)
def test_by_the_files_beside(steps: list[tuple], cuts: list[int], lacking: list[str], number: int):
    """Whichever of them are there."""
    model = producer_log(steps)
    with written(in_segments(model, cuts)) as folder:
        write_indexes(folder, model)
        for kind in lacking:
            for path in sorted(folder.glob(f"*.{kind}"))[number : number + 1]:
                path.unlink()
        for range_bytes in (1, 300, WHOLE):
            committed = rows_of_ranges(folder, range_bytes, columns=FEWER, isolation_level="read_committed")
            assert [row["offset"] for row in committed] == model.visible
            rows = rows_of_ranges(folder, range_bytes, columns=FEWER)
            assert {row["offset"]: row["transaction_state"] for row in rows} == model.state


@pytest.mark.parametrize("columns", [COLUMNS, FEWER], ids=len)
@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(STEPS, min_size=1, max_size=25),
    start=st.integers(0, 80),
    size=st.integers(0, 80),
    cuts=st.lists(st.integers(0, 30)),
)
def test_within_bounds(columns: list[str], steps: list[tuple], start: int, size: int, cuts: list[int]):
    model = producer_log(steps)
    with written(in_segments(model, cuts)) as folder:
        write_indexes(folder, model)
        bounds = {"isolation_level": "read_committed", "start_offset": start, "end_offset": start + size}
        expected = [offset for offset in model.visible if start <= offset < start + size]
        assert [row["offset"] for row in rows_of_ranges(folder, 200, columns=columns, **bounds)] == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, min_size=4, max_size=25), st.integers(0, 1 << 20), st.integers(1, 255))
@example([("data", 0, 1), ("data", 2, 3), *[("marker", one, "COMMIT") for one in (0, 0, 2)], ("plain", -1, 3)], 794, 1)
def test_one_damaged_byte(steps: list[tuple], at: int, flipped: int):
    model = producer_log(steps)
    data = bytearray(model.log)
    data[at % len(data)] ^= flipped
    with written([(0, bytes(data))]) as folder:
        for level in LEVELS:
            expected = rows_of_log(folder, isolation_level=level)
            for range_bytes in (1, 300):
                assert rows_of_ranges(folder, range_bytes, isolation_level=level) == expected


@pytest.mark.parametrize("name", [name for name in WITH_TRANSACTIONS if name != "groups"])
def test_last_stable_offset(name: str):
    state = json.loads((GOLDEN / name / "expected" / "broker_state.json").read_text())
    for group in by_partition(kraftlog.open(GOLDEN / name / "log").found.segments):
        partition = state["partitions"][f"{group[0].topic}-{group[0].partition}"]
        opened = TransactionMap(group).open_at_end()
        stable = min((one.first_offset for one in opened), default=partition["high_watermark"])
        assert stable == partition["last_stable_offset"]


def test_planning_reads_headers_of_the_last_segment_alone():
    """And of the one in which a read_committed reader stops."""
    opened: set[LogPath] = set()

    class Recording(Disk):
        def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
            opened.add(path)
            return super().open(path, size)

    state = json.loads((GOLDEN / "compaction" / "expected" / "broker_state.json").read_text())
    for folder in sorted((GOLDEN / "compaction" / "log").glob("cpt-*")):
        segments = kraftlog.open(folder).found.segments
        assert len(segments) > 3
        largest = max(segment.size for segment in segments)
        opened.clear()
        with use_disk(Recording()):
            planned(segments, read_options(isolation_level="read_committed"), largest, [], FEWER)
        stable = state["partitions"][folder.name]["last_stable_offset"]
        unstable = [segment.path for segment in segments if segment.base_offset <= stable][-1]
        logs = {path for path in opened if path.suffix == ".log"}
        assert segments[-1].path in logs
        assert logs <= {segments[-1].path, unstable}


def test_a_range_carries_only_the_transactions_that_reach_into_it(tmp_path: Path):
    """A transaction that reaches over three segments, among aborted and committed ones within one."""
    model = ProducerModel()
    starts = []
    for number in range(6):
        starts.append(len(model.boundaries))
        if number == 1:
            model.data(9, 1, transactional=True)
        model.data(number, 1, transactional=True)
        model.marker(number, "ABORT" if number == 4 else "COMMIT")
        if number == 3:
            model.marker(9, "ABORT")
    model.data(8, 1, transactional=True)
    for write in (write_snapshots, lambda folder: write_indexes(folder, model)):
        with written(in_segments(model, starts)) as folder:
            write(folder)
            segments = kraftlog.open(folder).found.segments
            ranges = planned(segments, read_options(), WHOLE, [], FEWER)
        producers = [one.transactions.transactions["producer_id"].tolist() for one in ranges]
        assert producers == [[], [9], [9], [9], [4], [8]]


def test_what_is_appended_after_planning_does_not_count(tmp_path: Path):
    model = ProducerModel()
    model.data(-1, 1, transactional=False)
    model.data(1, 1, transactional=True)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(model.log)
    plans = {}
    for level in LEVELS:
        options = read_options(isolation_level=level)
        plans[options] = list(planned(kraftlog.open(path.parent).found.segments, options, WHOLE, []))
    model.marker(1, "COMMIT")
    model.data(-1, 1, transactional=False)
    path.write_bytes(model.log)
    found = [
        row
        for options, ranges in plans.items()
        for one in ranges
        for batch in read_range(one, schema.RECORDS.select(["offset", "transaction_state"]), Pass(options))
        for row in batch.to_pylist()
    ]
    plain = {"offset": 0, "transaction_state": None}
    assert found == [plain, plain, {"offset": 1, "transaction_state": "open"}]


def damaged_behind(folder: Path, model: ProducerModel, second: int, batch: int) -> Path:
    """Write a log of two segments with snapshots, and damage the end of a batch in the first."""
    partition = folder / "t-0"
    partition.mkdir()
    for base_offset, data in in_segments(model, [second]):
        (partition / f"{base_offset:020d}.log").write_bytes(data)
    write_snapshots(partition)
    end = len(model.boundaries)  # not less than the end offset: all snapshots are believed
    (folder / "recovery-point-offset-checkpoint").write_text(f"0\n1\nt 0 {end}\n")
    first = log_files(partition)[0]
    damaged = bytearray(first.read_bytes())
    damaged[model.boundaries[batch + 1] - 1] ^= 0xFF
    first.write_bytes(damaged)
    return partition


def lost_marker(folder: Path) -> Path:
    """Write a log whose only marker is damaged."""
    model = ProducerModel()
    model.data(1, 1, transactional=True)
    model.marker(1, "COMMIT")
    model.data(-1, 1, transactional=False)
    model.data(-1, 1, transactional=False)
    return damaged_behind(folder, model, 3, 1)


def test_a_lost_marker_hides_its_records_alone(tmp_path: Path):
    """The next snapshot says that the transaction has ended, and nobody says how."""
    partition = lost_marker(tmp_path)
    faults: list[Fault] = []
    rows = rows_of_ranges(partition, 1, faults, isolation_level="read_committed")
    assert [(row["offset"], row["visible_at"]) for row in rows] == [(2, 2), (3, 3)]
    assert [fault.error for fault in faults] == ["bad_crc"]
    states = {row["offset"]: row["transaction_state"] for row in rows_of_ranges(partition, 1)}
    assert states == {0: "open", 2: None, 3: None}


def test_an_open_transaction_whose_first_batch_is_damaged(tmp_path: Path):
    """The snapshot behind it knows the transaction: nothing is visible from there on."""
    model = ProducerModel()
    model.data(-1, 1, transactional=False)
    for _ in range(2):
        model.data(1, 1, transactional=True)
    model.data(-1, 1, transactional=False)
    model.data(-1, 1, transactional=False)
    partition = damaged_behind(tmp_path, model, 4, 1)
    rows = rows_of_ranges(partition, 1, isolation_level="read_committed")
    assert [row["offset"] for row in rows] == [0]
    assert [row["offset"] for row in rows_of_log(partition, isolation_level="read_committed")] == [0]


def test_an_unreadable_snapshot(tmp_path: Path):
    """It is reported, and the segment in front of it is gone over instead."""
    model = producer_log(
        [("data", 0, 1), ("data", 1, 1), ("marker", 0, "ABORT"), ("data", 0, 1), ("marker", 1, "COMMIT")]
    )
    with written(in_segments(model, [1, 3])) as folder:
        write_snapshots(folder)
        (folder.parent / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 9\n")  # else it is not believed
        snapshot = sorted(folder.glob("*.snapshot"))[0]
        snapshot.write_bytes(b"\x00\x01garbage")
        faults: list[Fault] = []
        rows = rows_of_ranges(folder, 1, faults, isolation_level="read_committed")
        assert [row["offset"] for row in rows] == model.visible
        assert [(fault.error, fault.segment_base_offset) for fault in faults] == [("bad_snapshot", 1)]
        with pytest.raises(kraftlog.CorruptRecordError, match=r"t-0/0{19}1\.log: 0{19}1\.snapshot: "):
            rows_of_ranges(folder, 1, isolation_level="read_committed", strict=True)


def test_a_segment_that_has_gone(tmp_path: Path):
    partition = lost_marker(tmp_path)
    options = read_options(isolation_level="read_committed")
    ranges = list(planned(kraftlog.open(partition).found.segments, options, WHOLE, []))
    log_files(partition)[0].unlink()
    faults: list[Fault] = []
    for one in ranges:
        list(read_range(one, schema.RECORDS.select(COLUMNS), Pass(options, faults)))
    assert [fault.error for fault in faults] == ["unreadable_file"]


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=25), st.lists(st.integers(0, 30), max_size=4), st.booleans())
def test_open_transactions(steps: list[tuple], cuts: list[int], has_snapshots: bool):
    model = producer_log(steps)
    with written(in_segments(model, cuts)) as folder:
        if has_snapshots:
            write_snapshots(folder)
        segments = kraftlog.open(folder).found.segments
        assert {one.producer_id: one.first_offset for one in TransactionMap(segments).open_at_end()} == model.open
