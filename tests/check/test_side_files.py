"""``kraftlog verify`` of single index and snapshot files."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kraftlog
from command_line import kraftlog_command
from golden_files import GOLDEN, name_of, scenarios
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot

__all__ = ["kraftlog_command"]

Command = Callable[..., Any]
ORDERS = GOLDEN / "transactions" / "log" / "orders-0"
KINDS = ("index", "timeindex", "txnindex", "snapshot")
BASE = f"{32:020d}"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ORDERS, tmp_path / "orders-0"))


def checked(command: Command, *paths: object) -> tuple[int, list[tuple[str, str]], str]:
    done = command("verify", *paths, "--format", "jsonl", "--columns", "error,message")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, [(row["error"], row["message"]) for row in rows], done.stderr


def side_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("log/*/*")) if path.suffix[1:] in KINDS]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("folder", [folder for folder in scenarios() if side_files(folder)], ids=name_of)
def test_sound_files(kraftlog_command: Command, folder: Path) -> None:
    """A file has the faults that a check of its folder finds in it: in these logs none."""
    files = side_files(folder)
    assert checked(kraftlog_command, *files)[:2] == (0, [])


def damaged(path: Path, at: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(data)


STRUCTURE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "index": (lambda path: path.write_bytes(path.read_bytes() + b"\1"), "bad_index", "are not a multiple of 8"),
    "timeindex": (lambda path: path.write_bytes(struct.pack(">qi", 5, 9) * 2 + b"\1"), "bad_index", "multiple of 12"),
    "txnindex": (lambda path: damaged(path, 0, b"\0\7"), "bad_index", "expected version 0"),
    "snapshot": (lambda path: damaged(path, 12, b"\7\7"), "bad_snapshot", "stored crc"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_structure_of_a_file_without_a_log(kraftlog_command: Command, orders: Path, kind: str) -> None:
    path = orders.parent / "alone" / f"{BASE}.{kind}"
    path.parent.mkdir()
    shutil.copy(orders / path.name, path)
    code, rows, said = checked(kraftlog_command, path)
    assert (code, rows) == (0, [])
    assert "only its own structure was checked" in said
    change, error, message = STRUCTURE[kind]
    change(path)
    code, rows, said = checked(kraftlog_command, path)
    assert code == 1
    assert error in [found for found, _ in rows]
    assert message in rows[0][1]
    strict = kraftlog_command("verify", path, "--strict")
    assert (strict.returncode, strict.stdout) == (1, "")
    assert message in strict.stderr


def cut_entries(path: Path) -> None:
    """Keep the structure, and lose what the log says."""
    kind = path.suffix[1:]
    if kind == "index":
        path.write_bytes(struct.pack(">ii", 1, 77))
    elif kind == "timeindex":
        path.write_bytes(struct.pack(">qi", 5, 3))
    elif kind == "txnindex":
        path.write_bytes(b"")
    else:
        shutil.copy(path.with_name(f"{102:020d}.snapshot"), path)


MISMATCH = {
    "index": "index_mismatch",
    "timeindex": "index_mismatch",
    "txnindex": "txnindex_mismatch",
    "snapshot": "snapshot_mismatch",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_against_its_log(kraftlog_command: Command, orders: Path, kind: str) -> None:
    """The faults are those of the folder that name the file; other files of the folder do not count."""
    path = orders / f"{BASE}.{kind}"
    other = orders / f"{BASE}.{'index' if kind != 'index' else 'timeindex'}"
    cut_entries(path)
    cut_entries(other)
    code, rows, said = checked(kraftlog_command, path)
    expected = [(fault.error, fault.message) for fault in kraftlog.open(orders).verify() if path.name in fault.message]
    assert (code, rows) == (1, expected)
    assert {error for error, _ in rows} == {MISMATCH[kind]}
    assert said.startswith("1 index or snapshot file: ")


def test_a_snapshot_of_the_end_of_the_log(kraftlog_command: Command, orders: Path) -> None:
    path = orders / f"{130:020d}.snapshot"
    assert checked(kraftlog_command, path)[:2] == (0, [])
    shutil.copy(orders / f"{32:020d}.snapshot", path)
    code, rows, _ = checked(kraftlog_command, path)
    assert (code, {error for error, _ in rows}) == (1, {"snapshot_mismatch"})
    elsewhere = orders / f"{40:020d}.snapshot"
    shutil.copy(orders / f"{32:020d}.snapshot", elsewhere)
    code, rows, said = checked(kraftlog_command, elsewhere)
    assert (code, rows) == (0, [])
    assert "no log next to it reaches its offset; only its own structure was checked" in said


def test_a_producer_that_expired_has_no_coordinator_epoch(kraftlog_command: Command, orders: Path) -> None:
    """It came back with its next records; any other epoch than that of the log is a contradiction."""
    path = orders / f"{130:020d}.snapshot"
    states = read_producer_snapshot(path)
    assert {state.coordinator_epoch for state in states} > {-1}
    for epoch, expected in ((-1, 0), (7, 1)):
        changed = [replace(state, coordinator_epoch=epoch) for state in states]
        path.write_bytes(producer_snapshot_bytes(changed))
        assert checked(kraftlog_command, path)[0] == expected


def test_damage_of_the_log_is_not_that_of_the_file(kraftlog_command: Command, orders: Path) -> None:
    damaged(orders / f"{BASE}.log", 100, b"\xff\xff\xff")
    code, rows, said = checked(kraftlog_command, orders / f"{BASE}.txnindex")
    assert (code, rows) == (0, [])
    assert f"its log has 1 error, which may hide differences; kraftlog verify {orders} lists them" in said


def test_files_and_logs_together(kraftlog_command: Command, orders: Path) -> None:
    """Globs as well; a name that is not Kafka's is refused."""
    code, rows, said = checked(kraftlog_command, str(orders / "*.index"), orders)
    size = sum(path.stat().st_size for path in orders.glob("*.log"))
    assert (code, rows) == (0, [])
    assert said == f"{size} bytes in 4 segments, 4 index and snapshot files: no errors\n"
    (orders / "notes.index").write_bytes(b"text")
    done = kraftlog_command("verify", orders / "notes.index")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a log" in done.stderr
