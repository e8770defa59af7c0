"""Writes of made-up rows, and what a log directory then shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

import kraftlog
from kraftlog.codec.options import ReadOptions
from kraftlog.store import BatchOptions, StagedFile, Stager, WriteId, begin

Values = dict[tuple[str, int], list[str]]  # of each partition

SMALL = BatchOptions(max_batch_bytes=200, segment_bytes=700)


def rows(values: Iterable[str]) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.string())})


def stage(log_directory: Path, write: WriteId, tasks: list[Values], options: BatchOptions = SMALL) -> list[StagedFile]:
    """Begin a write, and stage the rows of each of its tasks."""
    folder = begin(log_directory, write)
    staged = []
    for task, values in enumerate(tasks):
        stager = Stager(folder, write.producer_id, options, task=task)
        for (topic, partition), each in values.items():
            stager.write(topic, partition, rows(each))
        staged += stager.finish()
    return staged


def visible(log_directory: Path, isolation_level: str = "read_committed") -> Values:
    """Return the values that a reader sees, in the order of their offsets."""
    shown: Values = defaultdict(list)
    if not any(log_directory.glob("*-*/*.log")):
        return shown
    table = kraftlog.open(log_directory).records(
        ["topic", "partition", "offset", "value"], isolation_level=isolation_level
    )
    for row in table.to_table().sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist():
        shown[row["topic"], row["partition"]].append(row["value"].decode())
    return shown


def assert_sound(log_directory: Path) -> None:
    """Check all that ``kraftlog verify`` checks, and that nothing is under way or left open."""
    log = kraftlog.open(log_directory)
    assert log.errors().to_pylist() == []
    assert [fault.message for fault in log.verify(ReadOptions())] == []
    assert not (log_directory / ".kraftlog").exists()
    assert not list(log_directory.rglob("*.unfinished"))


def states(log_directory: Path) -> set[str]:
    return set(kraftlog.open(log_directory).transactions()["state"].to_pylist())
