"""Answers of a broker are lost, and it is killed, while clients of other projects process orders exactly once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from broker_client import check

import kraftlog
from kraftlog.server.broker import Broker
from order_workers import Orders, OrderWorkers

ROUNDS = 6
REQUESTS = (  # those of transactions, each of which may be done or not when its answer is lost
    "Produce",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", range(40))
def test_each_order_is_processed_once_when_answers_are_lost(tmp_path: Path, seed: int):
    """Before a request is done, or after it; the broker is killed with some of these faults still to come."""
    dice, path = random.Random(f"faults {seed}"), tmp_path / "log"
    Orders.create_topics(path)
    with (
        Broker(path, fsync=dice.choice(["commit", "close"])) as broker,
        OrderWorkers(broker.bootstrap_servers, seed) as workers,
    ):
        orders = Orders(broker.bootstrap_servers, dice)
        for _ in range(ROUNDS):
            for request in dice.sample(REQUESTS, 2):
                dice.choice([broker.faults.drop_before, broker.faults.drop_after])(request)
            orders.send()
            if dice.random() < 0.5:
                broker.kill()
                broker.restart()
        broker.faults.clear()
        orders.finish()
        workers.finish()
    log = kraftlog.open(path)
    orders.check(log)
    workers.check(log)
    check(path)
