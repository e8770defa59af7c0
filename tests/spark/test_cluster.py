"""The same rows when executors are processes of their own, and when they die."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.options import ReadOptions
from kraftlog.spark import read_ranges
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.table import TaskCut
from spark_rows import clusters, command_line_rows, comparable, plain_rows, rows_of, write_schemas

LOG = GOLDEN / "transactions" / "log"
HANGS = 300.0  # seconds
BATCHES_BEFORE_IT = 4  # of three rows: the writer has whole batches in its file


@pytest.mark.sweep(2)
@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.cut is not TaskCut.WHOLE])
def test_rows(cluster, table: str, tmp_path: Path):
    groups = clusters()
    expected = comparable([row for paths in groups for row in command_line_rows(table, paths, tmp_path)])
    options = {"table": table, "rangeBytes": "64k", "includeHeaders": "true", "onError": "skip"}
    read = cluster.read.format("kraftlog").options(**options)
    source = reduce(DataFrame.union, [read.load(list(map(str, paths))) for paths in groups])
    assert comparable(rows_of(source)) == expected


@pytest.mark.sweep(1)
@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.cut is TaskCut.WHOLE])
def test_folded_rows(cluster, table: str, tmp_path: Path):
    folder = GOLDEN / ("groups" if table in ("offsets", "groups") else "transactions_hanging") / "log"
    if table == "schemas":
        folder = write_schemas(tmp_path / "log")
    expected = comparable(command_line_rows(table, [folder], tmp_path))
    assert expected
    source = cluster.read.format("kraftlog").options(table=table, onError="skip").load(str(folder))
    assert comparable(rows_of(source)) == expected


def test_ranges(cluster, tmp_path: Path):
    folder = GOLDEN / "codecs" / "log"
    expected = comparable(command_line_rows("records", [folder], tmp_path))
    assert comparable(rows_of(read_ranges(cluster, str(folder), rangeBytes="16k", includeHeaders=True))) == expected


Pass = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def dying_once(marker: Path, victims: Callable[[], list[int]]) -> Pass:
    """Return a function for ``mapInArrow`` that kills processes after the first rows, once in the whole job."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == BATCHES_BEFORE_IT:
                with suppress(FileExistsError):
                    marker.touch(exist_ok=False)
                    for victim in victims():
                        os.kill(victim, signal.SIGKILL)
            yield batch

    return pass_on


def this_worker() -> list[int]:
    return [os.getpid()]


def other_workers() -> list[int]:
    """Return those forked from the same daemon: one of them reads or writes for the same task."""
    daemon = os.getppid()
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and parent_of(pid) == daemon]


def its_executor() -> list[int]:
    """Return the JVM: the parent of the daemon that workers are forked from."""
    return [parent_of(os.getppid())]


def parent_of(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it has ended
        return 0
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def slow_at_first(folder: Path) -> Pass:
    """Return a function for ``mapInArrow`` whose first attempt at one task hangs after its first rows."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        (folder / f"{task.partitionId()}-{task.attemptNumber()}").touch()
        for batch in batches:
            yield batch
            if task.partitionId() == task.attemptNumber() == 0:
                time.sleep(HANGS)  # it is killed once the second attempt has ended

    return pass_on


@pytest.fixture(autouse=True, scope="module")
def functions_go_along() -> Iterator[None]:
    """Workers cannot import this module: its functions are sent to them whole."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def small_batches(cluster) -> Iterator[None]:
    """Give functions more than one batch of each task."""
    cluster.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "3")
    yield
    cluster.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def records(cluster, **options: str) -> DataFrame:
    return cluster.read.format("kraftlog").options(rangeBytes="4k", includeHeaders="true", **options).load(str(LOG))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("victims", [this_worker, other_workers, its_executor])
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_processes_die(cluster, small_batches, victims: Callable[[], list[int]], level: str, tmp_path: Path):
    expected = comparable(command_line_rows("records", [LOG], tmp_path, "--isolation-level", level))
    source = records(cluster, isolationLevel=level)
    marker = tmp_path / "died"
    found = source.mapInArrow(dying_once(marker, victims), source.schema)
    assert comparable(rows_of(found)) == expected
    assert marker.exists()


def test_second_attempts_at_slow_tasks(cluster, small_batches, tmp_path: Path):
    expected = comparable(command_line_rows("records", [LOG], tmp_path))
    source = records(cluster)
    attempts = tmp_path / "attempts"
    attempts.mkdir()
    assert comparable(rows_of(source.mapInArrow(slow_at_first(attempts), source.schema))) == expected
    assert {"0-0", "0-1"} <= {path.name for path in attempts.iterdir()}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("victims", [this_worker, other_workers, its_executor])
def test_processes_die_while_they_write(cluster, small_batches, victims: Callable[[], list[int]], tmp_path: Path):
    marker = tmp_path / "died"
    assert_written_once(cluster, dying_once(marker, victims), tmp_path / "target")
    assert marker.exists()


def test_second_attempts_at_slow_tasks_write_once(cluster, small_batches, tmp_path: Path):
    attempts = tmp_path / "attempts"
    attempts.mkdir()
    assert_written_once(cluster, slow_at_first(attempts), tmp_path / "target")
    assert {"0-0", "0-1"} <= {path.name for path in attempts.iterdir()}


def assert_written_once(cluster, function: Pass, target: Path) -> None:
    """Assert that a copy that Spark makes, with a function on the way, has the committed records of a topic."""
    source = records(cluster, subscribe="orders", isolationLevel="read_committed")
    writer = source.mapInArrow(function, source.schema).write.format("kraftlog").mode("append")
    writer.option("batchSize", "2000").save(str(target))
    original, copy = (kraftlog.open(path, topics=["orders"]) for path in (LOG, target))
    columns = ["partition", "key", "value", "headers", "timestamp"]
    rows = [log.records(columns, isolation_level="read_committed").to_table() for log in (original, copy)]
    assert comparable(plain_rows(rows[1])) == comparable(plain_rows(rows[0]))
    assert [fault.message for fault in kraftlog.open(target).verify(ReadOptions())] == []
    assert not (target / ".kraftlog").exists()
