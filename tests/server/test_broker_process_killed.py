"""A broker is killed at random while clients of other projects process orders exactly once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from broker_client import check

import kraftlog
from broker_process import BrokerProcess
from order_workers import Orders, OrderWorkers

KILLS = 3


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", range(40))
def test_each_order_is_processed_once(tmp_path: Path, seed: int):
    dice, path = random.Random(seed), tmp_path / "log"
    Orders.create_topics(path)
    with (
        BrokerProcess(path, "--fsync", dice.choice(["commit", "close"])) as broker,
        OrderWorkers(broker.bootstrap_servers, seed) as workers,
    ):
        orders = Orders(broker.bootstrap_servers, dice)
        for _ in range(KILLS):
            orders.send()
            broker.kill()
            time.sleep(dice.random() * 0.3)
            broker.start()
        orders.finish()
        workers.finish()
        assert broker.close()[0] == 0, broker.errors
    errors = [line for line in broker.errors.splitlines() if not line.startswith("topics: ")]
    assert not errors, "\n".join([str(workers.ends), *errors])
    log = kraftlog.open(path)
    orders.check(log)
    workers.check(log)
    check(path)
