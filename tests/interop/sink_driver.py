"""A driver of Spark that writes numbers with the sink; its tasks fail, and it may die on the way.

A script dies as with its machine: the script, its JVM, Spark's Python daemon and the process that commits. Within a
session, only the process that commits dies, and nobody aborts what it has begun: the log directory is the same.
"""

from __future__ import annotations

import json
import os
import pkgutil
import random
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from kraftlog.spark import register
from kraftlog.spark.datasource import KraftlogSource
from kraftlog.spark.session import local_session
from kraftlog.spark.sink import KraftlogStreamWriter, KraftlogWriter

TOPICS = 2
KEYS = 101
COLUMNS = "topic string, key string, value string"
TASKS = 3
ATTEMPTS = 4
MASTER = f"local[2,{ATTEMPTS}]"
FAILURES = ("raises", "worker is killed", "writer is killed")


@dataclass(frozen=True)
class Death:
    """The moment at which a function has returned for the nth time, in a stream that of one batch.

    Attributes
    ----------
    of_driver : bool
        Whether the whole driver dies, not only its process that commits.
    """

    function: str
    calls: int = 1
    batch_id: int | None = None
    of_driver: bool = False


@dataclass(frozen=True)
class Job:
    """Numbers go to the topics of a prefix: so many from 0 on, or as a stream those of a log directory."""

    home: str
    log_directory: str
    prefix: str
    numbers: int | None = None
    source: str | None = None
    death: Death | None = None

    @property
    def failures(self) -> Path:
        """Where attempts at tasks leave a file each time that they fail."""
        return Path(self.home, "failures")


def command(job: Job) -> list[str]:
    """Return the command line that does a job."""
    return [sys.executable, __file__, json.dumps(asdict(job))]


def row_of(prefix: str, number: int) -> tuple[str, str, str]:
    """Return topic, key and value of a number."""
    return f"{prefix}-{number % TOPICS}", str(number % KEYS), str(number)


def rows_of(numbers: Iterable[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Turn numbers into rows; attempts that are to fail do so in the middle."""
    fails = _failure(job)
    for batch in numbers:
        columns = zip(*(row_of(job.prefix, number) for number in batch["number"].to_pylist()), strict=True)
        yield pa.record_batch([pa.array(column) for column in columns], ["topic", "key", "value"])
        if fails("raises"):
            raise RuntimeError("the attempt fails")
        if fails("worker is killed"):
            os.kill(os.getpid(), signal.SIGKILL)


def _failure(job: Job) -> Callable[[str], bool]:
    """Return whether this attempt at a task is to fail in a way: always the same attempts do, and never the last."""
    task = TaskContext.get()
    assert task is not None
    batch_id = task.getLocalProperty("streaming.sql.batchId")
    dice = random.Random(f"{job.prefix} {batch_id} {task.partitionId()} {task.attemptNumber()}")
    own = dice.choice([*FAILURES, None, None, None]) if task.attemptNumber() < ATTEMPTS - 1 else None

    def fails(way: str) -> bool:
        if way == own:
            (job.failures / way).touch()
        return way == own

    return fails


class DyingWriter(KraftlogWriter):
    """Writes a batch job, and dies with its driver."""

    def __init__(self, job: Job, driver: int, *arguments: Any) -> None:
        self._job, self._driver = job, driver
        with dying(job.death, driver):
            super().__init__(*arguments)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._job, super().write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with dying(self._job.death, self._driver):
            super().commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort what did not die."""
        if self._job.death is None:
            super().abort(messages)


class DyingStreamWriter(KraftlogStreamWriter):
    """Writes batches of a stream, and dies with its driver in one of them."""

    def __init__(self, job: Job, driver: int, *arguments: Any) -> None:
        self._job, self._driver = job, driver
        super().__init__(*arguments)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._job, super().write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's name)
        death = self._job.death
        with dying(death if death is not None and death.batch_id == batchId else None, self._driver):
            super().commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  (Spark's name)
        """Abort what did not die."""
        if self._job.death is None:
            super().abort(messages, batchId)


def _write(job: Job, write: Callable[..., Any], batches: Iterator[pa.RecordBatch]) -> Any:
    message = write(batches)
    if _failure(job)("writer is killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return message


@contextmanager
def dying(death: Death | None, driver: int) -> Iterator[None]:
    """Let the driver, or this process of it, die at its moment, if that comes."""
    if death is None:
        yield
        return
    function, calls = pkgutil.resolve_name(death.function), count(1)

    def deadly(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        if next(calls) == death.calls:
            kill(driver if death.of_driver else os.getpid())
        return result

    with mock.patch(death.function, deadly):
        yield


def kill(driver: int) -> None:
    """Kill a process and all between it and this one, from the top: nobody is left to see that another one died."""
    family = [os.getpid()]
    while family[-1] != driver:
        status = Path(f"/proc/{family[-1]}/status").read_text()
        family.append(int(status.partition("PPid:")[2].split()[0]))
    for process in reversed(family):
        os.kill(process, signal.SIGKILL)


def session(home: str) -> SparkSession:
    """Start Spark with all its files below ``home``."""
    spark = local_session(
        MASTER,
        spark_local_dir=home,
        spark_sql_warehouse_dir=home,
        spark_driver_extraJavaOptions=f"-Djava.io.tmpdir={home} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    register(spark)
    return spark


def source_of(job: Job) -> type[KraftlogSource]:
    """Return the format ``kraftlog`` with writers that die; Spark sends it to its workers as it is."""
    driver = os.getpid()

    class DyingSource(KraftlogSource):
        def writer(self, schema: StructType, overwrite: bool) -> DyingWriter:
            return DyingWriter(job, driver, self.options, schema, overwrite)

        def streamWriter(self, schema: StructType, overwrite: bool) -> DyingStreamWriter:  # noqa: N802  (Spark's name)
            return DyingStreamWriter(job, driver, self.options, schema, overwrite)

    return DyingSource


def numbers_of(spark: SparkSession, job: Job) -> DataFrame:
    """Return the numbers that a job writes."""
    if job.source is None:
        return spark.range(0, job.numbers, 1, TASKS).withColumnRenamed("id", "number")
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "700", "minPartitions": str(TASKS)}
    options["subscribe"] = "numbers"
    records = spark.readStream.format("kraftlog").options(**options).load(job.source)
    return records.selectExpr("bigint(string(value)) number")


def run(spark: SparkSession, job: Job) -> None:
    """Do a job, to its end unless it dies."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    spark.dataSource.register(source_of(job))
    rows = numbers_of(spark, job).mapInArrow(lambda numbers: rows_of(numbers, job), COLUMNS)
    if job.source is None:
        writer = rows.write.format("kraftlog").options(transactionalId=job.prefix, batchId="0").mode("append")
        writer.save(job.log_directory)
    else:
        stream = rows.writeStream.format("kraftlog").option("checkpointLocation", f"{job.home}/checkpoint")
        stream.trigger(availableNow=True).start(job.log_directory).awaitTermination()


def main(arguments: dict[str, Any]) -> None:
    """Do the job of a command line in a session of its own."""
    job = Job(**{**arguments, "death": arguments["death"] and Death(**arguments["death"])})
    spark = session(job.home)
    run(spark, job)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
