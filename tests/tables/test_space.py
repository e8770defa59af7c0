"""What takes the space: sums in plain Python, and what a store's own cleaner and retention leave."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN, scenarios
from kraftlog import LogStore
from kraftlog.errors import Fault
from kraftlog.tables.space import Housekeeping
from standing_clock import StandingClock

sys.path.insert(0, str(Path(__file__).parents[1] / "codec"))
from their_codecs import DECOMPRESS

HEADER_BYTES = 61  # of a batch of magic 2
Row = dict[str, Any]


def plain_bytes(log: kraftlog.Log) -> int:
    """Return the bytes of the batches of a log, decompressed by other packages."""
    total = 0
    for segment in log.found.segments:
        data = segment.local_path.read_bytes()
        for row in kraftlog.open(segment.path).batches(["position", "size_in_bytes", "compression"]).to_pylist():
            payload = data[row["position"] + HEADER_BYTES : row["position"] + row["size_in_bytes"]]
            total += HEADER_BYTES + len(DECOMPRESS[row["compression"]](payload))
    return total


@pytest.mark.parametrize("name", ["codecs", "transactions", "compaction", "deleted_records", "groups", "metadata"])
def test_bytes_by_what_they_are(name: str):
    for partition in kraftlog.open(GOLDEN / name / "log").partitions:
        folder = partition.segments[0].local_path.parent
        log = kraftlog.open(folder)
        if "bad-crc" in folder.name:
            continue
        faults: list[Fault] = []
        (row,) = log.space(faults).to_pylist()
        records = log.records(["key", "value", "headers"], include_deleted=True).to_table().to_pylist()
        headers = [header for record in records for header in record["headers"]]
        size, plain = sum(path.stat().st_size for path in folder.glob("*.log")), plain_bytes(log)
        fields = {
            "key_bytes": sum(len(record["key"] or b"") for record in records),
            "value_bytes": sum(len(record["value"] or b"") for record in records),
            "header_bytes": sum(len(one["key"].encode()) + len(one["value"] or b"") for one in headers),
        }
        torn = sum(count or 0 for count in log.segments()["torn_bytes"].to_pylist())
        beside = [path for kind in ("index", "timeindex", "txnindex", "snapshot") for path in folder.glob(f"*.{kind}")]
        bases = {segment.local_path.stem for segment in partition.segments}
        assert row == {
            "topic": partition.topic,
            "partition": partition.partition,
            "records": len(records),
            "size_in_bytes": size,
            **fields,
            "overhead_bytes": plain - sum(fields.values()),
            "saved_bytes": plain - (size - torn),
            "unread_bytes": torn,
            "index_bytes": sum(path.stat().st_size for path in beside if path.stem in bases),
            "allocated_bytes": 512
            * sum(path.stat().st_blocks for path in (*folder.glob("*.log"), *beside) if path.stem in bases),
            "compression": row["compression"],
        }
        assert faults == []


def test_a_hole_in_an_index_takes_no_blocks(tmp_path: Path):
    """A broker gives the index files of its last segment 10 MiB at once."""
    folder = shutil.copytree(GOLDEN / "transactions" / "log" / "orders-0", tmp_path / "orders-0")
    (before,) = kraftlog.open(folder).space([]).to_pylist()
    os.truncate(folder / f"{102:020d}.index", 10 << 20)
    (row,) = kraftlog.open(folder).space([]).to_pylist()
    assert row["index_bytes"] > 10 << 20
    assert before["allocated_bytes"] <= row["allocated_bytes"] < 1 << 20
    assert before["allocated_bytes"] >= row["size_in_bytes"]


def test_parts_add_up_whatever_is_damaged():
    for folder in scenarios():
        log, faults = kraftlog.open(folder / "log"), list[Fault]()
        for row in log.space(faults).to_pylist():
            parts = [row[f"{part}_bytes"] for part in ("key", "value", "header", "overhead", "unread")]
            if row["overhead_bytes"] is None:
                assert row["saved_bytes"] is None
                assert "legacy" in str(folder)
                continue
            assert row["size_in_bytes"] == sum(parts) - row["saved_bytes"], folder
            assert row["unread_bytes"] >= 0
        records = log.records(["key", "value", "headers"], include_deleted=True)
        records.to_table()
        assert faults == records.faults


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def opened(tmp_path: Path, clock: StandingClock) -> Iterator[Callable[..., LogStore]]:
    stores: list[LogStore] = []

    def open_store() -> LogStore:
        stores.append(LogStore(tmp_path / "store", clock=clock, sync_threads=0))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


def filled(store: LogStore, clock: StandingClock, seed: int, batches: int = 30) -> None:
    """Write keys again and again, tombstones, transactions that end either way, all codecs."""
    chance = random.Random(seed)
    for number in range(batches):
        rows = [
            (f"k{chance.randrange(12)}", None if chance.random() < 0.2 else f"{number} {'x' * chance.randrange(80)}")
            for _ in range(chance.randint(1, 5))
        ]
        table = pa.table(
            {"key": [key for key, _ in rows], "value": pa.array([value for _, value in rows], pa.string())}
        )
        compression = chance.choice(["none", "gzip", "snappy", "lz4", "zstd"])
        if chance.random() < 0.3:
            with store.producer(transactional_id=f"t{chance.randrange(3)}", compression=compression) as producer:
                producer.begin_transaction()
                producer.send("t", table)
                (producer.commit_transaction if chance.random() < 0.6 else producer.abort_transaction)()
        else:
            with store.producer(compression=compression) as producer:
                producer.send("t", table)
        clock.now += chance.randrange(2000)


def left(store: LogStore, **settings: Any) -> Row:
    faults: list[Fault] = []
    (row,) = kraftlog.open(store.path, topics=["t"]).space(faults, Housekeeping(**settings)).to_pylist()
    assert faults == []
    return row


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(8))
def test_what_compaction_leaves_is_what_the_cleaner_leaves(
    opened: Callable[..., LogStore], clock: StandingClock, seed: int
):
    """More than once, as delete horizons of tombstones and markers are over later."""
    configs = {"cleanup.policy": "compact", "internal.segment.bytes": 1500, "delete.retention.ms": 10_000}
    store = opened()
    store.create_topic("t", configs=configs)
    for later in (0, 5_000, 20_000, 200_000_000):
        clock.now += later
        filled(store, clock, seed, 12)  # a write makes the store forget producers that were idle for a day
        expected = left(store, now=clock.now, compacts=True, rolls=True, delete_retention_ms=10_000)
        (freed,) = store.clean(["t"], roll=True)
        assert freed.size_before == expected["size_in_bytes"]
        assert freed.size_after == expected["compacted_bytes"]
        log = kraftlog.open(store.path, topics=["t"])
        assert log.records().to_table().num_rows == expected["compacted_records"]


def test_compaction_without_rolling_and_with_a_lag(opened: Callable[..., LogStore], clock: StandingClock):
    configs = {"cleanup.policy": "compact", "internal.segment.bytes": 1500, "min.compaction.lag.ms": 8_000}
    store = opened()
    store.create_topic("t", configs=configs)
    filled(store, clock, 5, 40)
    expected = left(store, now=clock.now, compacts=True, min_compaction_lag_ms=8_000)
    (freed,) = store.clean(["t"])
    assert freed.size_before > freed.size_after == expected["compacted_bytes"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "limits", [{"retention_ms": 9_000}, {"retention_bytes": 2_500}, {"retention_ms": 15_000, "retention_bytes": 6_000}]
)
@pytest.mark.parametrize("seed", range(3))
def test_what_retention_leaves_is_what_the_store_leaves(
    opened: Callable[..., LogStore], clock: StandingClock, limits: dict[str, int], seed: int
):
    configs: dict[str, Any] = {"internal.segment.bytes": 1500, "retention.ms": -1}
    configs |= {name.replace("_", "."): value for name, value in limits.items()}
    store = opened()
    store.create_topic("t", configs=configs)
    filled(store, clock, seed)
    expected = left(store, now=clock.now, **limits)
    (freed,) = store.apply_retention(["t"])
    assert freed.size_before > freed.size_after == expected["retained_bytes"]
    (partition,) = kraftlog.open(store.path, topics=["t"]).partitions
    assert partition.start_offset == expected["retained_offset"]


def test_the_log_is_not_written_to(opened: Callable[..., LogStore], clock: StandingClock):
    store = opened()
    store.create_topic("t", configs={"cleanup.policy": "compact", "internal.segment.bytes": 1500})
    filled(store, clock, 1)
    before = {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}
    left(store, now=clock.now, compacts=True, rolls=True, retention_bytes=10)
    assert before == {path: path.read_bytes() for path in store.path.rglob("*") if path.is_file()}


def test_what_cannot_be_cleaned_is_a_fault():
    faults: list[Fault] = []
    log = kraftlog.open(GOLDEN / "damaged" / "bit_flip_payload" / "log")
    (row,) = log.space(faults, Housekeeping(now=2**40 * 2, compacts=True, rolls=True)).to_pylist()
    assert (row["compacted_records"], row["compacted_bytes"]) == (None, None)
    assert [fault.error for fault in faults] == ["bad_crc", "not_cleaned"]
    with pytest.raises(ValueError, match="retention_bytes -1 is negative"):
        Housekeeping(now=0, retention_bytes=-1)
