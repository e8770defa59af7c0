"""A live partition answers as a partition of its files does, at each offset, time and size."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import pytest

import kraftlog
from kraftlog.codec.options import READ_COMMITTED, READ_UNCOMMITTED
from kraftlog.disk.local_file import LocalFile
from kraftlog.log_store.errors import OffsetOutOfRangeError
from kraftlog.server.live_log import LiveLog, LivePartition
from kraftlog.server.readable_log import Fetched
from kraftlog.server.segment_batches import SegmentBatches
from kraftlog.server.served_log import ServedLog, ServedPartition
from kraftlog.topics import TopicPartition

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
