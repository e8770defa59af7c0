"""Findings of an audit in the report, as a page and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from small_cluster import SmallCluster

import kraftlog
from audit_replicas import batch, replica
from command_line import run_command
from golden_files import GOLDEN
from golden_releases import folder_of
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


def test_a_fact_has_one_name(cluster: SmallCluster):
    """Verify has other names for some: a batch that is there twice is a gap between sequences."""
    for sequence in (0, 5, 0):
        cluster.data("t-0", 1, 1, sequence=sequence, values=("same",))
    cluster.marker("t-0", 1, 2, coordinator=2)
    cluster.marker("t-0", 1, 1, coordinator=2)
    cluster.marker("t-0", 1, 2, coordinator=1)
    cluster.data("t-0", 1, 0)
    cluster.commit("t-0", 50)
    cluster.commit("t-0", 3)
    report = kraftlog.report(cluster.write(), now=NOW)
    codes = {one.code.name for one in report.facts.audit}
    assert codes >= {"sequence_gap", "duplicate_batch", "producer_epoch_goes_back", "marker_epoch_goes_back"}
    assert codes >= {"coordinator_epoch_goes_back", "commit_goes_back"}
    kinds = [one.kind for one in report.findings]
    assert len(kinds) == len(set(kinds))
    assert {"sequence_gap", "bad_producer_epoch", "bad_coordinator_epoch", "commit_goes_back"} <= set(kinds)
    names = {"duplicate_batch", "producer_epoch_goes_back", "marker_epoch_goes_back", "coordinator_epoch_goes_back"}
    assert names.isdisjoint(kinds)


def test_an_index_that_cannot_be_read_is_one_finding(tmp_path: Path):
    log = Path(shutil.copytree(folder_of("3.9.1", "clean") / "log", tmp_path / "log"))
    for name in ("plain-0/00000000000000000000.timeindex", "orders-0/00000000000000000066.snapshot"):
        (log / name).write_bytes((log / name).read_bytes()[:-1])
    report = kraftlog.report(log, now=NOW)
    kinds = {one.kind for one in report.findings}
    assert {one.code.name for one in report.facts.audit} >= {"index_mismatch", "snapshot_mismatch"}
    assert kinds >= {"bad_index", "bad_snapshot"}
    assert kinds.isdisjoint({"index_mismatch", "snapshot_mismatch"})


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
