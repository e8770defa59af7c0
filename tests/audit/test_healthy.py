"""An audit of healthy directories finds nothing above a note: those that real brokers and stores wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_files import GOLDEN, name_of
from kraftlog.audit.audit import findings
from kraftlog.audit.finding import Severity
from stopped_broker import Broker, evidence_of

LOGS = ("log", "logs", "recovered")
EXPECTED = {
    "schema_all/log": {"impossible_header"},  # raft-control: Kafka's classes wrote it, but no broker
    "transactions_hanging/log": {"producer_epoch_goes_back"},  # a late batch of a fenced producer
}


def directories() -> list[Path]:
    """Return every log directory of a real broker."""
    found = [path for path in GOLDEN.rglob("*") if path.is_dir() and path.name in LOGS]
    return sorted(path for path in found if "damaged" not in path.parts)  # test_golden_audits.py has these


@pytest.mark.sweep(40)
@pytest.mark.parametrize("directory", directories(), ids=name_of)
def test_golden_directories(directory: Path) -> None:
    above = {one.code.name for one in findings(evidence_of(directory)) if one.code.severity < Severity.NOTE}
    assert above == EXPECTED.get(name_of(directory), set())


def test_a_store_is_healthy(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}, "payments": {"cleanup.policy": "compact"}}, hours=0)
    found = findings(broker.evidence())
    assert [one.code.name for one in found] == ["not_cleaned"]
