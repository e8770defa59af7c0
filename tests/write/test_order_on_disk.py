"""The order in which a log comes to disk, by the steps of the disk: a crash behind any of them leaves a sound log."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, FaultyFile, Step, io_error, since
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import use_disk
from kraftlog.layout.checkpoints import read_leader_epochs
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.types import Buffer
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import RECOVERY_POINT_FILE, RecoveryPoint
from kraftlog.write.replaced_segments import remove_segment

EPOCHS = "leader-epoch-checkpoint"
SMALL = LogOptions(segment_bytes=200)  # one batch of ``batches``


def batches(count: int, base_offset: int = 0, **options: object) -> bytes:
    """Return batches of one record each."""
    rows = pa.record_batch({"value": ["x" * 90] * count})
    return kraftlog.encode(rows, base_offset=base_offset, max_batch_records=1, **options).to_pybytes()


def log_file(offset: int) -> str:
    return f"{offset:020d}.log"


def done(steps: list[Step]) -> list[tuple[str, str]]:
    return [(step.name, step.path.name) for step in steps]


def live(folder: Path) -> list[int]:
    """Return the base offsets of the segments."""
    return sorted(int(path.stem) for path in folder.glob("*.log"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "t-0"
    folder.mkdir()
    return folder


def test_the_recovery_point_of_a_torn_log_is_written_behind_its_repair(folder: Path):
    (folder / log_file(0)).write_bytes(batches(3, partition_leader_epoch=5) + b"torn")
    with use_disk(FaultyDisk()) as disk:
        PartitionLog(find_log_end(folder), recovery_point=RecoveryPoint(folder)).abandon()
    steps = done(disk.steps)
    point = steps.index(("rename", RECOVERY_POINT_FILE))
    assert steps.index(("truncate", log_file(0))) < steps.index(("sync", log_file(0))) < point
    assert steps.index(("rename", EPOCHS)) < point


def test_a_recovery_point_moves_behind_the_sync(folder: Path):
    lock = threading.RLock()
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), LogOptions(fsync="close"), RecoveryPoint(folder))
        for number, moves in enumerate(("rename", "pwrite", "pwrite")):  # made anew once, then written in place
            log.append(batches(1, number), commit=True)
            before = len(disk.steps)
            assert log.sync(lock) == log.next_offset == number + 1
            steps = done(disk.steps[before:])
            assert steps.index(("sync", log_file(0))) < [name for name, _ in steps].index(moves)
            assert RecoveryPoint(folder).offset == number + 1
        log.abandon()


def test_a_sync_that_failed_is_not_made_up_for_by_the_next_one(folder: Path):
    """Which succeeds, although what the first one lost is not on disk."""
    lock = threading.RLock()
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), LogOptions(fsync="close"), RecoveryPoint(folder))
        log.append(batches(1), commit=True)
        disk.fails = lambda step: io_error() if step.name == "sync" else None
        with pytest.raises(OSError, match="Input/output error"):
            log.sync(lock)
        disk.fails = lambda _: None
        with pytest.raises(OSError, match="an earlier write failed"):
            log.sync(lock)
        with pytest.raises(OSError, match="an earlier write failed"):
            log.append(batches(1, 1), commit=True)
        assert RecoveryPoint(folder).offset == 0
        log.abandon()


@pytest.mark.parametrize("adopted", [False, True])
def test_a_log_that_begins_late_has_a_snapshot_where_it_begins(folder: Path, adopted: bool):
    """As a replica of Kafka has it that begins at another offset than 0; it is there before the first segment."""
    data = batches(2, 100, producer_id=7, producer_epoch=0, base_sequence=0)
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder, start_offset=100))
        if adopted:
            (folder.parent / "staged").write_bytes(data)
            (headers,) = HeaderScan(data).headers()
            log.adopt(folder.parent / "staged", headers)
        else:
            log.append(data, commit=True)
        log.abandon()
    assert read_producer_snapshot(folder / f"{100:020d}.snapshot") == []
    steps = done(disk.steps)
    made = ("rename" if adopted else "create", log_file(100))
    assert steps.index(("rename", f"{100:020d}.snapshot")) < steps.index(made)


def test_a_segment_is_finished_before_one_is_adopted_behind_it(folder: Path):
    data = batches(2, 3)
    (folder.parent / "staged").write_bytes(data)
    (headers,) = HeaderScan(data).headers()
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), LogOptions(fsync="close"))
        log.append(batches(3), commit=True)
        log.adopt(folder.parent / "staged", headers)
        log.abandon()
    steps = done(disk.steps)
    adopted = steps.index(("rename", log_file(3)))
    for step in (
        ("sync", log_file(0)),
        ("rename", f"{0:020d}.index"),
        ("rename", f"{0:020d}.timeindex"),
        ("rename", f"{3:020d}.snapshot"),
        ("sync_file", "staged"),
    ):
        assert steps.index(step) < adopted, step


def test_an_epoch_is_on_disk_when_it_begins(folder: Path):
    with use_disk(FaultyDisk()):
        log = PartitionLog(find_log_end(folder))
        for epoch in (3, 5):
            log.begin_epoch(epoch)
            assert read_leader_epochs(folder / EPOCHS) == [(epoch, 0)]
        log.abandon()


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_recovery_point_that_is_not_kept_goes_when_the_log_is_closed(folder: Path, is_closed: bool):
    with use_disk(FaultyDisk()):
        log = PartitionLog(find_log_end(folder), recovery_point=RecoveryPoint(folder, keeps=False))
        log.append(batches(3), commit=True)
        log.close() if is_closed else log.abandon()
        assert RecoveryPoint(folder).offset == (None if is_closed else 3)


@pytest.mark.parametrize(("recovery_point", "start"), [(None, 0), (2, 2), (3, 3), (5, None)])
def test_what_may_not_be_on_disk_is_written_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, recovery_point: int | None, start: int | None
):
    """From the recovery point on: an fsync behind it may have failed, and the next one passes over what that lost."""
    (folder / log_file(0)).write_bytes(batches(5))
    (headers,) = HeaderScan((folder / log_file(0)).read_bytes()).headers()
    written: list[tuple[int, int]] = []

    def noted(file: FaultyFile, data: Buffer, position: int) -> None:
        if file.path.suffix == ".log":
            written.append((position, position + memoryview(data).nbytes))
        pwrite(file, data, position)

    pwrite = FaultyFile.pwrite
    monkeypatch.setattr(FaultyFile, "pwrite", noted)
    with use_disk(FaultyDisk()):
        PartitionLog(find_log_end(folder, recovery_point=recovery_point, index_interval_bytes=1)).abandon()
    size = (folder / log_file(0)).stat().st_size
    assert not written if start is None else written
    if start is not None:
        assert written[0][0] <= int(headers["position"][start])
        assert written[-1][1] == size
        assert sum(end - begin for begin, end in written) == size - written[0][0]


def test_segments_behind_damage_go_without_a_hole(folder: Path):
    for base in (0, 2, 4, 6):
        (folder / log_file(base)).write_bytes(batches(2, base))
    first = folder / log_file(0)
    first.write_bytes(first.read_bytes()[:-4])

    def repaired(at: Path, disk: FaultyDisk) -> None:
        with use_disk(disk):
            PartitionLog(find_log_end(at, recovery_point=1)).abandon()

    whole = FaultyDisk()
    repaired(Path(shutil.copytree(folder, folder.parent / "whole-0")), whole)
    assert live(folder.parent / "whole-0") == [0]
    for number in range(len(whole.steps)):
        stopped = Path(shutil.copytree(folder, folder.parent / f"stopped-{number}"))
        with pytest.raises(OSError, match="Input/output error"):
            repaired(stopped, FaultyDisk(since(number)))
        assert live(stopped) in ([0], [0, 2], [0, 2, 4], [0, 2, 4, 6]), whole.steps[number]
        repaired(stopped, FaultyDisk())
        assert live(stopped) == [0]


def test_snapshots_between_segments_are_made(folder: Path):
    """Of all segments behind the recovery point that lack one, as the log has them."""
    producer = {"producer_id": 7, "producer_epoch": 0}
    for base in (0, 2, 4):
        (folder / log_file(base)).write_bytes(batches(2, base, **producer, base_sequence=base))
    PartitionLog(find_log_end(folder, recovery_point=0)).abandon()
    for base in (2, 4):
        (state,) = read_producer_snapshot(folder / f"{base:020d}.snapshot")
        assert (state.producer_id, state.last_sequence, state.last_offset) == (7, base - 1, base - 1)


def fail_in_last_segment(disk: FaultyDisk, name: str) -> None:
    disk.fails = lambda step: io_error() if (step.name, step.path.name) == ("append", name) else None


def test_a_failed_append_takes_its_segments_back_from_the_last_one_on(folder: Path):
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), SMALL)
        log.append(batches(1), commit=True)
        fail_in_last_segment(disk, log_file(4))
        with pytest.raises(OSError, match="was cut back"):
            log.append(batches(5, 1), commit=True)
        log.abandon()
    gone = [step.path.name for step in disk.steps if step.name == "unlink" and step.path.suffix == ".log"]
    assert gone == [log_file(4), log_file(3), log_file(2), log_file(1)]
    assert live(folder) == [0]


def test_a_failed_append_leaves_the_segments_of_those_before_it(folder: Path):
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), SMALL)
        log.append(batches(3), commit=True)
        fail_in_last_segment(disk, log_file(3))
        with pytest.raises(OSError, match="was cut back"):
            log.append(batches(1, 3), commit=True)
        log.abandon()
    assert live(folder) == [0, 1, 2]
    assert find_log_end(folder).next_offset == 3


@pytest.fixture
def rolled(folder: Path) -> Path:
    """Return the folder of a closed log with segments at offsets 0 to 3."""
    with use_disk(FaultyDisk()), PartitionLog(find_log_end(folder), SMALL) as log:
        log.append(batches(4), commit=True)
    assert live(folder) == [0, 1, 2, 3]
    return folder


def test_segments_before_an_offset_go_from_the_oldest_one_on(rolled: Path):
    """Their names are gone on disk when the call returns."""
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(rolled))
        before = len(disk.steps)
        log.delete_before(2, producer_id=7)
        log.abandon()
    steps = done(disk.steps[before:])
    assert [name for step, name in steps if step == "unlink" and name.endswith(".log")] == [log_file(0), log_file(1)]
    assert max(at for at, (step, _) in enumerate(steps) if step == "unlink") < steps.index(("sync_folder", "t-0"))
    assert live(rolled) == [2, 3]


def test_a_segment_is_gone_on_disk_before_the_next_one(rolled: Path):
    """Else it could come back without its followers."""
    with use_disk(FaultyDisk()) as disk:
        for base in (0, 1):
            remove_segment(rolled, base)
    steps = [each for each in done(disk.steps) if each[0] == "sync_folder" or each[1].endswith(".log")]
    assert steps == [("unlink", log_file(0)), ("sync_folder", "t-0"), ("unlink", log_file(1)), ("sync_folder", "t-0")]
    assert {int(path.stem) for path in rolled.iterdir() if path.name != EPOCHS} == {2, 3, 4}
