"""What Kafka wrote, kraftlog reads as Kafka's own consumer does: every record, exactly, in every partition."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
import pytest
from jvm import Line
from kafka_broker import Broker
from records import COLUMNS, by_partition, lines, made

import kraftlog

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]  # a codec's place is its number in the format
TIMES = ["CreateTime", "LogAppendTime"]
TRANSACTIONS = "transactions"
TOPICS = {f"{codec}-{time}": (codec, time) for codec in CODECS for time in TIMES}
TOPICS[TRANSACTIONS] = "zstd", "CreateTime"
PARTITIONS = range(2)

Partitions = dict[tuple[str, int], list[Line]]


class Runs(NamedTuple):
    """The same records three times over, and the log they are in."""

    sent: Partitions
    consumed: Partitions
    read: Partitions
    errors: pa.Table
    broker: Broker


@pytest.fixture(scope="module")
def runs(broker: Broker) -> Runs:
    """Produce, consume, stop Kafka, and read its log directory with kraftlog."""
    sent = {(topic, partition): made(topic, partition, 300) for topic in TOPICS for partition in PARTITIONS}
    with broker:
        broker.create(
            {
                "name": topic,
                "partitions": len(PARTITIONS),
                # Small segments, so that a partition has several.
                "configs": {"message.timestamp.type": time, "internal.segment.bytes": str(100 << 10)},
            }
            for topic, (_, time) in TOPICS.items()
        )
        broker.produce(_program(sent))
        consumed = by_partition(broker.consume(TOPICS))
    stream = kraftlog.open(broker.log_dir).records(columns=COLUMNS)
    records = stream.to_table()
    read = by_partition(line for line in lines(records) if not line["topic"].startswith("__"))
    return Runs(sent, consumed, read, stream.errors, broker)


def _program(sent: Partitions) -> Iterator[Line]:
    """Tell the producers what to do: the partitions in turn, and every second topic without a producer id."""
    for topic, (codec, time) in TOPICS.items():
        configs = {"compression.type": codec, "linger.ms": "10", "batch.size": "16384"}
        mixed = sorted((line for partition in PARTITIONS for line in sent[topic, partition]), key=itemgetter("offset"))
        if topic == TRANSACTIONS:
            half = len(mixed) // 2
            yield {"producer": configs | {"transactional.id": "interop"}}
            yield from [{"transaction": "begin"}, *mixed[:half], {"transaction": "commit"}]
            yield from [{"transaction": "begin"}, *mixed[half:], {"transaction": "abort"}]
        else:
            yield {"producer": configs | {"enable.idempotence": str(time == "CreateTime").lower()}}
            yield from mixed


def _content(line: Line) -> Line:
    return {name: line[name] for name in ("key", "value", "headers")}


@pytest.mark.parametrize("topic", TOPICS)
def test_the_log_is_what_the_tests_are_about(runs: Runs, topic: str) -> None:
    """Several segments, in the codec, and the consumer has what was sent: or the comparison below says little."""
    codec, time = TOPICS[topic]
    for partition in PARTITIONS:
        segments = sorted((runs.broker.log_dir / f"{topic}-{partition}").glob("*.log"))
        assert len(segments) > 1
        attributes = segments[0].read_bytes()[22]  # the low byte of the first batch's attributes
        assert attributes & 0b111 == CODECS.index(codec)
        consumed = runs.consumed[topic, partition]
        assert [_content(line) for line in consumed] == [_content(line) for line in runs.sent[topic, partition]]
        assert {line["timestampType"] for line in consumed} == {time}


@pytest.mark.parametrize("topic", TOPICS)
def test_kraftlog_reads_what_the_consumer_got(runs: Runs, topic: str) -> None:
    """The same lines in the same order, for each partition."""
    for partition in PARTITIONS:
        assert runs.read[topic, partition] == runs.consumed[topic, partition]


def test_kraftlog_reads_no_other_partition(runs: Runs) -> None:
    """Internal topics aside, kraftlog finds the partitions that Kafka has and no others."""
    assert runs.read.keys() == runs.consumed.keys()


def test_there_is_no_error_anywhere_in_the_log_directory(runs: Runs) -> None:
    """A log that Kafka closed cleanly is without fault, its internal topics and metadata log included."""
    assert runs.errors.to_pylist() == []


def test_the_offsets_the_consumer_jumps_over_are_control_records(runs: Runs) -> None:
    """One marker a transaction: the commit in the middle of each partition, the abort at its end."""
    stream = kraftlog.open(runs.broker.log_dir).records(columns=["topic", "partition", "offset"], include_control=True)
    for partition in PARTITIONS:
        count = len(runs.sent[TRANSACTIONS, partition])
        consumed = [line["offset"] for line in runs.consumed[TRANSACTIONS, partition]]
        assert sorted(set(range(count + 2)) - set(consumed)) == [count // 2, count + 1]
    offsets: dict[int, list[int]] = {partition: [] for partition in PARTITIONS}
    for row in stream.to_table().to_pylist():
        if row["topic"] == TRANSACTIONS:
            offsets[row["partition"]].append(row["offset"])
    assert offsets == {p: list(range(len(runs.sent[TRANSACTIONS, p]) + 2)) for p in PARTITIONS}
