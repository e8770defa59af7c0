"""A controller and three brokers of Kafka on 127.0.0.1, whose brokers are killed and elected without a vote."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from jvm import Jvm
from kafka_broker import Broker, Node, free_ports

CONTROLLER = 100
BROKERS = (1, 2, 3)
LIMIT = 90.0
# a client that waits for one that is frozen asks another one soon
_OF_CLIENTS = {"socket.timeout.ms": 2000, "reconnect.backoff.max.ms": 500, "log_level": 0}
PATIENCE = 5.0
_UNCLEAN = "unclean.leader.election.enable"
_OF_ALL = {
    "controller.listener.names": "CONTROLLER",
    "log.retention.ms": -1,
    "offsets.topic.num.partitions": 1,
    "num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
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


class Transacted(NamedTuple):
    """The records of a transaction that were acknowledged, and whether its end was."""

    records: list[bytes]
    has_ended: bool


class Seen(NamedTuple):
    """What a consumer has seen of a partition: offsets and values, and where it was told that the log ends."""

    records: list[tuple[int, bytes]]
    end_offset: int


def replicas_behind(admin: AdminClient, topic: str | None = None) -> list[str]:
    """Return the partitions, of one topic or of all, that have replicas which are not in sync."""
    topics = admin.list_topics(topic, timeout=5).topics
    unknown = [name for name, metadata in topics.items() if not metadata.partitions]
    behind = [
        f"{name}-{number}: {sorted(one.isrs)} of {sorted(one.replicas)}"
        for name, metadata in topics.items()
        for number, one in metadata.partitions.items()
        if sorted(one.isrs) != sorted(one.replicas)
    ]
    return unknown + behind if topics else ["no topics"]


class Disk:
    """A file system of its own in memory, that can be filled; a mere folder where nobody may mount one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(path)]
        self.is_own = subprocess.run(command, check=False, capture_output=True).returncode == 0
        self.log_dir = path / "logs"
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no space: the next write of a broker fails."""
        with self._filler.open("wb", buffering=0) as filler:
            for size in (1 << 20, 1):  # the last page as well
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    pass
        assert not os.statvfs(self.path).f_bavail

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)

    def unmount(self) -> None:
        """End it, with what it has."""
        if self.is_own:
            subprocess.run(["umount", str(self.path)], check=True)


class Cluster:
    """The nodes, all stopped. A node's log directories are ``nodes[node_id].log_dirs``.

    With disks, a broker has a second log directory on a small file system, which ends with the cluster.
    """

    def __init__(self, jvm: Jvm, home: Path, format_options: Sequence[str] = (), *, has_disks: bool = False) -> None:
        if not jvm.has_class_data:  # all nodes that are killed would have to load their classes
            with Broker(jvm, home):
                pass
        ports = dict(zip((CONTROLLER, *BROKERS), free_ports(1 + len(BROKERS)), strict=True))
        voters = f"{CONTROLLER}@127.0.0.1:{ports[CONTROLLER]}"
        self.nodes: dict[int, Node] = {}
        self.disks: dict[int, Disk] = {}
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
            if is_broker and has_disks:
                self.disks[node] = Disk(folder / "disk")
            more = [self.disks[node].log_dir] if node in self.disks else []
            self.nodes[node] = Node(jvm, folder, port, properties, format_options, more)
        servers = ",".join(f"127.0.0.1:{ports[node]}" for node in BROKERS)
        self.settings = {"bootstrap.servers": servers, **_OF_CLIENTS}
        self.running: set[int] = set()
        self.frozen: set[int] = set()

    def start(self, *nodes: int) -> None:
        """Start nodes, at the same time."""
        for node in nodes:
            self.nodes[node].begin_to_start()
            self.running.add(node)
        for node in nodes:
            self.nodes[node].wait_until_it_listens()

    def kill(self, *nodes: int) -> None:
        """Kill nodes with SIGKILL."""
        for node in nodes:
            self.running.discard(node)
            self.frozen.discard(node)
            self.nodes[node].kill()
            if node in self.disks:
                self.disks[node].free()

    def has_lost_disk(self, node: int) -> bool:
        """Whether a broker goes on without the log directory on its small file system: a write there has failed."""
        lines = self.nodes[node].output().splitlines()
        return any("Stopping serving" in line and str(self.disks[node].log_dir) in line for line in lines)

    def stop(self) -> None:
        """End all nodes as an administrator does, the controller last."""
        for node in sorted(self.running):
            self.nodes[node].stop()
        self.running.clear()

    def kill_all(self) -> None:
        """Kill everything, also nodes that are frozen."""
        self.kill(*self.running, *self.frozen)

    def copy(self, node: int, target: Path) -> list[Path]:
        """Copy the log directories of a node, and return the copies."""
        copies = []
        for number, log_dir in enumerate(self.nodes[node].log_dirs):
            copies.append(target / f"{node}-{number}")
            shutil.copytree(log_dir, copies[-1])
        return copies

    @property
    def log_dirs(self) -> list[Path]:
        """The log directories of all nodes."""
        return [log_dir for node in self.nodes.values() for log_dir in node.log_dirs]

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
            for disk in self.disks.values():
                disk.unmount()

    def create(
        self,
        topic: str,
        partitions: int,
        configs: Mapping[str, str] | None = None,
        replicas: int = len(BROKERS),
        assignment: Sequence[Sequence[int]] | None = None,
    ) -> None:
        """Create a topic, by default on all brokers; or on those that are assigned to each partition."""
        of = {"replication_factor": replicas} if assignment is None else {"replica_assignment": assignment}
        created = NewTopic(topic, num_partitions=partitions, config={**(configs or {})}, **of)
        # as long as the controller does not know all brokers, it refuses
        self.wait(lambda: self.admin.create_topics([created])[topic].result(LIMIT))

    def freeze(self, node: int) -> None:
        """Stop a node with SIGSTOP: it seems dead, until it is killed."""
        self.nodes[node].freeze()
        self.frozen.add(node)
        self.running.discard(node)

    def thaw(self, node: int) -> None:
        """Let a node that was frozen go on."""
        self.nodes[node].thaw()
        self.running.add(node)
        self.frozen.discard(node)

    def forbid_unclean_elections(self) -> None:
        """Let only replicas in sync lead, from the next start of the controller on."""
        self.nodes[CONTROLLER].configure(_UNCLEAN, "false")

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition, as the brokers that run know it; -1 is none."""
        found = self.admin.list_topics(topic, timeout=2).topics[topic].partitions
        return {number: partition.leader for number, partition in found.items()}

    def wait_for_leaders(self, topic: str) -> dict[int, int]:
        """Return the leaders when each partition has one that runs."""
        return self.wait(lambda: self.leaders(topic), lambda found: set(found.values()) <= self.running)

    def wait_until_all_are_in_sync(self, topic: str | None = None) -> None:
        """Wait until the partitions of a topic, or of all topics, have all their replicas in sync."""
        self.wait(lambda: replicas_behind(self.admin, topic), lambda found: not found)

    def produce(
        self, topic: str, partition: int, values: list[bytes], *, acks: int = 1, is_idempotent: bool = False
    ) -> list[bytes]:
        """Send records, each as a batch, and return those that were acknowledged; with ``acks`` 1 by the leader."""
        settings = {**self.settings, "acks": acks, "linger.ms": 0, "message.timeout.ms": int(PATIENCE * 1000)}
        producer = Producer({**settings, "enable.idempotence": is_idempotent})
        done: list[bytes] = []

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                done.append(message.value())

        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=note)
            producer.flush(2 * PATIENCE)
        return done

    def transact(self, transactional_id: str, values: dict[int, list[bytes]], topic: str, end: str) -> Transacted:
        """Send records by their partitions in a transaction; ``end`` is "commit", "abort" or "open"."""
        producer = Producer(
            {
                **self.settings,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 8000,
                "linger.ms": 0,
            }
        )
        done: list[bytes] = []

        def note(error: KafkaError | None, message: Message) -> None:
            if error is None:
                done.append(message.value())

        has_ended = False
        try:
            producer.init_transactions(PATIENCE)
            producer.begin_transaction()
            for partition, some in values.items():
                for value in some:
                    producer.produce(topic, value, partition=partition, on_delivery=note)
            producer.flush(PATIENCE)
            if end == "commit":
                producer.commit_transaction(PATIENCE)
            elif end == "abort":
                producer.abort_transaction(PATIENCE)
            has_ended = end != "open"
        except KafkaException:
            pass  # the answer is unknown, as to any client
        return Transacted(done, has_ended)

    def consume(self, topic: str, partition: int, level: str = "read_uncommitted", at_least: int = 0) -> Seen:
        """Return what a consumer reads of a partition, up to the end that the broker names; it waits for an end."""
        settings = {
            **self.settings,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": level,
            "enable.partition.eof": True,
        }
        consumer = Consumer(settings)
        place = Place(topic, partition)
        try:
            first, end = self.wait(
                lambda: consumer.get_watermark_offsets(place, timeout=5), lambda ends: ends[1] >= at_least
            )
            consumer.assign([Place(topic, partition, first)])
            records: list[tuple[int, bytes]] = []
            deadline = time.monotonic() + LIMIT
            is_at_end = first >= end
            while not is_at_end:
                assert time.monotonic() < deadline, f"{topic}-{partition}: {len(records)} records, end {end}"
                message = consumer.poll(1)
                if message is None:
                    continue
                if message.error() is None:
                    records.append((message.offset(), message.value()))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    is_at_end = message.offset() >= end
            return Seen(records, end)
        finally:
            consumer.close()

    def commit_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Commit an offset of a group that has no members."""
        consumer = Consumer({**self.settings, "group.id": group})
        place = Place(topic, partition, offset)
        self.wait(lambda: consumer.commit(offsets=[place], asynchronous=False))
        consumer.close()

    def committed_offset(self, group: str, topic: str, partition: int) -> int:
        """Return the offset of a group."""
        consumer = Consumer({**self.settings, "group.id": group})
        (place,) = self.wait(lambda: consumer.committed([Place(topic, partition)], timeout=5))
        consumer.close()
        return place.offset

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self.settings)

    def allow_unclean_elections(self, topic: str) -> None:
        """Let any replica of a topic lead; those of Kafka's own topics have to be in sync."""
        self.set_configs(topic, {_UNCLEAN: "true"})

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Set configs of a topic as soon as it is there."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        self.wait(lambda: self.admin.incremental_alter_configs([resource])[resource].result(LIMIT))

    @staticmethod
    def wait(ask: Callable[[], Answer], accepts: Callable[[Answer], bool] = lambda _: True) -> Answer:
        """Ask until an answer is accepted, and return it."""
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
