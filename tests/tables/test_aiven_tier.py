"""Remote tiers that Aiven's plugin 1.1.1 wrote: what is read of them is what the segments were that it was given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN, lines
from kraftlog.disk.disk import disk
from kraftlog.layout.tier.data_key import KeyRing
from kraftlog.layout.tier.find import stored_segments
from kraftlog.layout.tier.stored_segment import StoredSegment
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.table import Replicas
from kraftlog.tables.user_options import read_options
from tier_writer import last_only

AIVEN = GOLDEN / "aiven_tier"
KEYS = {"k1": AIVEN / "keys" / "k1.pem", "k2": AIVEN / "keys" / "k2.pem"}
ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
OF_ORDERS = ["plain", "zstd", "aes", "zstd-aes"]
SOURCES = {  # the partition's folder and the base offsets of the segments that the plugin was given
    **{name: [(ORDERS, [0, 32, 67])] for name in OF_ORDERS},
    "heuristic": [(GOLDEN / "codecs/log/codec-appendtime-0", [0]), (GOLDEN / "codecs/log/codec-zstd-0", [0])],
    "one-chunk": [(ORDERS, [0, 32]), (GOLDEN / "transactions_hanging/log/orders-late-0", [0])],
}
EACH = [(name, folder, bases) for name, sources in SOURCES.items() for folder, bases in sources]
LEVELS = ["read_uncommitted", "read_committed"]
KINDS = ["index", "timeindex", "txnindex", "snapshot"]
OF_FILES = ("file", "size_in_bytes")  # columns that tell where rows are stored
EVERY = pytest.mark.parametrize(("name", "folder", "bases"), EACH, ids=[f"{one[0]}-{one[1].name}" for one in EACH])


def opened(name: str, **options: Any) -> Log:
    return kraftlog.open(remote_tier=AIVEN / name, tier_keys=KEYS, **options)


def rows(log: Log, table: str = "records", **options: Any) -> list[dict[str, Any]]:
    stream = log.scan(table, None, read_options(**options))
    found = stream.to_table().to_pylist()
    assert not stream.faults
    return [{name: value for name, value in row.items() if name not in OF_FILES} for row in found]


def next_base(folder: Path, base_offset: int) -> int:
    return min(base for base in (int(path.stem) for path in folder.glob("*.log")) if base > base_offset)


def copied(folder: Path, bases: list[int], target: Path) -> Path:
    """Copy some segments of a partition and their index files; the producers are those at the end of the last one."""
    target.mkdir()
    for base_offset in bases:
        for path in folder.glob(f"{base_offset:020d}.*"):
            shutil.copy(path, target)
    shutil.copy(folder / f"{next_base(folder, bases[-1]):020d}.snapshot", target)
    shutil.copy(folder / "leader-epoch-checkpoint", target)
    return target


def stored(name: str, topic: str) -> list[StoredSegment]:
    found = stored_segments(AIVEN / name, KeyRing(KEYS), lambda _, __: True)
    assert not found.unread
    return sorted((one for one in found.segments if one.topic == topic), key=lambda one: one.base_offset)


@EVERY
@pytest.mark.parametrize("isolation_level", LEVELS)
def test_rows(tmp_path: Path, name: str, folder: Path, bases: list[int], isolation_level: str):
    topic = folder.name.removesuffix("-0")
    log, whole = opened(name, topics=[topic]), kraftlog.open(copied(folder, bases, tmp_path / folder.name))
    for table in ("records", "batches", "index_entries"):
        expected = rows(whole, table, isolation_level=isolation_level)
        assert rows(log, table, isolation_level=isolation_level) == expected, table
    assert rows(log)
    assert [one["base_offset"] for one in rows(log, "segments")] == bases
    assert not list(log.verify())


@EVERY
def test_files(name: str, folder: Path, bases: list[int]):
    """Logs and index files are those that were copied, byte for byte."""
    segments = stored(name, folder.name.removesuffix("-0"))
    assert [one.base_offset for one in segments] == bases
    for one in segments:
        assert one.end_offset == next_base(folder, one.base_offset) - 1
        for kind in ("log", *KINDS):
            of = next_base(folder, one.base_offset) if kind == "snapshot" else one.base_offset
            path = folder / f"{of:020d}.{kind}"
            assert (kind in one.files) == path.exists(), kind
            if path.exists():
                assert disk().read_bytes(one.files[kind]) == path.read_bytes(), kind
        assert one.leader_epochs is not None
        lines_of_all = (folder / "leader-epoch-checkpoint").read_text().split()[2:]
        history = zip(lines_of_all[::2], lines_of_all[1::2], strict=True)
        known = [epoch for epoch in history if int(epoch[1]) <= one.end_offset]
        assert disk().read_bytes(one.leader_epochs).decode().split()[2:] == [text for epoch in known for text in epoch]


@pytest.mark.parametrize("name", OF_ORDERS)
@pytest.mark.parametrize("keep", [1, 2])
def test_below_a_log_directory(tmp_path: Path, name: str, keep: int):
    directory = last_only(ORDERS, tmp_path / "logs", keep)
    log = kraftlog.open(directory, remote_tier=AIVEN / name, tier_keys=KEYS)
    whole = kraftlog.open(ORDERS)
    for name, table in TABLES.items():
        if table.replicas is Replicas.LINE:  # others look for the coordinators beside the partition
            assert rows(log, name) == rows(whole, name), name
    assert rows(log, isolation_level="read_committed") == rows(whole, isolation_level="read_committed")
    assert not list(log.verify())


@pytest.mark.parametrize("name", OF_ORDERS)
@pytest.mark.parametrize("start", [1, 31, 40, 66, 90])
def test_ranges(name: str, start: int):
    """Chunks that a range needs are those that it gets."""
    bounds = {"start_offset": start, "end_offset": start + 9}
    assert rows(opened(name), **bounds) == rows(kraftlog.open(ORDERS), **bounds)


def manifests(name: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted((AIVEN / name).rglob("*.rsm-manifest"))]


def test_what_the_files_cover():
    """Many chunks and one, each kind of index of chunks, both keys, and a heuristic that left compression out."""
    assert [one["compression"] for one in manifests("heuristic")] == [True, False]
    assert [one["encryption"]["dataKey"][:3] for one in manifests("zstd-aes")] == ["k1:", "k1:", "k2:"]
    assert {one["chunkIndex"]["type"] for name in SOURCES for one in manifests(name)} == {"fixed", "variable"}
    indexes = [one["chunkIndex"] for one in manifests("aes")]
    assert all(index["originalFileSize"] > 20 * index["originalChunkSize"] for index in indexes)


def test_a_key_of_another_pair():
    """What is encrypted with one key is not read with another; what is not, is."""
    log = kraftlog.open(remote_tier=AIVEN / "zstd-aes", tier_keys={"k1": KEYS["k1"]})
    stream = log.records()
    assert max(stream.to_table()["offset"].to_pylist()) == 66
    assert "encrypted for the key pair 'k2': expected its private key, found keys for k1" in stream.faults[0].message
    swapped = kraftlog.open(remote_tier=AIVEN / "zstd-aes", tier_keys={"k1": KEYS["k2"], "k2": KEYS["k1"]})
    stream = swapped.records()
    assert not stream.to_table().num_rows
    assert "encryption.dataKey does not match the key 'k1': it cannot be decrypted" in stream.faults[0].message


@pytest.mark.parametrize("name", ["aes", "zstd-aes"])
@pytest.mark.parametrize("suffix", ["log", "indexes"])
def test_a_chunk_that_was_changed(tmp_path: Path, name: str, suffix: str):
    shutil.copytree(AIVEN / name, tmp_path / "tier")
    (path,) = (tmp_path / "tier").rglob(f"{32:020d}-*.{suffix}")
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    log = kraftlog.open(remote_tier=tmp_path / "tier", tier_keys=KEYS)
    expected = "expected a matching tag of AES-GCM, found another: the chunk was changed"
    assert any(expected in fault.message for fault in log.verify())
    stream = log.scan("records" if suffix == "log" else "index_entries")
    assert stream.to_table().num_rows
    assert [expected in fault.message for fault in stream.faults] == [True]
    found = [row for row in log.records().to_table().to_pylist() if row["offset"] >= 67]
    assert found == kraftlog.open(ORDERS).records(start_offset=67, end_offset=102).to_table().to_pylist()


@pytest.mark.parametrize("isolation_level", LEVELS)
def test_a_broker_and_its_tier(isolation_level: str):
    """A broker of Kafka 4.3.0 with the plugin: its log, its tier, and what its consumers got."""
    folder = AIVEN / "broker"
    log = kraftlog.open(folder / "logs", remote_tier=folder / "tier", tier_keys=KEYS, topics=["orders", "expired"])
    columns = ["topic", "partition", "offset", "timestamp_ms", "key", "value"]
    names = ["topic", "partition", "offset", "timestamp", "key", "value"]
    expected = [tuple(line[name] for name in names) for line in lines(folder / "consumed" / f"{isolation_level}.jsonl")]
    stream = log.records(columns, isolation_level=isolation_level)
    found = [
        (*(row[name] for name in columns[:4]), row["key"].hex(), row["value"].hex())
        for row in stream.to_table().to_pylist()
    ]
    assert sorted(found) == sorted(expected)
    assert len(found) == {"read_uncommitted": 380, "read_committed": 260}[isolation_level]
    assert not stream.faults
    assert not list(log.verify())
    of_segments = rows(log, "segments")
    assert [one["base_offset"] for one in of_segments if one["topic"] == "expired"] == [42, 74, 117]


def test_the_tier_of_a_broker_alone():
    log = opened("broker/tier")
    assert not list(log.verify())
    ends = {(one.topic, one.partition): (one.start_offset, one.end_offset) for one in log.partitions}
    assert ends == {("expired", 0): (42, 117), ("orders", 0): (0, 212), ("orders", 1): (0, 42)}


def test_custom_metadata_of_the_plugin():
    """``__remote_log_metadata`` has what the plugin returned: here the size of what it stored, and where."""
    log = kraftlog.open(AIVEN / "broker" / "logs", topics=["__remote_log_metadata"])
    found = {
        row["remote_log_segment_id"]["id"]: row["custom_metadata"]
        for row in log.scan("RemoteLogSegmentMetadataUpdateRecord").to_table().to_pylist()
        if row["remote_log_segment_state"] == 1
    }
    for path in (AIVEN / "broker" / "tier").rglob("*.log"):
        key = str(path.relative_to(AIVEN / "broker" / "tier" / "cluster-1").with_suffix("")).encode()
        assert key in found[path.stem[21:]]
        assert b"cluster-1/" in found[path.stem[21:]]
