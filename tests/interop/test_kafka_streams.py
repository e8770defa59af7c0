"""Kafka Streams that counts and joins exactly once, and is killed meanwhile: nothing is found in its topics."""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path

from applications_of_kafka import HERE, running, wait_until
from audited import Audits
from confluent_kafka import Producer
from jvm import Jvm
from kafka_broker import Broker
from test_loss_ledger import pytest_generate_tests

import kraftlog

__all__ = ["pytest_generate_tests"]

WORDS = [f"word-{number}" for number in range(30)]
LINES, RUNS = 100, 3
TOPICS = [{"name": name, "partitions": 2, "configs": {}} for name in ("lines", "names", "counts", "joined")]
QUICK = {
    "log.cleaner.backoff.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}


def test_nothing_is_found_in_the_topics_of_streams(java: Jvm, audits: Audits, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kraftlog-kafka-") as home:
        broker = Broker(java, Path(home), QUICK)

        def joined() -> int:
            log = kraftlog.open(broker.log_dir, topics=["joined"])
            return log.records(["offset"], isolation_level="read_committed").to_table().num_rows

        with broker:
            broker.create(TOPICS)
            settings = {"enable.idempotence": True, "partitioner": "murmur2_random"}
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
            for word in WORDS:
                producer.produce("names", f"name of {word}", word)
            arguments = [str(HERE / "WordCount.java"), broker.bootstrap_servers, str(tmp_path / "stores")]
            for number in range(1, RUNS + 1):
                with running("kafka-streams", *arguments, output=tmp_path / "streams.out") as streams:
                    for _ in range(LINES):
                        line = " ".join(drawn.choices(WORDS, k=drawn.randint(1, 6)))
                        producer.produce("lines", line, partition=drawn.randrange(2))
                    producer.flush(60)
                    # it is killed while it is at work
                    enough = RUNS * LINES if number == RUNS else (number - 1) * LINES + 1
                    wait_until(partial(lambda enough: joined() >= enough, enough))
                    audits(broker.log_dirs, "live")
                    if number < RUNS:
                        streams.kill()
                        streams.wait()
            assert joined() == RUNS * LINES
            for topic in ("words-counted-changelog", "words-by-first-repartition"):
                assert [*broker.log_dir.glob(f"{topic}-*")]
    assert not audits.findings
