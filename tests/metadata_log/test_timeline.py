"""The timeline: of the logs of Kafka against the tables that say the same, and its sentences."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_rows import Fields, batches, record

import kraftlog
from golden_files import GOLDEN
from kraftlog.metadata.diff.change_filter import ChangeFilter
from kraftlog.metadata.image import Image
from kraftlog.metadata.timeline.happenings import Burst, Happening
from kraftlog.metadata.timeline.partition_events import LISTS
from kraftlog.metadata_log import replay as replay_module
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import At, timeline

SCENARIOS = [GOLDEN / "metadata", GOLDEN / "metadata_dynamic"]
TRANSACTIONS = sorted((GOLDEN / "metadata_txn").iterdir())


def found_in(folder: Path, start: int = -1, end: int | None = None, where: ChangeFilter | None = None) -> list[At]:
    log = MetadataLog.open(folder / "log")
    return list(timeline(log, image_at(log, start, []), end, [], where))


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_timeline_says_what_the_changes_say(folder: Path) -> None:
    """As many leaders move, brokers leave the ISR and partitions come and go; times are those of changes."""
    rows = kraftlog.open(folder / "log").metadata_changes().to_table().to_pylist()
    found = found_in(folder)
    changed = Counter((row["kind"], row["field"], row["change"]) for row in rows)
    events = [at.what for at in found]
    moved = [one for one in events if one.event == "leader" or (one.event == "broker" and one.partitions)]
    assert sum(one.partitions or 0 for one in moved) == changed["partition", "leader", "changed"] > 0
    left = [one for one in events if one.event == "isr" and "left" in one.message]
    shrunk = [row for row in rows if row["field"] == "isr" and len(row["after"]) < len(row["before"])]
    assert sum(one.partitions or 0 for one in left) == len(shrunk)
    created = [one for one in events if one.event == "topic" and "deleted" not in one.message]
    assert sum(one.partitions or 0 for one in created) == changed["partition", None, "added"]
    deleted = [one for one in events if one.event == "topic" and "deleted" in one.message]
    assert sum(one.partitions or 0 for one in deleted) == changed["partition", None, "removed"]
    times = {row["offset"]: round(row["timestamp"].timestamp() * 1000) for row in rows}
    for at in found:
        if at.what.event not in ("controller", "voters", "aborted_transaction"):
            assert times[at.what.offset] == at.timestamp
            assert at.what.last_offset in times
    assert [at.timestamp // 1000 for at in found] == sorted(at.timestamp // 1000 for at in found)
    fenced = [row for row in rows if (row["kind"], row["field"], row["after"]) == ("broker", "fenced", "true")]
    told = [one for one in events if one.event == "broker" and re.search(r"(, |\d )fenced(,|:|$)", one.message)]
    assert len(told) == len(fenced) > 0


@pytest.mark.parametrize("folder", [*SCENARIOS, *TRANSACTIONS], ids=lambda folder: folder.name)
def test_what_the_log_itself_says(folder: Path) -> None:
    """New active controllers are those of control records, aborted transactions those of the table."""
    log = kraftlog.open(folder / "log")
    leaders = log.messages(["offset", "leader_id"], type="LeaderChangeMessage").to_table().to_pylist()
    found = [at.what for at in found_in(folder)]
    said = [(one.offset, int(one.message.split()[1])) for one in found if "active controller" in one.message]
    assert said == [(row["offset"], row["leader_id"]) for row in leaders]
    rows = log.metadata_transactions(["end_offset", "state", "name", "reason"], strict=False, faults=[]).to_pylist()
    aborted = {row["end_offset"]: row for row in rows if row["state"] == "aborted"}
    told = {one.offset: one.message for one in found if one.event == "aborted_transaction"}
    assert told.keys() == aborted.keys()
    assert all((aborted[at]["reason"] or "") in message for at, message in told.items())


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_pieces_of_the_log_do_not_show(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither how much of it is read at once, nor where it was begun, but for what the second before had begun."""
    whole = found_in(folder)
    middle = whole[len(whole) // 2]
    second = middle.timestamp // 1000
    before = [at for at in whole if at.timestamp // 1000 < second]
    last = min(at.what.offset for at in whole[len(before) :]) - 1
    assert found_in(folder, start=last) == whole[len(before) :]
    assert found_in(folder, end=last) == before
    monkeypatch.setattr(replay_module, "_BATCH_BYTES", 300)
    assert found_in(folder) == whole


@pytest.mark.sweep(1)
@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_topics_and_brokers_that_are_wanted(folder: Path) -> None:
    """As much happens as the filtered changes say; what concerns all of a topic or broker is told as it is of all."""
    log = kraftlog.open(folder / "log")
    rows = log.metadata_changes(["topic", "brokers"]).to_table().to_pylist()
    whole = {at.what for at in found_in(folder)}
    for topic in sorted({row["topic"] for row in rows if row["topic"] is not None}):
        events = [at.what for at in found_in(folder, where=ChangeFilter(topics=[topic]))]
        _agree(events, log.metadata_changes(topics=[topic]).to_table().to_pylist())
        assert {one for one in whole if one.topic == topic} <= set(events)
        assert {one.event for one in events} <= {"topic", "config", "leader", "unclean_election", *LISTS}
    for broker in sorted({broker for row in rows for broker in row["brokers"]}):
        where = ChangeFilter(brokers=[broker])
        events = [at.what for at in found_in(folder, where=where)]
        _agree(events, log.metadata_changes(brokers=[broker]).to_table().to_pylist(), broker)
        of_lists = {one for one in whole if one.event in ("isr", "unclean_election") and one.broker_id == broker}
        assert of_lists <= set(events)
        told = {one for one in whole if one.event == "broker" and one.broker_id == broker}
        assert told == {one for one in events if one.event == "broker"}


def _agree(events: list[Happening], rows: list[dict[str, Any]], broker: int | None = None) -> None:
    changed = Counter((row["kind"], row["field"], row["change"]) for row in rows)
    moved = [one for one in events if one.event == "leader" or (one.event == "broker" and one.partitions)]
    assert sum(one.partitions or 0 for one in moved) == changed["partition", "leader", "changed"]
    isr = [one.partitions or 0 for one in events if one.event == "isr"]
    assert sum(isr) == sum(
        len(set(map(int, re.findall(r"\d+", row["before"]))) ^ set(map(int, re.findall(r"\d+", row["after"]))))
        if broker is None
        else 1
        for row in rows
        if (row["field"], row["change"]) == ("isr", "changed")
    )
    created = [one for one in events if one.event == "topic" and re.search("created|added", one.message)]
    assert sum(one.partitions or 0 for one in created) == changed["partition", None, "added"]
    deleted = [one for one in events if one.event == "topic" and re.search("deleted|removed", one.message)]
    assert sum(one.partitions or 0 for one in deleted) == changed["partition", None, "removed"]


def said(*records: tuple[str, Fields], where: ChangeFilter = ChangeFilter()) -> list[str]:  # noqa: B008  (frozen)
    """Return the sentences for the records behind the last NoOpRecord, all of one second."""
    image = Image.empty()
    image.begin_notes()
    burst = Burst(where=where)
    for offset, (name, fields) in enumerate(records):
        image.apply(batches([(offset, name, record(name, **fields))]), np.array([[offset, offset]]))
        changed = image.take_changes()
        if name == "NoOpRecord":
            burst = Burst(where=where)
        else:
            burst.take(changed)
    return [one.message for one in burst.happenings()]


def partition(number: int, leader: int) -> tuple[str, Fields]:
    fields = {"partition_id": number, "topic_id": bytes(16), "replicas": [1, 2, 3], "isr": [1, 2, 3], "leader": leader}
    return "PartitionRecord", fields


def change(number: int, **fields: object) -> tuple[str, Fields]:
    return "PartitionChangeRecord", {"partition_id": number, "topic_id": bytes(16), "leader": -2, **fields}


TOPIC = ("TopicRecord", {"name": "orders", "topic_id": bytes(16)})
BROKER = ("RegisterBrokerRecord", {"broker_id": 3, "broker_epoch": 7, "fenced": False, "rack": "a"})
THEN = ("NoOpRecord", {})


def test_a_broker_that_is_fenced() -> None:
    before = [BROKER, TOPIC, *(partition(number, 3) for number in range(5)), THEN]
    moves = [change(number, leader=1 + number % 2, isr=[1, 2]) for number in range(5)]
    assert said(*before, ("FenceBrokerRecord", {"id": 3, "epoch": 7}), *moves) == [
        "broker 3 fenced: 5 partitions lost leader 3, now 1 (3), 2 (2)",
        "broker 3 left the ISR of 5 partitions",
    ]
    assert said(*before, change(4, leader=-1, isr=[3])) == [
        "broker 1 left the ISR of partition orders-4",
        "broker 2 left the ISR of partition orders-4",
        "partition orders-4 lost leader 3: now none",
    ]
    assert said(*before, change(0, leader=1), change(2, leader=2)) == [
        "partitions orders-0, orders-2 lost leader 3: now 1 (1), 2 (1)"
    ]
    assert said(*before, change(1, leader=-1), THEN, change(1, leader=2, isr=[2], leader_recovery_state=1)) == [
        "partition orders-1: unclean election of leader 2",
        "broker 1 left the ISR of partition orders-1",
        "broker 3 left the ISR of partition orders-1",
        "partition orders-1 without a leader: now 2",
    ]


def test_topics_and_configs() -> None:
    config = ("ConfigRecord", {"resource_type": 2, "resource_name": "orders", "name": "retention.ms", "value": "1"})
    other = ("ConfigRecord", config[1] | {"resource_name": "events"})
    assert said(TOPIC, partition(0, 1), config, other) == [
        "topic orders created, 1 partition, retention.ms=1",
        "config of TOPIC events: retention.ms = 1",
    ]
    assert said(TOPIC, config, partition(0, 1), THEN, ("RemoveTopicRecord", {"topic_id": bytes(16)})) == [
        "topic orders deleted, 1 partition"
    ]
    assert said(TOPIC, partition(0, 1), THEN, partition(1, 1), partition(2, 1)) == ["topic orders: 2 partitions added"]
    many = [("TopicRecord", {"name": f"t{at}", "topic_id": bytes([at]) * 16}) for at in range(5)]
    assert said(*many) == ["5 topics created: t0, t1, t2 and 2 more"]
    assert said(config, other, THEN, *(("ConfigRecord", one[1] | {"value": "2"}) for one in (config, other))) == [
        "config of TOPIC orders, TOPIC events: retention.ms 1 -> 2"
    ]
    password = ("ConfigRecord", config[1] | {"name": "ssl.key.password", "value": "secret"})
    assert said(password) == ["config of TOPIC orders: ssl.key.password = [redacted]"]


def test_brokers_and_users() -> None:
    again = ("RegisterBrokerRecord", BROKER[1] | {"broker_epoch": 9, "fenced": True})
    assert said(BROKER) == ["broker 3 registered (broker_epoch 7, rack a, fenced false)"]
    assert said(BROKER, THEN, again) == ["broker 3 registered again (broker_epoch 7 -> 9), fenced"]
    assert said(BROKER, THEN, ("UnregisterBrokerRecord", {"broker_id": 3, "broker_epoch": 7})) == [
        "broker 3 unregistered"
    ]
    shutdown = {"broker_id": 3, "broker_epoch": 7, "in_controlled_shutdown": 1}
    assert said(BROKER, THEN, ("BrokerRegistrationChangeRecord", shutdown)) == ["broker 3 in controlled shutdown"]
    user = ("UserScramCredentialRecord", {"name": "alice", "mechanism": 1, "salt": b"a", "iterations": 4096})
    assert said(user) == ["SCRAM credential alice SCRAM-SHA-256 added"]
    newer = ("UserScramCredentialRecord", user[1] | {"salt": b"b", "iterations": 8192})
    assert said(user, THEN, newer) == ["SCRAM credential alice SCRAM-SHA-256 changed"]
    acl = {"id": bytes(16), "resource_type": 2, "resource_name": "orders", "pattern_type": 3, "principal": "User:alice"}
    acl |= {"host": "*", "operation": 3, "permission_type": 3}
    assert said(("AccessControlEntryRecord", acl)) == [
        "ACL added: ALLOW READ on TOPIC orders (LITERAL) for User:alice from *"
    ]
    level = ("FeatureLevelRecord", {"name": "share.version", "feature_level": 1})
    assert said(level) == ["feature share.version added: level 1"]
    assert said(level, THEN, ("FeatureLevelRecord", level[1] | {"feature_level": 2})) == [
        "feature share.version level 1 -> 2"
    ]
    assert said(("ProducerIdsRecord", {"next_producer_id": 1000})) == []


def test_what_happened_to_a_broker_or_a_topic() -> None:
    before = [BROKER, TOPIC, *(partition(number, 3) for number in range(3)), THEN]
    moves = [change(number, leader=1 + number % 2, isr=[1, 2]) for number in range(3)]
    steps = [*before, ("FenceBrokerRecord", {"id": 3, "epoch": 7}), *moves]
    assert said(*steps, where=ChangeFilter(topics=["orders"])) == [
        "broker 3 left the ISR of partitions orders-0, orders-1, orders-2",
        "partitions orders-0, orders-2, orders-1 lost leader 3: now 1 (2), 2 (1)",
    ]
    assert said(*steps, where=ChangeFilter(topics=["events"])) == []
    assert said(*steps, where=ChangeFilter(brokers=[2])) == ["partition orders-1 lost leader 3: now 2"]
    assert said(*steps, where=ChangeFilter(brokers=[3])) == said(*steps)
    assert said(*before[:-1], where=ChangeFilter(brokers=[2])) == ["topic orders: 3 partitions added"]
    removed = ("RemoveTopicRecord", {"topic_id": bytes(16)})
    assert said(*before, removed, where=ChangeFilter(brokers=[2])) == ["topic orders: 3 partitions removed"]
    many = [("TopicRecord", {"name": f"t{at}", "topic_id": bytes([at]) * 16}) for at in range(5)]
    theirs = [("PartitionRecord", partition(0, 1)[1] | {"topic_id": bytes([at]) * 16}) for at in range(5)]
    assert said(*many, *theirs, where=ChangeFilter(brokers=[2])) == [
        "5 topics: 5 partitions added: t0, t1, t2 and 2 more"
    ]
