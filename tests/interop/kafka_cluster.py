"""A controller and three brokers of Kafka on 127.0.0.1, whose brokers are killed and elected without a vote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from jvm import Jvm
from kafka_broker import Node, free_ports

CONTROLLER = 100
BROKERS = (1, 2, 3)
LIMIT = 90.0
_UNCLEAN = "unclean.leader.election.enable"
_OF_ALL = {
    "controller.listener.names": "CONTROLLER",
    "log.retention.ms": -1,
    "offsets.topic.num.partitions": 1,
    "num.partitions": 1,
}
_OF_CONTROLLER = {
    _UNCLEAN: "true",
    # a broker that was killed is taken for dead soon, and what nobody in sync leads is given to another at once
    "broker.session.timeout.ms": 1500,
    "unclean.leader.election.interval.ms": 300,
    "leader.imbalance.check.interval.seconds": 3600,
}
_OF_BROKER = {
    "broker.heartbeat.interval.ms": 300,
    "replica.lag.time.max.ms": 1500,
    "replica.fetch.wait.max.ms": 100,
    "replica.high.watermark.checkpoint.interval.ms": 500,
    "controlled.shutdown.enable": "false",
}


Answer = TypeVar("Answer")


class Seen(NamedTuple):
    """What a consumer has seen of a partition: offsets and values, and where it was told that the log ends."""

    records: list[tuple[int, bytes]]
    end_offset: int


class Cluster:
    """The nodes, all stopped. A node's log directory is ``nodes[node_id].log_dir``."""

    def __init__(self, jvm: Jvm, home: Path) -> None:
        ports = dict(zip((CONTROLLER, *BROKERS), free_ports(1 + len(BROKERS)), strict=True))
        voters = f"{CONTROLLER}@127.0.0.1:{ports[CONTROLLER]}"
        self.nodes: dict[int, Node] = {}
        for node, port in ports.items():
            is_broker = node in BROKERS
            name = "PLAINTEXT" if is_broker else "CONTROLLER"
            properties = {
                **_OF_ALL,
                **(_OF_BROKER if is_broker else _OF_CONTROLLER),
                "process.roles": "broker" if is_broker else "controller",
                "node.id": node,
                "listeners": f"{name}://127.0.0.1:{port}",
                "controller.quorum.voters": voters,
            }
            folder = home / str(node)
            folder.mkdir()
            self.nodes[node] = Node(jvm, folder, port, properties)
        self._servers = ",".join(f"127.0.0.1:{ports[node]}" for node in BROKERS)
        self.running: set[int] = set()
        self.frozen: set[int] = set()

    def start(self, *nodes: int) -> None:
        """Start nodes, those of a restarted cluster in this order."""
        for node in nodes:
            self.nodes[node].start()
            self.running.add(node)

    def kill(self, *nodes: int) -> None:
        """Kill nodes with SIGKILL."""
        for node in nodes:
            self.running.discard(node)
            self.frozen.discard(node)
            self.nodes[node].kill()

    def kill_all(self) -> None:
        """Kill everything, also nodes that are frozen."""
        self.kill(*self.running, *self.frozen)

    @property
    def brokers(self) -> set[int]:
        """The brokers that run."""
        return self.running - {CONTROLLER}

    @contextmanager
    def ended(self) -> Iterator[None]:
        """End at the latest behind the block what runs."""
        try:
            yield
        finally:
            self.kill_all()

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic on all brokers."""
        created = NewTopic(topic, num_partitions=partitions, replication_factor=len(BROKERS))
        # as long as the controller does not know all brokers, it refuses
        self._wait(lambda: self._admin.create_topics([created])[topic].result(LIMIT))

    def freeze(self, node: int) -> None:
        """Stop a node with SIGSTOP: it seems dead, until it is killed."""
        self.nodes[node].freeze()
        self.frozen.add(node)
        self.running.discard(node)

    def forbid_unclean_elections(self) -> None:
        """Let only replicas in sync lead, from the next start of the controller on."""
        self.nodes[CONTROLLER].configure(_UNCLEAN, "false")

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition, as the brokers that run know it; -1 is none."""
        found = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
        return {number: partition.leader for number, partition in found.items()}

    def wait_for_leaders(self, topic: str) -> dict[int, int]:
        """Return the leaders when each partition has one that runs."""
        return self._wait(lambda: self.leaders(topic), lambda found: set(found.values()) <= self.running)

    def wait_until_all_are_in_sync(self, topic: str) -> None:
        """Wait until each partition has all brokers in sync."""

        def in_sync() -> set[int]:
            partitions = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
            return {len(partition.isrs) for partition in partitions.values()}

        self._wait(in_sync, lambda found: found == {len(BROKERS)})

    def produce(
        self, topic: str, partition: int, values: list[bytes], *, acks: int = 1, is_idempotent: bool = False
    ) -> list[bytes]:
        """Send records, each as a batch, and return those that were acknowledged; with ``acks`` 1 by the leader."""
        settings = {"bootstrap.servers": self._servers, "acks": acks, "linger.ms": 0, "message.timeout.ms": 30_000}
        producer = Producer({**settings, "enable.idempotence": is_idempotent})
        done: list[bytes] = []

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                done.append(message.value())

        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=note)
            producer.flush(35)
        return done

    def consume(self, topic: str, partition: int) -> Seen:
        """Return what a consumer is given of a partition, to its high watermark."""
        settings = {"bootstrap.servers": self._servers, "group.id": "none", "enable.auto.commit": False}
        consumer = Consumer(settings)
        try:
            first, end = self._wait(lambda: consumer.get_watermark_offsets(Place(topic, partition), timeout=5))
            consumer.assign([Place(topic, partition, first)])
            records: list[tuple[int, bytes]] = []
            deadline = time.monotonic() + LIMIT
            while first < end and (not records or records[-1][0] < end - 1):
                assert time.monotonic() < deadline, f"{topic}-{partition}: {len(records)} records, end {end}"
                message = consumer.poll(1)
                if message is not None and message.error() is None:
                    records.append((message.offset(), message.value()))
            return Seen(records, end)
        finally:
            consumer.close()

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._servers})

    @staticmethod
    def _wait(ask: Callable[[], Answer], accepts: Callable[[Answer], bool] = lambda _: True) -> Answer:
        deadline = time.monotonic() + LIMIT
        while True:
            answer: object = None
            try:
                found = ask()
                if accepts(found):
                    return found
                answer = found
            except KafkaException as error:
                answer = error
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
