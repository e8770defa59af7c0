"""Redacted records in Spark: the rows of the library; filters, pushed down or not, see what is left."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kraftlog
from kraftlog.spark import to_parquet
from kraftlog.spark.options import parse_request
from kraftlog.tables.redaction import Redaction

SECRET = b"0123456789abcdef"
RULES = ["key=hash", "value.card=mask", "header.user=null"]
COLUMNS = ["partition", "offset", "key", "value", "headers"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("redacted") / "logs"
    with kraftlog.LogStore(path) as store, store.producer() as producer:
        store.create_topic("orders", 2)
        for number in range(100):
            value = json.dumps({"id": number, "card": f"4000 {number:04d}"})
            headers = [("user", f"u{number % 3}".encode())]
            producer.send("orders", key=f"k{number % 9}", value=value, headers=headers, partition=number % 2)
    return path


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    key = tmp_path / "key"
    key.write_bytes(SECRET + b"\n")
    return {"subscribe": "orders", "redact": json.dumps(RULES), "redactKey": str(key), "columns": ",".join(COLUMNS)}


def expected(logs: Path, columns: list[str]) -> list[dict[str, object]]:
    rows = kraftlog.open(logs, topics=["orders"]).records(columns, redact=RULES, redact_key=SECRET)
    return rows.to_table().to_pylist()


def test_rows_and_filters(spark, logs, options):
    frame = spark.read.format("kraftlog").options(**options, rangeBytes="1k").load(str(logs))

    wanted = expected(logs, COLUMNS)
    rows = frame.orderBy("partition", "offset").collect()
    for row, one in zip(rows, wanted, strict=True):
        headers = [{"key": each.key, "value": each.value} for each in row.headers]
        found = [row.partition, row.offset, bytes(row.key), bytes(row.value), headers]
        assert found == [one[name] for name in COLUMNS]
    for leak in (
        "key = X'6b33'",
        "key in (X'6b33', X'6b34')",
        "key < X'6b39' and key >= X'6b30'",
        "cast(value as string) like '%4000%'",
        "get_json_object(cast(value as string), '$.card') <> '***'",
        "exists(headers, h -> h.value is not null)",
    ):
        assert frame.filter(leak).count() == 0, leak
    digest = wanted[0]["key"].decode()
    many = sum(one["key"] == wanted[0]["key"] and one["offset"] < 40 for one in wanted)
    assert frame.filter(f"key = cast('{digest}' as binary) and offset < 40").count() == many > 0
    assert frame.select("offset").count() == 100


def test_typed_values(spark, logs, options):
    options |= {"valueFormat": "json", "columns": "offset,value,value_error"}
    frame = spark.read.format("kraftlog").options(**options).load(str(logs))
    assert [tuple(row) for row in frame.selectExpr("value.card").distinct().collect()] == [("***",)]
    assert frame.filter("value.card = '4000 0012'").count() == 0
    assert frame.filter("value_error is not null").count() == 0


def test_streams_and_exports(spark, logs, options, tmp_path):
    stream = spark.readStream.format("kraftlog").options(**options, startingOffsets="earliest").load(str(logs))
    query = stream.writeStream.format("memory").queryName("redacted").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(120)
    rows = spark.sql("select partition, offset, key, value from redacted order by all").collect()
    wanted = [tuple(row.values()) for row in expected(logs, COLUMNS[:-1])]
    assert [(row.partition, row.offset, bytes(row.key), bytes(row.value)) for row in rows] == wanted
    to_parquet(spark, str(logs), str(tmp_path / "output"), **options)
    files = sorted((tmp_path / "output").rglob("*.parquet"))
    found = [row for file in files for row in pq.ParquetFile(file).read(["key", "value"]).to_pylist()]
    assert sorted(found, key=str) == sorted(expected(logs, ["key", "value"]), key=str)
    texts = b"".join(path.read_bytes() for path in (tmp_path / "output").rglob("*") if path.is_file())
    assert SECRET not in texts
    assert options["redactKey"].encode() not in texts


def test_what_is_sent_to_tasks(logs, options):
    request = parse_request(options | {"path": str(logs)})
    assert SECRET.decode() not in repr(request)
    sent = pickle.loads(pickle.dumps(request))
    record = (b"k3", b'{"card": 1}', [(b"user", b"me")])
    assert sent.redaction.record(record) == Redaction(RULES, SECRET).record(record)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"redact": "key"}, "expected key=HOW"),
        ({"redact": "key=hash"}, "hash needs a key"),
        ({"redact": "key=mask", "table": "batches"}, "option redact requires the table records, not batches"),
        ({"redactKey": "/tmp/key"}, "option redactKey requires redact"),
        ({"redact": "[]"}, r"option redact is '\[\]', not like"),
    ],
)
def test_wrong_options(logs, given, reason, monkeypatch):
    monkeypatch.delenv("KRAFTLOG_REDACT_KEY", raising=False)
    with pytest.raises(ValueError, match=reason):
        parse_request(given | {"path": str(logs)})


def test_words_and_the_variable(logs, monkeypatch):
    monkeypatch.setenv("KRAFTLOG_REDACT_KEY", SECRET.decode())
    request = parse_request({"redact": "key=hash, value.card=mask", "path": str(logs)})
    expected = Redaction(["key=hash", "value.card=mask"], SECRET).identity
    assert request.redaction.identity == expected
