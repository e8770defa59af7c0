"""Clients read from a server what Kafka's own consumer read from the broker that wrote the log."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from clients import READERS, Row

import kraftlog

GOLDEN = Path(__file__).parents[1] / "golden"
LEVELS = ("read_committed", "read_uncommitted")
ANSWERS = sorted(
    (path.parents[1].name, level) for level in LEVELS for path in GOLDEN.glob(f"*/expected/consumer_{level}.jsonl*")
)

WITHOUT_SNAPPY = ("compaction", "deleted_records")  # kafka-python has no library for it here


def answers(folder: str, level: str) -> list[Row]:
    """Return what Kafka's consumer said."""
    (path,) = (GOLDEN / folder / "expected").glob(f"consumer_{level}.jsonl*")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [json.loads(line) for line in text.splitlines()]
    return [
        Row(
            one["topic"],
            one["partition"],
            one["offset"],
            one["timestamp"],
            one["timestamp_type"],
            one.get("key_sha256"),
            one.get("value_sha256"),
            one["headers"],
        )
        for one in lines
        if "offset" in one
    ]


def test_there_are_answers():
    assert len(ANSWERS) == 13


@pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka")
@pytest.mark.parametrize(
    ("folder", "level", "client"),
    [
        (*answer, client)
        for answer in ANSWERS
        for client in READERS
        if client != "kafka-python" or answer[0] in WITHOUT_SNAPPY
    ],
)
def test_a_client_reads_what_kafka_read(folder: str, level: str, client: str):
    expected = answers(folder, level)
    with kraftlog.LogServer(GOLDEN / folder / "log") as server:
        rows = READERS[client](server.bootstrap_servers, level, {(one.topic, one.partition) for one in expected})
        if not any(one.key or one.value for one in expected):  # the answers have none; librdkafka compares checksums
            rows = [one._replace(key=None, value=None) for one in rows]
        assert sorted(rows, key=repr) == sorted(expected, key=repr)
        assert server.faults == []
