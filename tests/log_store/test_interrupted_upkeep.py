"""Ctrl-C at lines of what keeps a store in order: cleaning, retention, topics, and opening behind a crash.

The same store goes on; what it should have done is done when it is asked for again, and nothing else is lost.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from interrupts import chosen_lines, interrupted

import kraftlog
from kraftlog import LogStore
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.errors import StorageError, TopicExistsError
from kraftlog.write.partition_log import PartitionLog
from standing_clock import StandingClock

COMPACT = {"cleanup.policy": "compact", "internal.segment.bytes": 1500}
Rows = list[tuple[int, bytes, bytes]]
RETENTION = {"retention.bytes": 1500, "internal.segment.bytes": 1500}


def opener(path: Path) -> Callable[[], LogStore]:
    numbers, clock = iter(range(1, 1000)), StandingClock()

    def opened() -> LogStore:
        return LogStore(path, clock=clock, new_uuid=lambda: next(numbers).to_bytes(16), sync_threads=0)

    return opened


def fill(store: LogStore) -> None:
    """Write three values of each key, each round in a transaction, and an aborted one."""
    with store.producer("etl") as producer:
        for number in range(4):
            producer.begin_transaction()
            values = [f"{number} {each} " + "x" * 90 for each in range(6)]
            producer.send("t", pa.table({"key": [f"k{each}" for each in range(6)], "value": values}))
            producer.abort_transaction() if number == 2 else producer.commit_transaction()


def rows(path: Path, topic: str = "t") -> Rows:
    log = kraftlog.open(path, topics=[topic])
    table = log.records(["offset", "key", "value"], isolation_level="read_committed", strict=True).to_table()
    return list(zip(*(table[name].to_pylist() for name in ("offset", "key", "value")), strict=True))


def last_of_keys(found: Rows) -> Rows:
    return sorted({key: (offset, key, value) for offset, key, value in found}.values())


def with_another_row(store: LogStore, before: Rows, place: str) -> Rows:
    """Write a row behind those that are there; return them all."""
    with store.producer() as producer:
        producer.send("t", pa.table({"key": ["k1"], "value": ["later"]}))
    found = rows(store.path)
    assert found[:-1] == before, place
    return found


def test_cleaning(tmp_path: Path, pytestconfig: pytest.Config):
    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        with opened() as store:
            store.create_topic("t", configs=COMPACT)
            fill(store)
            expected = last_of_keys(rows(store.path))
            place, _ = interrupted(number, KeyboardInterrupt, lambda: store.clean(["t"], roll=True))
            if not place:
                return ""
            assert last_of_keys(rows(store.path)) == expected, place
            store.clean(["t"], roll=True)
            assert rows(store.path) == expected, place
            after = with_another_row(store, expected, place)
        judge(opened, place, after)
        return place

    chosen_lines(pytestconfig, "clean", judged, 4)


def test_retention(tmp_path: Path, pytestconfig: pytest.Config):
    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        with opened() as store:
            store.create_topic("t", configs=RETENTION)
            fill(store)
            before = rows(store.path)
            place, _ = interrupted(number, KeyboardInterrupt, store.apply_retention)
            if not place:
                return ""
            assert before[-6:] == rows(store.path)[-6:], place
            store.apply_retention()
            found = rows(store.path)
            assert 6 <= len(found) < len(before), place
            assert found == before[-len(found) :], place
            after = with_another_row(store, found, place)
        judge(opened, place, after)
        return place

    chosen_lines(pytestconfig, "retention", judged, 4)


def test_a_topic_that_is_created(tmp_path: Path, pytestconfig: pytest.Config):
    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        with opened() as store:
            place, _ = interrupted(number, KeyboardInterrupt, lambda: store.create_topic("t", 2, COMPACT))
            if not place:
                return ""
            if "t" not in store.topics:
                store.create_topic("t", 2, COMPACT)
            assert store.topics["t"].partitions == 2
            fill(store)
            after = rows(store.path)
            assert len(after) == 18, place
        judge(opened, place, after)
        return place

    chosen_lines(pytestconfig, "create", judged, 4)


def test_a_topic_that_is_deleted(tmp_path: Path, pytestconfig: pytest.Config):
    """One of its name that is created then has no records, and no group skips any."""

    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        with opened() as store:
            store.create_topic("t", 2)
            store.create_topic("u")
            fill(store)
            with store.consumer("g") as consumer:
                consumer.subscribe(["t"])
                consumer.poll()
                consumer.commit()
            place, _ = interrupted(number, KeyboardInterrupt, lambda: store.delete_topic("t"))
            if not place:
                return ""
            if "t" in store.topics:
                store.delete_topic("t")
            store.create_topic("t")
            with store.producer() as producer:
                producer.send("t", pa.table({"key": ["new"], "value": ["row"]}))
            with store.consumer("g") as consumer:
                consumer.subscribe(["t"])
                assert consumer.poll()["value"].to_pylist() == [b"row"], place
            after = rows(store.path)
            assert after == [(0, b"new", b"row")], place
        judge(opened, place, after)
        return place

    chosen_lines(pytestconfig, "delete", judged, 4)


def test_opening_behind_a_crash(tmp_path: Path, pytestconfig: pytest.Config):
    """With a transaction under way, and records that nobody has waited for."""

    def judged(number: int) -> str:
        opened = opener(tmp_path / str(number))
        store = opened()
        store.create_topic("t", configs=COMPACT)
        fill(store)
        expected = rows(store.path)
        producer = store.producer("open")
        producer.begin_transaction()
        producer.send("t", pa.table({"key": ["k1"], "value": ["open"]}))
        store._abandon()
        place, _ = interrupted(number, KeyboardInterrupt, opened)
        if not place:
            return ""
        judge(opened, place, expected)
        return place

    chosen_lines(pytestconfig, "open", judged, 4)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_written", [True, False])
def test_a_topic_is_known_as_the_log_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool):
    """Behind an interrupt it is there if its records are; it is never created twice."""
    with opener(tmp_path)() as store:
        store.create_topic("other")
        with monkeypatch.context() as patch:
            append = Cluster._append
            patch.setattr(Cluster, "_append", lambda *some: (append(*some), interrupt()))
            if not is_written:
                patch.setattr(PartitionLog, "_take", interrupt)  # in the append, which is cut off again
            with pytest.raises(KeyboardInterrupt):
                store.create_topic("t", 2)
        assert sorted(store.topics) == ["other", "t"][: 1 + is_written]
        if not is_written:
            store.create_topic("t", 2)
        with pytest.raises(TopicExistsError):
            store.create_topic("t", 2)
        with store.producer() as producer:
            producer.send("t", value="row", partition=1)
    with opener(tmp_path)() as store:
        assert sorted(store.topics) == ["other", "t"]
        assert store.topics["t"].partitions == 2
    table = kraftlog.open(tmp_path).scan("TopicRecord", columns=["name"]).to_table()
    assert sorted(table["name"].to_pylist()) == ["other", "t"]


@pytest.mark.parametrize("is_written", [True, False])
def test_a_producer_id_is_given_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool):
    with opener(tmp_path)() as store:
        with monkeypatch.context() as patch:
            append = Cluster._append
            patch.setattr(Cluster, "_append", lambda *some: (append(*some), interrupt()))
            if not is_written:
                patch.setattr(PartitionLog, "_take", interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.producer()
        ids = {store.producer().producer_id for _ in range(3)}
    with opener(tmp_path)() as store:
        ids.add(store.producer().producer_id)
    assert len(ids) == 4


def test_what_the_disk_refused_stays_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Until the store is opened again: unlike an interrupt, a disk that fails may have lost what was written before."""

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with opener(tmp_path)() as store:
        with monkeypatch.context() as patch:
            patch.setattr(PartitionLog, "_take", fails)
            with pytest.raises(StorageError):
                store.create_topic("t")
        assert "t" not in store.topics
        with pytest.raises(StorageError, match="reopen the log"):
            store.create_topic("t")
    with opener(tmp_path)() as store:
        store.create_topic("t")


@pytest.mark.parametrize("ends", ["clean", "close"])
def test_a_cleaner_that_was_stopped_in_its_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str):
    """The next cleaning, or closing the store, finishes it first; readers see the same before and after."""
    with opener(tmp_path)() as store:
        store.create_topic("t", configs=COMPACT)
        fill(store)
        expected = last_of_keys(rows(store.path))
        with monkeypatch.context() as patch:
            patch.setattr("kraftlog.write.replaced_segments._take_over", interrupt)
            with pytest.raises(KeyboardInterrupt):
                store.clean(["t"], roll=True)
        folder = tmp_path / "t-0"
        assert list(folder.glob("*.swap"))
        assert last_of_keys(rows(store.path)) == expected
        if ends == "clean":
            with store.consumer() as consumer:
                consumer.subscribe(["t"])
                store.clean(["t"])
                assert [row["key"] for row in consumer.poll().to_pylist()] == [key for _, key, _ in expected]
            assert rows(store.path) == expected
            assert not list(folder.glob("*.swap"))
    assert not list(folder.glob("*.swap"))
    judge(opener(tmp_path), ends, rows(tmp_path))


def judge(opened: Callable[[], LogStore], place: str, expected: Rows) -> None:
    """Open a store again, write to it, and look for faults."""
    with opened() as store:
        assert rows(store.path) == expected, place
        with store.producer("etl") as producer, producer.transaction():
            producer.send("t", pa.table({"key": ["k0"], "value": ["reopened"]}))
        assert rows(store.path)[-1][1:] == (b"k0", b"reopened"), place
        assert all(not state.is_pending for state in store.transactional_ids()), place
    assert [fault.message for fault in kraftlog.open(store.path).verify()] == [], place


def test_a_directory_that_cannot_be_read_is_not_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error", str(path))

    opened = opener(tmp_path)
    with opened() as store:
        store.create_topic("t")
    with monkeypatch.context() as patch:
        patch.setattr("kraftlog.write.locked_directory.RecoveryPointFile", fails)
        with pytest.raises(OSError, match="Input/output error"):
            opened()
    with opened() as store:
        assert "t" in store.topics
