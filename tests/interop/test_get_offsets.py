"""``kraftlog get-offsets`` prints what kafka-get-offsets says of a broker that runs, from its files."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import real_transactions
from jvm import Jvm
from kafka_broker import Broker
from kafka_tool import run_tool
from producer_log import START
from records import made

import kraftlog
from kraftlog.cli.get_offsets import command
from kraftlog.cli.tables import COMMANDS

TOOL = "org.apache.kafka.tools.GetOffsetShell"
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS = next(one for one in COMMANDS if one.name == "offsets")
TOPICS = [
    {
        "name": real_transactions.TOPIC,
        "partitions": len(real_transactions.PARTITIONS),
        "configs": real_transactions.CONFIGS,
    },
    {"name": "plain", "partitions": 12, "configs": {}},
    {"name": "appended", "partitions": 1, "configs": {"message.timestamp.type": "LogAppendTime"}},
    {"name": "empty", "partitions": 1, "configs": {}},
]
WHICH = [
    [],
    ["--exclude-internal-topics"],
    ["--topic", "pla.*,empty"],
    ["--topic", "plain", "--partitions", "0,2,11"],
    ["--topic-partitions", "plain:2-4,real:1-,empty,:-1"],
]
TIMES = ["earliest", "latest", "max-timestamp", "-1", "-2", "-3", str(START), str(START + 90), str(START + 10**6)]


@pytest.fixture(scope="module")
def broker(java: Jvm) -> Iterator[Broker]:
    """Run a broker with transactions, compressed batches, times that it sets itself, and an empty topic."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-offsets-") as home:
        broker = Broker(java, Path(home))
        with broker:
            broker.create(TOPICS)
            broker.produce(real_transactions.program())
            for topic, partitions, codec in (("plain", range(3), "zstd"), ("appended", range(1), "none")):
                records = [line for partition in partitions for line in made(topic, partition, 60)]
                stamped = [line | {"timestamp": START + (7 * number) % 100} for number, line in enumerate(records)]
                broker.produce([{"producer": {"compression.type": codec}}, *stamped])
            yield broker


def ours(log_dir: Path, options: Sequence[str]) -> str:
    """Return what kraftlog prints in Kafka's format; the metadata log is no topic to a client."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
        command([str(log_dir), "--format", "text", *options], standalone_mode=False)
    assert end.value.code == 0
    out.flush()
    printed = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("__cluster_metadata:"))


@pytest.mark.parametrize("which", WHICH, ids=" ".join)
def test_equal(java: Jvm, broker: Broker, which: list[str]) -> None:
    runs = [[*which, "--time", time] for time in TIMES]
    to_broker = ["--bootstrap-server", broker.bootstrap_servers]
    answers = run_tool(java, TOOL, [[*to_broker, *run] for run in runs])
    assert all(answer.code == 0 for answer in answers)
    assert sum(bool(answer.output) for answer in answers) >= len(TIMES) - 1
    for run, kafka in zip(runs, answers, strict=True):
        assert ours(broker.log_dir, run) == kafka.output, run


def test_read_committed(broker: Broker) -> None:
    """The end is where a consumer of that level stops."""
    names = [str(topic["name"]) for topic in TOPICS]
    _, ends = broker.consume_at("read_committed", names)
    rows = kraftlog.open(broker.log_dir, topics=names).partition_offsets(isolation_level="read_committed").to_table()
    assert {(row["topic"], row["partition"]): row["offset"] for row in rows.to_pylist()} == ends


def test_lag(java: Jvm, broker: Broker) -> None:
    """Committed offsets, ends and lags are those that kafka-consumer-groups describes."""
    to_broker = ["--bootstrap-server", broker.bootstrap_servers]
    commits = {
        "first": ["--topic", "plain:0,1", "--topic", real_transactions.TOPIC, "--to-offset", "7"],
        "second": ["--topic", "plain", "--topic", "empty", "--to-latest"],
        "third": ["--topic", "appended", "--to-earliest"],
    }
    runs = [[*to_broker, "--group", group, "--reset-offsets", *to, "--execute"] for group, to in commits.items()]
    assert [ran.code for ran in run_tool(java, GROUP_TOOL, runs)] == [0, 0, 0]
    (told,) = run_tool(java, GROUP_TOOL, [[*to_broker, "--describe", "--all-groups"]])
    described = [line.split()[:6] for line in told.output.splitlines() if line]
    expected = sorted((*row[:2], *map(int, row[2:])) for row in described if row[0] in commits)
    rows = kraftlog.open(broker.log_dir).lag(groups=list(commits)).to_table().to_pylist()
    names = ("group", "topic", "partition", "current_offset", "log_end_offset", "lag")
    assert sorted(tuple(row[name] for name in names) for row in rows) == expected
    assert len(expected) > 15


def test_reset_plan(java: Jvm, broker: Broker, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """kafka-consumer-groups takes groups back to what was committed when the log directory was copied."""
    to_broker = ["--bootstrap-server", broker.bootstrap_servers]
    groups = ["--group", "plan-a", "--group", "plan-b"]
    to = {"plan-a": ["--topic", "plain:0,1,2", "--to-offset", "9"], "plan-b": ["--topic", "appended", "--to-latest"]}
    runs = [[*to_broker, "--group", group, "--reset-offsets", *where, "--execute"] for group, where in to.items()]
    assert [ran.code for ran in run_tool(java, GROUP_TOOL, runs)] == [0, 0]
    before = _committed(java, to_broker, groups)
    with pytest.raises(SystemExit) as end:
        OFFSETS([str(broker.log_dir), *groups, "--reset-plan"], standalone_mode=False)
    assert end.value.code == 0
    plan = tmp_path / "plan.csv"
    plan.write_bytes(capfdbinary.readouterr().out)
    moved = [[*to_broker, *groups, "--reset-offsets", "--all-topics", "--to-earliest", "--execute"]]
    assert [ran.code for ran in run_tool(java, GROUP_TOOL, moved)] == [0]
    assert _committed(java, to_broker, groups) != before
    back = [[*to_broker, *groups, "--reset-offsets", "--from-file", str(plan), "--execute"]]
    assert [ran.code for ran in run_tool(java, GROUP_TOOL, back)] == [0]
    assert _committed(java, to_broker, groups) == before
    assert len(before) == 4


def _committed(java: Jvm, to_broker: list[str], groups: list[str]) -> set[tuple[str, ...]]:
    """Return group, topic, partition and offset of what the tool describes."""
    (told,) = run_tool(java, GROUP_TOOL, [[*to_broker, "--describe", *groups]])
    rows = [tuple(line.split()[:4]) for line in told.output.splitlines() if line]
    return {row for row in rows if row and row[0] in groups}
