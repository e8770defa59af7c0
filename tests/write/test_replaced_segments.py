"""A cleaned segment in the place of others: all of it or nothing at any step, with the files that belong to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, since
from golden_files import GOLDEN
from kraftlog.disk.disk import use_disk
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.replaced_segments import finish_replacing, replace_segments, write_cleaned

ORDERS = GOLDEN / "transactions" / "log" / "orders-0"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a closed log with segments at offsets 0 to 4, each long enough for index entries."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    rows = pa.record_batch({"value": ["x" * 5000] * 10})
    data = kraftlog.encode(rows, max_batch_records=1, producer_id=7, producer_epoch=0, base_sequence=0, timestamp_ms=9)
    with use_disk(FaultyDisk()), PartitionLog(find_log_end(folder), LogOptions(segment_bytes=11_000)) as log:
        log.append(data, commit=True)
    assert [segment.base_offset for segment in PartitionFolder.of(folder).segments] == [0, 2, 4, 6, 8]
    return folder


def replace_three(folder: Path) -> None:
    """Put the last batches of the first three segments in the place of these."""
    replaced = PartitionFolder.of(folder).segments[:3]
    pieces = [segment.local_path.read_bytes() for segment in replaced]
    half = len(pieces[0]) // 2
    replace_segments(folder, write_cleaned(folder, 0, [piece[half:] for piece in pieces]), replaced)


def test_the_others_are_gone(folder: Path):
    with use_disk(FaultyDisk()):
        replace_three(folder)
    assert {int(path.stem) for path in folder.glob("*.log")} == {0, 6, 8}
    assert {int(path.stem) for path in folder.iterdir() if path.suffix in (".index", ".timeindex")} == {0, 6, 8}
    assert kraftlog.open(folder).records(["offset"]).to_table()["offset"].to_pylist() == [1, 3, 5, 6, 7, 8, 9]
    assert [fault.message for fault in kraftlog.open(folder).verify()] == []


def stopped_at_each_step(folder: Path, change: Callable[[Path], None]) -> list[Path]:
    """Return copies of a folder in which a change was stopped, each at another step, and one in which it was not."""
    whole = Path(shutil.copytree(folder, folder.parent / "whole" / folder.name))
    with use_disk(FaultyDisk()) as disk:
        change(whole)
    found = []
    for number in range(len(disk.steps)):
        stopped = Path(shutil.copytree(folder, folder.parent / str(number) / folder.name))
        with use_disk(FaultyDisk(since(number))), pytest.raises(OSError, match="Input/output error"):
            change(stopped)
        found.append(stopped)
    return [*found, whole]


def reopened(folder: Path) -> dict[str, bytes]:
    """Open a log as a store does it, and close it; return its files."""
    with use_disk(FaultyDisk()):
        finish_replacing(folder)
        PartitionLog(find_log_end(folder)).close()
    return files(folder)


def test_a_replacement_that_is_stopped_is_finished_or_undone(folder: Path):
    """No reader sees a part of it, and when the log is opened again its files are the same as without the stop."""
    before = reopened(folder)
    *stopped, whole = stopped_at_each_step(folder, replace_three)
    after, outcomes = reopened(whole), []
    for each in stopped:
        shown = kraftlog.open(each).records(["offset"]).to_table()["offset"].to_pylist()
        left = reopened(each)
        assert left in (before, after), each.parent.name
        assert shown == (list(range(10)) if left == before else [1, 3, 5, 6, 7, 8, 9]), each.parent.name
        outcomes.append(left == after)
    assert outcomes == sorted(outcomes)  # from one step on
    assert set(outcomes) == {False, True}


def replace_by_the_first_batch(folder: Path) -> None:
    """Put one batch in the place of the first three segments: nothing of the others is left."""
    replaced = PartitionFolder.of(folder).segments[:3]
    data = replaced[0].local_path.read_bytes()
    replace_segments(folder, write_cleaned(folder, 0, [data[: len(data) // 2]]), replaced)


def test_segments_of_which_nothing_is_left_do_not_come_back_before_a_gap(folder: Path):
    """A crash loses any of the unlinks that no sync has confirmed; a key could come back without its tombstone."""
    files_before = files(folder)
    whole = Path(shutil.copytree(folder, folder.parent / "whole" / folder.name))
    with use_disk(FaultyDisk()) as disk:
        replace_by_the_first_batch(whole)
    found = set()
    for number in range(len(disk.steps)):
        done = disk.steps[:number]
        synced = max((at for at, step in enumerate(done) if step.name == "sync_folder"), default=-1)
        lost = [step.path.name for step in done[synced + 1 :] if step.name == "unlink"]
        for count in range(len(lost) + 1):
            for back in combinations(lost, count):
                crashed = Path(shutil.copytree(folder, folder.parent / f"{number}, {back}"[:200] / folder.name))
                with use_disk(FaultyDisk(since(number))), pytest.raises(OSError, match="Input/output error"):
                    replace_by_the_first_batch(crashed)
                for name in back:
                    (crashed / name).write_bytes(files_before[name])
                assert not PartitionFolder.of(crashed).missing_segments
                shown = kraftlog.open(crashed).records(["offset"]).to_table()["offset"].to_pylist()
                reopened(crashed)
                assert kraftlog.open(crashed).records(["offset"]).to_table()["offset"].to_pylist() == shown
                assert kraftlog.open(crashed).errors().to_pylist() == []
                found.add(tuple(shown))
    assert found <= {tuple(range(10)), *((0, *range(start, 10)) for start in (2, 4, 6))}
    assert (0, *range(6, 10)) in found


def test_what_replaces_a_segment_has_its_aborted_transactions(tmp_path: Path):
    """Those that began in an earlier segment as well, of which the snapshot of producers knows."""
    folder = tmp_path / ORDERS.name
    shutil.copytree(ORDERS, folder)
    expected = files(folder)
    segments = PartitionFolder.of(folder).segments
    assert [segment.beside["txnindex"].stat().st_size > 0 for segment in segments[:-1]] == [True] * 3
    with use_disk(FaultyDisk()):
        for segment in segments[:-1]:
            cleaned = write_cleaned(folder, segment.base_offset or 0, [segment.local_path.read_bytes()])
            replace_segments(folder, cleaned, [segment])
    assert files(folder) == expected
