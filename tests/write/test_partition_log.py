"""PartitionLog: a log of a real Kafka is written again with all files beside it; what is refused, what is cut."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk
from golden_files import GOLDEN
from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.disk.disk import use_disk
from kraftlog.layout.checkpoints import read_leader_epochs
from kraftlog.layout.index_files import ENTRY_TYPES
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot
from kraftlog.read.index_interval import shown_interval
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import (
    RecoveryPoint,
    RecoveryPointFile,
    read_recovery_points,
    record_recovery_points,
)

ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
KINDS = ("log", "index", "timeindex", "txnindex", "snapshot")


def batches(count: int, base_offset: int = 0, **options: object) -> bytes:
    rows = pa.record_batch({"value": [f"value {number}" for number in range(count)]})
    return kraftlog.encode(rows, base_offset=base_offset, max_batch_records=1, **options).to_pybytes()


def offsets(folder: Path) -> list[int]:
    return kraftlog.open(folder).records(["offset"]).to_table()["offset"].to_pylist()


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix[1:] in KINDS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "t-0"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("partition", [0, 1, 2])
def test_a_log_of_kafka_is_written_again(tmp_path: Path, partition: int, adopted: bool):
    """Logs, indexes and producer snapshots byte for byte, with transactions that go on from segment to segment."""
    golden = ORDERS.with_name(f"orders-{partition}")
    folder = tmp_path / golden.name
    folder.mkdir()
    interval = shown_interval(kraftlog.open(golden).found.segments)
    for number, path in enumerate(sorted(golden.glob("*.log"))):
        end = find_log_end(folder, index_interval_bytes=interval)  # a new writer for each segment
        with PartitionLog(end) as log:
            assert log.next_offset == int(path.stem)
            if adopted:
                shutil.copy(path, tmp_path / "staged")
                (headers,) = HeaderScan(path.read_bytes()).headers()
                log.adopt(tmp_path / "staged", headers)
            else:
                if number:
                    log.roll()
                log.append(path.read_bytes(), commit=True)
    expected = {name: data for name, data in files(golden).items() if data or not name.endswith("txnindex")}
    assert files(folder) == expected
    for name in ("leader-epoch-checkpoint",):
        assert read_leader_epochs(folder / name) == read_leader_epochs(golden / name)


def test_producers_are_those_of_the_log(folder: Path):
    producer = {"producer_id": 7, "producer_epoch": 3, "is_transactional": True}
    with PartitionLog(find_log_end(folder)) as log:
        log.append(batches(2, **producer, base_sequence=0), commit=True)
        log.roll()
        log.append(batches(3, 2, **producer, base_sequence=2), commit=True)
    rolled, closed = (read_producer_snapshot(folder / f"{offset:020d}.snapshot") for offset in (2, 5))
    for (state,), sequence in ((rolled, 1), (closed, 4)):
        assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 3, sequence)
        assert (state.last_offset, state.current_transaction_first_offset) == (sequence, 0)


def test_producers_that_were_idle_are_left_out(folder: Path):
    """Not those with an open transaction, whose marker is to come; as with Kafka."""
    idle, late = batches(1, producer_id=7, producer_epoch=0, base_sequence=0, timestamp_ms=50), 200
    unended = batches(1, 1, producer_id=8, producer_epoch=0, base_sequence=0, timestamp_ms=50, is_transactional=True)
    active = batches(1, 2, producer_id=9, producer_epoch=0, base_sequence=0, timestamp_ms=late)
    with PartitionLog(find_log_end(folder), LogOptions(least_timestamp=100)) as log:
        log.append(idle + unended + active, commit=True)
    states = read_producer_snapshot(folder / f"{3:020d}.snapshot")
    assert [(state.producer_id, state.current_transaction_first_offset) for state in states] == [(8, 1), (9, None)]


def test_producers_behind_a_snapshot_are_those_of_the_log(folder: Path):
    """From its offset on: the first batch there counts."""
    for base, producer_id in ((0, 6), (1, 7), (2, 8)):
        data = batches(1, base, producer_id=producer_id, producer_epoch=0, base_sequence=base)
        (folder / f"{base:020d}.log").write_bytes(data)
    (folder / f"{1:020d}.snapshot").write_bytes(producer_snapshot_bytes([]))
    states = find_log_end(folder).producers.states()
    assert [(state.producer_id, state.last_offset) for state in states] == [(7, 1), (8, 2)]


def test_files_do_not_depend_on_how_batches_are_appended(tmp_path: Path):
    """One by one, or all at once over several segments."""
    rows = pa.record_batch({"value": ["x" * 1500] * 40})
    data = kraftlog.encode(rows, max_batch_records=1, timestamp_ms=5).to_pybytes()
    (headers,) = HeaderScan(data).headers()
    starts, stops = headers["position"].tolist(), ends(headers).tolist()
    found = []
    for name, pieces in (("a", [data]), ("b", [data[at:end] for at, end in zip(starts, stops, strict=True)])):
        folder = tmp_path / name / "t-0"
        folder.mkdir(parents=True)
        with use_disk(FaultyDisk()), PartitionLog(find_log_end(folder), LogOptions(segment_bytes=20_000)) as log:
            for piece in pieces:
                log.append(piece, commit=True)
        found.append(files(folder))
        assert [fault.message for fault in kraftlog.open(folder).verify()] == []
    assert found[0] == found[1]
    assert sum(len(content) > 16 for name, content in found[0].items() if name.endswith(".index")) > 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (batches(1, 4), "batch 0: expected offset 3 and magic 2, found offset 4 and magic 2"),
        (batches(1, 2), "batch 0: expected offset 3 and magic 2, found offset 2"),
        (batches(1, 3) + batches(1, 5), "batch 1: expected offset 4 and magic 2, found offset 5"),
        (batches(2, 3)[:-1], "bytes at the end are a truncated batch"),
    ],
)
def test_what_does_not_follow_is_refused(folder: Path, data: bytes, message: str):
    with PartitionLog(find_log_end(folder)) as log:
        log.append(batches(3), commit=True)
        before = files(folder)
        with pytest.raises(ValueError, match=message):
            log.append(data, commit=True)
        (headers,) = HeaderScan(data).headers()
        if "truncated" not in message:
            with pytest.raises(ValueError, match=message):
                log.adopt(folder / "staged", headers)
        assert files(folder) == before
        log.append(batches(1, 3), commit=True)
    assert offsets(folder) == [0, 1, 2, 3]


def test_old_formats_are_refused(folder: Path):
    data = bytearray(batches(1))
    data[16] = 1
    with PartitionLog(find_log_end(folder)) as log, pytest.raises(ValueError, match="magic"):
        log.append(bytes(data), commit=True)


def test_relative_offsets_are_kept_within_four_bytes(folder: Path):
    far = 2**31 - 3
    (folder / f"{0:020d}.log").write_bytes(batches(1) + batches(1, far))
    with PartitionLog(find_log_end(folder, index_interval_bytes=4096)) as log:
        log.append(batches(2, far + 1), commit=True)
        log.append(batches(1, far + 3), commit=True)
    assert [int(path.stem) for path in sorted(folder.glob("*.log"))] == [0, far + 3]
    assert offsets(folder) == [0, *range(far, far + 4)]


def test_a_cut_takes_the_aborted_transactions_along(tmp_path: Path):
    """Index files of a torn segment hold nothing of what was cut off, and what Kafka would rebuild."""
    folder = tmp_path / "orders-0"
    shutil.copytree(ORDERS, folder)
    last = max(folder.glob("*.log"))
    (headers,) = HeaderScan(last.read_bytes()).headers()
    whole = np.frombuffer(last.with_suffix(".txnindex").read_bytes(), ENTRY_TYPES["txnindex"])
    marker = int(np.flatnonzero(headers["base_offset"] == whole["last_offset"][-1])[0])
    last.write_bytes(last.read_bytes()[: int(headers["position"][marker]) + 5])
    kept = [tuple(entry) for entry in whole.tolist()[:-1]]
    assert len(kept) == 2
    stale = last.with_suffix(".txnindex").read_bytes()
    for there in (stale, b""):  # with an index that knows too much, and with none
        last.with_suffix(".txnindex").write_bytes(there)
        PartitionLog(find_log_end(folder)).close()
        found = np.frombuffer(last.with_suffix(".txnindex").read_bytes(), ENTRY_TYPES["txnindex"])
        assert [tuple(entry) for entry in found.tolist()] == kept
    assert [fault.message for fault in kraftlog.open(folder).verify()] == []


def test_snapshots_behind_the_end_go(folder: Path):
    with PartitionLog(find_log_end(folder)) as log:
        log.append(batches(3), commit=True)
    (folder / f"{9:020d}.snapshot").write_bytes(b"of what was cut off")
    (folder / f"{2:020d}.snapshot").write_bytes((folder / f"{3:020d}.snapshot").read_bytes())
    PartitionLog(find_log_end(folder)).close()
    assert [path.name for path in folder.glob("*.snapshot")] == [f"{3:020d}.snapshot"]


def damaged(data: bytes, batch: int) -> bytes:
    """Return batches with a bit flipped in the value of one of them."""
    (headers,) = HeaderScan(data).headers()
    changed = bytearray(data)
    changed[int(ends(headers)[batch]) - 2] ^= 1
    return bytes(changed)


def test_damage_behind_the_recovery_point_is_cut(folder: Path):
    """Nobody was told that these bytes are on disk; Kafka cuts there, too."""
    (folder / f"{0:020d}.log").write_bytes(damaged(batches(9), 4))
    for recovery_point in (None, 5, 9, 12):
        with pytest.raises(kraftlog.CorruptRecordError, match=r"t-0/0+.log: batch at byte \d+: .*there are sound"):
            find_log_end(folder, recovery_point=recovery_point)
    end = find_log_end(folder, recovery_point=4)
    assert end.next_offset == 4
    with PartitionLog(end) as log:
        log.append(batches(1, 4), commit=True)
    assert offsets(folder) == [0, 1, 2, 3, 4]


def test_segments_behind_the_cut_go(folder: Path):
    """After a loss of power a segment may lack its end although there are later ones."""
    for base in (0, 3, 6):
        (folder / f"{base:020d}.log").write_bytes(batches(3, base))
        (folder / f"{base:020d}.index").write_bytes(b"")
    (folder / f"{6:020d}.snapshot").write_bytes(b"")
    middle = folder / f"{3:020d}.log"
    middle.write_bytes(middle.read_bytes()[:-4])
    with use_disk(FaultyDisk()) as disk, PartitionLog(find_log_end(folder, recovery_point=5)) as log:
        assert log.next_offset == 5
        log.append(batches(1, 5), commit=True)
    assert next(step.path.name for step in disk.steps if step.name == "rename") == f"{6:020d}.log.deleted"
    assert offsets(folder) == [0, 1, 2, 3, 4, 5]
    assert [fault.message for fault in kraftlog.open(folder).verify()] == []


def test_segments_behind_a_torn_one_that_was_on_disk(folder: Path):
    for base in (0, 3):
        (folder / f"{base:020d}.log").write_bytes(batches(3, base))
    first = folder / f"{0:020d}.log"
    first.write_bytes(first.read_bytes()[: first.stat().st_size // 2])  # within the batch of offset 1
    with pytest.raises(kraftlog.CorruptRecordError, match=r"t-0/0+.log: torn tail of \d+ bytes; 1 segment follows"):
        find_log_end(folder, recovery_point=2)


def test_recovery_points_of_a_log_directory(tmp_path: Path):
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n2\nother 3 17\nt 0 5\n")
    point = RecoveryPoint(tmp_path / "t-0")
    assert point.offset == 5
    for offset in (6, 7):
        point.advance(offset)
        assert read_recovery_points(tmp_path) == {("other", 3): 17, ("t", 0): offset}
    point.record(8)
    record_recovery_points(tmp_path, {("u", 1): 2})
    assert read_recovery_points(tmp_path) == {("other", 3): 17, ("t", 0): 8, ("u", 1): 2}
    RecoveryPoint(tmp_path / "t-0", keeps=False).end(9)
    assert read_recovery_points(tmp_path) == {("other", 3): 17, ("u", 1): 2}
    point.close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n7\nnot so many\n")
    assert RecoveryPoint(tmp_path / "t-0").offset is None


def test_a_recovery_point_that_is_removed_does_not_come_back(tmp_path: Path):
    """With the next one that the same process writes."""
    points = RecoveryPointFile(tmp_path)
    points.record({("t", 0): 5, ("u", 1): 2})
    points.remove([("t", 0)])
    assert points.get(("t", 0)) is None
    for offset in (3, 4):
        points.advance(("u", 1), offset)
        assert read_recovery_points(tmp_path) == {("u", 1): offset}
    points.record({("v", 0): 1})
    assert read_recovery_points(tmp_path) == {("u", 1): 4, ("v", 0): 1}
    points.close()


def test_the_recovery_point_follows_what_is_on_disk(folder: Path):
    for fsync, inside, expected in (("commit", 0, 3), ("batch", 2, 3), ("close", 0, 0)):
        shutil.rmtree(folder)
        folder.mkdir()
        log = PartitionLog(find_log_end(folder), LogOptions(fsync=fsync), RecoveryPoint(folder))
        log.append(batches(2), commit=False)
        assert RecoveryPoint(folder).offset == inside
        log.append(batches(1, 2), commit=True)
        assert RecoveryPoint(folder).offset == expected
        log.close()
        assert RecoveryPoint(folder).offset == 3
        (folder.parent / "recovery-point-offset-checkpoint").unlink()


@pytest.mark.parametrize("closed", [False, True])
def test_a_log_that_was_opened_is_not_one_that_a_broker_closed(folder: Path, closed: bool):
    """Before anything is changed: a broker that finds the file recovers nothing, and would take a torn tail."""
    (folder / "00000000000000000000.log").write_bytes(batches(2) + b"torn")
    marker = folder.parent / ".kafka_cleanshutdown"
    marker.touch()
    end = find_log_end(folder)
    assert marker.exists()  # it only reads
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(end)
    assert isinstance(disk, FaultyDisk)
    assert ".kafka_cleanshutdown" in str(disk.steps[0])
    assert not marker.exists()
    if closed:
        log.append(batches(1, 2), commit=True)
        log.close()
    assert not marker.exists()


@pytest.mark.parametrize("torn", [bytes(8), (1).to_bytes(8, "big")])
def test_a_torn_offset(folder: Path, torn: bytes):
    """The crc does not cover the offset of a batch, so that a batch whose first bytes were lost has the right one."""
    path = folder / f"{0:020d}.log"
    with PartitionLog(find_log_end(folder)) as log:
        log.append(batches(3), commit=True)
    data = path.read_bytes()
    last = int(next(HeaderScan(data).headers())["position"][-1])
    path.write_bytes(data[:last] + torn + data[last + 8 :])
    assert find_log_end(folder).next_offset == 2
    path.write_bytes(data[:last] + torn + data[last + 8 :] + batches(1, 3))
    with pytest.raises(kraftlog.CorruptRecordError, match=r"expected base_offset 2 or more, found [01]; there are"):
        find_log_end(folder)
    with PartitionLog(find_log_end(folder, recovery_point=2)) as log:
        log.append(batches(1, 2), commit=True)
    assert offsets(folder) == [0, 1, 2]
