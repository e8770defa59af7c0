"""Kafka's own tools use a broker of this package, and then a real Kafka opens its directory."""

from __future__ import annotations

from pathlib import Path

from jvm import Jvm
from kafka_broker import Broker as KafkaBroker
from kafka_tool import run_tool

import kraftlog

TOPICS_TOOL = "org.apache.kafka.tools.TopicCommand"
OFFSETS_TOOL = "org.apache.kafka.tools.GetOffsetShell"
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS_TOOL = "org.apache.kafka.tools.TransactionsCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"


def test_kafkas_tools_and_then_kafka(java: Jvm, tmp_path: Path):
    logs = tmp_path / "logs"
    with kraftlog.Broker(logs) as broker:
        where = ["--bootstrap-server", broker.bootstrap_servers]
        create = ["--create", "--topic", "orders", "--partitions", "2", "--config", "retention.ms=-1"]
        made, described = run_tool(java, TOPICS_TOOL, [[*where, *create], [*where, "--describe", "--topic", "orders"]])
        assert "Created topic orders." in made.output, made
        assert "PartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=-1" in described.output, described

        send = ["--topic", "orders", "--num-records", "60", "--record-size", "20", "--throughput", "-1"]
        transactional = ["--transactional-id", "t", "--transaction-duration-ms", "5"]
        servers = ["--producer-props", f"bootstrap.servers={broker.bootstrap_servers}"]
        sent = run_tool(java, PERFORMANCE, [[*send, *servers], [*send, *transactional, *servers]])
        assert all("60 records sent" in one.output for one in sent), sent

        (latest,) = run_tool(java, OFFSETS_TOOL, [[*where, "--topic", "orders", "--time", "latest"]])
        ends = {line.rpartition(":")[0]: int(line.rpartition(":")[2]) for line in latest.output.split()}
        assert ends == {
            f"orders:{number}": broker.store.parts.partition_of(("orders", number)).next_offset for number in range(2)
        }
        console = [*where, "--topic", "orders", "--group", "readers", "--from-beginning", "--max-messages", "120"]
        (read,) = run_tool(java, CONSOLE, [[*console, "--isolation-level", "read_committed"]])
        assert len(read.output.splitlines()) == 120, read
        groups = run_tool(java, GROUP_TOOL, [[*where, "--describe", "--group", "readers"], [*where, "--list"]])
        rows = [line.split() for line in groups[0].output.splitlines() if line.startswith("readers")]
        assert {f"orders:{row[2]}": int(row[3]) for row in rows} == ends, groups[0]
        assert groups[1].output.split() == ["readers"]
        listed = run_tool(java, TRANSACTIONS_TOOL, [[*where, "list"], [*where, "describe", "--transactional-id", "t"]])
        assert "CompleteCommit" in listed[0].output, listed
        assert "CompleteCommit" in listed[1].output, listed
    assert kraftlog.open(logs).errors().num_rows == 0
    assert kraftlog.open(logs).findings().to_pylist() == []
    with KafkaBroker(java, tmp_path) as kafka:
        shown, found = kafka.consume_at("read_committed", ["orders"])
        offsets = {line["group"]: line["offsets"] for line in kafka.groups()}
        assert kafka.errors() == []
    assert len(shown) == 120
    assert {f"orders:{partition}": end for (_, partition), end in found.items()} == ends
    assert {f"orders:{row[1]}": row[2] for row in offsets["readers"]} == ends
    assert kraftlog.open(logs).findings().to_pylist() == []
