"""Segments that cannot be opened, under readers that must know how transactions end."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from object_store import object_store
from segments_of_transactions import SegmentsOfTransactions, long_transaction

Gone = Callable[[Path], Any]
DESCRIPTORS = 64


@contextmanager
def deleted(path: Path) -> Iterator[None]:
    path.unlink()
    yield


@contextmanager
def refused(path: Path) -> Iterator[None]:
    class Refusing(Disk):
        def open(self, asked: LogPath, size: int | None = None) -> ReadableFile:
            if asked == path:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return super().open(asked, size)

    with use_disk(Refusing()):
        yield


@pytest.fixture(params=[deleted, refused])
def unreadable(request: pytest.FixtureRequest) -> Gone:
    """Return what makes a segment unreadable after it was listed."""
    return request.param


def decided_in_third(folder: Path, marker: str) -> list[Path]:
    """Write a log whose transaction, with data in two segments, ends in the third; more follows in the fourth."""
    log = SegmentsOfTransactions(folder / "t-0")
    log.segment([("plain",), ("data", 1)])
    log.segment([("data", 1), ("plain",)])
    log.segment([("marker", 1, marker)])
    log.segment([("plain",), ("data", 2), ("marker", 2, "COMMIT")])
    return log.paths


def spark_rows(folder: Path, faults: list[Fault], **options: str) -> list[int]:
    request = parse_request(
        {"path": str(folder), "isolationLevel": "read_committed", "columns": "offset", "onError": "skip", **options}
    )
    parts = [pickle.loads(pickle.dumps(part)) for part in plan_parts(request)]
    return [row["offset"] for part in parts for batch in read(request, part, faults) for row in batch.to_pylist()]


@pytest.mark.parametrize("marker", ["COMMIT", "ABORT"])
def test_the_segment_of_the_marker(tmp_path: Path, unreadable: Gone, marker: str):
    paths = decided_in_third(tmp_path, marker)
    log = kraftlog.open(tmp_path / "t-0")
    with unreadable(paths[2]):
        stream = log.records(["offset"], isolation_level="read_committed")
        assert stream.to_table()["offset"].to_pylist() == [0]
        assert [(fault.error, fault.segment_base_offset) for fault in stream.faults] == [("unreadable_file", 4)]
        assert stream.notes == [
            "t-0: read_committed ends at offset 1, where a transaction of producer 1 is undecided:"
            f" t-0/{4:020d}.log cannot be read"
        ]
        with pytest.raises(CorruptRecordError, match=rf"t-0/{4:020d}\.log"):
            log.records(["offset"], isolation_level="read_committed", strict=True).to_table()


@pytest.mark.parametrize("marker", ["COMMIT", "ABORT"])
def test_states_of_what_is_not_decided(tmp_path: Path, unreadable: Gone, marker: str):
    paths = decided_in_third(tmp_path, marker)
    log = kraftlog.open(tmp_path / "t-0")
    with unreadable(paths[2]):
        stream = log.records(["offset", "transaction_state", "visible_at"])
        rows = {row["offset"]: (row["transaction_state"], row["visible_at"]) for row in stream.to_table().to_pylist()}
    nothing = (None, None)
    assert rows == {0: (None, 0), 1: ("open", None), 2: ("open", None), 3: nothing, 5: nothing, 6: ("committed", None)}
    assert [fault.error for fault in stream.faults] == ["unreadable_file"]


def test_a_segment_that_decides_nothing(tmp_path: Path, unreadable: Gone):
    """Nothing is open where it starts: what follows is read, and the reader says what it has not read."""
    log = SegmentsOfTransactions(tmp_path / "t-0")
    log.segment([("data", 1), ("marker", 1, "ABORT"), ("plain",)])
    log.segment([("plain",)])
    log.segment([("data", 1), ("data", 2), ("marker", 1, "ABORT"), ("marker", 2, "COMMIT"), ("plain",)])
    opened = kraftlog.open(tmp_path / "t-0")
    with unreadable(log.paths[1]):
        stream = opened.records(["offset"], isolation_level="read_committed")
        assert stream.to_table()["offset"].to_pylist() == [2, 5, 8]
    assert [(fault.error, fault.segment_base_offset) for fault in stream.faults] == [("unreadable_file", 3)]


def test_a_snapshot_says_that_it_decided_nothing(tmp_path: Path, unreadable: Gone):
    log = SegmentsOfTransactions(tmp_path / "t-0")
    log.segment([("data", 1), ("plain",)])
    log.segment([("data", 1)])
    log.segment([("plain",), ("marker", 1, "ABORT"), ("plain",)])
    log.write_snapshots()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 3\n")  # else it is not believed
    opened = kraftlog.open(tmp_path / "t-0")
    with unreadable(log.paths[1]):
        stream = opened.records(["offset"], isolation_level="read_committed")
        assert stream.to_table()["offset"].to_pylist() == [1, 3, 5]
    assert [(fault.error, fault.segment_base_offset) for fault in stream.faults] == [("unreadable_file", 2)]


@pytest.mark.parametrize("marker", ["COMMIT", "ABORT"])
def test_the_driver_of_spark(tmp_path: Path, marker: str):
    """It lists the segment and cannot open it."""
    paths = decided_in_third(tmp_path, marker)
    with refused(paths[2]):
        faults: list[Fault] = []
        assert spark_rows(tmp_path / "t-0", faults) == [0]
        assert [(fault.error, fault.segment_base_offset) for fault in faults] == [("unreadable_file", 4)]
        with pytest.raises(CorruptRecordError, match=rf"t-0/{4:020d}\.log"):
            spark_rows(tmp_path / "t-0", [], onError="fail")


@pytest.mark.parametrize("marker", ["COMMIT", "ABORT"])
def test_a_task_of_spark(tmp_path: Path, marker: str):
    """What was planned holds: the task whose segment is gone says so, and the others need it no more."""
    paths = decided_in_third(tmp_path, marker)
    request = parse_request(
        {
            "path": str(tmp_path / "t-0"),
            "isolationLevel": "read_committed",
            "columns": "offset,transaction_state",
            "onError": "skip",
        }
    )
    parts = plan_parts(request)
    paths[1].unlink()
    paths[2].unlink()
    faults: list[Fault] = []
    rows = [row["offset"] for part in parts for batch in read(request, part, faults) for row in batch.to_pylist()]
    assert rows == ([0, 1, 5, 6] if marker == "COMMIT" else [0, 5, 6])
    assert [fault.segment_base_offset for fault in faults] == [2, 4]


@pytest.mark.parametrize("marker", ["COMMIT", "ABORT"])
def test_an_object_store(tmp_path: Path, marker: str):
    decided_in_third(tmp_path, marker)
    with object_store() as store:
        log = kraftlog.open(store.put(tmp_path / "t-0", "t-0"), storage_options=store.options)
        store.delete(log.found.segments[2].path.key)
        stream = log.records(["offset"], isolation_level="read_committed")
        assert stream.to_table()["offset"].to_pylist() == [0]
    assert [(fault.error, fault.segment_base_offset) for fault in stream.faults] == [("unreadable_file", 4)]
    assert [note for note in stream.notes if "is undecided" in note]


def test_the_table_of_transactions(tmp_path: Path, unreadable: Gone):
    """A transaction that began before the segment is not ended by a marker of the same producer behind it."""
    log = SegmentsOfTransactions(tmp_path / "t-0")
    log.segment([("data", 1)])
    log.segment([("marker", 1, "COMMIT"), ("data", 1)])
    log.segment([("marker", 1, "ABORT")])
    opened = kraftlog.open(tmp_path / "t-0")
    with unreadable(log.paths[1]):
        stream = opened.scan("partition_transactions", ["state", "first_offset", "marker_offset"])
        rows = [tuple(row.values()) for row in stream.to_table().to_pylist()]
        assert rows == [("open", 0, None), ("aborted", None, 3)]
        assert [fault.error for fault in stream.faults] == ["unreadable_file"]


def test_last_stable_offsets(tmp_path: Path, unreadable: Gone):
    paths = decided_in_third(tmp_path, "COMMIT")
    log = kraftlog.open(tmp_path / "t-0")
    with unreadable(paths[3]), pytest.raises(CorruptRecordError, match=rf"t-0/{5:020d}\.log"):
        log.last_stable_offsets()


READ = """
import os, resource, sys
import kraftlog
folder, most = sys.argv[1], int(sys.argv[2])
before = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (before + most, before + most))
stream = kraftlog.open(folder).records(["offset"], isolation_level="read_committed")
print(stream.to_table()["offset"].to_pylist(), len(stream.faults))
"""

PLAN = """
import os, pickle, resource, sys
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
folder, most = sys.argv[1], int(sys.argv[2])
before = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (before + most, before + most))
request = parse_request({"path": folder, "isolationLevel": "read_committed", "columns": "offset"})
parts = plan_parts(request)
print([row["offset"] for part in parts for batch in read(request, part, []) for row in batch.to_pylist()], 0)
"""


@pytest.mark.parametrize("script", [READ, PLAN], ids=["local", "spark"])
@pytest.mark.parametrize("marker", ["COMMIT", "ABORT"])
def test_descriptors_do_not_grow_with_a_transaction(tmp_path: Path, script: str, marker: str):
    """A transaction over more segments than files may be open."""
    segments = 200
    expected = long_transaction(tmp_path / "t-0", segments, marker)
    command = [sys.executable, "-c", script, str(tmp_path / "t-0"), str(DESCRIPTORS)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.split() == f"{expected} 0".split()


def test_plan_of_a_long_transaction(tmp_path: Path):
    """What is sent to a task does not grow with the segments behind its own, nor do mappings with their number."""
    segments = 600
    expected = long_transaction(tmp_path / "t-0", segments, "ABORT")
    request = parse_request({"path": str(tmp_path / "t-0"), "isolationLevel": "read_committed", "columns": "offset"})
    parts = plan_parts(request)
    assert len(parts) == segments
    assert max(len(pickle.dumps(part)) for part in parts) < 4096
    rows = [row["offset"] for part in parts for batch in read(request, part, []) for row in batch.to_pylist()]
    assert rows == expected
    stream = kraftlog.open(tmp_path / "t-0").records(["offset"], isolation_level="read_committed")
    mapped = 0
    for batch in stream.batches():
        maps = Path("/proc/self/maps").read_text()
        mapped = max(mapped, maps.count(str(tmp_path)))
        expected = expected[batch.num_rows :]
    assert expected == []
    assert mapped <= DESCRIPTORS
