"""A job moves from Spark's own Kafka source on a live broker to the broker's log directory: same schema, same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import real_transactions
from jvm import Line
from kafka_broker import Broker
from producer_log import START
from records import TIMESTAMP, made

from streaming_queries import until_its_worker_starts

MIXED, REAL, GROWING = "mixed", real_transactions.TOPIC, "growing"
MIXED_PARTITIONS = range(3)
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
ISOLATION_LEVELS = ["read_uncommitted", "read_committed"]
LIMIT = 120.0

FROM_TO = {"startingOffsets": "earliest", "endingOffsets": "latest", "includeHeaders": "true"}
JOBS: dict[str, dict[str, str]] = {
    "all": {"subscribe": f"{MIXED},{REAL}", **FROM_TO},
    "defaults": {"subscribe": f"{MIXED},{REAL}"},
    "pattern": {"subscribePattern": "(mix|re).*", **FROM_TO},
    "assigned": {"assign": json.dumps({MIXED: [0, 2], REAL: [1]}), **FROM_TO},
    "offsets": {
        "subscribe": f"{MIXED},{REAL}",
        "startingOffsets": json.dumps({MIXED: {"0": 17, "1": -2, "2": 90}, REAL: {"0": 40, "1": -2}}),
        "endingOffsets": json.dumps({MIXED: {"0": 60, "1": -1, "2": 90}, REAL: {"0": 101, "1": -1}}),
    },
    "timestamps": {"subscribe": REAL, "startingTimestamp": str(START + 5), "endingTimestamp": str(2 * START)},
    "offsets by timestamps": {
        "subscribe": MIXED,
        "startingOffsetsByTimestamp": json.dumps({MIXED: {"0": TIMESTAMP, "1": TIMESTAMP - 900, "2": TIMESTAMP + 900}}),
        "endingOffsetsByTimestamp": json.dumps({MIXED: {"0": TIMESTAMP + 990, "1": 2 * TIMESTAMP, "2": 2 * TIMESTAMP}}),
        "includeHeaders": "true",
    },
    "timestamps behind the end": {
        "subscribe": MIXED,
        "startingTimestamp": str(2 * TIMESTAMP),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "tasks": {"subscribe": f"{MIXED},{REAL}", "minPartitions": "12", **FROM_TO},
}
STREAM = {"startingOffsets": "earliest", "includeHeaders": "true", "maxOffsetsPerTrigger": "120"}


class Live(NamedTuple):
    """A broker that runs, and the two ways to its topics: a format, its options, and what to load."""

    broker: Broker

    @property
    def ways(self) -> dict[str, tuple[str, ...]]:
        """Return what ``load`` is given, by format: all else of a job stays as it is."""
        return {"kafka": (), "kraftlog": (str(self.broker.log_dir),)}

    def options(self, job: Mapping[str, str], isolation_level: str) -> dict[str, str]:
        """Return a job's options as they are given to both formats."""
        servers = {"kafka.bootstrap.servers": self.broker.bootstrap_servers, "kafka.isolation.level": isolation_level}
        return {**servers, **job}


@pytest.fixture(scope="module")
def live(broker: Broker) -> Iterator[Live]:
    with broker:
        broker.create(
            [
                {"name": MIXED, "partitions": len(MIXED_PARTITIONS), "configs": {}},
                {"name": REAL, "partitions": len(real_transactions.PARTITIONS), "configs": real_transactions.CONFIGS},
                {"name": GROWING, "partitions": 2, "configs": {}},
            ]
        )
        broker.produce(_mixed())
        broker.produce(real_transactions.program())
        broker.ended_transactions([REAL])
        yield Live(broker)


def _mixed() -> Iterator[Line]:
    """Yield records with headers, nulls and every codec, of all partitions in turn."""
    for number, codec in enumerate(CODECS):
        yield {"producer": {"compression.type": codec, "linger.ms": "20"}}
        for partition in MIXED_PARTITIONS:
            yield from made(MIXED, partition, 100)[20 * number : 20 * number + 20]


def _growth(turn: int) -> Iterator[Line]:
    """Yield what a turn adds to the growing topic: plain records, committed transactions and an aborted one."""
    records = [iter(made(GROWING, partition, 600)[200 * turn :]) for partition in range(2)]
    for step in ("plain", "commit", "abort", "commit"):
        transactional = {} if step == "plain" else {"transactional.id": f"grows-{turn}-{step}"}
        yield {"producer": {"compression.type": "lz4", **transactional}}
        if transactional:
            yield {"transaction": "begin"}
        for of_partition in records:
            yield from (next(of_partition) for _ in range(25))
        if transactional:
            yield {"transaction": step}


def _rows(frame: Any) -> list[dict[str, Any]]:
    return _in_order(frame.toArrow().to_pylist())


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


@pytest.mark.parametrize("job", JOBS)
def test_batch(live: Live, spark: Any, job: str, sampled: Callable[..., list[str]]) -> None:
    for isolation_level in sampled(ISOLATION_LEVELS, 1):
        options = live.options(JOBS[job], isolation_level)
        frames = {way: spark.read.format(way).options(**options).load(*path) for way, path in live.ways.items()}
        assert frames["kraftlog"].schema == frames["kafka"].schema
        expected = _rows(frames["kafka"])
        assert _rows(frames["kraftlog"]) == expected
        assert bool(expected) == (job != "timestamps behind the end")
        if job == "tasks":
            assert all(frame.rdd.getNumPartitions() >= 12 for frame in frames.values())


def test_isolation_levels_differ(live: Live, spark: Any) -> None:
    """Or the comparison above would say little."""
    counts = []
    for isolation_level in ISOLATION_LEVELS:
        options = live.options(JOBS["all"], isolation_level)
        counts.append(spark.read.format("kraftlog").options(**options).load(str(live.broker.log_dir)).count())
    assert counts[0] > counts[1]


def test_aggregation(live: Live, spark: Any) -> None:
    """A query over the frame, text and all, gives the same answer."""
    answers = []
    for way, path in live.ways.items():
        frame = spark.read.format(way).options(**live.options(JOBS["all"], "read_committed")).load(*path)
        query = frame.selectExpr("topic", "partition", "CAST(value AS STRING) AS text", "size(headers) AS headers")
        grouped = query.groupBy("topic", "partition").agg({"text": "max", "headers": "sum", "*": "count"})
        answers.append(sorted(map(tuple, grouped.collect())))
    assert answers[0] == answers[1]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("isolation_level", ISOLATION_LEVELS)
def test_stream(live: Live, spark: Any, tmp_path: Path, isolation_level: str) -> None:
    """In small batches, with a restart of the query behind each turn of the producers."""
    options = live.options({"subscribe": GROWING, **STREAM}, isolation_level)
    for turn in range(2):
        live.broker.produce(_growth(turn))
        live.broker.ended_transactions([REAL])
        batches = {way: _run_stream(spark, way, options, path, tmp_path) for way, path in live.ways.items()}
        written = {way: spark.read.parquet(str(tmp_path / way / "rows")) for way in live.ways}
        assert written["kraftlog"].schema == written["kafka"].schema
        assert _rows(written["kraftlog"]) == _rows(written["kafka"])
        assert all(len(rows) > 1 for rows in batches.values())  # the cap on a batch was kept


def _run_stream(spark: Any, way: str, options: Mapping[str, str], path: tuple[str, ...], folder: Path) -> list[int]:
    """Run a query to the end of the log as it is now, and return the rows of its batches."""
    # a broker notes its high watermark every 5 s only
    own = {"highWatermark": "false"} if way == "kraftlog" else {}
    writer = spark.readStream.format(way).options(**options, **own).load(*path).writeStream
    writer = (
        writer.format("parquet")
        .option("path", str(folder / way / "rows"))
        .option("checkpointLocation", str(folder / way / "checkpoint"))
        .trigger(availableNow=True)
    )

    def run() -> Any:
        query = writer.start()
        assert query.awaitTermination(LIMIT)
        return query

    query = until_its_worker_starts(run)
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
