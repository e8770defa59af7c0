"""Transactions that are decided while one of their partitions has no leader: Kafka never ends them (KAFKA-20734).

A coordinator takes such a partition for deleted, writes no marker to it, and records that the transaction is complete.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from coordinator_states import wait_for_status
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, Cluster

import kraftlog
from kraftlog.topics import TRANSACTION_STATE
from kraftlog.transactions.transaction import CLOCKS_DIFFER_MS, COMPLETE_ABORT, COMPLETE_COMMIT

TOPIC = "accounts"
LED, ALONE = 0, 1  # partitions
STATUS = {"commit": COMPLETE_COMMIT, "abort": COMPLETE_ABORT}  # by transactional id
WITHOUT_MARKER = {
    ("torn_transaction", 2): "expected COMMIT, as its coordinator completed; found no marker",
    ("torn_transaction", 3): "expected ABORT, as its coordinator completed; found no marker",
    ("open_transaction", 2): "4 offsets from 2 on wait for commit (",
    ("open_transaction", 3): "3 offsets from 3 on wait for abort (",
}


def test_decisions_while_a_partition_has_no_leader(java: Jvm, tmp_path: Path) -> None:
    """No marker follows when the leader is back; the audit names the transactions that consumers wait for."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home))
        with cluster.ended():
            cluster.start(CONTROLLER, *BROKERS)
            producers = {name: Producer({**cluster.settings, "transactional.id": name}) for name in STATUS}
            for producer in producers.values():
                producer.init_transactions(30)
            cluster.wait_until_all_are_in_sync(TRANSACTION_STATE)
            coordinator = cluster.leaders(TRANSACTION_STATE)[0]
            other = next(node for node in BROKERS if node != coordinator)
            cluster.create(TOPIC, 2, assignment=[[coordinator], [other]])
            cluster.wait_for_leaders(TOPIC)
            commit_in_both(cluster, b"earlier")
            time.sleep(CLOCKS_DIFFER_MS / 1000)  # else the topic may be younger than the transactions
            for name, producer in producers.items():
                producer.begin_transaction()
                for partition in (LED, ALONE):
                    producer.produce(TOPIC, name, partition=partition)
                assert producer.flush(30) == 0
            cluster.kill(other)
            cluster.wait(lambda: cluster.leaders(TOPIC), lambda found: found[ALONE] == -1)
            producers["commit"].commit_transaction(30)
            producers["abort"].abort_transaction(30)
            for name, status in STATUS.items():
                wait_for_status(cluster, coordinator, name, status)
            cluster.start(other)
            cluster.wait_for_leaders(TOPIC)
            time.sleep(CLOCKS_DIFFER_MS / 1000)  # else a marker may be under way
            commit_in_both(cluster, b"later")
            consumed = [
                [value for _, value in cluster.consume(TOPIC, partition, "read_committed").records]
                for partition in (LED, ALONE)
            ]
            cluster.stop()
        directories = [path for node in BROKERS for path in cluster.copy(node, tmp_path)]
    assert consumed == [[b"earlier", b"commit", b"later"], [b"earlier"]]
    findings = kraftlog.open(directories).findings().to_pylist()
    assert {(row["topic"], row["partition"]) for row in findings} == {(TOPIC, ALONE)}
    known = {(row["code"], row["offset"]): row["known"] for row in findings}
    assert {of: what for of, what in WITHOUT_MARKER.items() if what in known.pop(of, "")} == WITHOUT_MARKER
    assert known == {}


def commit_in_both(cluster: Cluster, value: bytes) -> None:
    for partition in (LED, ALONE):
        assert cluster.transact("other", {partition: [value]}, TOPIC, "commit").has_ended
