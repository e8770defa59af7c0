"""The same rows when executors are processes of their own, and when they die."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame

from golden_files import GOLDEN
from kraftlog.spark import read_ranges
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.table import TaskCut
from spark_rows import clusters, command_line_rows, comparable, rows_of, write_schemas


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


def dying_once(
    marker: Path, victim: Callable[[], int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that kills a process when rows come by, the first time in the whole job."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                yield batch
                continue
            os.kill(victim(), signal.SIGKILL)
            yield batch

    return pass_on


def this_worker() -> int:
    return os.getpid()


def its_executor() -> int:
    """Return the JVM: the parent of the daemon that workers are forked from."""
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


@pytest.fixture(autouse=True, scope="module")
def functions_go_along() -> Iterator[None]:
    """Workers cannot import this module: its functions are sent to them whole."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("victim", [this_worker, its_executor])
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_worker_dies(cluster, victim: Callable[[], int], level: str, tmp_path: Path):
    folder = GOLDEN / "transactions" / "log"
    expected = comparable(command_line_rows("records", [folder], tmp_path, "--isolation-level", level))
    options = {"isolationLevel": level, "rangeBytes": "1k", "includeHeaders": "true"}
    source = cluster.read.format("kraftlog").options(**options).load(str(folder))
    marker = tmp_path / "died"
    found = source.mapInArrow(dying_once(marker, victim), source.schema)
    assert comparable(rows_of(found)) == expected
    assert marker.exists()
