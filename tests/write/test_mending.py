"""``recover --from``: what a folder lacks, or has damaged, comes from replicas that agree with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import kraftlog
from faulty_disk import FaultyDisk, since
from golden_files import GOLDEN
from held_replicas import ORDERS, Held, damaged_replicas, write
from kraftlog.cli import commands
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.disk.disk import use_disk
from kraftlog.disk.lock import LogDirectoryLockedError, lock_log_directories
from kraftlog.layout.discover import discover
from kraftlog.write.recover import partition_folders, recover
from kraftlog.write.recovery_action import Action, RecoverOptions

WRITE = RecoverOptions(write=True, interval_bytes=1024)
NAME = f"{ORDERS}-0"


class Crash(BaseException):
    """Ends the work as a power cut would: nothing is tidied up."""


def mend(directory: Path, *sources: Path, options: RecoverOptions = WRITE) -> list[Action]:
    others = discover(sources).segments if sources else []
    return [action for _, action in recover(partition_folders([directory]), options, others) if action.action != "keep"]


def rows(paths: Path | Sequence[Path]) -> tuple[list[tuple[int, bytes]], list[str]]:
    stream = kraftlog.open(paths).records(["offset", "value"])
    found = [(row["offset"], row["value"]) for row in stream.to_table().to_pylist()]
    return found, [fault.error for fault in stream.faults]


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@settings(max_examples=25)
@given(damaged_replicas(), st.integers(1, 4))
def test_the_line_becomes_what_is_read_of_all(each: list[Held], rolls: int):
    line = max(each, key=lambda held: (held.last_epoch, held.end, -held.start))
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in "abc"]
        for path, held in zip(paths, each, strict=True):
            write(path, held, rolls)
        target = paths[each.index(line)]
        others = [path for path in paths if path != target]
        before, expected = [contents(path) for path in paths], rows(paths)
        mend(target, *others, options=RecoverOptions())
        assert [contents(path) for path in paths] == before
        mend(target, *others)
        assert rows(target) == expected
        assert all(contents(path) == before[paths.index(path)] for path in others)
        log = kraftlog.open(target)
        assert not any(fault.error == "offset_goes_back" for fault in log.verify())
        again = [action for action in mend(target, *others) if action.action != "refuse"]
        assert [action for action in again if action.path.suffix == ".log"] == []


@settings(max_examples=25)
@given(damaged_replicas(), st.integers(1, 4))
def test_nothing_is_written_beyond_where_replicas_part(each: list[Held], rolls: int):
    """Each folder is mended from the others, whichever of them is the line."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in "abc"]
        for path, held in zip(paths, each, strict=True):
            write(path, held, rolls)
        for path, held in zip(paths, each, strict=True):
            own = {one.offset: f"record {one.number}".encode() for one in held.records if one.offset in held.sound}
            mend(path, *(other for other in paths if other != path))
            found = dict(rows(path)[0])
            assert own.items() <= found.items()
            assert max(found, default=-1) <= max(own, default=-1)
            shutil.rmtree(path)
            write(path, held, rolls)


def halves(tmp_path: Path) -> tuple[Path, Path]:
    """Return two copies of a log: one has a bad batch and lacks a segment, the other has those."""
    one, other = tmp_path / "a", tmp_path / "b"
    for directory in (one, other):
        shutil.copytree(GOLDEN / "transactions" / "log" / NAME, directory / NAME)
    (one / NAME / "00000000000000000032.log").unlink()
    path = one / NAME / "00000000000000000067.log"
    data = bytearray(path.read_bytes())
    data[17] ^= 1
    path.write_bytes(data)
    return one, other


def test_crashes(tmp_path: Path):
    """After a crash at any step nothing is lost that was there, and the same command finishes."""
    sound = rows(GOLDEN / "transactions" / "log" / NAME)[0]
    one, other = halves(tmp_path)
    before = rows(one)[0]
    expected = None
    for at in range(200):
        work = Path(shutil.copytree(one, tmp_path / "work"))
        done = False
        with use_disk(FaultyDisk(since(at, Crash))):
            try:
                mend(work, other)
                done = True
            except Crash:
                pass
        assert set(before) <= set(rows(work)[0]) <= set(sound)
        mend(work, other)
        left = {name: data for name, data in contents(work).items() if not name.endswith(".deleted")}
        expected = expected or left
        assert left == expected
        assert rows(work) == (sound, [])
        assert [fault.message for fault in kraftlog.open(work).verify()] == []
        shutil.rmtree(work)
        if done:
            break
    assert at > 20
    assert expected is not None
    golden = GOLDEN / "transactions" / "log" / NAME
    logs = {name: data for name, data in expected.items() if name.endswith(".log")}
    assert logs == {f"{NAME}/{path.name}": path.read_bytes() for path in golden.glob("*.log")}


def test_a_log_directory_in_use_is_left_alone(tmp_path: Path):
    one, other = halves(tmp_path)
    before = contents(one)
    with lock_log_directories([one / NAME]), pytest.raises(LogDirectoryLockedError):
        mend(one, other)
    assert {name: data for name, data in contents(one).items() if name != ".lock"} == before


def test_another_topic_or_cluster_is_refused(tmp_path: Path):
    one, other = halves(tmp_path)
    for directory, cluster in ((one, "X"), (other, "Y")):
        (directory / "meta.properties").write_text(f"cluster.id={cluster}\n")
    before = contents(one)
    with pytest.raises(ValueError, match=r"same partition alone: cluster id X in .* and Y in "):
        mend(one, other)
    (other / "meta.properties").unlink()
    (other / NAME / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    with pytest.raises(ValueError, match="same partition alone: topic id "):
        mend(one, other)
    assert {name: data for name, data in contents(one).items() if name != ".lock"} == before


def test_a_marked_folder_mends_nothing(tmp_path: Path):
    one, other = halves(tmp_path)
    marked = f"{NAME}.0123456789abcdef0123456789abcdef-future"
    (other / NAME).rename(other / marked)
    with pytest.raises(ValueError, match="a folder that Kafka marked future mends no other"):
        mend(one, other / marked)


def test_what_consumers_do_not_see_is_left_alone(tmp_path: Path):
    """What lies before the log start offset of the directory was deleted, whatever other replicas still have."""
    one, other = halves(tmp_path)
    (one / NAME / f"{0:020d}.log").unlink()
    (one / "log-start-offset-checkpoint").write_text(f"0\n1\n{ORDERS} 0 67\n")
    assert [action.path.name for action in mend(one, other) if action.path.suffix == ".log"] == [f"{67:020d}.log"]
    (one / "log-start-offset-checkpoint").unlink()
    assert len([action for action in mend(one, other) if action.path.suffix == ".log"]) == 2


def test_a_stopped_cleaner_comes_first(tmp_path: Path):
    """What a folder stands for is not known before its .swap files are taken or left."""
    one, other = halves(tmp_path)
    first = one / NAME / f"{0:020d}.log"
    shutil.copy(first, first.with_name(f"{first.name}.swap"))
    before = contents(one)
    (refused, *_) = mend(one, other, options=RecoverOptions())
    assert (refused.action, refused.path.name) == ("refuse", f"{first.name}.swap")
    assert "without --from first" in refused.reason
    mend(one, other)
    assert not (one / NAME / f"{32:020d}.log").exists()
    assert contents(one)[f"{NAME}/{67:020d}.log"] == before[f"{NAME}/{67:020d}.log"]


def test_the_command(tmp_path: Path):
    one, other = halves(tmp_path)
    arguments = ["recover", str(one), "--from", str(other), "--columns", "action,reason", "--format", "jsonl"]
    shown = CliRunner().invoke(commands, arguments)
    assert shown.exit_code == 0
    assert f"offsets 32 to 66 from {other}: the line lacks them" in shown.output
    assert rows(one)[0] != rows(other)[0]
    assert CliRunner().invoke(commands, [*arguments, "--write"]).exit_code == 0
    assert rows(one) == rows(other)


def test_the_command_heeds_identities(tmp_path: Path):
    """A topic that was made anew under its name is left alone, also as a source."""
    one, other = halves(tmp_path)
    own = (one / NAME / "partition.metadata").read_text().split()[-1]
    third = Path(shutil.copytree(other, tmp_path / "c"))
    (third / NAME / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    arguments = ["recover", str(one), "--from", str(other), "--from", str(third), "--write"]
    assert isinstance(CliRunner().invoke(commands, arguments).exception, ValueError)
    assert CliRunner().invoke(commands, [*arguments, "--topic-id", own]).exit_code == 0
    assert rows(one) == rows(other)
    for directory, cluster in ((one, "X"), (other, "Y")):
        (directory / "meta.properties").write_text(f"cluster.id={cluster}\n")
    (other / NAME / "00000000000000000000.index").unlink()
    shown = ["recover", str(one), str(other), "--rebuild", "--index-interval-bytes", "1024", "--columns", "file"]
    of_one, of_both = (CliRunner().invoke(commands, [*shown, *more]).output for more in (["--cluster-id", "X"], []))
    assert str(other) not in of_one
    assert str(other) in of_both


def flip(directory: Path, name: str, number: int) -> None:
    """Damage the batch with a number in a log file."""
    path = directory / NAME / name
    data = bytearray(path.read_bytes())
    starts = [position for headers in HeaderScan(bytes(data)).headers() for position in headers["position"].tolist()]
    data[starts[number] + 17] ^= 1
    path.write_bytes(data)


LAST = f"{67:020d}.log"


def run(one: Path, other: Path, *options: str) -> tuple[list[dict[str, Any]], str, int]:
    """Run the command; return its rows without index files and snapshots, what it says, and the exit code."""
    arguments = ["recover", str(one), "--from", str(other), "--columns", "file,action,reason", "--format", "jsonl"]
    done = CliRunner().invoke(commands, [*arguments, *options])
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    return [row for row in shown if row["file"].endswith(".log")], done.stderr, done.exit_code


@pytest.mark.parametrize("is_clean", [True, False])
def test_damage_that_stays_is_listed(tmp_path: Path, is_clean: bool):
    """Before and after it is written, for each damaged batch that the other replica has damaged as well."""
    one, other = halves(tmp_path)
    if is_clean:
        (one / ".kafka_cleanshutdown").touch()
    for number in (1, 2):
        flip(one, LAST, number)
        flip(other, LAST, number)
    dry, said, code = run(one, other)
    assert [row["action"] for row in dry] == ["write", "write", "refuse", "refuse"]
    assert f"from {other}: " in dry[0]["reason"]
    assert f"from {other}: " in dry[1]["reason"]
    rest = [row["reason"] for row in dry[2:]]
    assert all(reason.startswith(f"{NAME}/{LAST}: batch at byte ") and "stored crc" in reason for reason in rest)
    assert code == 1
    assert said.count("not_recovered") == 2
    assert "no replica has" not in said
    done, said, code = run(one, other, "--write")
    assert [row["action"] for row in done if row["action"] != "keep"] == ["write", "write", "refuse", "refuse"]
    assert [row["reason"] for row in done if row["action"] == "refuse"] == rest
    assert code == 1
    stream = kraftlog.open(one).records(["offset"])
    stream.to_table()
    assert rest == [fault.message for fault in stream.faults]
    again, _, code = run(one, other)
    assert [row["reason"] for row in again] == rest
    assert code == 1


def test_damage_is_not_listed_where_it_is_cut(tmp_path: Path):
    one, other = halves(tmp_path)
    flip(one, LAST, 1)
    flip(other, LAST, 1)
    done, _, code = run(one, other, "--write", "--cut-damage")
    assert "refuse" not in [row["action"] for row in done]
    assert code == 0


def test_nothing_stays(tmp_path: Path):
    one, other = halves(tmp_path)
    _, said, code = run(one, other)
    assert (code, "no replica" in said) == (0, False)


def test_offsets_that_no_replica_has_are_named(tmp_path: Path):
    one, other = halves(tmp_path)
    (other / NAME / f"{32:020d}.log").unlink()
    for options in ([], ["--write"], []):
        _, said, code = run(one, other, *options)
        assert f"{NAME}: no replica has offsets 32 to 66\n" in said
        assert code == 0


def test_a_source_without_the_partition_is_named(tmp_path: Path):
    one, _ = halves(tmp_path)
    dry, said, code = run(one, GOLDEN / "codecs" / "log")
    assert f"{NAME}: no replica that --from names agrees with it\n" in said
    assert [row["action"] for row in dry] == ["refuse"]
    assert code == 1


def test_a_log_file_without_its_batches_gets_them_back(tmp_path: Path):
    one, other = halves(tmp_path)
    for name in (f"{0:020d}.log", f"{32:020d}.log"):
        (one / NAME / name).write_bytes(b"")
    (other / NAME / f"{0:020d}.log").write_bytes(b"")
    dry, _, code = run(one, other)
    (first,) = [row for row in dry if row["action"] == "refuse"]
    assert "expected batches with offsets 0 to 31 before the next segment" in first["reason"]
    assert code == 1
    assert run(one, other, "--write")[2] == 1
    assert (one / NAME / f"{32:020d}.log").read_bytes() == (other / NAME / f"{32:020d}.log").read_bytes()
    assert rows(one)[0] == rows(other)[0]


def test_missing_batches_of_a_cleaned_log_that_its_index_shows(tmp_path: Path):
    """Index files up to the recovery point count, as for readers: what they show is mended, or stays and is refused."""
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        shutil.copytree(GOLDEN / "compaction" / "log", path)
    whole = rows(paths[0])
    file = paths[0] / "cpt-horizon-0" / f"{205:020d}.log"
    file.write_bytes(file.read_bytes()[:1569])
    damaged, faults = rows(paths[0])
    assert (len(damaged) < len(whole[0]), faults) == (True, ["missing_batches"])
    stopped = shutil.copytree(paths[0], tmp_path / "c")
    (refusal,) = [each for each in mend(paths[0], stopped) if each.action == "refuse"]
    assert (refusal.path, "expected batches with offsets 272 to 384" in (refusal.reason or "")) == (file, True)
    assert not any(each.action == "refuse" for each in mend(paths[0], paths[1]))
    assert rows(paths[0]) == whole
