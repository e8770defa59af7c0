"""A snapshot that ends behind the log, as a node leaves it that fetched the snapshot and died: the snapshot counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import Fault, RecordError
from kraftlog.metadata.diff.diff import diff
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.metadata_log.follow import follow
from kraftlog.metadata_log.image import image_at
from kraftlog.metadata_log.timeline import timeline
from kraftlog.write.metadata_writer import MetadataLogWriter

Command = Callable[..., Any]
LOG = GOLDEN / "metadata" / "log" / "__cluster_metadata-0"
SNAPSHOT = "00000000000000000452-0000000004.checkpoint"
SNAPSHOT_END = 452
MISSING = "missing_offsets"


def log_without(folder: Path, kept: int, *, is_cut: bool = False) -> Path:
    """Return a log directory with the first segments of the log, and all of its snapshots."""
    target = folder / "__cluster_metadata-0"
    shutil.copytree(LOG, target)
    for path in sorted(target.glob("*.log"))[kept:]:
        path.unlink()
    if is_cut:
        last = sorted(target.glob("*.log"))[-1]
        last.write_bytes(b"")
    return folder


def image_of(path: Path, offset: int | None = None) -> tuple[dict[str, pa.Table], list[Fault]]:
    faults: list[Fault] = []
    return image_at(MetadataLog.open(path), offset, faults).image.tables(), faults


CUTS = [(4, False), (2, False), (1, False), (1, True)]


@pytest.mark.parametrize(("kept", "is_cut"), CUTS)
def test_image_is_the_snapshots(kraftlog_command: Command, tmp_path: Path, kept: int, is_cut: bool) -> None:
    """Whatever is left of the log; Python and the command line say where the log ends."""
    folder = log_without(tmp_path, kept, is_cut=is_cut)
    expected = image_at(MetadataLog.open(LOG), SNAPSHOT_END - 1, [])
    at = kraftlog.open(folder).image(cache=False)
    assert (at.offset, at.epoch, at.timestamp) == (expected.offset, expected.epoch, expected.timestamp)
    assert (at.faults, at.open_since, at.image.offset) == ((), None, SNAPSHOT_END - 1)
    assert at.log_end_offset == MetadataLog.open(folder).end_offset
    assert diff(at.image, expected.image).num_rows == 0
    for command in (["image"], ["health"], ["shell", "-c", "ls"]):
        shown = kraftlog_command(command[0], folder, *command[1:])
        assert f"the log ends at offset {at.log_end_offset}, before the snapshot of {SNAPSHOT_END}" in shown.stderr


@pytest.mark.parametrize(("kept", "is_cut"), CUTS)
def test_every_offset_has_its_image_or_a_fault(
    tmp_path: Path, kept: int, is_cut: bool, sampled: Callable[..., list[int]]
) -> None:
    """What the log holds is as it was; between its end and that of the snapshot nothing is known, and that is said."""
    folder = log_without(tmp_path, kept, is_cut=is_cut)
    log = MetadataLog.open(folder)
    for offset in sampled(range(0, SNAPSHOT_END + 3, 7), 20):
        at = image_at(log, offset, faults := [])
        if log.end_offset <= offset < SNAPSHOT_END - 1:
            ends = [0, log.end_offset, *(snapshot.end_offset for snapshot in log.snapshots)]
            known = max(end for end in ends if end <= offset + 1) - 1
            assert at.offset == known
            assert [fault.error for fault in faults] == [MISSING] * (known < offset)
            assert all("the log ends before its snapshot of 452" in fault.message for fault in faults)
        else:
            assert (at.offset, faults) == (min(offset, SNAPSHOT_END - 1), [])
        expected = image_at(MetadataLog.open(LOG), at.offset, [])
        assert (at.epoch, diff(at.image, expected.image).num_rows) == (expected.epoch, 0)


@pytest.mark.parametrize(("kept", "is_cut"), CUTS)
def test_times_behind_the_log(tmp_path: Path, kept: int, is_cut: bool) -> None:
    """A time from the snapshot's on means the snapshot; one between is of records that are not there."""
    log = MetadataLog.open(log_without(tmp_path, kept, is_cut=is_cut))
    stamp = image_at(MetadataLog.open(LOG), SNAPSHOT_END - 1, []).timestamp
    assert log.offset_at(stamp) == SNAPSHOT_END - 1
    if log.end_offset:
        assert log.offset_at(stamp - 1) == SNAPSHOT_END - 2
        first = image_at(log, log.end_offset - 1, []).timestamp
        assert log.offset_at(first - 1) < log.end_offset


@pytest.mark.parametrize(("kept", "is_cut"), CUTS)
def test_changes_and_timeline_lead_to_the_snapshot(tmp_path: Path, kept: int, is_cut: bool) -> None:
    """What changed up to it is one step at its last offset; that records are missing is a fault."""
    folder = log_without(tmp_path, kept, is_cut=is_cut)
    log = MetadataLog.open(folder)
    changed = kraftlog.open(folder).metadata_changes(["offset", "kind", "key"], strict=False)
    rows = changed.to_table().to_pylist()
    with pytest.raises(RecordError, match="before its snapshot"):
        kraftlog.open(folder).metadata_changes(strict=True).to_table()
    before, after = image_at(log, log.end_offset - 1, []), image_at(log, None, [])
    expected = diff(before.image, after.image)
    at_snapshot = [(row["kind"], row["key"]) for row in rows if row["offset"] >= log.end_offset]
    assert {row["offset"] for row in rows if row["offset"] >= log.end_offset} == {SNAPSHOT_END - 1}
    assert sorted(at_snapshot) == sorted(zip(expected["kind"].to_pylist(), expected["key"].to_pylist(), strict=True))
    start = image_at(log, -1, [])
    found = list(timeline(log, start, None, faults := []))
    assert found[-1].what.last_offset == SNAPSHOT_END - 1
    assert MISSING in {fault.error for fault in faults}
    followed = list(follow(lambda: MetadataLog.open(folder), start, faults, lambda: False))
    assert [one.what for one in followed] == [one.what for one in found]
    assert list(timeline(log, after, None, [])) == []
    for last in (SNAPSHOT_END - 2, SNAPSHOT_END - 1):
        bounded = [one.what.last_offset for one in timeline(log, start, last, [])]
        assert (SNAPSHOT_END - 1 in bounded) == (last == SNAPSHOT_END - 1)


def test_following_over_a_truncation_to_the_snapshot(tmp_path: Path) -> None:
    """What Kafka does next, a log that starts at the snapshot's end, tells nothing again and takes nothing back."""
    folder = log_without(tmp_path, 2)
    partition = folder / "__cluster_metadata-0"
    rounds = iter([True, False])

    def wait() -> bool:
        for path in partition.glob("*.log"):
            path.unlink()
        (partition / f"{SNAPSHOT_END:020}.log").write_bytes(b"")
        return next(rounds)

    start = image_at(MetadataLog.open(folder), SNAPSHOT_END - 1, [])
    assert list(follow(lambda: MetadataLog.open(folder), start, [], wait)) == []


@pytest.mark.parametrize(("kept", "is_cut"), CUTS)
def test_tables_of_the_log_say_what_is_missing(
    kraftlog_command: Command, tmp_path: Path, kept: int, is_cut: bool
) -> None:
    """What stands in the files is shown; ``errors`` and ``verify`` say that the log ends before the snapshot."""
    folder = log_without(tmp_path, kept, is_cut=is_cut)
    end = MetadataLog.open(folder).end_offset
    stream = kraftlog.open(folder).messages(["offset"], isolation_level="read_committed")
    offsets = stream.to_table()["offset"].to_pylist()
    whole = kraftlog.open(LOG).messages(["offset"], isolation_level="read_committed").to_table()["offset"].to_pylist()
    assert offsets == [offset for offset in whole if offset < end]
    expected = f"offsets {end} to {SNAPSHOT_END - 1} are missing"
    assert [fault.error for fault in stream.faults] == [MISSING]
    assert expected in stream.faults[0].message
    rows = kraftlog.open(folder).errors().to_pylist()
    assert [row["message"] for row in rows if expected in row["message"]]
    shown = kraftlog_command("verify", folder)
    assert shown.returncode == 1
    assert expected in shown.stdout + shown.stderr


def test_a_newest_snapshot_that_cannot_be_read(tmp_path: Path) -> None:
    """It is a fault, and the image is the next one's with the log, as far as that has every offset."""
    folder = log_without(tmp_path, 2)
    path = folder / "__cluster_metadata-0" / SNAPSHOT
    path.write_bytes(path.read_bytes()[:-100])
    tables, faults = image_of(folder)
    codes = {fault.error for fault in faults}
    assert MISSING in codes
    assert any(SNAPSHOT in fault.message for fault in faults)
    expected, _ = image_of(LOG, 321)  # of the snapshot of 322, as the log ends before that
    assert tables == expected
    with pytest.raises(RecordError):
        kraftlog.open(folder).image(cache=False)


def test_a_transaction_that_is_open_where_the_log_ends(tmp_path: Path) -> None:
    """It has ended before the snapshot, nobody knows how: its records are left out, and reported."""
    folder = tmp_path / "__cluster_metadata-0"
    no_op = bytes.fromhex("01140000")
    writer = MetadataLogWriter(folder, leader_epoch=1)
    writer.append([no_op])
    transaction = writer.transaction("never ended")
    transaction.append([no_op] * 3000)
    files = {path: path.read_bytes() for path in folder.glob("*.log")}
    writer.close()
    for path, data in files.items():
        path.write_bytes(data)
    open_at_end = kraftlog.open(tmp_path).metadata_transactions(["state"]).to_pylist()
    assert open_at_end == [{"state": "open"}]
    shutil.copy(LOG / SNAPSHOT, folder / f"{9000:020}-0000000004.checkpoint")
    told: list[Fault] = []
    table = kraftlog.open(tmp_path).metadata_transactions(["state"], strict=False, faults=told)
    assert table.to_pylist() == [{"state": "unknown"}]
    assert [fault.error for fault in told] == [MISSING, "damaged_transaction"]
    at = image_at(MetadataLog.open(tmp_path), None, faults := [])
    assert (at.offset, at.open_since, faults) == (8999, None, [])


def test_writer_refuses_a_log_that_ends_before_its_snapshot(tmp_path: Path) -> None:
    """Its records would get offsets that the snapshot stands for."""
    folder = log_without(tmp_path, 2) / "__cluster_metadata-0"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=rf"the log ends at offset \d+, before its snapshot of {SNAPSHOT_END}"):
        MetadataLogWriter(folder, leader_epoch=9)
    left = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in files}
    assert {name: left[name] for name in files if name.endswith(".log")} == {
        name: data for name, data in files.items() if name.endswith(".log")
    }
