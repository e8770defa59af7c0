"""Index files of followers before KAFKA-806: an entry for each fetch, with its last offset and its first byte."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.codec.options import READ_COMMITTED, ReadOptions
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.disk.local_file import LocalFile
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.read.end_offset import end_offset
from kraftlog.read.log_ends import GrowingLogEnd
from kraftlog.read.seek import seek

INTERVAL, FIRST = 400, 1_000


def batch(offset: int, stamps: list[int], value: bytes = b"v" * 40) -> bytes:
    rows = pa.table({"value": [value] * len(stamps), "timestamp_ms": pa.array(stamps, pa.int64())})
    return kraftlog.encode(rows, base_offset=offset).to_pybytes()


class Follower:
    """A segment that was fetched: at most one entry for all batches of a fetch."""

    def __init__(self, directory: Path, seed: int, fetches: int) -> None:
        self.folder, dice = directory / "t-0", random.Random(seed)
        self.folder.mkdir(parents=True)
        self.rows: list[tuple[int, int]] = []
        data, since, offset, largest, largest_at = b"", 0, FIRST, -1, FIRST
        index, times = b"", b""
        self.longest = 0
        for _ in range(fetches):
            fetched = b""
            for _ in range(dice.choice([1, 2, 12, 90])):
                stamps = [5_000 + offset * 10 + dice.randrange(-300, 300) for _ in range(dice.randint(1, 5))]
                self.rows += [(offset + at, stamp) for at, stamp in enumerate(stamps)]
                fetched += batch(offset, stamps)
                offset += len(stamps) + dice.choice([0, 0, 3])  # as compaction leaves it
                last = self.rows[-1][0]
                if max(stamps) > largest:
                    largest, largest_at = max(stamps), last
            if since > INTERVAL:
                index += struct.pack(">ii", last - FIRST, len(data))
                times += struct.pack(">qi", largest, largest_at - FIRST)
                since = 0
            data += fetched
            since += len(fetched)
            self.longest = max(self.longest, len(fetched))
        self.size, self.end = len(data), self.rows[-1][0] + 1
        self.entries = len(index) // 8
        for kind, content in (("log", data), ("index", index), ("timeindex", times)):
            (self.folder / f"{FIRST:020d}.{kind}").write_bytes(content)
        (directory / ".kafka_cleanshutdown").touch()

    def segment(self) -> Any:
        (segment,) = kraftlog.open(self.folder.parent).found.segments
        return segment

    def read(self, **bounds: Any) -> list[tuple[int, int]]:
        table = kraftlog.open(self.folder.parent).records(["offset", "timestamp_ms"], **bounds).to_table()
        return list(zip(table["offset"].to_pylist(), table["timestamp_ms"].to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_bounds_leave_out_what_they_say(tmp_path: Path, seed: int) -> None:
    log, dice = Follower(tmp_path, seed, fetches=40), random.Random(seed)
    assert log.entries > 10
    for _ in range(60):
        start, end = sorted(dice.randrange(FIRST - 3, log.end + 3) for _ in range(2))
        assert log.read(start_offset=start, end_offset=end) == [row for row in log.rows if start <= row[0] < end]
        stamp = dice.choice(log.rows)[1] + dice.randrange(-1, 2)
        expected = [row for row in log.rows if row[1] >= stamp]
        assert log.read(start_timestamp=stamp) == expected
    assert end_offset(log.segment(), []) == log.end


def test_a_seek_by_offset_or_time_is_as_narrow_as_the_entries(tmp_path: Path) -> None:
    """What lies between its bounds and those of the segment is about a fetch on each side."""
    log = Follower(tmp_path, 1, fetches=300)
    segment = log.segment()
    most = 3 * (log.longest + INTERVAL)
    assert most * 10 < log.size
    file = LocalFile(segment.path)
    for at in range(len(log.rows) // 4, len(log.rows), 97):
        offset, stamp = log.rows[at]
        start, end = seek(segment, file, ReadOptions(start_offset=offset, end_offset=offset + 1))
        assert min(end, log.size) - start <= most
        start, _ = seek(segment, file, ReadOptions(start_timestamp=stamp + 600))
        ahead, _ = seek(segment, file, ReadOptions(start_offset=offset + 60))
        assert ahead - start <= 2 * most


class Counting(Disk):
    """Adds up what is read of log files."""

    def __init__(self) -> None:
        self.read = 0

    def open(self, path: Any, size: int | None = None) -> Any:
        counting = self

        class Counted(LocalFile):
            """Without ``fileno``, so that every read comes by."""

            fileno = property()  # type: ignore[assignment]

            def read_into(self, target: memoryview, start: int) -> None:
                counting.read += len(target) if str(path).endswith(".log") else 0
                super().read_into(target, start)

        return Counted(path, size)


def uncommitted_end(log: Follower) -> int:
    return GrowingLogEnd(ReadOptions()).bounds([log.segment()]).log_end_offset


def committed_end(log: Follower) -> int:
    return GrowingLogEnd(ReadOptions(isolation_level=READ_COMMITTED)).bounds([log.segment()]).log_end_offset


@pytest.mark.parametrize(
    ("answer", "is_narrow"),
    [(lambda log: end_offset(log.segment(), []), True), (uncommitted_end, True), (committed_end, False)],
    ids=["end_offset", "log_ends", "transactions"],
)
def test_end_offsets_read_what_lies_behind_the_last_entry(
    tmp_path: Path, answer: Callable[[Follower], int], is_narrow: bool
) -> None:
    """Transactions alone take the whole segment."""
    log = Follower(tmp_path, 2, fetches=300)
    counting = Counting()
    with use_disk(counting):
        assert answer(log) == log.end
    assert (counting.read < log.size / 10) is is_narrow


@pytest.mark.parametrize("lie", ["crc", "offset before", "offset behind", "sound"])
def test_an_entry_that_points_at_other_bytes_is_not_believed(tmp_path: Path, lie: str) -> None:
    """A stored value looks like a batch: in one that is an entry's first batch all is right."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    stored = {"offset before": 1, "offset behind": 9}.get(lie, 4)
    hidden = bytearray(batch(stored, [7]))
    if lie == "crc":
        hidden[-1] ^= 1
    before, outer = batch(0, [1, 2]), batch(2, [3], bytes(hidden))
    data = before + outer + b"".join(batch(offset, [offset]) for offset in range(3, 12))
    at = data.index(bytes(hidden))
    (folder / f"{0:020d}.log").write_bytes(data)
    (folder / f"{0:020d}.index").write_bytes(struct.pack(">ii", 1, 0) + struct.pack(">ii", 8, at))
    start, _ = seek(PartitionFolder.of(folder).segments[0], data, ReadOptions(start_offset=9))
    assert start == (at if lie == "sound" else 0)
