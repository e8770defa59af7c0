"""What is on disk when something else is written, or when a call returns: by the steps that a disk is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, Step, io_error
from kraftlog import LogStore
from kraftlog.disk.disk import use_disk
from kraftlog.log_store.errors import StorageError
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.transaction_coordinator import TransactionCoordinator
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog

Opened = Callable[..., LogStore]
STATE, OFFSETS, METADATA = "__transaction_state-0", "__consumer_offsets-0", "__cluster_metadata-0"
STATUS_AT = 2 + 8 + 2 + 4  # behind version, producer id, epoch and timeout of TransactionLogValue
ROWS = pa.table({"value": ["x"]})


def logs(steps: list[Step], *folders: str) -> list[tuple[str, str]]:
    """Return appends to log files of folders, and syncs of them, in order."""
    found = [(step.name, step.path.parent.name) for step in steps if step.path.suffix == ".log"]
    return [each for each in found if each[0] in ("append", "sync") and each[1] in folders]


def statuses(store: LogStore) -> list[int]:
    """Return the statuses of all records of the transaction log."""
    values = kraftlog.open(store.path / STATE).records(["value"]).to_table()["value"].to_pylist()
    return [value[STATUS_AT] for value in values]


def with_offsets(store: LogStore) -> None:
    """Let a group commit offset 1 of a topic."""
    store.create_topic("t")
    store.create_topic("u")
    with store.producer() as producer:
        producer.send("t", ROWS)
        producer.send("u", ROWS)
    commit(store)


def commit(store: LogStore) -> None:
    with store.consumer("g") as consumer:
        consumer.subscribe(["t"])
        consumer.poll()
        consumer.commit()


def test_offsets_are_on_disk_when_a_commit_returns(opened: Opened, without_waiting: FaultyDisk):
    with opened(offsets_partitions=1) as store:
        with_offsets(store)
        with store.producer() as producer:
            producer.send("t", ROWS)
        before = len(without_waiting.steps)
        commit(store)
        assert logs(without_waiting.steps[before:], OFFSETS)[:2] == [("append", OFFSETS), ("sync", OFFSETS)]


def test_offsets_that_are_not_on_disk_do_not_count(opened: Opened, without_waiting: FaultyDisk):
    with opened(offsets_partitions=1) as store:
        with_offsets(store)
        with store.producer() as producer:
            producer.send("t", ROWS)
        without_waiting.fails = lambda step: (
            io_error() if step.name == "sync" and step.path.parent.name == OFFSETS else None
        )
        with pytest.raises(StorageError):
            commit(store)
        assert {key: each.offset for key, each in store.committed("g").items()} == {("t", 0): 1}
        store._abandon()


def test_offsets_of_a_topic_are_gone_on_disk_before_it(opened: Opened, without_waiting: FaultyDisk):
    with opened(offsets_partitions=1) as store:
        with_offsets(store)
        before = len(without_waiting.steps)
        store.delete_topic("t")
        found = logs(without_waiting.steps[before:], OFFSETS, METADATA)
    assert found[:3] == [("append", OFFSETS), ("sync", OFFSETS), ("append", METADATA)]


@pytest.mark.parametrize("step_name", ["append", "sync"])
@pytest.mark.parametrize("whole_topic", [False, True])
def test_offsets_that_are_not_removed_on_disk_count(
    opened: Opened, without_waiting: FaultyDisk, step_name: str, whole_topic: bool
):
    with opened(offsets_partitions=1) as store:
        with_offsets(store)
        without_waiting.fails = lambda step: (
            io_error() if step.name == step_name and step.path.parent.name == OFFSETS else None
        )
        groups = store._parts.groups
        removes = partial(store.delete_topic, "t") if whole_topic else partial(groups.forget, "g", [("t", 0)])
        with pytest.raises(StorageError):
            removes()
        assert {key: each.offset for key, each in store.committed("g").items()} == {("t", 0): 1}
        assert "t" in store.topics
        store._abandon()


def test_a_commit_while_offsets_are_removed_stays(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    """It is behind the tombstone in the log, which a restart reads in this order."""
    with opened(offsets_partitions=1) as store:
        with_offsets(store)
        groups, sync = store._parts.groups, Partition.sync

        def commits(partition: Partition) -> None:
            monkeypatch.setattr(Partition, "sync", sync)
            groups.commit(GroupMetadata("g"), {("t", 0): OffsetAndMetadata(7)})
            partition.sync()

        monkeypatch.setattr(Partition, "sync", commits)
        groups.forget("g", [("t", 0)])
        assert store.committed("g") == {("t", 0): OffsetAndMetadata(7)}
        store._abandon()
    with opened() as again:
        assert again.committed("g") == {("t", 0): OffsetAndMetadata(7)}


def test_the_states_of_a_transaction_that_others_abort(opened: Opened):
    with opened(transaction_log_partitions=1) as store:
        store.create_topic("t")
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("t", ROWS)
        store.abort_transaction("etl")
        store.flush()
    assert statuses(store) == [0, 1, 3, 5]  # Empty, Ongoing, PrepareAbort, CompleteAbort


def test_a_decision_that_was_interrupted_is_on_disk_before_its_markers(
    opened: Opened, without_waiting: FaultyDisk, monkeypatch: pytest.MonkeyPatch
):
    with opened(transaction_log_partitions=1) as store:
        store.create_topic("t")
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("t", ROWS)

        def interrupted(partition: Partition) -> None:
            if partition.key[0] == "__transaction_state":
                raise KeyboardInterrupt
            sync(partition)

        sync = Partition.sync
        with monkeypatch.context() as patch:
            patch.setattr(Partition, "sync", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.commit_transaction()
        before = len(without_waiting.steps)
        store.producer("etl")  # which completes the commit
        found = logs(without_waiting.steps[before:], STATE, "t-0")
        assert found.index(("sync", STATE)) < found.index(("append", "t-0"))


def test_a_state_that_was_interrupted_before_its_record_is_written(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with opened(transaction_log_partitions=1) as store:
        store.create_topic("t")
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("t", ROWS)
        with monkeypatch.context() as patch:
            patch.setattr(TransactionCoordinator, "_append_state", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.commit_transaction()
        store.producer("etl")  # which completes the commit
    assert statuses(store) == [0, 1, 2, 4, 0]  # Empty, Ongoing, PrepareCommit, CompleteCommit


def test_an_end_that_was_interrupted_before_its_record_is_written(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with opened(transaction_log_partitions=1) as store:
        store.create_topic("t")
        with store.producer("etl") as producer, producer.transaction():
            producer.send("t", ROWS)
        with monkeypatch.context() as patch:
            patch.setattr(TransactionCoordinator, "_append_state", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.flush()
        store.flush()
        assert statuses(store) == [0, 1, 2, 4]  # Empty, Ongoing, PrepareCommit, CompleteCommit


def test_the_data_of_all_partitions_are_on_disk_before_the_decision(opened: Opened, without_waiting: FaultyDisk):
    with opened(transaction_log_partitions=1) as store:
        store.create_topic("t", 3)
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("t", pa.table({"value": ["a", "b", "c"], "partition": [0, 1, 2]}))
        before = len(without_waiting.steps)
        producer.commit_transaction()
        found = logs(without_waiting.steps[before:], STATE, "t-0", "t-1", "t-2")
    assert found[:4] == [("sync", "t-0"), ("sync", "t-1"), ("sync", "t-2"), ("append", STATE)]


@pytest.mark.parametrize("sync_threads", [0, 2])
def test_nothing_is_decided_when_data_do_not_come_to_the_disk(
    opened: Opened, without_waiting: FaultyDisk, sync_threads: int
):
    store = opened(transaction_log_partitions=1, sync_threads=sync_threads)
    store.create_topic("t", 3)
    producer = store.producer("etl")
    producer.begin_transaction()
    producer.send("t", pa.table({"value": ["a", "b", "c"], "partition": [0, 1, 2]}))
    without_waiting.fails = lambda step: io_error() if step.name == "sync" and step.path.parent.name == "t-1" else None
    with pytest.raises(StorageError):
        producer.commit_transaction()
    assert statuses(store) == [0, 1]  # Empty, Ongoing
    store._abandon()


def test_a_folder_goes_from_sight_in_one_step(opened: Opened, without_waiting: FaultyDisk):
    """Else a crash could leave one that has lost the file which says of which topic it was."""
    with opened() as store:
        store.create_topic("t")
        with store.producer() as producer:
            producer.send("t", ROWS)
        before = len(without_waiting.steps)
        store.delete_topic("t")
        found = [(step.name, step.path.name) for step in without_waiting.steps[before:]][-3:]
    doomed = found[0][1]
    assert doomed.startswith("t-0.")
    assert doomed.endswith("-delete")
    assert found == [("rename", doomed), ("sync_folder", "store"), ("remove_tree", doomed)]


def test_markers_that_were_interrupted_are_written_once(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    """Offsets of the transaction count behind them."""

    def interrupted(partition: Partition, *arguments: Any, **options: Any) -> None:
        if partition.key == ("t", 1):
            raise KeyboardInterrupt
        append_marker(partition, *arguments, **options)

    append_marker = Partition.append_marker
    with opened(offsets_partitions=1) as store:
        store.create_topic("t", 2)
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("t", pa.table({"value": ["a", "b"], "partition": [0, 1]}))
        producer.send_offsets_to_transaction({("t", 0): 1}, "g")
        with monkeypatch.context() as patch:
            patch.setattr(Partition, "append_marker", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.commit_transaction()
        assert store.committed("g") == {}
        store.producer("etl")  # which completes the commit
        assert {key: each.offset for key, each in store.committed("g").items()} == {("t", 0): 1}
    for folder in ("t-0", "t-1", OFFSETS):
        kinds = kraftlog.open(store.path / folder).batches(["control_type"])["control_type"].to_pylist()
        assert kinds.count("COMMIT") == 1, folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t-0").mkdir()
    return tmp_path / "t-0"


def batches(first: int, count: int) -> bytes:
    made = [kraftlog.encode(pa.table({"value": ["x" * 90]}), base_offset=first + each) for each in range(count)]
    return b"".join(each.to_pybytes() for each in made)


@pytest.mark.parametrize(
    ("fsync", "is_relied_on", "expected"),
    [
        ("commit", True, ["append", "sync"]),
        ("commit", False, ["append"]),
        ("batch", False, ["append", "sync"] * 3),
        ("close", True, ["append"]),
    ],
)
def test_an_append_waits_for_the_disk(folder: Path, fsync: str, is_relied_on: bool, expected: list[str]):
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), LogOptions(fsync=fsync))
        log.append(batches(0, 1), commit=True)
        before = len(disk.steps)
        log.append(batches(1, 3), commit=is_relied_on)
        assert [name for name, _ in logs(disk.steps[before:], "t-0")] == expected
        log.close()


def test_a_full_segment_is_on_disk_before_the_next_one(folder: Path):
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), LogOptions(segment_bytes=300))
        log.append(batches(0, 1), commit=False)
        before = len(disk.steps)
        log.append(batches(1, 2), commit=False)
        steps = [(step.name, step.path.name) for step in disk.steps[before:] if step.path.suffix == ".log"]
        log.close()
    first, second, *_ = sorted(path.name for path in folder.glob("*.log"))
    assert steps.index(("sync", first)) < min(at for at, (_, name) in enumerate(steps) if name == second)
