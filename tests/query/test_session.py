"""Queries over logs, against the same queries over tables that were read as a whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog import schema
from kraftlog.metadata.image import TYPES
from kraftlog.metadata.image_table import image_table
from kraftlog.query.session import SqlSession
from kraftlog.tables.all_tables import TABLES

TRANSACTIONS = GOLDEN / "transactions" / "log"
QUERIES = (
    'select partition, count(*) as n, max("offset") as last from orders group by all order by 1',
    'select "offset", key, value from orders where partition = 0 and "offset" between 3 and 60 order by 1',
    "select count(*) as n from topics.orders where timestamp < '2024-01-01 00:00:10+00'",
    "select count(*) as n from orders where timestamp is null or partition in (1, 2)",
    "select decode(key) as k from orders where key is not null order by 1 limit 7",
    'select "offset" + 1 as next from orders where "offset" * 2 > 30 and partition <> 1 order by 1',
    'select a."offset" from orders a join orders b on a."offset" = b."offset" + 1 order by 1',
    "select partition, producer_id, transaction_state, count(*) as n from orders group by all order by all",
)


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    table = schema.RECORDS
    columns = [*table.shown, *table.on_request]
    rows = kraftlog.open(TRANSACTIONS, topics="orders").records(columns).to_table()
    connection.register("orders", rows)
    connection.execute("create schema topics")
    connection.execute("create view topics.orders as select * from main.orders")
    yield connection
    connection.close()


def as_rows(table: pa.Table) -> list[dict[str, object]]:
    return table.to_pylist()


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_over_whole_tables(plain: duckdb.DuckDBPyConnection, query: str) -> None:
    with SqlSession(kraftlog.open(TRANSACTIONS)) as session:
        found = session.query(query).read_all()
        assert session.faults == []
    plain_query = query.replace("topics.orders", "orders")
    assert as_rows(found) == plain.sql(plain_query).arrow().read_all().to_pylist() != []


def test_read_committed() -> None:
    log = kraftlog.open(TRANSACTIONS, topics="orders")
    expected = log.records(isolation_level="read_committed").to_table().num_rows
    with SqlSession(log, isolation_level="read_committed") as session:
        assert as_rows(session.query("select count(*) as n from orders").read_all()) == [{"n": expected}]
    assert 0 < expected < log.records().to_table().num_rows


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("metadata_changes",)])
def test_each_table(name: str) -> None:
    log = kraftlog.open(TRANSACTIONS)
    expected = log.scan(name).to_table()
    with SqlSession(log) as session:
        found = session.query(f"select {', '.join(map(quoted, expected.column_names))} from {name}").read_all()
    assert as_rows(found) == as_rows(expected)


def quoted(name: str) -> str:
    return f'"{name}"'


def test_image() -> None:
    log = kraftlog.open(GOLDEN / "metadata" / "log")
    image = log.image().image
    with SqlSession(log) as session:
        for name in TYPES:
            expected = image_table(image, name)
            found = session.query(f"select * from image.{name}").read_all()
            assert found.num_rows == expected.num_rows
            assert found.column_names == expected.column_names
        (row,) = as_rows(
            session.query(
                "select count(*) as partitions from image.PartitionRecord p join image.TopicRecord t using (topic_id) "
                "where t.name = 'meta-1'"
            ).read_all()
        )
        names = session.query("select salt from image.UserScramCredentialRecord").read_all()
    topic = image.tables()["TopicRecord"].to_pylist()
    (meta_1,) = [one["topic_id"] for one in topic if one["name"] == "meta-1"]
    partitions = image.tables()["PartitionRecord"].column("topic_id").to_pylist()
    assert row == {"partitions": partitions.count(meta_1)}
    assert set(names.column("salt").to_pylist()) == {None}  # a secret


def bytes_read(query: str) -> tuple[pa.Table, int]:
    sizes: list[int] = []
    with SqlSession(kraftlog.open(TRANSACTIONS), on_progress=sizes.append) as session:
        return session.query(query).read_all(), sum(sizes)


def test_what_conditions_rule_out_is_not_read() -> None:
    path = TRANSACTIONS / "orders-0" / f"{102:020d}.log"
    found, size = bytes_read('select count(*) as n from orders where partition = 0 and "offset" >= 102')
    rows = kraftlog.open(TRANSACTIONS, topics="orders", partitions=[0]).records(start_offset=102).to_table()
    assert as_rows(found) == [{"n": rows.num_rows}]
    assert size == path.stat().st_size
    found, size = bytes_read("select count(*) as n from records where topic = 'orders' and partition = 2")
    assert size == (TRANSACTIONS / "orders-2" / f"{0:020d}.log").stat().st_size


def test_a_limit_ends_the_reading() -> None:
    read = []
    log = kraftlog.open(TRANSACTIONS)
    with SqlSession(log, on_progress=read.append) as session:
        assert session.query("select * from records limit 1").read_all().num_rows == 1
    assert sum(read) < log.size_in_bytes // 2


def test_faults_of_what_was_read() -> None:
    log = kraftlog.open(GOLDEN / "damaged" / "bit_flip_payload" / "log")
    with SqlSession(log) as session:
        session.query("select count(*) from records").read_all()
        assert [fault.error for fault in session.faults] == ["bad_crc"]
        session.query("select 1").read_all()
        assert session.faults == []


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from records",
        'select min("offset"), max("offset") from t',
        "select count(*) from records where \"offset\" >= 3 and topic = 't'",
        'select "offset", producer_id from records order by "offset" desc limit 2',
    ],
)
def test_columns_of_batch_headers_are_not_decompressed(query: str) -> None:
    """Compressed bytes are damaged, and the checksum was computed after that: a reader of keys has faults."""
    with SqlSession(kraftlog.open(GOLDEN / "damaged" / "bit_flip_gzip_crc_recomputed" / "log")) as session:
        assert session.query(query).read_all().num_rows
        assert session.faults == []
        session.query("select count(key) from records").read_all()
        assert session.faults != []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select * from nope", "Table with name nope does not exist"),
        ("select nope from orders", 'column "nope" not found'),
        ("selec", "syntax error"),
    ],
)
def test_queries_that_are_none(query: str, message: str) -> None:
    with SqlSession(kraftlog.open(TRANSACTIONS)) as session, pytest.raises(session.errors, match=message):
        session.query(query).read_all()


def test_names_that_need_quotes(tmp_path: Path) -> None:
    folder = tmp_path / "a.b-c-0"
    folder.mkdir()
    data = kraftlog.encode(pa.table({"value": pa.array([b"x"], pa.binary())}))
    (folder / f"{0:020d}.log").write_bytes(data)
    with SqlSession(kraftlog.open(tmp_path)) as session:
        assert as_rows(session.query('select decode(value) as v from "a.b-c"').read_all()) == [{"v": "x"}]


def test_topics_with_names_of_tables(tmp_path: Path) -> None:
    folder = tmp_path / "batches-0"
    folder.mkdir()
    data = kraftlog.encode(pa.table({"value": pa.array([b"x", b"y"], pa.binary())}))
    (folder / f"{0:020d}.log").write_bytes(data)
    with SqlSession(kraftlog.open(tmp_path)) as session:
        assert session.query("select * from batches").read_all().column_names[:3] == [
            "topic",
            "partition",
            "segment_base_offset",
        ]
        assert session.query("select value from topics.batches").read_all().num_rows == 2


def test_without_duckdb() -> None:
    script = (
        "import sys; sys.modules['duckdb'] = None\n"
        "import kraftlog\n"
        "from kraftlog.query.session import SqlSession\n"
        f"try: SqlSession(kraftlog.open({str(TRANSACTIONS)!r}))\n"
        "except ImportError as error: print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "SQL needs duckdb, which is not installed: pip install 'kraftlog[sql]'\n"
