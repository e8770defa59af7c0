"""Logs of other releases have no findings above notes, and damaged ones those that a checksum does not show."""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path

import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN, damaged_cases, name_of
from golden_releases import LOGS, folder_of
from kraftlog.audit.audit import CHECKS, findings
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, Severity
from kraftlog.read.log_pass import Pass
from segments_of_transactions import with_other_marker

NOW = time.time_ns() // 1_000_000
DAMAGED = {
    "bit_flip_leader_epoch": {"impossible_header"},
    "last_offset_delta_negative": {"impossible_header"},
    "records_count_gzip_plus_1": {"impossible_header"},
    "records_count_gzip_plus_1000000": {"impossible_header"},
    "records_count_plus_1": {"impossible_header"},
    "records_count_plus_1000000": {"impossible_header"},
}


def above_notes(directory: Path) -> list[Finding]:
    log = kraftlog.open(directory)
    found = findings(Evidence(log.found, Pass(), NOW))
    return [one for one in found if one.code.severity < Severity.NOTE]


@pytest.mark.parametrize(("release", "state"), LOGS)
def test_logs_of_other_releases(release: str, state: str):
    assert above_notes(folder_of(release, state) / "log") == []


@pytest.mark.parametrize("folder", damaged_cases(), ids=name_of)
def test_damaged_logs(folder: Path):
    assert {one.code.name for one in above_notes(folder / "log")} == DAMAGED.get(folder.name, set())


def test_a_tier_with_its_broker():
    assert above_notes(GOLDEN / "aiven_tier" / "broker" / "logs") == []


@pytest.mark.parametrize("name", ["transactions", "transactions_live", "transactions_tv0"])
def test_only_open_transactions_are_noted(name: str):
    log = kraftlog.open(GOLDEN / name / "log")
    found = findings(Evidence(log.found, Pass(), NOW))
    assert {one.code.name for one in found} == {"open_transaction"}
    assert len(CHECKS) > 10


@pytest.mark.parametrize("name", ["transactions", "transactions_hanging"])
def test_the_next_commands_run(name: str, tmp_path: Path):
    """With a marker that says the opposite there are findings of several checks."""
    log = shutil.copytree(GOLDEN / name / "log", tmp_path / "a log")
    with_other_marker(log, {"transactions": "orders-1"}.get(name, "orders-late-0"), 1)
    commands = set(kraftlog.open(log).findings(["next_command"])["next_command"].to_pylist())
    assert len(commands) > 2
    for command in commands:
        done = run_command(*shlex.split(command)[1:])
        assert done.returncode == 0, done.stderr
        assert done.stdout
