"""A real broker takes the records of a log again: a consumer gets what a read_committed consumer of the log gets."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jvm import Jvm, Line
from kafka_broker import Broker
from kafka_tool import run_tool
from records import by_partition, mixed

import kraftlog
from kraftlog.broker.mapping import OffsetMapping

COUNT, PARTITIONS = 240, 2
START, END = 31, 203
COMMAND = [sys.executable, "-c", "from kraftlog.cli import main; main()"]
SMALL_TRANSACTIONS = "from kraftlog.broker import run; run.TRANSACTION_BYTES = 1 << 20; "
IN_SMALL_TRANSACTIONS = [sys.executable, "-c", f"{SMALL_TRANSACTIONS}from kraftlog.cli import main; main()"]
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OF_A_RECORD = ("timestamp", "timestampType", "key", "value", "headers")


@pytest.fixture(scope="module")
def source(java: Jvm) -> Iterator[tuple[Path, dict[tuple[str, int], list[Line]]]]:
    """Return the log directory of a broker that was stopped, and what its consumers got."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-source-") as home:
        broker = Broker(java, Path(home))
        with broker:
            broker.create([{"name": "source", "partitions": PARTITIONS, "configs": {}}])
            broker.produce(line for partition in range(PARTITIONS) for line in mixed("source", partition, COUNT))
            got = by_partition(broker.consume_at("read_committed", ["source"])[0])
            to = ["--bootstrap-server", broker.bootstrap_servers, "--group", "readers", "--reset-offsets"]
            (ran,) = run_tool(java, GROUP_TOOL, [[*to, "--topic", "source", "--to-offset", "130", "--execute"]])
            assert ran.code == 0
        yield broker.log_dir, got


@pytest.fixture(scope="module")
def target(java: Jvm) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="kraftlog-target-") as home:
        broker = Broker(
            java, Path(home), {"transaction.max.timeout.ms": "900000", "auto.create.topics.enable": "false"}
        )
        with broker:
            yield broker


def plain(lines: list[Line]) -> list[dict[str, Any]]:
    """Return what must stay of records; the client cannot write a timestamp of 0."""
    return [{name: line[name] or (1 if name == "timestamp" else line[name]) for name in OF_A_RECORD} for line in lines]


def check(log: Path, target: Broker, topic: str, mapping: Path, expected: dict[int, list[Line]]) -> None:
    """Consumers of both levels get the records in their order, and the mapping says where each one is."""
    for level in ("read_committed", "read_uncommitted"):
        got = by_partition(target.consume_at(level, [topic])[0])
        for partition, lines in expected.items():
            found = got.get((topic, partition), [])
            if level == "read_committed":
                assert plain(found) == plain(lines)
                offsets = OffsetMapping(mapping)
                where = [offsets.target("source", partition, line["offset"]) for line in lines]
                assert where == [(topic, line["offset"]) for line in found]
            else:
                assert len(found) >= len(lines)


def test_records_stay(source: Any, target: Broker, tmp_path: Path) -> None:
    log, got = source
    names = {"topics": ["source"], "rename": {"source": "whole"}}
    done = kraftlog.replay(log, target.bootstrap_servers, tmp_path / "m.csv", create_topics=True, **names)
    assert done.faults == []
    left_out = "read_committed: left out 160 records of aborted transactions"
    assert [note for note in done.notes if "timestamp 0" not in note] == [left_out]
    expected = {partition: got["source", partition] for partition in range(PARTITIONS)}
    assert [one.records for one in done.partitions] == [len(lines) for lines in expected.values()] == [160, 160]
    check(log, target, "whole", tmp_path / "m.csv", expected)
    again = kraftlog.replay(log, target.bootstrap_servers, tmp_path / "m.csv", **names)
    assert [one.records for one in again.partitions] == [0, 0]
    check(log, target, "whole", tmp_path / "m.csv", expected)


def test_bounds_and_compression(source: Any, target: Broker, tmp_path: Path) -> None:
    log, got = source
    kraftlog.replay(
        *(log, target.bootstrap_servers, tmp_path / "m.csv"),
        topics=["source"],
        rename={"source": "part"},
        partitions=[1],
        start_offset=START,
        end_offset=END,
        create_topics=True,
        compression="zstd",
        rate="100MB",
    )
    lines = [line for line in got["source", 1] if START <= line["offset"] < END]
    check(log, target, "part", tmp_path / "m.csv", {0: [], 1: lines})


def test_groups_follow(
    java: Jvm, source: Any, target: Broker, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """kafka-consumer-groups takes a plan through the mapping; the group goes on with the record that was its next."""
    log, got = source
    mapping = tmp_path / "m.csv"
    kraftlog.replay(
        *(log, target.bootstrap_servers, mapping), topics=["source"], rename={"source": "moved"}, create_topics=True
    )
    command = [*COMMAND, "offsets", str(log), "--reset-plan", "--mapping", str(mapping)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rows = list(csv.reader(done.stdout.splitlines()))
    plan = tmp_path / "plan.csv"
    plan.write_text(done.stdout)
    to = ["--bootstrap-server", target.bootstrap_servers, "--group", "readers"]
    (ran, told) = run_tool(
        java, GROUP_TOOL, [[*to, "--reset-offsets", "--from-file", str(plan), "--execute"], [*to, "--describe"]]
    )
    assert ran.code == 0, ran
    described = {tuple(line.split()[:4]) for line in told.output.splitlines() if line.startswith("readers")}
    assert described == {tuple(row) for row in rows}
    moved = by_partition(target.consume_at("read_committed", ["moved"])[0])
    for group, topic, partition, offset in rows:
        assert (group, topic) == ("readers", "moved")
        left = [line for line in moved["moved", int(partition)] if line["offset"] >= int(offset)]
        wanted = [line for line in got["source", int(partition)] if line["offset"] >= 130]
        assert plain(left) == plain(wanted)
    assert len(rows) == PARTITIONS


@pytest.fixture(scope="module")
def large(java: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of 60 MB in many small batches, with transactions that are committed and aborted."""
    home = tmp_path_factory.mktemp("large") / "log"
    with kraftlog.LogStore(home) as store:
        store.create_topic("large", partitions=2)
        with store.producer("t") as producer:
            for number in range(60):
                producer.begin_transaction()
                for at in range(1000):
                    producer.send(
                        "large", key=b"%d" % number, value=b"%d-%d" % (number, at) + bytes(500), partition=at % 2
                    )
                if number % 5 == 4:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
    return home


def wait_for_commits(mapping: Path, count: int, process: subprocess.Popen[Any]) -> None:
    """Wait until a replay has committed so many transactions more, or has ended; each writes its lines before."""
    lines, deadline = 0, time.monotonic() + 60
    first = mapping.read_bytes().count(b"\n") if mapping.exists() else 0
    while lines <= first + count and process.poll() is None:
        assert time.monotonic() < deadline, f"{lines - first} lines after a minute"
        time.sleep(0.05)
        lines = mapping.read_bytes().count(b"\n") if mapping.exists() else 0


@pytest.mark.parametrize(("seconds", "commits"), [(0.5, 0), (1.5, 0), (0.0, 2)])
def test_killed_and_taken_up_again(large: Path, target: Broker, tmp_path: Path, seconds: float, commits: int) -> None:
    """Nothing is lost, and nothing comes twice, wherever the process is killed."""
    topic, mapping = f"killed-{seconds}", tmp_path / "m.csv"
    arguments = ["--to", target.bootstrap_servers, "--mapping", str(mapping), "--create-topics"]
    command = [*IN_SMALL_TRANSACTIONS, "replay", str(large), *arguments, "--rename", f"large={topic}"]
    kills = 0
    for _ in range(3):
        process = subprocess.Popen([*command, "--rate", "4MB"], env=os.environ)
        time.sleep(seconds)
        if commits:
            wait_for_commits(mapping, commits, process)
        if process.poll() is None:
            kills += 1
            process.send_signal(signal.SIGKILL)
        process.wait()
    assert kills
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    last = sum(int(line.split()[1].replace(",", "")) for line in done.stdout.splitlines())
    assert last < 48_000 or not commits  # a part was committed before
    columns = ["partition", "offset", "key", "value"]
    expected = kraftlog.open(large, topics=["large"]).records(columns, isolation_level="read_committed").to_table()
    found = by_partition(target.consume_at("read_committed", [topic])[0])
    offsets = OffsetMapping(mapping)
    for partition in range(2):
        rows = [row for row in expected.to_pylist() if row["partition"] == partition]
        lines = found[topic, partition]
        assert [line["value"] for line in lines] == [row["value"].hex() for row in rows]
        assert len(rows) == 24_000
        where = [offsets.target("large", partition, row["offset"]) for row in rows]
        assert where == [(topic, line["offset"]) for line in lines]


def test_a_broker_that_goes_away(java: Jvm, large: Path, tmp_path: Path) -> None:
    """The replay says so and ends; when the broker is there again, the same command goes on."""
    (tmp_path / "kafka").mkdir()
    broker, mapping = Broker(java, tmp_path / "kafka"), tmp_path / "m.csv"
    command = [
        *IN_SMALL_TRANSACTIONS,
        "replay",
        str(large),
        "--to",
        broker.bootstrap_servers,
        "--mapping",
        str(mapping),
    ]
    command += ["--create-topics", "--timeout", "10", "--compression", "lz4"]
    with broker:
        process = subprocess.Popen([*command, "--rate", "4MB"], stderr=subprocess.PIPE, text=True)
        wait_for_commits(mapping, 2, process)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert broker.bootstrap_servers in said
    assert "the same command goes on" in said
    with broker:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        found = by_partition(broker.consume_at("read_committed", ["large"])[0])
    expected = kraftlog.open(large, topics=["large"]).records(["partition", "value"], isolation_level="read_committed")
    values: dict[int, list[str]] = {0: [], 1: []}
    for row in expected.to_table().to_pylist():
        values[row["partition"]].append(row["value"].hex())
    assert {partition: [line["value"] for line in lines] for (_, partition), lines in found.items()} == values


def test_what_the_target_refuses(source: Any, target: Broker, tmp_path: Path) -> None:
    log, _ = source
    to, mapping = target.bootstrap_servers, tmp_path / "m.csv"
    with pytest.raises(kraftlog.ReplayError, match=r"does not have the topics source \(2 partitions\)"):
        kraftlog.replay(log, to, mapping, topics=["source"])
    target.create([{"name": "narrow", "partitions": 1, "configs": {}}])
    with pytest.raises(kraftlog.ReplayError, match="narrow has 1 partitions; expected at least 2"):
        kraftlog.replay(log, to, mapping, topics=["source"], rename={"source": "narrow"})
    target.create([{"name": "small", "partitions": 2, "configs": {"max.message.bytes": "50000"}}])
    with pytest.raises(kraftlog.ReplayError, match=r"small-0 did not accept the record of offset .*too large"):
        kraftlog.replay(log, to, mapping, topics=["source"], rename={"source": "small"})
    assert target.consume_at("read_committed", ["small"])[0] == []
    with pytest.raises(kraftlog.ReplayError, match="holds offsets 0 to"):
        kraftlog.replay(log, to, tmp_path / "other.csv", topics=["source"], rename={"source": "small"})
    with pytest.raises(ValueError, match="is of a replay with rename"):
        kraftlog.replay(log, to, mapping, topics=["source"], rename={"source": "whole"})


def test_the_broker_does_not_complain(target: Broker) -> None:
    refused = "small-0"  # of which a test says that a record is too large for it
    assert [line for line in target.errors() if refused not in line] == []
