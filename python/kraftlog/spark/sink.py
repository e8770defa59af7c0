"""``df.write.format("kraftlog")`` and ``writeStream``: rows into a log directory, each of them once."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kraftlog.disk.lock import LogDirectoryLockedError
from kraftlog.log_store.rows import COLUMNS, check_columns, rows_by_partition
from kraftlog.log_store.staged_write import abort, begin, commit, is_repetition, make_write_folder, recover
from kraftlog.log_store.staging import StagedFile, Stager
from kraftlog.log_store.write_id import WriteId, new_write, write_of_batch
from kraftlog.schema import RECORDS
from kraftlog.spark.arrow_schema import arrow_schema_of
from kraftlog.spark.paths import local_folder
from kraftlog.spark.sink_options import SinkOptions, parse_sink_options
from kraftlog.spark.tables import TIMESTAMP_TYPE
from kraftlog.spark.unpickled import reduced

# Spark's local properties with the batch and query of a stream's tasks; the query id is stored in the checkpoint, so it
# survives a move of the checkpoint
_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"
# columns of records that the source may have besides
_SET_BY_LOG = {*RECORDS.shown, *RECORDS.on_request, TIMESTAMP_TYPE} - {*COLUMNS}


@dataclass
class StagedMessage(WriterCommitMessage):
    """What a task has staged, and for which write: in a stream only the tasks know the query."""

    files: list[StagedFile]
    write: WriteId


class KraftlogWriter(DataSourceArrowWriter):
    """One job, one write. Made by the driver, which sends it to the tasks."""

    def __init__(self, options: dict[str, str], schema: StructType, overwrite: bool) -> None:
        parsed = parse_sink_options(options, is_streaming=False, overwrite=overwrite)
        self._overwrite = overwrite
        check_columns(_written_columns(schema), parsed.routing.topic)
        self._options = _at_its_place(parsed)
        self._write = _write_of_job(self._options)
        begin(self._options.log_directory, self._write, self._options.location)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return reduced(self)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stage the rows of a task."""
        return _stage(self._options, self._write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what the tasks staged visible."""
        _commit(self._options, self._write, messages, overwrite=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks staged."""
        abort(self._options.log_directory, self._write, self._options.location)


class KraftlogStreamWriter(DataSourceStreamArrowWriter):
    """One write for each batch of a stream; Spark may create a new instance at any time."""

    def __init__(self, options: dict[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = parse_sink_options(options, is_streaming=True, overwrite=overwrite)
        self._overwrite = overwrite
        check_columns(_written_columns(schema), self._options.routing.topic)
        self._is_locked = False
        try:
            self._options = _at_its_place(self._options)
        except LogDirectoryLockedError:  # tasks fail before they stage anything; an abort needs no lock
            self._is_locked = True

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return reduced(self)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stage the rows of a task."""
        if self._is_locked:
            raise LogDirectoryLockedError(self._options.log_directory)
        batch_id, query_id = (_task().getLocalProperty(name) for name in (_BATCH_ID, _QUERY_ID))
        if batch_id is None or query_id is None:
            raise RuntimeError(
                f"the task has no properties {_BATCH_ID} and {_QUERY_ID}; only streams in micro-batches can be written"
            )
        write = write_of_batch(self._options.transactional_id or query_id, int(batch_id), query_id)
        if self._options.location is not None:
            self._options.location.begin(write)
            return _stage(self._options, write, iterator)
        if is_repetition(self._options.log_directory, write):  # nothing would remove rows staged after the commit
            deque(iterator, maxlen=0)
            return StagedMessage([], write)
        make_write_folder(self._options.log_directory, write)
        return _stage(self._options, write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's name)
        """Make what the tasks staged visible, unless the batch was committed before."""
        write = self._write(messages, batchId) or new_write()  # a batch without tasks has the same effect twice
        make_write_folder(self._options.log_directory, write)
        _commit(self._options, write, messages, overwrite=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's name)
        """Remove what the tasks staged.

        When no task has reported its query and the checkpoint cannot be read here, the next commit of the query removes
        what they staged.
        """
        write = self._write(messages, batchId)
        if write is not None:
            abort(self._options.log_directory, write, self._options.location)

    def _write(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> WriteId | None:
        """Return the write of a batch; None if this process cannot know it."""
        for message in messages:
            if isinstance(message, StagedMessage):
                return message.write
        query_id = _query_of(self._options.checkpoint)
        known = self._options.transactional_id or query_id
        return None if known is None else write_of_batch(known, batch_id, query_id or "")


def _written_columns(schema: StructType) -> pa.Schema:
    """Return the columns without those that a log gives to its records, such as ``offset``: a copy has its own."""
    columns = arrow_schema_of(schema)
    return pa.schema([field for field in columns if field.name not in _SET_BY_LOG])


def _query_of(checkpoint: str | None) -> str | None:
    """Return the id of the query of a checkpoint, if that can be read here."""
    with suppress(OSError, ValueError, KeyError):
        if checkpoint is not None:
            return str(json.loads((local_folder("checkpointLocation", checkpoint) / "metadata").read_text())["id"])
    return None


def _at_its_place(options: SinkOptions) -> SinkOptions:
    """Finish writes that others have decided, so that all partitions of their topics exist; then list topics."""
    recover(options.log_directory)
    return options.with_existing_topics()


def _write_of_job(options: SinkOptions) -> WriteId:
    if options.transactional_id is None or options.batch_id is None:
        return new_write()
    return write_of_batch(options.transactional_id, options.batch_id)


def _stage(options: SinkOptions, write: WriteId, batches: Iterator[pa.RecordBatch]) -> StagedMessage:
    if options.location is None:
        return _staged(write.folder(options.log_directory), options, write, batches)
    with TemporaryDirectory(prefix="kraftlog-", dir=_local_folder()) as name:
        message = _staged(Path(name), options, write, batches)
        options.location.send(write, Path(name))
        return message


def _local_folder() -> str | None:
    """Return a folder that Spark empties also when this process is killed."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None


def _staged(folder: Path, options: SinkOptions, write: WriteId, batches: Iterator[pa.RecordBatch]) -> StagedMessage:
    task = _task().partitionId()
    stager = Stager(folder, options.staging, task=task)
    spread = write.spread + task  # other writes start at another partition, other attempts at this write do not
    for number, batch in enumerate(batches):
        for topic, partition, rows in rows_by_partition(batch, options.routing, spread=spread + number):
            stager.write(topic, partition, rows)
    return StagedMessage(stager.finish(), write)


def _commit(
    options: SinkOptions, write: WriteId, messages: Sequence[WriterCommitMessage | None], *, overwrite: bool
) -> None:
    staged = [file for message in messages if isinstance(message, StagedMessage) for file in message.files]
    topics = {file.topic for file in staged}
    if options.routing.topic is not None:
        topics.add(options.routing.topic)
    counts = {topic: options.routing.partitions(topic) or 1 for topic in topics}
    commit(
        options.log_directory,
        write,
        staged,
        overwrite=overwrite,
        topics=counts,
        options=options.staging,
        location=options.location,
    )


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise RuntimeError("this runs only in a task of Spark")
    return task
