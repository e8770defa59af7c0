"""The checks of an image against the same checks in plain Python, over random images and one that is made by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from image_rows import Record, applied, contents, record
from random_records import about_brokers, about_topics, fields, logs

from kraftlog.metadata.health import health
from kraftlog.metadata.image import Image

Row = tuple[str, str | None, int | None, int | None]  # check, topic, partition, broker id

min_isr = fields(
    "ConfigRecord",
    resource_type=st.sampled_from([2, 4]),
    resource_name=st.sampled_from(["a", "b", "", "1"]),
    name=st.just("min.insync.replicas"),
    value=st.sampled_from(["1", "2", "3", None]),
)


def plain(image: Image) -> list[Row]:
    """Return the rows of the table, found one by one."""
    rows = contents(image)
    names = {one["topic_id"]: one["name"] for one in rows["TopicRecord"]}
    brokers = {one["broker_id"] for one in rows["RegisterBrokerRecord"]}
    configs = {(one["resource_type"], one["resource_name"], one["name"]): one["value"] for one in rows["ConfigRecord"]}
    found: list[Row] = []
    others = set()
    for one in rows["PartitionRecord"]:
        topic, at = names[one["topic_id"]], one["partition_id"]
        least = configs.get((2, topic, "min.insync.replicas"), configs.get((4, "", "min.insync.replicas"), "1"))
        found += [("offline", topic, at, None)] * (one["leader"] < 0)
        found += [("under_min_isr", topic, at, None)] * (len(one["isr"]) < int(least))
        wanted = len(one["replicas"]) - len(one["adding_replicas"] or [])
        found += [("under_replicated", topic, at, None)] * (len(one["isr"]) < wanted)
        found += [("elr_in_use", topic, at, None)] * bool(one["eligible_leader_replicas"])
        found += [("unregistered_replica", topic, at, broker) for broker in one["replicas"] if broker not in brokers]
        if one["leader"] != one["replicas"][0]:
            others.add(one["replicas"][0])
    found += [("leader_imbalance", None, None, broker) for broker in others]
    found += [("fenced_broker", None, None, one["broker_id"]) for one in rows["RegisterBrokerRecord"] if one["fenced"]]
    for kind, resource, _ in configs:
        if kind == 2 and resource not in names.values():
            found.append(("orphaned_config", resource, None, None))
        if kind == 4 and resource and resource not in map(str, brokers):
            found.append(("orphaned_config", None, None, None))
    return found


def told(image: Image) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = health(image).to_pylist()
    return rows


@settings(max_examples=150, deadline=None)
@given(logs(about_topics, about_topics, about_brokers, min_isr))
def test_random_images(records: list[Record]) -> None:
    image = applied(records)
    rows = [(row["check"], row["topic"], row["partition"], row["broker_id"]) for row in told(image)]
    assert Counter(rows) == Counter(plain(image))


def test_messages() -> None:
    """They say what was found, and what was expected."""
    topic = bytes(15) + b"\1"
    partition = record("PartitionRecord", topic_id=topic, replicas=[7, 1, 2], isr=[1], leader=1, adding_replicas=[])
    given_records = [
        ("RegisterBrokerRecord", record("RegisterBrokerRecord", broker_id=1, fenced=False)),
        ("RegisterBrokerRecord", record("RegisterBrokerRecord", broker_id=2, fenced=True)),
        ("TopicRecord", record("TopicRecord", name="orders", topic_id=topic)),
        ("PartitionRecord", partition | {"partition_id": 3, "eligible_leader_replicas": [2]}),
        ("ConfigRecord", _config(4, "", "min.insync.replicas", "2")),
        ("ConfigRecord", _config(2, "gone", "retention.ms", "5")),
        ("ConfigRecord", _config(4, "9", "log.cleaner.threads", "5")),
    ]
    image = applied([(offset, *one) for offset, one in enumerate(given_records)])
    assert [tuple(row.values()) for row in told(image)] == [
        ("under_min_isr", "orders", 3, None, "1 in sync, min.insync.replicas 2"),
        ("under_replicated", "orders", 3, None, "1 in sync of 3 replicas"),
        ("elr_in_use", "orders", 3, None, "1 eligible leader replicas"),
        ("unregistered_replica", "orders", 3, 7, "broker 7 is not registered"),
        ("leader_imbalance", None, None, 7, "1 of 1 partitions that prefer it have another leader, or none"),
        ("fenced_broker", None, None, 2, "fenced"),
        ("orphaned_config", "gone", None, None, "retention.ms is set, and there is no such topic"),
        ("orphaned_config", None, None, None, "log.cleaner.threads is set for broker 9, which is not registered"),
    ]


def _config(kind: int, resource: str, name: str, value: str) -> dict[str, Any]:
    return record("ConfigRecord", resource_type=kind, resource_name=resource, name=name, value=value)


def test_odd_records() -> None:
    """A partition without replicas, and configs that are no numbers."""
    topic = bytes(15) + b"\1"
    partition = record("PartitionRecord", topic_id=topic, replicas=[], isr=[], leader=-1)
    values = ["\u00b2", "9" * 30, "", "-3", "two"]
    given_records = [
        ("TopicRecord", record("TopicRecord", name="orders", topic_id=topic)),
        ("PartitionRecord", partition),
        *(("ConfigRecord", _config(4, "", "min.insync.replicas", value)) for value in values),
    ]
    for count in range(2, len(given_records) + 1):
        image = applied([(offset, *one) for offset, one in enumerate(given_records[:count])])
        assert [(row["check"], row["message"]) for row in told(image)] == [
            ("offline", "no leader"),
            ("under_min_isr", "0 in sync, min.insync.replicas 1"),
        ]
    spaced = _config(2, "orders", "min.insync.replicas", " 2 ")
    image = applied([*((offset, *one) for offset, one in enumerate(given_records)), (99, "ConfigRecord", spaced)])
    assert told(image)[1]["message"] == "0 in sync, min.insync.replicas 2"


def test_an_empty_image_is_well() -> None:
    assert told(Image.empty()) == []
