"""A cluster whose only controller is gone comes back with its brokers' data and the same ids."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from jvm import Jvm
from kafka_broker import CLUSTER, free_ports
from kafka_cluster import BROKERS, CONTROLLER, Cluster, Seen
from restored_cluster import RestoredNode

import kraftlog
from kraftlog.backup.rescue import Rescue
from kraftlog.metadata.uuids import uuid_text

TOPIC = "orders"
PARTITIONS = 3
URL_SAFE = str.maketrans("+/", "-_")  # as Kafka shows ids
VALUES = [str(number).encode() for number in range(20)]


class Run(NamedTuple):
    """The cluster before its controller was deleted, and after it came back."""

    done: Rescue
    before: dict[int, Seen]
    after: dict[int, Seen]
    cluster_id: str
    topic_id: str
    image_topic_id: str
    was_changed: bool


@pytest.fixture(scope="module")
def run(java: Jvm) -> Run:
    with tempfile.TemporaryDirectory(prefix="kraftlog-rescue-") as home:
        cluster = Cluster(java, Path(home))
        with cluster.ended():
            cluster.start(CONTROLLER, *BROKERS)
            cluster.create(TOPIC, PARTITIONS)
            cluster.wait_until_all_are_in_sync(TOPIC)
            for partition in range(PARTITIONS):
                assert cluster.produce(TOPIC, partition, VALUES, acks=-1) == VALUES
            before = {partition: cluster.consume(TOPIC, partition) for partition in range(PARTITIONS)}
        shutil.rmtree(Path(home) / str(CONTROLLER))

        directories = [cluster.nodes[node].log_dir for node in BROKERS]
        files = {path: path.read_bytes() for one in directories for path in one.rglob("*") if path.is_file()}
        rows = kraftlog.open(directories).image().image.tables(["TopicRecord"])["TopicRecord"].to_pylist()
        topic = next(row for row in rows if row["name"] == TOPIC)
        (port,) = free_ports(1)
        target = Path(home) / "controllers"
        done = kraftlog.rescue(directories, target, voters=[f"{CONTROLLER}@127.0.0.1:{port}"])
        there = {path: path.read_bytes() for one in directories for path in one.rglob("*") if path.is_file()}

        cluster.nodes[CONTROLLER] = RestoredNode(java, target / f"node-{CONTROLLER}", port)
        for line in (target / "brokers.properties").read_text().splitlines():
            name, equals, value = line.partition("=")
            for node in BROKERS if equals else ():
                cluster.nodes[node].configure(name, value)
        with cluster.ended():
            cluster.start(CONTROLLER, *BROKERS)
            cluster.wait_until_all_are_in_sync(TOPIC)
            for partition in range(PARTITIONS):
                assert cluster.produce(TOPIC, partition, [b"later"], acks=-1)
            after = {partition: cluster.consume(TOPIC, partition) for partition in range(PARTITIONS)}
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{_port(cluster)}"})
            cluster_id = admin.list_topics(timeout=30).cluster_id
            topic_id = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(30).topic_id
        return Run(done, before, after, cluster_id, str(topic_id), uuid_text(topic["topic_id"]), files != there)


def _port(cluster: Cluster) -> int:
    return cluster.nodes[BROKERS[0]]._port


def test_the_cluster_has_its_records_and_takes_more(run: Run) -> None:
    for partition, seen in run.before.items():
        assert [value for _, value in seen.records] == VALUES
        assert run.after[partition].records == [*seen.records, (seen.end_offset, b"later")]


def test_ids_stay(run: Run) -> None:
    assert run.cluster_id == run.done.cluster_id == CLUSTER
    assert run.topic_id.translate(URL_SAFE) == run.image_topic_id


def test_nothing_is_lost_and_no_broker_was_changed(run: Run) -> None:
    assert run.done.losses == []
    assert run.done.faults == []
    assert not run.was_changed
