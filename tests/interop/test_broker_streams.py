"""Kafka Streams counts exactly once at a broker of this package and is killed; then Kafka opens the directory."""

from __future__ import annotations

from pathlib import Path

from audited import Audits
from confluent_kafka.admin import AdminClient, NewTopic
from jvm import Jvm
from kafka_broker import Broker as KafkaBroker
from test_loss_ledger import pytest_generate_tests
from word_count import TOPICS, WordCount

import kraftlog
from broker_process import BrokerProcess

__all__ = ["pytest_generate_tests"]

LINES, RUNS = 100, 2


def test_streams_counts_exactly_once(java: Jvm, audits: Audits, tmp_path: Path, seed: int) -> None:
    log_dir = tmp_path / "logs"
    with BrokerProcess(log_dir) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for future in admin.create_topics([NewTopic(one["name"], one["partitions"]) for one in TOPICS]).values():
            future.result()
        words = WordCount(broker.bootstrap_servers, log_dir, tmp_path, seed)

        def at_work(number: int) -> None:
            audits([log_dir], "live")
            if number == RUNS:  # the application goes on by itself
                broker.kill()
                broker.start()

        words.run(LINES, RUNS, at_work)
        words.check()
        code, _, errors = broker.close()
        assert (code, errors.count("\n")) == (0, 1), errors
    assert kraftlog.open(log_dir).errors().num_rows == 0
    audits([log_dir], "stopped")
    with KafkaBroker(java, tmp_path) as kafka:
        shown, _ = kafka.consume_at("read_committed", ["joined", "counts"])
        assert kafka.errors() == []
    words.check()
    assert len([one for one in shown if one["topic"] == "joined"]) == len(words.lines)
    assert not audits.findings
