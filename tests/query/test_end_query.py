"""Queries for the least and the greatest offsets, against the same queries over the whole log."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.query import end_query
from kraftlog.query.end_query import EndQuery
from kraftlog.query.session import SqlSession
from kraftlog.write.log_end import find_log_end
from kraftlog.write.partition_log import LogOptions, PartitionLog

TRANSACTIONS = GOLDEN / "transactions" / "log"
COMPACTED = GOLDEN / "compaction" / "log"


def answers(log: kraftlog.Log, query: str, level: str = "read_uncommitted") -> tuple[list[dict[str, object]], int]:
    """Return the rows, and how many bytes of the log were read."""
    sizes: list[int] = []
    with SqlSession(log, isolation_level=level, on_progress=sizes.append) as session:  # type: ignore[arg-type]
        rows = session.query(query).read_all().to_pylist()
        assert session.faults == []
    return rows, sum(sizes)


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 60,000 records in many segments, and a partition with few."""
    folder = tmp_path_factory.mktemp("log")
    for partition, count in ((0, 60_000), (1, 40)):
        (folder / f"orders-{partition}").mkdir()
        with PartitionLog(find_log_end(folder / f"orders-{partition}"), LogOptions(segment_bytes=50_000)) as log:
            for first in range(0, count, 100):
                some = range(first, min(first + 100, count))
                keys = [b"%d" % (i * 7919 % 1000) for i in some]
                rows = pa.table({"key": keys, "value": [b"v"] * len(keys), "timestamp_ms": pa.array(some, pa.int64())})
                log.append(kraftlog.encode(rows, base_offset=first, compression="zstd"), commit=True)
    return folder


@pytest.mark.parametrize(
    ("query", "most_share"),
    [
        ('select max("offset") as last from orders', 0.1),
        ('select min("offset") from records', 0.1),
        ('select * from orders order by "offset" desc limit 10', 0.1),
        ('select decode(key) as k, "offset" from orders where partition = 1 order by "offset" limit 3', 0.1),
        ('select "offset", timestamp from orders where decode(key) = \'81\' order by "offset" desc limit 2', 0.1),
        ('select "offset" from orders where decode(key) = \'81\' order by "offset" desc limit 20', 1.3),
        ('select "offset", key from orders where partition = 1 order by "offset" desc limit 50', 0.1),
        ("select max(\"offset\") from orders where key = 'none'", 1.3),
    ],
)
def test_little_of_a_long_log_is_read(long_log: Path, query: str, most_share: float) -> None:
    log = kraftlog.open(long_log)
    found, size = answers(log, query)
    with patch.object(EndQuery, "of", return_value=None):
        expected, _ = answers(log, query)
    assert found == expected != []
    assert size <= most_share * sum(path.stat().st_size for path in long_log.glob("orders-*/*.log"))


CONDITIONS = (
    "partition = 0",
    "partition in (1, 2)",
    "key is not null",
    '"offset" between 3 and 60',
    "timestamp < '2024-01-01 00:00:30+00'",
    "transaction_state = 'aborted'",
    "decode(key) like '%1'",
)


@settings(max_examples=40)
@given(
    folder=st.sampled_from((TRANSACTIONS, COMPACTED)),
    level=st.sampled_from(("read_uncommitted", "read_committed")),
    conditions=st.lists(st.sampled_from(CONDITIONS), unique=True, max_size=2),
    form=st.sampled_from(("min", "max", "asc", "desc", "")),
    limit=st.integers(1, 60),
    first_span=st.integers(1, 20),
)
def test_answers_are_those_of_the_whole_log(
    folder: Path, level: str, conditions: list[str], form: str, limit: int, first_span: int
) -> None:
    columns = f'{form}("offset") as o' if form in ("min", "max") else 'partition, "offset", key'
    query = f"select {columns} from records" + (" where " if conditions else "") + " and ".join(conditions)
    if form not in ("min", "max"):
        query += f' order by "offset" {form} limit {limit}'
    log = kraftlog.open(folder)
    with patch.object(end_query, "FIRST_SPAN", first_span), patch.object(end_query, "WIDER", 3):
        assert EndQuery.of(query) is not None
        found, _ = answers(log, query, level)
    with patch.object(EndQuery, "of", return_value=None):
        expected, _ = answers(log, query, level)
        every, _ = answers(log, query.rpartition(" limit ")[0] or query, level)
    assert len(found) == len(expected)
    if form in ("min", "max"):
        assert found == expected
    else:  # of records with one offset, any may come first
        assert [row["offset"] for row in found] == [row["offset"] for row in expected]
        assert all(row in every for row in found)


@pytest.mark.parametrize(
    "query",
    [
        'select distinct key from records order by "offset" limit 3',
        'select -"offset" as "offset" from records order by "offset" limit 3',
        'select -"offset" "offset" from records order by "offset" limit 3',
        'select row_number() over (order by "offset") from records order by "offset" desc limit 3',
        'select key from records order by "offset" limit 3 offset 2',
        'select key from records order by "offset", key limit 3',
        "select key from records order by key limit 3",
        'select key from records a, records b order by "offset" limit 3',
        'select key from records group by key order by "offset" limit 3',
        'select max("offset"), min("offset") from records',
        'select max("offset") from records group by partition',
        'select max("offset") - 1 from records',
        "select max(partition) from records",
        'select key from records where "offset" < (select max(partition) from records) order by "offset" limit 3',
        'select key from records using sample 10 order by "offset" limit 3',
        'select key from records order by "offset" limit 3 -- all',
        'select key from (select * from records) order by "offset" limit 3',
        'with a as (select 1) select key from records order by "offset" limit 3',
        'select key from records where key is null union select key from records order by "offset" limit 3',
        "describe records",
    ],
)
def test_queries_of_another_form(query: str) -> None:
    assert EndQuery.of(query) is None


def test_names_that_mean_something_else() -> None:
    with SqlSession(kraftlog.open(TRANSACTIONS)) as session:
        session.query('create view orders as select -"offset" as "offset" from topics.orders').read_all()
        with patch.object(end_query, "FIRST_SPAN", 1):
            assert session.query('select max("offset") as o from orders').read_all().to_pylist() == [{"o": 0}]
            assert session.query('select max("offset") as o from topics.orders').read_all().to_pylist() == [{"o": 129}]
