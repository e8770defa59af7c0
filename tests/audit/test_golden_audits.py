"""What an audit says of logs with transactions that Kafka wrote, and the commands that it names."""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path

import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog.audit.audit import CHECKS, findings
from kraftlog.audit.evidence import Evidence
from kraftlog.read.log_pass import Pass
from segments_of_transactions import with_other_marker

NOW = time.time_ns() // 1_000_000


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
