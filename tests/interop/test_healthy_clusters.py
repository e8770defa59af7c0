"""A cluster that moves replicas, makes and deletes topics, cleans and deletes while clients write: nothing is found.

It is audited all the time, and when it has been stopped. A seed makes other moves; an odd one has transactions of
version 1.
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from audited import Audits
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, LIMIT, Cluster
from kafka_tool import run_tool
from test_loss_ledger import pytest_generate_tests

__all__ = ["pytest_generate_tests"]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
SMALL = {"internal.segment.bytes": "20000", "file.delete.delay.ms": "300"}
TOPICS = {
    "plain": {},
    "deleted": SMALL | {"retention.ms": "1500", "retention.bytes": "60000"},
    "compacted": SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"},
    "both": SMALL | {"cleanup.policy": "compact,delete", "retention.ms": "3000", "delete.retention.ms": "500"},
}
PARTITIONS = 2
OF_BROKERS = {
    "log.cleaner.backoff.ms": "300",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "offsets.retention.check.interval.ms": "1000",
}


class Load:
    """Writes to all topics, plainly and in transactions that commit offsets of what was read, until it is ended."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._settings, self._drawn = cluster.settings, random.Random(seed)
        self._numbers = itertools.count()
        self._has_ended = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._write, self._copy)]
        self.count = 0
        self.commits = 0

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        for thread in self._threads:
            thread.join(LIMIT)

    def _value(self) -> bytes:
        return b"%d " % next(self._numbers) + self._drawn.randbytes(200)

    def _key(self) -> bytes:
        return b"k%d" % self._drawn.randint(0, 20)

    def _write(self) -> None:
        producers = [
            Producer({**self._settings, "enable.idempotence": is_idempotent, "linger.ms": 5})
            for is_idempotent in (False, True)
        ]

        def note(error: KafkaError | None, _: object) -> None:
            self.count += error is None

        while not self._has_ended.is_set():
            for topic in TOPICS:
                value = None if topic == "compacted" and self._drawn.random() < 0.1 else self._value()
                producer = self._drawn.choice(producers)
                producer.produce(
                    topic, value, self._key(), partition=self._drawn.randrange(PARTITIONS), on_delivery=note
                )
                producer.poll(0)
            time.sleep(0.005)
        for producer in producers:
            producer.flush(LIMIT)

    def _copy(self) -> None:
        """Read "plain", and write it to "compacted" with the offsets in transactions."""
        group = {"group.id": "copies", "enable.auto.commit": False, "isolation.level": "read_committed"}
        consumer = Consumer({**self._settings, **group, "auto.offset.reset": "earliest"})
        consumer.subscribe(["plain"])
        producer = Producer({**self._settings, "transactional.id": "copies", "linger.ms": 0})
        producer.init_transactions(LIMIT)
        while not self._has_ended.is_set():
            messages = [one for one in consumer.consume(20, 0.2) if one.error() is None]
            if not messages:
                continue
            try:
                producer.begin_transaction()
                for one in messages:
                    producer.produce("compacted", one.value(), one.key(), partition=self._drawn.randrange(PARTITIONS))
                last = {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
                places = [TopicPartition(*of, offset) for of, offset in last.items()]
                producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 10)
                if self._drawn.random() < 0.8:
                    producer.commit_transaction(10)
                    self.commits += 1
                else:
                    producer.abort_transaction(10)
                    for of, _ in last.items():
                        first = min(one.offset() for one in messages if (one.topic(), one.partition()) == of)
                        consumer.seek(TopicPartition(*of, first))
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    producer.abort_transaction(LIMIT)
        consumer.close()


def test_nothing_is_found_while_replicas_move(java: Jvm, audits: Audits, seed: int) -> None:
    drawn = random.Random(seed)
    options = ["--feature", f"transaction.version={2 - seed % 2}"]
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home), options, has_disks=True)
        for node in BROKERS:
            for name, value in OF_BROKERS.items():
                cluster.nodes[node].configure(name, value)
        with cluster.ended():
            cluster.start(CONTROLLER, *BROKERS)
            for topic, configs in TOPICS.items():
                cluster.create(topic, PARTITIONS, configs)
            with Load(cluster, seed) as load:
                wait_until(lambda: load.commits > 3)
                _move(java, cluster, audits, drawn)
                _make_topics(cluster, audits, drawn)
            assert load.count > 100
            audits(cluster.log_dirs, "live")
            cluster.stop()
            audits(cluster.log_dirs, "stopped")
    assert not audits.findings


def wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _move(java: Jvm, cluster: Cluster, audits: Audits, drawn: random.Random) -> None:
    """Give partitions other replicas, in other log directories, and audit until they have them."""
    partitions = {}
    for topic, number in itertools.product([*TOPICS, "__consumer_offsets", "__transaction_state"], range(PARTITIONS)):
        if (number and topic.startswith("__")) or drawn.random() < 0.3:
            continue
        replicas = drawn.sample(BROKERS, drawn.randint(1, len(BROKERS)))
        log_dirs = [str(drawn.choice(cluster.nodes[node].log_dirs)) for node in replicas]
        partitions[topic, number] = {"replicas": replicas, "log_dirs": log_dirs}
    moves = [{"topic": topic, "partition": number, **each} for (topic, number), each in partitions.items()]
    file = cluster.nodes[CONTROLLER].log_dir.parent / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": moves}))
    to = ["--bootstrap-server", str(cluster.settings["bootstrap.servers"]), "--reassignment-json-file", str(file)]
    limits = ["--throttle", "200000", "--replica-alter-log-dirs-throttle", "200000"]  # more than the load writes
    ran: list[object] = []
    tool = threading.Thread(target=lambda: ran.extend(run_tool(java, REASSIGN, [[*to, *limits, "--execute"]])))
    tool.start()

    def has_moved() -> bool:
        audits(cluster.log_dirs, "live")
        if tool.is_alive() or any(any(log_dir.glob("*-future")) for log_dir in cluster.log_dirs):
            return False
        found = cluster.admin.list_topics(timeout=5).topics
        return all(
            set(found[topic].partitions[number].replicas) == set(each["replicas"])
            for (topic, number), each in partitions.items()
        )

    wait_until(has_moved)
    (done,) = ran
    assert done.code == 0, done
    (done,) = run_tool(java, REASSIGN, [[*to, "--verify"]])  # removes the limits
    assert done.code == 0, done
    audits(cluster.log_dirs, "live")


def _make_topics(cluster: Cluster, audits: Audits, drawn: random.Random) -> None:
    """Make a topic, give it more partitions, delete it and make it again."""
    for _ in range(2):
        cluster.create("passing", PARTITIONS, SMALL)
        audits(cluster.log_dirs, "live")
        cluster.wait_for_leaders("passing")
        cluster.admin.create_partitions([NewPartitions("passing", PARTITIONS + 2)])["passing"].result(LIMIT)
        for number in range(PARTITIONS):
            cluster.produce("passing", number, [drawn.randbytes(100) for _ in range(3)])
        audits(cluster.log_dirs, "live")
        cluster.admin.delete_records([TopicPartition("passing", 0, 2)])
        cluster.admin.delete_topics(["passing"])["passing"].result(LIMIT)
        audits(cluster.log_dirs, "live")
