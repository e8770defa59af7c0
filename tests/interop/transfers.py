"""A cluster under load: transfers between accounts (``Transfers.java``), and all that a log may go through meanwhile.

The amounts of all accounts add up to 0, and so do the two of each order. A group has committed an offset if and only if
the orders before it are transferred. "left" and "right" have the same last value of each key.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, Cluster

import kraftlog
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE

ACCOUNTS, ORDERS, LEFT, RIGHT = "accounts", "orders", "left", "right"
SHORT = "short-"  # of names of topics that are deleted soon
GROUP = "transfers"
COMPACTION_LAG_MS = 5000
_SEGMENTS = {"internal.segment.bytes": str(16 << 10)}
_COMPACTED = {**_SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
_LAG = {"min.compaction.lag.ms": str(COMPACTION_LAG_MS)}
# Partitions, replicas, configs. Topics of transactions have several replicas: a coordinator never writes the marker of
# a partition that has no leader when it decides (KAFKA-20734)
_TOPICS: dict[str, tuple[int, int, dict[str, str]]] = {
    ACCOUNTS: (3, 3, _SEGMENTS),
    ORDERS: (3, 3, {**_SEGMENTS, "retention.bytes": str(48 << 10)}),
    LEFT: (1, 3, {**_COMPACTED, **_LAG}),
    RIGHT: (1, 2, {**_COMPACTED, **_LAG}),
}
_INTERNAL = {
    CONSUMER_OFFSETS: {**_COMPACTED, **_LAG},
    # without it, transactions of version 1 are known by partition only
    TRANSACTION_STATE: {**_COMPACTED, "min.compaction.lag.ms": "60000"},
}
_OF_BROKER = {
    "log.cleaner.backoff.ms": "300",
    "log.retention.check.interval.ms": "700",
    "log.segment.delete.delay.ms": "300",
    "log.initial.task.delay.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "replica.lag.time.max.ms": "10000",  # a busy machine leaves no leader alone
}
_WORKERS = 3


def start(cluster: Cluster) -> None:
    """Start the nodes of a cluster with a busy cleaner, and create the topics."""
    cluster.forbid_unclean_elections()
    cluster.nodes[CONTROLLER].configure("broker.session.timeout.ms", "3000")  # nor takes brokers for dead
    for node in BROKERS:
        for name, value in _OF_BROKER.items():
            cluster.nodes[node].configure(name, value)
    cluster.start(CONTROLLER, *BROKERS)
    for topic, (partitions, replicas, configs) in _TOPICS.items():
        cluster.create(topic, partitions, configs, replicas=replicas)


class Load:
    """What runs beside the transfers.

    Parameters
    ----------
    cluster : Cluster

    Attributes
    ----------
    done : Counter
        What has happened, by kind.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._is_ending = threading.Event()
        self._transfers: subprocess.Popen[str] | None = None
        self.done: Counter[str] = Counter()

    @contextmanager
    def running(self, java: Jvm, seed: int, stderr: Path) -> Iterator[None]:
        """Run the transfers, and all else, during a ``with`` block."""
        servers = self._cluster.settings["bootstrap.servers"]
        works = (self._short_lived_topics, self._older_transactions, self._kills)
        threads = [threading.Thread(target=work, args=(random.Random(f"{seed} {work.__name__}"),)) for work in works]
        with stderr.open("w") as file:
            process = subprocess.Popen(
                java.command("Transfers", str(servers), str(seed), str(_WORKERS)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        try:
            for topic, configs in _INTERNAL.items():
                self._cluster.set_configs(topic, configs)  # waits for the topic
            for thread in threads:
                thread.start()
            self._transfers = process
            yield
        finally:
            self._is_ending.set()
            out, _ = process.communicate(timeout=60)
            for thread in threads:
                if thread.ident is not None:
                    thread.join(60)
        self.done["committed"] = json.loads(out)["committed"]

    def lower_transaction_version(self) -> None:
        """Let all later transactions be of version 1."""
        assert self._transfers is not None
        assert self._transfers.stdin is not None
        self._transfers.stdin.write("1")
        self._transfers.stdin.flush()
        self.done["lowered"] += 1

    def _short_lived_topics(self, draw: random.Random) -> None:
        number = 0
        while not self._is_ending.wait(draw.random()):
            name, number = f"{SHORT}{number}", number + 1
            with suppress(KafkaException):
                made = NewTopic(name, num_partitions=draw.randint(1, 2), replication_factor=draw.choice((1, 3)))
                self._cluster.admin.create_topics([made])[name].result(5)
                self._cluster.produce(name, 0, [b"some"] * draw.randrange(4))
                self._is_ending.wait(draw.random())
                self._cluster.admin.delete_topics([name])[name].result(5)
                self.done["topics deleted"] += 1

    def _older_transactions(self, draw: random.Random) -> None:
        """Let a client of version 1 make transfers: librdkafka does not raise epochs."""
        ends = draw.sample(["commit", "abort", "open"], 3)  # each of them soon
        while not self._is_ending.wait(draw.random() / 2):
            to, of = draw.sample(range(3), 2)
            amount = draw.randrange(1, 100)
            values = {to: [b"%d" % amount], of: [b"%d" % -amount]}
            end = ends.pop() if ends else draw.choices(("commit", "abort", "open"), (7, 2, 1))[0]
            self._cluster.transact(f"older-{draw.randrange(2)}", values, ACCOUNTS, end)
            self.done[f"older: {end}"] += 1

    def _kills(self, draw: random.Random) -> None:
        while not self._is_ending.wait(draw.uniform(3, 7)):
            node = draw.choice(BROKERS)
            self._cluster.wait_until_all_are_in_sync()  # another one leads at once
            self._cluster.kill(node)
            self.done["killed"] += 1
            self._is_ending.wait(draw.uniform(0, 3))
            self._cluster.start(node)


def violations(log: kraftlog.Log, *, has_all_keys: bool) -> Iterator[str]:
    """Return what contradicts the rules of the load.

    Parameters
    ----------
    log : Log
        At a cut, or of a restored cluster.
    has_all_keys : bool
        Whether no record that the cleaner had removed was the last of its key at the cut.
    """
    rows = _committed(log, ACCOUNTS)
    amounts: dict[str, list[int]] = defaultdict(list)
    for key, value in rows:
        amounts[key].append(int(value))
    older = amounts.pop("", [])
    if sum(older):
        yield f"older transfers: they add up to {sum(older)}"
    ends: dict[int, int] = {}
    for order, both in amounts.items():
        if len(both) != 2 or sum(both):
            yield f"transfer: that of order {order} has {both}"
        partition, offset = map(int, order.split(":"))
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    offsets = log.offsets(["group", "topic", "partition", "offset", "state"], strict=False, faults=[]).to_pylist()
    found = {
        row["partition"]: row["offset"]
        for row in offsets
        if row["state"] == "committed" and (row["group"], row["topic"]) == (GROUP, ORDERS)
    }
    for partition in {*ends, *found}:
        end, offset = ends.get(partition, 0), found.get(partition)
        if offset != end and (has_all_keys or offset is not None):
            yield f"group: orders-{partition} is transferred up to {end}, and the group has {offset}"
    if has_all_keys:
        left, right = (dict(_committed(log, topic)) for topic in (LEFT, RIGHT))
        if left != right:
            yield f"left and right: {left} is not {right}"


def _committed(log: kraftlog.Log, topic: str) -> list[tuple[str, str]]:
    """Return keys and values of a topic, as a consumer gets them."""
    files = log.of_files(log.found.only(lambda name, _: name == topic))
    rows = files.records(["key", "value"], isolation_level="read_committed").to_table().to_pylist()
    return [((row["key"] or b"").decode(), row["value"].decode()) for row in rows]
