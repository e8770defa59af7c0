"""Filters of Spark never change the rows of other queries of a frame, whether or not Spark hands filters to sources."""

from __future__ import annotations

import pytest

import kraftlog
from golden_files import GOLDEN
from spark_rows import comparable, rows_of

CODECS = str(GOLDEN / "codecs" / "log")
HANDS_FILTERS_DOWN = "spark.sql.python.filterPushdown.enabled"
COLUMNS = ["topic", "partition", "offset", "key", "timestamp"]

CONDITIONS = [
    "offset >= 100 and offset < 120",
    "offset = 7",
    "offset in (3, 300)",
    "topic = 'codec-lz4' and offset <= 5",
    "topic in ('codec-lz4', 'codec-gzip') and partition = 0",
    "topic = 'nothing'",
    "timestamp >= timestamp'2026-11-21 02:54:37.788Z' and topic = 'codec-appendtime'",
    "timestamp = timestamp'2026-11-21 02:54:37.788Z'",
    "offset < 10 or topic = 'codec-lz4'",
    "key is null and offset between 10 and 20",
]


@pytest.mark.parametrize("hands_down", ["true", "false"])
def test_a_frame_serves_several_queries(spark, hands_down: str):
    """Spark keeps a plan that filters narrowed with its frame: a query without filters would lack rows."""
    whole = spark.createDataFrame(kraftlog.open(CODECS).records(COLUMNS).to_table().to_pandas())
    expected = comparable(rows_of(whole))
    spark.conf.set(HANDS_FILTERS_DOWN, hands_down)
    try:
        frame = spark.read.format("kraftlog").options(rangeBytes="4k", columns=",".join(COLUMNS)).load(CODECS)
        for condition in CONDITIONS:
            assert comparable(rows_of(frame.where(condition))) == comparable(rows_of(whole.where(condition)))
            assert comparable(rows_of(frame)) == expected, condition
    finally:
        spark.conf.unset(HANDS_FILTERS_DOWN)
