"""How far a stream is behind, from the progress that Spark reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from growing_log import GrowingPartition
from kraftlog.spark import offsets_behind_latest
from kraftlog.spark.stream import HAS_READ_LIMITS
from streaming_queries import until_its_worker_starts


@pytest.mark.skipif(not HAS_READ_LIMITS, reason="PySpark 4.1 does not ask a Python data source for its latest offsets")
def test_of_a_query(spark: Any, tmp_path: Path):
    """The numbers of the rows that the query has not read, behind each batch."""
    for partition, records in ((0, 101), (1, 11), (2, 1)):
        GrowingPartition(tmp_path / "log", partition=partition).append(records)
    options = {"startingOffsets": "earliest", "columns": "offset", "maxOffsetsPerTrigger": "50"}
    stream = spark.readStream.format("kraftlog").options(**options).load(str(tmp_path / "log"))
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))

    def run() -> Any:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    query = until_its_worker_starts(run)
    batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
    assert len(batches) == 3
    read = dict.fromkeys("012", 0)
    for progress in batches:
        (source,) = progress["sources"]
        read = json.loads(source["endOffset"])["orders"]
        behind = [ended - read[partition] for partition, ended in (("0", 101), ("1", 11), ("2", 1))]
        expected = {
            "minOffsetsBehindLatest": str(min(behind)),
            "maxOffsetsBehindLatest": str(max(behind)),
            "avgOffsetsBehindLatest": str(sum(behind) / 3),
        }
        assert offsets_behind_latest(source) == expected
        assert offsets_behind_latest(json.loads(progress.json)["sources"][0]) == expected
    (last,) = query.lastProgress["sources"]
    assert offsets_behind_latest(last)["maxOffsetsBehindLatest"] == "0"
    first = offsets_behind_latest(batches[0]["sources"][0])
    assert int(first["maxOffsetsBehindLatest"]) > int(first["minOffsetsBehindLatest"])


@pytest.mark.parametrize("latest", [None, "null", "None", "", {}, {"returns": {"0": 3}}])
def test_of_a_progress_without_latest_offsets(latest: Any):
    assert offsets_behind_latest({"endOffset": {"orders": {"0": 1}}, "latestOffset": latest}) == {}
    assert offsets_behind_latest({"endOffset": None, "latestOffset": {"orders": {"0": 1}}}) == {}
    assert offsets_behind_latest({}) == {}


def test_of_a_log_that_was_truncated():
    source = {"endOffset": '{"orders": {"0": 9, "1": 2}}', "latestOffset": '{"orders": {"0": 4, "1": 5, "2": 7}}'}
    assert offsets_behind_latest(source) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "3",
        "avgOffsetsBehindLatest": "1.5",
    }
