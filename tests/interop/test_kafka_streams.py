"""Kafka Streams that counts and joins exactly once, and is killed meanwhile: nothing is found in its topics."""

from __future__ import annotations

import tempfile
from pathlib import Path

from audited import Audits
from jvm import Jvm
from kafka_broker import Broker
from test_loss_ledger import pytest_generate_tests
from word_count import TOPICS, WordCount

__all__ = ["pytest_generate_tests"]

LINES, RUNS = 100, 2
QUICK = {
    "log.cleaner.backoff.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}


def test_nothing_is_found_in_the_topics_of_streams(java: Jvm, audits: Audits, tmp_path: Path, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="kraftlog-kafka-") as home:
        broker = Broker(java, Path(home), QUICK)
        with broker:
            broker.create(TOPICS)
            words = WordCount(broker.bootstrap_servers, broker.log_dir, tmp_path, seed)
            words.run(LINES, RUNS, lambda _: audits(broker.log_dirs, "live"))
            words.check()
    assert not audits.findings
