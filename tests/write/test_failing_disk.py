"""Each step of a writer fails in turn: what was acknowledged stays, there is no hole, and the next writer goes on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, Step, io_error, no_space, only, since
from kraftlog import MetadataLogWriter
from kraftlog.disk.disk import use_disk
from kraftlog.log_store.staged_write import begin, commit
from kraftlog.log_store.staging import Stager, StagingOptions
from kraftlog.log_store.write_id import write_of_batch
from kraftlog.write.leadership import find_metadata_log_end
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import RecoveryPoint
from metadata_oracle import visible
from topic_record import topic_record

OPTIONS = {"max_batch_bytes": 150, "segment_bytes": 300, "fsync": "commit"}
APPENDS = 8  # with these options two or three of them fill a segment
FAULTS = {
    "one step": only,
    "all steps from then on": since,
    "a full disk, until files are removed": lambda number: full(number),
}


def record(number: int, size: int = 22) -> bytes:
    return topic_record(f"{number}".zfill(size))


def full(number: int) -> Callable[[Step], BaseException | None]:
    """From a step on nothing can be written, but files can be removed and cut."""
    grows = ("create", "append", "pwrite", "make_folder")
    return lambda step: no_space() if step.number >= number and step.name in grows else None


def write(folder: Path, disk: FaultyDisk) -> list[bytes]:
    """Append until something fails; return what was acknowledged."""
    acknowledged: list[bytes] = []
    with use_disk(disk):
        try:
            with MetadataLogWriter(folder, 1, **OPTIONS) as writer:  # type: ignore[arg-type]
                for number in range(APPENDS):
                    writer.append([record(number)])
                    acknowledged.append(record(number))
                with writer.transaction("over segments") as transaction:
                    transaction.append([record(number) for number in range(APPENDS, 2 * APPENDS)])
                acknowledged += map(record, range(APPENDS, 2 * APPENDS))
        except OSError:
            pass
    return acknowledged


def all_steps(tmp_path: Path) -> list[Step]:
    disk = FaultyDisk()
    write(tmp_path / "whole" / "__cluster_metadata-0", disk)
    return disk.steps


@pytest.mark.parametrize("fault", FAULTS)
def test_every_step(tmp_path: Path, fault: str):
    steps = all_steps(tmp_path)
    rolled = [step for step in steps if step.name == "create" and step.path.suffix == ".log"]
    assert len(rolled) > 4
    assert {step.name for step in steps} >= {"create", "append", "pwrite", "sync", "sync_folder", "rename"}
    numbers = range(0, len(steps), 1 if fault == "one step" else 2)
    for number in numbers:
        folder = tmp_path / str(number) / "__cluster_metadata-0"
        disk = FaultyDisk(FAULTS[fault](number))
        acknowledged = write(folder, disk)
        check(folder, acknowledged, f"step {number} of {len(steps)}: {steps[number].name} {steps[number].path.name}")


def check(folder: Path, acknowledged: list[bytes], where: str) -> None:
    """Open the log again, and go on."""
    with use_disk(FaultyDisk()), MetadataLogWriter(folder, 2, **OPTIONS) as writer:  # type: ignore[arg-type]
        following = writer.next_offset
        assert writer.append([record(999)]) == following, where
    shown = visible(folder)
    assert shown[-1] == record(999), where
    assert shown[: len(acknowledged)] == acknowledged, where
    assert shown[:-1] in possible(len(acknowledged)), where
    assert not holes(folder), where
    assert [fault.message for fault in kraftlog.open(folder).verify()] == [], where


def possible(acknowledged: int) -> list[list[bytes]]:
    """Return what may be there: what was acknowledged, with all or nothing of the one append that failed."""
    whole = [record(number) for number in range(2 * APPENDS)]
    following = 2 * APPENDS if acknowledged >= APPENDS else acknowledged + 1
    return [whole[:acknowledged], whole[:following]]


def holes(folder: Path) -> list[tuple[int, int]]:
    """Return where a batch does not begin at the end of the one before."""
    batches = kraftlog.open(folder).batches(["base_offset", "last_offset"]).to_pylist()
    pairs = [(before["last_offset"] + 1, batch["base_offset"]) for before, batch in itertools.pairwise(batches)]
    names = sorted(int(path.stem) for path in folder.glob("*.log"))
    bases = {batch["base_offset"] for batch in batches}
    return [pair for pair in pairs if pair[0] != pair[1]] + [(name, name) for name in names if name not in bases]


def test_a_failed_roll_leaves_nothing_behind(tmp_path: Path):
    """The log is cut back to where it was, in an order that never leaves a hole."""
    folder = tmp_path / "__cluster_metadata-0"
    steps = all_steps(tmp_path)
    (first,) = [step for step in steps if step.name == "create" and step.path.suffix == ".log"][1:2]
    rolling = steps[first.number + 1]
    assert rolling.name == "sync_folder"
    disk = FaultyDisk(only(rolling.number))
    acknowledged = write(folder, disk)
    after = [(step.name, step.path.name) for step in disk.steps[rolling.number + 1 :]]
    assert after[:5] == [
        ("unlink", first.path.name),
        ("sync_folder", folder.name),
        ("open", f"{0:020d}.log"),
        ("truncate", f"{0:020d}.log"),
        ("sync", f"{0:020d}.log"),
    ]
    assert [path.name for path in folder.glob("*.log")] == [f"{0:020d}.log"]
    assert find_metadata_log_end(folder, 4096, None).log.next_offset == len(acknowledged) + 1


@pytest.mark.parametrize("error", [io_error, no_space])
def test_the_cause_is_named(tmp_path: Path, error: Callable[[], OSError]):
    disk = FaultyDisk()
    with use_disk(disk), MetadataLogWriter(tmp_path / "__cluster_metadata-0", 1) as writer:
        disk.fails = only(len(disk.steps), error)
        with pytest.raises(
            OSError, match=f"{error().strerror}; .*was cut back to 91 bytes, and nothing more"
        ) as raised:
            writer.append([record(1)])
        assert raised.value.errno == error().errno
        with pytest.raises(OSError, match="an earlier write failed"):
            writer.append([record(1)])


def open_for_test(folder: Path, epoch: int) -> MetadataLogWriter:
    return MetadataLogWriter(folder, epoch, max_batch_bytes=2000)


def stop(writer: MetadataLogWriter) -> None:
    """Let a writer end as a process does that is killed."""
    writer._transaction = None
    writer._log.abandon()
    writer._lock.close()


def without_page(path: Path, page: int) -> None:
    """Make a page of a file what a loss of power makes of one that was not written."""
    data = bytearray(path.read_bytes())
    data[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path.write_bytes(data)


def flipped(path: Path, page: int) -> None:
    data = bytearray(path.read_bytes())
    data[page * 4096 + 1000] ^= 4
    path.write_bytes(data)


DAMAGES = pytest.mark.parametrize("damage", [without_page, flipped])


@DAMAGES
def test_a_hole_in_what_was_not_acknowledged(tmp_path: Path, damage: Callable[[Path, int], None]):
    """The pages of a transaction that was under way reach the disk in any order."""
    folder = tmp_path / "__cluster_metadata-0"
    writer = open_for_test(folder, 1)
    acknowledged = [record(number, 1200) for number in range(9)]
    for value in acknowledged:
        writer.append([value])
    size = writer._log._segment.state.size
    writer.transaction("large").append([record(number, 1200) for number in range(50)])
    (path,) = folder.glob("*.log")
    assert path.stat().st_size > size + 5 * 4096
    stop(writer)
    damage(path, size // 4096 + 2)
    assert (tmp_path / "recovery-point-offset-checkpoint").exists()
    with open_for_test(folder, 2) as writer:
        writer.append([record(7)])
    assert not (tmp_path / "recovery-point-offset-checkpoint").exists()
    assert visible(folder) == [*acknowledged, record(7)]
    assert not holes(folder)
    assert [fault.message for fault in kraftlog.open(folder).verify()] == []


@DAMAGES
@pytest.mark.parametrize("end", [stop, MetadataLogWriter.close])
def test_damage_in_what_was_acknowledged(
    tmp_path: Path, damage: Callable[[Path, int], None], end: Callable[[MetadataLogWriter], None]
):
    """The same damage is refused where sound batches behind it were acknowledged, also of a writer that was killed."""
    folder = tmp_path / "__cluster_metadata-0"
    writer = open_for_test(folder, 1)
    for number in range(50):
        writer.append([record(number, 1200)])
    end(writer)
    (path,) = folder.glob("*.log")
    damage(path, 2)
    data = path.read_bytes()
    with pytest.raises(
        kraftlog.CorruptRecordError, match=r"0+\.log: .*there are sound batches after it: see `kraftlog"
    ):
        open_for_test(folder, 2)
    assert path.read_bytes() == data


def test_what_a_killed_process_cut_is_cut_on_disk(tmp_path: Path):
    """A loss of power would bring back what a failed append wrote to a segment, behind which the next one has begun."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    with use_disk(FaultyDisk()) as disk:
        log = PartitionLog(find_log_end(folder), LogOptions(segment_bytes=300), RecoveryPoint(folder))
        log.append(kraftlog.encode(pa.record_batch({"value": ["x" * 100]})), commit=True)
        disk.fails = lambda step: io_error() if step.name in ("append", "sync") and step.path.suffix == ".log" else None
        with pytest.raises(OSError, match="could not be cut back"):  # it was, but nobody has waited for it
            log.append(kraftlog.encode(pa.record_batch({"value": ["y" * 100]}), base_offset=1), commit=True)
        log.abandon()
        disk.fails = lambda _: None
        before = len(disk.steps)
        end = find_log_end(folder, recovery_point=RecoveryPoint(folder).offset)
        assert (end.next_offset, end.recovery_point) == (1, 1)
        PartitionLog(end).abandon()
    assert [step.path.name for step in disk.steps[before:] if step.name == "sync"][:1] == [f"{0:020d}.log"]


def test_folders_that_are_made_are_on_disk(tmp_path: Path):
    with use_disk(FaultyDisk()) as disk, MetadataLogWriter(tmp_path / "a" / "b" / "__cluster_metadata-0", 1):
        made = [(step.name, step.path.relative_to(tmp_path.parent)) for step in disk.steps[:7]]
    top = Path(tmp_path.name)
    a, b = top / "a", top / "a" / "b"
    assert made == [
        ("sync_folder", Path()),  # a process that was killed may have made the first one
        ("make_folder", a),
        ("sync_folder", top),
        ("make_folder", b),
        ("sync_folder", a),
        ("make_folder", b / "__cluster_metadata-0"),
        ("sync_folder", b),
    ]


def test_files_belong_to_the_owner_of_the_folder(tmp_path: Path):
    """A controller or broker that runs as that user can append to what root made in its log directory."""
    owner = (4711, 4712) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(tmp_path, *owner)
    logs = tmp_path / "new" / "logs"
    with MetadataLogWriter(logs / "__cluster_metadata-0", 1, **OPTIONS) as writer:  # type: ignore[arg-type]
        for number in range(APPENDS):
            writer.append([record(number)])
        writer.write_snapshot([record(1)])
    store = tmp_path / "store"
    for number in range(2):
        write_id = write_of_batch("row", number)
        stager = Stager(begin(store, write_id), StagingOptions(max_batch_bytes=200, segment_bytes=700), task=0)
        stager.write("t", 0, pa.record_batch({"value": ["some value"] * 50}))
        commit(store, write_id, stager.finish(), topics={"t": 2})
    made = list(tmp_path.rglob("*"))
    assert {path.suffix for path in made} >= {".log", ".index", ".timeindex", ".snapshot", ".checkpoint", ".metadata"}
    assert {path.name for path in made} >= {".lock", "leader-epoch-checkpoint", "kraftlog-coordinators.json"}
    others = {str(path) for path in made if (path.stat().st_uid, path.stat().st_gid) != owner}
    assert others == set()
