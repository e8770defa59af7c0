"""Index files of a remote tier that hold other bytes than were stored: faults, and never other rows."""

from __future__ import annotations

import json
import random
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk import chunk_cache, part_file, remote_files
from kraftlog.tables.log import Log
from object_store import ObjectStore, object_store
from tier_writer import Aiven, Source, sources, to_folder, write_local

ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
NAMES = {"index": "offset", "timeindex": "timestamp", "snapshot": "producerSnapshot", "txnindex": "transaction"}
NAMES |= {"leader_epoch_checkpoint": "leaderEpoch"}
Change = Callable[[random.Random, bytes], bytes]

CHANGES: dict[str, Change] = {
    "zeros": lambda _, data: bytes(len(data)),
    "ones": lambda _, data: b"\xff" * len(data),
    "random": lambda chance, data: chance.randbytes(len(data)),
    "tail": lambda chance, data: data[: len(data) // 2] + chance.randbytes(len(data) - len(data) // 2),
    "empty tail": lambda _, data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
    "bit": lambda chance, data: flipped(data, chance.randrange(8 * len(data))),
    "another": lambda _, data: (data[7:] + data[:7])[: len(data)],
}


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


@pytest.fixture(autouse=True)
def nothing_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_file, "CHUNKS", chunk_cache.ChunkCache())


def segments_with_indexes() -> list[Source]:
    """Return the segments of a log, with an entry of both index files for each batch, as Kafka would write them."""
    found = sources(ORDERS)
    for one in found:
        index, times, latest = [], [], -1
        for position, base, last, largest in headers(one.log):
            index.append(struct.pack(">ii", last - one.base_offset, position))
            latest = max(latest, largest)
            times.append(struct.pack(">qi", latest, last - one.base_offset))
            assert base <= last
        one.made |= {"index": b"".join(index), "timeindex": b"".join(times)}
    return found


def headers(log: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Return position, first offset, last offset and largest timestamp of each batch."""
    at = 0
    while at < len(log):
        base, length = struct.unpack_from(">qi", log, at)
        (delta,) = struct.unpack_from(">i", log, at + 23)
        (largest,) = struct.unpack_from(">q", log, at + 35)
        yield at, base, base + delta, largest
        at += 12 + length


def written(layout: str, root: Path) -> Path:
    if layout == "local":
        write_local(to_folder(root), segments_with_indexes())
    else:
        Aiven(2000, compression=True).write(to_folder(root), segments_with_indexes())
    return root


def change(root: Path, layout: str, kind: str, how: Callable[[bytes], bytes]) -> bool:
    """Change an index file of the second segment; whether that made it another one."""
    if layout == "local":
        (path,) = root.rglob(f"{32:020d}-*.{kind}")
        before = path.read_bytes()
        path.write_bytes(how(before))
        return before != path.read_bytes()
    (manifest,) = root.rglob(f"{32:020d}-*.rsm-manifest")
    span = json.loads(manifest.read_text())["segmentIndexes"][NAMES[kind]]
    path, low, high = manifest.with_suffix(".indexes"), span["position"], span["position"] + span["size"]
    data = path.read_bytes()
    path.write_bytes(data[:low] + how(data[low:high]) + data[high:])
    return data != path.read_bytes()


def answers(log: Log) -> list[Any]:
    """Return what readers with bounds of offset and time get."""
    found: list[Any] = []
    stamps = sorted(set(log.records(["timestamp_ms"]).to_table()["timestamp_ms"].to_pylist()))
    for level in ("read_uncommitted", "read_committed"):
        for start in (0, 31, 33, 45, 60, 66, 67, 90):
            bounds = {"start_offset": start, "end_offset": start + 20}
            found.append(log.records(["offset", "value"], isolation_level=level, **bounds).to_table().to_pylist())
        for at in (0, len(stamps) // 3, len(stamps) // 2, len(stamps) - 1):
            stamp = stamps[at]
            bounds = {"start_timestamp": stamp, "end_timestamp": stamp + 40}
            found.append(log.records(["offset", "value"], isolation_level=level, **bounds).to_table().to_pylist())
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return what a log without any index files gives: the closed segments alone."""
    folder = tmp_path_factory.mktemp("plain") / "orders-0"
    folder.mkdir()
    for one in sources(ORDERS):
        shutil.copy(ORDERS / f"{one.base_offset:020d}.log", folder)
    return answers(kraftlog.open(folder))


@pytest.mark.parametrize("layout", ["local", "aiven"])
def test_what_was_stored(tmp_path: Path, expected: list[Any], layout: str):
    log = kraftlog.open(remote_tier=written(layout, tmp_path))
    assert answers(log) == expected
    assert not list(log.verify())


@pytest.mark.sweep(6)
@pytest.mark.parametrize("layout", ["local", "aiven"])
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("kind", ["index", "timeindex", "snapshot"])
def test_other_bytes(tmp_path: Path, expected: list[Any], layout: str, kind: str, how: str):
    for seed in range(3):
        root = written(layout, tmp_path / str(seed))
        if not change(root, layout, kind, partial(CHANGES[how], random.Random(f"{kind}{how}{seed}"))):
            continue
        log = kraftlog.open(remote_tier=root)
        assert answers(log) == expected
        faults = list(log.verify())
        if kind == "snapshot":
            assert "bad_snapshot" in {fault.error for fault in faults}
        elif kind == "index" and how not in ("zeros", "empty tail"):  # those are entries that are not there yet
            assert {fault.error for fault in faults} <= {"bad_index", "index_mismatch"}
            assert faults, (seed, how)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("layout", ["local", "aiven"])
@pytest.mark.parametrize("how", CHANGES)
def test_other_bytes_of_aborted_transactions(tmp_path: Path, expected: list[Any], layout: str, how: str):
    """What no segment can have is not believed, and what the log does not say, verify reports."""
    for seed in range(3):
        root = written(layout, tmp_path / str(seed))
        if not change(root, layout, "txnindex", partial(CHANGES[how], random.Random(f"{how}{seed}"))):
            continue
        log = kraftlog.open(remote_tier=root)
        faults = list(log.verify())
        assert faults
        assert {fault.error for fault in faults} <= {"bad_index", "txnindex_mismatch"}
        if "bad_index" in {fault.error for fault in faults}:
            assert answers(log) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n2\n3 0\n1 40\n", "expected leader epochs that rise, found epoch 1 from offset 40 after epoch 3"),
        ("0\n2\n0 40\n1 0\n", "expected leader epochs that rise"),
        ("0\n1\n9 0\n", "expected the leader epochs of the segment, "),
        ("0\n1\n0 9x\n", "expected a number"),
        ("1\n1\n0 0\n", "version"),
    ],
)
def test_other_leader_epochs(tmp_path: Path, text: str, message: str):
    """They are those of another segment then, or those that the manifests know."""
    found = segments_with_indexes()
    history = found[-1].history
    Aiven(2000, compression=True).write(to_folder(tmp_path), found)
    whole = kraftlog.open(remote_tier=tmp_path).records().to_table()
    (manifest,) = tmp_path.rglob(f"{67:020d}-*.rsm-manifest")
    fields = json.loads(manifest.read_text())
    path = manifest.with_suffix(".indexes")
    data, new = path.read_bytes(), text.encode()
    span = fields["segmentIndexes"]["leaderEpoch"]
    assert data[span["position"] : span["position"] + span["size"]] == history
    fields["segmentIndexes"]["leaderEpoch"] = {"position": len(data), "size": len(new)}
    path.write_bytes(data + new)
    manifest.write_text(json.dumps(fields))
    log = kraftlog.open(remote_tier=tmp_path)
    stream = log.records()
    assert stream.to_table().equals(whole)
    (fault,) = stream.faults
    assert (fault.error, fault.segment_base_offset) == ("bad_checkpoint", 67)
    assert message in fault.message


def test_an_index_that_leads_into_a_value(tmp_path: Path):
    """Where the offsets of a segment end is found by its batches, also when the last entry of its index is wrong."""
    found = segments_with_indexes()
    for one in found:
        one.made["index"] = one.made["index"][:-8] + struct.pack(">ii", 20, len(one.log) // 2 + 3)
    write_local(to_folder(tmp_path), found)
    log = kraftlog.open(remote_tier=tmp_path)
    assert log.records(include_control=True).to_table()["offset"].to_pylist() == list(range(102))
    assert {fault.error for fault in log.verify()} <= {"bad_index", "index_mismatch"}
    assert list(log.verify())


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.mark.sweep(1)
@pytest.mark.parametrize("layout", ["local", "aiven"])
def test_short_answers(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, expected: list[Any], layout: str
):
    """Some requests for each object are answered by three bytes: they are made again, whatever file it is."""
    monkeypatch.setattr(remote_files, "FIRST_PAUSE", 0.001)
    prefix = f"short-{layout}"
    store.put(written(layout, tmp_path), prefix)
    asked: Counter[str] = Counter()

    def fault(key: str) -> str | None:
        asked[key] += 1
        return "short" if asked[key] in (1, 6) else None

    store.fault = fault
    try:
        log = kraftlog.open(remote_tier=f"s3://bucket/{prefix}", storage_options=store.options)
        assert answers(log) == expected
        assert not list(log.verify())
    finally:
        store.fault = None
    assert len(asked) >= (15 if layout == "local" else 9)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_short_answers_that_stay(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, expected: list[Any], suffix: str
):
    """A file that never comes whole is a fault, and readers do without it."""
    monkeypatch.setattr(remote_files, "FIRST_PAUSE", 0.001)
    prefix = f"staying{suffix}"
    store.put(written("local", tmp_path), prefix)
    log = kraftlog.open(remote_tier=f"s3://bucket/{prefix}", storage_options=store.options)
    store.fault = lambda key: "short" if key.endswith(suffix) else None
    try:
        assert answers(log) == expected
        faults = list(log.verify())
    finally:
        store.fault = None
    assert faults
    without = {"txnindex_mismatch"} if suffix == ".txnindex" else set()
    assert {fault.error for fault in faults} <= {"unreadable_file", "bad_snapshot"} | without
    assert any("shorter than requested" in fault.message for fault in faults), faults[0].message
