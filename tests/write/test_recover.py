"""Recovered folders have the files that Kafka wrote, and nothing is lost that was not asked to be."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, since
from golden_files import GOLDEN, damaged_cases
from golden_indexes import CLEANED, RESTARTED, interval_of
from kraftlog.disk import durable
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.lock import LogDirectoryLockedError, lock_log_directories
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.discover import discover
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.read.partitions import by_partition
from kraftlog.write.recover import partition_folders, recover
from kraftlog.write.recovery_action import Action, RecoverOptions
from segment_files import write_partition

SCENARIOS = [
    "codecs",
    "compaction",
    "deleted_records",
    "groups",
    "metadata",
    "metadata_dynamic",
    "share_state",
    "transactions",
    "transactions_hanging",
    "transactions_tv0",
]
# A new leader's epoch, which has no records yet.
EPOCHS = {"transactions_hanging/__transaction_state-0/leader-epoch-checkpoint"}
REBUILT = ("index", "timeindex", "txnindex", "snapshot")
WRITE = RecoverOptions(write=True)
CUT = RecoverOptions(write=True, cut_damage=True)

# Of an earlier end of the log; Kafka removes them when it starts.
STRAY = {
    "metadata/__cluster_metadata-0/00000000000000000377.snapshot",
    "metadata_dynamic/__cluster_metadata-0/00000000000000000144.snapshot",
    "transactions_hanging/__transaction_state-1/00000000000000000010.snapshot",
    "transactions_hanging/orders-late-0/00000000000000000023.snapshot",
}


def run(folder: Path, options: RecoverOptions) -> list[Action]:
    return [action for _, action in recover(partition_folders([folder]), options)]


def changes(actions: list[Action]) -> dict[str, str]:
    return {action.path.name: action.action for action in actions if action.action not in ("keep", "refuse")}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def partitions(scenario: str) -> list[Path]:
    found = discover(GOLDEN / scenario / "log").segments
    return sorted({group[0].path.parent for group in by_partition(found) if not group[0].state})


def golden_partitions() -> list[Path]:
    return [folder for scenario in SCENARIOS for folder in partitions(scenario)]


def partition_id(folder: Path) -> str:
    return f"{folder.parent.parent.name}/{folder.name}"


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[Path], Path]:
    def copied(folder: Path) -> Path:
        return Path(shutil.copytree(folder, tmp_path / "log" / folder.name))

    return copied


@pytest.mark.sweep(40)
@pytest.mark.parametrize("golden", golden_partitions(), ids=partition_id)
@pytest.mark.parametrize("harm", ["missing", "garbled", "empty"])
def test_rebuilds_what_kafka_wrote(golden: Path, harm: str, copy: Callable[[Path], Path]):
    folder = copy(golden)
    scenario = golden.parent.parent.name
    first = min(folder.glob("*.log")).stem
    for path in sorted(folder.iterdir()):
        if path.suffix[1:] not in REBUILT or path.name == f"{first}.snapshot":
            continue
        if harm == "missing":
            path.unlink()
        else:
            path.write_bytes(b"\x01garbage" * 7 if harm == "garbled" else b"")
    options = RecoverOptions(write=True, interval_bytes=interval_of(scenario, golden.name))
    run(folder, options)
    after, expected = contents(folder), contents(golden)
    known = RESTARTED | CLEANED | STRAY | EPOCHS
    undetermined = {
        name for name in {*after, *expected} if f"{scenario}/{golden.name}/{name.removesuffix('.deleted')}" in known
    }
    for name in sorted({*after, *expected} - undetermined):
        if name.endswith((".txnindex", ".txnindex.deleted")) and not expected.get(name):
            assert not after.get(name) or name.endswith(".deleted")
            continue
        assert after.get(name) == expected.get(name), name
    assert changes(run(folder, options)) == {}
    assert contents(folder) == after


@pytest.mark.parametrize("golden", golden_partitions(), ids=partition_id)
def test_leaves_what_kafka_wrote(golden: Path, copy: Callable[[Path], Path]):
    """Also where the cleaner was: what knows more than the log is kept."""
    folder = copy(golden)
    scenario = golden.parent.parent.name
    known = RESTARTED | STRAY | EPOCHS
    expected = {name.rpartition("/")[2] for name in known if name.startswith(f"{scenario}/{golden.name}/")}
    options = RecoverOptions(write=True, rebuild=True, interval_bytes=interval_of(scenario, golden.name))
    actions = run(folder, options)
    assert set(changes(actions)) == expected
    assert not any(action.is_refusal for action in actions)


def test_preallocated_files(copy: Callable[[Path], Path]):
    """As a running broker has them: right for a dry run; cut to size when it is gone."""
    folder = copy(GOLDEN / "transactions_live" / "log" / "orders-0")
    closed = GOLDEN / "transactions" / "log" / "orders-0"
    before = contents(folder)
    dry = run(folder, RecoverOptions(interval_bytes=1024))
    assert changes(dry) == {"00000000000000000130.snapshot": "write"}
    assert [a.path.suffix for a in dry if "preallocated" in a.reason] == [".index", ".timeindex"]
    assert contents(folder) == before
    run(folder, RecoverOptions(write=True, interval_bytes=1024))
    assert contents(folder) == contents(closed)


def test_the_epoch_of_a_leader_without_records(copy: Callable[[Path], Path]):
    """It is there while a broker runs, and Kafka cuts it off when it recovers."""
    folder = copy(GOLDEN / "transactions_hanging" / "log" / "__transaction_state-0")
    path = folder / "leader-epoch-checkpoint"
    there = path.read_bytes()
    (dry,) = [action for action in run(folder, RecoverOptions()) if action.path == path]
    assert (dry.action, dry.reason) == ("keep", "has the epoch of a leader that has not written yet")
    run(folder, WRITE)
    assert (there, path.read_bytes()) == (b"0\n2\n0 0\n2 13\n", b"0\n1\n0 0\n")


@pytest.mark.sweep(30)
@pytest.mark.parametrize("case", damaged_cases(), ids=lambda case: case.name)
def test_cuts_where_kafka_cuts(case: Path, copy: Callable[[Path], Path]):
    answer = json.loads((case / "expected" / "reader.json").read_text())["broker_recovery"]
    folder = copy(case / "log" / "t-0")
    log = folder / "00000000000000000000.log"
    data = log.read_bytes()
    before = contents(folder)
    dry = run(folder, RecoverOptions())
    assert contents(folder) == before
    careful = run(folder, WRITE)
    refused = [action for action in careful if action.is_refusal]
    assert [(a.path, a.action, a.reason) for a in careful] == [(a.path, a.action, a.reason) for a in dry]
    if refused:
        assert "--cut-damage" in refused[0].reason
        assert f"{answer['bytes_truncated']} bytes from there on hold" in refused[0].reason
        assert contents(folder) == before
        run(folder, CUT)
    assert log.read_bytes() == data[: answer["bytes_kept"]]
    assert changes(run(folder, CUT)) == {}
    assert kraftlog.open(folder).segments().to_pylist()[0]["clean"]


def test_refuses_where_something_sound_is_behind():
    """A dry run reads the golden files where they are."""
    refused = {c.name for c in damaged_cases() if any(a.is_refusal for a in run(c / "log", RecoverOptions()))}
    torn = {"only_zeros", "zero_tail_small", "truncated_in_last_header", "length_larger_than_file", "good"}
    assert not refused & torn
    assert {"bit_flip_payload", "garbage_between_batches", "bit_flip_crc_field", "batch_length_zero"} <= refused


def test_what_a_dry_run_says():
    case = GOLDEN / "damaged" / "bit_flip_payload" / "log"
    (refusal,) = run(case, RecoverOptions())
    assert refusal.is_refusal
    assert refusal.reason == (
        "batch at byte 254: stored crc 1973285820, computed crc 2762825390; 778 bytes from there on hold "
        "4 sound batches; --cut-damage cuts there, as Kafka does"
    )
    (cut,) = [action for action in run(case, RecoverOptions(cut_damage=True)) if action.action == "cut"]
    assert (cut.size_before, cut.size_after) == (1032, 254)


def test_segments_behind_a_cut(copy: Callable[[Path], Path]):
    """A torn tail that is not at the end of the log: Kafka drops all that follows."""
    golden = GOLDEN / "transactions" / "log" / "orders-0"
    folder = copy(golden)
    with (folder / "00000000000000000032.log").open("ab") as file:
        file.write(b"\0" * 100)
    before = contents(folder)
    (refusal,) = [a for a in run(folder, RecoverOptions(write=True, interval_bytes=1024)) if a.is_refusal]
    assert refusal.reason == "torn tail of 100 bytes, and 2 segments follow; --cut-damage cuts there, as Kafka does"
    assert contents(folder) == before
    actions = run(folder, RecoverOptions(write=True, cut_damage=True, interval_bytes=1024))
    assert changes(actions) == {
        **{f"{base:020d}.{kind}": "remove" for base in (102, 67) for kind in ("log", "index", "timeindex", "txnindex")},
        "00000000000000000032.log": "cut",
        "00000000000000000102.snapshot": "remove",
        "00000000000000000130.snapshot": "remove",
    }
    after, expected = contents(folder), contents(golden)
    live = {name: data for name, data in after.items() if not name.endswith(".deleted")}
    assert {name: expected[name] for name in live} == live
    assert "00000000000000000067.snapshot" in live
    assert {name.removesuffix(".deleted") for name in after} == set(expected)  # renamed, not lost
    assert changes(run(folder, RecoverOptions(write=True, interval_bytes=1024))) == {}


def test_dry_run_touches_nothing(copy: Callable[[Path], Path]):
    folder = copy(GOLDEN / "transactions" / "log" / "orders-0")
    (folder / "00000000000000000032.index").unlink()
    with (folder / "00000000000000000102.log").open("ab") as file:
        file.write(b"torn")

    def state() -> list[tuple[str, int, int]]:
        paths = sorted([folder.parent, *folder.parent.rglob("*")])
        return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]

    before = state()
    assert "cut" in changes(run(folder.parent, RecoverOptions())).values()
    assert state() == before


def test_right_files_are_not_written_again(copy: Callable[[Path], Path]):
    folder = copy(GOLDEN / "transactions" / "log" / "orders-0")
    others = [path for path in folder.iterdir() if path.suffix != ".log"]  # logs may not be on disk
    before = {path: path.stat().st_mtime_ns for path in others}
    logs = {path: path.read_bytes() for path in folder.glob("*.log")}
    assert changes(run(folder, RecoverOptions(write=True, interval_bytes=1024))) == {}
    assert {path: path.stat().st_mtime_ns for path in others} == before
    assert {path: path.read_bytes() for path in logs} == logs


def test_a_log_without_its_beginning(copy: Callable[[Path], Path]):
    """What the snapshot of the first segment knows is the start: a transaction that began before the log."""
    golden = GOLDEN / "deleted_records" / "log" / "orders-del-7-0"
    folder = copy(golden)
    first = folder / "00000000000000000061.snapshot"
    assert any(state.current_transaction_first_offset == 5 for state in read_producer_snapshot(first))
    (folder / "00000000000000000126.txnindex").unlink()
    options = RecoverOptions(write=True, rebuild=True, interval_bytes=1024)
    assert changes(run(folder, options)) == {"00000000000000000126.txnindex": "write"}
    assert contents(folder) == contents(golden)
    # without it later files know more than the log, and stay
    first.write_bytes(first.read_bytes()[:-1])
    assert changes(run(folder, options)) == {"00000000000000000061.snapshot": "write"}
    assert read_producer_snapshot(first) == []


def test_index_files_without_a_log(copy: Callable[[Path], Path]):
    """Kafka removes them when it starts."""
    golden = GOLDEN / "transactions" / "log" / "orders-0"
    folder = copy(golden)
    (folder / "00000000000000000102.log").unlink()
    done = changes(run(folder, RecoverOptions(write=True, interval_bytes=1024)))
    assert {name for name, action in done.items() if action == "remove"} == {
        "00000000000000000102.index",
        "00000000000000000102.timeindex",
        "00000000000000000102.txnindex",
        "00000000000000000130.snapshot",
    }
    assert changes(run(folder, RecoverOptions(write=True, interval_bytes=1024))) == {}


def test_an_offset_without_a_place(copy: Callable[[Path], Path]):
    folder = copy(GOLDEN / "damaged" / "good" / "log" / "t-0")
    log = folder / "00000000000000000000.log"
    log.rename(folder / "00000000000000000007.log")
    (refusal,) = run(folder, WRITE)
    assert refusal.is_refusal
    assert "is not between the segment's base offset 7 and" in refusal.reason


def test_lock(copy: Callable[[Path], Path]):
    folder = copy(GOLDEN / "transactions" / "log" / "orders-0")
    (folder / "00000000000000000032.index").unlink()
    before = contents(folder)
    with lock_log_directories([folder]):
        with pytest.raises(LogDirectoryLockedError):
            run(folder, WRITE)
        assert contents(folder) == before
        run(folder, RecoverOptions())
    run(folder.parent, WRITE)
    lock_log_directories([folder]).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_files_belong_to_the_owner_of_the_folder(copy: Callable[[Path], Path]):
    """A broker that runs as another user can open them."""
    folder = copy(GOLDEN / "transactions" / "log" / "orders-0")
    index = folder / "00000000000000000032.index"
    index.unlink()
    os.chown(folder, 1234, 1235)
    os.chown(folder.parent, 1236, 1237)
    run(folder, RecoverOptions(write=True, interval_bytes=1024))
    assert (index.stat().st_uid, index.stat().st_gid) == (1234, 1235)
    lock = folder.parent / ".lock"
    assert (lock.stat().st_uid, lock.stat().st_gid) == (1236, 1237)


class Crash(BaseException):
    """Ends the work as a power cut would: nothing is tidied up."""


def crashes(copy: Callable[[Path], Path], golden: Path) -> Iterator[Path]:
    """Recover a harmed copy again and again, and crash one step later each time."""
    options = RecoverOptions(write=True, cut_damage=True, interval_bytes=1024)
    for at in range(200):
        folder = copy(golden)
        (folder / "00000000000000000032.index").write_bytes(b"garbled")
        (folder / "00000000000000000067.snapshot").unlink()
        (folder / "00000000000000000032.log.unfinished").write_bytes(b"of an earlier one")
        with (folder / "00000000000000000067.log").open("ab") as file:
            file.write(b"torn")
        done = False
        with use_disk(FaultyDisk(since(at, Crash))):
            try:
                run(folder, options)
                done = True
            except Crash:
                pass
        yield folder
        shutil.rmtree(folder)
        if done:
            return
    pytest.fail("never done")


def test_crashes(copy: Callable[[Path], Path]):
    """After a crash at any moment the folder is a log, and the next recovery finishes."""
    golden = GOLDEN / "transactions" / "log" / "orders-0"
    records = kraftlog.open(golden).records(["offset", "value"]).to_table()
    kept = records.filter([offset.as_py() < 102 for offset in records["offset"]])
    options = RecoverOptions(write=True, cut_damage=True, interval_bytes=1024)
    expected, count = None, 0
    for folder in crashes(copy, golden):
        stream = kraftlog.open(folder).records(["offset", "value"])
        table = stream.to_table()
        assert {fault.error for fault in stream.faults} <= {"batch_cut_off"}  # the torn bytes, while they are there
        assert table.slice(0, kept.num_rows).equals(kept)
        run(folder, options)
        assert changes(run(folder, options)) == {}
        left = {name: data for name, data in contents(folder).items() if not name.endswith(".deleted")}
        assert not any(name.endswith(durable.UNFINISHED) for name in left)
        expected = expected or left
        assert left == expected
        count += 1
    assert count > 20


def test_entries_of_another_interval():
    """Nothing is guessed from them, and the reason names what they show."""
    folder = GOLDEN / "transactions" / "log" / "orders-0"
    reasons = [action.reason for action in run(folder, RecoverOptions()) if action.action == "write"]
    assert reasons
    assert reasons[0].startswith("does not match the log with index.interval.bytes 4096: its entries are ")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_clean_shutdown(scenario: str, tmp_path: Path):
    """A broker reads nothing then, whatever index.interval.bytes was."""
    log = Path(shutil.copytree(GOLDEN / scenario / "log", tmp_path / "log"))
    (log / ".kafka_cleanshutdown").touch()
    actions = run(log, WRITE)
    assert changes(actions) == {}
    assert {action.path for action in actions if action.is_trusted} == {
        path for folder in partitions(scenario) for path in (log / folder.name).glob("*.log")
    }


def test_segments_before_the_recovery_point(tmp_path: Path):
    """A broker trusts what is flushed, but for a segment that has no .index."""
    log = Path(shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "log"))
    for base in ("00000000000000000000", "00000000000000000102"):
        (log / "orders-0" / f"{base}.timeindex").write_bytes(b"")
    (log / "orders-0" / "00000000000000000032.index").unlink()
    (log / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 120\n")
    actions = run(log / "orders-0", RecoverOptions(write=True, interval_bytes=1024))
    assert changes(actions) == {"00000000000000000032.index": "write", "00000000000000000102.timeindex": "write"}
    trusted = [action for action in actions if action.is_trusted]
    assert [action.path.stem[-3:] for action in trusted] == ["000", "067"]
    assert {action.reason for action in trusted} == {"before the recovery point: not read"}
    everything = run(log / "orders-0", RecoverOptions(write=True, rebuild=True, interval_bytes=1024))
    assert changes(everything) == {"00000000000000000000.timeindex": "write"}
    golden = GOLDEN / "transactions" / "log" / "orders-0"
    assert contents(log / "orders-0") == contents(golden)


class UnreadableFile:
    """A file of which nothing can be read behind some byte, as of a bad disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size

    def read(self, start: int, end: int) -> bytes:
        if end > 600:
            raise OSError(5, "Input/output error", str(self.path))
        return self.path.read_bytes()[start:end]

    def read_into(self, target: memoryview, start: int) -> None:
        target[:] = self.read(start, start + len(target))

    def close(self) -> None:
        pass


class BadDisk(Disk):
    """A disk with a log file that cannot be read."""

    def open(self, path: LogPath) -> ReadableFile:
        return UnreadableFile(Path(str(path))) if path.name == "00000000000000000067.log" else super().open(path)


def test_what_cannot_be_read_is_not_cut(copy: Callable[[Path], Path]):
    folder = copy(GOLDEN / "transactions" / "log" / "orders-0")
    before = contents(folder)
    with use_disk(BadDisk()):
        actions = run(folder, RecoverOptions(write=True, cut_damage=True, interval_bytes=1024))
    (refusal,) = [action for action in actions if action.is_refusal]
    assert refusal.path.name == "00000000000000000067.log"
    assert "Input/output error" in refusal.reason
    assert contents(folder) == before


def test_damaged_offsets_do_not_stop_other_partitions(copy: Callable[[Path], Path]):
    """No index can hold such an offset; the partition is refused, and the next one repaired."""
    folder = copy(GOLDEN / "transactions" / "log")
    log = folder / "__transaction_state-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    at = [int(p) for p in kraftlog.open(log).batches(["position"])["position"].to_pylist()][5]
    data[at + 1] ^= 1 << 6
    log.write_bytes(data)
    lost = folder / "orders-0" / "00000000000000000000.index"
    lost.unlink()
    actions = run(folder, WRITE)
    assert [action.path for action in actions if action.is_refusal] == [log]
    assert lost.exists()


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    """Return a partition of three segments with their index files."""
    folder = tmp_path / "log" / "t-0"
    write_partition(folder, segments=3)
    run(folder, WRITE)
    return folder


def test_a_segment_without_an_index_is_cut_alone(segments: Path):
    """A broker recovers it before the others, so that it sees no damage where it would remove what follows."""
    torn = segments / f"{10:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-1])
    (segments / f"{10:020d}.index").unlink()
    (refused,) = [action for action in run(segments, WRITE) if action.is_refusal]
    assert refused.path == torn
    run(segments, CUT)
    offsets = kraftlog.open(segments).records(["offset"], strict=True).to_table()["offset"].to_pylist()
    assert offsets == [*range(10), *range(20, 30)]
    assert list(kraftlog.open(segments).verify()) == []


def test_the_output_of_a_cleaner_does_not_say_what_producers_were(tmp_path: Path):
    """Kafka takes the snapshot beside the segment that it recovers: what was cleaned may lack data of transactions."""
    folder = tmp_path / "log" / "t-0"
    folder.mkdir(parents=True)
    (folder.parent / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    of_producer = {"producer_id": 1, "producer_epoch": 0}
    row = pa.table({"key": [b"k"]})
    transactional = kraftlog.encode(row, base_offset=0, base_sequence=0, is_transactional=True, **of_producer)
    plain = kraftlog.encode(row, base_offset=1).to_pybytes()
    (folder / f"{0:020d}.log").write_bytes(transactional.to_pybytes() + plain)
    going_on = kraftlog.encode(row, base_offset=2, base_sequence=1, is_transactional=True, **of_producer).to_pybytes()
    ends = kraftlog.encode_marker("ABORT", base_offset=3, **of_producer).to_pybytes()
    (folder / f"{2:020d}.log").write_bytes(going_on + ends + kraftlog.encode(row, base_offset=4).to_pybytes())
    run(folder, WRITE)
    before = contents(folder)
    for kind in ("log", "index", "timeindex"):
        path = folder / f"{0:020d}.{kind}"
        path.with_name(f"{path.name}.swap").write_bytes(plain if kind == "log" else b"")
        path.unlink()
    run(folder, WRITE)
    unchanged = [name for name in before if name.startswith(f"{2:020d}")]
    assert {f"{2:020d}.{kind}" for kind in ("snapshot", "txnindex")} <= set(unchanged)
    assert {name: contents(folder)[name] for name in unchanged} == {name: before[name] for name in unchanged}
