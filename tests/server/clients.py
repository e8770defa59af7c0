"""What the clients of three projects read from a server."""

from __future__ import annotations

import asyncio
import hashlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of its use of importlib.resources
    import kafka

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
LIMIT = 60.0
WAIT_MS = 10  # a fetch at the end of a partition is answered so late
Partition = tuple[str, int]
_EOF = confluent_kafka.KafkaError._PARTITION_EOF


class Row(NamedTuple):
    """A record."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: str
    key: str | None
    value: str | None
    headers: int


def digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def by_librdkafka(bootstrap_servers: str, isolation_level: str, partitions: Iterable[Partition]) -> list[Row]:
    """Read all records to the end of each partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "by-librdkafka",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": WAIT_MS,
        }
    )
    wanted = [confluent_kafka.TopicPartition(*one, confluent_kafka.OFFSET_BEGINNING) for one in partitions]
    consumer.list_topics(timeout=LIMIT)  # else it looks for leaders half a second later
    consumer.assign(wanted)
    rows, ended = [], set()
    while len(ended) < len(wanted):
        message = consumer.poll(LIMIT)
        assert message is not None
        error = message.error()
        if error is not None:
            assert error.code() == _EOF, error
            ended.add((message.topic(), message.partition()))
            continue
        kind, timestamp = message.timestamp()
        rows.append(
            Row(
                message.topic(),
                message.partition(),
                message.offset(),
                timestamp,
                TIMESTAMP_TYPES[kind - 1],
                digest(message.key()),
                digest(message.value()),
                len(message.headers() or ()),
            )
        )
    consumer.close()
    return rows


def by_aiokafka(bootstrap_servers: str, isolation_level: str, partitions: Iterable[Partition]) -> list[Row]:
    """Read all records to the end of each partition."""

    async def read() -> list[Row]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers, isolation_level=isolation_level, fetch_max_wait_ms=WAIT_MS
        )
        await consumer.start()
        try:
            wanted = [aiokafka.TopicPartition(*one) for one in partitions]
            consumer.assign(wanted)
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(wanted)
            rows: list[Row] = []
            for partition in wanted:
                while await consumer.position(partition) < ends[partition]:
                    for some in (await consumer.getmany(timeout_ms=100)).values():
                        rows += [_row(one) for one in some]
            return rows
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(read(), LIMIT))


def by_kafka_python(bootstrap_servers: str, isolation_level: str, partitions: Iterable[Partition]) -> list[Row]:
    """Read all records to the end of each partition."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level=isolation_level,
        group_id=None,
        fetch_max_wait_ms=WAIT_MS,
    )
    wanted = [kafka.TopicPartition(*one) for one in partitions]
    consumer.assign(wanted)
    consumer.seek_to_beginning(*wanted)
    ends = consumer.end_offsets(wanted)
    rows: list[Row] = []
    while any(consumer.position(one) < ends[one] for one in wanted):
        for some in consumer.poll(timeout_ms=500).values():
            rows += [_row(one) for one in some]
    consumer.close()
    return rows


def _row(one: Any) -> Row:
    return Row(
        one.topic,
        one.partition,
        one.offset,
        one.timestamp,
        TIMESTAMP_TYPES[one.timestamp_type],
        digest(one.key),
        digest(one.value),
        len(one.headers),
    )


READERS: dict[str, Callable[[str, str, Iterable[Partition]], list[Row]]] = {
    "librdkafka": by_librdkafka,
    "aiokafka": by_aiokafka,
    "kafka-python": by_kafka_python,
}
