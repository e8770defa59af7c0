"""Members of KIP-848 groups go on while their directory goes from a broker of this package to Kafka and back."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import confluent_kafka
from jvm import Jvm
from kafka_broker import Broker as KafkaBroker
from kafka_tool import run_tool

import kraftlog

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUP, TOPIC, PARTITIONS, RECORDS = "readers", "orders", 4, 40
LIMIT = 60.0


class Reader:
    """A static member of librdkafka, in this process."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "group.instance.id": "static",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([TOPIC])
        self.values: list[str] = []

    def poll(self) -> None:
        """Read for a moment; errors are those of a broker that is away."""
        for message in self._consumer.consume(100, 0.5):
            if message.error() is None:
                self.values.append((message.value() or b"").decode())

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def console(java: Jvm, bootstrap_servers: str, output: Path) -> Iterator[Callable[[], list[str]]]:
    """Run Kafka's console consumer as a member; yield a function that returns the values that it has printed."""
    properties = {
        "group.protocol": "consumer",
        "auto.commit.interval.ms": "200",
        "reconnect.backoff.max.ms": "500",
        "auto.offset.reset": "earliest",
    }
    words = [word for name, value in properties.items() for word in ("--command-property", f"{name}={value}")]
    command = java.command(CONSOLE, "--bootstrap-server", bootstrap_servers, "--topic", TOPIC, "--group", GROUP, *words)
    with output.open("wb") as printed, output.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(command, stdout=printed, stderr=errors)
        try:
            yield lambda: output.read_text().split()
        finally:
            process.terminate()
            process.wait(LIMIT)


def produce(bootstrap_servers: str, stage: int) -> list[str]:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    values = [f"{stage}-{number}" for number in range(RECORDS)]
    for number, value in enumerate(values):
        producer.produce(TOPIC, value.encode(), partition=number % PARTITIONS)
    assert producer.flush(LIMIT) == 0
    return values


def without_epochs(group: dict[str, Any]) -> dict[str, Any]:
    """Leave out the epochs: Kafka keeps a hash of the topics (KIP-1101), and begins an epoch where it finds none."""
    epochs = {"group_epoch", "target_assignment_epoch", "member_epoch"}
    members = [{name: value for name, value in one.items() if name not in epochs} for one in group["members"]]
    return {name: value for name, value in group.items() if name not in epochs} | {"members": members}


def test_members_go_on_in_kafka_and_come_back(java: Jvm, tmp_path: Path):
    log_dir = tmp_path / "logs"
    with kraftlog.Broker(log_dir) as broker:
        broker.store.create_topic(TOPIC, PARTITIONS)
    kafka = KafkaBroker(java, tmp_path)
    kafka.is_own_log = False
    port = int(kafka.bootstrap_servers.rpartition(":")[2])

    def groups() -> dict[str, Any]:
        """Return what Kafka's administrator sees of the group, in an order of its own."""
        lines = [json.loads(line) for line in java.run_client("Groups", kafka.bootstrap_servers)]
        (line,) = (one for one in lines if one["group"] == GROUP)
        for name in ("offsets", "members"):
            line[name] = sorted(line[name], key=str)
        for member in line["members"]:
            member["assignment"], member["target_assignment"] = (
                sorted(member[name]) for name in ("assignment", "target_assignment")
            )
        return line

    def stable() -> dict[str, Any]:
        """Wait until all members have what they should have; a node that has just started may have to tell them."""
        deadline = monotonic() + LIMIT
        while True:
            reader.poll()
            group = groups()
            if group["state"] == "Stable":
                return group
            assert monotonic() < deadline, group

    def read(expected: list[str], ended: int) -> dict[str, Any]:
        """Let both members read all records; return the group once it is stable and has committed them."""
        deadline = monotonic() + LIMIT
        while True:
            reader.poll()
            seen = [*reader.values, *printed()]
            if len(seen) >= len(expected):
                group = groups()
                ends = {(topic, partition): offset for topic, partition, offset, *_ in group["offsets"]}
                assigned = [len(one["assignment"]) for one in group["members"]]
                is_settled = group["state"] == "Stable" and assigned == [2, 2]
                if is_settled and set(ends.values()) == {ended} and len(ends) == PARTITIONS:
                    assert Counter(seen) == Counter(expected)
                    return group
            assert monotonic() < deadline, (seen, groups())

    with (
        kraftlog.Broker(log_dir, port=port) as broker,
        console(java, kafka.bootstrap_servers, tmp_path / "out") as printed,
    ):
        reader = Reader(kafka.bootstrap_servers)
        while True:  # both are members before there is a record
            reader.poll()
            if broker.store.groups() == [GROUP] and [len(one["assignment"]) for one in groups()["members"]] == [2, 2]:
                break
        values = produce(kafka.bootstrap_servers, 0)
        before = read(values, RECORDS // PARTITIONS)
        broker.close()
        with kafka:
            assert without_epochs(stable()) == without_epochs(before)
            values += produce(kafka.bootstrap_servers, 1)
            at_kafka = read(values, 2 * RECORDS // PARTITIONS)
            where = ["--bootstrap-server", kafka.bootstrap_servers, "--describe", "--group", GROUP]
            (described,) = run_tool(java, GROUP_TOOL, [where])
            rows = [line.split() for line in described.output.splitlines() if line.startswith(GROUP)]
            ends = {int(row[2]): (row[3], row[5]) for row in rows}
            assert ends == dict.fromkeys(range(PARTITIONS), ("20", "0"))
            assert {row[6] for row in rows} == {one["member_id"] for one in before["members"]}
            assert kafka.errors() == []
        with kraftlog.Broker(log_dir, port=port) as broker:
            assert without_epochs(stable()) == without_epochs(at_kafka)
            values += produce(kafka.bootstrap_servers, 2)
            back = read(values, 3 * RECORDS // PARTITIONS)
            reader.close()
    assert without_epochs(back) | {"offsets": []} == without_epochs(before) | {"offsets": []}
    assert kraftlog.open(log_dir).errors().num_rows == 0
    assert kraftlog.open(log_dir).findings().to_pylist() == []
