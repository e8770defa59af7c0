"""``kraftlog restore`` of files that cannot be read to their end: what can be read is there, and each fault once."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.topics import TopicPartition
from kraftlog.transactions.cut import Cut

COLUMNS = ["topic", "partition", "offset", "key", "value", "timestamp", "partition_leader_epoch"]
FOLDERS = ["orders-0", "__consumer_offsets-0", "__transaction_state-0"]
LOG = f"{0:020d}.log"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "store"
    with LogStore(folder) as store:
        store.create_topic("orders", partitions=2)
        producer = store.producer(transactional_id="etl")
        for number in range(12):
            with producer.transaction():
                producer.send("orders", value=f"order {number}", partition=number % 2)
                producer.send_offsets_to_transaction({("orders", 0): number // 2}, group="readers")
    return folder


class Unreadable(Disk):
    """A disk on which a log file cannot be opened, or is truncated after it was listed."""

    def __init__(self, path: Path, size: int | None) -> None:
        self.path, self.size = path, size

    def open(self, path: Any, size: int | None = None) -> Any:
        if path == self.path and self.size is None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        if path == self.path:
            os.truncate(path, self.size or 0)
        return super().open(path, size)


def batches(path: Path) -> list[tuple[int, int, int]]:
    """Return the end, in bytes, and the first and the next offset of each batch of a log file."""
    columns = ["position", "size_in_bytes", "base_offset", "last_offset"]
    rows = kraftlog.open(path).batches(columns).to_pylist()
    return [(row["position"] + row["size_in_bytes"], row["base_offset"], row["last_offset"] + 1) for row in rows]


def rows_of(log: kraftlog.Log, topic: str, partition: int, end_offset: int) -> list[dict[str, Any]]:
    files = log.of_files(log.found.only(lambda *of: of == (topic, partition)))
    return [row for row in files.records(COLUMNS).to_table().to_pylist() if row["offset"] < end_offset]


def check_nothing_is_wrong(log: kraftlog.Log) -> None:
    assert log.errors().to_pylist() == []
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []


@pytest.mark.parametrize("cut", [None, "end"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_can_be_read_of_a_last_segment_is_kept(store: Path, tmp_path: Path, folder: str, cut: str | None):
    source = tmp_path / "store"
    shutil.copytree(store, source, ignore=shutil.ignore_patterns(".lock"))
    path = source / folder / LOG
    every = batches(path)
    at = len(every) // 2
    readable = every[at][1]  # the file ends within this batch
    with use_disk(Unreadable(path, every[at][0] - 1)):
        done = kraftlog.restore(source, tmp_path / "cluster", cut=cut)
    assert [(fault.error, f"{fault.topic}-{fault.partition}") for fault in done.faults] == [("unreadable_file", folder)]
    assert not [note for note in done.notes if "(the first of" in note]
    log = kraftlog.open(tmp_path / "cluster" / "node-1" / "logs-0")
    ends = {TopicPartition(one.topic, one.partition): one.written.end_offset for one in done.partitions if one.written}
    of = TopicPartition(folder[:-2], 0)
    if cut is None:
        appended = len(done.moved_offsets) if of.topic == "__consumer_offsets" else 0
        assert ends[of] - appended == readable
        assert rows_of(log, *of, readable) == rows_of(kraftlog.open(store), *of, readable)
    for number in range(2):
        end = ends["orders", number]
        expected = rows_of(kraftlog.open(store), "orders", number, end)
        assert rows_of(log, "orders", number, end) == expected
        assert len(expected) > 2
    if cut is not None:
        check_nothing_is_wrong(log)


@pytest.mark.parametrize("cut", [None, "end", Cut({TopicPartition("orders", 0): 4})])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_log_file_that_cannot_be_opened(store: Path, tmp_path: Path, folder: str, cut: Any):
    with use_disk(Unreadable(store / folder / LOG, None)):
        done = kraftlog.restore(store, tmp_path / "cluster", cut=cut)
        with pytest.raises(kraftlog.RecordError):
            kraftlog.restore(store, tmp_path / "strict", cut=cut, strict=True)
    assert [(fault.error, f"{fault.topic}-{fault.partition}") for fault in done.faults] == [("unreadable_file", folder)]
    assert done.faults[0].size_in_bytes == (store / folder / LOG).stat().st_size
    ends = {one.name: one.written.end_offset for one in done.partitions if one.written}
    assert ends["orders-1"] == 12 or folder == "orders-0"
    assert (ends["orders-0"] > 0) == (folder != "orders-0")
    log = kraftlog.open(tmp_path / "cluster" / "node-1" / "logs-0")
    assert log.errors().to_pylist() == []
    assert not (tmp_path / "strict").exists()


def test_what_can_be_read_of_an_object_of_a_backup_is_kept(store: Path, tmp_path: Path):
    repository = kraftlog.Repository(tmp_path / "nightly")
    repository.backup(store)
    (stored,) = (tmp_path / "nightly" / "partitions").glob("orders-0*/*.log")
    every = batches(store / "orders-0" / LOG)
    at = len(every) // 2
    os.truncate(stored, every[at][0] - 1)
    done = kraftlog.restore(repository.path, tmp_path / "cluster")
    assert [(fault.error, fault.position) for fault in done.faults] == [("unreadable_file", every[at - 1][0])]
    log = kraftlog.open(tmp_path / "cluster" / "node-1" / "logs-0")
    readable = every[at][1]
    assert rows_of(log, "orders", 0, readable) == rows_of(kraftlog.open(store), "orders", 0, readable)


@pytest.mark.parametrize("bad_byte", [0, 1, 5000])
def test_a_device_that_fails_within_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad_byte: int):
    """The system returns what comes before a bad block, and then the error; it has the name of the file."""
    path = tmp_path / "file"
    data = bytes(range(256)) * 40
    path.write_bytes(data)
    preadv: Callable[..., int] = os.preadv

    def failing(fd: int, buffers: list[memoryview], at: int) -> int:
        if at >= bad_byte:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return preadv(fd, [buffers[0][: bad_byte - at]], at)

    monkeypatch.setattr(os, "preadv", failing)
    target = bytearray(len(data))
    file = Disk().open(path)
    with pytest.raises(kraftlog.errors.InputError, match="Input/output error") as caught:
        file.read_into(memoryview(target), 0)
    assert (caught.value.position, caught.value.filename, caught.value.errno) == (bad_byte, str(path), errno.EIO)
    assert target[:bad_byte] == data[:bad_byte]
