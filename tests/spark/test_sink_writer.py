"""The sink's writers as Spark uses them, one batch of a stream after the other, without Spark."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

import kraftlog
from faulty_disk import FaultyDisk, no_space, only, since
from kraftlog.disk.disk import use_disk
from kraftlog.disk.lock import LogDirectoryLock, LogDirectoryLockedError
from kraftlog.log_store import staged_write
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.errors import ReusedTransactionalIdError, StorageError, StoreError
from kraftlog.log_store.staged_write import CommitUnfinishedError, begin, commit
from kraftlog.log_store.staging import Stager, StagingOptions, WriteEndedError
from kraftlog.log_store.topics import Topic
from kraftlog.log_store.write_id import new_write
from kraftlog.spark import sink
from kraftlog.spark.sink import KraftlogStreamWriter, KraftlogWriter, StagedMessage

SCHEMA = StructType().add("value", "string")


class Task:
    """What a task of a stream knows of itself."""

    def __init__(self, query_id: str, batch_id: int) -> None:
        self._known = {"sql.streaming.queryId": query_id, "streaming.sql.batchId": str(batch_id)}

    def partitionId(self) -> int:  # noqa: N802  (Spark's name)
        return 0

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802  (Spark's name)
        return self._known.get(name)


class Stream:
    """A query that writes to a log directory; Spark makes a writer for the tasks of a batch, and one for its end."""

    def __init__(self, patch: pytest.MonkeyPatch, directory: Path, query_id: str, **options: str) -> None:
        self._patch, self._query_id = patch, query_id
        self._options = {"path": str(directory), "topic": "t", "checkpointLocation": "s3a://bucket/c", **options}

    def writer(self, *, overwrite: bool = False) -> KraftlogStreamWriter:
        options = self._options | ({"overwriteTopics": "true"} if overwrite else {})
        return KraftlogStreamWriter(options, SCHEMA, overwrite)

    def stage(self, batch_id: int, *values: str) -> StagedMessage:
        self._patch.setattr(sink, "_task", lambda: Task(self._query_id, batch_id))
        return self.writer().write(iter([pa.record_batch({"value": values})]))

    def write(self, batch_id: int, *values: str) -> None:
        self.writer().commit([self.stage(batch_id, *values)], batch_id)


def rows(directory: Path, column: str = "value") -> list:
    if not any(directory.glob("t-*/*.log")):
        return []
    records = kraftlog.open(directory, topics=["t"]).records([column, "offset"], isolation_level="read_committed")
    return records.to_table().sort_by("offset")[column].to_pylist()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(staged_write, "LOCK_PATIENCE", 0.0)
    yield tmp_path / "log"
    assert not (tmp_path / "log" / ".kraftlog").exists()


def test_a_checkpoint_that_was_begun_anew(directory: Path, monkeypatch: pytest.MonkeyPatch):
    for query_id in ("first", "second"):
        stream = Stream(monkeypatch, directory, query_id)
        for batch_id in range(2):
            stream.write(batch_id, f"{query_id} {batch_id}")
    assert rows(directory) == [b"first 0", b"first 1", b"second 0", b"second 1"]


def test_a_checkpoint_by_other_names(directory: Path, monkeypatch: pytest.MonkeyPatch):
    for location in ("/c", "file:///c", "/c/"):
        Stream(monkeypatch, directory, "query", checkpointLocation=location).write(5, "once")
    assert rows(directory) == [b"once"]


def test_a_transactional_id_of_the_user(directory: Path, monkeypatch: pytest.MonkeyPatch):
    """It stays with the query that began with it: another one, of a new checkpoint, numbers its batches anew."""
    stream = Stream(monkeypatch, directory, "first", transactionalId="own")
    for value in ("once", "twice"):
        stream.write(0, value)
    with pytest.raises(ReusedTransactionalIdError, match="its own transactional id"):
        Stream(monkeypatch, directory, "second", transactionalId="own").write(0, "other")
    assert rows(directory) == [b"once"]


def test_a_batch_without_tasks(directory: Path, monkeypatch: pytest.MonkeyPatch):
    stream = Stream(monkeypatch, directory, "query")
    stream.write(0, "a")
    stream.writer().commit([], 1)
    assert rows(directory) == [b"a"]
    stream.writer(overwrite=True).commit([], 2)
    assert rows(directory) == []


def test_a_broker_has_it(directory: Path, monkeypatch: pytest.MonkeyPatch):
    stream = Stream(monkeypatch, directory, "query")
    directory.mkdir()
    with LogDirectoryLock(directory):
        with pytest.raises(LogDirectoryLockedError):
            stream.stage(0, "a")
        assert [path.name for path in directory.iterdir()] == [".lock"]


def test_a_broker_gets_it_meanwhile(directory: Path, monkeypatch: pytest.MonkeyPatch):
    stream = Stream(monkeypatch, directory, "query")
    message = stream.stage(0, "a")
    with LogDirectoryLock(directory):
        with pytest.raises(LogDirectoryLockedError):
            stream.writer().commit([message], 0)
        stream.writer().abort([message, None], 0)
        assert not (directory / ".kraftlog").exists()


def test_an_abort_when_all_tasks_failed(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text(json.dumps({"id": "query"}))
    stream = Stream(monkeypatch, directory, "query", checkpointLocation=str(tmp_path / "checkpoint"))
    stream.stage(0, "a")
    assert (directory / ".kraftlog").exists()
    stream.writer().abort([None], 0)


def test_an_attempt_behind_the_commit(directory: Path, monkeypatch: pytest.MonkeyPatch):
    stream = Stream(monkeypatch, directory, "query")
    stream.write(0, "a")
    assert stream.stage(0, "a").files == []
    assert not (directory / ".kraftlog").exists()


def test_small_batches_come_to_all_partitions(directory: Path, monkeypatch: pytest.MonkeyPatch):
    stream = Stream(monkeypatch, directory, "query", partitions="3")
    first, second = (stream.stage(0, "0") for _ in range(2))
    assert [file.partition for file in first.files] == [file.partition for file in second.files]
    for batch_id in range(20):
        stream.write(batch_id, str(batch_id))
    assert set(rows(directory, "partition")) == {0, 1, 2}


def test_partitions_of_topics_that_are_there(directory: Path):
    def writer(**options: str) -> KraftlogWriter:
        schema = StructType().add("value", "string").add("topic", "string")
        return KraftlogWriter({"path": str(directory), **options}, schema, False)

    one = new_write()
    stager = Stager(begin(directory, one), StagingOptions(), task=0)
    stager.write("t", 0, pa.record_batch({"value": ["a"]}))
    commit(directory, one, stager.finish(), topics={"t": 4})
    for options in ({"topic": "t", "partitions": "9"}, {"partitions": '{"t": 9}'}):
        with pytest.raises(ValueError, match="option partitions says 9 for topic t, which has 4"):
            writer(**options)
    for options in ({"topic": "t", "partitions": "4"}, {"partitions": "9"}, {"partitions": '{"u": 9}'}):
        writer(**options).abort([])


def test_a_topic_that_was_made_and_not_written(directory: Path, monkeypatch: pytest.MonkeyPatch):
    """The driver died when it had made the topic; the next one goes by all of its partitions."""
    stream = Stream(monkeypatch, directory, "query", partitions="4")
    create = Cluster.create

    def fails(self: Cluster, topics: list[Topic]) -> None:
        create(self, topics)
        if topics[0].name == "t":
            raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Cluster, "create", fails)
        with pytest.raises(StorageError, match="no space left"):
            stream.write(0, "a")
    stream.writer().abort([], 0)
    assert not list(directory.glob("t-*"))
    with pytest.raises(ValueError, match="option partitions says 3 for topic t, which has 4"):
        Stream(monkeypatch, directory, "query", partitions="3").writer()
    stream.write(0, "a")
    assert len(list(directory.glob("t-*"))) == 1
    assert rows(directory) == [b"a"]


def test_how_long_a_lock_was_waited_for(directory: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(staged_write, "LOCK_PATIENCE", 0.6)
    directory.mkdir()
    text = r"log: \.lock is held by a broker or another writer since more than 1 s; stop it first"
    with LogDirectoryLock(directory), pytest.raises(LogDirectoryLockedError, match=text):
        job(directory)


def job(directory: Path, **options: str) -> KraftlogWriter:
    return KraftlogWriter({"path": str(directory), "topic": "t", **options}, SCHEMA, False)


def staged(patch: pytest.MonkeyPatch, writer: KraftlogWriter, *values: str) -> WriterCommitMessage:
    patch.setattr(sink, "_task", lambda: Task("", 0))
    return writer.write(pa.record_batch({"value": [value]}) for value in values)


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_a_twin_that_goes_on_behind_the_end(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: bool, ends: str
):
    """A speculative attempt, or one whose executor seemed lost: it fails, and leaves no file."""
    options = {} if shares else {"stagingLocation": str(tmp_path / "staging")}
    writer = job(directory, **options)
    message = staged(monkeypatch, writer, "a")

    def rows_of_twin() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": ["a"]})
        writer.commit([message]) if ends == "commit" else writer.abort([message])
        yield pa.record_batch({"value": ["b" * 500_000] * 8})

    with pytest.raises((FileNotFoundError, WriteEndedError)):
        pickle.loads(cloudpickle.dumps(writer)).write(rows_of_twin())
    assert rows(directory) == ([b"a"] if ends == "commit" else [])
    assert [path for path in (tmp_path / "staging").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("streams", [True, False])
def test_tasks_that_do_not_see_the_log_directory(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: bool
):
    """They send their files to the staging location; the driver has the log directory."""
    options = {"stagingLocation": f"file://{tmp_path}/staging", "partitions": "2"}
    stream = Stream(monkeypatch, directory, "query", **options)
    for batch_id in range(2):
        writer = stream.writer() if streams else job(directory, **options)
        on_executor = pickle.loads(cloudpickle.dumps(writer))
        directory.rename(tmp_path / "elsewhere")
        monkeypatch.setattr(sink, "_task", lambda batch_id=batch_id: Task("query", batch_id))
        message = on_executor.write(iter([pa.record_batch({"value": [str(batch_id)] * 3})]))
        assert not directory.exists()
        (tmp_path / "elsewhere").rename(directory)
        for _ in range(2):  # Spark may not have noted the first commit of a batch
            stream.writer().commit([message], batch_id) if streams else writer.commit([message])
            if not streams:
                break
    assert sorted(rows(directory)) == [b"0"] * 3 + [b"1"] * 3
    assert [path for path in (tmp_path / "staging").rglob("*") if path.is_file()] == []


@pytest.mark.sweep(2)
@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_disk_that_is_full_or_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: bool, is_lost: bool):
    """At any step of staging and commit, also when the abort cannot do anything: a rerun completes the job."""
    monkeypatch.setattr(staged_write, "LOCK_PATIENCE", 0.0)
    fails = {False: lambda moment: only(moment, no_space), True: since}[is_lost]
    raised = 0
    for moment in range(3 * shares, 1000, 13):
        directory = tmp_path / f"log-{moment}"
        options = {"transactionalId": "etl", "batchId": "0", "partitions": "2"}
        options |= {} if shares else {"stagingLocation": str(tmp_path / "staging")}
        messages: list = []
        writer = None
        with use_disk(FaultyDisk(fails(moment))) as disk:
            try:
                writer = job(directory, **options)
                messages = [staged(monkeypatch, writer, "a", "b"), staged(monkeypatch, writer, "c", "d")]
                writer.commit(messages)
            except (OSError, StoreError, CommitUnfinishedError):
                raised += 1
                with suppress(OSError, StoreError, CommitUnfinishedError):
                    if writer is not None:
                        writer.abort(messages)
        if len(disk.steps) <= moment:
            break
        writer = job(directory, **options)
        writer.commit([staged(monkeypatch, writer, "a", "b"), staged(monkeypatch, writer, "c", "d")])
        assert sorted(rows(directory)) == [b"a", b"b", b"c", b"d"], disk.steps[moment]
        assert [path for path in (tmp_path / "staging").rglob("*") if path.is_file()] == []
        assert not (directory / ".kraftlog").exists(), disk.steps[moment]
    assert moment > 100
    assert raised > 5
