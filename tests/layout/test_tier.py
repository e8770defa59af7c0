"""Remote tiers that are damaged, or are not what they should be: each refusal says what was expected and found."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk import chunk_cache, part_file
from kraftlog.errors import Fault
from kraftlog.layout.tier.data_key import KeyRing
from kraftlog.layout.tier.manifest import ManifestError, read_manifest
from kraftlog.layout.tier.object_names import parse_file, parse_folder
from tier_writer import TOPIC_ID, Aiven, KeyPair, packed_sizes, sources, to_folder, write_local

ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
NAME = "00000000000000000032-"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def key_pair(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return KeyPair("k1", tmp_path_factory.mktemp("keys"))


@pytest.fixture(autouse=True)
def nothing_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_file, "CHUNKS", chunk_cache.ChunkCache())


def one(root: Path, suffix: str) -> Path:
    """Return an object of the second segment."""
    (found,) = root.rglob(f"{NAME}*.{suffix}")
    return found


def read(root: Path, **options: Any) -> tuple[list[int], list[Fault]]:
    stream = kraftlog.open(remote_tier=root, **options).records(include_control=True)
    return stream.to_table()["offset"].to_pylist(), stream.faults


def without_second() -> list[int]:
    return [*range(32), *range(67, 102)]


@pytest.fixture
def encrypted(tmp_path: Path, key_pair: KeyPair) -> Path:
    Aiven(2000, compression=True, key_pair=key_pair).write(to_folder(tmp_path), sources(ORDERS))
    return tmp_path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    Aiven(2000, compression=True).write(to_folder(tmp_path), sources(ORDERS))
    return tmp_path


def changed(path: Path, change: Change) -> None:
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_names():
    assert parse_folder(Path("ts/a-b-7-0-" + TOPIC_ID) / "7") == ("a-b-7-0", 7, TOPIC_ID, True)
    assert parse_folder(Path(f"x/a-b-12-{'-' * 22}")) == ("a-b", 12, "-" * 22, False)
    assert parse_file(f"{1234:020d}-{'_' * 22}.rsm-manifest") == (1234, "_" * 22, "rsm-manifest")
    for name in ("orders-0", "7", f"orders-{TOPIC_ID}", "orders-0-" + TOPIC_ID[1:], TOPIC_ID):
        assert parse_folder(Path("x") / name) is None
    for name in (f"{1:020d}.log", f"{1:019d}-{'_' * 22}.log", f"{1:020d}-{'_' * 21}.log", f"{1:020d}-{'_' * 22}"):
        assert parse_file(name) is None


@given(st.lists(st.integers(1, 2**31 - 1), max_size=40))
def test_sizes_of_chunks(sizes: list[int]):
    """They are read as they were written; the example is one of Aiven's own codec."""
    index = {
        "type": "variable",
        "originalChunkSize": 10,
        "originalFileSize": 10 * len(sizes),
        "transformedChunks": base64.b64encode(zstd.compress(packed_sizes(sizes))).decode(),
    }
    assert read_manifest(manifest_with(index), KeyRing({})).chunks.stored_sizes == tuple(sizes)


def test_sizes_of_aivens_codec():
    index = {
        "type": "variable",
        "originalChunkSize": 1_000_000,
        "originalFileSize": 2_000_001,
        "transformedChunks": "KLUv/SAPeQAAAAAAAwAPQkABAAoAAAAH",
    }
    manifest = read_manifest(manifest_with(index), KeyRing({}))
    assert manifest.chunks.stored_sizes == (1_000_000, 1_000_010, 7)
    assert manifest.topic is None


def manifest_with(index: dict[str, Any]) -> bytes:
    names = ("offset", "timestamp", "producerSnapshot", "leaderEpoch")
    indexes = {name: {"position": 0, "size": 0} for name in names} | {"transaction": None}
    manifest = {"version": "1", "chunkIndex": index, "segmentIndexes": indexes, "compression": True, "new": 1}
    return json.dumps(manifest).encode()


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (b"", "expected 2 chunks, found less than 4 bytes"),
        (struct.pack(">i", 3), "expected 2 chunks, found 3"),
        (struct.pack(">iibbi", 2, 5, 0, 1, 7), "expected values of 1 to 4 bytes, found 0"),
        (struct.pack(">iibb", 2, 5, 1, 1), "expected 14 bytes for 2 chunks, found 10"),
        (struct.pack(">iibbiB", 2, 5, 1, 1, 7, 0), "expected 14 bytes for 2 chunks, found 15"),
    ],
)
def test_odd_sizes_of_chunks(packed: bytes, message: str):
    index = {"type": "variable", "originalChunkSize": 10, "originalFileSize": 20}
    index |= {"transformedChunks": base64.b64encode(zstd.compress(packed)).decode()}
    with pytest.raises(ManifestError, match=f"chunkIndex.transformedChunks: {message}"):
        read_manifest(manifest_with(index), KeyRing({}))


@given(st.data())
def test_manifests_that_are_cut_or_changed(data: st.DataObject):
    """Whatever a manifest is, it is read or refused."""
    whole = Aiven(1000, compression=True).objects(sources(ORDERS)[0])["rsm-manifest"]
    at = data.draw(st.integers(0, len(whole) - 1))
    for found in (whole[:at], whole[:at] + data.draw(st.binary(min_size=1, max_size=2)) + whole[at + 1 :]):
        try:
            read_manifest(found, KeyRing({}))
        except ManifestError as error:
            assert str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(version="2"), "version: expected '1', found '2'"),
        (lambda m: m.pop("chunkIndex"), "chunkIndex: expected an object, found nothing"),
        (lambda m: m["chunkIndex"].update(type="odd"), "chunkIndex.type: expected 'fixed' or 'variable', found 'odd'"),
        (lambda m: m["chunkIndex"].update(originalChunkSize=0), "originalChunkSize: expected 1 to 1073741823, found 0"),
        (lambda m: m["chunkIndex"].update(transformedChunks="AAAA"), "transformedChunks: expected a zstd frame"),
        (lambda m: m["chunkIndex"].update(transformedChunks="?"), "transformedChunks: expected base64, found '?'"),
        (lambda m: m.update(compression="yes"), 'compression: expected true or false, found "yes"'),
        (lambda m: m.update(compression=False), "chunkIndex: chunk 0: expected 2000 bytes, found "),
        (lambda m: m["segmentIndexes"].update(offset=[1]), "segmentIndexes.offset: expected an object, found [1]"),
        (lambda m: m["remoteLogSegmentMetadata"].update(endOffset=31), "endOffset: expected 32 or more, found 31"),
        (lambda m: m["remoteLogSegmentMetadata"].update(segmentLeaderEpochs={"a": 1}), "expected offsets by epoch"),
    ],
)
def test_odd_manifests(plain: Path, change: Change, message: str):
    changed(one(plain, "rsm-manifest"), change)
    offsets, faults = read(plain)
    assert offsets == without_second()
    assert {fault.error for fault in faults} == {"unreadable_tier", "tier_gap"}
    assert message in faults[0].message
    assert f"{TOPIC_ID}/0/{NAME}" in faults[0].message
    assert (faults[0].topic, faults[0].partition, faults[0].segment_base_offset) == ("orders", 0, 32)


def test_fields_that_are_not_known(plain: Path):
    changed(one(plain, "rsm-manifest"), lambda m: m.update(future={"field": 1}))
    assert read(plain) == (list(range(102)), [])


def test_a_manifest_that_is_cut(plain: Path):
    path = one(plain, "rsm-manifest")
    path.write_bytes(path.read_bytes()[:-20])
    offsets, (fault, gap) = read(plain)
    assert offsets == without_second()
    assert "expected JSON, found" in fault.message
    assert "expected offsets 32 to 66, found no segment that has them" in gap.message
    with pytest.raises(kraftlog.CorruptRecordError, match="expected JSON"):
        kraftlog.open(remote_tier=plain).records(strict=True).to_table()


def test_a_manifest_of_before_2023_09(plain: Path):
    """Without remoteLogSegmentMetadata, offsets and epochs are those of the log and of its leader epochs."""
    for path in plain.rglob("*.rsm-manifest"):
        changed(path, lambda m: m.pop("remoteLogSegmentMetadata"))
    assert read(plain) == (list(range(102)), [])


@pytest.mark.parametrize("layout", ["plain", "encrypted"])
def test_a_chunk_that_was_changed(request: pytest.FixtureRequest, key_pair: KeyPair, layout: str):
    root: Path = request.getfixturevalue(layout)
    path = one(root, "log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    keys = {"tier_keys": {"k1": key_pair.private}} if layout == "encrypted" else {}
    offsets, faults = read(root, **keys)
    assert offsets[:32] == list(range(32))
    assert offsets[-35:] == list(range(67, 102))
    assert len(offsets) < 102
    assert len(set(offsets)) == len(offsets)
    if layout == "encrypted":
        (fault,) = faults
        assert fault.error == "unreadable_file"
        assert "expected a matching tag of AES-GCM, found another" in fault.message
        assert ": chunk " in fault.message
    else:
        assert faults


def test_chunks_that_were_swapped(tmp_path: Path, key_pair: KeyPair):
    """GCM does not notice it; the batches do."""
    Aiven(500, key_pair=key_pair).write(to_folder(tmp_path), sources(ORDERS))
    path = one(tmp_path, "log")
    data, size = path.read_bytes(), 528
    path.write_bytes(data[size : 2 * size] + data[:size] + data[2 * size :])
    offsets, faults = read(tmp_path, tier_keys={"k1": key_pair.private})
    assert faults
    assert [offset for offset in offsets if not 32 <= offset < 67] == without_second()


@pytest.mark.parametrize("cut", [1, 600, 5000])
def test_a_log_that_is_cut(plain: Path, cut: int):
    path = one(plain, "log")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-cut])
    offsets, faults = read(plain)
    assert sorted(set(offsets)) == offsets
    assert [offset for offset in offsets if not 32 <= offset < 67] == without_second()
    assert f"expected {size} bytes by the manifest, found {size - cut}" in faults[0].message
    assert faults[1].error == "unreadable_file"


def test_objects_that_are_missing(plain: Path):
    one(plain, "log").unlink()
    offsets, (fault, gap) = read(plain)
    assert offsets == without_second()
    assert "by the manifest, found no such object" in fault.message
    assert gap.error == "tier_gap"


def test_a_log_without_a_manifest(plain: Path):
    """It was not copied to the end, or is being deleted."""
    (first,) = plain.rglob("00000000000000000000-*.rsm-manifest")
    first.unlink()
    offsets, faults = read(plain)
    assert (offsets, faults) == (list(range(32, 102)), [])
    log = kraftlog.open(remote_tier=plain)
    assert [(fault.error, fault.segment_base_offset) for fault in log.verify()] == [("tier_orphan", 0)] * 2
    assert "no manifest: its copy was not finished" in next(iter(log.verify())).message


def test_no_key(encrypted: Path, key_pair: KeyPair):
    for keys, given_keys in (({}, "none"), ({"k2": key_pair.private}, "k2")):
        offsets, faults = read(encrypted, tier_keys=keys)
        assert offsets == []
        assert len(faults) == 3
        what = f"encrypted for the key pair 'k1': expected its private key, found keys for {given_keys}"
        assert what in faults[0].message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"", "expected a private key in PEM"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "expected a private key in PEM"),
        ("another", "encryption.dataKey does not match the key 'k1': it cannot be decrypted"),
    ],
)
def test_a_wrong_key(encrypted: Path, tmp_path: Path, content: bytes | str | None, message: str):
    path = tmp_path / "keys" / "k1.pem"
    if content == "another":
        KeyPair("k1", tmp_path / "keys")
    elif isinstance(content, bytes):
        path.parent.mkdir()
        path.write_bytes(content)
    offsets, faults = read(encrypted, tier_keys={"k1": path})
    assert offsets == []
    assert len(faults) == 3
    assert message in faults[0].message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["encryption"].update(dataKey="k1"), "expected the name of a key pair, a colon and base64"),
        (lambda m: m["encryption"].update(dataKey="k1:AAAA"), "expected 256 bytes, the size of its modulus, found 3"),
        (lambda m: m["encryption"].pop("aad"), "encryption.aad: expected a text, found nothing"),
        (lambda m: m["encryption"].update(aad="AAAA"), "expected a matching tag of AES-GCM"),
    ],
)
def test_odd_encryption(encrypted: Path, key_pair: KeyPair, change: Change, message: str):
    changed(one(encrypted, "rsm-manifest"), change)
    offsets, faults = read(encrypted, tier_keys={"k1": key_pair.private})
    assert offsets == without_second()
    assert any(message in fault.message for fault in faults)


def test_local_tiered_storage_without_leader_epochs(tmp_path: Path):
    write_local(to_folder(tmp_path), sources(ORDERS))
    one(tmp_path, "leader_epoch_checkpoint").write_text("0\n1\n0 x\n")
    offsets, (fault, _) = read(tmp_path)
    assert offsets == without_second()
    assert "line 3: expected a number, found 'x'" in fault.message
    one(tmp_path, "leader_epoch_checkpoint").unlink()
    assert "expected leader epochs of the segment, found none" in read(tmp_path)[1][0].message
    one(tmp_path, "log").unlink()
    log = kraftlog.open(remote_tier=tmp_path)
    assert {fault.error for fault in log.verify()} == {"tier_orphan", "tier_gap"}


def test_another_topic_of_that_name(tmp_path: Path):
    """What a topic has left that was deleted is not of the log."""
    write_local(to_folder(tmp_path / "tier"), sources(ORDERS), "A" * 22)
    log = kraftlog.open(ORDERS, remote_tier=tmp_path / "tier")
    assert log.records().to_table().equals(kraftlog.open(ORDERS).records().to_table())
    faults = list(log.verify())
    assert {fault.error for fault in faults} == {"tier_orphan"}
    assert f"of the topic id {'A' * 22}, that of the log directory is 911PgdAUTfK0_8FSda0bUA" in faults[0].message


def test_prefixes(tmp_path: Path):
    """They are glued to the name of the topic; the manifest knows it."""
    Aiven(1000, compression=True, prefix="ts-").write(to_folder(tmp_path), sources(ORDERS))
    assert kraftlog.open(remote_tier=tmp_path, topics=["orders"]).topics == ["orders"]


def test_no_tier(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        kraftlog.open(remote_tier=tmp_path / "nothing")
    with pytest.raises(ValueError, match="no remote tier: expected segments in the layout of Aiven's plugin"):
        kraftlog.open(remote_tier=GOLDEN / "transactions")
    with pytest.raises(ValueError, match=r"keys of a remote tier were given \(k1\), but no remote tier"):
        kraftlog.open(ORDERS, tier_keys={"k1": "k1.pem"})
    with pytest.raises(ValueError, match="expected a path"):
        kraftlog.open([])
