"""Requests to a broker by hand, and its directory after it has been closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from test_connections import Client

import kraftlog
from kraftlog.server.broker import Broker

PRODUCE, FETCH, LIST_OFFSETS, METADATA, INIT, ADD_PARTITIONS, ADD_OFFSETS, END = 0, 1, 2, 3, 22, 24, 25, 26
COMMIT_OFFSETS = 28


def batch(*values: str, **options: Any) -> bytes:
    """Return one batch with these values, as a client sends it."""
    return bytes(kraftlog.encode(pa.table({"key": list(values), "value": list(values)}), **options))


class BrokerClient(Client):
    """A client of a broker."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)

    def create(self, topic: str) -> None:
        """Create a topic by its first use."""
        self.ask(METADATA, 12, {"topics": [{"name": topic}]})

    def produce_frame(self, records: bytes | None, topic: str = "orders", partition: int = 0, **others: Any) -> bytes:
        version = others.pop("version", 11)
        data = {"name": topic, "partition_data": [{"index": partition, "records": records}]}
        return self.frame(PRODUCE, version, {"acks": -1, "timeout_ms": 1000, "topic_data": [data]} | others)

    def produce(
        self, records: bytes | None, topic: str = "orders", partition: int = 0, **others: Any
    ) -> dict[str, Any]:
        """Produce; return the response for the partition."""
        self.send(self.produce_frame(records, topic, partition, **others))
        (answered,) = self.answer(PRODUCE, others.get("version", 11))["responses"]
        return answered["partition_responses"][0]

    def fetch_frame(self, offset: int, topic: str = "orders", partition: int = 0, **others: Any) -> bytes:
        partitions = [{"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}]
        topics = [{"topic": topic, "partitions": partitions}]
        return self.frame(FETCH, 12, {"max_wait_ms": 0, "min_bytes": 1, "session_epoch": -1, "topics": topics} | others)

    def fetched(self) -> dict[str, Any]:
        """Return the answer to a fetch, for the partition."""
        return self.answer(FETCH, 12)["responses"][0]["partitions"][0]

    def fetch(self, offset: int, topic: str = "orders", partition: int = 0, **others: Any) -> dict[str, Any]:
        """Fetch; return the response for the partition."""
        self.send(self.fetch_frame(offset, topic, partition, **others))
        return self.fetched()

    def init(self, transactional_id: str | None = None, timeout_ms: int = 60_000, **others: Any) -> dict[str, Any]:
        """Get a producer id."""
        values = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
        return self.ask(INIT, 5, values | others)


def values_of(records: Any) -> list[str]:
    """Return the values in batches, without control records."""
    return [value.decode() for value in kraftlog.decode(bytes(records)).to_table()["value"].to_pylist()]


def log_of(path: Path, topic: str = "orders") -> list[tuple[int, str]]:
    """Return offsets and values of a topic with one partition."""
    rows = kraftlog.open(path, topics=[topic]).records(["offset", "value"]).to_table().to_pylist()
    return [(row["offset"], row["value"].decode()) for row in rows]


def check(path: Path) -> None:
    """Check that a closed directory has neither faults nor findings."""
    log = kraftlog.open(path)
    assert log.errors().to_pylist() == []
    assert log.findings().to_pylist() == []
