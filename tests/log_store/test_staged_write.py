"""Writes into log directories: what they find there, what they refuse, and what they leave."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from written import SMALL, assert_sound, rows, stage, states, topics_of, visible

import kraftlog
from faulty_disk import FaultyDisk
from golden_files import GOLDEN
from growing_log import GrowingPartition
from kraftlog.disk.disk import use_disk
from kraftlog.disk.lock import LogDirectoryLock, LogDirectoryLockedError
from kraftlog.layout.checkpoints import read_leader_epochs, read_offset_checkpoint
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.log_store import staged_write
from kraftlog.log_store.errors import (
    InvalidPartitionsError,
    ReusedTransactionalIdError,
    StorageError,
    UnknownTopicOrPartitionError,
)
from kraftlog.log_store.overwrites import MANIFEST
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.placing import LARGE_BYTES
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.rows import Routing, rows_by_partition
from kraftlog.log_store.staged_write import (
    CommitUnfinishedError,
    abort,
    abort_unfinished,
    begin,
    commit,
    is_repetition,
    recover,
)
from kraftlog.log_store.staging import Stager, StagingOptions, WriteEndedError, read_headers
from kraftlog.log_store.write_id import new_write, write_of_batch


@pytest.fixture(autouse=True)
def without_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_write, "LOCK_PATIENCE", 0.0)


def batches(directory: Path) -> list[dict]:
    columns = ["topic", "partition", "base_offset", "last_offset", "base_sequence", "producer_id", "is_control"]
    columns += ["partition_leader_epoch", "is_transactional"]
    return kraftlog.open(directory, topics=topics_of(directory)).batches(columns).to_pylist()


def test_headers(tmp_path: Path):
    """Transactional batches of one producer, sequences without gaps, and a marker behind them."""
    one = new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["a"] * 40}, {("t", 0): ["b"] * 40, ("t", 1): ["c"]}]))
    for partition, count in ((0, 80), (1, 1)):
        *data, marker = [each for each in batches(tmp_path) if each["partition"] == partition]
        assert [each["base_sequence"] for each in data] == [each["base_offset"] for each in data]
        assert [each["base_offset"] for each in [*data, marker]] == [0, *(each["last_offset"] + 1 for each in data)]
        assert marker["base_offset"] == count
        assert {(each["producer_id"], each["is_transactional"]) for each in [*data, marker]} == {(0, True)}
        assert {each["partition_leader_epoch"] for each in [*data, marker]} == {0}
        assert [each["is_control"] for each in [*data, marker]] == [False] * len(data) + [True]
    assert read_leader_epochs(tmp_path / "t-0" / "leader-epoch-checkpoint") == [(0, 0)]


def test_behind_the_log_of_a_broker(tmp_path: Path):
    shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "log")
    directory = tmp_path / "log"
    before = set(map(str, kraftlog.open(directory / "orders-0").records().to_table().to_pylist()))
    ends = {
        row["partition"]: row["next_offset"]
        for row in kraftlog.open(directory).segments(["topic", "partition", "next_offset"]).to_pylist()
        if row["topic"] == "orders"
    }
    errors = kraftlog.open(directory).errors().to_pylist()
    producers = kraftlog.open(directory).partition_transactions()["producer_id"].to_pylist()
    one = new_write()
    done = commit(directory, one, stage(directory, one, [{("orders", 0): ["x"] * 50, ("orders", 2): ["y"]}]))
    assert {partition: offset for (_, partition), offset in done.items()} == {
        0: ends[0],
        2: ends[2] + 1,
    }  # behind the end of what was left open
    assert kraftlog.open(directory).errors().to_pylist() == errors
    after = set(map(str, kraftlog.open(directory / "orders-0").records().to_table().to_pylist()))
    assert before < after
    assert len(after - before) == 50
    own = [
        row
        for row in kraftlog.open(directory).partition_transactions().to_pylist()
        if row["producer_id"] > max(producers)
    ]
    assert [(row["state"], row["records_count"]) for row in own] == [("committed", 50), ("committed", 1)]
    known = {row["producer_id"] for row in kraftlog.open(directory / "orders-0").producers().to_pylist()}
    assert own[0]["producer_id"] in known


def test_epochs_of_a_log_without_the_file(tmp_path: Path):
    folder = tmp_path / "t-0"
    folder.mkdir()
    first = kraftlog.encode(rows(["a", "b"]), partition_leader_epoch=3).to_pybytes()
    second = kraftlog.encode(rows(["c"]), base_offset=2, partition_leader_epoch=5).to_pybytes()
    (folder / f"{0:020d}.log").write_bytes(first)
    (folder / f"{2:020d}.log").write_bytes(second)
    one = new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["d"]}]))
    assert visible(tmp_path) == {("t", 0): ["a", "b", "c", "d"]}
    assert [each["partition_leader_epoch"] for each in batches(tmp_path)] == [3, 5, 5, 5]
    assert read_leader_epochs(folder / "leader-epoch-checkpoint") == [(3, 0), (5, 2)]


def test_torn_tail_and_empty_segment(tmp_path: Path):
    for tail in (b"", b"\0\0\0\0\0\0\0\x03\0\0"):
        folder = tmp_path / f"{len(tail)}" / "t-0"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(kraftlog.encode(rows(["a"])).to_pybytes())
        (folder / f"{1:020d}.log").write_bytes(tail)
        (folder / f"{1:020d}.index").write_bytes(bytes(80))
        one = new_write()
        commit(folder.parent, one, stage(folder.parent, one, [{("t", 0): ["b", "c"]}]))
        assert visible(folder.parent) == {("t", 0): ["a", "b", "c"]}
        assert_sound(folder.parent)


def test_damage_before_sound_batches_is_refused(tmp_path: Path):
    (tmp_path / "t-0").mkdir()
    data = bytearray(kraftlog.encode(rows(["a" * 50, "b"]), max_batch_records=1).to_pybytes())
    data[80] ^= 1
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(data)
    one = new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["c"]}])
    with pytest.raises(kraftlog.CorruptRecordError, match="there are sound batches after it"):
        commit(tmp_path, one, staged)
    assert (tmp_path / "t-0" / f"{0:020d}.log").read_bytes() == data
    abort(tmp_path, one)
    assert not (tmp_path / ".kraftlog").exists()


def test_damage_behind_the_recovery_point_is_cut(tmp_path: Path):
    """What a broker did not know to be on disk when it died goes, as when it starts again."""
    (tmp_path / "t-0").mkdir()
    data = bytearray(kraftlog.encode(rows(["a" * 50, "b" * 50, "c"]), max_batch_records=1).to_pybytes())
    data[200] ^= 1  # in the second batch
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(data)
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n2\nother 0 5\nt 0 1\n")
    one = new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["d"]}]))
    assert visible(tmp_path) == {("t", 0): ["a" * 50, "d"]}
    assert read_offset_checkpoint(checkpoint).items() >= {("other", 0): 5, ("t", 0): 3}.items()
    assert_sound(tmp_path)


def test_a_partition_of_another_log_directory(tmp_path: Path):
    """The folder of a partition may be a link into the log directory of a broker that runs."""
    one, elsewhere = new_write(), tmp_path / "elsewhere"
    (elsewhere / "t-0").mkdir(parents=True)
    directory = tmp_path / "logs"
    staged = stage(directory, one, [{("t", 0): ["a"]}])
    (directory / "t-0").symlink_to(elsewhere / "t-0")
    with LogDirectoryLock(elsewhere), pytest.raises(LogDirectoryLockedError, match="elsewhere"):
        commit(directory, one, staged)
    commit(directory, one, staged)
    assert visible(directory) == visible(elsewhere) == {("t", 0): ["a"]}


def test_overwrite(tmp_path: Path):
    one, two, three, four = (new_write() for _ in range(4))
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["old"] * 30, ("t", 1): ["old"], ("u", 0): ["other"]}]))
    commit(tmp_path, two, stage(tmp_path, two, [{("t", 0): ["new"]}]), overwrite=True)
    assert visible(tmp_path) == {("t", 0): ["new"], ("u", 0): ["other"]}
    assert [path.name for path in sorted((tmp_path / "t-1").glob("*.log"))] == [f"{2:020d}.log"]
    assert_sound(tmp_path)
    commit(tmp_path, three, stage(tmp_path, three, []), topics={"t": 2})
    assert visible(tmp_path) == {("t", 0): ["new"], ("u", 0): ["other"]}
    stage(tmp_path, four, [])
    commit(tmp_path, four, [], overwrite=True, topics={"t": 2})
    assert visible(tmp_path) == {("u", 0): ["other"]}
    assert_sound(tmp_path)
    five = new_write()
    commit(tmp_path, five, stage(tmp_path, five, [{("t", 1): ["again"]}]))
    assert visible(tmp_path) == {("t", 1): ["again"], ("u", 0): ["other"]}
    (first,) = [each["base_offset"] for each in batches(tmp_path) if each["topic"] == "t" and not each["is_control"]]
    assert first == 4  # behind the first row, and the markers of three writes


def test_overwritten_with_an_open_transaction(tmp_path: Path):
    GrowingPartition(tmp_path, "t").append(2, 7)  # the producer never ends it
    one = new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["new"] * 40}])
    assert len(staged) > 1
    commit(tmp_path, one, staged, overwrite=True)
    assert visible(tmp_path) == {("t", 0): ["new"] * 40}
    assert_sound(tmp_path)
    known = [{state.producer_id for state in read_producer_snapshot(path)} for path in tmp_path.glob("t-0/*.snapshot")]
    assert sorted(known, key=len) == [set(), {8}]  # before what is new, and at the end


def test_behind_an_open_transaction(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    log = GrowingPartition(tmp_path, "t")
    log.append(3)
    log.append(2, 7)
    (tmp_path / ".kafka_cleanshutdown").touch()  # then nobody looks for transactions that were left open
    one, two = new_write(), new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["behind"], ("u", 0): ["seen"]}]))
    (message,) = caplog.messages
    assert f"{tmp_path / 't-0'}: the transaction of producer 7 that began at offset 3 is open" in message
    assert "behind" not in visible(tmp_path)["t", 0]
    caplog.clear()
    commit(tmp_path, two, stage(tmp_path, two, [{("u", 0): ["seen"]}]))
    assert caplog.messages == []


def test_behind_a_transaction_that_was_left_open(tmp_path: Path):
    """As a coordinator does when nobody is there to end it."""
    GrowingPartition(tmp_path, "t").append(2, 7)
    one = new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["behind"]}]))
    assert visible(tmp_path) == {("t", 0): ["behind"]}
    assert_sound(tmp_path)


def test_new_topics_get_their_partitions(tmp_path: Path):
    one = new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 1): ["a"]}]), topics={"t": 3})
    assert sorted(path.name for path in tmp_path.glob("t-*")) == ["t-0", "t-1", "t-2"]
    assert_sound(tmp_path)


def test_a_broker_has_it(tmp_path: Path):
    one = new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["a"]}])
    with LogDirectoryLock(tmp_path):
        for attempt in (lambda: begin(tmp_path, new_write()), lambda: commit(tmp_path, one, staged)):
            with pytest.raises(LogDirectoryLockedError):
                attempt()
    assert not (tmp_path / "t-0").exists()
    commit(tmp_path, one, staged)
    assert visible(tmp_path) == {("t", 0): ["a"]}


def test_an_abort_beside_a_broker(tmp_path: Path):
    """What a write has staged hinders the broker's next start."""
    one, two = new_write(), new_write()
    stage(tmp_path, one, [{("t", 0): ["a"]}])
    stage(tmp_path, two, [{("t", 0): ["b"]}])
    (two.folder(tmp_path) / MANIFEST).touch()
    with LogDirectoryLock(tmp_path):
        abort(tmp_path, one)
        abort(tmp_path, two)
        assert not one.folder(tmp_path).exists()
        assert two.folder(tmp_path).exists()


def test_what_could_not_be_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = write_of_batch("a", 0)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        for _ in range(2):
            stage(tmp_path, one, [{("t", 0): ["a"]}])
            abort(tmp_path, one)
    assert len(list((tmp_path / ".kraftlog").iterdir())) == 2
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["a"]}]))
    assert visible(tmp_path) == {("t", 0): ["a"]}
    assert_sound(tmp_path)


def test_two_writes_at_a_time(tmp_path: Path):
    one, two = new_write(), new_write()
    staged = [stage(tmp_path, each, [{("t", 0): [each.name] * 3}]) for each in (one, two)]
    commit(tmp_path, two, staged[1])
    assert (tmp_path / ".kraftlog").exists()
    commit(tmp_path, one, staged[0])
    assert visible(tmp_path) == {("t", 0): [two.name] * 3 + [one.name] * 3}
    assert_sound(tmp_path)


def test_what_is_not_committed_is_not_seen(tmp_path: Path):
    one, two = new_write(), new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["a"]}]))
    stage(tmp_path, two, [{("t", 0): ["b"], ("new", 0): ["c"]}])
    assert visible(tmp_path, "read_uncommitted") == {("t", 0): ["a"]}
    assert kraftlog.open(tmp_path).errors()["error"].to_pylist() == ["stops_broker"]  # until it is ended
    abort(tmp_path, two)
    assert_sound(tmp_path)
    abort(tmp_path, two)


def test_an_ended_write_cannot_be_committed(tmp_path: Path):
    one, two = new_write(), new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["a"]}])
    stager = Stager(begin(tmp_path, two), SMALL, task=0)
    assert abort_unfinished(tmp_path) == sorted([one.name, two.name])
    with pytest.raises(WriteEndedError, match="its folder is gone"):
        commit(tmp_path, one, staged)
    with pytest.raises(WriteEndedError, match="its folder is gone"):
        Stager(one.folder(tmp_path), SMALL, task=1)
    with pytest.raises(FileNotFoundError):
        stager.write("t", 0, rows(["b"] * 200))
    begin(tmp_path, one)
    with pytest.raises(WriteEndedError, match="its file is gone"):
        commit(tmp_path, one, staged)
    assert visible(tmp_path) == {}


@pytest.mark.parametrize("change", [-1, 1])
def test_a_staged_file_of_another_size_is_refused(tmp_path: Path, change: int):
    """Such as one that a file system has not kept whole."""
    one = new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["a"]}, {("t", 0): ["b"]}])
    path = one.folder(tmp_path) / staged[1].path
    data = path.read_bytes()
    path.write_bytes(data[:change] if change < 0 else data + b"x")
    with pytest.raises(WriteEndedError, match=f"expected {len(data)} bytes, found {len(data) + change}"):
        commit(tmp_path, one, staged)
    assert visible(tmp_path, "read_uncommitted") == {}


def test_a_staged_file_is_appended_once(tmp_path: Path):
    """As the batches of any producer: what the partition has already is not written again."""
    one = new_write()
    (file,) = stage(tmp_path, one, [{("t", 0): ["a"]}])
    path = one.folder(tmp_path) / file.path
    with kraftlog.LogStore(tmp_path) as store:
        store.create_topic("t")
        partition = store._open_partition(("t", 0))
        for _ in range(2):
            assert partition.append_staged(path, read_headers(path), Stamp(7, 0, 0), timestamp_ms=1) == 0
        assert partition.next_offset == 1


def unfinished(patch: pytest.MonkeyPatch, step: str, name: str = "no space left", at: int = 0) -> None:
    """Let a step of partitions fail, from its n-th time on."""
    done, made = 0, getattr(Partition, step)

    def fails(self: Partition, *arguments: object, **options: object) -> object:
        nonlocal done
        done += 1
        if done > at:
            raise StorageError(name)
        return made(self, *arguments, **options)

    patch.setattr(Partition, step, fails)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_decided_write_is_not_aborted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool):
    one, two = new_write(), new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["old"]}]))
    staged = stage(tmp_path, two, [{("t", 0): ["a"]}])
    with monkeypatch.context() as patch:
        unfinished(patch, "append_marker")
        with pytest.raises(CommitUnfinishedError, match=r"is decided, but not finished \(no space left\)"):
            commit(tmp_path, two, staged, overwrite=overwrite)
    assert visible(tmp_path) == {} if overwrite else {("t", 0): ["old"]}
    assert (two.folder(tmp_path) / MANIFEST).exists() == overwrite
    abort(tmp_path, two)
    recover(tmp_path)
    assert visible(tmp_path) == {("t", 0): ["a"] if overwrite else ["old", "a"]}
    assert states(tmp_path) == {"committed"}
    assert_sound(tmp_path)


def test_what_was_to_be_overwritten_is_deleted_by_the_next_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = new_write(), new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["old"], ("t", 1): ["old"]}]))
    staged = stage(tmp_path, two, [{("t", 0): ["a"]}])
    with monkeypatch.context() as patch:
        unfinished(patch, "delete_before", at=1)
        with pytest.raises(CommitUnfinishedError, match=r"is decided, but not finished"):
            commit(tmp_path, two, staged, overwrite=True)
    assert visible(tmp_path) == {("t", 1): ["old"]}
    with use_disk(FaultyDisk()) as disk, kraftlog.LogStore(tmp_path, sync_threads=0) as store:
        steps = [(step.name, step.path.parent.name) for step in disk.steps if ".log" in step.path.suffixes]
        consumer = store.consumer()
        consumer.assign([("t", 0), ("t", 1)])
        assert consumer.position() == {("t", 0): 2, ("t", 1): 2}  # behind the old rows and their markers
    assert steps.index(("unlink", "t-1")) < min(steps.index(("append", folder)) for folder in ("t-0", "t-1"))
    assert visible(tmp_path) == {("t", 0): ["a"]}
    recover(tmp_path)
    assert (tmp_path / ".kraftlog").exists()
    assert abort_unfinished(tmp_path) == []
    assert_sound(tmp_path)


def test_a_producer_whose_rows_are_overwritten_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its transaction, which nobody has ended, is gone: no marker of it comes behind the new rows."""
    GrowingPartition(tmp_path, "t").append(2, 7)
    (tmp_path / ".kafka_cleanshutdown").touch()  # then nobody looks for transactions that were left open
    one = new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["new"]}])
    with monkeypatch.context() as patch:
        unfinished(patch, "delete_before")
        with pytest.raises(CommitUnfinishedError):
            commit(tmp_path, one, staged, overwrite=True)
    abort(tmp_path, one)
    assert visible(tmp_path) == {("t", 0): ["new"]}
    assert [each["producer_id"] for each in batches(tmp_path)] == [8, 8]  # the rows and their marker
    assert_sound(tmp_path)


def test_what_is_to_be_overwritten_stays_until_the_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = new_write(), new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["old"]}]))
    staged = stage(tmp_path, two, [{("t", 0): ["new"]}])
    with monkeypatch.context() as patch:
        unfinished(patch, "append_records", at=2)  # behind those of the producer and of the partitions
        with pytest.raises(CommitUnfinishedError):
            commit(tmp_path, two, staged, overwrite=True)
    abort(tmp_path, two)
    assert visible(tmp_path) == {("t", 0): ["old"]}
    assert_sound(tmp_path)


def test_a_decision_that_may_not_be_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = new_write(), new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["a"]}])
    with monkeypatch.context() as patch:
        unfinished(patch, "sync", "Input/output error", at=2)  # behind those of the id and of the data
        with pytest.raises(CommitUnfinishedError, match=r"may be decided, or not \(Input/output error\); do not"):
            commit(tmp_path, one, staged)
    abort(tmp_path, one)
    commit(tmp_path, two, stage(tmp_path, two, [{("t", 0): ["b"]}]))
    assert visible(tmp_path) == {("t", 0): ["a", "b"]}
    assert_sound(tmp_path)


def test_what_fails_before_the_decision_is_not_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = new_write(), new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["a"], ("u", 0): ["b"]}])
    with monkeypatch.context() as patch:
        unfinished(patch, "append_staged", at=1)
        with pytest.raises(StorageError, match="no space left"):
            commit(tmp_path, one, staged)
    assert visible(tmp_path) == {}
    commit(tmp_path, two, stage(tmp_path, two, [{("t", 0): ["c"]}]))
    commit(tmp_path, one, staged)
    assert visible(tmp_path) == {("t", 0): ["c", "a"], ("u", 0): ["b"]}
    assert_sound(tmp_path)


def test_a_partition_is_gone_before_a_decided_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = new_write(), new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["a"], ("u", 0): ["b"]}])
    with monkeypatch.context() as patch:
        unfinished(patch, "append_marker")
        with pytest.raises(CommitUnfinishedError):
            commit(tmp_path, one, staged)
    shutil.rmtree(tmp_path / "t-0")
    recover(tmp_path)
    assert visible(tmp_path) == {("u", 0): ["b"]}
    abort(tmp_path, one)
    commit(tmp_path, two, stage(tmp_path, two, [{("t", 0): ["c"]}]))
    assert visible(tmp_path) == {("t", 0): ["c"], ("u", 0): ["b"]}
    assert_sound(tmp_path)


def test_batches_of_a_transactional_id(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    def write_batch(transactional_id: str, batch_id: int, value: str) -> bool:
        one = write_of_batch(transactional_id, batch_id)
        return commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): [value]}])) is not None

    assert write_batch("a", 0, "a0")
    assert write_batch("a", 1, "a1")
    assert caplog.messages == []
    assert not write_batch("a", 1, "a1, again")
    assert not write_batch("a", 0, "a0, again")
    dropped = "batch {} of transactional id a was committed before; its staged rows are dropped"
    assert caplog.messages == [f"{tmp_path}: {dropped.format(batch_id)}" for batch_id in (1, 0)]
    assert write_batch("b", 0, "b0")
    assert write_batch("a", 5, "a5")
    assert visible(tmp_path) == {("t", 0): ["a0", "a1", "b0", "a5"]}
    with kraftlog.LogStore(tmp_path) as store:
        offsets = {group: store.committed(group) for group in store.groups()}
        assert {each.transactional_id: each.producer_id for each in store.transactional_ids()} == {"a": 0, "b": 1000}
    assert {group: {key: each.offset for key, each in known.items()} for group, known in offsets.items()} == {
        "a": {("kraftlog-batches", 0): 6},
        "b": {("kraftlog-batches", 0): 1},
    }
    assert [is_repetition(tmp_path, write_of_batch("a", number)) for number in (4, 5, 6)] == [True, True, False]
    assert not is_repetition(tmp_path, write_of_batch("c", 0))
    assert_sound(tmp_path)
    with pytest.raises(ValueError, match="batch_id -1"):
        write_of_batch("a", -1)
    with pytest.raises(ValueError, match="expected a nonempty"):
        write_of_batch("", 0)


def test_a_zombie_is_fenced(tmp_path: Path):
    """What an earlier run of the same transactional id left goes with the commit of the next one."""
    old, new, other = write_of_batch("a", 3), write_of_batch("a", 4), write_of_batch("b", 3)
    zombie = stage(tmp_path, old, [{("t", 0): ["zombie"]}])
    kept = stage(tmp_path, other, [{("t", 0): ["other"]}])
    commit(tmp_path, new, stage(tmp_path, new, [{("t", 0): ["new"]}]))
    assert commit(tmp_path, old, zombie) is None
    commit(tmp_path, other, kept)
    assert visible(tmp_path) == {("t", 0): ["new", "other"]}
    assert_sound(tmp_path)


def test_a_zombie_removes_only_what_is_behind_it(tmp_path: Path):
    """A driver that repeats an old batch leaves alone what the next ones are at."""
    first, zombie, live, later = (write_of_batch("a", number) for number in (8, 9, 10, 11))
    never = write_of_batch("a", 7)
    stage(tmp_path, never, [{("t", 0): ["never"]}])
    commit(tmp_path, first, stage(tmp_path, first, [{("t", 0): ["8"]}]))
    assert not never.folder(tmp_path).exists()
    commit(tmp_path, zombie, stage(tmp_path, zombie, [{("t", 0): ["9"]}]))
    under_way = {each: stage(tmp_path, each, [{("t", 0): [str(each.batch_id)]}]) for each in (live, later)}
    for old in (zombie, first):
        assert commit(tmp_path, old, stage(tmp_path, old, [{("t", 0): ["zombie"]}])) is None
        assert not old.folder(tmp_path).exists()
    assert commit(tmp_path, live, under_way[live]) is not None
    assert commit(tmp_path, later, under_way[later]) is not None
    assert visible(tmp_path) == {("t", 0): ["8", "9", "10", "11"]}
    assert_sound(tmp_path)


@pytest.mark.parametrize("batch_id", [0, 3, 4, 9])
def test_a_transactional_id_of_another_query(tmp_path: Path, batch_id: int):
    """A new checkpoint numbers batches anew: they are refused, not taken for repetitions that can be dropped."""
    for number in range(4):
        one = write_of_batch("etl", number, "query 1")
        commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): [f"{number}"]}]))
    other = write_of_batch("etl", batch_id, "query 2")
    staged = stage(tmp_path, other, [{("t", 0): ["other"]}])
    with pytest.raises(ReusedTransactionalIdError, match=f"batch {batch_id} is of query query 2"):
        commit(tmp_path, other, staged)
    with pytest.raises(ReusedTransactionalIdError):
        is_repetition(tmp_path, other)
    abort(tmp_path, other)
    same = write_of_batch("etl", 3, "query 1")
    assert is_repetition(tmp_path, same)
    assert commit(tmp_path, same, stage(tmp_path, same, [{("t", 0): ["again"]}])) is None
    assert visible(tmp_path) == {("t", 0): ["0", "1", "2", "3"]}
    assert_sound(tmp_path)


def test_idle_producers_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As Kafka forgets them, after a day; else each query would make the snapshots longer."""
    for number in range(3):
        monkeypatch.setattr(time, "time_ns", lambda number=number: number * 64_800 * 10**9)
        one = write_of_batch(f"query {number}", 0)
        commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): [str(number)]}]))
    (path,) = (tmp_path / "t-0").glob(f"{6:020d}.snapshot")
    assert {state.producer_id for state in read_producer_snapshot(path)} == {1000, 2000}
    assert_sound(tmp_path)


def files(directory: Path) -> int:
    return sum(path.is_file() for path in directory.rglob("*"))


def test_batches_leave_no_files(tmp_path: Path):
    counts = []
    for number in range(12):
        one = write_of_batch("query", number)
        commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["a"], ("t", 1): ["b"]}], StagingOptions()))
        counts.append(files(tmp_path))
    assert len(set(counts[2:])) == 1
    (state,) = kraftlog.open(tmp_path).transactional_ids().to_pylist()
    assert (state["producer_id"], state["status"]) == (0, "CompleteCommit")


def test_steps_of_a_commit_do_not_grow(tmp_path: Path):
    """Neither what is read nor what is written depends on how many commits there were before."""
    seen = []
    with use_disk(FaultyDisk()) as disk:
        for number in range(60):
            one = write_of_batch("query", number)
            staged = stage(tmp_path, one, [{("t", 0): ["a"], ("t", 1): ["b"]}], StagingOptions())
            before = len(disk.steps)
            commit(tmp_path, one, staged, topics={"t": 2})
            seen.append([(step.name, step.path.suffix) for step in disk.steps[before:]])
    assert sorted(seen[3]) == sorted(seen[-1])


def test_large_files_are_renamed_and_small_ones_copied(tmp_path: Path):
    options = StagingOptions(max_batch_bytes=1 << 16)
    one, two, three = new_write(), new_write(), new_write()
    large = ["x" * 1000] * (LARGE_BYTES // 1000)
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["first"]}], options))
    staged = stage(tmp_path, two, [{("t", 0): large}, {("t", 0): ["small"]}], options)
    inodes = [(two.folder(tmp_path) / file.path).stat().st_ino for file in staged]
    commit(tmp_path, two, staged)
    logs = sorted((tmp_path / "t-0").glob("*.log"))
    assert [path.name for path in logs] == [f"{0:020d}.log", f"{2:020d}.log"]
    assert [path.stat().st_ino in inodes for path in logs] == [False, True]
    commit(tmp_path, three, stage(tmp_path, three, [{("t", 0): ["last"]}], options))
    assert visible(tmp_path) == {("t", 0): ["first", *large, "small", "last"]}
    assert_sound(tmp_path)


def test_sizes_of_segments(tmp_path: Path):
    one, two = new_write(), new_write()
    commit(
        tmp_path,
        one,
        stage(tmp_path, one, [{("t", 0): ["a"]}]),
        options=StagingOptions(max_batch_bytes=200, segment_bytes=1 << 20),
    )
    commit(
        tmp_path,
        two,
        stage(tmp_path, two, [{("u", 0): ["a"]}]),
        options=StagingOptions(max_batch_bytes=200, segment_bytes=2000),
    )
    with kraftlog.LogStore(tmp_path) as store:
        assert {name: topic.segment_bytes for name, topic in store.topics.items()} == {"t": 1 << 20, "u": 2000}


def test_partitions_that_a_topic_has_not(tmp_path: Path):
    one, two = new_write(), new_write()
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["a"]}]))
    staged = stage(tmp_path, two, [{("u", 0): ["b"], ("t", 1): ["b"]}])
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 't' has 1 partitions, and no 1"):
        commit(tmp_path, two, staged)
    abort(tmp_path, two)
    assert visible(tmp_path) == {("t", 0): ["a"]}


def test_marker_says_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = new_write()
    monkeypatch.setattr(time, "time_ns", lambda: 1_709_164_800 * 10**9)
    commit(tmp_path, one, stage(tmp_path, one, [{("t", 0): ["a"]}]))
    (row,) = kraftlog.open(tmp_path, topics=["t"]).partition_transactions(["end_timestamp"]).to_pylist()
    assert row["end_timestamp"] == datetime(2024, 2, 29, tzinfo=UTC)


def test_batches_larger_than_kafkas_default_fit_a_new_topic(tmp_path: Path):
    options = StagingOptions(max_batch_bytes=3_000_000)
    one = new_write()
    staged = stage(tmp_path, one, [{("t", 0): ["x" * 2_000_000], ("small", 0): ["a"]}], options)
    commit(tmp_path, one, staged, options=options)
    assert [len(value) for value in visible(tmp_path)["t", 0]] == [2_000_000]
    with kraftlog.LogStore(tmp_path) as store:
        assert store.topics["t"].max_message_bytes == 3_000_000


def test_a_partition_that_would_make_too_many(tmp_path: Path):
    """A number that is no partition, as of a wrong column, must not make folders up to it."""
    one = new_write()
    staged = stage(tmp_path, one, [{("t", 2_000_000_000): ["x"]}])
    text = "topic 't': expected at most 10000 partitions, as Kafka's controller does, found 2000000001"
    with pytest.raises(InvalidPartitionsError, match=text):
        commit(tmp_path, one, staged)
    assert not list(tmp_path.glob("t-*"))
    with pytest.raises(ValueError, match="partition 10000 of t is not in the range 0 to 9999"):
        list(rows_by_partition(pa.record_batch({"value": ["x"], "partition": [10_000]}), Routing("t"), 0))
