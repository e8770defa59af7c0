"""Logs that Kafka wrote have no findings, except those that were damaged, or put together by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN, damaged_cases, name_of, scenarios
from golden_releases import LOGS, folder_of
from kraftlog.audit.audit import CHECKS, findings
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, Severity
from kraftlog.read.log_pass import Pass

BY_HAND = {
    "schema_all": {("impossible_header", "raft-control")},  # records of Raft outside of the metadata log
    "transactions_hanging": {("producer_epoch_goes_back", "orders-late")},  # a late batch in the next transaction
}
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
    found = findings(Evidence(log.found, Pass(), 0))
    return [one for one in found if one.code.severity < Severity.NOTE]


@pytest.mark.parametrize("folder", scenarios(), ids=name_of)
def test_logs_of_kafka(folder: Path):
    assert {(one.code.name, one.topic) for one in above_notes(folder / "log")} == BY_HAND.get(name_of(folder), set())


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
    found = findings(Evidence(log.found, Pass(), 0))
    assert {one.code.name for one in found} == {"open_transaction"}
    assert len(CHECKS) > 10
