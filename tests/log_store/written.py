"""Writes of made-up rows, and what a log directory then shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog.codec.options import ReadOptions
from kraftlog.log_store.directory import partition_folders
from kraftlog.log_store.staged_write import begin
from kraftlog.log_store.staging import StagedFile, Stager, StagingOptions
from kraftlog.log_store.write_id import WriteId

Values = dict[tuple[str, int], list[str]]  # of each partition

SMALL = StagingOptions(max_batch_bytes=200, segment_bytes=700)


def rows(values: Iterable[str]) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.string())})


def stage(
    log_directory: Path, write: WriteId, tasks: list[Values], options: StagingOptions = SMALL
) -> list[StagedFile]:
    """Begin a write, and stage the rows of each of its tasks."""
    folder = begin(log_directory, write)
    staged = []
    for task, values in enumerate(tasks):
        stager = Stager(folder, options, task=task)
        for (topic, partition), each in values.items():
            stager.write(topic, partition, rows(each))
        staged += stager.finish()
    return staged


def visible(log_directory: Path, isolation_level: str = "read_committed") -> Values:
    """Return the values that a reader sees, in the order of their offsets."""
    shown: Values = defaultdict(list)
    topics = topics_of(log_directory)
    if not topics:
        return shown
    table = kraftlog.open(log_directory, topics=topics).records(
        ["topic", "partition", "offset", "value"], isolation_level=isolation_level
    )
    for row in table.to_table().sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist():
        shown[row["topic"], row["partition"]].append(row["value"].decode())
    return shown


def topics_of(log_directory: Path) -> list[str]:
    """Return the topics that have segments, but for those of Kafka itself."""
    topics = [topic for topic in partition_folders(log_directory) if not topic.startswith("__")]
    return [topic for topic in topics if any(log_directory.glob(f"{topic}-*/*.log"))]


def assert_sound(log_directory: Path) -> None:
    """Check all that ``kraftlog verify`` checks, and that nothing is under way or left open."""
    log = kraftlog.open(log_directory)
    assert log.errors().to_pylist() == []
    assert [fault.message for fault in log.verify(ReadOptions())] == []
    assert not (log_directory / ".kraftlog").exists()
    assert not list(log_directory.rglob("*.unfinished"))


def states(log_directory: Path) -> set[str]:
    topics = topics_of(log_directory)
    return set(kraftlog.open(log_directory, topics=topics).partition_transactions()["state"].to_pylist())
