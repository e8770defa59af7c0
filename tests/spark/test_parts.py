"""Parts of a read_committed job: read one by one, in any order, they are the library's rows. No session is needed."""

from __future__ import annotations

import json
import pickle
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog import LogStore
from kraftlog._native.scanner import Scanner
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.local_file import LocalFile
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.ranges import Range, plan_at_once
from kraftlog.spark import parts as parts_module
from kraftlog.spark.options import parse_request
from kraftlog.spark.packed_parts import packed
from kraftlog.spark.parts import Part, plan_parts, range_bytes_of
from kraftlog.spark.read import read
from kraftlog.spark.request import Request
from kraftlog.topics import TopicPartition
from segment_files import write_partition

HOUR = 3_600_000
_BOUNDS = ("startingOffsets", "endingOffsets")
COLUMNS = ["topic", "partition", "offset", "value", "transaction_state", "visible_at"]
METADATA = sorted(path.parent.name for path in GOLDEN.glob("metadata_txn/*/log"))


def read_parts(folder: Path, faults: list[Fault], **options: str) -> list[dict[str, Any]]:
    given = {"path": str(folder), "isolationLevel": "read_committed", "columns": ",".join(COLUMNS), **options}
    request = parse_request(given)
    parts = [pickle.dumps(part) for part in plan_parts(request)]
    of_parts = [
        [row for batch in read(request, pickle.loads(part), faults) for row in batch.to_pylist()]
        for part in reversed(parts)
    ]
    return [row for of_part in reversed(of_parts) for row in of_part]


@pytest.mark.parametrize("range_bytes", ["100", "64m"])
@pytest.mark.parametrize("name", ["transactions", "compaction", *(f"metadata_txn/{name}" for name in METADATA)])
def test_read_committed(name: str, range_bytes: str):
    folder = GOLDEN / name / "log"
    stream = kraftlog.open(folder).records(COLUMNS, isolation_level="read_committed")
    faults: list[Fault] = []
    assert read_parts(folder, faults, rangeBytes=range_bytes, onError="skip") == stream.to_table().to_pylist()
    assert faults == stream.faults


@pytest.fixture
def bad_snapshot(tmp_path: Path) -> Path:
    """Return a partition in which a snapshot is damaged."""
    folder = shutil.copytree(GOLDEN / "compaction" / "log" / "cpt-fast-0", tmp_path / "cpt-fast-0")
    (folder / f"{406:020d}.snapshot").write_bytes(b"\x00\x01garbage")
    points = ["cpt-fast 0 1000", "cpt-open 0 1000"]  # else snapshots are not believed
    (tmp_path / "recovery-point-offset-checkpoint").write_text("\n".join(["0", str(len(points)), *points, ""]))
    return folder


def test_what_planning_cannot_read(bad_snapshot: Path):
    faults: list[Fault] = []
    rows = read_parts(bad_snapshot, faults, onError="skip")
    assert rows == kraftlog.open(bad_snapshot).records(COLUMNS, isolation_level="read_committed").to_table().to_pylist()
    assert [(fault.error, fault.segment_base_offset) for fault in faults] == [("bad_snapshot", 406)]
    with pytest.raises(kraftlog.CorruptRecordError, match=r"0{17}406\.log: 0{17}406\.snapshot"):
        read_parts(bad_snapshot, [])


def test_what_planning_cannot_read_where_there_is_nothing_to_read(bad_snapshot: Path):
    """The transaction that is open began before the log: nothing of it is visible."""
    source = GOLDEN / "compaction" / "log" / "cpt-open-0"
    folder = bad_snapshot.parent / source.name
    folder.mkdir()
    for name in (f"{260:020d}.log", f"{260:020d}.snapshot", f"{311:020d}.log"):
        shutil.copy(source / name, folder)
    (folder / f"{311:020d}.snapshot").write_bytes(b"\x00\x01garbage")
    faults: list[Fault] = []
    assert read_parts(folder, faults, onError="skip") == []
    assert [fault.error for fault in faults] == ["bad_snapshot"]


def segments(count: int) -> list[Segment]:
    return [Segment(Path("t-0"), f"{10 * number:020d}.log", 1 << 30, 10 * number, "t", 0) for number in range(count)]


def test_bytes_of_a_task():
    """Checks of many segments read each as it is; those that offsets rule out do not count."""
    request, everything, the_last = parse_request({"path": "logs"}), ReadOptions(), ReadOptions(start_offset=5115)
    assert range_bytes_of(request, [(segments(512), everything)]) == 128 << 20
    checks = parse_request({"path": "logs", "table": "errors"})
    assert range_bytes_of(checks, [(segments(511), everything)]) == 128 << 20
    assert range_bytes_of(checks, [(segments(512), everything)]) == NO_BOUND
    assert range_bytes_of(checks, [(segments(256), everything), (segments(256), everything)]) == NO_BOUND
    assert range_bytes_of(checks, [(segments(512), the_last)]) == 128 << 20
    asked = parse_request({"path": "logs", "rangeBytes": "16m", "table": "errors"})
    assert range_bytes_of(asked, [(segments(512), everything)]) == 16 << 20


def whole_parts(sizes: list[int]) -> list[Part]:
    """Return a part for each segment of these sizes."""
    found = [Segment(Path("t-0"), f"{at:020d}.log", size, at, "t", 0) for at, size in enumerate(sizes)]
    return [Part(Range(segment, 0, NO_BOUND), ReadOptions(), number=at) for at, segment in enumerate(found)]


def test_small_segments_share_a_task():
    """As Spark's sources of files: 128 MiB of files of which each counts 4 MiB more."""
    request, small = parse_request({"path": "logs"}), whole_parts([283] * 50_000)
    tasks = packed(request, small)
    assert [part for task in tasks for part in task] == small
    assert {len(task) for task in tasks[:-1]} == {31}
    assert len(pickle.dumps(tasks[0])) < 20_000
    assert [len(task) for task in packed(request, whole_parts([1000] * 200))] == [1] * 200
    assert packed(request, []) == []


def test_large_segments_have_a_task_of_their_own():
    sizes = [1 << 30, *[1000] * 3, 1 << 30, *[1000] * 500]
    tasks = packed(parse_request({"path": "logs"}), whole_parts(sizes))
    assert [len(task) for task in tasks[:4]] == [1, 3, 1, 5]
    asked = parse_request({"path": "logs", "rangeBytes": "10m"})
    assert [len(task) for task in packed(asked, whole_parts(sizes))[:5]] == [1, 2, 1, 1, 2]


def test_small_segments_share_no_task_where_more_tasks_are_asked_for():
    sizes = [1 << 40, *[1000] * 300]
    assert len(packed(parse_request({"path": "logs"}), whole_parts(sizes))) < 20
    request = parse_request({"path": "logs", "minPartitions": "300"})
    assert [len(task) for task in packed(request, whole_parts(sizes))] == [1] * 301


def test_a_task_takes_the_rest_of_a_segment():
    """Where bounds begin within one of many segments."""
    segments = kraftlog.open(GOLDEN / "codecs/log/codec-none-0").found.segments
    within = ReadOptions(start_offset=60)
    (first, *others) = plan_at_once(segments, within, NO_BOUND)
    assert first.start > 0
    assert first.end == NO_BOUND
    assert others == [Range(segment, 0, NO_BOUND) for segment in segments[1:]]
    assert len(list(plan_at_once(segments, within, 1))) > 10


def plan_and_opened(request: Request, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Part], list[int]]:
    """Return a plan, and the base offsets of the segments that planning opened."""
    opened: list[int] = []
    real = LocalFile.__init__

    def noted(file: LocalFile, path: Path, size: int | None = None) -> None:
        if path.suffix == ".log":
            opened.append(int(path.stem))
        real(file, path, size)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFile, "__init__", noted)
        return plan_parts(request), sorted(opened)


@pytest.mark.parametrize(
    ("bounds", "opened"),
    [
        ({}, []),
        ({"startingOffsets": '{"orders": {"0": 95}}'}, [90]),
        ({"startingOffsets": '{"orders": {"0": 90}}'}, []),
        ({"startingOffsets": '{"orders": {"0": 95}}', "endingOffsets": '{"orders": {"0": 303}}'}, [90, 300]),
        ({"endingOffsets": '{"orders": {"0": 303}}'}, [300]),
        ({"startingOffsets": '{"orders": {"0": 95}}', "endingOffsets": '{"orders": {"0": 97}}'}, [90]),
    ],
)
def test_only_segments_that_a_bound_cuts_are_opened(tmp_path: Path, monkeypatch, bounds: dict[str, str], opened):
    write_partition(tmp_path / "orders-0", segments=50)
    request = parse_request({"path": str(tmp_path), "columns": "offset", **bounds})
    parts, names = plan_and_opened(request, monkeypatch)
    assert names == opened
    rows = [row["offset"] for part in parts for batch in read(request, part, []) for row in batch.to_pylist()]
    starts, ends = (json.loads(bounds.get(name, "{}")).get("orders", {}).get("0") for name in _BOUNDS)
    assert rows == list(range(starts or 0, ends or 500))


@pytest.fixture(scope="module")
def by_hours(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """Return the log directory of a closed store, of many segments, and the hour of each record, in any order."""
    folder = tmp_path_factory.mktemp("hours") / "log"
    hours = [number // 6 + random.Random(number).choice([-3, 0, 0, 0, 0]) for number in range(240)]
    with LogStore(folder) as store:
        store.create_topic("t", configs={"internal.segment.bytes": 16_384})
        producer = store.producer()
        for hour in hours:
            producer.send("t", value=b"%1000d" % hour, timestamp_ms=HOUR * (400_000 + hour))
            producer.flush()
    assert len(list((folder / "t-0").glob("*.log"))) > 15
    return folder, hours


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("is_settled", [True, False])
def test_bounds_of_time_open_segments_that_they_cut(
    by_hours: tuple[Path, list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_settled: bool, level: str
):
    """Time indexes are believed before the recovery point; a segment is left out if its last entry is too early."""
    folder, hours = shutil.copytree(by_hours[0], tmp_path / "log"), by_hours[1]
    bases = sorted(int(path.stem) for path in (folder / "t-0").glob("*.log"))
    if not is_settled:
        (folder / ".kafka_cleanshutdown").unlink()
        (folder / "recovery-point-offset-checkpoint").unlink()
    for start, end in [*((start, None) for start in range(-3, 41, 3)), (20, 25), (None, 11), (39, 40)]:
        bounds = {"startTimestamp": start, "endTimestamp": end}
        given = {name: str(HOUR * (400_000 + hour)) for name, hour in bounds.items() if hour is not None}
        options = {"path": str(folder), "columns": "offset", "isolationLevel": level, "subscribe": "t", **given}
        request = parse_request(options)
        parts, opened = plan_and_opened(request, monkeypatch)
        rows = [row["offset"] for part in parts for batch in read(request, part, []) for row in batch.to_pylist()]
        low, high = -9 if start is None else start, 99 if end is None else end
        assert rows == [offset for offset, hour in enumerate(hours) if low <= hour < high]
        ends = zip(bases, [*bases[1:], len(hours)], strict=True)
        of_segments = {base: hours[base:end] for base, end in ends if base != bases[-1]}
        if is_settled or level == "read_uncommitted":
            cut = [base for base, of in of_segments.items() if is_settled and of[0] < low <= max(of)]
            assert set(opened) <= {*cut, bases[-1]}  # the headers of the last one may say what is committed
        if is_settled:
            planned = {part.work.segment.base_offset for part in parts if isinstance(part.work, Range)}
            assert planned - {bases[-1]} == {base for base, of in of_segments.items() if max(of) >= low}


def test_records_before_the_log_start_open_no_other_segment(tmp_path: Path, monkeypatch):
    """Each segment was opened for the log start offset alone, though names tell that all but one are after it."""
    write_partition(tmp_path / "orders-0", segments=20)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 35\n")
    request = parse_request({"path": str(tmp_path), "columns": "offset"})
    parts, names = plan_and_opened(request, monkeypatch)
    assert names == [30]
    rows = [row["offset"] for part in parts for batch in read(request, part, []) for row in batch.to_pylist()]
    assert rows == list(range(35, 200))


def test_a_segment_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch):
    """It is left to the task, which reports it."""

    def refuse(file: LocalFile, path: Path, size: int | None = None) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(LocalFile, "__init__", refuse)
    segments = kraftlog.open(GOLDEN / "codecs/log/codec-none-0").found.segments
    expected = [Range(segment, 0, NO_BOUND) for segment in segments]
    assert list(plan_at_once(segments, ReadOptions(start_offset=60), 1)) == expected


def test_timestamp_types():
    """Both names of the column are Spark's; Kafka's number has a name of its own."""
    folder = str(GOLDEN / "codecs/log/codec-appendtime-0")
    for asked in ("timestamp_type", "timestampType"):
        request = parse_request({"path": folder, "columns": f"{asked},timestamp_type_id,offset"})
        rows = [row for part in plan_parts(request) for batch in read(request, part, []) for row in batch.to_pylist()]
        assert rows[0] == {"timestampType": 1, "timestamp_type_id": 1, "offset": 0}
        assert len(rows) == kraftlog.open(folder).records(["offset"]).to_table().num_rows


def test_rows_without_columns():
    request = parse_request({"path": str(GOLDEN / "codecs/log/codec-none-0")}).with_columns(())
    rows = sum(batch.num_rows for part in plan_parts(request) for batch in read(request, part, []))
    assert rows == kraftlog.open(GOLDEN / "codecs/log/codec-none-0").records(["offset"]).to_table().num_rows


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_many_segments_are_cut_by_their_index_files(
    by_hours: tuple[Path, list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
):
    """Without walks over their headers, but at batches; a segment without an index is cut by its headers."""
    folder = shutil.copytree(by_hours[0], tmp_path / "log")
    count = len(list((folder / "t-0").glob("*.log")))
    monkeypatch.setattr(parts_module, "DEFAULT_RANGE_BYTES", 4000)
    monkeypatch.setattr(parts_module, "MANY_SEGMENTS", count)
    walked: list[Path] = []
    monkeypatch.setattr(
        "kraftlog.read.ranges.Scanner", lambda file, *args: walked.append(file.path) or Scanner(file, *args)
    )
    options = {"path": str(folder), "columns": "offset,value", "isolationLevel": level, "subscribe": "t"}
    request = parse_request(options)

    def planned() -> set[tuple[str, int, int]]:
        parts = plan_parts(request)
        rows = [row["offset"] for part in parts for batch in read(request, part, []) for row in batch.to_pylist()]
        assert rows == list(range(len(by_hours[1])))
        ranges = [part.work for part in parts]
        assert sum(work.is_first for work in ranges) == count
        return {(work.segment.file_name, work.start, work.end) for work in ranges}

    batches = kraftlog.open(folder / "t-0").batches(["segment_base_offset", "position"])
    positions = {(f"{row['segment_base_offset']:020d}.log", row["position"]) for row in batches.to_pylist()}
    by_index = planned()
    assert not walked
    assert len(by_index) > 3 * count
    assert {(name, start) for name, start, _ in by_index} <= positions
    (folder / "t-0" / f"{15:020d}.index").unlink()
    assert len(planned()) > 3 * count
    assert {path.name for path in walked} == {f"{15:020d}.log"}
    index = folder / "t-0" / f"{30:020d}.index"
    entries = list(struct.iter_unpack(">ii", index.read_bytes()))
    index.write_bytes(b"".join(struct.pack(">ii", offset, position + 13) for offset, position in entries))
    assert sum(name == f"{30:020d}.log" for name, *_ in planned()) == 1  # no entry is that of a batch
    walked.clear()
    monkeypatch.setattr(parts_module, "MANY_SEGMENTS", count + 1)
    assert len(planned()) > 3 * count
    assert len({*walked}) == count


def test_many_segments_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Those that fit into a task and that no bound cuts are planned from the list of files alone."""
    for number in range(512):
        (tmp_path / "t-0").mkdir(exist_ok=True)
        with (tmp_path / "t-0" / f"{10 * number:020d}.log").open("wb") as file:
            file.truncate(100 << 20)  # of zeros that take no room
    request = parse_request({"path": str(tmp_path), "columns": "offset"})
    parts, opened = plan_and_opened(request, monkeypatch)
    assert [part.work.segment.base_offset for part in parts] == [10 * number for number in range(512)]
    assert opened == []


@pytest.mark.parametrize(("table", "column"), [("offsets", "offset"), ("lag", "current_offset")])
def test_offsets_after_a_cut(tmp_path: Path, table: str, column: str):
    """A task knows where partitions were cut, also those that its table does not read."""
    with LogStore(tmp_path / "log") as store:
        store.create_topic("orders", 1)
        store.producer().send("orders", value="order", partition=0)
        with store.consumer("readers") as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            consumer.commit({TopicPartition("orders", 0): 5})
    repository = kraftlog.Repository(tmp_path / "nightly")
    repository.backup(tmp_path / "log")
    request = parse_request({"path": str(repository.path), "table": table, "columns": column})
    parts = [pickle.loads(pickle.dumps(part)) for part in plan_parts(request)]
    rows = [row for part in parts for batch in read(request, part, []) for row in batch.to_pylist()]
    assert rows == [{column: 1}]
