"""A closed segment that has lost batches at its end: its index files, or a log that no cleaner has read, show it."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN

BASES = (0, 10, 20)
RECORDS = 30
SECOND = f"{10:020d}"


def batch(offset: int) -> bytes:
    table = pa.table({"value": [b"value %d" % offset]})
    return kraftlog.encode(table, base_offset=offset, timestamp_ms=1000 + offset, partition_leader_epoch=0).to_pybytes()


SIZE = len(batch(10))


def write(directory: Path, *, cleaned: int | None = None, recovery_point: int | None = None) -> Path:
    """Write a partition of three segments, with an entry in the index files for every other batch.

    Without a recovery point the directory was closed cleanly. ``cleaned`` is in the cleaner's checkpoint.
    """
    folder = directory / "orders-0"
    folder.mkdir(parents=True)
    for base in BASES:
        name = f"{base:020d}"
        batches = [batch(offset) for offset in range(base, base + 10)]
        (folder / f"{name}.log").write_bytes(b"".join(batches))
        starts = [sum(map(len, batches[:number])) for number in range(10)]
        entries = range(1, 10, 2)
        (folder / f"{name}.index").write_bytes(b"".join(struct.pack(">ii", n, starts[n]) for n in entries))
        times = [struct.pack(">qi", 1000 + base + n, n) for n in entries]
        (folder / f"{name}.timeindex").write_bytes(b"".join(times))
    if recovery_point is None:
        (directory / ".kafka_cleanshutdown").touch()
    else:
        (directory / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {recovery_point}\n")
    if cleaned is not None:
        content = f"0\n1\norders 0 {cleaned}\n" if cleaned else "0\n0\n"
        (directory / "cleaner-offset-checkpoint").write_text(content)
    return folder


def truncate(folder: Path, batches: int) -> None:
    """Leave some batches in the second segment."""
    path = folder / f"{SECOND}.log"
    path.write_bytes(path.read_bytes()[: batches * SIZE])


def message(batches: int) -> str:
    first = 10 + batches
    where = f"at byte {batches * SIZE}, the end of the file" if batches else "in an empty file"
    return (
        f"orders-0/{SECOND}.log: expected batches with offsets {first} to 19 before the next segment, "
        f"found none {where}: "
        f"{SECOND}.index has offset 19 at byte {9 * SIZE}, and {SECOND}.timeindex has offset 19 at timestamp 1019"
    )


def faults_of(path: Path | list[Path], **options: object) -> list[str]:
    stream = kraftlog.open(path).records(["offset"], **options)
    stream.to_table()
    return [fault.error for fault in stream.faults]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batches", [0, 1, 4, 8])
@pytest.mark.parametrize("cleaned", [None, 0, 20])
def test_records_and_errors(tmp_path: Path, batches: int, workers: int, cleaned: int | None) -> None:
    folder = write(tmp_path / "log", cleaned=cleaned)
    truncate(folder, batches)
    log = kraftlog.open(tmp_path / "log")
    stream = log.records(["offset"], workers=workers)
    lost = range(10 + batches, 20)
    assert stream.to_table()["offset"].to_pylist() == [offset for offset in range(RECORDS) if offset not in lost]
    (fault,) = stream.faults
    assert (fault.error, fault.position, fault.size_in_bytes) == ("missing_batches", batches * SIZE, 0)
    assert (fault.segment_base_offset, fault.base_offset, fault.message) == (10, 10 + batches, message(batches))
    (row,) = log.errors(workers=workers).to_pylist()
    assert (row["error"], row["position"], row["message"]) == (fault.error, fault.position, fault.message)
    with pytest.raises(kraftlog.CorruptRecordError, match="before the next segment"):
        log.records(["offset"], strict=True).to_table()


@pytest.mark.parametrize("batches", [0, 4])
def test_audits_and_transactions_name_it(tmp_path: Path, batches: int) -> None:
    folder = write(tmp_path / "log", cleaned=0)
    truncate(folder, batches)
    result = run_command("audit", str(tmp_path / "log"))
    assert (result.returncode, result.stderr.count("missing_batches")) == (1, 1)
    faults: list[kraftlog.Fault] = []
    kraftlog.open(tmp_path / "log").transactions(strict=False, faults=faults)
    assert [fault.message for fault in faults] == [message(batches)]


def test_verify_names_it_once(tmp_path: Path) -> None:
    """And does not also name each entry of the index without a batch."""
    folder = write(tmp_path / "log")
    truncate(folder, 0)
    result = run_command("verify", str(tmp_path / "log"), "--format", "jsonl")
    assert result.stdout.count("missing_batches") == 1
    assert "index_mismatch" not in result.stdout


@pytest.mark.parametrize("size", [0, -1, -30])
def test_missing_batches_contradict_no_index_of_transactions(tmp_path: Path, size: int) -> None:
    """Whether ``errors`` checks producers in the pass that decodes, or within bounds in another one, as tasks do."""
    directory = shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "log")
    path = directory / "orders-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:size])
    log = kraftlog.open(directory / "orders-0")
    expected = ["batch_cut_off" if size else "missing_batches"]
    for options in ({}, {"start_offset": 0}):
        assert log.errors(**options)["error"].to_pylist() == expected


def test_what_lies_outside_of_bounds_is_not_missed(tmp_path: Path) -> None:
    truncate(write(tmp_path / "log"), 4)
    assert faults_of(tmp_path / "log", start_offset=20) == []
    assert faults_of(tmp_path / "log", end_offset=14) == []
    assert faults_of(tmp_path / "log", start_offset=19) == ["missing_batches"]
    assert faults_of(tmp_path / "log", end_offset=15) == ["missing_batches"]


@pytest.mark.parametrize("batches", [0, 4])
@pytest.mark.parametrize("cleaned", [None, 20, 30])
def test_it_is_read_from_a_replica(tmp_path: Path, batches: int, cleaned: int | None) -> None:
    """In a log that was cleaned as well, where offsets may be missing otherwise."""
    paths = [tmp_path / "a", tmp_path / "b"]
    truncate(write(paths[0], cleaned=cleaned), batches)
    write(paths[1], cleaned=cleaned)
    (paths[0] / "meta.properties").write_text("node.id=1\n")
    log = kraftlog.open(paths)
    stream = log.records(["offset"])
    assert stream.to_table()["offset"].to_pylist() == list(range(RECORDS))
    assert stream.faults == []
    assert any(
        f"offsets {10 + batches} to 19 are read from {paths[1]}: {message(batches)}" in one for one in stream.notes
    )
    rows = log.replicas(["directory", "missing", "damaged"], faults=[]).to_pylist()
    assert rows[0]["missing"] == [{"first_offset": 10 + batches, "end_offset": 20}]
    (damage,) = rows[0]["damaged"]
    assert (damage["error"], damage["segment_base_offset"], damage["position"]) == (
        "missing_batches",
        10,
        batches * SIZE,
    )
    assert (rows[1]["missing"], rows[1]["damaged"]) == ([], [])


@pytest.mark.parametrize("salvages", [False, True])
@pytest.mark.parametrize("other", [0, 4, 6])
def test_a_replica_that_has_some_of_it(tmp_path: Path, other: int, salvages: bool) -> None:
    """What neither has is a fault; also if an earlier batch of the file is read from there."""
    paths = [tmp_path / "a", tmp_path / "b"]
    folder = write(paths[0])
    truncate(folder, 4)
    data = bytearray((folder / f"{SECOND}.log").read_bytes())
    data[SIZE + 17] ^= 1  # the checksum of offset 11
    (folder / f"{SECOND}.log").write_bytes(data)
    truncate(write(paths[1]), other)
    stream = kraftlog.open(paths).records(["offset"], salvage=salvages)
    there = {*range(RECORDS)} - {*range(max(4, other) + 10, 20)} - ({11} if other < 2 else set())
    assert stream.to_table()["offset"].to_pylist() == sorted(there)
    expected = ["missing_batches"] if other else ["bad_crc", "missing_batches"]
    assert [fault.error for fault in stream.faults] == expected
    assert stream.faults[-1].base_offset == 14


@pytest.mark.parametrize("batches", [0, 4])
def test_what_a_replica_has_is_no_fault_beside_damage_that_it_shares(tmp_path: Path, batches: int) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    truncate(write(paths[0]), batches)
    write(paths[1])
    for path in paths:
        last = path / "orders-0" / f"{20:020d}.log"
        data = bytearray(last.read_bytes())
        data[17] ^= 1  # the checksum of offset 20
        last.write_bytes(data)
    stream = kraftlog.open(paths).records(["offset"])
    assert stream.to_table()["offset"].to_pylist() == [offset for offset in range(RECORDS) if offset != 20]
    assert [(fault.error, fault.base_offset) for fault in stream.faults] == [("bad_crc", 20)]


def test_what_no_replica_has_stays_a_fault(tmp_path: Path) -> None:
    """Also in an empty file before others that are read from a replica."""
    paths = [tmp_path / "a", tmp_path / "b"]
    truncate(write(paths[0]), 0)
    write(paths[1])
    for path in paths:
        (path / "orders-0" / f"{0:020d}.log").write_bytes(b"")
    stream = kraftlog.open(paths).records(["offset"])
    assert stream.to_table()["offset"].to_pylist() == list(range(10, RECORDS))
    assert [(fault.error, fault.base_offset) for fault in stream.faults] == [("missing_batches", 0)]


def test_a_log_without_index_files_that_no_cleaner_has_read(tmp_path: Path) -> None:
    """An empty file cannot have been left by a cleaner; a file with batches may be of an extracted log."""
    folder = write(tmp_path / "log", cleaned=0)
    for path in folder.glob("*index"):
        path.unlink()
    truncate(folder, 0)
    log = kraftlog.open(tmp_path / "log")
    (fault,) = log.errors().to_pylist()
    assert fault["message"].endswith(
        "19 before the next segment, found none in an empty file: no cleaner has been there"
    )
    truncate(write(tmp_path / "other", cleaned=0), 4)
    for path in (tmp_path / "other/orders-0").glob("*index"):
        path.unlink()
    assert faults_of(tmp_path / "other") == []


@pytest.mark.parametrize("recovery_point", [30, None])
def test_a_crash_between_a_cleaning_and_its_checkpoint(tmp_path: Path, recovery_point: int | None) -> None:
    """The cleaner had replaced the file, and not yet written that it was there; a clean shutdown later does not."""
    folder = write(tmp_path / "log", cleaned=0, recovery_point=recovery_point)
    truncate(folder, 0)
    for kind in ("index", "timeindex"):
        (folder / f"{SECOND}.{kind}").write_bytes(b"")
    assert faults_of(tmp_path / "log") == []


@pytest.mark.parametrize("content", [b"", bytes(2400)])
@pytest.mark.parametrize("cleaned", [None, 20])
@pytest.mark.parametrize("recovery_point", [None, 5])
def test_a_cleaner_leaves_empty_files(
    tmp_path: Path, content: bytes, cleaned: int | None, recovery_point: int | None
) -> None:
    """With index files that are empty, or preallocated."""
    folder = write(tmp_path / "log", cleaned=cleaned, recovery_point=recovery_point)
    truncate(folder, 0)
    for kind in ("index", "timeindex"):
        (folder / f"{SECOND}.{kind}").write_bytes(content)
    assert faults_of(tmp_path / "log") == []
    assert kraftlog.open(tmp_path / "log").errors().num_rows == 0


@pytest.mark.parametrize(("recovery_point", "is_fault"), [(19, False), (20, True)])
@pytest.mark.parametrize("batches", [0, 4])
def test_index_files_behind_the_recovery_point_of_a_cleaned_log(
    tmp_path: Path, batches: int, recovery_point: int, is_fault: bool
) -> None:
    """A crash may have left those of before the cleaning."""
    truncate(write(tmp_path / "log", cleaned=30, recovery_point=recovery_point), batches)
    assert faults_of(tmp_path / "log") == ["missing_batches"] * is_fault


@pytest.mark.parametrize("batches", [0, 4])
def test_index_files_behind_the_recovery_point_of_another_log(tmp_path: Path, batches: int) -> None:
    """Where nothing was removed, what the index files name was there."""
    truncate(write(tmp_path / "log", cleaned=0, recovery_point=0), batches)
    assert faults_of(tmp_path / "log") == ["missing_batches"]


def test_entries_of_another_log_after_the_next_segment_show_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path / "log")
    truncate(folder, 0)
    (folder / f"{SECOND}.index").write_bytes(struct.pack(">ii", 10, 100))
    (folder / f"{SECOND}.timeindex").write_bytes(struct.pack(">qi", -1, 3))  # Kafka's entry without a timestamp
    assert faults_of(tmp_path / "log") == []


def test_a_damaged_last_batch_is_not_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "log") / f"{SECOND}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = kraftlog.open(tmp_path / "log")
    assert faults_of(tmp_path / "log") == ["bad_crc"]
    assert [row["error"] for row in log.errors().to_pylist()] == ["bad_crc"]
    (row,) = log.replicas(["damaged"], faults=[]).to_pylist()
    assert [one["error"] for one in row["damaged"]] == ["bad_crc"]


def test_the_last_segment_may_be_empty(tmp_path: Path) -> None:
    folder = write(tmp_path / "log", cleaned=0)
    (folder / f"{20:020d}.log").write_bytes(b"")
    assert faults_of(tmp_path / "log") == []


def test_zeros_are_as_good_as_no_bytes(tmp_path: Path) -> None:
    """A crash may leave the length of a file, and not its content."""
    path = write(tmp_path / "log") / f"{SECOND}.log"
    path.write_bytes(path.read_bytes()[: 4 * SIZE] + bytes(6 * SIZE))
    assert faults_of(tmp_path / "log") == ["missing_batches"]
    path.write_bytes(bytes(10 * SIZE))
    assert faults_of(tmp_path / "log") == ["missing_batches"]


@pytest.mark.parametrize("of", ["compaction", "releases/0.10.2.2/killed"])
def test_empty_segments_of_kafkas_cleaner(of: str) -> None:
    log = kraftlog.open(GOLDEN / of / "log")
    assert "missing_batches" not in log.errors()["error"].to_pylist()


def test_a_damaged_last_batch_stands_for_missing_ones_that_no_replica_has(tmp_path: Path) -> None:
    """Its own offset is read from a replica, but its fault stays: without it nothing would say that others are lost."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, left, damaged in zip(paths, (2, 10), (1, 3), strict=True):
        folder = write(path)
        truncate(folder, left)
        file = folder / f"{SECOND}.log"
        data = bytearray(file.read_bytes())
        data[damaged * SIZE + SIZE - 1] ^= 1
        file.write_bytes(data)
    (paths[0] / "meta.properties").write_text("node.id=1\n")
    stream = kraftlog.open(paths).records(["offset"])
    assert stream.to_table()["offset"].to_pylist() == [offset for offset in range(RECORDS) if offset != 13]
    assert [fault.error for fault in stream.faults] == ["bad_crc"]


@pytest.mark.parametrize("start_offset", [0, 12, 14, 16, 19])
def test_bounds_behind_what_a_replica_has(tmp_path: Path, start_offset: int) -> None:
    """The fault is at the end of a piece of the file; the offsets that follow it are those of the replica."""
    for name, batches in (("a", 3), ("b", 6)):
        truncate(write(tmp_path / name), batches)
    rows = kraftlog.open([tmp_path / "a", tmp_path / "b"]).records(["offset"], start_offset=start_offset)
    expected = [offset for offset in range(RECORDS) if offset >= start_offset and not 16 <= offset < 20]
    assert rows.to_table()["offset"].to_pylist() == expected
    assert "missing_batches" in {fault.error for fault in rows.faults}
