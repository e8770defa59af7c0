"""How much a micro-batch takes, against the rule of Spark's Kafka source written down once more."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from growing_log import GrowingPartition
from kraftlog.spark import stream
from kraftlog.spark.options import parse_request
from kraftlog.spark.rate_limit import TriggerDelay, rate_limited
from kraftlog.spark.stream import KraftlogStreamReader
from streaming_queries import limits_rows

OFFSETS = st.integers(0, 2**62)
INTERVALS = st.lists(st.tuples(OFFSETS, OFFSETS), min_size=1, max_size=6)


def kafka_rate_limit(limit: int, interval: list[tuple[int, int]]) -> list[int]:
    """Go through the partitions as Spark's Kafka source does, with doubles."""
    total = 0.0
    for begin, end in interval:
        if end > begin:
            total += end - begin
    ends = []
    for begin, end in interval:
        if end <= begin:
            ends.append(end)
            continue
        prorate = limit * ((end - begin) / total)
        whole = math.ceil(prorate) if prorate < 1 else math.floor(prorate)
        ends.append(min(end, begin + whole))
    return ends


@given(st.integers(1, 2**40), INTERVALS)
def test_shares(limit: int, interval: list[tuple[int, int]]):
    start = {("orders", number): begin for number, (begin, _) in enumerate(interval)}
    latest = {("orders", number): end for number, (_, end) in enumerate(interval)}
    limited = rate_limited(limit, start, latest)
    assert list(limited.values()) == kafka_rate_limit(limit, interval)
    for partition, end in limited.items():
        if latest[partition] > start[partition]:
            assert start[partition] < end <= latest[partition]


def test_spark_s_own_example():
    """Of ``maxOffsetsPerTrigger`` in the tests of Spark's Kafka source: 10 of 101, 11 and 1 offsets."""
    start = {("orders", number): 0 for number in range(3)}
    latest = {("orders", 0): 101, ("orders", 1): 11, ("orders", 2): 1}
    first = rate_limited(10, start, latest)
    assert list(first.values()) == [8, 1, 1]
    assert list(rate_limited(10, first, latest).values()) == [17, 2, 1]


def test_delay():
    now = 0.0
    delay = TriggerDelay(10, 60_000, lambda: now)
    nothing, little, much = ({("orders", 0): offset} for offset in (0, 9, 10))
    assert not delay.passes_over(nothing, little)  # the first of a run
    assert delay.passes_over(nothing, little)
    assert not delay.passes_over(nothing, much)
    now = 59.9
    assert delay.passes_over(nothing, little)
    now = 60.0
    assert not delay.passes_over(nothing, little)
    now = 61.0
    assert delay.passes_over(nothing, little)


def test_a_log_that_went_back_is_not_waited_for():
    delay = TriggerDelay(10, 60_000, lambda: 0.0)
    assert not delay.passes_over({}, {})  # the first of a run
    start = {("orders", 0): 1000, ("orders", 1): 0}
    assert delay.passes_over(start, {("orders", 0): 1000, ("orders", 1): 9})
    assert not delay.passes_over(start, {("orders", 0): 500, ("orders", 1): 9})


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("250", 250), ("30s", 30_000), ("15m", 900_000), ("2 min", 120_000), ("1h", 3_600_000)]
)
def test_times(text: str, milliseconds: int):
    assert parse_request({"path": "logs", "maxTriggerDelay": text}).max_trigger_delay_ms == milliseconds


def reader(path: Path, **options: str) -> KraftlogStreamReader:
    given_options = {"path": str(path), "startingOffsets": "earliest", **options}
    return KraftlogStreamReader(parse_request(given_options, is_streaming=True), StructType())


@limits_rows
def test_limits_of_the_options(tmp_path: Path):
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

    assert reader(tmp_path).getDefaultReadLimit() == ReadAllAvailable()
    assert reader(tmp_path, maxOffsetsPerTrigger="5").getDefaultReadLimit() == ReadMaxRows(5)
    assert reader(tmp_path, minOffsetsPerTrigger="3").getDefaultReadLimit() == ReadMinRows(3)


@limits_rows
def test_latest_offset(tmp_path: Path):
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    log = GrowingPartition(tmp_path)
    log.append(8)
    both = reader(tmp_path, maxOffsetsPerTrigger="5", minOffsetsPerTrigger="4")
    limit = both.getDefaultReadLimit()
    start = both.initialOffset()
    assert start == {"orders": {"0": 0}}
    first = both.latestOffset(start, limit)
    assert first == {"orders": {"0": 5}}
    assert both.reportLatestOffset() == {"orders": {"0": 8}}
    assert both.latestOffset(first, limit) == first  # too little waits
    assert both.latestOffset(first, ReadAllAvailable()) == {"orders": {"0": 8}}
    log.append(1)
    assert both.latestOffset(first, limit) == {"orders": {"0": 9}}


@limits_rows
def test_available_now_has_a_fixed_end(tmp_path: Path):
    log = GrowingPartition(tmp_path)
    log.append(8)
    both = reader(tmp_path, maxOffsetsPerTrigger="5", minOffsetsPerTrigger="4")
    both.prepareForTriggerAvailableNow()
    log.append(8)
    GrowingPartition(tmp_path, partition=1).append(1)
    ends = [both.initialOffset() | {"orders": {"0": 0}}]
    for _ in range(3):
        ends.append(both.latestOffset(ends[-1], both.getDefaultReadLimit()))
    assert [end["orders"] for end in ends] == [{"0": 0}, {"0": 5}, {"0": 8}, {"0": 8}]


@limits_rows
def test_a_new_query_that_starts_at_its_end_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    log = GrowingPartition(tmp_path)
    log.append(8)

    def said(*, is_new: bool = True, **options: str) -> int:
        caplog.clear()
        at_end = reader(tmp_path, **options)
        at_end.prepareForTriggerAvailableNow()
        for _ in range(2):
            start = at_end.initialOffset() if is_new else {"orders": {"0": 8}}
            at_end.latestOffset(start, at_end.getDefaultReadLimit())
        return sum("this new query starts at the latest offsets" in record.getMessage() for record in caplog.records)

    assert said(startingOffsets="latest") == 1
    assert said(startingOffsets="latest", is_new=False) == 0
    assert said(startingOffsets="earliest") == 0
    assert said(startingOffsets='{"orders": {"0": -1}}') == 1
    assert said(startingOffsets='{"orders": {"0": 8}}') == 0


def test_before_pyspark_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """PySpark 4.1 asks for the latest offset without a word of where the micro-batch begins."""
    monkeypatch.setattr(stream, "HAS_READ_LIMITS", False)
    GrowingPartition(tmp_path).append(8)
    assert reader(tmp_path).latestOffset() == {"orders": {"0": 8}}
    with pytest.raises(ValueError, match=r"maxOffsetsPerTrigger and minOffsetsPerTrigger need PySpark 4\.2"):
        reader(tmp_path, maxOffsetsPerTrigger="5")
