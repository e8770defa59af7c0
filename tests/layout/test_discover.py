"""What paths hold, and that nothing is read silently or written."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import LogPath
from segment_files import write_partition


def test_log_directory_partition_file_list_and_glob():
    log = GOLDEN / "codecs" / "log"
    everything = kraftlog.open(log).segments(["topic", "partition", "base_offset"]).to_pylist()
    assert len(everything) == 17
    partition = kraftlog.open(log / "codec-lz4-0").segments(["topic", "partition", "base_offset"]).to_pylist()
    assert partition == [row for row in everything if row["topic"] == "codec-lz4"]
    file = kraftlog.open(log / "codec-lz4-0" / "00000000000000000000.log")
    assert file.segments(["topic", "partition", "base_offset"]).to_pylist() == partition[:1]
    several = kraftlog.open([log / "codec-zstd-0", log / "codec-lz4-0", log / "codec-lz4-0"])
    assert {row["topic"] for row in several.segments(["topic"]).to_pylist()} == {"codec-lz4", "codec-zstd"}
    matched = kraftlog.open(str(log / "codec-*-0"))
    assert matched.segments(["topic", "partition", "base_offset"]).to_pylist() == everything


def test_topics_and_partitions():
    log = GOLDEN / "transactions" / "log"
    assert kraftlog.open(log, topics=["orders"], partitions=[1]).segments(["topic", "partition"]).to_pylist() == [
        {"topic": "orders", "partition": 1}
    ]
    with pytest.raises(ValueError, match="no topic 'order'; did you mean orders\\? There are __consumer_offsets, "):
        kraftlog.open(log, topics=["order"])
    with pytest.raises(
        ValueError, match=r"no partition 7 of those asked for\. There are orders-0, orders-1, orders-2$"
    ):
        kraftlog.open(log, topics=["orders"], partitions=[7])
    with pytest.raises(ValueError, match="no partition's folder among the files"):
        kraftlog.open(GOLDEN / "metadata" / "log" / "bootstrap.checkpoint", topics=["orders"])
    with pytest.raises(ValueError, match=r"no topic 'zzz'\. There are codec-appendtime, "):
        kraftlog.open(GOLDEN / "codecs" / "log", topics=["zzz"])
    with pytest.raises(ValueError, match=r"^no topic 'zzz'\. There are __consumer_offsets, "):
        kraftlog.open(log, topics=["orders", "zzz"])
    with pytest.raises(ValueError, match=r"^no topics 'order' \(did you mean orders\?\), 'zzz'\. There are "):
        kraftlog.open(log, topics=["zzz", "orders", "order"])
    with pytest.raises(ValueError, match=r"^no topics ('a\d', ){9}'a9' and 2 more\. There are "):
        kraftlog.open(log, topics=[f"a{number}" for number in (*range(10), "_1", "_2")])


class ListingsDisk(Disk):
    """Remembers the folders that were listed."""

    def __init__(self) -> None:
        self.listed: list[str] = []

    def entries(self, folder: LogPath) -> list[Entry]:
        self.listed.append(folder.name)
        return super().entries(folder)


@pytest.mark.parametrize(
    ("choice", "listed"),
    [
        ({"topics": ["orders"]}, {"orders-0", "orders-1"}),
        ({"partitions": [1]}, {"orders-1", "other-1"}),
        ({"topics": ["orders", "other"], "partitions": [0]}, {"orders-0", "other-0"}),
        ({}, {"orders-0", "orders-1", "other-0", "other-1"}),
    ],
)
def test_folders_of_other_partitions_are_not_listed(tmp_path: Path, choice: dict[str, Any], listed: set[str]):
    for name in ("orders-0", "orders-1", "other-0", "other-1"):
        write_partition(tmp_path / "log" / name)
    write_partition(tmp_path / "log" / "__cluster_metadata-0")
    with use_disk(ListingsDisk()) as disk:
        log = kraftlog.open(tmp_path / "log", **choice)
    assert set(disk.listed) == {"log", "__cluster_metadata-0", *listed}
    assert {one.folder.name for one in log.found.segments} - {"__cluster_metadata-0"} == listed
    assert [one.topic for one in log.found.metadata_log] == ["__cluster_metadata"]
    with use_disk(ListingsDisk()) as disk:
        each = kraftlog.open(str(tmp_path / "log" / "*-[01]"), **choice)
    assert [one.path for one in each.found.segments] == [one.path for one in log.found.segments]
    assert [disk.listed.count(folder) for folder in sorted({"other-0"} - listed)] == [1] * ("other-0" not in listed)


def test_ten_names_are_listed(tmp_path: Path):
    log = GOLDEN / "damaged" / "good" / "log" / "t-0" / "00000000000000000000.log"
    for number in range(25):
        folder = tmp_path / f"topic{number:02}-0"
        folder.mkdir()
        (folder / log.name).write_bytes(log.read_bytes())
    names = ", ".join(f"topic{number:02}" for number in range(10))
    with pytest.raises(ValueError) as error:
        kraftlog.open(tmp_path, topics=["topic7"])
    assert str(error.value) == (
        f"no topic 'topic7'; did you mean topic17 or topic07 or topic24? There are {names} and 15 more"
    )


def test_missing_paths(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="no such file or directory: nowhere"):
        kraftlog.open("nowhere")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        kraftlog.open(str(tmp_path / "*.log"))
    with pytest.raises(ValueError, match="neither a partition's folder nor a log directory"):
        kraftlog.open(tmp_path)


def test_what_is_left_alone_is_named(tmp_path: Path):
    folder = tmp_path / "t-0"
    shutil.copytree(GOLDEN / "damaged" / "good" / "log" / "t-0", folder)
    source = (folder / "00000000000000000000.log").read_bytes()
    for state in ("deleted", "cleaned", "swap"):
        (folder / f"00000000000000000018.log.{state}").write_bytes(source)
    (folder / "notes.txt").write_text("hello")
    log = kraftlog.open(folder)
    assert log.records(["offset"]).to_table().num_rows == 18
    left = [(row["error"], row["message"]) for row in log.errors().to_pylist()]
    assert [error for error, _ in left] == ["not_read"] * 4
    assert [message.split(":")[0] for _, message in left] == [
        "t-0/notes.txt",
        "t-0/00000000000000000018.log.cleaned",
        "t-0/00000000000000000018.log.deleted",
        "t-0/00000000000000000018.log.swap",
    ]
    states = log.segments(["state", "records"]).to_pylist()
    assert [row["state"] for row in states] == ["live", "cleaned", "deleted", "swap"]
    assert [row["records"] for row in states] == [18, None, None, None]
    deleted = kraftlog.open(folder / "00000000000000000018.log.deleted")
    assert deleted.records(["offset"]).to_table().num_rows == 18


def test_folder_of_a_deleted_topic():
    log = kraftlog.open(GOLDEN / "deleted_records" / "log")
    assert {row["topic"] for row in log.segments(["topic"]).to_pylist()} == {"orders-del-7"}
    named = [row["message"] for row in log.errors().to_pylist()]
    assert any("-delete: not read: the folder of a partition that Kafka marked delete" in text for text in named)
    folder = next((GOLDEN / "deleted_records" / "log").glob("*-delete"))
    assert kraftlog.open(folder).segments(["topic", "partition"]).to_pylist()[0] == {
        "topic": "orders-del-7-gone",
        "partition": 0,
    }


def test_snapshot_of_the_metadata_log():
    folder = GOLDEN / "metadata" / "log" / "__cluster_metadata-0"
    snapshot = next(folder.glob("*.checkpoint"))
    log = kraftlog.open(snapshot)
    first = log.records(["control_type"], include_control=True).to_table()["control_type"].to_pylist()
    assert (first[0], first[-1]) == ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
    inside = kraftlog.open(folder).segments(["file"])["file"].to_pylist()
    assert all(name.endswith(".log") for name in inside)


def test_reading_changes_nothing(tmp_path: Path):
    folder = tmp_path / "log"
    shutil.copytree(GOLDEN / "codecs" / "log", folder)

    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.rglob("*"))}

    before = state()
    log = kraftlog.open(folder)
    log.records(workers=2).to_table()
    log.batches(check_crc=True)
    log.segments()
    log.index_entries()
    log.errors()
    assert list(log.verify()) == []
    assert state() == before


def test_file_that_may_not_be_read(tmp_path: Path):
    """The disk refuses it, since root may read files of any mode."""

    class Refusing(Disk):
        def open(self, path: LogPath, *arguments: Any) -> ReadableFile:
            if path.name.endswith(".log"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return super().open(path, *arguments)

    shutil.copytree(GOLDEN / "damaged" / "good" / "log" / "t-0", tmp_path / "t-0")
    with use_disk(Refusing()):
        stream = kraftlog.open(tmp_path / "t-0").records()
        assert stream.to_table().num_rows == 0
    assert [(fault.error, fault.message) for fault in stream.faults] == [
        ("unreadable_file", "t-0/00000000000000000000.log: Permission denied")
    ]


def test_file_that_vanishes(tmp_path: Path):
    shutil.copytree(GOLDEN / "damaged" / "good" / "log" / "t-0", tmp_path / "t-0")
    log = kraftlog.open(tmp_path / "t-0")
    (tmp_path / "t-0" / "00000000000000000000.log").unlink()
    stream = log.records()
    assert stream.to_table().num_rows == 0
    assert [(fault.error, fault.message) for fault in stream.faults] == [
        ("unreadable_file", "t-0/00000000000000000000.log: No such file or directory")
    ]
    with pytest.raises(kraftlog.RecordError, match="No such file"):
        log.records(strict=True).to_table()


@pytest.mark.parametrize("name", ["orders-9", "orders-9-delete", "other"])
def test_a_link_that_leads_to_itself_is_a_fault_of_its_partition_alone(tmp_path: Path, name: str):
    log_directory = tmp_path / "log"
    shutil.copytree(GOLDEN / "transactions" / "log", log_directory)
    expected = kraftlog.open(log_directory).segments()
    (log_directory / name).symlink_to(name)
    log = kraftlog.open(log_directory)
    assert log.segments(strict=False, faults=(faults := [])).equals(expected)
    assert [(fault.error, fault.topic, fault.partition) for fault in faults] == (
        [("unreadable_file", "orders", 9)] if name == "orders-9" else []
    )


def test_a_link_in_a_partition_that_leads_to_itself(tmp_path: Path):
    folder = tmp_path / "orders-0"
    shutil.copytree(GOLDEN / "transactions" / "log" / "orders-0", folder)
    expected = kraftlog.open(folder).records().to_table()
    (folder / f"{999:020d}.log").symlink_to(f"{999:020d}.log")
    log = kraftlog.open(folder)
    assert log.records().to_table().equals(expected)
    assert [row["error"] for row in log.errors().to_pylist()] == ["not_read"]
