"""Findings of an audit in the report, as a page and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import kraftlog
from audit_replicas import batch, replica
from command_line import run_command
from golden_files import GOLDEN
from kraftlog.tables.all_tables import TABLES
from segments_of_transactions import with_other_marker

NOW = "2026-11-22T00:00:00Z"


@pytest.fixture
def differing(tmp_path: Path) -> list[Path]:
    """Return two log directories with other values at offset 1."""
    both = (
        (name, [batch(0, 4, "a"), batch(1, 4, value), batch(2, 4, "c")]) for name, value in (("1", "b"), ("2", "B"))
    )
    return [replica(tmp_path / name, (0, batches)) for name, batches in both]


def test_findings_of_an_audit_are_findings_of_the_report(differing: list[Path]):
    report = kraftlog.report(differing, now=NOW)
    (row,) = kraftlog.open(differing).findings().to_pylist()
    (finding,) = [one for one in report.findings if one.kind == "replicas_differ"]
    assert (finding.severity, finding.title, finding.where) == ("error", "replicas differ (1)", ["orders-0"])
    assert (finding.text, finding.details, finding.commands) == (row["meaning"], [row["known"]], [row["next_command"]])
    assert row["known"] in report.html


def test_what_a_check_of_the_report_has_found_is_not_repeated(tmp_path: Path):
    log = shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "log")
    with_other_marker(log, "orders-1", 1)
    report = kraftlog.report(log, now=NOW)
    codes = [one.code.name for one in report.facts.audit]
    assert codes.count("torn_transaction") == 1
    assert codes.count("open_transaction") > 1
    kinds = [one.kind for one in report.findings]
    assert (kinds.count("torn_transaction"), kinds.count("open_transaction")) == (1, 1)


def test_json_has_the_findings_and_the_table(differing: list[Path], tmp_path: Path):
    report = kraftlog.report(differing, now=NOW)
    found = json.loads(report.json)
    columns = [*TABLES["findings"].schema.shown, *TABLES["findings"].schema.on_request]
    assert found["audit"] == kraftlog.open(differing).findings(columns).to_pylist()
    assert [one["kind"] for one in found["findings"]] == [one.kind for one in report.findings]
    assert (found["verdict"], found["has_faults"], found["now"]) == ("1 error", False, "2026-11-22T00:00:00+00:00")
    assert found["paths"] == [str(path) for path in differing]
    for options in (["--format", "json"], ["-o", tmp_path / "report.json"]):
        done = run_command("report", *differing, "--now", NOW, *options)
        assert done.returncode == 0
        text = (tmp_path / "report.json").read_text() if "-o" in options else done.stdout
        assert json.loads(text) == found
    page = run_command("report", *differing, "--now", NOW, "-o", tmp_path / "page.json", "--format", "html")
    assert page.returncode == 0
    assert (tmp_path / "page.json").read_text().startswith("<!DOCTYPE html>")
