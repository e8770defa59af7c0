"""Filters of Spark narrow what is planned, and never change the rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.spark.pushdown import narrowed
from spark_rows import comparable, rows_of

CODECS = str(GOLDEN / "codecs" / "log")
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
MOMENT = datetime(2026, 11, 21, 2, 54, 37, 788000, UTC)

CONDITIONS = [
    "offset >= 100 and offset < 120",
    "offset = 7",
    "offset in (3, 300)",
    "offset > 400",
    "topic = 'codec-lz4' and offset <= 5",
    "topic in ('codec-lz4', 'codec-gzip') and partition = 0",
    "topic = 'nothing'",
    "timestamp >= timestamp'2026-11-21 02:54:37.788' and topic = 'codec-appendtime'",
    "timestamp < timestamp'2026-11-21 02:54:37.788' and topic = 'codec-appendtime'",
    "timestamp = timestamp'2026-11-21 02:54:37.788'",
    "not offset < 400",
    "offset < 10 or topic = 'codec-lz4'",
    "key is null and offset between 10 and 20",
]


@pytest.fixture
def handing_down(spark):
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.unset(PUSHDOWN)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_rows(handing_down, condition: str, zone: str):
    handing_down.conf.set("spark.sql.session.timeZone", "UTC")
    columns = "topic, partition, offset, key, timestamp"
    whole = handing_down.createDataFrame(
        kraftlog.open(CODECS).records(["topic", "partition", "offset", "key", "timestamp"]).to_table().to_pandas()
    )
    expected = comparable(rows_of(whole.where(condition)))
    condition = condition.replace(".788'", ".788Z'")
    handing_down.conf.set("spark.sql.session.timeZone", zone)
    source = _narrowing(handing_down)
    try:
        found = source.where(condition).selectExpr(columns.split(", "))
        handing_down.conf.set("spark.sql.session.timeZone", "UTC")
        assert comparable(rows_of(found)) == expected
    finally:
        handing_down.conf.set("spark.sql.session.timeZone", "UTC")


def _narrowing(spark):
    return spark.read.format("kraftlog").options(rangeBytes="4k", filterPushdown="true").load(CODECS)


def test_less_is_planned(handing_down):
    source = _narrowing(handing_down)
    everything = source.rdd.getNumPartitions()
    assert everything > 60
    assert source.where("topic = 'codec-lz4' and partition = 0 and offset < 20").rdd.getNumPartitions() == 1
    assert source.where("topic = 'codec-lz4'").rdd.getNumPartitions() < everything / 4


def test_a_frame_serves_several_queries(handing_down):
    """Spark hands filters down, and keeps what was planned with them for the next query of the frame."""
    source = handing_down.read.format("kraftlog").option("rangeBytes", "4k").load(CODECS)
    rows = len(kraftlog.open(CODECS).records(["offset"]).to_table())
    assert source.count() == rows
    few = source.where("offset < 10").count()
    assert 0 < few < rows
    assert source.count() == rows
    assert source.where("topic = 'codec-lz4'").count() < rows
    assert source.select("offset").where("offset >= 0").count() == rows


def test_without_the_switch(spark):
    assert spark.conf.get(PUSHDOWN) == "false"
    source = spark.read.format("kraftlog").load(CODECS)
    assert source.where("topic = 'codec-lz4' and partition = 0 and offset < 20").count() == 20


def test_bounds():
    from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual, Not

    request = parse_request({"path": CODECS})

    def bounds(*filters: object) -> tuple[int, int]:
        narrowing = narrowed(request, filters).narrowing
        return narrowing.start_offset, narrowing.end_offset

    nothing = bounds()
    assert bounds(GreaterThan(("offset",), 4), LessThanOrEqual(("offset",), 9)) == (4, 10)
    assert bounds(EqualTo(("offset",), 4)) == (4, 5)
    assert bounds(In(("offset",), (9, 4))) == (4, 10)
    assert bounds(Not(EqualTo(("offset",), 4))) == nothing
    assert bounds(EqualTo(("headers", "offset"), 4)) == nothing
    late = MOMENT + timedelta(microseconds=999)
    options = narrowed(request, [GreaterThanOrEqual(("timestamp",), late), LessThan(("timestamp",), late)]).options
    assert (options.start_timestamp, options.end_timestamp) == (1795229677788, 1795229677789)
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999500, UTC)
    assert narrowed(request, [GreaterThanOrEqual(("timestamp",), before_1970)]).options.start_timestamp == -1
    headers = parse_request({"path": CODECS, "table": "batches"})
    assert narrowed(headers, [GreaterThan(("offset",), 4)]) == headers
    few = narrowed(headers, [EqualTo(("topic",), "codec-lz4"), In(("partition",), (0, 1)), EqualTo(("partition",), 0)])
    assert {part.work.segment.partition for part in plan_parts(few)} == {0}
