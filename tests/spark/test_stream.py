"""Streams of Spark over logs that grow: each row once, whatever happens on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from growing_log import GrowingPartition
from kraftlog.spark.options import parse_request
from kraftlog.spark.stream import KraftlogStreamReader
from spark_rows import comparable, plain_rows, rows_of
from streaming_queries import limits_rows, run_to_its_end, until_its_worker_starts


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger"])
def test_limits_are_refused_where_spark_passes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setattr("kraftlog.spark.stream.HAS_READ_LIMITS", False)
    request = parse_request({"path": str(tmp_path), name: "10"}, is_streaming=True)
    with pytest.raises(ValueError, match=f"{name}.* need PySpark 4.2"):
        KraftlogStreamReader(request, None)


class Sink:
    """A query with a checkpoint, whose micro-batches are kept as Spark hands them out."""

    def __init__(self, spark: Any, log: Path, checkpoint: Path, **options: str) -> None:
        self.spark, self.log, self.checkpoint = spark, log, checkpoint
        self.options = {"startingOffsets": "earliest", "columns": "topic,partition,offset", **options}
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.progress: list[dict[str, Any]] = []

    def run(self, on_batch: Callable[[int], None] = lambda number: None) -> list[tuple[Any, ...]]:
        """Run the query until it has read what is there now; return the rows that are new."""
        new: list[tuple[Any, ...]] = []

        def keep(frame: Any, number: int) -> None:
            self.batches[number] = [tuple(row.values()) for row in rows_of(frame)]
            on_batch(number)
            new.extend(self.batches[number])

        stream = self.spark.readStream.format("kraftlog").options(**self.options).load(str(self.log))
        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))

        def run() -> None:
            query = writer.trigger(availableNow=True).start()
            try:
                query.awaitTermination()
            finally:
                self.progress = [json.loads(progress.json) for progress in query.recentProgress]
                query.stop()

        until_its_worker_starts(run)
        return new

    def offsets(self) -> list[int]:
        return [offset for _, _, offset in self.run()]

    def end_offset(self) -> dict[str, Any]:
        """Return the offset that Spark kept last."""
        last = max((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        return json.loads(last.read_text().splitlines()[-1])


@pytest.fixture
def sink(spark: Any, tmp_path: Path) -> Callable[..., Sink]:
    def make(**options: str) -> Sink:
        return Sink(spark, tmp_path / "logs", tmp_path / "checkpoint", **options)

    return make


@pytest.fixture
def log(tmp_path: Path) -> GrowingPartition:
    return GrowingPartition(tmp_path / "logs")


@pytest.mark.parametrize("name", ["transactions", "metadata"])
def test_all_rows_of_a_log(spark: Any, tmp_path: Path, name: str):
    folder = GOLDEN / name / "log"
    options = {"startingOffsets": "earliest", "includeHeaders": "true", "isolationLevel": "read_committed"}
    stream = spark.readStream.format("kraftlog").options(**options).load(str(folder))
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    run_to_its_end(lambda: writer.trigger(availableNow=True).start(str(tmp_path / "rows")))
    batch = spark.read.format("kraftlog").options(**options).load(str(folder))
    assert stream.schema == batch.schema
    expected = comparable(rows_of(batch))
    assert expected
    assert comparable(rows_of(spark.read.parquet(str(tmp_path / "rows")))) == expected


@limits_rows
def test_messages(spark: Any, tmp_path: Path):
    folder = GOLDEN / "groups" / "log"
    options = {"startingOffsets": "earliest", "table": "messages", "maxOffsetsPerTrigger": "40"}
    stream = spark.readStream.format("kraftlog").options(**options).load(str(folder))
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    run_to_its_end(lambda: writer.trigger(availableNow=True).start(str(tmp_path / "rows")))
    expected = comparable(plain_rows(kraftlog.open(folder).messages().to_table()))
    assert comparable(rows_of(spark.read.parquet(str(tmp_path / "rows")))) == expected


@limits_rows
def test_each_row_once_over_restarts(sink: Callable[..., Sink], log: GrowingPartition):
    """With the trigger of this test nothing waits for more offsets to come."""
    query = sink(minOffsetsPerTrigger="100")
    log.append(5)
    assert query.offsets() == [0, 1, 2, 3, 4]
    assert query.offsets() == []
    log.append(2)
    log.roll()
    log.append_torn(3)
    other = GrowingPartition(log.folder.parent, partition=1)
    other.append(1)
    assert sorted(query.run()) == [("orders", 0, 5), ("orders", 0, 6), ("orders", 1, 0)]
    assert query.end_offset() == {"orders": {"0": 7, "1": 1}}
    log.complete()
    assert query.offsets() == [7, 8, 9]


@limits_rows
def test_a_micro_batch_that_failed_is_repeated(sink: Callable[..., Sink], log: GrowingPartition):
    log.append(4)
    log.append(3, 1)
    log.commit(1)
    query = sink(isolationLevel="read_committed", maxOffsetsPerTrigger="3")

    def fail(number: int) -> None:
        if number == 1:
            raise RuntimeError("the sink is down")

    with pytest.raises(Exception, match="the sink is down"):
        query.run(fail)
    failed = query.batches[1]
    assert [offset for _, _, offset in failed] == [3, 4, 5]
    log.append(2, 1)
    log.roll()
    log.abort(1)
    assert query.offsets() == [3, 4, 5, 6]
    assert query.batches[1] == failed


@limits_rows
def test_rate_limit(sink: Callable[..., Sink], log: GrowingPartition):
    """The numbers are those of the test of the same name in Spark's Kafka source."""
    for partition, records in ((0, 101), (1, 11), (2, 1)):
        grown = log if partition == 0 else GrowingPartition(log.folder.parent, partition=partition)
        grown.append(records)
    query = sink(maxOffsetsPerTrigger="10")
    query.run()
    taken = [dict.fromkeys(range(3), 0) | _count(rows) for _, rows in sorted(query.batches.items())]
    assert taken[0] == {0: 8, 1: 1, 2: 1}
    assert taken[1] == {0: 9, 1: 1, 2: 0}
    assert sum(sum(counts.values()) for counts in taken) == 113
    (source,) = query.progress[0]["sources"]
    assert source["numInputRows"] == 10
    assert source["endOffset"] == {"orders": {"0": 8, "1": 1, "2": 1}}
    assert source["latestOffset"] == {"orders": {"0": 101, "1": 11, "2": 1}}


def _count(rows: list[tuple[Any, ...]]) -> dict[int, int]:
    return {number: sum(partition == number for _, partition, _ in rows) for _, number, _ in rows}


@limits_rows
def test_what_comes_while_a_query_runs_is_left_to_the_next(sink: Callable[..., Sink], log: GrowingPartition):
    log.append(4)
    query = sink(maxOffsetsPerTrigger="2")
    assert [offset for _, _, offset in query.run(lambda number: log.append(3))] == [0, 1, 2, 3]
    assert query.offsets() == list(range(4, 10))


def test_transactions(sink: Callable[..., Sink], log: GrowingPartition):
    query = sink(**{"kafka.isolation.level": "read_committed"})
    log.append(2)
    log.append(3, 1)
    log.append(2)
    assert query.offsets() == [0, 1]
    log.roll()
    log.append(2, 2)
    assert query.offsets() == []
    log.commit(1)
    assert query.offsets() == [2, 3, 4, 5, 6]
    log.abort(2)
    assert query.offsets() == []
    log.append(1)
    assert query.offsets() == [log.model.next_offset - 1]
    rows = [offset for _, batch in sorted(query.batches.items()) for _, _, offset in batch]
    assert rows == log.model.visible


@limits_rows
def test_a_query_that_runs_on(spark: Any, log: GrowingPartition, tmp_path: Path):
    options = {"columns": "offset", "minOffsetsPerTrigger": "2", "maxTriggerDelay": "1h"}
    stream = spark.readStream.format("kraftlog").options(**options).load(str(log.folder.parent))
    writer = stream.writeStream.format("memory").queryName("rows").option("checkpointLocation", str(tmp_path / "c"))

    def start() -> Any:
        query = writer.trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        return query

    query = until_its_worker_starts(start)
    try:
        for _ in range(3):
            log.append(2)
            query.processAllAvailable()
            log.roll()
        assert [row.offset for row in spark.table("rows").collect()] == list(range(6))
    finally:
        query.stop()


def test_availablenow_says_that_the_high_watermark_ends_it(log: GrowingPartition, caplog: pytest.LogCaptureFixture):
    log.append(3)
    options = {"path": str(log.folder.parent), "startingOffsets": "earliest"}
    checkpoint = log.folder.parent / "replication-offset-checkpoint"
    for offset, warnings in ((3, 0), (2, 1)):
        checkpoint.write_text(f"0\n1\norders 0 {offset}\n")
        reader = KraftlogStreamReader(parse_request(options, is_streaming=True), None)
        reader.prepareForTriggerAvailableNow()
        assert reader.latestOffset({"orders": {"0": 0}}) == {"orders": {"0": offset}}
        said = [record.getMessage() for record in caplog.records if "high watermark" in record.getMessage()]
        assert len(said) == warnings
    assert "orders-0: availableNow ends at the high watermark 2 in replication-offset-checkpoint, and the" in said[0]


def test_data_loss(sink: Callable[..., Sink], log: GrowingPartition):
    log.append(3)
    query = sink()
    query.run()
    log.append(2)
    log.roll()
    log.append(2)
    log.retain(1)
    with pytest.raises(Exception, match=r"orders-0: offsets 3 to 4 are gone.*Some data may have been lost"):
        query.run()
    query.options["failOnDataLoss"] = "false"
    assert query.offsets() == [5, 6]


@limits_rows
def test_quarantine(spark: Any, sink: Callable[..., Sink], log: GrowingPartition, tmp_path: Path):
    query = sink(onError="quarantine", quarantinePath=str(tmp_path / "quarantine"), maxOffsetsPerTrigger="1")
    for _ in range(3):
        before = log.segment.stat().st_size
        log.append(1)
        good = log.segment.read_bytes()
        log.segment.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        log.append(1)
        assert before < log.segment.stat().st_size
    assert query.offsets() == [1, 3, 5]
    errors = spark.read.parquet(str(tmp_path / "quarantine")).toArrow().to_pylist()
    assert sorted(error["base_offset"] for error in errors) == [0, 2, 4]
    assert {error["error"] for error in errors} == {"bad_crc"}


def test_mistakes(spark: Any, log: GrowingPartition, tmp_path: Path):
    log.append(1)
    for options, message in (
        ({"table": "batches"}, "a stream reads the table records, messages or a type of message, not batches"),
        ({"subscribe": "returns"}, "no topic returns; there are orders-0"),
        ({"endingOffsets": "latest"}, "a stream has no end"),
    ):
        stream = spark.readStream.format("kraftlog").options(**options).load(str(log.folder.parent))
        writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / options.popitem()[0]))
        with pytest.raises(Exception, match=message):
            run_to_its_end(lambda: writer.trigger(availableNow=True).start())  # noqa: B023
