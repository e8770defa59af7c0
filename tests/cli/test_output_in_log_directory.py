"""No output lies in a log directory, where it may keep a broker from starting."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.layout.log_directory import refuse_inside

Command = Callable[..., Any]
FILES = {
    "records": ("records", "read/orders-0", "--output"),
    "batches": ("batches", "read/orders-0", "--output"),
    "partition-transactions": ("partition-transactions", "read", "--output"),
    "verify": ("verify", "read/orders-0", "--output"),
    "lag": ("lag", "read", "--output"),
    "get-offsets": ("get-offsets", "read", "--output"),
    "stats": ("stats", "read/orders-0", "--output"),
    "report": ("report", "read", "--output"),
    "sql": ("sql", "read", "select 1 as one", "--output"),
    "grep": ("grep", "read/orders-0", "--value", "a", "--output"),
}
FOLDERS = {
    "export": ("export", "read"),
    "extract": ("extract", "read", "-t", "orders"),
    "sample": ("sample",),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a log that is read, and the log directory of another broker, with a link to it."""
    for name in ("read", "other"):
        shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / name)
    (tmp_path / "other" / "meta.properties").write_text("version=1\nnode.id=1\n")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _everything(folder: Path) -> list[str]:
    return sorted(map(str, folder.rglob("*")))


PLACES = (
    "other/new",
    "other/orders-0/new",
    "link/new",
    "link/../other/new",
    "read/orders-0/new",
    "read/../link/deep/new",
)


@pytest.mark.sweep(26)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", [*FILES, *FOLDERS])
def test_is_refused_before_anything_is_written(command: str, place: str, home: Path, kraftlog_command: Command) -> None:
    before = _everything(home)
    done = kraftlog_command(*{**FILES, **FOLDERS}[command], place if command in FOLDERS else f"{place}.jsonl")
    assert (done.returncode, "choose another folder" in done.stderr) == (2, True), done.stderr
    assert _everything(home) == before


@pytest.mark.parametrize("command", ["export", "sample"])
def test_a_folder_beside_partitions_is_refused(command: str, home: Path, kraftlog_command: Command) -> None:
    """A broker that is pointed at their folder would find it."""
    before = _everything(home)
    done = kraftlog_command(*FOLDERS[command], "read/new")
    assert (done.returncode, "choose another folder" in done.stderr) == (2, True), done.stderr
    assert _everything(home) == before


def test_reports_and_extracts_of_python(home: Path) -> None:
    before = _everything(home)
    for place in PLACES:
        with pytest.raises(ValueError, match="choose another folder"):
            kraftlog.report("read").write(Path(place))
        with pytest.raises(ValueError, match="choose another folder"):
            kraftlog.extract("read", Path(place))
    assert _everything(home) == before


def test_other_places_are_taken(home: Path, kraftlog_command: Command) -> None:
    """Beside log directories, in folders that only seem to be partitions, and files beside those of partitions."""
    (home / "backup-2026").mkdir()
    shutil.copytree(home / "read" / "orders-0", home / "copy" / "orders-0")
    for place in ("new.jsonl", "backup-2026/new.jsonl", "copy/new.jsonl"):
        done = kraftlog_command("records", "read/orders-0", "--output", place, "--no-progress")
        assert done.returncode == 0, done.stderr
        refuse_inside(Path(place))
