"""What a log is served from: empty partitions, several replicas, a tier, other file systems, extracts and backups."""

from __future__ import annotations

import shutil
from base64 import urlsafe_b64decode
from pathlib import Path

import confluent_kafka
import pytest
from clients import READERS, Row, digest
from test_connections import Client

import kraftlog
from kraftlog.protocol.error_code import ErrorCode

GOLDEN = Path(__file__).parents[1] / "golden"
LOG = GOLDEN / "transactions" / "log"
ORDERS = [("orders", number) for number in range(3)]
LIMIT = 30.0
METADATA, FETCH = 3, 1


def rows_of(log: kraftlog.Log, level: str = "read_committed") -> list[Row]:
    columns = ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers"]
    return [
        Row(
            *(row["topic"], row["partition"], row["offset"], row["timestamp_ms"], row["timestamp_type"]),
            *(digest(row["key"]), digest(row["value"]), len(row["headers"])),
        )
        for row in log.records(columns, isolation_level=level).to_table().to_pylist()
    ]


def is_served(log: kraftlog.Log, level: str = "read_committed") -> None:
    """Compare what a client reads with what the Python door gives."""
    expected = rows_of(log, level)
    partitions = {(row.topic, row.partition) for row in expected}
    assert partitions
    with kraftlog.LogServer(log) as server:
        rows = READERS["librdkafka"](server.bootstrap_servers, level, partitions)
        assert sorted(rows, key=repr) == sorted(expected, key=repr)
        assert server.faults == []


def empty(folder: Path) -> Path:
    """Return a log directory with partitions that have no segment: with an id, and without any file."""
    shutil.copytree(LOG, folder)
    shutil.rmtree(folder / "orders-1")
    (folder / "orders-1").mkdir()
    (folder / "new-0").mkdir()
    (folder / "new-0" / "partition.metadata").write_text("version: 0\ntopic_id: 911PgdAUTfK0_8FSda0bUA\n")
    checkpoint = folder / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 1 7\n")
    return folder


def test_partitions_without_a_segment(tmp_path: Path):
    with kraftlog.LogServer(empty(tmp_path / "log")) as server, Client(server) as client:
        assert (server.topics["new"], server.topics["orders"]) == (1, 3)
        consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "g"})
        ends = [
            consumer.get_watermark_offsets(confluent_kafka.TopicPartition(*one), LIMIT)
            for one in (("new", 0), ("orders", 1))
        ]
        consumer.close()
        assert ends == [(0, 0), (7, 7)]
        (topic,) = client.ask(METADATA, 12, {"topics": [{"name": "new"}]})["topics"]
        assert topic["topic_id"] == urlsafe_b64decode("911PgdAUTfK0_8FSda0bUA==")
        partitions = [{"partition": 1, "fetch_offset": at, "partition_max_bytes": 1000} for at in (7, 6, 8)]
        for partition, code in zip(partitions, (ErrorCode.NONE, *[ErrorCode.OFFSET_OUT_OF_RANGE] * 2), strict=True):
            values = {"max_bytes": 1000, "topics": [{"topic": "orders", "partitions": [partition]}]}
            (one,) = client.ask(FETCH, 12, values)["responses"][0]["partitions"]
            assert (one["error_code"], bytes(one["records"] or b"")) == (code, b"")
        for level in ("read_committed", "read_uncommitted"):
            assert READERS["aiokafka"](server.bootstrap_servers, level, [("new", 0), ("orders", 1)]) == []


def test_a_topic_without_a_segment_can_be_chosen(tmp_path: Path):
    folder = empty(tmp_path / "log")
    with kraftlog.LogServer(kraftlog.open(folder, topics=["new"])) as server:
        assert server.topics == {"new": 1}
    with pytest.raises(ValueError, match="no topic 'news'"):
        kraftlog.open(folder, topics=["news"])


def test_a_folder_outside_a_log_directory_is_no_partition(tmp_path: Path):
    """Its name may be that of anything."""
    shutil.copytree(LOG / "orders-0", tmp_path / "orders-0")
    (tmp_path / "photos-2024").mkdir()
    with kraftlog.LogServer(tmp_path) as server:
        assert server.topics == {"orders": 1}


def test_a_partition_that_has_segments_elsewhere_is_not_empty(tmp_path: Path):
    for name in ("one", "two"):
        shutil.copytree(LOG, tmp_path / name)
        (tmp_path / name / "meta.properties").write_text(f"version=1\nnode.id={len(name)}\ncluster.id=c\n")
    shutil.rmtree(tmp_path / "two" / "orders-1")
    (tmp_path / "two" / "orders-1").mkdir()
    is_served(kraftlog.open([tmp_path / "one", tmp_path / "two"], topics=["orders"]))


def test_several_replicas_are_one_line(tmp_path: Path):
    """One has the end of a partition, another what is damaged in it."""
    for name in ("one", "two"):
        shutil.copytree(LOG, tmp_path / name)
    path = next((tmp_path / "two" / "orders-0").glob("*.log"))
    whole = kraftlog.open(tmp_path / "one", topics=["orders"], partitions=[0]).batches(["position"])
    path.write_bytes(path.read_bytes()[: whole["position"].to_pylist()[-3]])
    damaged = next((tmp_path / "one" / "orders-0").glob("*.log"))
    data = bytearray(damaged.read_bytes())
    data[whole["position"].to_pylist()[2] + 80] ^= 1
    damaged.write_bytes(data)
    log = kraftlog.open([tmp_path / "one", tmp_path / "two"], topics=["orders"])
    assert rows_of(log) == rows_of(kraftlog.open(LOG, topics=["orders"]))
    is_served(log)


def test_an_extract(tmp_path: Path):
    kraftlog.extract(LOG, tmp_path / "copy", topics=["orders"], start_offset=5, compression="zstd")
    is_served(kraftlog.open(tmp_path / "copy"))


def test_another_file_system(tmp_path: Path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.put(str(LOG), "/served", recursive=True)
    try:
        is_served(kraftlog.open("memory://served", topics=["orders"]))
    finally:
        memory.rm("/served", recursive=True)


def test_a_backup_and_its_cut(tmp_path: Path):
    shutil.copytree(LOG, tmp_path / "log")
    (tmp_path / "log" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    repository = kraftlog.Repository(tmp_path / "backups")
    repository.backup(tmp_path / "log")
    (name,) = repository.names()
    for path in (tmp_path / "backups", f"{tmp_path / 'backups'}@{name}"):
        is_served(kraftlog.open(path, topics=["orders"]))


def test_a_remote_tier():
    folder = GOLDEN / "remote_tier"
    is_served(kraftlog.open(folder / "logs", remote_tier=folder / "tier", topics=["orders"]))
