"""Offsets that go away before a stream has read them: by retention, truncation, compaction or a deleted topic."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from growing_log import GrowingPartition
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.entries import Entry
from kraftlog.disk.remote_path import LogPath
from kraftlog.spark.data_loss import DataLossError
from kraftlog.spark.parts import Part
from kraftlog.spark.still_there import read_what_is_there
from micro_batches import Query

ORDERS = ("orders", 0)


def lost(query: Query, *, match: str) -> None:
    with pytest.raises(DataLossError, match=match + r".*Some data may have been lost.*failOnDataLoss to false"):
        query.run()


def test_retention_that_overtakes_the_stream(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    log = GrowingPartition(tmp_path)
    log.append(3)
    strict, lenient = Query(tmp_path), Query(tmp_path, failOnDataLoss="false")
    for query in (strict, lenient):
        query.run(1)
    log.roll()
    log.append(2)
    log.retain(1)
    lost(strict, match="orders-0: offsets 1 to 2 are gone, the log begins at 3")
    with caplog.at_level(logging.WARNING):
        assert lenient.run() == [3, 4]
    assert "offsets 1 to 2 are gone" in caplog.text


def test_retention_behind_the_stream_is_no_loss(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(3)
    query = Query(tmp_path)
    query.run()
    log.roll()
    log.retain(1)
    log.append(1)
    assert query.run() == [3]


def test_a_segment_that_goes_between_planning_and_reading(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(3)
    log.roll()
    log.append(2)
    for fails in ("true", "false"):
        query = Query(tmp_path, failOnDataLoss=fails)
        parts = query.follower.parts({ORDERS: 0}, {ORDERS: 5})
        oldest = min(log.folder.glob("*.log"))
        kept = oldest.read_bytes()
        oldest.unlink()
        if fails == "true":
            with pytest.raises(DataLossError, match=r"orders-0/0+\.log: the segment was deleted"):
                list(read_what_is_there(query.request, parts[0]))
        else:
            rows = [
                row for part in parts for batch in read_what_is_there(query.request, part) for row in batch["offset"]
            ]
            assert [row.as_py() for row in rows] == [3, 4]
        oldest.write_bytes(kept)


def test_a_segment_that_is_compacted_between_planning_and_reading(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(3)
    first = log.segment
    size = first.stat().st_size
    log.append(3)
    log.roll()
    log.append(1)
    query = Query(tmp_path)
    (part, *_) = query.follower.parts({ORDERS: 0}, {ORDERS: 7})
    first.write_bytes(first.read_bytes()[size:])
    with pytest.raises(RuntimeError, match="compacted or truncated; start the query again"):
        list(read_what_is_there(query.request, part))


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("fails", ["true", "false"])
def test_segments_that_are_merged_between_planning_and_reading(tmp_path: Path, level: str, fails: str):
    """The cleaner makes one of two: rows are read once from it, or the query is to be started again."""
    log = GrowingPartition(tmp_path)
    for _ in range(2):
        log.append(3, 1)
        log.roll()
    log.commit(1)
    first, second, _ = sorted(log.folder.glob("*.log"))
    query = Query(tmp_path, isolationLevel=level, failOnDataLoss=fails)

    def rows(part: Part) -> list[int]:
        return [offset.as_py() for batch in read_what_is_there(query.request, part) for offset in batch["offset"]]

    parts = pickle.loads(pickle.dumps(query.follower.parts({ORDERS: 0}, {ORDERS: 7})))
    later = [offset for part in parts[1:] for offset in rows(part)]
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()
    again = pytest.raises(RuntimeError, match=r"0003\.log: deleted .* compacted .*; start the query again")
    assert rows(parts[0]) + later == list(range(6))  # how its transaction ends was sent along
    with again:
        rows(parts[1])
    query.restart()
    assert [offset for _, _, offset in query.rows({ORDERS: 7})] == list(range(6))
    first.rename(f"{first}.swap")
    with pytest.raises(RuntimeError, match=r"0000\.log: deleted .* compacted .*; start the query again"):
        rows(parts[0])


def test_a_folder_that_cannot_be_listed(tmp_path: Path):
    """It is not gone: it would be read once more when it can be listed again."""
    GrowingPartition(tmp_path).append(2)
    GrowingPartition(tmp_path, "secret").append(3)
    query, other = (Query(tmp_path, failOnDataLoss="false", subscribe=topic) for topic in ("orders,secret", "orders"))
    query.run()

    class Denying(Disk):
        def entries(self, folder: LogPath) -> list[Entry]:
            if folder.name == "secret-0":
                raise PermissionError(13, "Permission denied", str(folder))
            return super().entries(folder)

    with use_disk(Denying()):
        for start in (query.run, lambda: Query(tmp_path)):
            with pytest.raises(kraftlog.CorruptRecordError, match="secret-0: Permission denied"):
                start()
        assert other.run() == [0, 1]
    assert query.run() == []


def test_a_folder_that_goes_while_folders_are_listed(tmp_path: Path):
    GrowingPartition(tmp_path).append(2)
    gone = GrowingPartition(tmp_path, "returns").folder
    query = Query(tmp_path)

    class Deleting(Disk):
        def entries(self, folder: LogPath) -> list[Entry]:
            if folder == gone:
                gone.rename(f"{folder}.0123456789abcdef0123456789abcdef-delete")
            return super().entries(folder)

    with use_disk(Deleting()):
        lost(query, match="returns-0 is gone")


def test_a_segment_that_cannot_be_read_is_no_loss(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(2)
    query = Query(tmp_path, onError="skip")
    (part,) = pickle.loads(pickle.dumps(query.follower.parts({ORDERS: 0}, {ORDERS: 2})))

    first = log.segment

    class Denying(Disk):
        def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
            raise PermissionError(13, "Permission denied", str(path))

    class Deleting(Disk):
        def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
            first.unlink(missing_ok=True)
            return super().open(path, size)

    with use_disk(Denying()):
        assert list(read_what_is_there(query.request, part)) == []
    with use_disk(Deleting()), pytest.raises(DataLossError, match=r"orders-0/0+\.log: the segment was deleted"):
        list(read_what_is_there(query.request, part))


def test_truncation(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    log = GrowingPartition(tmp_path)
    log.append(3)
    size = log.segment.stat().st_size
    log.append(3)
    strict, lenient = Query(tmp_path), Query(tmp_path, failOnDataLoss="false")
    planned = strict.latest()
    for query in (strict, lenient):
        query.run(5)
    with log.segment.open("r+b") as file:
        file.truncate(size)
    lost(strict, match="orders-0: the end of the log went back from offset 5 to 3")
    strict.restart()
    with pytest.raises(DataLossError, match="offsets 5 to 5 are gone, the log ends at 3"):
        strict.rows(planned)
    with caplog.at_level(logging.WARNING):
        assert lenient.run() == []
    with log.segment.open("ab") as file:
        file.write(kraftlog.encode(pa.table({"value": ["new"] * 4}), base_offset=3))
    assert lenient.run() == [3, 4, 5, 6]


def test_a_log_that_was_truncated_and_grew_again_is_gone_over_anew(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(3)
    size = log.segment.stat().st_size
    log.append(6)
    query = Query(tmp_path)
    query.latest()
    with log.segment.open("r+b") as file:
        file.truncate(size)
        file.seek(size)
        file.write(kraftlog.encode(pa.table({"value": ["longer than before " * 9] * 2}), base_offset=3))
        file.write(kraftlog.encode(pa.table({"value": ["x"]}), base_offset=5))
    assert query.latest() == {ORDERS: 6}
    assert query.run() == list(range(6))


def test_a_log_that_was_truncated_and_has_its_size_again_is_gone_over_anew(tmp_path: Path):
    """Other batches of the same lengths: the stream sees that the transaction before them was cut off."""
    log = GrowingPartition(tmp_path)
    log.append(1)
    before = log.segment.read_bytes()
    log.append(4, 1)
    query = Query(tmp_path, isolationLevel="read_committed")
    assert query.latest() == {("orders", 0): 1}
    size = log.segment.stat().st_size
    log.segment.write_bytes(before)
    other = GrowingPartition(tmp_path / "other")
    other.append(1)
    other.append(4)
    log.segment.write_bytes(other.segment.read_bytes())
    assert log.segment.stat().st_size == size
    assert query.latest() == {("orders", 0): 5}


def test_deleted_topics(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    log = GrowingPartition(tmp_path)
    GrowingPartition(tmp_path, "returns").append(1)
    log.append(3)
    strict, lenient = Query(tmp_path), Query(tmp_path, failOnDataLoss="false")
    for query in (strict, lenient):
        query.run()
    log.folder.rename(tmp_path / "orders-0.0123456789abcdef0123456789abcdef-delete")
    lost(strict, match="orders-0 is gone")
    with caplog.at_level(logging.WARNING):
        assert lenient.run() == []
    assert lenient.start == {"returns": {"0": 1}}
    GrowingPartition(tmp_path).append(2)
    assert lenient.run() == [0, 1]
    for name in ("orders-0", "returns-0"):
        (tmp_path / name).rename(tmp_path / f"{name}.fedcba9876543210fedcba9876543210-delete")
    lost(strict, match="orders-0 is gone")


def test_a_new_partition_without_its_beginning(tmp_path: Path):
    GrowingPartition(tmp_path).append(1)
    query = Query(tmp_path)
    query.run()
    GrowingPartition(tmp_path, partition=1, base_offset=8).append(1)
    lost(query, match="orders-1 was added and begins at offset 8 instead of 0")
