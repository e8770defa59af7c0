"""Images large enough that tables grow, pools are compacted and runs are folded; and what a pass costs in memory."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from image_rows import Record, applied, batches, contents, record
from image_twin import ImageTwin

from kraftlog.metadata.image import Image


def _uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def _records(seed: int, count: int, most_topics: int | None = None) -> list[Record]:
    """Return a log in which topics come, change, and go, with all that depends on them."""
    chosen = random.Random(seed)
    topics: list[int] = []
    records: list[Record] = []

    def add(name: str, /, **fields: Any) -> None:
        records.append((len(records), name, record(name, **fields)))

    def some(most: int) -> list[int]:
        return [chosen.randrange(100) for _ in range(chosen.randint(0, most))]

    while len(records) < count:
        kind = chosen.random()
        if most_topics is not None and len(topics) > most_topics:
            add("RemoveTopicRecord", topic_id=_uuid(topics.pop(0)))
        elif kind < 0.1 or not topics:
            topics.append(chosen.randrange(3 * count))
            add("TopicRecord", name=f"topic-{topics[-1]}", topic_id=_uuid(topics[-1]))
        elif kind < 0.16:
            add("RemoveTopicRecord", topic_id=_uuid(topics.pop(chosen.randrange(len(topics)))))
        elif kind < 0.4:
            replicas = [*some(4), 1]
            directories = [_uuid(one) for one in replicas] if chosen.random() < 0.5 else []
            topic, partition = chosen.choice(topics), chosen.randrange(6)
            add(
                "PartitionRecord",
                partition_id=partition,
                topic_id=_uuid(topic),
                replicas=replicas,
                isr=some(3),
                directories=directories,
                eligible_leader_replicas=some(2),
            )
        elif kind < 0.8:
            add(
                "PartitionChangeRecord",
                partition_id=chosen.randrange(6),
                topic_id=_uuid(chosen.choice(topics)),
                isr=some(9),
                leader=chosen.choice([-2, 3]),
                adding_replicas=some(5) if chosen.random() < 0.3 else None,
            )
        elif kind < 0.97:
            topic = chosen.choice(topics)
            value = chosen.choice([None, "1", "2"])
            add(
                "ConfigRecord",
                resource_type=2,
                resource_name=f"topic-{topic}",
                name=f"config-{chosen.randrange(9)}",
                value=value,
            )
        elif kind < 0.98:
            add("ClearElrRecord", topic_name=f"topic-{chosen.choice(topics)}")
        else:
            add(
                "AccessControlEntryRecord",
                id=_uuid(chosen.randrange(count)),
                principal=f"User:{chosen.randrange(9)}",
            )
    return records


def test_a_large_image_is_that_of_the_twin() -> None:
    records = _records(1, 20_000)
    twin = ImageTwin()
    for one in records:
        twin.apply(*one)
    expected = twin.contents()
    assert len(expected["TopicRecord"]) > 600
    assert len(expected["ConfigRecord"]) > 700
    for size in (97, 5000):
        image = applied(records, size)
        assert contents(image) == expected
        assert [(fault.error, fault.base_offset) for fault in image.faults] == twin.faults
        assert image.partitions_count == len(expected["PartitionRecord"])


def test_names_of_topics_that_are_gone_are_forgotten() -> None:
    records = _records(3, 30_000, most_topics=20)
    twin = ImageTwin()
    for one in records:
        twin.apply(*one)
    expected = twin.contents()
    created = sum(name == "TopicRecord" for _, name, _ in records)
    assert created > 2000
    assert 2 <= len(expected["TopicRecord"]) <= 21
    for size in (97, 5000):
        image = applied(records, size)
        assert contents(image) == expected
        assert [(fault.error, fault.base_offset) for fault in image.faults] == twin.faults


def test_topics_whose_ids_have_one_hash() -> None:
    def colliding(number: int) -> bytes:
        low = number * 0x9E3779B97F4A7C15 % 2**64
        return low.to_bytes(8, "little") + number.to_bytes(8, "little")

    numbers = range(1, 41)
    made = [("TopicRecord", record("TopicRecord", name=f"t{one}", topic_id=colliding(one))) for one in numbers]
    made += [
        ("PartitionRecord", record("PartitionRecord", topic_id=colliding(one), partition_id=0, replicas=[1], isr=[1]))
        for one in numbers
    ]
    made += [("RemoveTopicRecord", record("RemoveTopicRecord", topic_id=colliding(one))) for one in numbers[::3]]
    made += [
        ("PartitionChangeRecord", record("PartitionChangeRecord", topic_id=colliding(one), partition_id=0, isr=[one]))
        for one in [*numbers, 41]
    ]
    records = [(offset, name, fields) for offset, (name, fields) in enumerate(made)]
    twin = ImageTwin()
    for one in records:
        twin.apply(*one)
    for size in (7, len(records)):
        image = applied(records, size)
        assert contents(image) == twin.contents()
        assert [(fault.error, fault.base_offset) for fault in image.faults] == twin.faults
        assert len(image.faults) == 15


def test_memory_is_that_of_the_image_and_not_of_the_log() -> None:
    made = [
        (0, "TopicRecord", record("TopicRecord", name="t", topic_id=_uuid(1))),
        (1, "PartitionRecord", record("PartitionRecord", partition_id=0, topic_id=_uuid(1), replicas=[1], isr=[1])),
    ]
    image = applied(made)
    config = record("ConfigRecord", resource_type=2, resource_name="t", name="n", value="v" * 1000)
    change = record("PartitionChangeRecord", partition_id=0, topic_id=_uuid(1), isr=[1] * 50)
    chunk = batches([(at, "ConfigRecord", config) for at in range(1000)])
    chunk |= batches([(at, "PartitionChangeRecord", change) for at in range(1000)])
    image.apply(chunk)
    before = pa.total_allocated_bytes()
    for _ in range(200):
        image.apply(chunk)
    assert pa.total_allocated_bytes() - before < 8 << 20  # of 200 MB
    assert contents(image)["PartitionRecord"][0]["partition_epoch"] == 201_000 - 1
    assert contents(image)["ConfigRecord"] == [config]


def test_a_log_of_a_release_without_directories() -> None:
    """A reassignment in such a log names replicas and no directories."""
    topic = record("TopicRecord", name="t", topic_id=_uuid(1))
    partition = record("PartitionRecord", partition_id=0, topic_id=_uuid(1), replicas=[1, 2], isr=[1])
    change = record("PartitionChangeRecord", partition_id=0, topic_id=_uuid(1), replicas=[1, 2, 3], directories=None)
    made = [(0, "TopicRecord", topic), (1, "PartitionRecord", partition), (2, "PartitionChangeRecord", change)]
    image = applied(made)
    (found,) = contents(image)["PartitionRecord"]
    assert found["replicas"] == [1, 2, 3]
    assert found["directories"] == [bytes(16)] * 3
    assert image.faults == []


def test_a_fault_says_what_where_and_why() -> None:
    change = record("PartitionChangeRecord", partition_id=7, topic_id=_uuid(0))
    fence = record("FenceBrokerRecord", id=3, epoch=5)
    image = applied([(41, "PartitionChangeRecord", change), (40, "FenceBrokerRecord", fence)])
    assert [fault.error for fault in image.faults] == ["unknown_broker", "unknown_partition"]
    assert [fault.message for fault in image.faults] == [
        "offset 40: FenceBrokerRecord of broker 3: there is no such broker",
        "offset 41: PartitionChangeRecord of partition AAAAAAAAAAAAAAAAAAAAAA:7: there is no such partition",
    ]


def test_an_empty_image() -> None:
    image = Image.empty()
    assert image.offset == -1
    assert image.metadata_version is None
    assert [table.num_rows for table in image.tables().values()] == [0] * 11
    assert [batch.num_rows for _, batch in image.records()] == []
    image.apply({})
    image.apply(batches([(3, "NoOpRecord", record("NoOpRecord"))]))
    assert image.offset == 3


def test_slices_of_batches_are_taken_as_they_are() -> None:
    records = _records(2, 400)
    whole = batches(records)
    image = Image.empty()
    for at in range(0, 400, 50):
        parts = {}
        for name, batch in whole.items():
            offsets = batch.column("offset").to_pylist()
            inside = [row for row, offset in enumerate(offsets) if at <= offset < at + 50]
            if inside:
                parts[name] = batch.slice(inside[0], len(inside))
        image.apply(parts)
    assert contents(image) == contents(applied(records))


def test_a_snapshot_has_eligible_leader_replicas_only_with_their_feature() -> None:
    """As Kafka's ImageWriterOptions has it."""
    partition = record(
        "PartitionRecord", topic_id=_uuid(1), partition_id=0, replicas=[1, 2], isr=[1], eligible_leader_replicas=[2]
    )
    made = [
        (0, "TopicRecord", record("TopicRecord", name="t", topic_id=_uuid(1))),
        (1, "PartitionRecord", partition),
    ]
    image = applied(made)
    feature = record("FeatureLevelRecord", name="eligible.leader.replicas.version", feature_level=1)
    for expected in (None, [2]):
        written = {name: batch for name, _, batch in image.snapshot_records(30)}
        assert written["PartitionRecord"].column("eligible_leader_replicas").to_pylist() == [expected]
        assert contents(image)["PartitionRecord"][0]["eligible_leader_replicas"] == [2]
        image.apply(batches([(2, "FeatureLevelRecord", feature)]))
