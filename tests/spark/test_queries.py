"""Frames of log files in queries of all kinds: Spark's answers are those of a frame of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import read_ranges
from spark_rows import comparable, plain_rows, rows_of

LOG = GOLDEN / "transactions" / "log"
COLUMNS = ["topic", "partition", "offset", "key", "timestamp"]


def by_format(spark: Any, path: str | list[str]) -> DataFrame:
    return spark.read.format("kraftlog").options(rangeBytes="8k", columns=",".join(COLUMNS)).load(path)


def by_ranges(spark: Any, path: str | list[str]) -> DataFrame:
    return read_ranges(spark, path, rangeBytes="8k", columns=COLUMNS)


@pytest.fixture(params=[by_format, by_ranges])
def read(request: pytest.FixtureRequest) -> Callable[..., DataFrame]:
    return request.param


@pytest.fixture(params=["true", "false"])
def adaptive(spark, request: pytest.FixtureRequest) -> Iterator[None]:
    spark.conf.set("spark.sql.adaptive.enabled", request.param)
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.fixture(scope="module")
def plain(spark) -> DataFrame:
    return spark.createDataFrame(kraftlog.open(LOG).records(COLUMNS).to_table()).cache()


def test_joins_unions_and_caches(spark, read, adaptive, plain):
    def queries(frame: DataFrame, again: DataFrame) -> Iterator[DataFrame]:
        place = ["topic", "partition", "offset"]
        last = frame.groupBy("topic", "partition").agg(F.max("offset").alias("offset"))
        yield frame.join(F.broadcast(last), place).select(COLUMNS)
        yield frame.hint("merge").join(again.where("offset % 3 = 0"), place, "left_anti").select(COLUMNS)
        yield frame.join(frame.select(place).where("partition = 1"), place, "left_semi").select(COLUMNS)
        yield frame.union(again)
        yield frame.unionByName(again.select(COLUMNS[::-1]))
        yield frame.where("topic = 'orders'").union(again.where("topic <> 'orders'"))
        yield frame.exceptAll(again.where("partition = 0"))
        yield frame.dropDuplicates(["topic", "partition"]).select("topic", "partition")
        yield frame.repartition(3, "partition").sortWithinPartitions("offset").coalesce(1)
        yield frame.select("timestamp", "key").where("key is not null").distinct()

    frame, again = read(spark, str(LOG)), read(spark, str(LOG))
    for number, (found, expected) in enumerate(zip(queries(frame, again), queries(plain, plain), strict=True)):
        assert comparable(rows_of(found)) == comparable(rows_of(expected)), number
    cached = frame.cache()
    for _ in range(2):  # the second is of the cache
        assert comparable(rows_of(cached)) == comparable(rows_of(plain))
    assert comparable(rows_of(cached.where("offset < 5"))) == comparable(rows_of(plain.where("offset < 5")))
    cached.unpersist()


def test_a_few_rows(spark, read):
    frame = read(spark, str(LOG))
    rows = [tuple(row) for row in frame.collect()]
    assert [tuple(row) for row in frame.limit(7).collect()] == [tuple(row) for row in frame.take(7)] == rows[:7]
    assert [tuple(row) for row in frame.tail(7)] == rows[-7:]
    assert [tuple(row) for row in frame.offset(5).limit(3).collect()] == rows[5:8]
    assert [tuple(row) for row in frame.toLocalIterator()] == rows
    assert tuple(frame.first()) == rows[0]
    assert not frame.isEmpty()
    assert frame.limit(0).count() == 0
    assert frame.where("offset < 0").isEmpty()
    assert comparable(plain_rows(frame.orderBy(F.desc("timestamp"), "topic", "partition", "offset").limit(5).toArrow()))


def test_rows_of_a_source_are_in_order(spark, read):
    """The offsets of a partition come in order, as far as Spark keeps it."""
    rows = [(row.topic, row.partition, row.offset) for row in read(spark, str(LOG)).collect()]
    places = dict.fromkeys(row[:2] for row in rows)
    for place in places:
        offsets = [row[2] for row in rows if row[:2] == place]
        assert offsets == sorted(offsets)


def test_paths(spark, read):
    def offsets(path: str | list[str]) -> list[str]:
        return comparable(rows_of(read(spark, path)))

    parts = [str(LOG / f"orders-{number}") for number in range(3)]
    expected = comparable(plain_rows(kraftlog.open(LOG, topics=["orders"]).records(COLUMNS).to_table()))
    assert offsets(parts) == expected
    assert offsets(str(LOG / "orders-*")) == expected
    assert offsets([str(LOG / "orders-[01]"), str(LOG / "orders-2")]) == expected
    assert offsets([*parts, parts[0]]) == expected
    assert offsets(f"file://{LOG}/orders-*") == expected
    with pytest.raises(Exception, match="nothing-"):
        read(spark, str(LOG / "nothing-*")).count()


def test_names_of_options_in_any_case(spark):
    options = {
        "SUBSCRIBE": "orders",
        "startingoffsets": '{"orders": {"0": 5, "1": 5, "2": 5}}',
        "Columns": "partition,offset",
    }
    source = spark.read.format("KraftLog").options(**options).load(str(LOG))
    expected = kraftlog.open(LOG, topics=["orders"]).records(["partition", "offset"], start_offset=5).to_table()
    assert comparable(rows_of(source)) == comparable(plain_rows(expected))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING kraftlog OPTIONS (PATH '{LOG}', Subscribe 'orders')")
    assert spark.table("v").count() == kraftlog.open(LOG, topics=["orders"]).records(["offset"]).to_table().num_rows


def test_columns_of_a_schema_in_another_order(spark):
    source = spark.read.format("kraftlog").schema("offset bigint, key binary, topic string").load(str(LOG))
    expected = plain_rows(kraftlog.open(LOG).records(["offset", "key", "topic"]).to_table())
    assert source.columns == ["offset", "key", "topic"]
    assert comparable(rows_of(source)) == comparable(expected)
    with pytest.raises(Exception, match="column offset is bigint, not int"):
        spark.read.format("kraftlog").schema("offset int").load(str(LOG)).count()


def test_a_path_as_a_table_is_refused(spark):
    """Spark has such tables only for its own formats of files."""
    with pytest.raises(Exception, match="kraftlog"):
        spark.sql(f"SELECT count(*) FROM kraftlog.`{LOG}`").collect()


def test_written_columns_in_any_order(spark, tmp_path: Path):
    frame = spark.createDataFrame([(5, "v", "k", "orders")], "offset long, value string, key string, topic string")
    for order in (["value", "topic", "key", "offset"], ["topic", "offset", "key", "value"]):
        target = tmp_path / order[0]
        frame.select(order).write.format("kraftlog").mode("append").option("Compression", "zstd").save(str(target))
        found = kraftlog.open(target, topics=["orders"]).records(["key", "value"], isolation_level="read_committed")
        assert found.to_table().to_pylist() == [{"key": b"k", "value": b"v"}]
