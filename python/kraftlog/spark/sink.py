"""``df.write.format("kraftlog")`` and ``writeStream``: rows into a log directory, each of them once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kraftlog.spark.arrow_schema import arrow_schema_of
from kraftlog.spark.sink_options import SinkOptions, parse_sink_options
from kraftlog.store import StagedFile, Stager, WriteId, abort, begin, commit, make_write_folder, new_write
from kraftlog.store.rows import check_columns, rows_by_partition
from kraftlog.store.write_id import write_of_batch

_BATCH_ID = "streaming.sql.batchId"  # the property in which Spark tells tasks of a stream their batch


@dataclass
class StagedMessage(WriterCommitMessage):
    """What a task has staged."""

    files: list[StagedFile]


class KraftlogWriter(DataSourceArrowWriter):
    """One job, one write. Made by the driver, which sends it to the tasks."""

    def __init__(self, options: dict[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = parse_sink_options(options, is_streaming=False)
        self._overwrite = overwrite
        check_columns(arrow_schema_of(schema), self._options.routing.topic)
        self._write = _write_of_job(self._options)
        begin(self._options.log_directory, self._write)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stage the rows of a task."""
        return _stage(self._options, self._write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make what the tasks staged visible."""
        _commit(self._options, self._write, messages, overwrite=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks staged."""
        abort(self._options.log_directory, self._write)


class KraftlogStreamWriter(DataSourceStreamArrowWriter):
    """One write for each batch of a stream, which Spark may make this anew for at any time."""

    def __init__(self, options: dict[str, str], schema: StructType, overwrite: bool) -> None:
        self._options = parse_sink_options(options, is_streaming=True)
        self._overwrite = overwrite
        check_columns(arrow_schema_of(schema), self._options.routing.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Stage the rows of a task."""
        batch_id = _task().getLocalProperty(_BATCH_ID)
        if batch_id is None:
            raise RuntimeError(f"the task has no property {_BATCH_ID}; only streams in micro-batches can be written")
        write = self._batch(int(batch_id))
        make_write_folder(self._options.log_directory, write)
        return _stage(self._options, write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's name)
        """Make what the tasks staged visible, unless the batch was committed before."""
        make_write_folder(self._options.log_directory, self._batch(batchId))  # a batch without tasks has none
        _commit(self._options, self._batch(batchId), messages, overwrite=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's name)
        """Remove what the tasks staged."""
        abort(self._options.log_directory, self._batch(batchId))

    def _batch(self, batch_id: int) -> WriteId:
        return write_of_batch(self._options.transactional_id or "", batch_id)


def _write_of_job(options: SinkOptions) -> WriteId:
    if options.transactional_id is None or options.batch_id is None:
        return new_write()
    return write_of_batch(options.transactional_id, options.batch_id)


def _stage(options: SinkOptions, write: WriteId, batches: Iterator[pa.RecordBatch]) -> StagedMessage:
    task = _task().partitionId()
    stager = Stager(write.folder(options.log_directory), write.producer_id, options.batch, task=task)
    for number, batch in enumerate(batches):
        for topic, partition, rows in rows_by_partition(batch, options.routing, spread=task + number):
            stager.write(topic, partition, rows)
    return StagedMessage(stager.finish())


def _commit(
    options: SinkOptions, write: WriteId, messages: Sequence[WriterCommitMessage | None], *, overwrite: bool
) -> None:
    staged = [file for message in messages if isinstance(message, StagedMessage) for file in message.files]
    topics = {file.topic for file in staged}
    if options.routing.topic is not None:
        topics.add(options.routing.topic)
    counts = {topic: options.routing.partitions(topic) or 1 for topic in topics}
    commit(options.log_directory, write, staged, overwrite=overwrite, topics=counts)


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise RuntimeError("this runs in a task of Spark only")
    return task
