"""A backup of a live broker goes into another live cluster: its topics, committed records and groups, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cluster_state
import pytest
import records
from jvm import Jvm, Line
from kafka_broker import WITH_ACLS, Broker

import kraftlog

ORDERS, PAYMENTS, OTHER = "orders", "payments", "other"
COUNT = 40
AT_ABORTED = COUNT + 4
CONFIGS = {"retention.ms": "-1", "segment.bytes": "1048576", "max.message.bytes": "2000000"}
COMMAND = [sys.executable, "-c", "from kraftlog.cli import main; main()"]
OF_A_RECORD = ("timestamp", "timestampType", "key", "value", "headers")


def history() -> Iterator[Line]:
    """Return what producers do: plain records, committed and aborted transactions with offsets, and an open one."""
    yield {"producer": {}}
    for partition in range(3):
        yield from records.made(ORDERS, partition, COUNT)
    yield from records.made(OTHER, 0, 3)
    for name, outcome in (("one", "commit"), ("two", "abort"), ("three", "commit"), ("four", "commit")):
        yield {"producer": {"transactional.id": name}}
        yield {"transaction": "begin"}
        yield from records.made(ORDERS, 0, 3)
        yield from records.made(PAYMENTS, 1, 3)
        yield {"transaction": outcome}
    yield {"producer": {"transactional.id": "groups"}}
    yield {"transaction": "begin"}
    # at an aborted record, in the middle, at the end, and in a topic that is not restored
    for topic, partition, offset in ((ORDERS, 0, AT_ABORTED), (ORDERS, 1, 7), (ORDERS, 2, COUNT), (OTHER, 0, 2)):
        yield {"group": "readers", "topic": topic, "partition": partition, "offset": offset, "metadata": "noted"}
    yield {"group": "payers", "topic": PAYMENTS, "partition": 1, "offset": 1, "metadata": ""}
    yield {"transaction": "commit"}
    yield {"producer": {"transactional.id": "left"}}
    yield {"transaction": "begin"}
    yield from records.made(ORDERS, 2, 2)
    yield from records.made(PAYMENTS, 0, 2)
    yield {"transaction": "leave"}


def restore(backup: Path, target: Path, *more: object) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "restore", str(backup), str(target), "--no-progress", *map(str, more)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


class Run(NamedTuple):
    """What was asked for, and what the target answered."""

    backup: Path
    evidence: Path
    source: dict[str, tuple[list[Line], Any]]
    said: list[subprocess.CompletedProcess[str]]
    before: Line
    state: Line
    consumed: dict[str, dict[tuple[str, int], list[Line]]]
    groups: dict[str, Line]
    errors: list[str]


@pytest.fixture(scope="module")
def run(java: Jvm) -> Iterator[Run]:
    with tempfile.TemporaryDirectory(prefix="kraftlog-live-") as name:
        home = Path(name)
        (home / "source").mkdir()
        (home / "target").mkdir()
        source, target = Broker(java, home / "source"), Broker(java, home / "target", WITH_ACLS)
        backup, evidence = home / "nightly", home / "evidence"
        with source:
            source.create([{"name": ORDERS, "partitions": 3, "configs": CONFIGS}])
            source.create([{"name": PAYMENTS, "partitions": 2, "configs": {}}])
            source.create([{"name": OTHER, "partitions": 1, "configs": {}}])
            source.produce(history())
            kraftlog.Repository(backup).backup(source.log_dir)
            got = {"read_committed": source.consume_at("read_committed", [ORDERS, PAYMENTS])}
        with target:
            to = ["--bootstrap-server", target.bootstrap_servers, "-t", "orders", "-t", "pay*"]
            to += ["--rename", f"{PAYMENTS}=paid"]
            before = target.cluster_state()
            said = [restore(backup, evidence, *to, "--dry-run")]
            between = target.cluster_state()
            said += [restore(backup, evidence, *to, "--json"), restore(backup, evidence, *to)]
            said.append(restore(backup, home / "again", *to))
            consumed = {
                level: records.by_partition(target.consume_at(level, [ORDERS, "paid"])[0])
                for level in ("read_committed", "read_uncommitted")
            }
            groups = {line["group"]: line for line in target.groups()}
            state, errors = target.cluster_state(), target.errors()
        assert between == before
        yield Run(backup, evidence, got, said, before, state, consumed, groups, errors)


def plain(lines: list[Line]) -> list[Line]:
    """Return what must stay of records; the client cannot write a timestamp of 0."""
    return [{name: line[name] or (1 if name == "timestamp" else line[name]) for name in OF_A_RECORD} for line in lines]


def expected(run: Run) -> dict[tuple[str, int], list[Line]]:
    """Return the committed records of the backup, by the names of the target."""
    rows = kraftlog.open(run.backup, topics=[ORDERS, PAYMENTS]).records(
        records.COLUMNS, isolation_level="read_committed"
    )
    found = records.by_partition(records.lines(rows.to_table()))
    return {("paid" if topic == PAYMENTS else topic, number): lines for (topic, number), lines in found.items()}


def test_committed_records_are_there_in_their_order(run: Run) -> None:
    assert run.said[1].returncode == 0, run.said[1].stderr
    wanted = expected(run)
    assert {of: len(lines) for of, lines in wanted.items()} == {
        **{(ORDERS, 0): COUNT + 9, (ORDERS, 1): COUNT, (ORDERS, 2): COUNT},
        ("paid", 1): 9,
    }
    of_consumer = records.by_partition(run.source["read_committed"][0])
    assert plain(wanted[ORDERS, 0]) == plain(of_consumer[ORDERS, 0])
    assert {of: plain(lines) for of, lines in run.consumed["read_committed"].items()} == {
        of: plain(lines) for of, lines in wanted.items()
    }


def test_aborted_and_open_records_are_not_there_at_any_level(run: Run) -> None:
    assert run.consumed["read_uncommitted"] == run.consumed["read_committed"]


def test_topics_have_their_partitions_and_configs(run: Run) -> None:
    added = run.state["topics"].keys() - run.before["topics"].keys()
    assert {one for one in added if not one.startswith("__")} == {ORDERS, "paid"}
    assert len(run.state["topics"][ORDERS]["replicas"]) == 3
    assert len(run.state["topics"]["paid"]["replicas"]) == 2
    configs = {name: value for kind, of, name, value in cluster_state.in_order(run.state)["configs"] if of == ORDERS}
    assert configs == CONFIGS
    assert OTHER not in run.state["topics"]


def test_groups_read_on_with_the_same_record(run: Run) -> None:
    done = json.loads(run.said[1].stdout)
    offsets = {tuple(of[:2]): of[2] for of in run.groups["readers"]["offsets"]}
    source = {(ORDERS, 0): AT_ABORTED, (ORDERS, 1): 7, (ORDERS, 2): COUNT}
    assert offsets.keys() == source.keys()
    for place, offset in source.items():
        left = [line for line in run.consumed["read_committed"][place] if line["offset"] >= offsets[place]]
        assert plain(left) == plain([line for line in expected(run)[place] if line["offset"] >= offset])
    assert {of[4] for line in run.groups.values() for of in line["offsets"]} == {""}
    assert "3 committed offsets lose their metadata" in run.said[1].stderr
    assert done["groups"]["readers"] == {f"{topic}-{number}": offset for (topic, number), offset in offsets.items()}
    own = {group for group in run.groups if group.startswith("kraftlog-replay-")}
    assert run.groups.keys() - own == {"readers", "payers"}
    assert len(own) == 1


def test_the_report_counts_what_the_target_has(run: Run) -> None:
    done = json.loads((run.evidence / "restored.json").read_text())
    assert done == json.loads(run.said[1].stdout)
    counts = {(one["topic"], one["partition"]): one["records"] for one in done["partitions"]}
    assert counts == {**{of: len(lines) for of, lines in expected(run).items()}, ("paid", 0): 0}
    assert done["faults"] == done["obstacles"] == []
    assert [one["name"] for one in done["new_topics"]] == [ORDERS, "paid"]
    assert done["source_cluster_id"] == done["cluster_id"]  # of all brokers of these tests


def test_dry_run_and_second_runs(run: Run) -> None:
    dry, _, same, other = run.said
    assert dry.returncode == 0, dry.stderr
    assert "nothing was changed; there would be 5 partitions" in dry.stdout
    assert (same.returncode, "has the report of a finished restore" in same.stderr) == (2, True)
    assert (other.returncode, "orders-0 holds offsets 0 to" in other.stderr) == (1, True)


def test_the_target_does_not_complain(run: Run) -> None:
    assert run.errors == []
