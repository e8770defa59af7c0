"""Logs on other file systems: the same rows as of local files, from no more bytes than it takes."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from click.testing import CliRunner

import kraftlog
from golden_files import GOLDEN, damaged_cases, name_of, scenarios
from kraftlog import schema
from kraftlog.cli import commands
from kraftlog.codec.options import ReadOptions
from kraftlog.disk import remote_files
from kraftlog.disk.remote_files import RemoteFile
from kraftlog.disk.remote_path import RemotePath, log_path
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass
from kraftlog.read.records import read_range
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.log import Log
from kraftlog.tables.user_options import read_options
from object_store import ObjectStore, object_store

TRANSACTIONAL = ["transactions", "transactions_tv0", "transactions_hanging", "transactions_live", "compaction"]
MANY_BATCHES = ["codecs", "legacy", "transactions", "compaction"]
RECORD_COLUMNS = [name for name in schema.RECORDS.select().names if name not in ("headers", "visible_at")]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture(scope="module")
def golden(store: ObjectStore) -> dict[str, str]:
    """URIs of golden scenarios by name."""
    return {name_of(folder): store.put(folder / "log", name_of(folder)) for folder in scenarios()}


def rows_of(log: Log, table: str, **options: Any) -> list[dict[str, Any]]:
    stream = log.scan(table, None, read_options(**options))
    return stream.to_table().to_pylist() + [{"fault": fault.message} for fault in stream.faults]


def records(log: Log, options: ReadOptions, range_bytes: int | None) -> tuple[pa.Table, list[Fault], list[str]]:
    """Read records range by range, each as if it had been sent to another process."""
    faults: list[Fault] = []
    notes = Notes()
    arrow_schema = schema.RECORDS.select(RECORD_COLUMNS)
    parts = [
        pickle.dumps(part) for part in log.ranges(RECORD_COLUMNS, Pass(options, faults, notes, range_bytes=range_bytes))
    ]
    batches = [b for part in parts for b in read_range(pickle.loads(part), arrow_schema, Pass(options, faults))]
    return pa.Table.from_batches(batches, arrow_schema), faults, notes


@pytest.mark.sweep(1)
@pytest.mark.parametrize("scenario", ["transactions", "metadata_txn/names"])
def test_every_table(store: ObjectStore, golden: dict[str, str], scenario: str):
    local = kraftlog.open(GOLDEN / scenario / "log")
    remote = kraftlog.open(golden[scenario], storage_options=store.options)
    places = ("directory", "folder", "next_command")
    for table in TABLES:
        found, expected = rows_of(remote, table), rows_of(local, table)
        for row in [*found, *expected]:
            for name in places:
                row.pop(name, None)
        assert found == expected, table


@pytest.mark.parametrize(("isolation_level", "range_bytes"), [("read_uncommitted", 4096), ("read_committed", None)])
def test_records_of_every_scenario(
    store: ObjectStore, golden: dict[str, str], isolation_level: str, range_bytes: int | None
):
    options = ReadOptions(isolation_level=isolation_level, include_control=True)
    for scenario, uri in golden.items():
        if range_bytes is not None and scenario not in MANY_BATCHES:
            continue
        local = records(kraftlog.open(GOLDEN / scenario / "log"), options, None)
        remote = records(kraftlog.open(uri, storage_options=store.options), options, range_bytes)
        assert remote[0].equals(local[0]), scenario
        assert remote[1] == local[1], scenario
        assert [note for note in remote[2] if "read as a whole" not in note] == local[2], scenario


def test_read_committed_from_the_files_beside(store: ObjectStore, golden: dict[str, str]):
    """Of closed segments no log file is read to find transactions."""
    checked = 0
    for scenario in TRANSACTIONAL:
        for folder in sorted((GOLDEN / scenario / "log").glob("*-[0-9]*")):
            log = kraftlog.open(f"{golden[scenario]}/{folder.name}", storage_options=store.options)
            closed = [segment.path.name for segment in log.found.segments[:-1]]
            notes = Notes()
            store.forget()
            parts = list(log.ranges(["offset"], Pass(ReadOptions(isolation_level="read_committed"), notes=notes)))
            assert len(parts) <= len(log.found.segments)
            if closed and not any("read as a whole" in note for note in notes):
                assert sum(store.bytes_of(name) for name in closed) == 0, folder
                checked += 1
    assert checked > 5


@pytest.mark.sweep(4)
@pytest.mark.parametrize("leave_out", [(".index", ".snapshot", ".txnindex"), (".snapshot",)], ids=len)
@pytest.mark.parametrize("scenario", TRANSACTIONAL)
def test_read_committed_without_the_files_beside(store: ObjectStore, scenario: str, leave_out: tuple[str, ...]):
    uri = store.put(GOLDEN / scenario / "log", f"without-{len(leave_out)}/{scenario}", leave_out)
    options = ReadOptions(isolation_level="read_committed")
    found, _, notes = records(kraftlog.open(uri, storage_options=store.options), options, 4096)
    assert found.equals(records(kraftlog.open(GOLDEN / scenario / "log"), options, None)[0])
    assert any("log files are read as a whole" in note for note in notes)


def test_read_committed_within_bounds(store: ObjectStore, golden: dict[str, str]):
    local = kraftlog.open(GOLDEN / "transactions" / "log" / "orders-0")
    remote = kraftlog.open(f"{golden['transactions']}/orders-0", storage_options=store.options)
    for start in range(0, 140, 20):
        options = ReadOptions(isolation_level="read_committed", start_offset=start, end_offset=start + 30)
        assert records(remote, options, None)[0].equals(records(local, options, None)[0])


def test_a_damaged_txnindex_is_not_believed(store: ObjectStore):
    uri = store.put(GOLDEN / "transactions" / "log" / "orders-0", "cut/orders-0")
    index = GOLDEN / "transactions" / "log" / "orders-0" / "00000000000000000032.txnindex"
    store.write("cut/orders-0/00000000000000000032.txnindex", index.read_bytes()[:-1])
    options = ReadOptions(isolation_level="read_committed")
    expected = records(kraftlog.open(index.parent), options, None)[0]
    assert records(kraftlog.open(uri, storage_options=store.options), options, None)[0].equals(expected)


@pytest.mark.parametrize("position", [0, 3063, 9098])
def test_offsets_that_do_not_ascend_are_not_believed(store: ObjectStore, tmp_path: Path, position: int):
    """No checksum covers the base offset of a batch."""
    folder = tmp_path / "orders-0"
    shutil.copytree(GOLDEN / "transactions" / "log" / "orders-0", folder)
    last = max(folder.glob("*.log"))
    data = bytearray(last.read_bytes())
    data[position : position + 8] = bytes(8)
    last.write_bytes(data)
    log = kraftlog.open(store.put(folder, f"offset-{position}/orders-0"), storage_options=store.options)
    options = ReadOptions(isolation_level="read_committed")
    assert records(log, options, None)[0].equals(records(kraftlog.open(folder), options, None)[0])


def test_visible_at(store: ObjectStore, golden: dict[str, str]):
    columns = ["offset", "visible_at", "transaction_state"]
    expected = kraftlog.open(GOLDEN / "transactions" / "log").records(columns).to_table()
    remote = kraftlog.open(golden["transactions"], storage_options=store.options)
    assert remote.records(columns).to_table().equals(expected)


@pytest.mark.sweep(30)
@pytest.mark.parametrize("case", damaged_cases(), ids=name_of)
def test_damaged(store: ObjectStore, case: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(RemoteFile, "window_bytes", 2048)
    uri = store.put(case / "log", name_of(case))
    local = records(kraftlog.open(case / "log"), ReadOptions(), None)
    remote = records(kraftlog.open(uri, storage_options=store.options), ReadOptions(), None)
    assert remote[0].equals(local[0])
    assert remote[1] == local[1]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("field", ["length", "magic", "crc"])
@pytest.mark.parametrize("salvage", [False, True])
def test_ranges_behind_damage(store: ObjectStore, tmp_path: Path, field: str, salvage: bool):
    """Index files name batches behind a damaged length; a reader of ranges comes to those of the whole file alone."""
    source = GOLDEN / "codecs" / "log" / "codec-zstd-0"
    position = {"length": 8, "magic": 16, "crc": 17}[field]
    assert min(source.glob("*.index")).stat().st_size >= 3 * 8  # entries
    starts = kraftlog.open(source).batches(["position"])["position"].to_pylist()
    fewer = 0
    for at, flipped in product(starts[1::5], (1, 3)):
        folder = tmp_path / f"{at}-{flipped}" / "codec-zstd-0"
        shutil.copytree(source, folder)
        file = min(folder.glob("*.log"))
        content = bytearray(file.read_bytes())
        if at + position + 3 >= len(content):
            continue
        content[at + position + (3 if field == "length" else 0)] ^= flipped << 4
        file.write_bytes(content)
        uri = store.put(folder, f"behind-damage-{field}-{at}-{flipped}/codec-zstd-0")
        local = kraftlog.open(folder).scan("records", None, read_options(salvage=salvage))
        expected = local.to_table()
        fewer += expected.num_rows < kraftlog.open(source).records(["offset"]).to_table().num_rows
        log = kraftlog.open(uri, storage_options=store.options)
        remote = log.scan("records", None, read_options(salvage=salvage), workers=3, range_bytes=4096)
        assert remote.to_table().equals(expected), (at, flipped)
        assert remote.faults == local.faults, (at, flipped)
    assert fewer > 0


@pytest.mark.parametrize("window_bytes", [1, 700, 1 << 14])
def test_windows(store: ObjectStore, golden: dict[str, str], window_bytes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(RemoteFile, "window_bytes", window_bytes)
    monkeypatch.setattr(remote_files, "READ_BYTES", 500)
    remote = kraftlog.open(f"{golden['codecs']}/codec-mixed-0", storage_options=store.options)
    local = kraftlog.open(GOLDEN / "codecs" / "log" / "codec-mixed-0")
    assert remote.records().to_table().equals(local.records().to_table())


def test_a_range_is_read_by_itself(store: ObjectStore, golden: dict[str, str]):
    log = kraftlog.open(f"{golden['codecs']}/codec-none-0", storage_options=store.options)
    segment = log.found.segments[0]
    store.forget()
    parts = [part for part in log.ranges(["value"], Pass(range_bytes=8192)) if part.segment is segment]
    assert len(parts) == 3
    assert store.bytes_of(segment.path.name) <= 128 * len(parts)
    store.forget()
    rows = sum(b.num_rows for b in read_range(parts[1], schema.RECORDS.select(["value"]), Pass()))
    assert rows > 0
    assert store.bytes_of(segment.path.name) == parts[1].end - parts[1].start < segment.size // 2


def test_bounds_read_what_they_need(store: ObjectStore, golden: dict[str, str]):
    uri = f"{golden['codecs']}/codec-none-0"
    local = kraftlog.open(GOLDEN / "codecs" / "log" / "codec-none-0")
    log = kraftlog.open(uri, storage_options=store.options)
    store.forget()
    assert log.records(["offset"], start_offset=60, end_offset=70).to_table()["offset"].to_pylist() == [*range(60, 70)]
    assert store.bytes_of(".log") < local.size_in_bytes // 5
    stamps = local.records(["timestamp_ms"]).to_table()["timestamp_ms"].to_pylist()
    for stamp in sorted(stamps)[::83]:
        found = log.records(["timestamp_ms"], start_timestamp=stamp).to_table()["timestamp_ms"].to_pylist()
        assert found == [each for each in stamps if each >= stamp]


def test_one_listing_for_a_log_directory(store: ObjectStore, golden: dict[str, str]):
    store.forget()
    log = kraftlog.open(golden["transactions"], storage_options=store.options)
    assert len(log.found.segments) > 5
    others = [key for _, key, _ in store.requests if "list-type=2" not in key]
    assert store.listings() == 1
    named = {key.rpartition("/")[2] for key in others}
    assert named == {"log-start-offset-checkpoint", "recovery-point-offset-checkpoint"}


@pytest.mark.parametrize("path", ["", "/orders-del-7-0"])
def test_log_start_offset(store: ObjectStore, golden: dict[str, str], path: str):
    log = kraftlog.open(golden["deleted_records"] + path, partitions=[0], storage_options=store.options)
    local = kraftlog.open(GOLDEN / "deleted_records" / "log" / "orders-del-7-0")
    for level in ("read_uncommitted", "read_committed"):
        stream = log.records(["offset"], isolation_level=level)
        assert stream.to_table() == local.records(["offset"], isolation_level=level).to_table()
        assert stream.notes == [
            "orders-del-7-0: up to 30 records before the log start offset 91 are not shown; include_deleted shows them"
        ]


def test_paths(store: ObjectStore, golden: dict[str, str]):
    def opened(*paths: str) -> list[str]:
        return [segment.name for segment in kraftlog.open(list(paths), storage_options=store.options).found.segments]

    base = golden["codecs"]
    file = "00000000000000000341.log"
    assert opened(f"{base}/codec-lz4-0/{file}") == [f"codec-lz4-0/{file}"]
    assert opened(f"{base}/codec-lz4-0/") == opened(f"{base}/codec-lz4-0/*.log")
    assert len(opened(f"{base}/codec-[lz]*-0")) == len(opened(f"{base}/codec-lz4-0", f"{base}/codec-zstd-0"))
    assert opened(f"{base.replace('s3:', 's3a:')}/codec-lz4-0", f"{base}/codec-lz4-0") == opened(f"{base}/codec-lz4-0")
    assert [
        entry.name
        for entry in kraftlog.open(f"{base}/codec-lz4-0/{file}", storage_options=store.options)
        .found.segments[0]
        .beside.values()
    ]


def test_options_in_the_uri(store: ObjectStore, golden: dict[str, str]):
    uri = golden["codecs"].replace("s3://", "s3://key:secret@")
    log = kraftlog.open(f"{uri}/codec-lz4-0?region=us-east-1&endpoint_override={store.options['endpoint_override']}")
    assert len(log.found.segments) == 2
    assert "secret" not in repr(log.found.segments) + str(log.folders)


def test_what_is_not_there(store: ObjectStore, golden: dict[str, str]):
    for path in ("nothing", "nothing/*.log", "codecs/codec-lz4-0/00000000000000000009.log"):
        with pytest.raises(FileNotFoundError, match=f"s3://bucket/{path.split('*')[0]}"):
            kraftlog.open(f"s3://bucket/{path}", storage_options=store.options)
    with pytest.raises(ValueError, match="unexpected keyword argument 'regoin'"):
        kraftlog.open("s3://bucket/codecs", storage_options={**store.options, "regoin": "us-east-1"})
    with pytest.raises(ValueError, match="neither pyarrow nor fsspec has a file system for nowhere://"):
        kraftlog.open("nowhere://bucket/codecs")


def test_an_object_that_is_gone(store: ObjectStore):
    key = "gone/codec-lz4-0"
    log = kraftlog.open(store.put(GOLDEN / "codecs" / "log" / "codec-lz4-0", key), storage_options=store.options)
    segment = log.found.segments[0]
    assert isinstance(segment.path, RemotePath)
    store.delete(segment.path.key)
    stream = log.records(["offset"])
    assert stream.to_table()["offset"].to_pylist()[0] == 341
    assert [(fault.error, str(segment.path) in fault.message) for fault in stream.faults] == [("unreadable_file", True)]
    with pytest.raises(CorruptRecordError, match=str(segment.path)):
        log.records(["offset"], strict=True).to_table()


def test_a_lost_connection(store: ObjectStore, golden: dict[str, str]):
    log = kraftlog.open(f"{golden['codecs']}/codec-lz4-0", storage_options=store.options)
    segment = log.found.segments[0]
    store.broken = segment.path.name
    try:
        stream = log.records(["offset"])
        assert stream.to_table()["offset"].to_pylist()[0] == 341
        (fault,) = stream.faults
    finally:
        store.broken = None
    assert fault.error == "unreadable_file"
    assert f"{segment.path}: bytes 0 to {segment.size}: " in fault.message


def test_recover_changes_local_files_only(store: ObjectStore, golden: dict[str, str]):
    from kraftlog.write.recover import partition_folders

    log = kraftlog.open(f"{golden['codecs']}/codec-lz4-0", storage_options=store.options)
    with pytest.raises(ValueError, match="expected a local file"):
        partition_folders([log.found.segments[0].path.parent])


def test_image(store: ObjectStore, golden: dict[str, str]):
    local = kraftlog.open(GOLDEN / "metadata" / "log").image(85).image.tables()
    log = kraftlog.open(golden["metadata"], storage_options=store.options)
    assert log.image(85).image.tables() == local


@pytest.mark.parametrize(
    ("command", "path"),
    [("records", "codecs/log/codec-lz4-0"), ("dump", "codecs/log/codec-lz4-0"), ("image", "metadata/log")],
)
def test_command_line(
    store: ObjectStore, golden: dict[str, str], monkeypatch: pytest.MonkeyPatch, command: str, path: str
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(store.options["endpoint_override"]))
    remote = CliRunner().invoke(commands, [command, f"s3://bucket/{path.replace('/log', '')}"])
    local = CliRunner().invoke(commands, [command, str(GOLDEN / path)])
    assert remote.stdout.replace("s3://bucket/codecs/", f"{GOLDEN}/codecs/log/") == local.stdout
    assert (remote.exit_code, len(local.stdout) > 1000) == (0, True)


def test_fsspec():
    memory = fsspec.filesystem("memory")
    folder = GOLDEN / "transactions" / "log"
    memory.put(str(folder), "/backup/logs", recursive=True)
    try:
        remote = kraftlog.open("memory://backup/logs")
        local = kraftlog.open(folder)
        for options in (ReadOptions(), ReadOptions(isolation_level="read_committed")):
            assert records(remote, options, 1024)[0].equals(records(local, options, None)[0])
        assert rows_of(remote, "index_entries") == rows_of(local, "index_entries")
        with pytest.raises(FileNotFoundError, match="memory://backup/other"):
            kraftlog.open("memory://backup/other")
    finally:
        memory.rm("/backup", recursive=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("logs/orders-0", Path("logs/orders-0")),
        ("file:///var/log%20files/orders-0", Path("/var/log files/orders-0")),
        ("s3a://b/logs/", RemotePath("s3://b", "logs")),
        ("s3://b", RemotePath("s3://b")),
        ("hdfs://host:8020/kafka/orders-0", RemotePath("hdfs://host:8020", "kafka/orders-0")),
        ("s3://b/x-?/0.log", RemotePath("s3://b", "x-?/0.log")),
        ("s3://b/x?region=r", RemotePath("s3://b", "x", (("region", "r"),))),
    ],
)
def test_log_path(given: str, expected: object):
    assert log_path(given) == expected


def test_remote_paths():
    path = RemotePath("s3://b", "logs/orders-0/0.log", (("region", "r"),))
    assert (path.name, path.parent.name, path.parent.parent.parent.name) == ("0.log", "orders-0", "b")
    assert path.with_name("0.index") == path.parent / "0.index"
    assert pickle.loads(pickle.dumps(path)) == path
    assert str(path.parent.parent.parent.parent) == "s3://b"
