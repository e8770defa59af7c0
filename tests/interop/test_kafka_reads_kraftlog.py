"""What kraftlog wrote, Kafka takes for its own log: it recovers it, serves it exactly, and goes on appending to it."""

from __future__ import annotations

from typing import Any

import pytest
from jvm import Line
from kafka_broker import Broker
from records import by_partition, made, table

import kraftlog

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
SHAPES: list[dict[str, Any]] = [  # one partition each: how its records are cut into batches
    {},
    {"max_batch_records": 1},
    {"max_batch_records": 7},
    {"max_batch_bytes": 100_000, "partition_leader_epoch": 0},
    {"max_batch_records": 50, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0},
]
COUNT = 300
SECOND_SEGMENT = 200  # the first offset of the idempotent producer's second one

Partitions = dict[tuple[str, int], list[Line]]


@pytest.fixture(scope="module")
def written() -> Partitions:
    """Make the records of a topic for each codec, with a partition for each shape."""
    topics = [f"written-{codec}" for codec in CODECS]
    return {(topic, partition): made(topic, partition, COUNT) for topic in topics for partition in range(len(SHAPES))}


@pytest.fixture(scope="module")
def appended(written: Partitions) -> Partitions:
    """Make the one record that the producer appends to each partition afterwards, at its log end."""
    return {at: [made(*at, 3)[-1] | {"offset": COUNT}] for at in written}


@pytest.fixture(scope="module")
def consumed(broker: Broker, written: Partitions, appended: Partitions) -> tuple[Partitions, Partitions]:
    """Let Kafka start on kraftlog's segments: what it serves then, and once a producer has appended to them."""
    topics = sorted({topic for topic, _ in written})
    with broker:
        broker.create({"name": topic, "partitions": len(SHAPES), "configs": {}} for topic in topics)
    for (topic, partition), lines in written.items():
        broker.replace_log(topic, partition, _segments(lines, topic.removeprefix("written-"), SHAPES[partition]))
    broker.forget_the_clean_shutdown()
    with broker:
        before = broker.consume(topics)
        broker.produce([{"producer": {}}, *(line for lines in appended.values() for line in lines)])
        after = broker.consume(topics)
    return by_partition(before), by_partition(after)


def _segments(lines: list[Line], codec: str, shape: dict[str, Any]) -> dict[int, bytes]:
    idempotent = "base_sequence" in shape
    segments = {}
    for start, end in [(0, SECOND_SEGMENT), (SECOND_SEGMENT, COUNT)] if idempotent else [(0, COUNT)]:
        options = shape | {"base_offset": start} | ({"base_sequence": start} if idempotent else {})
        segments[start] = kraftlog.encode(table(lines[start:end]), compression=codec, **options).to_pybytes()
    return segments


@pytest.mark.parametrize("partition", range(len(SHAPES)), ids=str)
@pytest.mark.parametrize("codec", CODECS)
def test_the_consumer_gets_what_kraftlog_wrote(
    consumed: tuple[Partitions, Partitions], written: Partitions, codec: str, partition: int
) -> None:
    """Offsets, times, nulls and headers, byte for byte: none of it may be what Kafka truncated or made up."""
    at = f"written-{codec}", partition
    assert consumed[0][at] == written[at]


@pytest.mark.parametrize("partition", range(len(SHAPES)), ids=str)
@pytest.mark.parametrize("codec", CODECS)
def test_the_broker_appends_at_the_next_offset(
    consumed: tuple[Partitions, Partitions],
    written: Partitions,
    appended: Partitions,
    codec: str,
    partition: int,
) -> None:
    """The log end that Kafka recovered is right, and the appended record has cost none of the others."""
    at = f"written-{codec}", partition
    assert consumed[1][at] == written[at] + appended[at]
