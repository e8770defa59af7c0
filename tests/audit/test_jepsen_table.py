"""The table of Jepsen's anomalies in the docs names findings and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from kraftlog.audit.audit import finding_codes

ROOT = Path(__file__).parents[2]
ANOMALIES = [
    "G0",
    "G1a",
    "G1c",
    "G-single",
    "G2",
    "precommitted-read",
    "lost-write",
    "duplicate",
    "inconsistent-offsets",
    "nonmonotonic-send",
    "int-nonmonotonic-send",
    "int-send-skip",
    "nonmonotonic-poll",
    "int-nonmonotonic-poll",
    "poll-skip",
    "int-poll-skip",
    "unseen",
]


def rows() -> list[list[str]]:
    page = (ROOT / "docs" / "audit.md").read_text("utf-8").partition("## Jepsen's anomalies")[2]
    lines = [line for line in page.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_anomaly_of_the_workload_is_named():
    names = re.findall(r"`([\w-]+)`", " ".join(anomaly for anomaly, *_ in rows()))
    assert sorted(names) == sorted(ANOMALIES)


def test_findings_and_tests_exist():
    codes = {one.name for one in finding_codes()}
    text = "".join(path.read_text("utf-8") for path in (ROOT / "tests" / "audit").glob("test_*.py"))
    named = [(finding.strip("`"), test.strip("`")) for _, _, finding, test in rows() if test]
    assert len(named) >= 10
    for finding, test in named:
        assert finding in codes
        body = text.partition(f"def {test}(")[2].partition("\ndef ")[0]
        assert finding in body or finding in text.rpartition(f"def {test}(")[0][-700:]
