"""Internal topics in Spark: the rows of the library, for all records, for one type, and folded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.options import ReadOptions
from kraftlog.spark import read_ranges
from kraftlog.spark.options import parse_request
from spark_rows import comparable, plain_rows, rows_of

SCENARIOS = ("groups", "transactions", "metadata", "share_state", "coordinator_future")


@pytest.mark.sweep(5)
@pytest.mark.parametrize("table", ["offsets", "groups", "transactional_ids"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_rows(spark, name: str, table: str):
    folder = str(GOLDEN / name / "log")
    expected = comparable(plain_rows(kraftlog.open(folder).scan(table).to_table()))
    source = spark.read.format("kraftlog").options(table=table, onError="skip").load(folder)
    assert comparable(rows_of(source)) == expected
    assert comparable(rows_of(read_ranges(spark, folder, table=table, onError="skip"))) == expected


@pytest.mark.parametrize(
    ("name", "record_type"),
    [
        ("groups", "OffsetCommit"),
        ("groups", "ConsumerGroupMemberMetadata"),
        ("metadata", "PartitionRecord"),
        ("metadata", "RegisterBrokerRecord"),
        ("transactions", "TransactionLog"),
        ("share_state", "ShareSnapshot"),
        ("coordinator_future", "OffsetCommit"),
    ],
)
def test_type(spark, name: str, record_type: str):
    folder = str(GOLDEN / name / "log")
    expected = plain_rows(kraftlog.open(folder).messages(type=record_type).to_table())
    assert expected
    source = spark.read.format("kraftlog").options(type=record_type, onError="skip").load(folder)
    assert comparable(rows_of(source)) == comparable(expected)


def test_json_of_a_value(spark):
    """Spark's own functions take it as it is."""
    folder = str(GOLDEN / "metadata" / "log")
    spark.read.format("kraftlog").option("table", "messages").load(folder).createOrReplaceTempView("messages")
    name = "get_json_object(value, '$.name')"
    rows = spark.sql(f"select {name} as name from messages where type = 'TopicRecord' order by offset limit 1")
    assert [row["name"] for row in rows.collect()] == ["meta-0"]


def test_ones_own_definitions(spark, tmp_path: Path):
    definition = {
        "apiKey": 2,
        "type": "metadata",
        "name": "TopicRecord",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": [
            {"name": "calledSo", "type": "string", "versions": "0+"},
            {"name": "topicId", "type": "uuid", "versions": "0+"},
        ],
    }
    (tmp_path / "TopicRecord.json").write_text(json.dumps(definition))
    options = {"type": "TopicRecord", "definitions": str(tmp_path), "columns": "called_so"}
    source = spark.read.format("kraftlog").options(**options).load(str(GOLDEN / "metadata" / "log"))
    assert source.first()["called_so"] == "meta-0"


def test_bad_messages_are_errors(spark):
    folder = str(GOLDEN / "coordinator_future" / "log")
    expected = plain_rows(kraftlog.open(folder).scan("errors", None, ReadOptions()).to_table())
    errors = spark.read.format("kraftlog").option("table", "errors").load(folder)
    assert comparable(rows_of(errors)) == comparable(expected)
    assert {row["error"] for row in expected} == {"bad_message"}
    with pytest.raises(Exception, match="record at offset"):
        spark.read.format("kraftlog").option("table", "messages").load(folder).count()


def test_options_that_do_not_fit():
    with pytest.raises(ValueError, match="option type requires the table messages, not records"):
        parse_request({"path": "x", "table": "records", "type": "TopicRecord"})
    with pytest.raises(ValueError, match="nor a type of message"):
        parse_request({"path": "x", "type": "Nothing"})
