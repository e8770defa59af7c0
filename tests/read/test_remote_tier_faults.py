"""A remote tier in an object store that is slow, cut, busy or wrong: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk import chunk_cache, part_file, remote_files
from kraftlog.disk.disk import disk, read_in_order
from kraftlog.tables.log import Log
from object_store import ObjectStore, object_store
from tier_writer import Aiven, KeyPair, last_only, sources, write_local

TOPIC_ID = "911PgdAUTfK0_8FSda0bUA"
ORDERS = GOLDEN / "transactions" / "log" / "orders-0"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture(scope="module")
def key_pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return KeyPair("k1", tmp_path_factory.mktemp("keys"))


@pytest.fixture(autouse=True)
def quick(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(remote_files, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(part_file, "CHUNKS", chunk_cache.ChunkCache())
    yield
    store.latency, store.fault = 0.0, None


def opened(store: ObjectStore, layout: str, prefix: str, key_pair: KeyPair, *paths: Path) -> Log:
    """Write a tier of small chunks into the store, and open it."""

    def put(key: str, data: bytes) -> None:
        store.write(f"{prefix}/{key}", data)

    if layout == "local":
        write_local(put, sources(ORDERS), TOPIC_ID)
    else:
        pair = key_pair if "aes" in layout else None
        Aiven(2000, "zstd" in layout, pair).write(put, sources(ORDERS), TOPIC_ID)
    keys: dict[str, Any] = {"tier_keys": {"k1": key_pair.private}} if "aes" in layout else {}
    return kraftlog.open(paths, remote_tier=f"s3://bucket/{prefix}", storage_options=store.options, **keys)


@pytest.mark.parametrize("layout", ["local", "plain", "zstd", "zstd-aes"])
def test_rows(store: ObjectStore, key_pair: KeyPair, tmp_path: Path, layout: str):
    log = opened(store, layout, f"rows-{layout}", key_pair, last_only(ORDERS, tmp_path))
    for level in ("read_uncommitted", "read_committed"):
        expected = kraftlog.open(ORDERS).records(isolation_level=level).to_table()
        stream = log.records(isolation_level=level)
        assert stream.to_table().equals(expected)
        assert not stream.faults
        assert log.records(isolation_level=level, workers=4).to_table().equals(expected)
    assert not list(log.verify())


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kind", ["503", "cut", "short"])
@pytest.mark.parametrize("layout", ["plain", "zstd", "zstd-aes"])
def test_faults_that_pass(store: ObjectStore, key_pair: KeyPair, tmp_path: Path, layout: str, kind: str):
    """Every third request for bytes of a log goes wrong."""
    log = opened(store, layout, f"passing-{layout}-{kind}", key_pair, last_only(ORDERS, tmp_path))
    asked = 0

    def fault(key: str) -> str | None:
        nonlocal asked
        asked += key.endswith(".log")
        return kind if key.endswith(".log") and asked % 3 == 1 else None

    store.fault, store.latency = fault, 0.005
    stream = log.records(isolation_level="read_committed")
    assert stream.to_table().equals(kraftlog.open(ORDERS).records(isolation_level="read_committed").to_table())
    assert not stream.faults
    assert asked > 3


def test_random_faults(store: ObjectStore, key_pair: KeyPair, tmp_path: Path):
    chance = random.Random(7)
    log = opened(store, "zstd-aes", "random", key_pair, last_only(ORDERS, tmp_path))
    expected = kraftlog.open(ORDERS).records().to_table()
    store.fault = lambda key: chance.choice([None, None, "503", "cut"])
    for _ in range(5):
        part_file.CHUNKS = chunk_cache.ChunkCache()
        stream = log.records(workers=2)
        assert stream.to_table().equals(expected)
        assert not stream.faults


@pytest.mark.parametrize("layout", ["plain", "zstd-aes"])
def test_a_fault_that_stays(store: ObjectStore, key_pair: KeyPair, tmp_path: Path, layout: str):
    """What cannot be read is one row of errors; the other segments are read."""
    log = opened(store, layout, f"staying-{layout}", key_pair, last_only(ORDERS, tmp_path))
    store.fault = lambda key: "503" if f"{32:020d}" in key and key.endswith(".log") else None
    stream = log.records()
    found = stream.to_table()["offset"].to_pylist()
    offsets = kraftlog.open(ORDERS).records().to_table()["offset"].to_pylist()
    assert found == [offset for offset in offsets if not 32 <= offset < 67]
    (fault,) = stream.faults
    assert (fault.error, fault.segment_base_offset) == ("unreadable_file", 32)
    assert "503" in fault.message
    with pytest.raises(kraftlog.CorruptRecordError, match="503"):
        log.records(strict=True).to_table()


def test_few_offsets_are_few_chunks(store: ObjectStore, key_pair: KeyPair):
    """Ranges fetch the chunks that they need."""
    log = opened(store, "zstd", "few", key_pair)
    store.forget()
    assert log.records(start_offset=50, end_offset=52).to_table().num_rows == 2
    read = [size for method, key, size in store.requests if method == "GET" and key.endswith(".log")]
    assert len(read) <= 4
    assert not [key for _, key, _ in store.requests if f"{0:020d}" in key and key.endswith(".log")]


def test_manifests_are_read_once(store: ObjectStore, key_pair: KeyPair):
    """A reader that follows a log lists the tier again, and reads what is new."""
    first = opened(store, "zstd", "again", key_pair).found.segments
    store.forget()
    log = kraftlog.open(remote_tier="s3://bucket/again", storage_options=store.options)
    assert log.found.segments == first
    assert not [key for method, key, _ in store.requests if method == "GET" and key.endswith(".rsm-manifest")]


class NotingCache(chunk_cache.ChunkCache):
    """Remembers the numbers of the chunks that are fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: set[int] = set()

    def fetch(self, group: chunk_cache.Group, *, is_ahead: bool = False) -> bool:
        self.fetched |= {key[1] for key in group.keys}  # type: ignore[index]
        return super().fetch(group, is_ahead=is_ahead)


@pytest.mark.parametrize(("until", "fetched"), [(1 << 20, {0, 1, 2, 3, 4}), (6000, {0, 1, 2}), (4000, {0, 1})])
def test_what_is_fetched_ahead(
    store: ObjectStore, key_pair: KeyPair, monkeypatch: pytest.MonkeyPatch, until: int, fetched: set[int]
):
    """A reader that goes on finds its next chunks fetched; behind its range none are."""
    monkeypatch.setattr(part_file.PartFile, "window_bytes", 4000)
    monkeypatch.setattr(part_file, "SPARE_BYTES", 4000)
    monkeypatch.setattr(part_file, "READ_BYTES", 1)
    monkeypatch.setattr(part_file, "CHUNKS", cache := NotingCache())
    segment = opened(store, "zstd", "ahead", key_pair).found.segments[0]
    file = disk().open(segment.path)
    read_in_order(file, 0, until)
    file.read_into(memoryview(bytearray(4000)), 0)
    file.close()
    assert cache.fetched == fetched


@pytest.mark.parametrize("workers", [1, 3])
def test_memory_is_bounded(store: ObjectStore, key_pair: KeyPair, monkeypatch: pytest.MonkeyPatch, workers: int):
    """Of all chunks together, in whatever form they are, by the bytes that are counted."""
    monkeypatch.setattr(part_file, "CHUNKS", cache := chunk_cache.ChunkCache(20_000))
    monkeypatch.setattr(part_file, "READ_BYTES", 4000)
    log = opened(store, "zstd-aes", f"bounded-{workers}", key_pair)
    expected = kraftlog.open(ORDERS).records(end_offset=102).to_table()
    assert log.records(workers=workers).to_table().equals(expected)
    for start in range(0, 100, 10):
        log.records(start_offset=start, end_offset=start + 3).to_table()
    assert 0 < cache.peak_bytes <= 20_000
