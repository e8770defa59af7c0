"""What readers of an object store request: each byte once, sizes as few times as the file system allows, and ahead."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import fsspec
import pytest

import kraftlog
from kraftlog import schema
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import ReadOptions
from kraftlog.codec.records import Origin
from kraftlog.disk import chunk_cache, remote_files
from kraftlog.disk.chunk_cache import ChunkCache
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.read.log_pass import Pass
from kraftlog.read.ranges import Range
from kraftlog.read.records import read_ranges
from object_store import ObjectStore, object_store
from segment_files import write_partition

SEGMENTS = 12
WORKERS = [1, 3]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running, pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_files, "FIRST_PAUSE", 0)
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("requests")
    write_partition(folder / "orders-0", segments=SEGMENTS)
    return folder


def log_of(store: ObjectStore, local: Path, key: str) -> kraftlog.Log:
    log = kraftlog.open(store.put(local, key), storage_options=store.options)
    store.forget()
    return log


def requests_of_logs(store: ObjectStore) -> list[tuple[str, str]]:
    return [(method, key.rpartition("/")[2]) for method, key, _ in store.requests if key.endswith(".log")]


@pytest.mark.parametrize("workers", WORKERS)
def test_each_segment_is_one_request_for_its_bytes(store: ObjectStore, local: Path, workers: int):
    log = log_of(store, local, f"once-{workers}")
    names = [segment.file_name for segment in log.found.segments]
    assert log.records(["offset"], workers=workers).to_table()["offset"].to_pylist() == [*range(10 * SEGMENTS)]
    asked = requests_of_logs(store)
    assert sorted(name for method, name in asked if method == "GET") == names
    # pyarrow asks for the size of an object when it opens it, even if the size is known
    assert sorted(name for method, name in asked if method == "HEAD") == names
    assert store.bytes_of(".log") == log.size_in_bytes


def test_what_no_byte_is_read_of_is_not_requested(store: ObjectStore, local: Path):
    log = log_of(store, local, "bounds")
    found = log.records(["offset"], start_offset=35, end_offset=58).to_table()["offset"].to_pylist()
    assert found == [*range(35, 58)]
    assert {name for _, name in requests_of_logs(store)} == {f"{offset:020d}.log" for offset in (30, 40, 50)}


@pytest.mark.parametrize("bounds", [{}, {"start_offset": 35, "end_offset": 58}])
def test_fsspec_is_not_asked_for_sizes_that_are_listed(
    local: Path, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, int]
):
    memory = fsspec.filesystem("memory")
    for path in (local / "orders-0").iterdir():
        memory.pipe_file(f"/sizes/orders-0/{path.name}", path.read_bytes())
    log = kraftlog.open("memory://sizes/orders-0")
    asked: list[str] = []
    info = type(memory).info
    monkeypatch.setattr(type(memory), "info", lambda self, path, **more: asked.append(path) or info(self, path, **more))
    assert log.records(["offset"], **bounds).to_table().num_rows == (23 if bounds else 10 * SEGMENTS)
    assert [path for path in asked if path.endswith(".log")] == []


@pytest.mark.parametrize("workers", WORKERS)
def test_segments_are_requested_before_their_turn(store: ObjectStore, local: Path, workers: int):
    log = log_of(store, local, f"ahead-{workers}")
    rows = iter(log.records(["offset"], workers=workers))
    next(rows)
    assert eventually(lambda: len(requests_of_logs(store)) == 2 * SEGMENTS)
    assert sum(batch.num_rows for batch in rows) == 10 * SEGMENTS - 10


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("change", ["gone", "shorter"])
def test_a_fault_of_a_segment_read_ahead_is_reported_in_its_place(
    store: ObjectStore, local: Path, change: str, workers: int
):
    log = log_of(store, local, f"fault-{change}-{workers}")
    segment = log.found.segments[5]
    if change == "gone":
        store.delete(segment.path.key)
    else:
        store.write(segment.path.key, (local / "orders-0" / segment.file_name).read_bytes()[:40])
    stream = log.records(["offset"], workers=workers)
    offsets = stream.to_table()["offset"].to_pylist()
    assert offsets == [offset for offset in range(10 * SEGMENTS) if not 50 <= offset < 60]
    assert [(fault.error, str(segment.path) in fault.message) for fault in stream.faults] == [("unreadable_file", True)]
    rows = iter(log.records(["offset"], workers=workers, strict=True))
    assert [offset for _ in range(5) for offset in next(rows)["offset"].to_pylist()] == [*range(50)]
    with pytest.raises(CorruptRecordError, match=segment.file_name):
        next(rows)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_error_of_the_plan_is_raised_in_its_place(store: ObjectStore, local: Path, workers: int):
    """Ranges are taken ahead of their turn; what was planned before an error is read first."""
    log = log_of(store, local, f"plan-{workers}")

    def parts() -> Iterator[Range]:
        yield from (Range(segment, 0, segment.size) for segment in log.found.segments[:4])
        raise ValueError("no more can be planned")

    rows = read_ranges(parts(), schema.RECORDS.select(["offset"]), Pass(workers=workers))
    assert [offset for _ in range(4) for offset in next(rows)["offset"].to_pylist()] == [*range(40)]
    with pytest.raises(ValueError, match="no more can be planned"):
        next(rows)


def test_a_missing_object_is_noticed_by_its_first_read(store: ObjectStore, local: Path):
    """As a file that cannot be opened: a stream lists again, because the segment was deleted since."""
    segment = log_of(store, local, "missing").found.segments[3]
    store.delete(segment.path.key)
    with pytest.raises(FileNotFoundError, match=segment.file_name):
        next(HeaderScan(disk().open(segment.path, segment.size)).headers())
    plan = DecodePlan(schema.RECORDS.select(["offset"]), ReadOptions(), Origin("orders", 0, None))
    decoder = RecordDecoder(disk().open(segment.path, segment.size), 0, segment.size, plan)
    with pytest.raises(FileNotFoundError, match=segment.file_name):
        next(decoder.batches([]))


@pytest.mark.parametrize("workers", WORKERS)
def test_an_iterator_that_is_dropped_leaves_nothing(
    store: ObjectStore, local: Path, workers: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(chunk_cache, "CHUNKS", cache := ChunkCache())
    monkeypatch.setattr(chunk_cache, "THREADS", 2)
    log = log_of(store, local, f"dropped-{workers}")
    before = set(threading.enumerate())
    rows = iter(log.records(["offset"], workers=workers))
    next(rows)
    store.latency = 0.2
    try:
        del rows
        assert eventually(lambda: not fetching_threads() - before)
        asked = len(store.requests)
        assert asked < 2 * SEGMENTS + 1
    finally:
        store.latency = 0
    assert cache.bytes == 0
    assert len(store.requests) == asked


def fetching_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("kraftlog-fetch")}


def eventually(is_true) -> bool:
    until = monotonic() + 30
    while not (found := is_true()) and monotonic() < until:
        sleep(0.01)
    return found
