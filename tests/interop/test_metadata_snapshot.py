"""A real node starts from a snapshot that kraftlog wrote and the log behind it; what was before is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jvm import Jvm
from kafka_broker import NODE, Broker

import kraftlog
from kraftlog import MetadataLogWriter

TOPICS = {"in-the-snapshot": 3, "behind-it": 2, "in-neither": 1}

Answers = tuple[dict[str, str | None], set[tuple[str, int]]]


@pytest.fixture(scope="module")
def answers(java: Jvm, broker: Broker) -> Answers:
    """Write a log from nothing, keep its snapshot alone, go on behind that, and let the node have it."""
    lines = [{"name": name, "partitions": partitions} for name, partitions in TOPICS.items()]
    printed = map(json.loads, java.run("TopicRecords", str(NODE), lines=lines))
    topics = {line["name"]: [bytes.fromhex(record) for record in line["records"]] for line in printed}
    features = kraftlog.open(broker.log_dir / "bootstrap.checkpoint").records(["value"]).to_table()["value"]
    folder = _folder(broker)
    with MetadataLogWriter(folder, 1) as writer:
        with writer.transaction("Bootstrap records") as transaction:
            transaction.append(features)
        writer.append(topics["in-the-snapshot"])
        snapshot = writer.write_snapshot([features, topics["in-the-snapshot"]])
    for path in folder.iterdir():
        if path != snapshot:
            path.unlink()
    with MetadataLogWriter(folder, 2) as writer:
        writer.append(topics["behind-it"])
    with broker:
        created = broker.try_to_create({"name": name, "partitions": 1, "configs": {}} for name in TOPICS)
        _, ends = broker.consume_at("read_committed", TOPICS)
    return created, set(ends)


def _folder(broker: Broker) -> Path:
    return broker.log_dir / "__cluster_metadata-0"


def test_the_controller_holds_both(answers: Answers) -> None:
    """The topic of the snapshot and the one of the log; the third one can still be created."""
    exists = "TopicExistsException"
    assert answers[0] == {"in-the-snapshot": exists, "behind-it": exists, "in-neither": None}


def test_the_broker_has_all_partitions(answers: Answers) -> None:
    """As they are in the records; a topic that the broker created has one."""
    assert answers[1] == {(name, partition) for name, count in TOPICS.items() for partition in range(count)}


def test_the_node_has_gone_on_with_this_log(answers: Answers, broker: Broker) -> None:
    """Behind the snapshot, at the next epoch, without fault."""
    log = kraftlog.open(_folder(broker))
    batches = log.batches(["segment_base_offset", "partition_leader_epoch", "control_type"]).to_pylist()
    (snapshot,) = _folder(broker).glob("*.checkpoint")
    assert {batch["segment_base_offset"] for batch in batches} == {int(snapshot.stem.partition("-")[0])}
    changes = [batch["partition_leader_epoch"] for batch in batches if batch["control_type"] == "LEADER_CHANGE"]
    assert changes == [2, 3]
    assert log.errors().to_pylist() == []
