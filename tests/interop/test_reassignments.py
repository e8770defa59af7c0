"""Partitions that move to other brokers while they are audited: a healthy cluster has no finding above a note."""

from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, Cluster
from kafka_tool import run_tool

import kraftlog
from kraftlog.errors import Fault

TOPIC = "orders"
BEFORE = [[1, 2], [2, 3], [3, 1]]
AFTER = [[1, 3], [2, 1], [3, 2]]
RECORDS, VALUE_BYTES = 200, 10_000
BYTES_PER_SECOND = 200_000  # a broker receives 2 MB
LIMIT = 60.0
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def test_an_audit_of_partitions_that_move_is_silent(java: Jvm, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home))
        with cluster.ended():
            cluster.start(CONTROLLER, *BROKERS)
            configs = {"segment.bytes": str(1 << 20), "file.delete.delay.ms": "1000"}
            cluster.create(TOPIC, len(BEFORE), configs, assignment=BEFORE)
            cluster.wait_for_leaders(TOPIC)
            _produce(cluster)
            cluster.transact("t", {0: [b"a"], 1: [b"b"]}, TOPIC, "commit")
            plan = tmp_path / "plan.json"
            _move(java, cluster, plan)
            audits = 0
            deadline = time.monotonic() + LIMIT
            while _replicas(cluster) != AFTER:
                assert time.monotonic() < deadline
                assert _above_notes(cluster) == []
                audits += 1
            assert audits
            cluster.transact("t", {0: [b"c"], 2: [b"d"]}, TOPIC, "commit")
            assert _above_notes(cluster) == []
            _tool(java, cluster, plan, "--verify")  # ends the throttling, under which replicas fall behind
            deadline = time.monotonic() + LIMIT
            while not _are_in_sync(cluster):  # otherwise the end of a leader could lose records
                assert time.monotonic() < deadline
                time.sleep(0.1)
            cluster.stop()
            faults: list[Fault] = []
            assert _above_notes(cluster, faults) == []
            assert faults == []


def _produce(cluster: Cluster) -> None:
    producer = Producer({**cluster.settings, "acks": -1, "compression.type": "none"})
    drawn = random.Random(0)
    for number in range(RECORDS * len(BEFORE)):
        producer.produce(TOPIC, drawn.randbytes(VALUE_BYTES), partition=number % len(BEFORE))
        producer.poll(0)
    assert producer.flush(LIMIT) == 0


def _move(java: Jvm, cluster: Cluster, plan: Path) -> None:
    """Begin to move a replica of each partition, slowly."""
    partitions = [{"topic": TOPIC, "partition": number, "replicas": replicas} for number, replicas in enumerate(AFTER)]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    _tool(java, cluster, plan, "--execute", "--throttle", str(BYTES_PER_SECOND))


def _tool(java: Jvm, cluster: Cluster, plan: Path, *action: str) -> None:
    words = ["--bootstrap-server", str(cluster.settings["bootstrap.servers"]), "--reassignment-json-file", str(plan)]
    (ran,) = run_tool(java, TOOL, [[*words, *action]])
    assert ran.code == 0, (ran.output, ran.errors)


def _replicas(cluster: Cluster) -> list[list[int]]:
    partitions = cluster.admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions
    return [partitions[number].replicas for number in sorted(partitions)]


def _are_in_sync(cluster: Cluster) -> bool:
    partitions = cluster.admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions.values()
    return all(sorted(one.isrs) == sorted(one.replicas) for one in partitions)


def _above_notes(cluster: Cluster, faults: list[Fault] | None = None) -> list[str]:
    """Return what an audit of all nodes finds above a note."""
    each = [] if faults is None else faults  # files of a node that runs vanish
    found = kraftlog.open(cluster.log_dirs).findings(["severity", "sentence"], faults=each).to_pylist()
    return [row["sentence"] for row in found if row["severity"] != "note"]
