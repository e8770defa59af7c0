"""Rows come to the partitions that a plain loop over them would choose."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftlog.codec.partitioner import partition_for_key
from kraftlog.log_store.rows import Routing, check_columns, rows_by_partition
from kraftlog.schema import HEADERS

EXISTING = {"a": 5, "b": 1}
ROUTING = Routing(None, EXISTING, {"c": 3})
ROW = st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.none() | st.integers(0, 7), st.none() | st.binary(max_size=6))


def plain(topic: str, partition: int | None, key: bytes | None, spread: int) -> int:
    counts = {**EXISTING, "c": 3}
    if partition is not None:
        return partition
    if key is None:
        return spread % counts.get(topic, 1)
    return partition_for_key(pa.array([key]), counts.get(topic, 1))[0].as_py()


@settings(deadline=None)
@given(st.lists(ROW, max_size=40), st.integers(0, 20), st.integers(0, 3), st.booleans())
def test_rows(rows: list[tuple[str, int | None, bytes | None]], spread: int, skip: int, is_large: bool):
    rows = [(topic, None if (at or 0) >= {**EXISTING, "c": 3}.get(topic, 8) else at, key) for topic, at, key in rows]
    topics, partitions, keys = zip(*rows, strict=True) if rows else ((), (), ())
    batch = pa.record_batch(
        {
            "topic": pa.array(topics, pa.large_string() if is_large else pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "key": pa.array(keys, pa.large_binary() if is_large else pa.binary()),
            "value": pa.array([str(n) for n in range(len(rows))], pa.string()),
        }
    ).slice(skip)
    expected: dict[tuple[str, int], list[str]] = {}
    for number, (topic, partition, key) in list(enumerate(rows))[skip:]:
        expected.setdefault((topic, plain(topic, partition, key, spread)), []).append(str(number))
    found = {(at[0], at[1]): at[2]["value"].to_pylist() for at in rows_by_partition(batch, ROUTING, spread)}
    assert found == expected


def test_rows_without_a_timestamp_get_the_time():
    stamps = pa.array([7, None], pa.timestamp("us", "Europe/Paris"))
    before = time.time_ns() // 1000
    ((_, _, data),) = rows_by_partition(pa.record_batch({"value": ["a", "b"], "timestamp": stamps}), Routing("t"), 0)
    first, second = data["timestamp"].cast(pa.int64()).to_pylist()
    assert first == 7
    assert before <= second <= time.time_ns() // 1000


@pytest.mark.parametrize("stamps", [[0, -1], [None, -1_000_000]])
def test_times_before_1970(stamps: list[int | None]):
    batch = pa.record_batch({"value": ["a", "b"], "timestamp": pa.array(stamps, pa.timestamp("us", "UTC"))})
    with pytest.raises(ValueError, match=r"row 1 of 2: timestamp 1969-12-31 23:59:59.* is before 1970"):
        list(rows_by_partition(batch, Routing("t"), 0))


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"topic": ["a", None], "partition": [0, 0]}, "row 1 of 2: topic is null"),
        ({"topic": ["a", "b"], "partition": [4, 1]}, "row 1 of 2: partition 1 of b is not in the range 0 to 0"),
        (
            {"topic": ["d", "d"], "partition": [2**31, 0]},
            f"row 0 of 2: partition {2**31} of d is not in the range 0 to",
        ),
        ({"topic": ["d", "a"], "partition": [None, -1]}, "row 1 of 2: partition -1 of a is not in the range 0 to 4"),
    ],
)
def test_rows_that_go_nowhere(columns: dict[str, list], text: str):
    batch = pa.record_batch({"value": ["x", "y"], **columns})
    with pytest.raises(ValueError, match=text):
        list(rows_by_partition(batch, ROUTING, 0))


def test_columns():
    value = pa.field("value", pa.binary())
    check_columns(pa.schema([value, ("key", pa.large_string()), ("partition", pa.int16())]), "t")
    check_columns(pa.schema([value, ("headers", HEADERS)]), "t")
    for schema, text in (
        ([value, ("timestamp", pa.timestamp("us"))], "column timestamp is timestamp.us., not a timestamp with a time"),
        ([value, ("topic", pa.binary())], "column topic is binary, not string"),
        (
            [value, ("headers", pa.map_(pa.string(), pa.binary()))],
            "column headers is map<string, binary>, not a list of",
        ),
        ([value, ("headers", pa.list_(pa.struct([("key", pa.int8()), ("value", pa.binary())])))], "not a list of"),
        ([("value", pa.int32())], "column value is int32, neither binary nor string"),
    ):
        with pytest.raises(ValueError, match=text):
            check_columns(pa.schema(schema), "t")
