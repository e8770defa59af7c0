"""MirrorMaker 2 between two clusters: nothing is found in either, and the mirror lacks nothing."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from applications_of_kafka import running, wait_until
from audited import Audits
from confluent_kafka import Consumer, Producer
from jvm import Jvm
from kafka_broker import Broker
from test_loss_ledger import pytest_generate_tests

import kraftlog

__all__ = ["pytest_generate_tests"]

COUNT, PARTITIONS = 200, 2
OF_B = "a3JhZnRsb2ctbWlycm9yIQ"  # another cluster id
PROPERTIES = """
clusters=a, b
a.bootstrap.servers={a}
b.bootstrap.servers={b}
a.consumer.isolation.level=read_committed
a->b.enabled=true
b->a.enabled=true
topics=orders, keys
groups=readers
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
refresh.topics.interval.seconds=2
refresh.groups.interval.seconds=2
sync.topic.configs.interval.seconds=2
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
emit.heartbeats.interval.seconds=1
offset.lag.max=10
offset.flush.interval.ms=1000
"""


def count(broker: Broker, topic: str) -> int:
    """Return how many records a topic has that are committed; 0 if it is not there."""
    if not any(broker.log_dir.glob(f"{topic}-*")):
        return 0
    return kraftlog.open(broker.log_dir, topics=[topic]).records(["offset"]).to_table().num_rows


def send(broker: Broker, drawn: random.Random, name: str) -> int:
    """Write records, some in transactions that are aborted, and return how many are not."""
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    inside = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    inside.init_transactions(60)
    kept = 0
    for _ in range(COUNT // 20):
        producer = drawn.choice([plain, inside])
        if producer is inside:
            producer.begin_transaction()
        for _ in range(20):
            topic, key = drawn.choice(["orders", "keys"]), b"k%d" % drawn.randint(0, 50)
            producer.produce(topic, drawn.randbytes(50), key, partition=drawn.randrange(PARTITIONS))
        producer.flush(60)
        if producer is inside and drawn.random() < 0.3:
            producer.abort_transaction(60)
            continue
        if producer is inside:
            producer.commit_transaction(60)
        kept += 20
    return kept


def read(broker: Broker, topic: str, most: int) -> None:
    """Read some records as a group, and commit offsets."""
    group = {"group.id": "readers", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **group})
    consumer.subscribe([topic])
    got = 0
    while got < most:
        got += len([one for one in consumer.consume(most - got, 1) if one.error() is None])
    consumer.commit(asynchronous=False)
    consumer.close()


def test_a_mirror_lacks_nothing(java: Jvm, audits: Audits, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kraftlog-kafka-") as home:
        homes = [Path(home) / "a", Path(home) / "b"]
        for one in homes:
            one.mkdir()
        brokers = [Broker(java, one) for one in homes]
        brokers[1].take_identity("cluster.id", OF_B)
        with brokers[0] as a, brokers[1] as b:
            for broker in brokers:
                configs = {"orders": {}, "keys": {"cleanup.policy": "compact"}}
                broker.create({"name": name, "partitions": PARTITIONS, "configs": of} for name, of in configs.items())
            kept = send(a, drawn, "before")
            file = tmp_path / "mirror.properties"
            file.write_text(PROPERTIES.format(a=a.bootstrap_servers, b=b.bootstrap_servers))
            main = "org.apache.kafka.connect.mirror.MirrorMaker"
            with running("connect-mirror", main, str(file), output=tmp_path / "mirror.out"):
                wait_until(lambda: count(b, "a.orders") > 0)
                read(a, "orders", COUNT // 8)
                kept += send(a, drawn, "while")
                wait_until(lambda: count(b, "a.orders") + count(b, "a.keys") >= kept)
                for broker in brokers:
                    audits(broker.log_dirs, "live")
                read(a, "orders", 10)
                wait_until(lambda: any(b.log_dir.glob("a.checkpoints.internal-*")))
                wait_until(lambda: "readers" in _groups(b))
            assert count(b, "a.orders") + count(b, "a.keys") == kept
        found = [row for row in _against(brokers) if row["severity"] != "note"]
    assert found == []
    assert not audits.findings


def _groups(broker: Broker) -> set[str]:
    log = kraftlog.open(broker.log_dir)
    return {row["group"] for row in log.offsets(["group"]).to_pylist()}


def _against(brokers: list[Broker]) -> list[dict[str, object]]:
    return kraftlog.open(brokers[0].log_dirs).findings(against=[str(path) for path in brokers[1].log_dirs]).to_pylist()
