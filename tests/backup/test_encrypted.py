"""Encrypted repositories: all doors read them with the key, nobody without it, and no change goes unseen."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import kraftlog
from backup_rows import check_same
from golden_files import GOLDEN
from kraftlog.backup.backup_folder import BackupFolder
from kraftlog.disk.backup_key import CHUNK_BYTES, KEY_FILE, BackupKey, BackupKeyError
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.backups import newest_backup
from object_store import object_store

LOG = GOLDEN / "transactions" / "log"
SECRET = bytes(range(32))
STORED = CHUNK_BYTES + 28  # a chunk with its nonce and tag


def write_keys(path: Path, *secrets: bytes) -> Path:
    path.write_text("".join(base64.b64encode(secret).decode() + "\n" for secret in secrets))
    return path


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_keys(tmp_path / "keys", SECRET)
    monkeypatch.setenv(KEY_FILE, str(path))
    return path


@pytest.fixture
def repository(tmp_path: Path) -> kraftlog.Repository:
    return kraftlog.Repository(tmp_path / "nightly")


def objects_of(repository: kraftlog.Repository) -> list[Path]:
    return sorted(Path(repository.path, "partitions").rglob("*.log"))


@pytest.fixture
def large_log(tmp_path: Path) -> Path:
    """Return a log directory whose only segment has several chunks, and batches as long as each other."""
    folder = tmp_path / "large" / "numbers-0"
    folder.mkdir(parents=True)
    values = [f"{number:06d}".encode() * 100 for number in range(1500)]
    (folder / f"{0:020d}.log").write_bytes(
        kraftlog.encode(pa.table({"value": values}), max_batch_bytes=4096, timestamp_ms=1_700_000_000_000)
    )
    return folder.parent


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("name", ["transactions", "codecs", "metadata", "groups", "transactions_hanging"])
def test_rows_are_those_of_the_source(name: str, repository: kraftlog.Repository):
    log = next(GOLDEN.rglob(f"{name}/log"))
    manifest = repository.backup(log, encrypt=True)
    check_same(log, f"{repository.path}@{manifest.name}")
    assert repository.verify(data=True) == repository.verify() == []
    again = repository.backup(log)
    assert again.stored_size == 0
    assert (again.size, again.files, again.faults) == (manifest.size, manifest.files, manifest.faults)


@pytest.mark.usefixtures("keys")
def test_nothing_that_is_stored_is_plain(repository: kraftlog.Repository):
    plain = kraftlog.Repository(f"{repository.path}-plain")
    plain.backup(LOG)
    repository.backup(LOG, encrypt=True)
    digests = {path.stem[21:] for path in objects_of(plain)}
    assert digests
    assert not digests & {path.stem[21:] for path in objects_of(repository)}  # a guess at content cannot be confirmed
    for path in Path(repository.path).rglob("*"):
        if path.is_file() and path.name not in ("kraftlog-backup.json", "lock"):
            data = path.read_bytes()
            assert not any(word in data for word in (b"order ", b"orders", b"sha256", b"PAR1", b"kraftlog"))
            with pytest.raises((UnicodeDecodeError, ValueError)):
                json.loads(data)


@pytest.mark.usefixtures("keys")
def test_the_form_is_the_documented_one(repository: kraftlog.Repository, large_log: Path):
    """Decrypt by what docs/formats.md says alone."""
    repository.backup(large_log, encrypt=True)
    [path] = objects_of(repository)
    name = str(path.relative_to(repository.path))
    cipher = AESGCM(hmac.new(SECRET, f"kraftlog-backup object {name}".encode(), hashlib.sha256).digest())
    stored = path.read_bytes()
    chunks = [stored[at : at + STORED] for at in range(0, len(stored), STORED)]
    plain = [cipher.decrypt(each[:12], each[12:], number.to_bytes(8)) for number, each in enumerate(chunks)]
    source = next(large_log.rglob("*.log")).read_bytes()
    assert b"".join(plain) == source
    assert len(chunks) > 3
    assert len({each[:12] for each in chunks}) == len(chunks)
    digest = hmac.new(SECRET, f"kraftlog-backup name {hashlib.sha256(source).hexdigest()}".encode(), hashlib.sha256)
    assert path.name == f"{0:020d}-{digest.hexdigest()}.log"


def swap_chunks(data: bytes) -> bytes:
    return data[STORED : 2 * STORED] + data[:STORED] + data[2 * STORED :]


def flip(data: bytes) -> bytes:
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


def cut(data: bytes) -> bytes:
    return data[:-1]


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("change", [swap_chunks, flip, cut, lambda data: data[:STORED]])
def test_changed_objects(repository: kraftlog.Repository, large_log: Path, change: Callable[[bytes], bytes]):
    manifest = repository.backup(large_log, encrypt=True)
    [path] = objects_of(repository)
    expected = kraftlog.open(large_log).records(["offset", "value"]).to_table().to_pylist()
    path.write_bytes(change(path.read_bytes()))
    assert len(repository.verify(data=True)) == 1
    log = kraftlog.open(f"{repository.path}@{manifest.name}", topics=["numbers"])
    stream = log.records(["offset", "value"])
    rows = stream.to_table().to_pylist()
    assert stream.faults
    assert all(row in expected for row in rows)


@pytest.mark.usefixtures("keys")
def test_verify_reads_what_is_stored(repository: kraftlog.Repository, large_log: Path):
    """Chunks of a reader that has not read them to their ends are still in memory."""
    manifest = repository.backup(large_log, encrypt=True)
    [segment] = kraftlog.open(f"{repository.path}@{manifest.name}", topics=["numbers"]).found.segments
    reader = disk().open(segment.path)
    for at in range(0, reader.size, CHUNK_BYTES):
        reader.read(at, at + 1)
    [path] = objects_of(repository)
    stored = bytearray(path.read_bytes())
    for at in range(100, len(stored), STORED):
        stored[at] ^= 1
    path.write_bytes(stored)
    assert [fault.error for fault in repository.verify(data=True)] == ["unreadable_file"]
    for at in range(100, len(stored), STORED):  # a chunk is damaged alone
        others = bytearray(stored)
        for other in range(100, len(stored), STORED):
            others[other] ^= other != at
        path.write_bytes(others)
        assert [fault.error for fault in repository.verify(data=True)] == ["unreadable_file"]


@pytest.mark.usefixtures("keys")
def test_an_object_under_the_name_of_another(repository: kraftlog.Repository):
    """Both have the key of the same repository, the same size, and batches whose checksums match."""
    manifest = repository.backup(LOG, topics=["orders"], encrypt=True)
    one, other = objects_of(repository)[-2:]
    shutil.copyfile(one, other)
    stream = kraftlog.open(f"{repository.path}@{manifest.name}").records(["partition", "offset"])
    stream.to_table()
    assert {fault.error for fault in stream.faults} >= {"unreadable_file"}


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_changed_manifests_and_lists(repository: kraftlog.Repository, kind: str):
    """A list of another backup, sealed with the same key, is not taken for this one's either."""
    first, second = repository.backup(LOG, encrypt=True), repository.backup(LOG)
    backups = Path(repository.path, "backups")
    shutil.copyfile(backups / f"{first.name}.{kind}", backups / f"{second.name}.{kind}")
    with pytest.raises(CorruptRecordError, match=f"{second.name}.{kind}: expected a matching tag of AES-256-GCM"):
        kraftlog.open(f"{repository.path}@{second.name}").records().to_table()
    assert [fault.error for fault in repository.verify([second.name])] == ["bad_manifest"]
    assert repository.verify([first.name]) == []


@pytest.mark.parametrize("change", [{"chunk_bytes": 1024}, {"cipher": "AES-128-GCM"}])
def test_a_form_of_a_later_release(keys: Path, repository: kraftlog.Repository, change: dict[str, object]):
    repository.backup(LOG, encrypt=True)
    path = Path(repository.path, "kraftlog-backup.json")
    marker = json.loads(path.read_text())
    path.write_text(json.dumps(marker | {"encryption": marker["encryption"] | change}))
    with pytest.raises(BackupKeyError, match="expected AES-256-GCM in chunks of 262144 bytes, found "):
        kraftlog.open(repository.path)


def test_nothing_is_written_without_the_key(keys: Path, tmp_path: Path):
    """The first backup was interrupted when it had made the repository."""
    folder = BackupFolder(tmp_path / "nightly")
    folder.create(encrypts=True)
    keys.unlink()
    with pytest.raises(BackupKeyError):
        kraftlog.Repository(folder.path).backup(LOG)
    assert [path.name for path in Path(folder.path).iterdir()] == ["kraftlog-backup.json"]


OTHER = bytes(32)
KEY_FILES = [
    (None, "expected the name of a file with its key in KRAFTLOG_BACKUP_KEYS, found none"),
    (b"", "expected base64 of 32 bytes, found an empty file"),
    (base64.b64encode(OTHER), "encrypted with the key [0-9a-f]{16}, which is not in "),
    (base64.b64encode(SECRET)[:-4], "key 1: expected base64 of 32 bytes, found something else"),
    (base64.b64encode(SECRET) + b"\n\xff\xfe", "key 2: expected base64 of 32 bytes, found something else"),
    (b"missing", "the keys cannot be read"),
]


@pytest.mark.parametrize(("content", "message"), KEY_FILES)
def test_without_the_key(
    repository: kraftlog.Repository, keys: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, message: str
):
    name = repository.backup(LOG, encrypt=True).name
    if content is None:
        monkeypatch.delenv(KEY_FILE)
    elif content == b"missing":
        keys.unlink()
    else:
        keys.write_bytes(content)
    again = kraftlog.Repository(repository.path)
    before = sorted(Path(repository.path).rglob("*"))
    calls = [
        lambda: kraftlog.open(f"{repository.path}@{name}"),
        lambda: kraftlog.open(repository.path),
        lambda: again.manifest(name),
        lambda: again.backup(LOG),
        lambda: again.prune(keep=1),
    ]
    for call in calls:
        with pytest.raises(BackupKeyError, match=message) as caught:
            call()
        assert base64.b64encode(SECRET).decode()[:-4] not in str(caught.value)
    assert sorted(Path(repository.path).rglob("*")) == before


def test_keys_in_rotation(repository: kraftlog.Repository, keys: Path, tmp_path: Path):
    """The first key is for new repositories, the others are for old ones."""
    old = repository.backup(LOG, encrypt=True)
    write_keys(keys, OTHER, SECRET)
    new = kraftlog.Repository(tmp_path / "new")
    new.backup(LOG, encrypt=True)
    marker = json.loads(Path(new.path, "kraftlog-backup.json").read_text())
    assert marker["encryption"]["key_id"] == BackupKey(OTHER).key_id != BackupKey(SECRET).key_id
    check_same(LOG, f"{repository.path}@{old.name}")
    check_same(LOG, str(new.path))


@pytest.mark.usefixtures("keys")
def test_refusals(repository: kraftlog.Repository, tmp_path: Path):
    repository.backup(LOG)
    with pytest.raises(ValueError, match="expected an encrypted repository, found one whose objects are plain"):
        repository.backup(LOG, encrypt=True)
    encrypted = kraftlog.Repository(tmp_path / "encrypted")
    with pytest.raises(ValueError, match="link: a file of an encrypted repository cannot be one of the source"):
        encrypted.backup(LOG, encrypt=True, link=True)


@pytest.mark.usefixtures("keys")
def test_a_task_elsewhere_needs_no_file_of_keys(repository: kraftlog.Repository, monkeypatch: pytest.MonkeyPatch):
    """Spark sends paths to executors; the text of a path does not show the key."""
    repository.backup(LOG, encrypt=True)
    path = newest_backup(repository.path)
    sent = pickle.dumps(path)
    monkeypatch.delenv(KEY_FILE)
    received = pickle.loads(sent)
    assert repr(SECRET) not in repr(received) + str(received)
    check_same(LOG, received)


@pytest.mark.usefixtures("keys")
def test_an_object_store():
    with object_store() as store:
        repository = kraftlog.Repository("s3://bucket/nightly", store.options)
        manifest = repository.backup(LOG, encrypt=True)
        assert repository.verify(data=True) == []
        check_same(LOG, f"s3://bucket/nightly@{manifest.name}", storage_options=store.options)
        assert repository.backup(LOG).stored_size == 0
        assert repository.prune(keep=1).backups == [manifest.name]
        check_same(LOG, "s3://bucket/nightly", storage_options=store.options)


@pytest.mark.usefixtures("keys")
def test_restore_and_keys_that_are_left_out(repository: kraftlog.Repository, tmp_path: Path):
    left_out = tmp_path / "left-out"
    key = next(row["key"] for row in kraftlog.open(LOG, topics=["orders"]).records(["key"]).to_table().to_pylist())
    left_out.write_bytes(b"base64:" + base64.b64encode(key) + b"\n")
    manifest = repository.backup(LOG, encrypt=True, exclude_keys=left_out)
    assert repository.verify(data=True) == []
    log = kraftlog.open(f"{repository.path}@{manifest.name}", topics=["orders"])
    found = [row["key"] for row in log.records(["key"]).to_table().to_pylist()]
    assert found
    assert key not in found


@pytest.mark.usefixtures("keys")
def test_a_restored_cluster_is_plain(repository: kraftlog.Repository, tmp_path: Path):
    source = tmp_path / "store"
    with kraftlog.LogStore(source) as store:
        store.create_topic("orders", partitions=2)
        with store.producer() as producer:
            producer.send("orders", pa.table({"value": [b"one", b"two", b"three"]}))
    repository.backup(source, encrypt=True)
    kraftlog.restore(str(repository.path), tmp_path / "restored")
    [restored] = (tmp_path / "restored").glob("node-*/logs-*")
    found, expected = (kraftlog.open(path, topics=["orders"]) for path in (restored, source))
    assert found.records().to_table().equals(expected.records().to_table())
    assert found.records().to_table().num_rows == 3


def test_the_key_is_not_shown():
    assert repr(SECRET) not in repr(BackupKey(SECRET))
    assert os.environ.get(KEY_FILE) is None
