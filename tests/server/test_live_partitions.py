"""A live partition answers as a partition of its files does, at each offset, time and size."""

from __future__ import annotations

import asyncio
import queue
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from compacted_log import write_compacted
from kraftlog.codec.options import READ_COMMITTED, READ_UNCOMMITTED
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.waiting import WouldWait, without_waiting
from kraftlog.log_store.errors import OffsetOutOfRangeError
from kraftlog.server.live_log import LiveLog, LivePartition
from kraftlog.server.readable_log import Fetched
from kraftlog.server.segment_batches import Batches, SegmentBatches
from kraftlog.server.served_log import ServedLog, ServedPartition
from kraftlog.tables.found_offset import Found
from kraftlog.tables.partition_ends import PartitionEnds
from kraftlog.topics import TopicPartition
from kraftlog.write import replaced_segments

KEY, LIMIT = TopicPartition("orders", 0), 30.0
LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)


def fill(store: kraftlog.LogStore, dice: random.Random) -> None:
    """Write transactions, some of them at once, across many small segments."""
    producers = [store.producer(f"t{number}") for number in range(3)]
    plain = store.producer()
    is_open = [False] * 3
    for step in range(120):
        number = dice.randrange(4)
        if number == 3:
            plain.send("orders", value="p" * dice.randrange(200), timestamp_ms=1_700_000_000_000 + step)
            plain.flush()
        elif not is_open[number]:
            producers[number].begin_transaction()
            is_open[number] = True
        elif dice.random() < 0.5:
            for _ in range(dice.randrange(1, 4)):
                producers[number].send("orders", value="t" * dice.randrange(200), timestamp_ms=1_700_000_000_000 + step)
            producers[number].flush()  # else an abort would forget them
        else:
            is_open[number] = False
            if dice.random() < 0.5:
                producers[number].commit_transaction()
            else:
                producers[number].abort_transaction()
    producers[0].close()


def answer(partition: LivePartition | ServedPartition, offset: int, size: int, level: str) -> Fetched | None:
    try:
        fetched = partition.fetch(offset, size, level)
    except OffsetOutOfRangeError:
        return None
    return Fetched(bytes(fetched.records), fetched.aborted)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("seed", range(20))
def test_a_live_partition_is_that_of_its_files(tmp_path: Path, seed: int):
    dice = random.Random(seed)
    with kraftlog.LogStore(tmp_path / "log", fsync="close") as store:
        store.create_topic("orders", configs={"internal.segment.bytes": 2048})
        live = LivePartition(store, TopicPartition("orders", 0))
        aborted = 0
        for _ in range(2):  # after the first time with what the live partition has kept
            fill(store, dice)
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
            shutil.copytree(tmp_path / "log", tmp_path / "copy")
            served = ServedLog(kraftlog.open(tmp_path / "copy", topics=["orders"])).topics["orders"].partitions[0]
            assert live.high_watermark == served.high_watermark
            assert live.last_stable_offset == served.last_stable_offset
            assert live.log_start_offset == served.log_start_offset
            for level in LEVELS:
                for offset in range(-1, live.high_watermark + 2):
                    size = dice.choice([1, 300, 1 << 20])
                    one, other = answer(live, offset, size, level), answer(served, offset, size, level)
                    assert (one is None) == (other is None)
                    if one is not None and other is not None:
                        assert one.records[: len(other.records)] == other.records[: len(one.records)]
                        assert bool(one.records) == bool(other.records)
                        if len(one.records) == len(other.records):
                            assert one.aborted == other.aborted
                            aborted += len(one.aborted or ())
                for time in ["earliest", "latest", "max-timestamp", *range(1_700_000_000_000, 1_700_000_000_130, 13)]:
                    assert live.offset_at(time, level) == served.offset_at(time, level)
        assert aborted


def first_offset(partition: LivePartition, offset: int) -> int:
    return int.from_bytes(partition.fetch(offset, 1 << 20, READ_UNCOMMITTED).records[:8], "big")


def test_a_fetch_reads_from_where_the_one_before_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    key, read, starts = TopicPartition("orders", 0), LocalFile.read_into, list[int]()

    def noted(file: LocalFile, target: memoryview, start: int) -> None:
        starts.append(start)
        read(file, target, start)

    monkeypatch.setattr(LocalFile, "read_into", noted)
    with kraftlog.LogStore(tmp_path, fsync="close") as store, store.producer() as producer:
        store.create_topic("orders")
        live, ends = LivePartition(store, key), [0]
        for number in range(6):  # index entries have the last offset of a batch, and lead to the batch before
            for size in (5000, number):
                producer.send("orders", value="v" * size)
            producer.flush()
            starts.clear()
            ends.append(ends[-1] + len(live.fetch(2 * number, 1, READ_COMMITTED).records))
            assert {*starts} == {ends[number]}
        store.parts.partition_of(key).roll()
        assert not live.fetch(12, 1, READ_COMMITTED).records
        producer.send("orders", value="new")
        producer.flush()
        assert first_offset(live, 12) == 12


def test_segments_that_are_removed_meanwhile(tmp_path: Path):
    now = [1_700_000_000_000]
    with kraftlog.LogStore(tmp_path, fsync="close", clock=lambda: now[0]) as store:
        store.create_topic("orders", configs={"internal.segment.bytes": 1024, "retention.ms": 1000})
        live = LivePartition(store, TopicPartition("orders", 0))
        producer = store.producer()
        for _ in range(50):
            producer.send("orders", value="v" * 100)
            producer.flush()
        assert first_offset(live, 0) == 0
        now[0] += 10_000
        producer.send("orders", value="new")
        producer.flush()
        store.apply_retention()
        assert live.log_start_offset > 0
        with pytest.raises(OffsetOutOfRangeError):
            live.fetch(0, 1 << 20, READ_UNCOMMITTED)
        assert first_offset(live, live.log_start_offset) == live.log_start_offset


def test_a_segment_that_is_removed_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A reader is told that the offset is gone, and not that the disk has failed."""
    now = [1_700_000_000_000]
    read = SegmentBatches.read

    def remove_and_read(batches: SegmentBatches, *arguments: int) -> tuple[bytes | memoryview, int]:
        store.apply_retention()
        return read(batches, *arguments)

    with kraftlog.LogStore(tmp_path, fsync="close", clock=lambda: now[0]) as store:
        store.create_topic("orders", configs={"internal.segment.bytes": 1024, "retention.ms": 1000})
        live = LivePartition(store, TopicPartition("orders", 0))
        producer = store.producer()
        for _ in range(50):
            producer.send("orders", value="v" * 100)
            producer.flush()
        now[0] += 10_000
        producer.send("orders", value="new")
        producer.flush()
        monkeypatch.setattr(SegmentBatches, "read", remove_and_read)
        with pytest.raises(OffsetOutOfRangeError):
            live.fetch(0, 1 << 20, READ_UNCOMMITTED)


@pytest.fixture
def compacted(tmp_path: Path) -> Iterator[kraftlog.LogStore]:
    """Return a store with a closed segment, of which a cleaner removes each second batch; all have the same size."""
    with kraftlog.LogStore(tmp_path, fsync="close") as store:
        write_compacted(store, 60)
        with store.producer() as producer:
            producer.send("orders", key="the last segment is not cleaned", value="")
        yield store


def stays(store: kraftlog.LogStore) -> list[int]:
    return kraftlog.open(store.path, topics=["orders"]).records(["offset"]).to_table()["offset"].to_pylist()


def read_from(live: LivePartition, offset: int, end_offset: int) -> list[int]:
    """Return the offsets that a client gets batch by batch."""
    offsets = list[int]()
    while offset < end_offset:
        batch = kraftlog.decode(bytes(live.fetch(offset, 1, READ_UNCOMMITTED).records), columns=["offset"])
        offsets += batch.to_table()["offset"].to_pylist()
        offset = offsets[-1] + 1
    return offsets


def test_a_clean_during_a_fetch_skips_no_record(compacted: kraftlog.LogStore, monkeypatch: pytest.MonkeyPatch):
    """The byte at which it would go on is one of the file before, and that of another record in the one after."""
    live = LivePartition(compacted, KEY)
    begin = read_from(live, 0, 20)[-1] + 1
    read = SegmentBatches.read

    def clean_first(batches: SegmentBatches, *asked: int) -> Batches:
        monkeypatch.undo()
        compacted.clean(["orders"])
        return read(batches, *asked)

    monkeypatch.setattr(SegmentBatches, "read", clean_first)
    assert read_from(live, begin, 61) == [offset for offset in stays(compacted) if offset >= begin]
    assert len(stays(compacted)) < 40


def test_what_was_read_while_segments_changed_is_read_again(compacted: kraftlog.LogStore):
    partition, counts = compacted._open_partition(KEY), list[int]()

    def read() -> int:
        counts.append(len(counts))
        if len(counts) == 1:
            compacted.clean(["orders"])
        return len(counts)

    assert partition.while_unchanged(read) == 2


def test_a_fetch_waits_while_a_segment_is_replaced(compacted: kraftlog.LogStore, monkeypatch: pytest.MonkeyPatch):
    """An event loop may not, and the last segment need not."""
    live = LivePartition(compacted, KEY)
    begin = read_from(live, 0, 20)[-1] + 1
    found = queue.Queue[list[int]]()

    def read() -> None:
        assert read_from(live, 60, 61) == [60]
        with pytest.raises(WouldWait), without_waiting(1 << 20):
            live.fetch(begin, 1, READ_UNCOMMITTED)
        found.put([])
        found.put(read_from(live, begin, 61))

    build = replaced_segments._write_index_files

    def read_meanwhile(*arguments: Any) -> None:
        reader.start()
        assert found.get(timeout=LIMIT) == []
        with pytest.raises(queue.Empty):
            found.get(timeout=0.1)
        build(*arguments)

    monkeypatch.setattr(replaced_segments, "_write_index_files", read_meanwhile)
    reader = threading.Thread(target=read)
    compacted.clean(["orders"])
    assert found.get(timeout=LIMIT) == [offset for offset in stays(compacted) if offset >= begin]
    reader.join(LIMIT)


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_an_offset_for_a_time_while_segments_change(
    compacted: kraftlog.LogStore, monkeypatch: pytest.MonkeyPatch, policy: str
):
    compacted.alter_configs("orders", {"cleanup.policy": policy})
    live = LivePartition(compacted, KEY)
    at = PartitionEnds.at

    def change_first(*asked: Any) -> Found:
        monkeypatch.undo()
        if policy == "compact":
            compacted.clean(["orders"])
        else:
            compacted.delete_records("orders", 0, 60)
            compacted.apply_retention()
        return at(*asked)

    monkeypatch.setattr(PartitionEnds, "at", change_first)
    offset = live.offset_at(0, READ_UNCOMMITTED).offset
    assert offset == (1 if policy == "compact" else 60)


def test_a_wait_that_has_ended_leaves_nothing(tmp_path: Path):
    async def wait() -> None:
        log = LiveLog(store, asyncio.get_running_loop(), auto_create_partitions=0)
        one, other = (log.growth([TopicPartition("orders", 0)]) for _ in range(2))
        one.cancel()
        await asyncio.sleep(0)
        with store.producer() as producer:
            producer.send("orders", value="v")
        await other
        await asyncio.sleep(0)
        assert log._growing == {}
        log.close()

    with kraftlog.LogStore(tmp_path) as store:
        store.create_topic("orders")
        asyncio.run(wait())
