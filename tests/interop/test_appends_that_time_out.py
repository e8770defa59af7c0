"""A transaction coordinator whose replicas do not answer goes on without the record that they did not get in time."""

from __future__ import annotations

import tempfile
from pathlib import Path

from confluent_kafka import Producer
from coordinator_states import state_records, wait_for_status
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, Cluster

import kraftlog
from kraftlog.topics import TRANSACTION_STATE
from kraftlog.transactions.transaction import COMPLETE_ABORT, ONGOING, PREPARE_ABORT

TOPIC, NAME = "accounts", "transfer"
TIMEOUT_MS = 4000  # of the transaction, and so of appends of its coordinator; brokers are in sync for longer
IN_SYNC_MS = "30000"


def test_an_abort_without_a_partition_whose_addition_timed_out(java: Jvm, tmp_path: Path) -> None:
    """Nothing is wrong with it, and there is one transaction."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home))
        cluster.nodes[CONTROLLER].configure("broker.session.timeout.ms", IN_SYNC_MS)
        for node in BROKERS:
            cluster.nodes[node].configure("replica.lag.time.max.ms", IN_SYNC_MS)
        with cluster.ended():
            cluster.start(CONTROLLER, *BROKERS)
            cluster.create(TOPIC, 2)
            cluster.transact("other", {0: [b"1"], 1: [b"-1"]}, TOPIC, "commit")  # the topic of coordinators is there
            cluster.wait_until_all_are_in_sync(TRANSACTION_STATE)
            coordinator = cluster.leaders(TRANSACTION_STATE)[0]
            settings = {
                "transactional.id": NAME,
                "transaction.timeout.ms": TIMEOUT_MS,
                "message.timeout.ms": TIMEOUT_MS,
            }
            producer = Producer({**cluster.settings, **settings, "linger.ms": 0})
            producer.init_transactions(30)
            producer.begin_transaction()
            producer.produce(TOPIC, b"1", partition=1)
            producer.flush(30)
            for node in {*BROKERS} - {coordinator}:
                cluster.freeze(node)
            producer.produce(TOPIC, b"-1", partition=0)
            wait_for_status(cluster, coordinator, NAME, PREPARE_ABORT)
            for node in sorted(cluster.frozen):
                cluster.thaw(node)
            wait_for_status(cluster, coordinator, NAME, COMPLETE_ABORT)
            cluster.stop()
        directories = [path for node in BROKERS for path in cluster.copy(node, tmp_path)]
    written = state_records(directories, NAME)
    aborts = [record for record in written if record.status == PREPARE_ABORT]
    added = [record for record in written if record.status == ONGOING]
    assert added[-1].partitions - aborts[-1].partitions == {(TOPIC, 0)}, written
    log = kraftlog.open(directories)
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []
    rows = [row for row in log.transactions().to_pylist() if row["transactional_id"] == NAME]
    assert [(row["state"], [one["partition"] for one in row["partitions"]]) for row in rows] == [("aborted", [1])]
