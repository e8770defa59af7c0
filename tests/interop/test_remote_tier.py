"""A real broker moves segments to its remote tier; kraftlog reads from both what a consumer gets."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jvm import Jvm, Line
from kafka_broker import Broker
from records import COLUMNS, by_partition, lines, made

import kraftlog
from kraftlog.tables.log import Log

COUNT, LIMIT = 400, 90.0
TOPIC = {
    "remote.storage.enable": "true",
    "local.retention.bytes": "1",
    "internal.segment.bytes": str(100 << 10),
    "file.delete.delay.ms": "100",
}

Partitions = dict[tuple[str, int], list[Line]]


class Tiered(NamedTuple):
    """A log directory, its remote tier, and what consumers got, by isolation level."""

    log_dir: Path
    tier: Path
    uncommitted: Partitions
    committed: Partitions


def properties(tier: Path) -> dict[str, Any]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "rsm.config.dir": str(tier),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
    }


def program(partition: int) -> Iterator[Line]:
    """Tell producers to write by turns: plainly, in transactions that are committed, and in some that are not."""
    every = made("orders", partition, COUNT)
    for number, begin in enumerate(range(0, COUNT, 20)):
        some = [{name: line[name] for name in line if name != "offset"} for line in every[begin : begin + 20]]
        if number % 3 == 0:
            yield from [{"producer": {"compression.type": "lz4"}}, *some]
        else:
            yield {"producer": {"transactional.id": f"etl-{partition}", "compression.type": "none"}}
            yield from [{"transaction": "begin"}, *some, {"transaction": "commit" if number % 3 == 1 else "abort"}]


def first_local(log_dir: Path, partition: int) -> int:
    return min(int(path.stem) for path in (log_dir / f"orders-{partition}").glob("*.log"))


@pytest.fixture(scope="module")
def tiered(java: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Tiered:
    home, tier = tmp_path_factory.mktemp("kafka"), tmp_path_factory.mktemp("tier")
    broker = Broker(java, home, properties(tier))
    with broker:
        broker.create([{"name": "orders", "partitions": 2, "configs": TOPIC}])
        broker.produce(line for partition in range(2) for line in program(partition))
        deadline = time.monotonic() + LIMIT
        while not all(first_local(broker.log_dir, partition) for partition in range(2)):
            assert time.monotonic() < deadline, broker.output()
            time.sleep(0.5)
        time.sleep(2)
        uncommitted, committed = (
            by_partition(broker.consume_at(level, ["orders"])[0]) for level in ("read_uncommitted", "read_committed")
        )
    return Tiered(broker.log_dir, tier, uncommitted, committed)


def read(log: Log, partition: int, level: str, **bounds: int) -> list[Line]:
    stream = log.records(COLUMNS, isolation_level=level, **bounds)  # type: ignore[arg-type]
    found = stream.to_table()
    assert not stream.faults
    return [line for line in lines(found) if line["partition"] == partition]


@pytest.mark.parametrize("partition", range(2))
def test_a_log_directory_with_its_tier(tiered: Tiered, partition: int):
    log = kraftlog.open(tiered.log_dir, remote_tier=tiered.tier, topics=["orders"])
    assert first_local(tiered.log_dir, partition) > 0
    assert len(tiered.uncommitted["orders", partition]) == COUNT
    assert read(log, partition, "read_uncommitted") == tiered.uncommitted["orders", partition]
    assert read(log, partition, "read_committed") == tiered.committed["orders", partition]
    assert not list(log.verify())


@pytest.mark.parametrize("partition", range(2))
def test_the_tier_alone(tiered: Tiered, partition: int):
    log = kraftlog.open(remote_tier=tiered.tier)
    found = read(log, partition, "read_uncommitted")
    assert found == tiered.uncommitted["orders", partition][: len(found)]
    assert found[-1]["offset"] >= first_local(tiered.log_dir, partition) - 2  # the last one may be a marker
    committed = read(log, partition, "read_committed")
    assert committed == [
        line for line in tiered.committed["orders", partition] if line["offset"] <= found[-1]["offset"]
    ]


def test_a_directory_that_was_lost(tiered: Tiered, tmp_path: Path):
    """What the tier has is taken back: as a log directory of its own."""
    shutil.copytree(tiered.log_dir, tmp_path / "logs", ignore=shutil.ignore_patterns("orders-1"))
    log = kraftlog.open(tmp_path / "logs", remote_tier=tiered.tier, topics=["orders"])
    assert {(one.topic, one.partition) for one in log.partitions} == {("orders", 0), ("orders", 1)}
    end = read(log, 1, "read_uncommitted")[-1]["offset"]
    assert end >= first_local(tiered.log_dir, 1) - 2


def test_its_metadata_are_read(tiered: Tiered):
    """``__remote_log_metadata`` names the segments that the tier holds."""
    log = kraftlog.open(tiered.log_dir, topics=["__remote_log_metadata"])
    rows = log.scan("RemoteLogSegmentMetadataRecord").to_table().to_pylist()
    stored = {path.name for path in tiered.tier.rglob("*.log")}
    assert len(rows) >= len(stored) > 4
