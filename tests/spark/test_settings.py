"""Settings of a session do not change what is read, written, or made of columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import kraftlog
from golden_files import GOLDEN
from kraftlog.spark import (
    decode_batches,
    decode_message,
    encode_batch,
    pack_transactions,
    read_ranges,
    transaction_boundaries,
)
from spark_rows import command_line_rows, comparable, plain_rows, rows_of

LOG = GOLDEN / "transactions" / "log"
COLUMNS = ["partition", "key", "value", "headers", "timestamp"]
DECODED = ["key", "value", "offset", "timestamp", "headers"]
NO_OP = bytes.fromhex("01140000")
SETTINGS = {
    "a row a batch, old rules, no adaptive plans": {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.adaptive.enabled": "false",
    },
    "one batch, cases matter": {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(2**31 - 1),
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.caseSensitive": "true",
    },
    "batches without limits, large types": {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "0",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
        "spark.sql.session.timeZone": "+13:45",
    },
}


@pytest.fixture(params=SETTINGS)
def session(spark, request: pytest.FixtureRequest) -> Iterator[object]:
    settings = {
        name: value for name, value in SETTINGS[request.param].items() if spark.conf.get(name, None) is not None
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def test_reads(session, tmp_path: Path):
    expected = comparable(command_line_rows("records", [LOG], tmp_path))
    source = session.read.format("kraftlog").options(rangeBytes="1k", includeHeaders="true").load(str(LOG))
    assert comparable(rows_of(source)) == expected
    assert comparable(rows_of(read_ranges(session, str(LOG), rangeBytes="1k", includeHeaders=True))) == expected


def test_writes(session, tmp_path: Path):
    columns = [*COLUMNS, "topic"]
    log = kraftlog.open(LOG, topics=["orders"])
    source = read_ranges(session, str(LOG), subscribe="orders", isolationLevel="read_committed", includeHeaders=True)
    for order in (columns, columns[::-1]):
        target = tmp_path / order[0]
        source.select(*order).write.format("kraftlog").mode("append").save(str(target))
        found = kraftlog.open(target, topics=["orders"]).records(COLUMNS, isolation_level="read_committed").to_table()
        expected = log.records(COLUMNS, isolation_level="read_committed").to_table()
        assert comparable(plain_rows(found)) == comparable(plain_rows(expected))


def test_functions_of_batches(session):
    """In a field of a struct, with nulls of value, struct and array, and fields in another order."""
    paths = sorted(LOG.glob("orders-*/*.log"))
    rows = [(at, (bytearray(path.read_bytes()),)) for at, path in enumerate(paths)]
    rows += [(len(paths), None), (len(paths) + 1, (None,)), (len(paths) + 2, (bytearray(),))]
    frame = session.createDataFrame(rows, "number int, response struct<content: binary>")
    lists = frame.select("number", decode_batches("response.content", DECODED).alias("records"))
    expected = [row for path in paths for row in plain_rows(kraftlog.open(path).records(DECODED).to_table())]
    assert rows_of(lists.orderBy("number").select(F.inline("records"))) == expected
    assert [row.records for row in lists.where(f"number >= {len(paths)}").orderBy("number").collect()] == [
        None,
        None,
        [],
    ]
    other = F.transform(
        "records", lambda record: F.struct(*(record[name] for name in ("headers", "timestamp", "value", "key")))
    )
    batches = lists.select("number", encode_batch(other, compression="lz4").alias("content")).orderBy("number")
    found = [None if row.content is None else bytes(row.content) for row in batches.collect()]
    assert found[len(paths) :] == [None, None, b""]
    names = ["key", "value", "timestamp", "headers"]
    again = [
        row for content in found[: len(paths)] for row in plain_rows(kraftlog.decode(content, columns=names).to_table())
    ]
    assert again == [{name: row[name] for name in names} for row in expected]


def test_functions_of_transactions(session):
    lists = [[NO_OP] * 3, [], None, [NO_OP] * 700]
    rows = [(at, None if records is None else list(map(bytearray, records))) for at, records in enumerate(lists)]
    frame = session.createDataFrame(rows, "number int, records array<binary>").orderBy("number")
    packed = frame.select("number", pack_transactions("records", F.concat(F.lit("t"), "number")).alias("content"))
    expected = [
        None if records is None else kraftlog.pack_transaction(pa.array(records, pa.binary()), f"t{at}").to_pybytes()
        for at, records in enumerate(lists)
    ]
    assert [None if row.content is None else bytes(row.content) for row in packed.collect()] == expected
    found = packed.select("number", transaction_boundaries("content").alias("found")).collect()
    counts = [row.found and [(each.name, each.records_count) for each in row.found] for row in found]
    assert counts == [[("t0", 3)], [("t1", 0)], None, [("t3", 700)]]


def test_function_of_messages(session):
    segment = GOLDEN / "metadata" / "log" / "__cluster_metadata-0" / f"{0:020d}.log"
    values = kraftlog.open(segment).records(["value"]).to_table()["value"]
    frame = session.createDataFrame([(bytearray(value.as_py()),) for value in values], "value binary")
    decoded = frame.select(decode_message("TopicRecord", None, "value").alias("record")).where("record.error is null")
    found = rows_of(decoded.select("record.name", "record.topic_id"))
    expected = kraftlog.open(segment).scan("messages", ["type", "value"]).to_table().to_pylist()
    assert len(found) == sum(row["type"] == "TopicRecord" for row in expected) > 0
