"""Queries over redacted records answer as over a table of what is left; their conditions tell nothing else."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import duckdb
import polars
import pytest

import kraftlog
from command_line import run_command
from kraftlog.query.session import SqlSession
from kraftlog.tables.redaction import Redaction

SECRET = b"0123456789abcdef"
RULES = ["key=hash", "value.card=mask", "value.note=null", "header.user=hash"]
LEAKS = (  # what was there is 'k3', '4000 0012', 'call me' and 'u1'
    "key = 'k3'::blob",
    "key in ('k3'::blob, 'k4'::blob)",
    "key < 'k9'::blob and key > 'k'::blob",
    "decode(key) like 'k%'",
    "octet_length(key) = 2",
    "contains(decode(value), '4000')",
    "decode(value)->>'$.card' = '4000 0012'",
    "decode(value)->>'$.card' <> '***'",
    "decode(value)->>'$.note' is not null",
    "headers::varchar like '%u1%'",
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("redacted") / "logs"
    with kraftlog.LogStore(path) as store, store.producer() as producer:
        store.create_topic("orders", 2)
        for number in range(100):
            value = json.dumps({"id": number, "card": f"4000 {number:04d}", "note": "call me"})
            headers = [("user", f"u{number % 3}".encode())]
            producer.send("orders", key=f"k{number % 9}", value=value, headers=headers, partition=number % 2)
    return path


def redaction() -> Redaction:
    return Redaction(RULES, SECRET)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("table", ["orders", "topics.orders", "records"])
@pytest.mark.parametrize("condition", LEAKS)
def test_conditions_do_not_tell_what_was_there(logs: Path, table: str, condition: str) -> None:
    def count(session: SqlSession, condition: str) -> int:
        of_topic = " and topic = 'orders'" if table == "records" else ""
        rows = session.query(f"select count(*) as n from {table} where ({condition}){of_topic}").read_all()
        return rows["n"][0].as_py()

    with SqlSession(kraftlog.open(logs)) as session:
        assert count(session, condition) > 0
    with SqlSession(kraftlog.open(logs), redaction=redaction()) as session:
        assert count(session, condition) == 0
        assert count(session, f"not ({condition})") == 100


@pytest.mark.parametrize(
    "query",
    [
        'select partition, "offset", key, value, headers from orders order by all',
        'select "offset" from orders where key = (select min(key) from orders) order by all',
        "select key, count(*) as n from orders where decode(value)->>'$.card' = '***' group by all order by all",
        'select count(*) as n from orders a join orders b on a.key = b.key where a."offset" < 7',
        "select min(key) as low, max(value) as high from orders where partition = 1",
        "select value from orders where octet_length(key) = 64 order by all limit 3",
    ],
)
def test_answers_are_those_over_what_is_left(logs: Path, query: str) -> None:
    rows = kraftlog.open(logs, topics=["orders"]).records(redact=RULES, redact_key=SECRET).to_table()
    with closing(duckdb.connect()) as plain, SqlSession(kraftlog.open(logs), redaction=redaction()) as session:
        plain.register("orders", rows)
        expected = plain.sql(query).to_arrow_table().to_pylist()
        assert session.query(query).read_all().to_pylist() == expected != []
        assert session.notes == []


def test_typed_values(logs: Path) -> None:
    from kraftlog.values.typed_options import TypedOptions

    typed = TypedOptions.of("json", "string")
    with SqlSession(kraftlog.open(logs, topics=["orders"]), redaction=redaction(), typed=typed) as session:
        for condition in ("value.card = '4000 0012'", "value.note is not null", "key = 'k3'", "value.card <> '***'"):
            query = f"select count(*) as n from orders where {condition}"
            assert session.query(query).read_all().to_pylist() == [{"n": 0}]
        counts = session.query("select value.card as card, count(*) as n from orders group by all")
        assert counts.read_all().to_pylist() == [{"card": "***", "n": 100}]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_blob('{log}')",
        "select * from read_text('{log}')",
        "select * from read_csv('{log}')",
        "select * from '{log}'",
        "select * from secrets_of_this_process",
        "set enable_external_access = true",
        "set python_enable_replacements = true",
        "copy orders to '{log}.csv'",
        "attach '{log}.db' as other",
    ],
)
def test_nothing_else_can_be_read(logs: Path, query: str) -> None:
    secrets_of_this_process = kraftlog.open(logs, topics=["orders"]).records().to_table()
    text = query.format(log=next(logs.glob("orders-0/*.log")))
    with SqlSession(kraftlog.open(logs), redaction=redaction()) as session:
        with pytest.raises(session.errors):
            session.query(text).read_all()
        assert session.query("select count(*) as n from orders").read_all().to_pylist() == [{"n": 100}]
    assert secrets_of_this_process.num_rows == 100


def test_the_command(logs: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(SECRET)
    command = ["sql", str(logs)]
    options = [word for rule in (*RULES, "value.id.x=mask") for word in ("--redact", rule)]
    query = "select decode(value)->>'$.card' as card, count(*) as n from orders where key <> 'k3'::blob group by all"
    done = run_command(*command, query, *options, "--redact-key", str(key), "--format", "jsonl")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"card": "***", "n": 100}], done.stderr
    noted = run_command(
        *command, "select count(value) as n from records", "--redact", "key.id=mask", "--format", "jsonl"
    )
    assert "keys or values are no JSON" not in noted.stderr  # keys were not asked for
    noted = run_command(*command, "select key from topics.orders", "--redact", "key.id=mask", "--format", "jsonl")
    assert noted.stderr.strip() == "100 keys or values are no JSON, and were redacted as a whole"


def test_frames_of_polars(logs: Path) -> None:
    frame = kraftlog.scan(logs, topics=["orders"], redact=RULES, redact_key=SECRET)
    rows = kraftlog.open(logs, topics=["orders"]).records(redact=RULES, redact_key=SECRET).to_table()
    columns = ["partition", "offset", "key", "value"]
    assert frame.select(columns).collect().to_dicts() == rows.select(columns).to_pylist()
    key, value = polars.col("key"), polars.col("value")
    for condition in (key == b"k3", key.is_in([b"k3", b"k4"]), value.bin.contains(b"4000"), key < b"k9"):
        left = frame.filter(condition).select("key").collect()
        assert set(left["key"]) <= set(rows["key"].to_pylist())
        assert len(left) == len(polars.DataFrame(polars.from_arrow(rows.select(["key", "value"]))).filter(condition))
    with pytest.raises(ValueError, match="redaction is of the table records, not of batches"):
        kraftlog.scan(logs, "batches", redact=["key=null"])
