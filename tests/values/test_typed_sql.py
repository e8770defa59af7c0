"""Filters on fields of typed values, and queries over topics with formats: against rows that were typed as a whole."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from registry import framed, schema_record, write

import kraftlog
from kraftlog.query.session import SqlSession
from kraftlog.tables.redaction import Redaction
from kraftlog.values.typed_options import TypedOptions

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": "string"}],
}
COUNT = 400
Row = dict[str, Any]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> kraftlog.Log:
    """Orders of four customers, some tombstones, and some values that are no Avro; a topic without a schema."""
    chance = random.Random(5)
    orders: list[tuple[str, bytes | None]] = []
    for number in range(COUNT):
        value = framed(3, ORDER, {"id": chance.randrange(1000), "customer": chance.choice(["ada", "bob", "eve", ""])})
        orders.append((str(number), chance.choice([value] * 8 + [None, b"text"])))
    path = tmp_path_factory.mktemp("typed") / "log"
    write(path, [schema_record("orders-value", 1, 3, ORDER)], orders=orders, plain=[("a", b"1"), ("b", b"22")])
    return kraftlog.open(path)


@pytest.fixture(scope="module")
def rows(log: kraftlog.Log) -> list[Row]:
    orders = kraftlog.open(log.found.segments[0].folder.parent, topics=["orders"])
    stream = orders.records(["offset", "value", "value_error"], value_format="avro")
    found: list[Row] = stream.to_table().to_pylist()
    assert len(found) == COUNT
    return found


def customers_from(rows: list[Row], least: int) -> list[int]:
    return [row["offset"] for row in rows if row["value"] is not None and row["value"]["id"] >= least]


@pytest.mark.parametrize("least", [0, 500, 990, 5000])
def test_a_filter_on_a_field(log: kraftlog.Log, rows: list[Row], least: int):
    orders = log.of_files(log.found.only(lambda topic, _: topic in ("orders", "_schemas")))
    wanted = (pc.field("topic") == "orders") & (pc.field("value", "id") >= least)
    options = TypedOptions.of(value_format="avro", value_schema="orders-value")
    assert options is not None
    stream = orders.scan("records", ["offset"], filter=wanted, typed=options)
    assert stream.to_table()["offset"].to_pylist() == customers_from(rows, least)


def test_a_filter_on_what_is_wrong(log: kraftlog.Log, rows: list[Row]):
    orders = kraftlog.open(log.found.segments[0].folder.parent, topics=["orders"])
    stream = orders.records(["offset"], value_format="avro", filter=pc.field("value_error").is_valid())
    expected = [row["offset"] for row in rows if row["value_error"] is not None]
    assert stream.to_table()["offset"].to_pylist() == expected
    assert len(expected) > 10
    assert [fault.error for fault in stream.faults] == ["bad_value"]


def test_offsets_of_a_filter_bound_what_is_typed(log: kraftlog.Log, rows: list[Row]):
    """Values that lie outside are not looked at: what is wrong with them is no fault."""
    orders = kraftlog.open(log.found.segments[0].folder.parent, topics=["orders"])
    bad = next(row["offset"] for row in rows if row["value_error"] is not None)
    wanted = (pc.field("offset") < bad) & (pc.field("value", "customer") == "ada")
    stream = orders.records(["offset", "value"], value_format="avro", filter=wanted)
    expected = [row for row in rows if row["offset"] < bad and (row["value"] or {}).get("customer") == "ada"]
    assert stream.to_table().to_pylist() == [{"offset": row["offset"], "value": row["value"]} for row in expected]
    assert stream.faults == []


def test_a_filter_on_a_field_that_is_not_there(log: kraftlog.Log):
    orders = kraftlog.open(log.found.segments[0].folder.parent, topics=["orders"])
    with pytest.raises(ValueError, match="price"):
        orders.records(["offset"], value_format="avro", filter=pc.field("value", "price") > 3).to_table()


def test_queries(log: kraftlog.Log, rows: list[Row]):
    with SqlSession(log, typed=TypedOptions.of(value_format="avro")) as session:
        found = session.query('select "offset" from orders where value.id >= 500 order by 1').read_all()
        assert found["offset"].to_pylist() == customers_from(rows, 500)
        found = session.query(
            "select value.customer as name, count(*) as n from orders where value is not null group by 1"
        )
        counts = dict(zip(*(column.to_pylist() for column in found.read_all().columns), strict=True))
        names = [row["value"]["customer"] for row in rows if row["value"] is not None]
        assert counts == {name: names.count(name) for name in set(names)}
        wrong = session.query("select count(*) as n from orders where value_error is not null").read_all()
        assert wrong["n"].to_pylist() == [sum(row["value_error"] is not None for row in rows)]
        assert [fault.error for fault in session.faults] == ["bad_value"]


def test_a_topic_without_a_schema_keeps_bytes(log: kraftlog.Log):
    with SqlSession(log, typed=TypedOptions.of(value_format="avro")) as session:
        found = session.query("select value from plain").read_all()
        assert found.schema.field("value").type == pa.binary()
        assert found["value"].to_pylist() == [b"1", b"22"]
        assert session.notes == ["plain keeps bytes: it has no schema"]
        session.query("select count(*) from orders").read_all()
        assert session.notes == []


def test_topics_are_typed_when_a_query_reads_them(log: kraftlog.Log, monkeypatch: pytest.MonkeyPatch):
    """All values say the type then; other topics are not looked at."""
    looked_at: list[list[str]] = []

    def resolved(self: TypedOptions, found: Any, *, strict: bool) -> Any:
        looked_at.append(sorted({segment.topic for segment in found.segments}))
        return whole(self, found, strict=strict)

    whole = TypedOptions.resolved
    monkeypatch.setattr(TypedOptions, "resolved", resolved)
    redaction = Redaction.of(["value.none=null"], None)
    with SqlSession(log, typed=TypedOptions.of(value_format="json"), redaction=redaction) as session:
        assert looked_at == []
        assert session.query("select sum(value) as n from topics.PLAIN").read_all()["n"].to_pylist() == [23]
        session.query('select * from "plain" where value_error is null').read_all()
        assert looked_at == [["plain"]]


def test_a_schema_that_is_not_there(log: kraftlog.Log):
    with pytest.raises(ValueError, match="payments-value"):
        SqlSession(log, typed=TypedOptions.of(value_format="avro", value_schema="payments-value"))


def test_command(log: kraftlog.Log, rows: list[Row]):
    path: Path = log.found.segments[0].folder.parent
    query = "select count(*) as n from orders where value.id >= 990"
    done = subprocess.run(
        [sys.executable, "-m", "kraftlog", "sql", str(path), query, "--value-format", "avro"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["n", str(len(customers_from(rows, 990)))]
    assert done.returncode == 1  # values that are no Avro were met
    assert "could not be read" in done.stderr
