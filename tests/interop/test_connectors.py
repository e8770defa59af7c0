"""Spark's Kafka source and Flink read a served log, and Flink writes to a broker exactly once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jvm import QUICK_TO_START
from maven import run_maven

import kraftlog

LOG = Path(__file__).parents[1] / "golden" / "transactions" / "log"
FLINK = Path(__file__).parent / "flink" / "pom.xml"
LEVELS = ("read_committed", "read_uncommitted")
LIMIT = 120.0


@pytest.fixture(scope="module")
def flink(java: object, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command that runs a main class with Flink; without Maven and a JDK it is skipped as ``java`` is."""
    target = tmp_path_factory.mktemp("flink")
    run_maven(FLINK, target, "compile")
    class_path = os.pathsep.join((str(target / "classes"), (target / "classpath").read_text()))
    return ["java", *QUICK_TO_START, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", class_path]


@pytest.mark.parametrize("level", LEVELS)
def test_flink_copies_a_served_log_exactly_once(flink: list[str], level: str) -> None:
    """At the end of the log as a cut: a bounded source would wait for transactions that nobody ends."""
    expected = [
        f"orders {row['partition']} {row['offset']}"
        for row in kraftlog.open(LOG, topics=["orders"], cut="end")
        .records(["partition", "offset"], isolation_level=level)  # type: ignore[arg-type]
        .to_table()
        .to_pylist()
    ]
    with kraftlog.LogServer(LOG, as_of="end") as server, kraftlog.Broker() as broker:
        arguments = [server.bootstrap_servers, level, broker.bootstrap_servers, "copy", "orders"]
        done = subprocess.run([*flink, "Copy", *arguments], check=False, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        log = kraftlog.open(broker.path)
        values = log.records(["topic", "value"], isolation_level="read_committed").to_table().to_pylist()
        copied = [row["value"].decode() for row in values if row["topic"] == "copy"]
        assert sorted(copied) == sorted(expected)
        assert {row["state"] for row in log.transactions(["state"]).to_pylist()} == {"committed"}
        assert log.findings().num_rows == 0


@pytest.mark.parametrize("level", LEVELS)
def test_spark_reads_a_served_log(spark: Any, level: str) -> None:
    columns = ["partition", "offset", "key", "value"]
    expected = kraftlog.open(LOG, topics=["orders"]).records(columns, isolation_level=level)  # type: ignore[arg-type]
    with kraftlog.LogServer(LOG) as server:
        options = {"kafka.bootstrap.servers": server.bootstrap_servers, "kafka.isolation.level": level}
        frame = spark.read.format("kafka").options(subscribe="orders", **options).load()
        rows = [tuple(row) for row in frame.select(*columns).collect()]
    assert sorted(rows) == sorted(tuple(row.values()) for row in expected.to_table().to_pylist())
