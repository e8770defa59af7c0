"""Typed keys and values as columns of Spark: the rows of the library, by the schema of planning."""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kraftlog
from kraftlog.spark import to_parquet
from kraftlog.spark.options import parse_request

sys.path.append(str(Path(__file__).parents[1] / "values"))
from registry import framed, schema_record, write

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "items", "type": {"type": "array", "items": ["null", "string"]}, "default": []},
    ],
}
OLD = SCHEMA | {"fields": SCHEMA["fields"][:3]}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rows = [{"id": row, "tags": {"a": row}, "at": 1_767_225_600_000_000 + row} for row in range(300)]
    records = [("k", framed(1, OLD, row)) for row in rows]
    records += [("k", framed(2, SCHEMA, row | {"items": ["x", None]})) for row in rows] + [("k", None), ("k", b"?")]
    schemas = [schema_record("orders-value", 1, 1, OLD), schema_record("orders-value", 2, 2, SCHEMA)]
    return write(tmp_path_factory.mktemp("typed") / "log", schemas, orders=records)


OPTIONS = {"subscribe": "orders", "valueFormat": "avro", "keyFormat": "string", "onError": "skip"}


def expected(log, columns):
    stream = kraftlog.open(log, topics=["orders"]).records(columns, value_format="avro", key_format="string")
    return stream.to_table().to_pylist()


def test_rows(spark, log):
    frame = spark.read.format("kraftlog").options(**OPTIONS).option("rangeBytes", "4k").load(str(log))
    assert frame.columns[-2:] == ["key_error", "value_error"]
    rows = frame.orderBy("offset").selectExpr("key", "value.id", "value.items", "value.tags['a'] as a", "value_error")
    for row, wanted in zip(rows.collect(), expected(log, ["key", "value", "value_error"]), strict=True):
        value = wanted["value"] or {"id": None, "items": None, "tags": [("a", None)]}
        found = (wanted["key"], value["id"], value["items"], value["tags"][0][1], wanted["value_error"])
        assert tuple(row) == found
    assert frame.filter("value_error is not null").count() == 1
    assert frame.select("value.at").first().at is not None


def test_the_first_that_does_not_fit_ends_the_job(spark, log):
    options = OPTIONS | {"onError": "fail"}
    with pytest.raises(Exception, match="orders-0: 1 value could not be read"):
        spark.read.format("kraftlog").options(**options).load(str(log)).select("value.id").collect()


def test_parquet(spark, log, tmp_path):
    export = to_parquet(spark, str(log), str(tmp_path / "output"), **OPTIONS, columns="topic,partition,offset,value")
    assert export.rows == 602
    files = sorted((tmp_path / "output").rglob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert rows == expected(log, ["offset", "value"])
    assert [error["error"] for error in export.errors.to_pylist()] == ["bad_value"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"valueFormat": "avor"}, "format 'avor' is not one of avro"),
        ({"valueFormat": "avro", "table": "batches"}, "require the table records, not batches"),
        ({"schemas": "/tmp"}, "goes with valueFormat or keyFormat"),
        ({"valueSchema": "1"}, "value_schema and value_framing go with a value_format"),
    ],
)
def test_options_that_cannot_be(log, options, reason):
    with pytest.raises(ValueError, match=reason):
        parse_request({"path": str(log), **options})
