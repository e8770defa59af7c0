"""Findings: which there are, the worst first, and commands that can be pasted into a shell."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.cli.tasks import MODULES
from kraftlog.log_report.facts import Facts
from kraftlog.log_report.finding import SEVERITIES
from kraftlog.log_report.findings import findings
from kraftlog.log_report.group_lags import GroupLags
from report_pages import Page
from segments_of_transactions import SegmentsOfTransactions

Command = Callable[..., Any]
NOW = 1_800_000_000_000


def kinds(made: kraftlog.Report) -> list[tuple[str, str]]:
    return [(one.severity, one.kind) for one in made.findings]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("codecs/log", []),
        ("damaged/bit_flip_payload/log", [("error", "bad_crc")]),
        ("damaged/truncated_in_last_records/log", [("warning", "torn_tail")]),
        ("transactions_hanging/log", [("error", "bad_producer_epoch"), ("error", "hanging_transaction")]),
        ("transactions_live/log", [("warning", "open_transaction")]),
        ("deleted_records/log", [("note", "not_read")]),
        ("metadata/log", [("note", "offline"), ("note", "leader_imbalance"), ("note", "fenced_broker")]),
    ],
)
def test_what_is_found(path: str, expected: list[tuple[str, str]]):
    made = kraftlog.report(GOLDEN / path, now=NOW)
    assert kinds(made) == expected
    page = Page(made.html)
    assert [(one["severity"], one["kind"]) for one in page.findings] == expected
    for shown, one in zip(page.findings, made.findings, strict=True):
        assert all(text in shown["text"] for text in (one.title, one.text, *one.where, *one.details))
        assert shown["commands"].splitlines() == one.commands
    assert (made.verdict == "Nothing wrong was found") == (not expected)
    assert made.verdict in page.text


def test_hanging_transactions_have_the_command_that_aborts_them():
    made = kraftlog.report(GOLDEN / "transactions_hanging" / "log", now=NOW)
    finding = next(one for one in made.findings if one.kind == "hanging_transaction")
    rows = kraftlog.open(GOLDEN / "transactions_hanging" / "log").hanging_transactions().to_pylist()
    assert [row["command"] for row in rows] == finding.commands[1:]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_torn_transaction(tmp_path: Path, workers: int):
    """No partition shows it by itself; the page names the one that is not as the others."""
    for partition, marker in enumerate(("COMMIT", "COMMIT", "ABORT")):
        SegmentsOfTransactions(tmp_path / f"orders-{partition}").segment([("data", 1), ("marker", 1, marker)])
    made = kraftlog.report(tmp_path, now=NOW, workers=workers)
    (finding,) = made.findings
    (fault,) = kraftlog.open(tmp_path).verify()
    assert (finding.severity, finding.kind) == ("error", fault.error) == ("error", "torn_transaction")
    assert (finding.title, finding.where, finding.details) == (
        "1 transaction that is torn",
        ["orders-2"],
        [fault.message],
    )
    assert [command.split()[1] for command in finding.commands] == ["transactions", "batches"]
    assert [one.name for one in made.facts.partitions if one.faults] == ["orders-2"]
    assert fault.message in Page(made.html).findings[0]["text"]


def test_the_worst_come_first():
    paths = [GOLDEN / name / "log" for name in ("metadata", "transactions_hanging")]
    made = kraftlog.report([*paths, GOLDEN / "damaged" / "truncated_in_last_records" / "log"], now=NOW)
    order = [SEVERITIES.index(one.severity) for one in made.findings]
    assert order == sorted(order)
    assert set(order) == {0, 1, 2}


def test_a_stopped_cluster_is_no_error_and_a_running_one_is():
    made = kraftlog.report(GOLDEN / "metadata" / "log", now=NOW)
    assert made.facts.cluster is not None
    made.facts.cluster.brokers[0]["fenced"] = False
    found = {one.kind: one for one in findings(made.facts)}
    assert found["offline"].severity == "error"
    assert any("--unavailable-partitions" in command for command in found["offline"].commands)


def lag_row(**given: Any) -> dict[str, Any]:
    known = {"group": "g", "topic": "t", "partition": 0, "log_start_offset": 10, "log_end_offset": 20}
    committed = given.get("current_offset", 15)
    return (
        known | {"current_offset": 15, "lag": 5, "read_committed_lag": 5, "sentence": f"committed {committed}"} | given
    )


@pytest.mark.parametrize(
    ("offset", "kind"),
    [(9, "offset_before_log_start"), (10, None), (20, None), (21, "offset_behind_log_end")],
)
def test_offsets_that_the_log_does_not_have(offset: int, kind: str | None):
    lags = GroupLags()
    lags.add_lags([pa.RecordBatch.from_pylist([lag_row(current_offset=offset, lag=20 - offset)])])
    lags.groups["g"].members = 1
    found = findings(Facts(["/logs"], NOW, groups=lags))
    assert [one.kind for one in found] == ([] if kind is None else [kind])
    if kind is not None:
        assert found[0].severity == "error"
        assert f"committed {offset}" in found[0].details[0]
        assert found[0].commands[0] == "kraftlog lag /logs --group g"


def test_groups_without_members_that_are_behind():
    lags = GroupLags()
    rows = [lag_row(group=f"g{number}", lag=number) for number in range(3)]
    lags.add_lags([pa.RecordBatch.from_pylist(rows)])
    (found,) = findings(Facts(["/logs"], NOW, groups=lags))
    assert (found.kind, found.severity, found.where) == ("idle_group", "note", ["g2 (2)", "g1 (1)"])


def test_every_group_keeps_its_worst_partitions():
    lags = GroupLags()
    rows = [lag_row(partition=number, lag=number * 7 % 101) for number in range(101)]
    lags.add_lags([pa.RecordBatch.from_pylist(rows[:50]), pa.RecordBatch.from_pylist(rows[50:])])
    assert [row["lag"] for row in lags.groups["g"].worst] == list(range(100, 90, -1))
    assert lags.groups["g"].lag == sum(range(101))


def test_commands_run(kraftlog_command: Command, tmp_path: Path):
    """Each command of kraftlog that a page shows is understood, and finds what the page says."""
    logs = tmp_path / "log dir; echo"
    logs.mkdir()
    sources = ("transactions_live/log/*", "transactions_hanging/log/orders-late-0", "metadata/log/*-0")
    for source in sources:
        for folder in GOLDEN.glob(source):
            if folder.is_dir():
                shutil.copytree(folder, logs / folder.name)
    for number, case in enumerate(("bit_flip_payload", "batch_length_13", "truncated_in_last_records")):
        shutil.copytree(GOLDEN / "damaged" / case / "log" / "t-0", logs / f"payments-{number}")
    for partition, marker in enumerate(("COMMIT", "ABORT")):
        SegmentsOfTransactions(logs / f"torn-{partition}").segment([("data", 900), ("marker", 900, marker)])
    made = kraftlog.report(logs, now=NOW)
    assert "torn_transaction" in {one.kind for one in made.findings}
    commands = [command for one in made.findings for command in one.commands if command.startswith("kraftlog ")]
    assert len(commands) > 8
    for command in commands:
        words = shlex.split(command)
        assert words[1] in MODULES
        assert str(logs) in words[2]
        done = kraftlog_command(*words[1:], cwd=tmp_path)
        assert done.returncode in (0, 1), (command, done.stderr)
        assert "Usage:" not in done.stderr
    assert {"rescued-payments-0", "rescued-payments-1", "salvaged-payments-1.parquet"} <= {
        one.name for one in tmp_path.iterdir()
    }


def test_transactions_of_one_topic_are_judged_by_the_coordinators_of_the_directory():
    made = kraftlog.report(GOLDEN / "transactions_live" / "log", topics=["orders"], now=NOW)
    (finding,) = made.findings
    assert finding.kind == "open_transaction"
    assert "the coordinator ends them" in finding.text
    assert "__transaction_state" not in Page(made.html).sections["about"].text


def test_kafkas_tools_are_named_with_a_broker():
    made = kraftlog.report([GOLDEN / "transactions_live" / "log", GOLDEN / "metadata" / "log"], now=NOW)
    others = [line for one in made.findings for line in one.commands if not line.startswith("kraftlog ")]
    assert others
    assert all(".sh --bootstrap-server <broker>" in line for line in others)
