"""Orders are processed exactly once at a broker of this package that is killed; then Kafka opens the directory."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from audited import Audits
from jvm import Jvm
from kafka_broker import Broker as KafkaBroker
from test_loss_ledger import pytest_generate_tests

import kraftlog
from broker_process import BrokerProcess
from order_workers import AMOUNTS, LIMIT, OPEN, ORDERS, Orders, OrderWorkers

__all__ = ["pytest_generate_tests"]

KILLS, LEVELS = 2, ("read_committed", "read_uncommitted")


def test_kafka_opens_what_a_killed_broker_has_left(java: Jvm, audits: Audits, tmp_path: Path, seed: int) -> None:
    """The last kill leaves one transaction open; Kafka ends it, and shows neither its record nor those of others."""
    log_dir, dice = tmp_path / "logs", random.Random(seed)
    Orders.create_topics(log_dir)
    with BrokerProcess(log_dir) as broker, OrderWorkers(broker.bootstrap_servers, seed) as workers:
        orders = Orders(broker.bootstrap_servers, dice)
        for _ in range(KILLS):
            orders.send()
            broker.kill()
            broker.start()
        orders.finish()
        workers.finish()
        workers.leave_open()
        broker.kill()
    log = kraftlog.open(log_dir)
    orders.check(log)
    workers.check(log)
    ours = {level: [row["offset"] for row in records_of(log, level)] for level in LEVELS}
    with KafkaBroker(java, tmp_path) as kafka:
        wait_until_ended(kafka)
        shown = {level: kafka.consume_at(level, [AMOUNTS])[0] for level in LEVELS}
        groups = {line["group"]: line["offsets"] for line in kafka.groups()}
        # after a kill Kafka says of each segment that it has to build its index files
        assert [line for line in kafka.errors() if "rebuilding index files" not in line] == []
    assert {level: sorted(line["offset"] for line in shown[level]) for level in LEVELS} == {
        level: sorted(ours[level]) for level in LEVELS
    }
    offsets = {(name, at): end for name in workers.names for topic, at, end, *_ in groups[name] if topic == ORDERS}
    workers.check_offsets(offsets)
    after = kraftlog.open(log_dir)
    workers.check(after)
    assert [row for row in after.partition_transactions().to_pylist() if row["state"] == "open"] == []


def records_of(log: kraftlog.Log, isolation_level: Any) -> list[dict[str, Any]]:
    """Return the amounts that an isolation level shows."""
    amounts = log.of_files(log.found.only(lambda topic, _: topic == AMOUNTS))
    return amounts.records(["partition", "offset"], isolation_level=isolation_level).to_table().to_pylist()


def wait_until_ended(kafka: KafkaBroker) -> None:
    """Wait until the coordinator has aborted the transaction that was left open."""
    until = time.monotonic() + LIMIT
    while True:
        states = {line["transactional_id"]: line["state"] for line in kafka.ended_transactions([AMOUNTS], known=[OPEN])}
        if states[OPEN] == "CompleteAbort":
            break
        assert time.monotonic() < until, states
        time.sleep(0.5)
    assert not any(state in ("Ongoing", "PrepareCommit", "PrepareAbort") for state in states.values()), states
