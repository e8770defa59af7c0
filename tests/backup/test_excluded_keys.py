"""Copies without the records of some keys: their bytes hold no trace of them, and everything else stays as it is."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog import LogStore
from kraftlog.backup.excluded_keys import ExcludedKeys
from kraftlog.backup.stored_segment import CHANGED
from kraftlog.codec.compression import COMPRESSION_TYPES, decompressor
from kraftlog.codec.filtered_batch import _plain
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.backup_path import BackupPath
from object_store import object_store

GONE, ODD = b"person-4711-of-erasure", b"\xff\x00\tbinary key"
KEPT = b"person-1-who-stays"
COLUMNS = ["topic", "partition", "offset", "key", "value", "timestamp_ms", "producer_id", "sequence"]
LEVELS = ("read_committed", "read_uncommitted")


@pytest.fixture(scope="module", params=COMPRESSION_TYPES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory with the keys in single batches, among others, in committed and aborted transactions."""
    folder = tmp_path_factory.mktemp("source") / request.param
    with LogStore(folder) as store:
        for topic, count in (("orders", 2), ("letters", 1)):
            store.create_topic(topic, partitions=count)
        with store.producer(compression=request.param) as plain:
            for keys in ([KEPT, GONE, KEPT], [GONE], [GONE, GONE], [KEPT] * 3, [ODD, None]):
                for topic in ("orders", "letters"):
                    for number, key in enumerate(keys):
                        plain.send(topic, key=key, value=b"%d of %s" % (number, topic.encode()) * 20, partition=0)
                plain.flush()
        producer = store.producer(transactional_id="etl", compression=request.param)
        for number, keys in enumerate(([GONE], [KEPT, GONE], [GONE, GONE], [GONE, KEPT], [GONE])):
            producer.begin_transaction()
            for key in keys:
                producer.send("orders", key=key, value=b"paid" * 30, partition=1)
            producer.send_offsets_to_transaction({("orders", 0): number}, group=GONE.decode())
            if number == 3:
                producer.flush()  # what is not written yet would never be
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        with store.producer(compression=request.param) as plain:
            plain.send("orders", key=GONE, value="the last one", partition=0)
    return folder


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Return a file of keys, with a topic before one of them."""
    path = tmp_path / "keys.txt"
    path.write_bytes(GONE + b"\r\n\norders\tbase64:/wAJYmluYXJ5IGtleQ==\n")
    return path


def rows_of(paths: Any, level: str, topics: Sequence[str] = ("orders", "letters")) -> list[dict[str, Any]]:
    log = kraftlog.open(paths, topics=topics)
    rows: list[dict[str, Any]] = log.records(COLUMNS, isolation_level=level).to_table().to_pylist()
    return rows


def expected(store: Path, level: str) -> list[dict[str, Any]]:
    def stays(row: dict[str, Any]) -> bool:
        return row["key"] != GONE and (row["key"], row["topic"]) != (ODD, "orders")

    return [row for row in rows_of(store, level) if stays(row)]


def plain_bytes(files: list[bytes]) -> bytes:
    """Return the bytes of batches, with their records decompressed."""
    found = b""
    for data in files:
        for header in kraftlog.batches(data).to_table().to_pylist():
            batch = data[header["position"] : header["position"] + header["size_in_bytes"]]
            found += batch + _plain(batch, header["attributes"], decompressor(ReadOptions.max_decompressed_bytes))
    return found


def check(store: Path, copy: Any, logs: list[bytes]) -> None:
    """Nothing of the keys is left; all other records, offsets, ends and transactions are those of the source."""
    for level in LEVELS:
        assert rows_of(copy, level) == expected(store, level)
    found = plain_bytes(logs)
    assert KEPT in found
    assert GONE not in found
    before, after = (kraftlog.open(path, topics=["orders", "letters"]) for path in (store, copy))
    assert after.errors().to_pylist() == []
    assert after.partition_offsets().to_table().equals(before.partition_offsets().to_table())
    states = ["topic", "partition", "producer_id", "state", "marker_offset"]
    assert after.partition_transactions(states).equals(before.partition_transactions(states))


def test_restored_directories(store: Path, keys: Path, tmp_path: Path) -> None:
    done = kraftlog.restore(store, tmp_path / "cluster", exclude_keys=keys)
    directory = tmp_path / "cluster" / "node-1" / "logs-0"
    check(store, directory, [path.read_bytes() for path in sorted(directory.glob("[!_]*/*.log"))])
    assert {one.name: one.excluded_records for one in done.partitions if one.excluded_records} == {
        **{"letters-0": 4, "orders-0": 6, "orders-1": 6},
    }
    report = json.loads((tmp_path / "cluster" / "restored.json").read_text())
    assert report["excluded_keys_sha256"] == ExcludedKeys.of_file(keys).sha256  # type: ignore[union-attr]
    log = kraftlog.open(directory)
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []
    assert (
        log.offsets().to_pylist() == kraftlog.open(store).offsets().to_pylist()
    )  # of the coordinators nothing changes


def test_extracted(store: Path, keys: Path, tmp_path: Path) -> None:
    done = kraftlog.extract(store, tmp_path / "copy", exclude_keys=keys, redact=["value=mask"])
    assert "16 records were left out, since their keys are excluded" in done.notes
    found = plain_bytes([path.read_bytes() for path in (tmp_path / "copy").glob("*/*.log")])
    assert GONE not in found
    assert {row["value"] for row in rows_of(tmp_path / "copy", "read_uncommitted")} == {b"***"}
    kraftlog.extract(store, tmp_path / "part", topics=["orders"], partitions=[0], exclude_keys=keys, start_offset=2)
    rows = [row for row in expected(store, "read_committed") if (row["topic"], row["partition"]) == ("orders", 0)]
    assert rows_of(tmp_path / "part", "read_committed", ["orders"]) == [row for row in rows if row["offset"] >= 2]
    kraftlog.extract(store, tmp_path / "other", exclude_keys=keys, compression="zstd")
    assert rows_of(tmp_path / "other", "read_committed") == expected(store, "read_committed")


class Where(NamedTuple):
    """A repository, options of its file system, and what returns the objects of user's topics."""

    repository: kraftlog.Repository
    options: dict[str, str] | None
    objects: Callable[[], list[bytes]]


def local_objects(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("partitions/[!_]*/*.log"))]


@pytest.fixture(params=["folder", "object store"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Where]:
    if request.param == "folder":
        yield Where(kraftlog.Repository(tmp_path / "nightly"), None, lambda: local_objects(tmp_path / "nightly"))
        return
    with object_store() as store:

        def objects() -> list[bytes]:
            keys = [key for key in store.all_keys() if "/partitions/" in key and "/partitions/__" not in key]
            return [store.read(key) for key in keys]

        yield Where(kraftlog.Repository("s3://bucket/nightly", store.options), store.options, objects)


def test_backups(store: Path, keys: Path, where: Where) -> None:
    """A backup without the keys holds nothing of them, and builds on no other that does."""
    topics, digest = ["orders", "letters"], ExcludedKeys(keys.read_text()).sha256
    first = where.repository.backup(store, topics=topics, exclude_keys=keys)
    assert (first.faults, first.excluded_keys_sha256) == ((), digest)
    assert "16 records were left out, since their keys are excluded" in first.notes
    assert GONE not in plain_bytes(where.objects())
    again = where.repository.backup(store, topics=topics, exclude_keys=keys)
    assert (again.stored_size, again.size, again.notes) == (0, first.size, first.notes)
    assert where.repository.verify(data=True) == []
    whole = where.repository.backup(store, topics=topics)
    assert (whole.excluded_keys_sha256, whole.notes) == (None, ())
    assert GONE in plain_bytes(where.objects())
    last = where.repository.backup(store, topics=topics, exclude_keys=keys)
    assert last.size == first.size
    for manifest in (first, again, whole, last):
        backup = BackupPath.of(where.repository.path, manifest.name)
        for level in LEVELS:
            assert rows_of(backup, level) == (rows_of(store, level) if manifest is whole else expected(store, level))
        assert kraftlog.open(backup).errors().to_pylist() == []
    assert where.repository.verify(data=True) == []
    if where.options is None:
        where.repository.prune(names=[whole.name])
        assert GONE not in plain_bytes(where.objects())
        check(store, BackupPath.of(where.repository.path, last.name), where.objects())


def test_what_is_appended_later_is_left_out_as_well(tmp_path: Path, keys: Path) -> None:
    """A file without the keys is stored once; from the backup on that finds one it is read as a whole."""
    repository = kraftlog.Repository(tmp_path / "nightly")

    def send(*sent: bytes) -> None:
        with LogStore(tmp_path / "store") as store, store.producer() as producer:
            for key in sent:
                producer.send("orders", key=key, value="v")
                producer.flush()

    with LogStore(tmp_path / "store") as store:
        store.create_topic("orders")
    positions = []
    for sent in ([KEPT, KEPT], [KEPT], [KEPT, GONE], [KEPT]):
        send(*sent)
        manifest = repository.backup(tmp_path / "store", exclude_keys=keys)
        found = rows_of_keys(tmp_path / "nightly")
        assert found == [row for row in rows_of_keys(tmp_path / "store") if row != GONE]
        rows = repository.files(manifest.name).to_pylist()
        (objects,) = (row["objects"] for row in rows if row["path"] == f"orders-0/{0:020d}.log")
        positions.append([one["source_position"] for one in objects])
    assert [len(each) for each in positions] == [1, 2, 3, 1]
    assert positions[2][-1] == positions[3][0] == CHANGED
    assert repository.verify(data=True) == []
    assert GONE not in plain_bytes(
        [path.read_bytes() for path in (tmp_path / "nightly").glob("partitions/[!_]*/*.log")]
    )


def rows_of_keys(path: Path) -> list[bytes]:
    keys: list[bytes] = kraftlog.open(path, topics=["orders"]).records(["key"]).to_table()["key"].to_pylist()
    return keys


def test_links_are_not_made(tmp_path: Path, keys: Path) -> None:
    """A hard link would have the keys."""
    with LogStore(tmp_path / "store") as store:
        store.create_topic("orders", configs={"internal.segment.bytes": 1024})
        with store.producer() as producer:
            for number in range(20):
                producer.send("orders", key=GONE if number % 2 else KEPT, value="v" * 300)
                producer.flush()
    repository = kraftlog.Repository(tmp_path / "nightly")
    repository.backup(tmp_path / "store", link=True, exclude_keys=keys)
    assert rows_of_keys(tmp_path / "nightly") == [KEPT] * 10
    assert GONE not in b"".join(local_objects(tmp_path / "nightly"))
    assert repository.verify(data=True) == []


def test_batches_in_which_keys_cannot_be_found(tmp_path: Path, keys: Path) -> None:
    """Records that cannot be read may have one of the keys: they are left out, and named."""
    folder = tmp_path / "log" / "orders-0"
    folder.mkdir(parents=True)
    good = bytes(kraftlog.encode(pa.table({"key": pa.array([KEPT], pa.binary())}), base_offset=0))
    odd = bytearray(bytes(kraftlog.encode(pa.table({"key": pa.array([GONE, KEPT], pa.binary())}), base_offset=1)))
    odd[61] = 0xFE  # the length of the first record
    kraftlog.rewrite_batches(odd, base_offset=1)
    struct.pack_into(">I", odd, 17, kraftlog.crc32c(bytes(odd[21:])))
    later = bytes(kraftlog.encode(pa.table({"key": pa.array([KEPT], pa.binary())}), base_offset=3))
    (folder / f"{0:020d}.log").write_bytes(good + odd + later)
    manifest = kraftlog.Repository(tmp_path / "nightly").backup(tmp_path / "log", exclude_keys=keys)
    assert [fault.error for fault in manifest.faults] == ["bad_records_count"]
    (data,) = local_objects(tmp_path / "nightly")
    assert GONE not in data
    assert rows_of_keys(tmp_path / "nightly") == [KEPT, KEPT]


def test_messages_of_old_formats(tmp_path: Path, keys: Path) -> None:
    """No record can be taken out of them, so they are left out, and named."""
    old = next(path for path in sorted((GOLDEN / "legacy").rglob("*.log")) if path.read_bytes()[16] < 2)
    folder = tmp_path / "log" / "orders-0"
    folder.mkdir(parents=True)
    shutil.copy(old, folder / f"{0:020d}.log")
    manifest = kraftlog.Repository(tmp_path / "nightly").backup(tmp_path / "log", exclude_keys=keys)
    assert {fault.error for fault in manifest.faults} == {"not_extracted"}
    assert "expected magic 2, since keys are excluded, found magic" in manifest.faults[0].message
    assert local_objects(tmp_path / "nightly") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a key on each line, found none"),
        ("\n\r\n", "expected a key on each line, found none"),
        ("a\nbase64:%%%", "line 2: expected base64 after base64:, found '%%%'"),
        ("__consumer_offsets\ta", "line 1: __consumer_offsets is Kafka's own"),
        ("no topic!\ta", "line 1: .*no topic!"),
    ],
)
def test_files_that_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(text)
    with pytest.raises(ValueError, match=message):
        ExcludedKeys.of_file(tmp_path / "keys")
    (tmp_path / "bytes").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="bytes: 'utf-8' codec"):
        ExcludedKeys.of_file(tmp_path / "bytes")


def test_the_digest_is_that_of_the_keys() -> None:
    one, other = ExcludedKeys("a\nt\tb\n"), ExcludedKeys("t\tbase64:Yg==\r\n\nbase64:YQ==")
    assert one.sha256 == other.sha256
    assert one.sha256 != ExcludedKeys("a\nb\n").sha256 != ExcludedKeys("b\n").sha256
    assert ExcludedKeys("base64:").of_topic("t") is not None
    assert ExcludedKeys("t\tb").of_topic("other") is None


def test_commands(tmp_path: Path, keys: Path) -> None:
    with LogStore(tmp_path / "store") as store:
        store.create_topic("orders")
        with store.producer() as producer:
            for key in (KEPT, GONE, KEPT):
                producer.send("orders", key=key, value="v")
    given = ["--exclude-keys", keys, "--no-progress"]
    for command, copy in (
        (["backup", tmp_path / "store", tmp_path / "nightly"], tmp_path / "nightly"),
        (["extract", tmp_path / "store", tmp_path / "copy", "-t", "orders"], tmp_path / "copy"),
        (["restore", tmp_path / "store", tmp_path / "new"], tmp_path / "new" / "node-1" / "logs-0"),
    ):
        done = run_command(*command, *given)
        assert done.returncode == 0, done.stderr
        assert rows_of_keys(copy) == [KEPT, KEPT]
