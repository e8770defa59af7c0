"""``onError=quarantine``: what a read could not read is a table of its own, behind every door."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kraftlog
from kraftlog.spark import read_ranges, to_parquet
from kraftlog.spark.options import parse_request
from kraftlog.spark.task import plan_tasks, read_part
from segment_files import flip, write_partition
from spark_rows import comparable, rows_of


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Two of five segments are damaged."""
    folder = tmp_path / "log" / "orders-0"
    write_partition(folder, segments=5)
    for base_offset in (10, 30):
        flip(folder / f"{base_offset:020d}.log")
    return tmp_path / "log"


def errors_of(log: Path) -> pa.Table:
    """Return what the library could not read of the records."""
    stream = kraftlog.open(log).records()
    assert stream.to_table().num_rows == 30
    assert stream.errors.num_rows == 2
    return stream.errors


def test_errors_of_the_same_read(spark, damaged: Path, tmp_path: Path):
    expected = comparable(errors_of(damaged).to_pylist())
    folders = {name: str(tmp_path / name) for name in ("source", "ranges", "export")}
    options = {name: {"onError": "quarantine", "quarantinePath": folder} for name, folder in folders.items()}
    assert spark.read.format("kraftlog").options(**options["source"]).load(str(damaged)).count() == 30
    assert read_ranges(spark, str(damaged), **options["ranges"]).count() == 30
    export = to_parquet(spark, str(damaged), str(tmp_path / "output"), **options["export"])
    assert export.rows == 30
    assert comparable(export.errors.to_pylist()) == expected
    for folder in folders.values():
        assert comparable(rows_of(spark.read.parquet(folder))) == expected


def read_all(log: Path, quarantine: Path | str) -> int:
    """Return how many rows there are, behind no door."""
    request = parse_request({"path": str(log), "onError": "quarantine", "quarantinePath": str(quarantine)})
    return sum(batch.num_rows for part in plan_tasks(request) for batch in read_part(request, part, []))


def test_planning_begins_anew(damaged: Path, tmp_path: Path):
    quarantine = tmp_path / "quarantine"
    assert read_all(damaged, quarantine) == 30
    assert pq.read_table(quarantine).equals(errors_of(damaged))
    flip(damaged / "orders-0" / f"{10:020d}.log")
    flip(damaged / "orders-0" / f"{30:020d}.log")
    assert read_all(damaged, quarantine) == 50
    assert pq.read_table(quarantine).num_rows == 0
    assert pq.read_table(quarantine).schema.equals(kraftlog.open(damaged).records().errors.schema)


def test_reading_a_part_again_replaces_its_errors(damaged: Path, tmp_path: Path):
    quarantine = tmp_path / "quarantine"
    request = parse_request({"path": str(damaged), "onError": "quarantine", "quarantinePath": f"file://{quarantine}"})
    part = plan_tasks(request)[1]
    for _ in range(2):
        assert list(read_part(request, part, [])) == []
        assert pq.read_table(quarantine)["segment_base_offset"].to_pylist() == [10]
    flip(damaged / "orders-0" / f"{10:020d}.log")
    assert sum(batch.num_rows for batch in read_part(request, part, [])) == 10
    assert pq.read_table(quarantine).num_rows == 0
    assert [path.name for path in quarantine.iterdir()] == ["no-rows.parquet"]


def test_a_quarantine_needs_a_mounted_folder(damaged: Path):
    with pytest.raises(ValueError, match="quarantinePath is s3://bucket/errors, not a folder of a mounted file system"):
        read_all(damaged, "s3://bucket/errors")
