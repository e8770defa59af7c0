"""The table ``findings``: what it shows of a finding, in every door, and its silence on what real brokers wrote."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN, name_of, scenarios
from kraftlog.audit import audit
from kraftlog.audit.audit import finding_codes
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.query.session import SqlSession
from kraftlog.tables.all_tables import TABLES
from segments_of_transactions import with_other_marker

ALL = [*TABLES["findings"].schema.shown, *TABLES["findings"].schema.on_request]
CODES = {one: FindingCode(str(one), one, f"Means {one}.", "Always.") for one in Severity}

BY_HAND = {
    "schema_all": {("impossible_header", "raft-control")},  # records of Raft outside of the metadata log
    "transactions_hanging": {("producer_epoch_goes_back", "orders-late")},  # a late batch in the next transaction
}
"""Logs that were put together by hand, from pieces that brokers wrote."""


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Return a log directory with a transaction that one partition aborted and the others committed."""
    log = shutil.copytree(GOLDEN / "transactions" / "log", tmp_path / "a log")
    with_other_marker(log, "orders-1", 1)
    return log


def use(monkeypatch: pytest.MonkeyPatch, *each: Finding) -> None:
    """Let the only check of an audit return these."""

    def check(_: Evidence) -> Iterator[Finding]:
        yield from each

    monkeypatch.setattr(audit, "CHECKS", (check,))


def test_a_finding_has_all_columns(torn: Path):
    row = kraftlog.open(torn).findings(ALL).to_pylist()[0]
    (fault,) = [one for one in kraftlog.open(torn).verify() if one.error == "torn_transaction"]
    code = next(one for one in finding_codes() if one.name == "torn_transaction")
    assert (row["code"], row["severity"], row["meaning"]) == (code.name, "error", code.meaning)
    assert (row["topic"], row["partition"], row["offset"]) == (fault.topic, fault.partition, fault.base_offset)
    assert row["known"].endswith(fault.message.partition("is torn: ")[2])
    assert row["known"] in row["sentence"]


def test_every_door_has_the_same_rows(torn: Path):
    log = kraftlog.open(torn)
    rows = log.findings().to_pylist()
    assert rows[0]["severity"] == "error"
    done = run_command("audit", torn, "--format", "jsonl")
    assert [json.loads(line) for line in done.stdout.splitlines()] == rows
    with SqlSession(log) as session:
        assert session.query("select * from findings").read_all().select(list(rows[0])).to_pylist() == rows
    done = run_command("audit", torn, "--format", "csv", "--columns", "topic,offset")
    line = next(csv.DictReader(done.stdout.splitlines()))
    assert line == {"topic": "orders", "offset": str(rows[0]["offset"])}


def test_the_command_prints_a_sentence_for_each_finding(torn: Path):
    done = run_command("audit", torn)
    assert done.stdout.splitlines() == kraftlog.open(torn).findings(["sentence"])["sentence"].to_pylist()
    assert ": 1 error, " in done.stderr.splitlines()[-1]
    assert done.returncode == 1
    refused = run_command("audit", torn, "--columns", "code")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--columns requires --format" in refused.stderr


@pytest.mark.parametrize("topics", [["orders"], ["__consumer_offsets"]])
def test_only_the_topics_that_are_asked_for_are_audited(torn: Path, topics: list[str]):
    found = kraftlog.open(torn, topics=topics).findings(["topic"])["topic"].to_pylist()
    assert set(found) == set(topics)


@pytest.mark.parametrize(
    ("severities", "code", "summary"),
    [
        ([Severity.NOTE, Severity.NOTE], 0, "2 notes"),
        ([Severity.NOTE, Severity.WARNING], 1, "1 warning, 1 note"),
        ([Severity.NOTE, Severity.ERROR, Severity.ERROR], 1, "2 errors, 1 note"),
        ([], 0, "no findings"),
    ],
)
def test_notes_do_not_count_for_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, severities: list[Severity], code: int, summary: str
):
    use(monkeypatch, *(Finding(CODES[one], "something") for one in severities))
    for options in ([], ["--format", "jsonl", "--columns", "code"]):
        done = run_command("audit", GOLDEN / "transactions" / "log", *options)
        assert done.returncode == code
        assert done.stderr.splitlines() == [f"88181 bytes in 9 segments: {summary}"]
        assert len(done.stdout.splitlines()) == len(severities)


def test_what_cannot_be_read_counts_for_the_exit_code():
    done = run_command("audit", GOLDEN / "damaged" / "bit_flip_crc_field" / "log")
    assert done.returncode == 1
    assert "no findings" in done.stderr
    assert "bad_crc" in done.stderr


def test_the_worst_comes_first_and_then_by_code_and_place(monkeypatch: pytest.MonkeyPatch):
    each = [
        Finding(CODES[Severity.NOTE], "a"),
        Finding(CODES[Severity.ERROR], "b", "orders", 1, 5),
        Finding(CODES[Severity.ERROR], "c", "orders", 1, 4),
        Finding(CODES[Severity.ERROR], "d", "orders", 0, 9),
        Finding(CODES[Severity.ERROR], "e"),
        Finding(CODES[Severity.WARNING], "f"),
    ]
    use(monkeypatch, *each)
    rows = kraftlog.open(GOLDEN / "transactions" / "log").findings(["known"])["known"].to_pylist()
    assert rows == ["e", "d", "c", "b", "f", "a"]


def test_commands_name_the_log_directories_as_the_user_did(torn: Path, monkeypatch: pytest.MonkeyPatch):
    def check(evidence: Evidence) -> Iterator[Finding]:
        yield Finding(CODES[Severity.NOTE], "x", next_command=evidence.command("verify", None, "-t", "a b"))

    monkeypatch.setattr(audit, "CHECKS", (check,))
    monkeypatch.chdir(torn.parent)
    for paths in ([torn.name], [f"{torn.name}/orders-1", f"{torn.name}/orders-0"]):
        (command,) = kraftlog.open(paths).findings(["next_command"])["next_command"].to_pylist()
        assert shlex.split(command) == ["kraftlog", "verify", torn.name, "-t", "a b"]
    monkeypatch.chdir(torn / "orders-1")
    (command,) = kraftlog.open(f"{0:020d}.log").findings(["next_command"])["next_command"].to_pylist()
    assert shlex.split(command) == ["kraftlog", "verify", str(torn), "-t", "a b"]


def test_a_sentence_names_what_a_finding_has():
    code = CODES[Severity.ERROR]
    assert Finding(code, "it is so").sentence == "error error: it is so. Means error."
    whole = Finding(code, "it is so", "orders", 1, 7, 3, "x.index", "kraftlog dump x.index")
    where = "orders-1, offset 7, node 3, x.index"
    assert whole.sentence == f"error error ({where}): it is so. Means error. Next: kraftlog dump x.index"
    assert Finding(code, "it is so", "orders").where == "orders"


def test_codes_are_distinct_and_say_when_files_prove_them():
    codes = finding_codes()
    assert "torn_transaction" in {one.name for one in codes}
    assert len({one.name for one in codes}) == len(codes)
    assert [one.name for one in codes if not (one.meaning.endswith(".") and one.precondition.endswith("."))] == []
    assert codes == sorted(codes, key=lambda one: (one.severity, one.name))


@pytest.mark.parametrize("folder", scenarios(), ids=name_of)
def test_silent_on_what_real_brokers_wrote(folder: Path):
    faults: list[kraftlog.Fault] = []
    rows = kraftlog.open(folder / "log").findings(["code", "severity", "topic"], faults=faults).to_pylist()
    found = {(row["code"], row["topic"]) for row in rows if row["severity"] != "note"}
    assert found == BY_HAND.get(name_of(folder), set())
