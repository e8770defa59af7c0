"""``onError=quarantine``: what a read could not read is a table of its own, for every way of reading."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import kraftlog
from growing_log import GrowingPartition
from kraftlog.spark import read_ranges, to_parquet
from kraftlog.spark.options import parse_request
from kraftlog.spark.quarantine import make_quarantine
from kraftlog.spark.stream import KraftlogStreamReader
from kraftlog.spark.task import plan_tasks, read_part
from micro_batches import Query
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
    """Return how many rows there are, in no way of reading."""
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


def append_damaged(log: GrowingPartition) -> None:
    """Append a batch that is damaged, and one that is not."""
    log.append(1)
    good = log.segment.read_bytes()
    log.segment.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    log.append(1)


def test_a_query_that_goes_on_gets_a_quarantine(tmp_path: Path):
    """Spark asks only a new query where it begins."""
    log = GrowingPartition(tmp_path / "log")
    log.append(1)
    append_damaged(log)
    quarantine = tmp_path / "quarantine"
    given = {"path": str(log.folder.parent), "onError": "quarantine", "quarantinePath": str(quarantine)}
    request = parse_request(given, is_streaming=True)
    reader = KraftlogStreamReader(request, from_arrow_schema(request.schema))
    for start, end in ((1, 3), (2, 3)):
        partitions = reader.partitions({"orders": {"0": start}}, {"orders": {"0": end}})
        assert pq.read_table(quarantine / "no-rows.parquet").num_rows == 0
        assert sum(batch.num_rows for one in partitions for batch in reader.read(one)) == 1
        assert pq.read_table(quarantine)["base_offset"].to_pylist() == [1]


@pytest.mark.parametrize("table", ["records", "messages"])
def test_a_stream_keeps_all_that_it_put_aside(tmp_path: Path, table: str):
    """Also when a partition goes, so that there are fewer offsets than before; a repeated micro-batch adds nothing."""
    log = GrowingPartition(tmp_path / "log", "__consumer_offsets")  # messages are read of internal topics
    other = GrowingPartition(tmp_path / "log", "returns")
    other.append(6)
    quarantine = tmp_path / "quarantine"
    options = {"onError": "quarantine", "quarantinePath": str(quarantine), "failOnDataLoss": "false"}
    query = Query(tmp_path / "log", table=table, rangeBytes="100", **options)
    make_quarantine(str(quarantine))
    query.run()
    put_aside = []
    for number in range(12):
        if number == 3:
            other.folder.rename(f"{other.folder}.0123456789abcdef0123456789abcdef-delete")
        if number % 5 == 4:
            log.roll()
        put_aside.append(log.model.next_offset)
        append_damaged(log)
        query.rows(query.latest())
        query.restart()
        query.run()
        errors = pq.read_table(quarantine).filter(pc.field("error") == "bad_crc")
        assert sorted(errors["base_offset"].to_pylist()) == put_aside


def test_a_quarantine_needs_a_mounted_folder(damaged: Path):
    with pytest.raises(ValueError, match="quarantinePath is s3://bucket/errors, not a folder of a mounted file system"):
        read_all(damaged, "s3://bucket/errors")
