"""Three brokers that die while others lead: the loss ledger is what was acknowledged and is not consumed.

In each round a broker that lacks records is elected. All are killed before one that has them returns and truncates its
log, or its log directory is copied before it does. kraftlog says of the directories what is lost, before the cluster
starts again and a consumer reads what it has.
"""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, Cluster
from test_unclean_elections import pytest_generate_tests

import kraftlog
from kraftlog.backup.loss_ledger import LEDGER_FILE, write_loss_ledger

__all__ = ["pytest_generate_tests"]

TOPIC = "orders"
PARTITIONS = 3
ROUNDS = 3
OF_LOSSES = {"lost_records", "lost_committed_records"}


class Sent:
    """The values that were sent; no two are the same."""

    def __init__(self, cluster: Cluster, drawn: random.Random) -> None:
        self._cluster, self._drawn = cluster, drawn
        self._numbers = itertools.count()
        self.all: set[bytes] = set()
        self.acknowledged: set[bytes] = set()

    def send(self) -> None:
        """Send some records to each partition, in one of several ways."""
        self._cluster.wait_for_leaders(TOPIC)
        for partition in range(PARTITIONS):
            values = [str(next(self._numbers)).encode() for _ in range(self._drawn.randint(1, 6))]
            is_idempotent = self._drawn.random() < 0.3
            acks = -1 if is_idempotent or self._drawn.random() < 0.5 else 1
            self.all |= set(values)
            self.acknowledged |= set(
                self._cluster.produce(TOPIC, partition, values, acks=acks, is_idempotent=is_idempotent)
            )


def test_the_ledger_is_what_was_acknowledged_and_is_not_consumed(java: Jvm, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    lost = 0
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home))
        with cluster.ended():
            sent = Sent(cluster, drawn)
            cluster.start(CONTROLLER, *BROKERS)
            cluster.create(TOPIC, PARTITIONS)
            cluster.wait_for_leaders(TOPIC)
            known_lost: set[bytes] = set()
            for number in range(ROUNDS):
                leader, copies = _fail(cluster, sent, drawn, tmp_path / str(number))
                ledger, committed = _ledger(copies, tmp_path / f"ledger-{number}")
                consumed = _restart(cluster, leader)
                missing = sent.all - consumed - known_lost
                assert (sent.acknowledged - consumed) - known_lost <= ledger <= missing
                assert committed <= ledger
                known_lost |= missing
                lost += len(ledger)
    assert lost, "nothing was lost: the test proves nothing"


def _fail(cluster: Cluster, sent: Sent, drawn: random.Random, copies: Path) -> tuple[int, list[Path]]:
    """Lose brokers until one that lacks records leads all partitions, and kill all.

    Returns
    -------
    int
        The leader.
    list of Path
        Copies of all log directories.
    """
    made: list[Path] = []
    cluster.wait_for_leaders(TOPIC)
    sent.send()
    others = drawn.sample(sorted(cluster.brokers), len(cluster.brokers) - 1)
    for node in others:
        cluster.freeze(node) if drawn.random() < 0.3 else cluster.kill(node)
        sent.send()
    cluster.kill(*cluster.brokers, *cluster.frozen)
    returning, *rest = drawn.sample(others, len(others))
    cluster.start(returning)
    sent.send()
    if drawn.random() < 0.5:  # this one truncates its log: what it had is in the copy
        before = copies / f"{rest[0]}-before"
        shutil.copytree(cluster.nodes[rest[0]].log_dir, before)
        made.append(before)
        cluster.start(rest[0])
        sent.send()
    cluster.kill_all()
    for node in (CONTROLLER, *BROKERS):
        shutil.copytree(cluster.nodes[node].log_dir, copies / str(node))
        made.append(copies / str(node))
    return returning, made


def _ledger(copies: list[Path], target: Path) -> tuple[set[bytes], set[bytes]]:
    """Return the values in the ledger, and those that were committed; nothing else is found."""
    log = kraftlog.open(copies)
    rows = log.findings(["code", "sentence"]).to_pylist()
    assert [row["sentence"] for row in rows if row["code"] not in OF_LOSSES] == []
    done = write_loss_ledger(kraftlog.open(copies, topics=[TOPIC]), target)
    assert not done.faults
    table = pq.read_table(target / LEDGER_FILE, columns=["value", "is_committed"])
    values = table["value"].to_pylist()
    assert len(values) == len(set(values))
    again = [kraftlog.open(folder).records(["value"]).to_table()["value"].to_pylist() for folder in done.folders]
    assert sorted(value for some in again for value in some) == sorted(values)
    return set(values), set(table.filter(table["is_committed"])["value"].to_pylist())


def _restart(cluster: Cluster, leader: int) -> set[bytes]:
    """Start all, and return what consumers get.

    The leader starts first and leads again, also if another replica was in sync when all were killed.
    """
    cluster.start(CONTROLLER, leader)
    assert set(cluster.wait_for_leaders(TOPIC).values()) == {leader}
    cluster.start(*(node for node in BROKERS if node != leader))
    cluster.wait_until_all_are_in_sync(TOPIC)
    return {value for number in range(PARTITIONS) for _, value in cluster.consume(TOPIC, number).records}
