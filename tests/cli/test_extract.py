"""``kraftlog extract``: what is copied is what readers of the log see within the same bounds."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, since
from golden_files import GOLDEN
from kraftlog.backup.extract import Extract
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.disk.disk import use_disk
from kraftlog.layout.checkpoints import read_leader_epochs
from kraftlog.read.index_interval import shown_interval

LOGS = [
    *("codecs", "compaction", "deleted_records", "transactions", "transactions_hanging", "transactions_live"),
    "transactions_tv0",
]
COLUMNS = [
    *("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers", "producer_id"),
    *("producer_epoch", "sequence", "is_transactional", "partition_leader_epoch"),
]
ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
Run = Callable[..., Any]


def source(name: str) -> Path:
    return GOLDEN / name / "log"


def user_topics(log: Path) -> list[str]:
    return [topic for topic in kraftlog.open(log).topics if not topic.startswith("__")]


def records(log: Path, *, committed: bool = False, columns: list[str] = COLUMNS, **given: Any) -> pa.Table:
    level = "read_committed" if committed else "read_uncommitted"
    return kraftlog.open(log, topics=user_topics(log)).records(columns, isolation_level=level, **given).to_table()


def some_bounds(log: Path, dice: random.Random) -> dict[str, int]:
    """Return bounds that lie within the log, or just outside of it."""
    rows = records(log, columns=["offset", "timestamp_ms"]).to_pydict()
    bounds = {}
    for name, values in (("offset", rows["offset"]), ("timestamp", rows["timestamp_ms"])):
        first, last = sorted(dice.choices(values, k=2))
        if dice.random() < 0.5:
            bounds[f"start_{name}"] = max(first - dice.randrange(2), 0)
        if dice.random() < 0.5:
            bounds[f"end_{name}"] = last + dice.randrange(2)
    return bounds


def errors_of(command: Run, log: Path) -> set[tuple[int, str]]:
    given = [word for topic in user_topics(log) for word in ("--topic", topic)]
    found = command("verify", log, *given, "--format", "jsonl", "--columns", "base_offset,error").stdout.splitlines()
    return {(row["base_offset"], row["error"]) for row in map(json.loads, found)}


def check_as_a_broker(command: Run, log: Path, target: Path) -> None:
    """All files are those that checks and recovery expect; what the log itself does wrong is copied."""
    if not kraftlog.open(target).partitions:
        return
    assert errors_of(command, target) <= errors_of(command, log)
    for folder in sorted(path for path in target.iterdir() if path.is_dir()):
        interval = shown_interval(kraftlog.open(log / folder.name).found.segments[:1])
        how = ["--rebuild", "--index-interval-bytes", interval, "--format", "jsonl", "--columns", "action,file,reason"]
        recovered = command("recover", folder, *how)
        assert recovered.returncode == 0, recovered.stdout
        assert [line for line in recovered.stdout.splitlines() if '"keep"' not in line] == []


def parts_that_ended_from(log: Path, timestamp_ms: int) -> list[dict[str, Any]]:
    """Return the transactions of partitions whose marker has this time or a later one."""
    columns = ["topic", "partition", "producer_id", "first_offset", "marker_offset", "end_timestamp_ms"]
    rows = kraftlog.open(log, topics=user_topics(log)).partition_transactions(columns).to_pylist()
    return [row for row in rows if row["end_timestamp_ms"] is not None and row["end_timestamp_ms"] >= timestamp_ms]


def is_of(row: dict[str, Any], parts: list[dict[str, Any]]) -> bool:
    return row["is_transactional"] and any(
        all(part[name] == row[name] for name in ("topic", "partition", "producer_id"))
        and (part["first_offset"] or 0) <= row["offset"] < part["marker_offset"]
        for part in parts
    )


@pytest.mark.parametrize("partition", range(3))
def test_transactions_that_are_open_at_the_time_of_a_partition_are_aborted(tmp_path: Path, partition: int):
    """Whichever marker is the first one after the time: none in the copy is later, and offsets stay."""
    golden = ORDERS.with_name(f"orders-{partition}")
    columns = ["base_offset", "control_type", "max_timestamp_ms", "producer_id", "producer_epoch", "crc"]
    rows = kraftlog.open(golden).batches(columns).to_pylist()
    markers = [row for row in rows if row["control_type"] is not None]
    for number, marker in enumerate(markers):
        end = marker["max_timestamp_ms"]
        done = kraftlog.extract(golden, tmp_path / str(number), end_timestamp=end, per_partition=True)
        copied = (
            kraftlog.open(tmp_path / str(number)).batches(columns).to_pylist()
            if done.partitions[0].written.records
            else []
        )
        found = {row["base_offset"]: row for row in copied if row["control_type"] is not None}
        for row in markers:
            one = found.pop(row["base_offset"], None)
            if row["max_timestamp_ms"] < end:
                assert one is None or one == row
            elif one is not None:
                assert (one["control_type"], one["producer_id"]) == ("ABORT", row["producer_id"])
                assert one["producer_epoch"] == row["producer_epoch"]
                assert one["max_timestamp_ms"] < end
        assert all(row["control_type"] == "ABORT" for row in found.values())  # open at the end of the log
        states = kraftlog.open(tmp_path / str(number)).partition_transactions(["state"]) if copied else None
        assert states is None or "open" not in states["state"].to_pylist()
        assert all(row["max_timestamp_ms"] < end for row in copied)


@pytest.mark.sweep(16)
@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("seed", range(6))
def test_records_are_those_of_the_log(kraftlog_command: Run, tmp_path: Path, name: str, seed: int):
    dice, log = random.Random(f"{name} {seed}"), source(name)
    bounds = some_bounds(log, dice) if seed else {}
    committed = dice.random() < 0.5
    compression = dice.choice([None, None, "none", "gzip", "snappy", "lz4", "zstd"])
    target = tmp_path / "copy"
    done = kraftlog.extract(
        *(log, target),
        topics=user_topics(log),
        committed=committed,
        compression=compression,
        per_partition=True,
        **bounds,
    )
    assert done.faults == []
    expected = records(log, committed=committed, **bounds)
    count = sum(one.written.records for one in done.partitions)
    if not count:
        assert expected.num_rows == 0
        return
    found = records(target)
    assert found.to_pylist() == expected.to_pylist()
    assert count == found.num_rows
    if compression:
        batches = kraftlog.open(target).batches(["compression", "is_control", "records_count"]).to_pylist()
        assert {row["compression"] for row in batches if not row["is_control"] and row["records_count"]} == {
            compression
        }
    transactions = kraftlog.open(log, topics=user_topics(log)).partition_transactions(["state"])["state"].to_pylist()
    if committed or "OPEN" not in map(str.upper, transactions):
        visible = records(log, committed=True, **bounds).to_pylist()
        if not committed:  # what ended later was open at the end time, and is aborted
            late = parts_that_ended_from(log, bounds.get("end_timestamp", 2**62))
            visible = [row for row in visible if not is_of(row, late)]
        assert records(target, committed=True).to_pylist() == visible
    check_as_a_broker(kraftlog_command, log, target)


@pytest.mark.parametrize("partition", range(3))
def test_a_whole_partition_is_copied_byte_for_byte(tmp_path: Path, partition: int):
    """Kafka's own index files and producer snapshots come out as well."""
    golden = ORDERS.with_name(f"orders-{partition}")
    done = kraftlog.extract(golden, tmp_path / "copy")
    (one,) = done.partitions
    assert one.written.copied_bytes == one.written.size_in_bytes == sum(p.stat().st_size for p in golden.glob("*.log"))
    for path in golden.iterdir():
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".metadata"):
            copy = tmp_path / "copy" / golden.name / path.name
            assert copy.exists() or path.stat().st_size == 0 or path.suffix == ".snapshot", path.name
            if copy.exists() and path.suffix not in (".index", ".timeindex"):  # the active ones are preallocated
                assert copy.read_bytes() == path.read_bytes(), path.name
    epochs = read_leader_epochs(tmp_path / "copy" / golden.name / "leader-epoch-checkpoint")
    assert epochs == read_leader_epochs(golden / "leader-epoch-checkpoint")


def test_batches_are_copied_unless_records_are_cut(tmp_path: Path):
    """Two batches are looked into: those of the first and of the last offset."""
    batches = kraftlog.open(ORDERS).batches(["base_offset", "last_offset", "size_in_bytes"]).to_pylist()
    wide = [row for row in batches if row["last_offset"] > row["base_offset"]]
    start, end = wide[1]["base_offset"] + 1, wide[-2]["last_offset"]
    done = kraftlog.extract(ORDERS, tmp_path / "copy", start_offset=start, end_offset=end)
    whole = [row for row in batches if start <= row["base_offset"] and row["last_offset"] < end]
    assert done.partitions[0].written.copied_bytes >= sum(row["size_in_bytes"] for row in whole)
    assert done.partitions[0].written.copied_bytes < done.partitions[0].written.size_in_bytes


def test_a_renamed_topic_begins_with_epoch_0_and_without_a_topic_id(tmp_path: Path):
    folder = tmp_path / "orders-0"
    shutil.copytree(ORDERS, folder)
    for path in folder.glob("*.log"):
        data = bytearray(path.read_bytes())
        kraftlog.rewrite_batches(data, partition_leader_epoch=7)
        path.write_bytes(data)
    (folder / "leader-epoch-checkpoint").unlink()
    kraftlog.extract(folder, tmp_path / "copy", rename={"orders": "restored"}, start_offset=40)
    renamed = tmp_path / "copy" / "restored-0"
    assert set(kraftlog.open(renamed).batches()["partition_leader_epoch"].to_pylist()) == {0}
    assert [epoch for epoch, _ in read_leader_epochs(renamed / "leader-epoch-checkpoint")] == [0]
    assert not (renamed / "partition.metadata").exists()
    kraftlog.extract(folder, tmp_path / "same")
    assert set(kraftlog.open(tmp_path / "same").batches()["partition_leader_epoch"].to_pylist()) == {7}


def test_markers_behind_the_bounds_end_the_transactions_of_what_is_copied(tmp_path: Path):
    rows = kraftlog.open(ORDERS).batches(["base_offset", "is_transactional", "is_control", "producer_id"]).to_pylist()
    first = next(row for row in rows if row["is_transactional"] and not row["is_control"])
    marker = next(
        row
        for row in rows
        if row["is_control"]
        and row["producer_id"] == first["producer_id"]
        and row["base_offset"] > first["base_offset"]
    )
    end = first["base_offset"] + 1
    kraftlog.extract(ORDERS, tmp_path / "copy", end_offset=end)
    copied = kraftlog.open(tmp_path / "copy").batches(["base_offset", "is_control"]).to_pylist()
    assert {row["base_offset"] for row in copied if row["base_offset"] >= end} >= {marker["base_offset"]}
    assert all(row["is_control"] for row in copied if row["base_offset"] >= end)
    assert "open" not in kraftlog.open(tmp_path / "copy").partition_transactions()["state"].to_pylist()


def damaged_copy(tmp_path: Path, at: int) -> tuple[Path, int]:
    """Return a copy of a log in which a byte of a batch is another one, and the base offset of that batch."""
    folder = tmp_path / "orders-0"
    shutil.copytree(ORDERS, folder)
    path = sorted(folder.glob("*.log"))[1]
    data = bytearray(path.read_bytes())
    headers = next(HeaderScan(bytes(data)).headers())
    data[int(ends(headers)[at]) - 1] ^= 1
    path.write_bytes(data)
    return folder, int(headers["base_offset"][at])


@pytest.mark.parametrize("at", [0, 3, 9])
def test_damage_is_named_and_the_rest_is_copied(kraftlog_command: Run, tmp_path: Path, at: int):
    folder, base_offset = damaged_copy(tmp_path, at)
    done = kraftlog_command("extract", folder, tmp_path / "copy")
    assert done.returncode == 1
    assert "crc" in done.stderr.lower()
    stream = kraftlog.open(folder).records(["offset", "value"])
    expected = stream.to_table()
    assert [fault.base_offset for fault in stream.faults] == [base_offset]
    assert records(tmp_path / "copy", columns=["offset", "value"]).to_pylist() == expected.to_pylist()
    assert kraftlog_command("verify", tmp_path / "copy").returncode == 0
    strict = kraftlog_command("extract", folder, tmp_path / "strict", "--strict")
    assert strict.returncode == 1
    assert not list(tmp_path.glob("strict*"))


def test_messages_of_old_formats_are_named_as_not_copied(kraftlog_command: Run, tmp_path: Path):
    done = kraftlog_command("extract", source("legacy") / "v1-none-0", tmp_path / "copy")
    assert done.returncode == 1
    assert "not_extracted" in done.stderr
    assert "magic 1" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "nothing"], "no topic 'nothing'"),
        (["--rename", "nothing=else"], "there is no topic 'nothing'"),
        (["--rename", "orders=a/b"], "a-z, A-Z, 0-9"),
        (["--rename", "orders"], "OLD=NEW"),
        (["--compression", "brotli"], "brotli"),
    ],
)
def test_what_is_refused(kraftlog_command: Run, tmp_path: Path, arguments: list[str], message: str):
    done = kraftlog_command("extract", source("transactions"), tmp_path / "copy", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_targets_that_are_refused(kraftlog_command: Run, tmp_path: Path):
    log, full, file = tmp_path / "log", tmp_path / "full", tmp_path / "file"
    shutil.copytree(ORDERS, log / "orders-0")
    full.mkdir()
    (full / "mine").touch()
    file.touch()
    (tmp_path / "busy.unfinished").mkdir()
    inside = log / "orders-0" / "copy"
    for target, message in ((full, "holds mine"), (file, "not a folder"), (inside, "lies in")):
        done = kraftlog_command("extract", log, target)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    done = kraftlog_command("extract", log, tmp_path / "busy")
    assert (done.returncode, "another process" in done.stderr) == (2, True)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert kraftlog_command("extract", log, empty).returncode == 0
    assert (empty / "orders-0").is_dir()


def test_of_two_replicas_of_a_partition_one_is_written(tmp_path: Path):
    for name in "ab":
        shutil.copytree(ORDERS, tmp_path / name / "orders-0")
    done = kraftlog.extract([tmp_path / "a", tmp_path / "b"], tmp_path / "copy")
    assert done.notes == ["1 partition has several replicas that agree; each offset is read once"]
    kraftlog.extract(tmp_path / "a", tmp_path / "alone")
    copies = (tmp_path / name / "orders-0" for name in ("copy", "alone"))
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in copies]
    assert files[0] == files[1]


def extract_on(disk: FaultyDisk, target: Path) -> Extract:
    with use_disk(disk):
        return kraftlog.extract(ORDERS, target, start_offset=10, end_offset=90)


def test_a_disk_that_fails_leaves_nothing_under_the_name(tmp_path: Path):
    """Each step in turn is where the disk is gone; all of the target is synced before it gets its name."""
    disk = FaultyDisk()
    extract_on(disk, tmp_path / "copy")
    renamed = next(step.number for step in disk.steps if step.name == "rename" and step.path.name.startswith("copy"))
    written = [step for step in disk.steps if step.name == "append" and step.number < renamed]
    synced = {step.path for step in disk.steps if step.name == "sync" and step.number < renamed}
    assert {step.path for step in written} <= synced
    for number in range(0, renamed + 1, 3):
        with pytest.raises(OSError, match="Input/output error"):
            extract_on(FaultyDisk(since(number)), tmp_path / f"copy-{number}")
        assert not (tmp_path / f"copy-{number}").exists()


KEPT = [name for name in COLUMNS if name not in ("key", "value", "headers")]
REDACT_KEY = b"0123456789abcdef"


@pytest.mark.sweep(7)
@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("compression", [None, "none", "zstd"])
def test_redacted_records_keep_all_else(
    kraftlog_command: Run, tmp_path: Path, name: str, compression: str | None, monkeypatch: pytest.MonkeyPatch
):
    """Offsets, times, producers, sequences and transactions stay, also where some records are cut off."""
    log, dice = source(name), random.Random(name)
    bounds = some_bounds(log, dice) if compression else {}
    monkeypatch.setenv("KRAFTLOG_REDACT_KEY", REDACT_KEY.decode())
    arguments = [word for topic in user_topics(log) for word in ("--topic", topic)]
    arguments += [f"--{name.replace('_', '-')}={number}" for name, number in bounds.items()]
    arguments += ["--per-partition", *(["--compression", compression] if compression else [])]
    rules = ["--redact", "key=hash", "--redact", "value.a=mask", "--redact", "header.*=null"]
    done = kraftlog_command("extract", log, tmp_path / "copy", *arguments, *rules)
    assert done.returncode == 0, done.stderr
    expected = records(log, **bounds)
    if not expected.num_rows:
        return
    found = records(tmp_path / "copy")
    assert found.select(KEPT).to_pylist() == expected.select(KEPT).to_pylist()
    for before, after in zip(expected.to_pylist(), found.to_pylist(), strict=True):
        key = before["key"]
        hashed = None if key is None else hmac.new(REDACT_KEY, key, hashlib.sha256).hexdigest().encode()
        assert after["key"] == hashed
        assert after["headers"] == [{"key": one["key"], "value": None} for one in before["headers"]]
        assert after["value"] in (b"***", None, before["value"])
        if after["value"] == before["value"] and after["value"] is not None:
            json.loads(after["value"])
    check_as_a_broker(kraftlog_command, log, tmp_path / "copy")
    sources = kraftlog.open(log, topics=user_topics(log)).partition_transactions(["state", "marker_offset"])
    if not bounds:
        copied = kraftlog.open(tmp_path / "copy").partition_transactions(["state", "marker_offset"])
        assert copied.to_pylist() == sources.to_pylist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--redact", "value"], "expected key=HOW"),
        (["--redact", "key=hash"], "hash needs a key"),
        (["--redact-key", str(ORDERS / "partition.metadata")], "--redact-key goes with --redact"),
    ],
)
def test_redaction_that_is_refused(
    kraftlog_command: Run, tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("KRAFTLOG_REDACT_KEY", raising=False)
    done = kraftlog_command("extract", ORDERS, tmp_path / "copy", *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 500, 3000])
def test_pieces_of_any_size_are_the_same_log(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch):
    """As much as fits is read at once; a batch may be larger."""
    monkeypatch.setattr("kraftlog.write.extracted_batches.PIECE_BYTES", size)
    bounds = {"start_offset": 10, "end_offset": 100}
    kraftlog.extract(ORDERS, tmp_path / "copy")
    for path in ORDERS.glob("*.log"):
        assert (tmp_path / "copy" / ORDERS.name / path.name).read_bytes() == path.read_bytes()
    kraftlog.extract(ORDERS, tmp_path / "part", **bounds)
    expected = kraftlog.open(ORDERS).records(COLUMNS, **bounds).to_table().to_pylist()
    assert kraftlog.open(tmp_path / "part").records(COLUMNS).to_table().to_pylist() == expected


def test_nothing_of_a_secret_is_left_in_the_files(kraftlog_command: Run, tmp_path: Path):
    with kraftlog.LogStore(tmp_path / "log") as store:
        store.create_topic("t")
        with store.producer("p") as producer:
            for end in (producer.commit_transaction, producer.abort_transaction):
                producer.begin_transaction()
                for value in (b'{"user": {"name": "secret"}, "n": 1.0}', b"secret", b'{"user": {"name": ["secret"]}}'):
                    producer.send("t", key=b"secret", value=value, headers=[("h", b"secret")])
                producer.flush()
                end()
    (tmp_path / "key").write_bytes(REDACT_KEY + b"\n")
    rules = ["key=hash", "value.user.name=hash", "header.h=mask"]
    given = [word for rule in rules for word in ("--redact", rule)]
    done = kraftlog_command("extract", tmp_path / "log", tmp_path / "copy", *given, "--redact-key", tmp_path / "key")
    assert (done.returncode, done.stderr) == (0, "2 keys or values are no JSON, and were redacted as a whole\n")
    for path in (tmp_path / "copy").rglob("*"):
        assert path.is_dir() or b"secret" not in path.read_bytes()
    first = kraftlog.open(tmp_path / "copy").records(["key", "value"]).to_table().to_pylist()[0]
    hashed = hmac.new(REDACT_KEY, b"secret", hashlib.sha256).hexdigest()
    assert first == {"key": hashed.encode(), "value": b'{"user":{"name":"%s"},"n":1.0}' % hashed.encode()}
    assert kraftlog_command("verify", tmp_path / "copy").returncode == 0
