"""Tasks fail at random and drivers are killed, again and again: Kafka serves each row that they were to write once.

One driver is killed whole, with its JVM. Of the others only the process that commits is killed; their session goes on.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from kafka_broker import Broker
from pyspark.sql import SparkSession
from sink_driver import FAILURES, TOPICS, Death, Job, command, row_of, run

import kraftlog
from kraftlog.codec.options import ReadOptions
from kraftlog.codec.partitioner import partition_for_key
from kraftlog.log_store.staged_write import begin, commit
from kraftlog.log_store.staging import Stager, StagingOptions
from kraftlog.log_store.write_id import new_write

PARTITIONS = 3
SOURCE_PARTITIONS = 2
NUMBERS = 2000
LIMIT = 300.0
DIED = "Python worker exited unexpectedly"
BATCH_DEATHS = [
    Death("kraftlog.log_store.staged_transaction.StagedTransaction.append"),  # all is prepared, nothing is decided
    Death("kraftlog.log_store.staged_transaction.StagedTransaction._decided"),  # decided, and not marked
    Death("kraftlog.log_store.partition.marker_batch", 4),  # two partitions are committed, besides the offset; in the
    # recovery by the next driver
]
STREAM_DEATHS = [
    Death("kraftlog.log_store.staged_transaction.StagedTransaction._decided", batch_id=0, of_driver=True),
    Death("kraftlog.spark.sink.commit", batch_id=1),  # all is done, and Spark does not know
]

Row = tuple[str, int, str, str]  # topic, partition, key and value


@dataclass
class Story:
    """What became of the jobs."""

    shown: dict[str, list[Counter[Row]]] = field(default_factory=dict)  # to a reader, after each driver of a job
    failures: dict[str, set[str]] = field(default_factory=dict)
    offsets: list[dict[str, int]] = field(default_factory=list)  # of the source, where batches end as Spark noted it
    served: Counter[Row] = field(default_factory=Counter)  # by Kafka


def expected(prefix: str, numbers: Iterable[int]) -> Counter[Row]:
    """Return the rows of numbers, in the partitions that Kafka's own partitioner chooses."""
    rows = [row_of(prefix, number) for number in numbers]
    partitions = partition_for_key(pa.array([key for _, key, _ in rows]), PARTITIONS).to_pylist()
    return Counter((topic, at, key, value) for (topic, key, value), at in zip(rows, partitions, strict=True))


def shown(log_dir: Path, prefix: str) -> Counter[Row]:
    """Return what kraftlog shows at read_committed."""
    folders = [path for path in log_dir.glob(f"{prefix}-*") if any(path.glob("*.log"))]
    records = kraftlog.open(folders).records(["topic", "partition", "key", "value"], isolation_level="read_committed")
    return Counter(
        (row["topic"], row["partition"], row["key"].decode(), row["value"].decode())
        for row in records.to_table().to_pylist()
    )


def make_source(directory: Path) -> None:
    """Write the numbers that the stream reads."""
    write = new_write()
    options = StagingOptions(max_batch_bytes=1000)
    stager = Stager(begin(directory, write), options, task=0)
    for partition in range(SOURCE_PARTITIONS):
        numbers = [str(number) for number in range(partition, NUMBERS, SOURCE_PARTITIONS)]
        stager.write("numbers", partition, pa.record_batch({"value": numbers}))
    commit(directory, write, stager.finish())


def do(spark: SparkSession, job: Job) -> None:
    """Run a driver until it has done its job, or is killed if that is its fate."""
    if job.death is None:
        run(spark, job)
    elif job.death.of_driver:
        output = Path(job.home, "driver.out")
        with output.open("wb") as out:
            done = subprocess.run(command(job), check=False, stdout=out, stderr=subprocess.STDOUT, timeout=LIMIT)
        assert done.returncode == -signal.SIGKILL, output.read_text(errors="replace")
    else:
        with pytest.raises(Exception, match=DIED):
            run(spark, job)


def do_at_last(spark: SparkSession, job: Job, deaths: Iterable[Death], story: Story) -> None:
    """Run drivers for a job: each but the last is killed."""
    Path(job.home).mkdir()
    job.failures.mkdir()
    for death in [*deaths, None]:
        do(spark.newSession(), replace(job, death=death))
        story.shown.setdefault(job.prefix, []).append(shown(Path(job.log_directory), job.prefix))
    story.failures[job.prefix] = {path.name for path in job.failures.iterdir()}


@pytest.fixture(scope="module")
def story(broker: Broker, spark: SparkSession) -> Iterator[Story]:
    story, log_dir = Story(), str(broker.log_dir)
    with tempfile.TemporaryDirectory(prefix="kraftlog-sink-") as home:
        source, batch, stream = (Path(home, name) for name in ("source", "batch", "stream"))
        make_source(source)
        topics = [f"{prefix}-{number}" for prefix in ("batch", "stream") for number in range(TOPICS)]
        with broker:
            broker.create({"name": topic, "partitions": PARTITIONS, "configs": {}} for topic in topics)
        do_at_last(spark, Job(str(batch), log_dir, "batch", numbers=NUMBERS), BATCH_DEATHS, story)
        do_at_last(spark, Job(str(stream), log_dir, "stream", source=str(source)), STREAM_DEATHS, story)
        noted = sorted((stream / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        story.offsets = [json.loads(path.read_text().splitlines()[-1])["numbers"] for path in noted]
        with broker:
            lines = broker.consume_at("read_committed", topics)[0]
        story.served = Counter(
            (line["topic"], line["partition"], _text(line["key"]), _text(line["value"])) for line in lines
        )
        yield story


def _text(data: str) -> str:
    return bytes.fromhex(data).decode()


def test_tasks_failed(story: Story) -> None:
    assert story.failures == {"batch": set(FAILURES), "stream": set(FAILURES)}


def test_kafka_serves_each_row_once(story: Story) -> None:
    assert story.served == expected("batch", range(NUMBERS)) + expected("stream", range(NUMBERS))


def test_batch_before_the_rerun(story: Story) -> None:
    """Nothing is visible before the first marker; then each partition, all of it at once."""
    every = expected("batch", range(NUMBERS))
    prepared, placing, marking, done = story.shown["batch"]
    assert prepared == placing == Counter()
    committed = {row[:2] for row in marking}
    assert len(committed) == 2
    assert marking == Counter({row: count for row, count in every.items() if row[:2] in committed})
    assert done == every


def test_stream_before_the_rerun(story: Story) -> None:
    """A batch that is decided only is not visible; one that is done is, whether Spark knows it or not."""
    decided, done, at_last = story.shown["stream"]
    assert decided == Counter()
    ends = {int(partition): end for partition, end in story.offsets[1].items()}
    batches_0_and_1 = [
        number for number in range(NUMBERS) if number // SOURCE_PARTITIONS < ends[number % SOURCE_PARTITIONS]
    ]
    assert 0 < len(batches_0_and_1) < NUMBERS
    assert done == expected("stream", batches_0_and_1)
    assert at_last == expected("stream", range(NUMBERS))


def test_the_log_is_sound(broker: Broker, story: Story) -> None:
    log = kraftlog.open(broker.log_dir)
    assert log.errors().to_pylist() == []
    assert [fault.message for fault in log.verify(ReadOptions())] == []
    transactions = Counter(
        (row["topic"], row["state"])
        for row in log.partition_transactions(["topic", "state"]).to_pylist()
        if not row["topic"].startswith("__")
    )
    batches = {"batch": 1, "stream": len(story.offsets)}
    assert transactions == {
        (f"{prefix}-{number}", "committed"): count * PARTITIONS
        for prefix, count in batches.items()
        for number in range(TOPICS)
    } | {(f"batch-{number}", "aborted"): PARTITIONS for number in range(TOPICS)}
