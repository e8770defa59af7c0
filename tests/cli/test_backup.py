"""``kraftlog backup``: its commands, their output and exit codes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import GOLDEN

Run = Callable[..., Any]
LOG = GOLDEN / "transactions" / "log"


@pytest.fixture
def nightly(kraftlog_command: Run, tmp_path: Path) -> Path:
    repository = tmp_path / "nightly"
    done = kraftlog_command("backup", LOG, repository)
    assert (done.returncode, done.stderr) == (0, "")
    name, rest = done.stdout.split(": ", 1)
    assert rest == "6 partitions, 9 log files, 90,729 bytes, of which 88,181 are new\n"
    assert (repository / "backups" / f"{name}.json").is_file()
    return repository


def listed(run: Run, *words: Any) -> list[dict[str, Any]]:
    done = run("backup", *words, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_list_show_and_diff(kraftlog_command: Run, nightly: Path, tmp_path: Path):
    source = tmp_path / "source"
    shutil.copytree(LOG, source, ignore=shutil.ignore_patterns("orders-2"))
    assert kraftlog_command("backup", "take", source, nightly).returncode == 0
    first, second = listed(kraftlog_command, "list", nightly)
    assert (first["partitions"], first["faults"], first["added_bytes"]) == (6, 0, 88181)
    assert (second["partitions"], second["added_bytes"]) == (5, 0)
    rows = listed(kraftlog_command, "show", nightly, first["name"])
    ends = {(row["topic"], row["partition"]): row["end_offset"] for row in rows}
    assert ends["orders", 0] == 130
    assert len(rows) == 6
    assert len(listed(kraftlog_command, "show", nightly)) == 5
    (row,) = listed(kraftlog_command, "diff", nightly, first["name"], second["name"])
    assert (row["topic"], row["partition"], row["change"]) == ("orders", 2, "removed")
    assert (row["end_offset_before"], row["end_offset_after"]) == (38, None)


def test_verify_and_prune(kraftlog_command: Run, nightly: Path):
    done = kraftlog_command("backup", "verify", nightly, "--data")
    assert (done.returncode, done.stdout) == (0, "1 backup, every byte read: no faults\n")
    lost = sorted((nightly / "partitions").rglob("*.log"))[0]
    lost.unlink()
    done = kraftlog_command("backup", "verify", nightly)
    assert (done.returncode, done.stdout) == (1, "1 backup, sizes compared: 1 faults\n")
    assert f"missing_object: partitions/{lost.parent.name}/{lost.name}" in done.stderr
    assert kraftlog_command("backup", LOG, nightly, "--keep", "1").returncode == 0
    assert len(listed(kraftlog_command, "list", nightly)) == 1
    done = kraftlog_command("backup", "prune", nightly, "20200101T000000.000Z")
    assert done.returncode == 2
    assert "no backup '20200101T000000.000Z'" in done.stderr


def test_a_backup_is_a_path_of_other_commands(kraftlog_command: Run, nightly: Path):
    def shown(*words: Any) -> str:
        done = kraftlog_command(*words)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    of_source = shown("records", LOG, "-t", "orders", "--cut", "end", "--format", "jsonl")
    assert shown("records", nightly, "-t", "orders", "--format", "jsonl") == of_source
    assert shown("topics", nightly) == shown("topics", LOG)
    assert kraftlog_command("records", f"{nightly}@nothing").returncode == 2


def test_faults_of_the_source_end_with_exit_code_1(kraftlog_command: Run, tmp_path: Path):
    done = kraftlog_command("backup", GOLDEN / "damaged" / "bit_flip_payload" / "log", tmp_path / "nightly")
    assert done.returncode == 1
    assert "bad_crc" in done.stderr
    done = kraftlog_command("backup", "show", tmp_path / "nightly")
    assert done.returncode == 1
    assert "bad_crc" in done.stderr


def test_usage(kraftlog_command: Run, tmp_path: Path):
    for words in (["list", tmp_path], ["verify", tmp_path], [LOG], ["take", LOG, tmp_path / "x", "--keep", "0"]):
        assert kraftlog_command("backup", *words).returncode == 2
    assert kraftlog_command("backup", LOG, LOG / "nightly").returncode == 2
