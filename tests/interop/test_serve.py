"""Kafka's own consumer and tools read a log from a server as they read the broker that wrote it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from jvm import Jvm
from kafka_tool import run_tool

import kraftlog

GOLDEN = Path(__file__).parents[1] / "golden"
OFFSETS_TOOL = "org.apache.kafka.tools.GetOffsetShell"
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
LEVELS = ("read_committed", "read_uncommitted")
ANSWERS = sorted(
    (path.parents[1].name, level) for level in LEVELS for path in GOLDEN.glob(f"*/expected/consumer_{level}.jsonl*")
)


@pytest.mark.parametrize(("folder", "level"), ANSWERS)
def test_kafkas_consumer(java: Jvm, folder: str, level: str):
    (path,) = (GOLDEN / folder / "expected").glob(f"consumer_{level}.jsonl*")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    answers = [one for one in map(json.loads, text.splitlines()) if "offset" in one]
    expected = sorted((one["topic"], one["partition"], one["offset"], one["timestamp"]) for one in answers)
    assert expected
    with kraftlog.LogServer(GOLDEN / folder / "log") as server:
        topics = sorted({one["topic"] for one in answers})
        lines = map(json.loads, java.run("Consume", server.bootstrap_servers, level, *topics))
        rows = sorted(
            (one["topic"], one["partition"], one["offset"], one["timestamp"]) for one in lines if "position" not in one
        )
    assert rows == expected


def test_kafkas_tools(java: Jvm):
    """A group of the console's consumer commits, and both tools see what the files say."""
    log = kraftlog.open(GOLDEN / "transactions" / "log", topics=["orders"])
    offsets = log.partition_offsets("latest", ["partition", "offset"]).to_table().to_pylist()
    ends = {row["partition"]: row["offset"] for row in offsets}
    rows = log.records(["partition", "offset"], isolation_level="read_committed").to_table().to_pylist()
    with kraftlog.LogServer(log) as server:
        where = ["--bootstrap-server", server.bootstrap_servers]
        (latest,) = run_tool(java, OFFSETS_TOOL, [[*where, "--time", "latest"]])
        assert latest.output.splitlines() == [f"orders:{partition}:{end}" for partition, end in sorted(ends.items())]
        shown = [f"print.{what}={str(what != 'value').lower()}" for what in ("value", "partition", "offset")]
        console = [*where, "--topic", "orders", "--group", "readers", "--from-beginning"]
        console += ["--isolation-level", "read_committed", "--max-messages", str(len(rows))]
        console += [word for one in shown for word in ("--formatter-property", one)]
        (read,) = run_tool(java, CONSOLE, [console])
        expected = {f"Partition:{row['partition']}\tOffset:{row['offset']}" for row in rows}
        assert set(read.output.splitlines()) == expected, read
        (described,) = run_tool(java, GROUP_TOOL, [[*where, "--describe", "--group", "readers"]])
    described_rows = [line.split() for line in described.output.splitlines() if line.startswith("readers")]
    assert {int(row[2]) for row in described_rows} == set(ends)
    assert {int(row[2]): int(row[4]) for row in described_rows} == ends
