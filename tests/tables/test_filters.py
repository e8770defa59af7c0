"""Rows that pass a filter, against Arrow's filter of all rows; and what was read for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.schema import RECORDS
from kraftlog.tables.filter_bounds import FilterBounds

LOG = kraftlog.open(GOLDEN / "transactions" / "log")
COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value"]
ROWS = LOG.records(COLUMNS).to_table()
TIMES = sorted(ROWS.column("timestamp").drop_null().to_pylist())
TOPICS = [*LOG.topics, "nowhere"]
field = pc.field

offsets = st.integers(-2, 140)
times = st.builds(lambda at, by: at + timedelta(microseconds=by), st.sampled_from(TIMES), st.integers(-1500, 1500))
COMPARE = st.sampled_from(
    [pc.Expression.__eq__, pc.Expression.__lt__, pc.Expression.__le__, pc.Expression.__gt__, pc.Expression.__ge__]
)
leaves = st.one_of(
    st.builds(lambda compare, value: compare(field("offset"), pc.scalar(value)), COMPARE, offsets),
    st.builds(lambda compare, value: compare(field("timestamp"), pc.scalar(value)), COMPARE, times),
    st.builds(lambda compare, value: compare(field("partition"), pc.scalar(value)), COMPARE, st.integers(-1, 3)),
    st.builds(lambda value: field("topic") == value, st.sampled_from(TOPICS)),
    st.builds(lambda values: field("topic").isin(values), st.lists(st.sampled_from(TOPICS), min_size=1)),
    st.builds(lambda values: field("offset").isin(values), st.lists(offsets, min_size=1)),
    st.builds(lambda name: field(name).is_null(), st.sampled_from(COLUMNS)),
    st.builds(lambda text: pc.match_substring(field("value").cast("string", safe=False), text), st.sampled_from("ab")),
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=5,
)


@given(expressions)
def test_rows_are_those_that_pass(expression: pc.Expression) -> None:
    columns = ["partition", "offset", "value"]
    found = LOG.records(columns, filter=expression).to_table()
    assert found.equals(ROWS.filter(expression).select(columns))


def read_for(expression: pc.Expression) -> tuple[pa.Table, int]:
    sizes: list[int] = []
    stream = LOG.scan("records", ["topic", "partition", "offset"], filter=expression, on_progress=sizes.append)
    return stream.to_table(), sum(sizes)


def size_of(*patterns: str) -> int:
    return sum(path.stat().st_size for pattern in patterns for path in (GOLDEN / "transactions" / "log").glob(pattern))


@pytest.mark.parametrize(
    ("expression", "files"),
    [
        (field("topic") == "orders", ["orders-*/*.log"]),
        ((field("topic") == "orders") & (field("partition") == 1), ["orders-1/*.log"]),
        ((field("topic") == "orders") & (field("partition") == 0) & (field("offset") >= 102), ["orders-0/*102.log"]),
        (
            (field("topic") == "orders") & (field("partition") == 0) & (field("offset") >= 40) & (field("offset") < 50),
            ["orders-0/*032.log"],
        ),
        (field("topic") == "nowhere", []),
    ],
    ids=["topic", "partition", "offset", "offsets", "nothing"],
)
def test_what_is_ruled_out_is_not_read(expression: pc.Expression, files: list[str]) -> None:
    found, size = read_for(expression)
    assert found.num_rows == ROWS.filter(expression).num_rows
    assert size <= size_of(*files)


def test_a_bound_of_time_leaves_parts_of_segments_out() -> None:
    """Indexes lead behind the beginning of each segment: the timestamps of producers are not in order."""
    of_last = ROWS.filter((field("topic") == "orders") & (field("partition") == 0) & (field("offset") >= 102))
    first = min(of_last.column("timestamp").to_pylist())
    expression = (field("topic") == "orders") & (field("partition") == 0) & (field("timestamp") >= first)
    found, size = read_for(expression)
    assert found.num_rows == ROWS.filter(expression).num_rows > 0
    assert size < size_of("orders-0/*.log") * 2 // 3


@pytest.mark.parametrize(
    ("expression", "start", "end"),
    [
        (field("offset") == 7, 7, 8),
        ((field("offset") > 5) & (field("offset") <= 9), 5, 10),
        (field("offset").isin([3, 8]), 3, 9),
        (~(field("offset") > 5), -NO_BOUND, 6),
        ((field("offset") > 5) | (field("topic") == "x"), -NO_BOUND, NO_BOUND),
        (field("offset") + 1 > 5, -NO_BOUND, NO_BOUND),
        (field("offset") > 5.5, 5, NO_BOUND),
        (field("topic") == "x", -NO_BOUND, NO_BOUND),
    ],
    ids=str,
)
def test_bounds_of_offsets(expression: pc.Expression, start: int, end: int) -> None:
    options = FilterBounds(expression, RECORDS).within(ReadOptions())
    assert (options.start_offset, options.end_offset) == (start, end)


def test_bounds_are_those_of_both() -> None:
    options = FilterBounds(field("offset") < 20, RECORDS).within(ReadOptions(start_offset=4, end_offset=9))
    assert (options.start_offset, options.end_offset) == (4, 9)


def test_rows_without_a_time_are_not_lost() -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    expression = (field("timestamp") >= moment) | field("timestamp").is_null()
    options = FilterBounds(expression, RECORDS).within(ReadOptions())
    assert not options.bounds_timestamps


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            field("nope") == 1,
            r"filter \(nope == 1\) does not go with table records: No match for FieldRef.Name\(nope\)",
        ),
        (field("offset") == "a", "filter .* does not go with table records: Function 'equal' has no kernel"),
    ],
    ids=["column", "type"],
)
def test_filters_that_do_not_fit(expression: pc.Expression, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LOG.records(filter=expression)


def test_other_tables() -> None:
    batches = LOG.scan("batches").to_table()
    expression = (field("topic") == "orders") & (field("records_count") > 3)
    assert LOG.scan("batches", filter=expression).to_table().equals(batches.filter(expression))
    offsets = LOG.offsets()
    expression = field("topic") == "orders"  # of a commit, not of the log that holds it
    assert LOG.scan("offsets", filter=expression).to_table().equals(offsets.filter(expression))
    typed = LOG.messages(type="TransactionLog").to_table()
    expression = field("offset") < 10
    assert LOG.scan("TransactionLog", filter=expression).to_table().equals(typed.filter(expression))
