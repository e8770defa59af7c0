"""One listing of a partition's folder, and how often folders are listed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.partition_folder import PartitionFolder


def test_what_a_folder_holds(tmp_path: Path):
    names = [
        "00000000000000000000.log",
        "00000000000000000000.index",
        "00000000000000000007.log.deleted",
        "00000000000000000009.index",
        "00000000000000000009.snapshot",
        "00000000000000000005-0000000002.checkpoint",
        "00000000000000000003-0000000001.checkpoint",
        "00000000000000000008-0000000002.checkpoint.part",
        "bootstrap.checkpoint",
        "leader-epoch-checkpoint",
        "notes.txt",
    ]
    for name in names:
        (tmp_path / name).write_bytes(b"12345")
    (tmp_path / "00000000000000000011.log").mkdir()
    folder = PartitionFolder.of(tmp_path)
    assert [(s.base_offset, s.size, sorted(s.beside)) for s in folder.segments] == [(0, 5, ["index"])]
    assert [(s.base_offset, s.state) for s in folder.set_aside] == [(7, ".deleted")]
    assert folder.producer_snapshots == {9: tmp_path / "00000000000000000009.snapshot"}
    assert [(one.end_offset, one.epoch) for one in folder.metadata_snapshots] == [(3, 1), (5, 2)]
    assert folder.without_log == [tmp_path / "00000000000000000009.index"]
    assert [entry.name for entry in folder.unknown] == ["00000000000000000011.log", "notes.txt"]
    assert folder.path_of("leader-epoch-checkpoint") == tmp_path / "leader-epoch-checkpoint"
    assert folder.path_of("quorum-state") is None
    assert folder.entries.keys() == {*names, "00000000000000000011.log"}


@pytest.mark.parametrize(
    ("beside", "missing"),
    [
        (["00000000000000000005.index"], [5]),
        (["00000000000000000005.timeindex", "00000000000000000006.index"], [5, 6]),
        (["00000000000000000005.snapshot"], []),  # a broker keeps some of removed segments
        (["00000000000000000005.txnindex"], []),
        (["00000000000000000005.index", "00000000000000000005.log.deleted"], []),  # it was removing it
        (["00000000000000000001.index"], []),  # retention has removed it
        (["00000000000000000011.index"], []),
    ],
)
def test_a_segment_whose_log_is_missing_is_a_fault(tmp_path: Path, beside: list[str], missing: list[int]):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for name in ("00000000000000000003.log", "00000000000000000010.log", *beside):
        (folder / name).touch()
    log = kraftlog.open(folder)
    told = [(fault.error, fault.segment_base_offset) for fault in log.unreadable()]
    assert told == [("missing_segment", offset) for offset in missing]
    stream = log.records(["offset"])
    stream.to_table()
    assert [fault.error for fault in stream.faults] == ["missing_segment"] * len(missing)


class CountingDisk(Disk):
    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def entries(self, folder: LogPath) -> list[Entry]:
        self.asked["entries"] += 1
        return super().entries(folder)

    def entry(self, path: LogPath) -> Entry | None:
        self.asked["entry"] += 1
        return super().entry(path)


def test_each_folder_is_listed_twice_and_no_segment_is_asked_for(tmp_path: Path):
    partitions = 300
    for number in range(partitions):
        folder = tmp_path / f"t-{number}"
        folder.mkdir()
        for name in ("00000000000000000000.log", "00000000000000000000.index", "leader-epoch-checkpoint"):
            (folder / name).write_bytes(b"")
    with use_disk(CountingDisk()) as disk:
        assert kraftlog.open(tmp_path).segments_count == partitions
    assert isinstance(disk, CountingDisk)
    assert disk.asked["entries"] == 2 * partitions + 1  # again, to see that it has not changed
    assert disk.asked["entry"] <= 3  # of the path, and of .kafka_cleanshutdown


def test_paths_that_overlap_show_a_segment_once(tmp_path: Path):
    log = GOLDEN / "codecs" / "log"
    (tmp_path / "linked").symlink_to(log)
    file = log / "codec-lz4-0" / "00000000000000000000.log"
    (tmp_path / "codec-lz4-0").mkdir()
    (tmp_path / "codec-lz4-0" / file.name).symlink_to(file)
    every = kraftlog.open(log).segments_count
    paths = [log, log / "codec-lz4-0", file, tmp_path / "linked", tmp_path / "codec-lz4-0"]
    assert kraftlog.open(paths).segments_count == every


def test_a_folder_that_vanishes_while_the_log_directory_is_listed(tmp_path: Path):
    """A topic that is deleted meanwhile is no error."""
    for name in ("a-0", "b-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").write_bytes(b"")

    class Deleting(Disk):
        def entries(self, folder: LogPath) -> list[Entry]:
            if folder.name == "b-0":
                raise FileNotFoundError(2, "No such file or directory", str(folder))
            return super().entries(folder)

    with use_disk(Deleting()):
        log = kraftlog.open(tmp_path)
    assert [segment.topic for segment in log.found.segments] == ["a"]
    assert log.unreadable() == []
