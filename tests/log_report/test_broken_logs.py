"""A log directory that is partly broken gives a page that says so, and the exit code of other commands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk, ReadableFile, use_disk
from kraftlog.disk.remote_path import LogPath
from report_pages import Page

Command = Callable[..., Any]
NOW = "2026-11-24T00:00:00Z"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("orders-0", "orders-1", "__consumer_offsets-0", "__transaction_state-0", "__transaction_state-1"):
        shutil.copytree(GOLDEN / "transactions_live" / "log" / name, tmp_path / "logs" / name)
    shutil.copytree(GOLDEN / "metadata" / "log" / "__cluster_metadata-0", tmp_path / "logs" / "__cluster_metadata-0")
    return tmp_path / "logs"


def page_of(command: Command, logs: Path, code: int) -> Page:
    target = logs.parent / "report.html"
    done = command("report", logs, "-o", target, "--now", NOW, "--force")
    assert done.returncode == command("verify", logs).returncode == code, done.stderr
    assert f" bytes in {kraftlog.open(logs).segments_count} segments: " in done.stdout.splitlines()[-1]
    page = Page(target.read_text("utf-8"))
    assert len(done.stdout.splitlines()) == len(page.findings) + 1
    return page


def test_a_whole_one(kraftlog_command: Command, logs: Path):
    page = page_of(kraftlog_command, logs, 0)
    assert [one for one in page.findings if one["severity"] == "error"] == []
    assert {"transactions", "groups", "cluster", "partitions", "batches", "about"} <= page.sections.keys()


def test_a_bad_checksum(kraftlog_command: Command, logs: Path):
    path = logs / "orders-1" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    page = page_of(kraftlog_command, logs, 1)
    assert "bad_crc" in [one["kind"] for one in page.findings]
    assert page.sections["damage"].rows("byte")[0]["byte"] == "0"
    health = {row["#"]: row["health"] for row in page.sections["partitions"].rows("#") if "error" in row["health"]}
    assert list(health) == ["1"]


def test_a_truncated_tail(kraftlog_command: Command, logs: Path):
    path = logs / "orders-1" / f"{0:020d}.log"
    os.truncate(path, path.stat().st_size - 10)
    page = page_of(kraftlog_command, logs, 0)
    assert "torn_tail" in [one["kind"] for one in page.findings]


def test_a_missing_segment(kraftlog_command: Command, logs: Path):
    (logs / "orders-0" / f"{32:020d}.log").unlink()
    page = page_of(kraftlog_command, logs, 1)
    assert "missing_segment" in [one["kind"] for one in page.findings]


def test_a_missing_index(kraftlog_command: Command, logs: Path):
    for path in (logs / "orders-0").glob("*index"):
        path.unlink()
    page_of(kraftlog_command, logs, 0)


def test_a_segment_that_ends_early(kraftlog_command: Command, logs: Path):
    path = logs / "orders-0" / f"{32:020d}.log"
    os.truncate(path, path.stat().st_size - 10)
    page = page_of(kraftlog_command, logs, 1)
    assert "batch_cut_off" in [one["kind"] for one in page.findings]


class LockedDisk(Disk):
    """A disk on which the log files of one folder cannot be opened."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
        if path.parent.name == self._folder and path.suffix == ".log":
            raise PermissionError(13, "Permission denied", str(path))
        return super().open(path, size)


@pytest.mark.parametrize(
    ("name", "section"),
    [
        ("orders-0", "transactions"),
        ("orders-1", "transactions"),
        ("__consumer_offsets-0", "groups"),
        ("__transaction_state-0", "transactions"),
        ("__cluster_metadata-0", "cluster"),
    ],
)
def test_files_that_cannot_be_opened(logs: Path, name: str, section: str):
    with use_disk(LockedDisk(name)):
        made = kraftlog.report(logs, now=NOW)
        page = Page(made.html)
        faults = list(kraftlog.open(logs).verify())
    assert made.has_faults
    assert page.findings[0]["kind"] == "unreadable_file"
    assert "Permission denied" in page.findings[0]["text"]
    assert made.facts.faults["unreadable_file"].count == sum(fault.error == "unreadable_file" for fault in faults)
    assert section in page.sections
    (broken,) = [one for one in made.facts.partitions if "unreadable_file" in one.faults]
    assert broken.name == name
    assert broken.log_end_offset is None
    assert all(one.damage is not None and all(one.damage.bins) for one in broken.segments)
    assert "0 \u2013 ?" in page.sections["partitions"].text
    shown = page.sections["transactions"].rows("partition")
    ends = [row["ends"] for row in shown if row["partition"] == name and "ends" in row]
    assert set(ends) <= {"not known: a part of the partition cannot be read"}


def test_a_transaction_whose_end_cannot_be_read(logs: Path):
    """Only the segment with the marker cannot be opened."""
    folder = logs / "orders-0"
    last = max(folder.glob("*.log"))

    class Locked(LockedDisk):
        def open(self, path: LogPath, size: int | None = None) -> ReadableFile:
            return Disk.open(self, path, size) if path.name != last.name else super().open(path, size)

    for path in folder.glob("*.snapshot"):
        path.unlink()
    with use_disk(Locked("orders-0")):
        made = kraftlog.report(logs, now=NOW)
        log = kraftlog.open(logs, topics=["orders"], partitions=[0])
        expected = log.partition_transactions(["producer_id", "state"], strict=False, faults=[]).to_pylist()
    opened = [row["producer_id"] for row in expected if row["state"] == "open"]
    assert opened
    rows = [row for row in Page(made.html).sections["transactions"].rows("partition") if row["partition"] == "orders-0"]
    assert [row["producer"] for row in rows if "producer" in row] == list(map(str, opened))
    assert all("cannot be read" in row["ends"] for row in rows if "ends" in row)
    (finding,) = [one for one in made.findings if one.kind == "open_transaction"]
    assert "may hold their ends" in finding.text
    assert not any(" abort " in command for one in made.findings for command in one.commands)


def test_a_marker_that_is_damaged_is_no_reason_to_abort(kraftlog_command: Command, logs: Path):
    """Its transaction seems to be open, and its coordinator knows that it has ended."""
    log = kraftlog.open(logs, topics=["orders"], partitions=[1])
    rows = log.batches(["position", "size_in_bytes", "control_type"]).to_pylist()
    last = [row for row in rows if row["control_type"] == "COMMIT"][-1]
    path = logs / "orders-1" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[last["position"] + last["size_in_bytes"] - 1] ^= 1
    path.write_bytes(data)
    page = page_of(kraftlog_command, logs, 1)
    assert "hanging_transaction" not in [one["kind"] for one in page.findings]
    assert not any(" abort " in command for command in page.commands)
    shown = page.sections["transactions"].rows("partition")
    assert "not known: a part of the partition cannot be read" in [row.get("ends") for row in shown]


def test_without_metadata_and_coordinators(kraftlog_command: Command, logs: Path):
    for folder in logs.glob("__*"):
        shutil.rmtree(folder)
    page = page_of(kraftlog_command, logs, 0)
    about = page.sections["about"].text
    for name in ("__consumer_offsets", "__transaction_state", "__cluster_metadata"):
        assert f"No {name} among the files" in about
    assert not {"groups", "cluster"} & page.sections.keys()
    assert "not known" in page.sections["transactions"].text


def test_a_single_file(kraftlog_command: Command, tmp_path: Path):
    copy = tmp_path / "copied.log"
    shutil.copy(GOLDEN / "codecs" / "log" / "codec-lz4-0" / f"{0:020d}.log", copy)
    target = tmp_path / "out" / "report.html"
    target.parent.mkdir()
    assert kraftlog_command("report", copy, "-o", target).returncode == 0
    page = Page(target.read_text("utf-8"))
    assert page.sections["partitions"].rows("topic")[0]["topic"] == "copied.log"
    assert "in no partition's folder" in page.sections["about"].text
    assert "transactions" not in page.sections


def test_an_empty_partition(kraftlog_command: Command, logs: Path):
    (logs / "empty-0").mkdir()
    (logs / "empty-0" / f"{0:020d}.log").touch()
    page = page_of(kraftlog_command, logs, 0)
    (row,) = [row for row in page.sections["partitions"].rows("topic") if row["topic"] == "empty-0"]
    assert (row["records"], row["mean batch"], row["oldest"], row["codecs"], row["offsets"]) == (
        "0",
        "-",
        "-",
        "-",
        "0 \u2013 0",
    )


@pytest.mark.parametrize("case", sorted(path.name for path in (GOLDEN / "damaged").iterdir() if path.is_dir()))
def test_every_kind_of_damage(case: str):
    """The page marks the bytes that verify names, and no others."""
    path = GOLDEN / "damaged" / case / "log"
    faults = list(kraftlog.open(path).verify())
    made = kraftlog.report(path, now=NOW)
    (segment,) = made.facts.partitions[0].segments
    marked = [fault for fault in faults if fault.position is not None]
    if not faults:
        assert segment.damage is None
        return
    assert segment.damage is not None
    assert segment.damage.count == len(faults)
    bins = len(segment.damage.bins)
    for at in range(bins):
        first, behind = at * segment.size / bins, (at + 1) * segment.size / bins
        stretches = [
            (fault.position or 0, (fault.position or 0) + max(fault.size_in_bytes or 0, 1)) for fault in marked
        ]
        touches = any(start < behind and first < end for start, end in stretches)
        assert bool(segment.damage.bins[at]) == touches


def test_wrong_usage(kraftlog_command: Command, logs: Path, tmp_path: Path):
    assert kraftlog_command("report", tmp_path / "none", "-o", tmp_path / "x.html").returncode == 2
    assert kraftlog_command("report", logs, "-o", logs / "orders-0" / "x.html").returncode == 2
    assert not (logs / "orders-0" / "x.html").exists()
    (tmp_path / "x.html").write_text("kept")
    done = kraftlog_command("report", logs, "-o", tmp_path / "x.html")
    assert (done.returncode, (tmp_path / "x.html").read_text()) == (2, "kept")
    assert "--force" in done.stderr
    with pytest.raises(ValueError, match="workers 0 is less than 1"):
        kraftlog.report(logs, workers=0)


def test_standard_output(kraftlog_command: Command, logs: Path):
    done = kraftlog_command("report", logs, "--now", NOW)
    assert done.returncode == 0
    assert done.stdout == kraftlog.report(str(logs), now=NOW).html


def test_threads_change_nothing(logs: Path):
    assert kraftlog.report(logs, now=NOW, workers=4).html == kraftlog.report(logs, now=NOW).html
