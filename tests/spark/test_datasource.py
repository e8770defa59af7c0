"""Spark's rows are the library's rows, by the data source and by ranges."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import read_ranges
from kraftlog.spark.options import parse_request
from kraftlog.spark.parts import plan_parts
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.table import TaskCut
from spark_rows import clusters, command_line_rows, comparable, plain_rows, rows_of

CODECS = GOLDEN / "codecs" / "log"


@pytest.mark.sweep(1)
@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.cut is not TaskCut.WHOLE])
def test_rows(spark, table: str, tmp_path: Path):
    """Of all golden scenarios in one job."""
    groups = clusters()
    expected = comparable([row for paths in groups for row in command_line_rows(table, paths, tmp_path)])
    assert expected
    options = {"table": table, "rangeBytes": "16k", "includeHeaders": "true", "onError": "skip"}
    each = [list(map(str, paths)) for paths in groups]
    source = reduce(DataFrame.union, [spark.read.format("kraftlog").options(**options).load(paths) for paths in each])
    assert comparable(rows_of(source)) == expected
    source = reduce(DataFrame.union, [read_ranges(spark, paths, **options) for paths in each])
    assert comparable(rows_of(source)) == expected


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "name", ["transactions", "transactions_hanging", "compaction", "metadata_txn/nested_begin_illegal"]
)
def test_read_committed(spark, name: str):
    folder = str(GOLDEN / name / "log")
    columns = ["topic", "partition", "offset", "transaction_state", "visible_at"]
    for level in ("read_committed", "read_uncommitted"):
        options = {"isolationLevel": level, "columns": ",".join(columns), "rangeBytes": "1k", "onError": "skip"}
        source = spark.read.format("kraftlog").options(**options).load(folder)
        expected = comparable(plain_rows(kraftlog.open(folder).records(columns, isolation_level=level).to_table()))
        assert expected
        assert comparable(rows_of(source)) == expected
        assert comparable(rows_of(read_ranges(spark, folder, **options))) == expected


def test_headers_at_read_committed(spark, tmp_path: Path):
    """Batches and segments are those of the files at any isolation level."""
    folder = str(GOLDEN / "transactions" / "log")
    for table in ("batches", "segments"):
        options = {"kafka.isolation.level": "read_committed", "table": table, "rangeBytes": "1k"}
        source = spark.read.format("kraftlog").options(**options).load(folder)
        assert comparable(rows_of(source)) == comparable(command_line_rows(table, [Path(folder)], tmp_path))


def test_hanging(spark):
    folder = str(GOLDEN / "transactions_hanging" / "log")
    source = spark.read.format("kraftlog").option("table", "hanging_transactions").load(folder)
    assert rows_of(source) == plain_rows(kraftlog.open(folder).hanging_transactions())
    assert source.count() == 1


def test_markers_out_of_place(spark):
    folder = str(GOLDEN / "metadata_txn" / "nested_begin_illegal" / "log")
    errors = spark.read.format("kraftlog").option("table", "errors").load(folder)
    assert [row.error for row in errors.collect()] == ["begin_inside_transaction", "end_outside_transaction"]
    with pytest.raises(Exception, match="BeginTransactionRecord at offset 4, but a transaction is open since offset 2"):
        spark.read.format("kraftlog").option("isolationLevel", "read_committed").load(folder).count()


def test_schema_is_that_of_sparks_kafka_source(spark):
    frame = spark.read.format("kraftlog").load(str(CODECS))
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    with_headers = spark.read.format("kraftlog").option("includeHeaders", "true").load(str(CODECS))
    assert with_headers.schema["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_every_column(spark):
    for table in ("records", "batches", "segments"):
        definition = TABLES[table].schema
        columns = ",".join([*definition.shown, *definition.on_request])
        frame = spark.read.format("kraftlog").option("table", table).option("columns", columns).load(str(CODECS))
        names = [
            "timestampType" if table == "records" and name == "timestamp_type" else name for name in columns.split(",")
        ]
        assert frame.columns == names
        assert frame.count() == kraftlog.open(CODECS).scan(table).to_table().num_rows


def test_options(spark):
    def offsets(**options: str) -> list[int]:
        reader = spark.read.format("kraftlog").option("columns", "offset").option("subscribe", "codec-appendtime")
        for name, value in options.items():
            reader = reader.option(name, value)
        return sorted(row.offset for row in reader.load(str(CODECS)).collect())

    assert offsets(startingOffsets="100", endingOffsets="120") == list(range(100, 120))
    assert offsets(startTimestamp="2026-11-21T02:54:37.788Z") == list(range(290, 330))
    assert offsets(startTimestamp="1795229677788") == list(range(290, 330))
    assert offsets(endTimestamp="2026-11-21T02:54:37.774Z") == [0]
    two = [str(CODECS / "codec-lz4-0"), str(CODECS / "codec-zstd-0")]
    assert spark.read.format("kraftlog").load(two).select("topic").distinct().count() == 2
    given = spark.read.format("kraftlog").schema("offset bigint, topic string").load(str(CODECS))
    assert given.count() == 5219
    assert given.columns == ["offset", "topic"]


def test_control_records(spark):
    folder = str(GOLDEN / "transactions" / "log" / "orders-0")
    reader = spark.read.format("kraftlog").option("columns", "offset,control_type").option("includeControl", "true")
    rows = comparable(rows_of(reader.load(folder)))
    log = kraftlog.open(folder)
    assert rows == comparable(plain_rows(log.records(["offset", "control_type"], include_control=True).to_table()))


def test_damage(spark):
    folder = str(GOLDEN / "damaged" / "bit_flip_payload" / "log")
    reader = spark.read.format("kraftlog")
    with pytest.raises(Exception, match="stored crc 1973285820, computed crc 2762825390"):
        reader.load(folder).count()
    assert reader.option("onError", "skip").load(folder).count() == 17
    errors = spark.read.format("kraftlog").option("table", "errors").load(folder)
    assert rows_of(errors) == plain_rows(kraftlog.open(folder).errors())
    deleted = str(GOLDEN / "deleted_records" / "log")
    named = spark.read.format("kraftlog").option("table", "errors").load(deleted)
    assert {row.error for row in named.collect()} == {"not_read"}


def test_mistakes(spark):
    for options, text in (
        ({"colums": "offset"}, "unknown option colums"),
        ({"table": "record"}, "option table is 'record'"),
        ({"columns": "ofset"}, "no column 'ofset'"),
        ({"onError": "ignore"}, "option onError is 'ignore'"),
        ({"rangeBytes": "big"}, "option rangeBytes is 'big'"),
        ({"startingOffsets": "first"}, "option startingOffsets is 'first'"),
        ({"isolationLevel": "serializable"}, "isolation_level 'serializable'"),
    ):
        reader = spark.read.format("kraftlog")
        for name, value in options.items():
            reader = reader.option(name, value)
        with pytest.raises(Exception, match=text):
            reader.load(str(CODECS)).count()
    with pytest.raises(Exception, match="no such file or directory"):
        spark.read.format("kraftlog").load("nowhere").count()


def test_partitions_start_at_batches():
    request = parse_request({"path": str(CODECS), "rangeBytes": "4k"})
    parts = list(plan_parts(request))
    assert len(parts) > 60
    for part in parts:
        starts = kraftlog.open(part.work.segment.path).batches(["position"])["position"].to_pylist()
        assert part.work.start in starts
