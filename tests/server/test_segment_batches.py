"""Batches that were checked are sent without a second check as long as their file is the same, and never otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.disk.file_bytes import FileBytes
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.waiting import WouldWait, without_waiting
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.layout.segment import Segment
from kraftlog.server.segment_batches import Batches, SegmentBatches

BATCH = 100_000  # bytes of a value, each in a batch of its own
COUNT = 6  # batches, two in each segment
END = 1 << 60
MIB = 1 << 20


def batch(offset: int, size: int) -> bytes:
    rows = pa.table({"value": [os.urandom(size)]})
    return bytes(kraftlog.encode(rows, base_offset=offset, max_batch_bytes=8 * MIB))


def segment_of(folder: Path, *batches: tuple[int, int]) -> Path:
    """Write a segment with batches of given offsets and sizes."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{batches[0][0]:020d}.log"
    path.write_bytes(b"".join(batch(*one) for one in batches))
    return path


@pytest.fixture
def segments(tmp_path: Path) -> list[Segment]:
    for first in range(0, COUNT, 2):
        segment_of(tmp_path / "orders-0", (first, BATCH), (first + 1, BATCH))
    return list(PartitionFolder.of(tmp_path / "orders-0").segments)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Return the positions of large reads; all files are in the page cache, and ``preadv`` need not say so."""
    read, found = os.preadv, list[int]()

    def noted(file: int, buffers: list[memoryview], start: int, _: int = 0) -> int:
        if len(buffers[0]) >= BATCH:
            found.append(start)
        return read(file, buffers, start)

    monkeypatch.setattr(os, "preadv", noted)
    monkeypatch.setattr(os, "RWF_NOWAIT", 8, raising=False)
    return found


def in_place(batches: SegmentBatches, offset: int, max_bytes: int = MIB, end_offset: int = END) -> Batches:
    """Read as the server does, in the event loop or else in a thread."""
    with suppress(WouldWait), without_waiting(1 << 30):
        return batches.read(offset, max_bytes, end_offset)
    return batches.read(offset, max_bytes, end_offset)


def bytes_of(found: Batches) -> bytes:
    assert isinstance(found.records, FileBytes)
    with found.records as records:
        return records[:]


def overwrite(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (before,) = file.read(1)
        file.seek(position)
        file.write(bytes([before ^ 1]))


def test_the_same_is_read_once(segments: list[Segment], reads: list[int]):
    batches = SegmentBatches(segments)
    for _ in range(3):
        found = in_place(batches, 2)
        assert bytes_of(found) == segments[1].path.read_bytes()
        assert found.last_offset == 3
    assert reads == [0]


def test_checked_bytes_that_are_no_longer_in_memory_go_to_a_thread(
    segments: list[Segment], monkeypatch: pytest.MonkeyPatch
):
    batches = SegmentBatches(segments)
    in_place(batches, 2)

    def wait(*_: object) -> None:
        raise WouldWait

    monkeypatch.setattr(LocalFile, "check_cached", wait)
    assert isinstance(in_place(batches, 2).records, memoryview)


@pytest.mark.parametrize("asked", [(2, MIB - 1, END), (3, MIB, END), (2, MIB, 4)])
def test_what_was_not_asked_before_is_read(segments: list[Segment], reads: list[int], asked: tuple[int, int, int]):
    batches = SegmentBatches(segments)
    in_place(batches, 2)
    assert in_place(batches, *asked).last_offset == 3
    assert len(reads) == 2


def test_batches_before_another_end(segments: list[Segment]):
    """As when the last stable offset grows."""
    batches = SegmentBatches(segments)
    assert [in_place(batches, 2, MIB, end).last_offset for end in (3, 4, 3)] == [2, 3, 2]


def test_a_file_that_was_written_again_is_read_again(segments: list[Segment], reads: list[int]):
    batches = SegmentBatches(segments)
    whole = bytes_of(in_place(batches, 2))
    path = segments[1].path
    assert isinstance(path, Path)
    overwrite(path, 50_000)
    os.utime(path, ns=(0, 0))  # a clock that is too coarse shows no change
    with pytest.raises(CorruptRecordError):
        in_place(batches, 2)
    replaced = path.with_suffix(".new")
    replaced.write_bytes(whole)
    os.utime(replaced, ns=(0, 0))
    replaced.replace(path)
    del reads[:]
    assert bytes_of(in_place(batches, 2)) == whole
    assert reads == [0]


@pytest.mark.parametrize("is_checked_ahead", [False, True])
def test_a_reader_in_order_goes_on_in_a_file_that_a_cleaner_has_replaced(tmp_path: Path, is_checked_ahead: bool):
    """The byte at which it would go on is that of another batch there."""
    path = segment_of(tmp_path / "log-0", *((offset, BATCH) for offset in range(8)))
    batches = SegmentBatches(list(PartitionFolder.of(path.parent).segments))
    two = 2 * BATCH + 1000
    first = in_place(batches, 0, two) if is_checked_ahead else batches.read(0, two, END)
    assert first.last_offset == 1
    cleaned = segment_of(tmp_path / "cleaned-0", *((2 * offset, BATCH) for offset in range(8)))
    cleaned.replace(path)
    if is_checked_ahead:
        assert first.check_next is not None
        first.check_next()
        assert in_place(batches, 2, two).last_offset == 2
    assert batches.read(2, two, END).last_offset == 2


def test_a_reader_in_order_finds_all_checked_by_a_thread(segments: list[Segment], reads: list[int]):
    batches = SegmentBatches(segments)
    offset, found = 0, list[bytes]()
    max_bytes = BATCH + 1000
    while offset < COUNT:
        one = in_place(batches, offset, max_bytes, COUNT)
        found.append(bytes_of(one))
        assert len(reads) == 1
        assert one.last_offset == offset
        offset += 1
        if one.check_next is not None:
            reads.clear()
            one.check_next()
            assert len(reads) == 1
    assert one.check_next is None
    assert b"".join(found) == b"".join(segment.path.read_bytes() for segment in segments)
    again = in_place(batches, 2, max_bytes, COUNT)
    assert again.check_next is None  # it is known


def test_a_check_of_damage_leaves_it_to_the_reader(segments: list[Segment]):
    batches = SegmentBatches(segments)
    path = segments[1].path
    assert isinstance(path, Path)
    overwrite(path, 50_000)
    check = in_place(batches, 0).check_next
    assert check is not None
    check()
    assert not batches.faults
    with pytest.raises(CorruptRecordError):
        in_place(batches, 2)
    path.unlink()
    check()
    with pytest.raises(FileNotFoundError):
        in_place(batches, 2)


def test_a_file_that_changes_while_it_is_checked(segments: list[Segment], monkeypatch: pytest.MonkeyPatch):
    batches = SegmentBatches(segments)
    path = segments[1].path
    assert isinstance(path, Path)
    read = LocalFile.read_into

    def read_and_change(file: LocalFile, target: memoryview, start: int) -> None:
        read(file, target, start)
        overwrite(path, 50_000)
        os.utime(path, ns=(0, 0))

    with monkeypatch.context() as changing:
        changing.setattr(LocalFile, "read_into", read_and_change)
        assert in_place(batches, 2).last_offset == 3
    with pytest.raises(CorruptRecordError):
        in_place(batches, 2)


@pytest.mark.parametrize(("size", "is_sent"), [(60_000, False), (70_000, True), (2_000_000, True), (2_200_000, False)])
def test_how_many_bytes_are_sent_from_their_file(tmp_path: Path, size: int, is_sent: bool):
    segment_of(tmp_path / "orders-0", (0, size))
    batches = SegmentBatches(PartitionFolder.of(tmp_path / "orders-0").segments)
    for _ in range(2):
        found = in_place(batches, 0, 8 * MIB)
        assert isinstance(found.records, FileBytes) is is_sent
        assert len(found.records) > size
