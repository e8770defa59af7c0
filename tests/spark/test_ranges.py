"""``read_ranges``: the plan's order, tasks that are tried again, and what counters count."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import Counters, header_stage, read_ranges
from kraftlog.spark.options import parse_request
from kraftlog.spark.over_parts import over_parts
from kraftlog.spark.parts import Part
from kraftlog.spark.task import plan_tasks, read_part
from segment_files import flip, write_partition
from segments_of_transactions import long_transaction

CODECS = GOLDEN / "codecs" / "log"


@pytest.fixture(scope="module")
def spark(retrying_spark):
    """Two threads, which try a task up to four times."""
    return retrying_spark


def test_order_is_that_of_the_log(spark):
    columns = ["topic", "partition", "offset", "key", "value"]
    frame = read_ranges(spark, str(CODECS), columns=columns, rangeBytes="16k")
    assert frame.toArrow().to_pylist() == kraftlog.open(CODECS).records(columns).to_table().to_pylist()
    parts = plan_tasks(parse_request({"path": str(CODECS), "rangeBytes": "16k"}))
    assert frame.rdd.getNumPartitions() == len(parts) > 20


def test_options_as_python_has_them(spark):
    names = [str(CODECS / "codec-lz4-0"), str(CODECS / "codec-zstd-0")]
    ends = {"codec-lz4": {"0": 7}, "codec-zstd": {"0": 5}}
    frame = read_ranges(spark, names, columns=["offset"], endingOffsets=ends, includeHeaders=False, definitions=None)
    assert [row.offset for row in frame.collect()] == [*range(7), *range(5)]


def test_many_small_segments_are_few_tasks(spark, tmp_path: Path):
    """The same rows, in order, by both ways to read them; a damaged segment costs its own rows only."""
    write_partition(tmp_path / "orders-0", segments=900)
    flip(tmp_path / "orders-0" / f"{4000:020d}.log")
    expected = [offset for offset in range(9000) if not 4000 <= offset < 4010]
    options = {"columns": "offset", "onError": "skip"}
    source = spark.read.format("kraftlog").options(**options).load(str(tmp_path))
    for frame in (read_ranges(spark, str(tmp_path), **options), source):
        assert frame.rdd.getNumPartitions() == 225
        assert frame.toArrow()["offset"].to_pylist() == expected


def test_nothing_to_read(spark):
    frame = read_ranges(spark, str(CODECS / "codec-lz4-0"), startingOffsets=5, endingOffsets=5)
    assert frame.count() == 0
    assert over_parts(spark, [], lambda part: iter(()), pa.schema([("n", pa.int64())]), "nothing").collect() == []


def test_a_log_is_not_taken_for_a_small_table(spark, tmp_path: Path):
    """Spark would send all of it to every executor, by the size of the list of parts; a small table still is sent."""
    from pyspark.sql import functions as F  # noqa: N812

    write_partition(tmp_path / "orders-0", segments=3)
    log = read_ranges(spark, str(tmp_path), columns="offset")
    other = spark.range(0, 50_000_000).withColumnRenamed("id", "offset")
    small = spark.range(3, 4).withColumnRenamed("id", "offset")
    plans = {
        name: frame._jdf.queryExecution().executedPlan().toString()
        for name, frame in {"large": other.join(log, "offset"), "small": log.join(small, "offset")}.items()
    }
    assert "SortMergeJoin" in plans["large"]
    assert "Broadcast" not in plans["large"]
    assert "BroadcastHashJoin" in plans["small"]
    assert [row.offset for row in log.join(small, "offset").collect()] == [3]
    assert log.join(F.broadcast(log), "offset").count() == 30


def size_in_java(spark: SparkSession, object: Any) -> int:
    """Return how many bytes Spark sends of an object of the JVM."""
    data = spark._jvm.java.io.ByteArrayOutputStream()
    spark._jvm.java.io.ObjectOutputStream(data).writeObject(object)
    return data.size()


def test_a_task_receives_its_own_part_only(spark, tmp_path: Path):
    """Neither the plan that all tasks receive nor a partition grows with the number of parts."""
    schema = pa.schema([("n", pa.int64())])
    parts = [bytes([number % 251]) + np.random.default_rng(number).bytes(999) for number in range(300)]

    def lengths(part: bytes) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([len(part) * part[0]])], schema=schema)

    frame = over_parts(spark, parts, lengths, schema, "lengths")
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head().execute()
    source = scan
    while source.dependencies().nonEmpty():
        source = source.dependencies().head().rdd()
    assert max(size_in_java(spark, source.partitions()[at]) for at in (0, 299)) < 1000 + 2000
    assert size_in_java(spark, scan) < 60_000
    assert [row.n for row in frame.collect()] == [1000 * (number % 251) for number in range(300)]
    assert frame.rdd.getNumPartitions() == 300


def test_explain_shows_what_is_read(spark, capsys: pytest.CaptureFixture[str]):
    read_ranges(spark, str(CODECS), subscribe="codec-lz4", columns="offset", startingOffsets=341).explain()
    expected = f"kraftlog records of {CODECS}, topics codec-lz4, offsets from 341, 1 part of 31990 bytes"
    assert expected in capsys.readouterr().out


def test_a_task_that_is_tried_again_gives_its_rows_once(spark, tmp_path: Path):
    write_partition(tmp_path / "log" / "orders-0", segments=4)
    request = parse_request({"path": str(tmp_path / "log"), "columns": "offset"})

    def fails_at_first(part: Part) -> Iterator[pa.RecordBatch]:
        yield from read_part(request, part, [])
        first = tmp_path / f"tried-{part.number}"
        if part.number % 2 and not first.exists():
            first.touch()
            raise OSError("the first attempt")

    frame = over_parts(spark, plan_tasks(request), fails_at_first, request.schema, "reads")
    assert [row.offset for row in frame.collect()] == list(range(40))
    assert len(list(tmp_path.glob("tried-*"))) == 2


def test_counters(spark, tmp_path: Path):
    write_partition(tmp_path / "orders-0", segments=3)
    damaged = tmp_path / "orders-0" / f"{10:020d}.log"
    flip(damaged)
    counters = Counters(spark)
    assert read_ranges(spark, str(tmp_path), counters=counters, onError="skip").count() == 20
    size = sum(path.stat().st_size for path in (tmp_path / "orders-0").iterdir())
    assert (counters.bytes_read, counters.batches, counters.rows, counters.errors) == (size, 2, 20, 1)
    assert repr(counters) == f"Counters(bytes_read={size}, batches=2, rows=20, errors=1)"


def test_every_part_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    write_partition(tmp_path / "orders-0", segments=2)
    flip(tmp_path / "orders-0" / f"{10:020d}.log")
    request = parse_request({"path": str(tmp_path), "onError": "skip"})
    with caplog.at_level(logging.INFO, logger="kraftlog.spark"):
        for part in plan_tasks(request):
            assert sum(batch.num_rows for batch in read_part(request, part, [])) == 10 - 10 * part.number
    first, second = tmp_path / "orders-0" / f"{0:020d}.log", tmp_path / "orders-0" / f"{10:020d}.log"
    size = first.stat().st_size
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [message.partition(": stored crc")[0] for message in warned] == [
        f"part 1: 1 errors, the first: orders-0/{second.name}: batch at byte 0"
    ]
    informed = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert [message.rpartition(",")[0] for message in informed] == [
        f"part 0: orders-0/{first.name} from byte 0, {size} bytes, 10 rows, 0 errors",
        f"part 1: orders-0/{second.name} from byte 0, {second.stat().st_size} bytes, 0 rows, 1 errors",
    ]


def test_segments_without_snapshots_are_gone_over_in_the_cluster(spark, tmp_path: Path, monkeypatch):
    """A transaction over many segments; the driver opens none of them to find out how it ends."""
    expected = long_transaction(tmp_path / "t-0", 40, "ABORT")
    monkeypatch.setattr(header_stage, "MANY_PASSES", 20)

    def refuse(passes: object) -> None:
        raise AssertionError("the driver goes over headers")

    monkeypatch.setattr(header_stage, "in_threads", refuse)
    frame = read_ranges(spark, str(tmp_path / "t-0"), columns="offset", isolationLevel="read_committed")
    assert [row.offset for row in frame.collect()] == expected
