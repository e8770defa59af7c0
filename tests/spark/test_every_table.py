"""Every table of every golden scenario, cut into parts, has the rows of the command line. No session is needed."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, damaged_cases, name_of, scenarios
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.read import read
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.table import TaskCut
from spark_rows import command_line_rows, comparable, plain_rows

EACH_BATCH, WHOLE_FILES = "1", "1g"


def rows_by_parts(found: list[Fault] | None = None, **options: str) -> list[dict[str, Any]]:
    """Read as tasks do: each part as it comes out of another process, in no order."""
    request = parse_request({"onError": "skip", **options})
    batches: list[pa.RecordBatch] = []
    for part in reversed(plan_parts(request)):
        faults: list[Fault] = []
        request_there, part_there = pickle.loads(pickle.dumps((request, part)))
        batches += read(request_there, part_there, faults)
        if found is not None:
            found += faults
    return plain_rows(pa.Table.from_batches(batches, schema=request.schema))


def test_messages_without_secrets():
    """They are hidden unless they are asked for, as on the command line."""
    log = str(GOLDEN / "metadata" / "log")
    values = [row["value"] for row in rows_by_parts(path=log, table="messages")]
    expected = kraftlog.open(log).messages(["value"]).to_table().column("value").to_pylist()
    assert sorted(map(str, values)) == sorted(map(str, expected))
    hidden = [value for value in expected if value and '"salt":"[redacted]"' in value]
    assert len(hidden) == sum('"salt":' in (value or "") for value in expected) > 0


@pytest.mark.sweep(180)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("folder", scenarios(), ids=name_of)
def test_rows(folder: Path, table: str, tmp_path: Path):
    expected = comparable(command_line_rows(table, [folder / "log"], tmp_path))
    for range_bytes in (
        (EACH_BATCH, "4k", WHOLE_FILES) if TABLES[table].cut in (TaskCut.RANGES, TaskCut.CHECKS) else (WHOLE_FILES,)
    ):
        found = rows_by_parts(path=str(folder / "log"), table=table, rangeBytes=range_bytes, includeHeaders="true")
        assert comparable(found) == expected


@pytest.mark.sweep(12)
@pytest.mark.parametrize("folder", scenarios(), ids=name_of)
def test_read_committed(folder: Path, tmp_path: Path):
    options = ("--isolation-level", "read_committed")
    expected = comparable(command_line_rows("records", [folder / "log"], tmp_path, *options))
    for range_bytes in (EACH_BATCH, "4k", WHOLE_FILES):
        found = rows_by_parts(
            path=str(folder / "log"), isolationLevel="read_committed", rangeBytes=range_bytes, includeHeaders="true"
        )
        assert comparable(found) == expected


@pytest.mark.sweep(50)
@pytest.mark.parametrize(
    "table", [name for name, table in TABLES.items() if table.cut in (TaskCut.RANGES, TaskCut.CHECKS)]
)
@pytest.mark.parametrize("folder", damaged_cases(), ids=name_of)
def test_damage(folder: Path, table: str, tmp_path: Path):
    expected = comparable(command_line_rows(table, [folder / "log"], tmp_path))
    for range_bytes in (EACH_BATCH, WHOLE_FILES):
        found = rows_by_parts(path=str(folder / "log"), table=table, rangeBytes=range_bytes, includeHeaders="true")
        assert comparable(found) == expected


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = tmp_path / "log"
    shutil.copytree(GOLDEN / "codecs" / "log", log)
    real = os.scandir

    def refusing(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "codec-lz4-0":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(CorruptRecordError, match="codec-lz4-0: Permission denied"):
        plan_parts(parse_request({"path": str(log)}))
    faults: list[Fault] = []
    assert len(rows_by_parts(faults, path=str(log))) == 5219 - 751
    assert [fault.error for fault in faults] == ["unreadable_file"]
    errors = rows_by_parts(path=str(log), table="errors")
    assert [row["error"] for row in errors if row["error"] != "not_read"] == ["unreadable_file"]
