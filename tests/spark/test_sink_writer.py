"""The sink's writers as Spark uses them, one batch of a stream after the other, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import kraftlog
from kraftlog.disk.lock import LogDirectoryLock, LogDirectoryLockedError
from kraftlog.log_store import staged_write
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.errors import ReusedTransactionalIdError, StorageError
from kraftlog.log_store.staged_write import begin, commit
from kraftlog.log_store.staging import Stager, StagingOptions
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
