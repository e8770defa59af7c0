"""What differs between two clusters, by names."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from image_rows import Record, applied, contents, record
from random_records import UUIDS, about_brokers, about_others, about_topics, logs

from kraftlog.metadata.diff.clusters import NOT_COMPARED, cluster_diff
from kraftlog.metadata.diff.diff import SCHEMA, diff
from kraftlog.metadata.image import Image
from kraftlog.metadata.record_types import IMAGE_TYPES

TURNED = {"added": "removed", "removed": "added", "changed": "changed"}
IDS = ("topic_id", "incarnation_id", "log_dirs", "directories", "cordoned_log_dirs")


def named(records: list[Record]) -> list[Record]:
    """Give each topic id a name of its own, as clusters have it."""
    return [
        (at, name, fields | {"name": "abcdef"[UUIDS.index(fields["topic_id"])]} if name == "TopicRecord" else fields)
        for at, name, fields in records
    ]


def with_other_ids(records: list[Record], order: list[int]) -> list[Record]:
    """Return the same cluster with other ids in its records."""
    other = {before: UUIDS[at] for before, at in zip(UUIDS, order, strict=True)}

    def renamed(name: str, column: str, value: Any) -> Any:
        if column not in (*IDS, "id") or (column == "id" and "AccessControl" not in name) or value is None:
            return value
        return [other[one] for one in value] if isinstance(value, list) else other[value]

    return [
        (at, name, {column: renamed(name, column, value) for column, value in fields.items()})
        for at, name, fields in named(records)
    ]


def rows(before: Image, after: Image) -> list[dict[str, Any]]:
    table = cluster_diff(before, after)
    assert table.schema == SCHEMA
    return table.to_pylist()


def key_of(name: str, row: dict[str, Any], names: dict[bytes, str]) -> str:
    kind = IMAGE_TYPES[name]
    keys = kind.shown if kind.kind == "acl" else ("name",) if kind.kind == "topic" else kind.keys
    return repr([names[row[key]] if key == "topic_id" else row[key] for key in keys])


def plain(before: Image, after: Image) -> list[tuple[str, str]]:
    """Return kind and change of each row, one record after another."""
    found = []
    old, new = contents(before), contents(after)
    for name, kind in IMAGE_TYPES.items():
        if kind.kind == "producer_ids":
            continue
        sides = []
        for image in (old, new):
            names = {topic["topic_id"]: topic["name"] for topic in image["TopicRecord"]}
            by_key: dict[tuple[str, int], dict[str, Any]] = {}
            for row in image[name]:
                key, number = key_of(name, row, names), 0
                while (key, number) in by_key:
                    number += 1
                by_key[key, number] = row
            sides.append(by_key)
        hidden = {*NOT_COMPARED.get(name, ()), *kind.keys}
        for key in sides[0].keys() | sides[1].keys():
            was, now = sides[0].get(key), sides[1].get(key)
            if was is None or now is None:
                found.append((kind.kind, "added" if was is None else "removed"))
            else:
                found += [
                    (kind.kind, "changed") for column in was if column not in hidden and was[column] != now[column]
                ]
    return sorted(found)


@settings(max_examples=80, deadline=None)
@given(logs(about_topics, about_topics, about_brokers, about_others), logs(about_topics, about_brokers, about_others))
def test_differences_are_those_of_the_records(first: list[Record], second: list[Record]) -> None:
    """From either side the same."""
    one, other = applied(named(first)), applied(named(second))
    found = rows(one, other)
    assert sorted((row["kind"], row["change"]) for row in found) == plain(one, other)
    turned = [row | {"change": TURNED[row["change"]], "before": row["after"], "after": row["before"]} for row in found]
    assert sorted(map(repr, turned)) == sorted(map(repr, rows(other, one)))
    assert rows(one, one) == []


@settings(max_examples=60, deadline=None)
@given(logs(about_topics, about_topics, about_brokers, about_others), st.permutations(range(len(UUIDS))))
def test_ids_do_not_matter(records: list[Record], order: list[int]) -> None:
    """The same cluster with other ids is the same; by ids it is not when a topic has another one."""
    one, other = applied(named(records)), applied(with_other_ids(records, order))
    assert [row for row in rows(one, other) if row["kind"] != "partition"] == []
    assert rows(one, other) == []
    has_other = contents(one)["TopicRecord"] != contents(other)["TopicRecord"]
    assert not has_other or diff(one, other).num_rows


def test_epochs_do_not_matter() -> None:
    """Nor do blocks of producer ids; leaders do."""

    def image(topic_id: bytes, leader: int, epoch: int) -> Image:
        partition = {"topic_id": topic_id, "partition_id": 0, "replicas": [1, 2], "isr": [1, 2], "leader": leader}
        records = [
            ("TopicRecord", record("TopicRecord", name="orders", topic_id=topic_id)),
            ("PartitionRecord", record("PartitionRecord", **partition, leader_epoch=epoch, partition_epoch=epoch)),
            ("ProducerIdsRecord", record("ProducerIdsRecord", next_producer_id=1000 * epoch)),
            ("RegisterBrokerRecord", record("RegisterBrokerRecord", broker_id=1, rack="a", broker_epoch=epoch)),
        ]
        return applied([(offset, *one) for offset, one in enumerate(records)])

    assert rows(image(bytes(16), 1, 1), image(b"\1" * 16, 1, 7)) == []
    found = rows(image(bytes(16), 1, 1), image(b"\1" * 16, 2, 7))
    assert [tuple(row.values()) for row in found] == [("partition", "orders-0", "changed", "leader", "1", "2")]
    found = rows(Image.empty(), image(b"\1" * 16, 2, 7))
    assert [(row["key"], row["after"]) for row in found] == [
        ("1", "rack a, fenced true"),
        ("orders", ""),
        ("orders-0", "replicas [1, 2], isr [1, 2], leader 2"),
    ]
