"""Folders in a log directory with which a broker does not start: named by verify, recover, health and the report."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import kraftlog
from command_line import Done
from golden_files import GOLDEN
from kraftlog.disk.disk import Disk, use_disk
from kraftlog.disk.entries import Entry
from kraftlog.layout.discover import stopping_folders
from kraftlog.layout.log_directory import MARKS

UUID = "0123456789abcdef0123456789abcdef"
STOPPING = [
    "lost+found",
    ".hidden",
    "backup",
    "orders-",
    "-0",
    "orders-x",
    "orders-0x",
    "orders-2147483648",
    "orders-0-delete",
    f"orders-0.{UUID}-deleted",
    "orders-x.a-stray",
    "remote-log-manager",
    "__cluster_metadata",
]
STARTING = [
    "orders-7",
    "-orders-7",
    "orders-x-7",
    f"orders-0.{UUID}-delete",
    f"orders-1.{UUID}-future",
    f"orders-2.{UUID}-stray",
    "remote-log-index-cache",
    "__cluster_metadata-0",
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a log directory that a broker has used."""
    path = Path(shutil.copytree(GOLDEN / "codecs" / "log", tmp_path / "log"))
    (path / "meta.properties").touch()
    return path


@pytest.mark.parametrize("name", STOPPING)
def test_a_folder_that_stops_a_broker(directory: Path, name: str, kraftlog_command: Callable[..., Done]):
    (directory / name).mkdir()
    log = kraftlog.open(directory)
    (fault,) = log.verify()
    assert fault.error == "stops_broker"
    assert f"log/{name}: " in fault.message
    assert log.records(["offset"], strict=True).to_table().num_rows  # nothing is missing for readers
    assert [row["error"] for row in log.errors().to_pylist()] == ["stops_broker"]
    recovered = kraftlog_command("recover", directory)
    assert recovered.returncode == 1
    assert f"{name}: a broker does not start" in recovered.stderr
    (directory / "meta.properties").unlink()  # a folder of copies, which is no log directory
    for mark in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (directory / mark).unlink(missing_ok=True)
    assert list(kraftlog.open(directory).verify()) == []


@pytest.mark.parametrize("name", STARTING)
def test_folders_and_files_that_a_broker_takes(directory: Path, name: str, kraftlog_command: Callable[..., Done]):
    (directory / name).mkdir()
    for file in STOPPING:
        (directory / file).touch()
    assert list(kraftlog.open(directory).verify()) == []
    assert kraftlog_command("recover", directory).returncode == 0


def test_a_folder_that_is_no_log_directory_is_not_listed(directory: Path):
    """A user may read a partition in a folder without the right to list that."""

    class Closed(Disk):
        def entries(self, folder: Path) -> list[Entry]:
            raise PermissionError(folder)

    (directory / "lost+found").mkdir()
    assert len(stopping_folders([directory, directory / "nowhere"])) == 1
    for name in MARKS:
        (directory / name).unlink(missing_ok=True)
    with use_disk(Closed()):
        assert stopping_folders([directory]) == []


def test_health_names_it(tmp_path: Path, kraftlog_command: Callable[..., Done]):
    directory = Path(shutil.copytree(GOLDEN / "metadata" / "log", tmp_path / "log"))
    (directory / "meta.properties").touch()
    well = kraftlog_command("health", directory)
    (directory / "lost+found").mkdir()
    for path in (directory, directory / "__cluster_metadata-0"):
        done = kraftlog_command("health", path)
        assert "lost+found: a broker does not start" in done.stderr
        assert (well.returncode, done.returncode) == (0, 1)
        assert done.stdout == well.stdout


def test_a_report_names_it(directory: Path, tmp_path: Path, kraftlog_command: Callable[..., Done]):
    (directory / "lost+found").mkdir()
    page = tmp_path / "report.html"
    kraftlog_command("report", directory, "--output", page)
    text = page.read_text()
    assert "1 folder that stops a broker" in text
    assert "lost+found" in text
