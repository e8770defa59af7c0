"""``kraftlog recover``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from golden_files import GOLDEN
from kraftlog.disk.lock import lock_log_directories

ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
INTERVAL = ("--index-interval-bytes", 1024)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(ORDERS, tmp_path / "log" / "orders-0"))
    (copy / "00000000000000000032.index").unlink()
    with (copy / "00000000000000000102.log").open("ab") as file:
        file.write(b"torn")
    return copy


def test_dry_run(kraftlog_command: Callable[..., object], folder: Path):
    done = kraftlog_command("recover", folder, *INTERVAL, "--format", "jsonl")
    assert done.returncode == 0
    size = (ORDERS / "00000000000000000102.log").stat().st_size
    index = (ORDERS / "00000000000000000032.index").stat().st_size
    where = {"topic": "orders", "partition": 0}
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            **where,
            "file": str(folder / "00000000000000000032.index"),
            "action": "write",
            "size_before": None,
            "size_after": index,
            "reason": "missing",
        },
        {
            **where,
            "file": str(folder / "00000000000000000102.log"),
            "action": "cut",
            "size_before": size + 4,
            "size_after": size,
            "reason": "torn tail of 4 bytes",
        },
    ]
    assert done.stderr == "19 files kept, 1 to cut, 1 to write; nothing was touched, --write does it\n"
    assert not (folder.parent / ".lock").exists()


def test_write(kraftlog_command: Callable[..., object], folder: Path):
    done = kraftlog_command("recover", folder.parent, *INTERVAL, "--write", "--columns", "file,action")
    assert (done.returncode, done.stderr) == (0, "19 files kept, 1 cut, 1 written\n")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in ORDERS.iterdir()
    }
    again = kraftlog_command("recover", folder.parent, *INTERVAL, "--write", "--format", "jsonl")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == "21 files kept, nothing to do\n"
    every = kraftlog_command("recover", folder.parent, *INTERVAL, "--kept", "--format", "jsonl", "--limit", 3)
    assert [json.loads(line)["action"] for line in every.stdout.splitlines()] == ["keep"] * 3


def test_a_broker_runs(kraftlog_command: Callable[..., object], folder: Path):
    with lock_log_directories([folder]):
        done = kraftlog_command("recover", folder, "--write")
    assert done.returncode == 2
    assert "held by a broker or another writer" in done.stderr
    assert str(folder.parent) in done.stderr


def test_damage(kraftlog_command: Callable[..., object], tmp_path: Path):
    log = Path(shutil.copytree(GOLDEN / "damaged" / "bit_flip_payload" / "log", tmp_path / "log"))
    segment = log / "t-0" / "00000000000000000000.log"
    done = kraftlog_command("recover", log, "--write", "--format", "jsonl")
    assert done.returncode == 1
    assert json.loads(done.stdout)["action"] == "refuse"
    assert f"not_recovered: {segment}: batch at byte 254" in done.stderr
    assert segment.stat().st_size == 1032
    done = kraftlog_command("recover", log, "--write", "--cut-damage")
    assert done.returncode == 0
    assert segment.stat().st_size == 254


@pytest.mark.parametrize("inside", ["", "orders-0"])
def test_paths_can_be_used_from_where_one_is(kraftlog_command: Callable[..., object], folder: Path, inside: str):
    where = folder.parent / inside
    done = kraftlog_command("recover", ".", *INTERVAL, "--columns", "file", "--format", "csv", "--kept", cwd=where)
    files = done.stdout.splitlines()[1:]
    assert len(files) == 21
    missing = {file for file in files if not (where / file).is_file()}
    assert missing == {str(Path("." if inside else "orders-0") / "00000000000000000032.index")}


def test_usage(kraftlog_command: Callable[..., object], folder: Path):
    done = kraftlog_command("recover", folder / "00000000000000000032.log", "--write")
    assert done.returncode == 2
    assert "is a file; recover takes folders" in done.stderr
    assert kraftlog_command("recover", folder / "nothing").returncode == 2
    done = kraftlog_command("recover", folder, "--output", folder / "x.jsonl", "--format", "jsonl")
    assert done.returncode == 2
