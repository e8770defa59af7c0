"""Clusters of one and of three nodes boot on what restore wrote, and agree with the tables of the source at the cut."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cluster_state
import pyarrow as pa
import pytest
import records
from jvm import Jvm, Line
from kafka_broker import WITH_ACLS, Broker
from restored_cluster import RestoredNode, node_addresses, restored_nodes, running

import kraftlog
from golden_files import GOLDEN
from kraftlog.backup.quorum import with_records
from kraftlog.backup.restore import Restore
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.metadata_log.image_snapshot import write_image

ORDERS, PAYMENTS = "orders", "payments"
TOPICS = [ORDERS, PAYMENTS]
SMALL = {"internal.segment.bytes": str(100 << 10)}
LEVELS = ("read_uncommitted", "read_committed")
COUNT = 120


def sent(topic: str, partition: int, count: int, **more: object) -> Iterator[Line]:
    for line in records.made(topic, partition, count):
        yield {**line, **more}


def history() -> Iterator[Line]:
    """Return what producers do: plain records, committed and aborted transactions, and one that is left open."""
    yield {"producer": {}}
    for partition in range(3):
        yield from sent(ORDERS, partition, COUNT)
    for name, outcome in (("one", "commit"), ("two", "abort"), ("three", "commit")):
        yield {"producer": {"transactional.id": name}}
        yield {"transaction": "begin"}
        yield from sent(ORDERS, 0, 3)
        yield from sent(PAYMENTS, 1, 3)
        yield {"group": "readers", "topic": ORDERS, "partition": 1, "offset": len(name), "metadata": name}
        yield {"transaction": outcome}
    yield {"producer": {"transactional.id": "left"}}
    yield {"transaction": "begin"}
    yield from sent(ORDERS, 2, 2)
    yield from sent(PAYMENTS, 0, 2)
    yield {"group": "readers", "topic": ORDERS, "partition": 2, "offset": 77, "metadata": "left open"}
    yield {"transaction": "leave"}
    yield {"producer": {}}
    yield from sent(PAYMENTS, 0, 5)


def without_slow_quota(at: ImageAt) -> ImageAt:
    """Return the image with a default quota of consumers that lets them read within the time of a test."""
    quotas = at.image.tables()["ClientQuotaRecord"]
    rows = [row | {"value": max(row["value"], 1e6)} for row in quotas.to_pylist()]
    return replace(at, image=with_records(at.image, {"ClientQuotaRecord": pa.Table.from_pylist(rows, quotas.schema)}))


@pytest.fixture(scope="module")
def source(java: Jvm) -> Iterator[Path]:
    """Return the log directory of a node with ACLs, users, quotas and configs, and with an open transaction."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-source-") as home:
        broker = Broker(java, Path(home), WITH_ACLS)
        at = without_slow_quota(kraftlog.open(GOLDEN / "metadata" / "log").image())
        write_image(broker.log_dir / "__cluster_metadata-0", at)
        (registration,) = at.image.tables()["RegisterBrokerRecord"].to_pylist()
        broker.take_directory_id(uuid_text(registration["log_dirs"][0]))
        (broker.log_dir / "bootstrap.checkpoint").unlink()
        with broker:
            broker.create({"name": ORDERS, "partitions": 3, "configs": SMALL} for _ in range(1))
            broker.create({"name": PAYMENTS, "partitions": 2, "configs": {}} for _ in range(1))
            broker.produce(history())
        yield broker.log_dir


class Run(NamedTuple):
    """What the restored cluster answered."""

    source: kraftlog.Log
    done: Restore
    consumed: dict[str, tuple[list[Line], dict[tuple[str, int], int]]]
    state: Line
    groups: list[Line]
    transactions: list[Line]
    later: list[Line]
    errors: list[str]
    nodes: list[RestoredNode]


@pytest.fixture(scope="module", params=[(1, "static"), (3, "dynamic")], ids=["one node", "three nodes"])
def run(java: Jvm, source: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    count, quorum = request.param
    with tempfile.TemporaryDirectory(prefix="kraftlog-restored-") as home:
        target, addresses = Path(home) / "cluster", node_addresses(count)
        done = kraftlog.restore(source, target, nodes=addresses, directories=count, cut="end", quorum=quorum)
        nodes = restored_nodes(java, target, addresses)
        with running(nodes):
            consumed = {level: nodes[0].consume_at(level, TOPICS) for level in LEVELS}
            state, groups = nodes[0].cluster_state(), nodes[0].groups()
            transactions = nodes[0].ended_transactions(TOPICS, known=["one", "two", "three", "left"])
            nodes[-1].produce(
                [
                    {"producer": {"transactional.id": "left"}},
                    {"transaction": "begin"},
                    *sent(PAYMENTS, 0, 1),
                    {"transaction": "commit"},
                    {"producer": {}},
                    *sent(ORDERS, 2, 1),
                ]
            )
            later = nodes[0].consume_at("read_committed", TOPICS)[0]
            errors = [error for node in nodes for error in node.errors()]
        yield Run(kraftlog.open(source, cut="end"), done, consumed, state, groups, transactions, later, errors, nodes)


def test_nothing_is_missing(run: Run) -> None:
    assert run.done.faults == []
    assert all(one.has_data and one.written is not None for one in run.done.partitions)
    orders = [one for one in run.done.partitions if one.topic == ORDERS]
    assert [one.is_identical for one in orders] == [True, True, False]  # where a marker ends the open transaction


@pytest.mark.parametrize("level", LEVELS)
def test_consumers_get_the_records_of_the_source_at_the_cut(run: Run, level: str) -> None:
    found = records.by_partition(run.consumed[level][0])
    for topic in TOPICS:
        for partition in range(3 if topic == ORDERS else 2):
            log = run.source.of_files(run.source.found.only(lambda t, p: (t, p) == (topic, partition)))  # noqa: B023
            rows = log.records(records.COLUMNS, isolation_level=level).to_table()
            assert found.get((topic, partition), []) == list(records.lines(rows))


def test_the_open_transaction_is_aborted_and_hides_nothing_behind_it(run: Run) -> None:
    committed, ends = run.consumed["read_committed"]
    assert len(records.by_partition(committed)[PAYMENTS, 0]) == 5
    assert ends == run.consumed["read_uncommitted"][1]
    states = {line["transactional_id"]: line["state"] for line in run.transactions}
    assert states == {
        "one": "CompleteCommit",
        "two": "CompleteAbort",
        "three": "CompleteCommit",
        "left": "CompleteAbort",
    }
    assert [(one.transactional_id, one.before, one.after) for one in run.done.ended_transactions] == [
        ("left", "Ongoing", "CompleteAbort")
    ]


def test_groups_have_their_offsets(run: Run) -> None:
    rows = run.source.offsets(strict=False).to_pylist()
    expected = [[row["topic"], row["partition"], row["offset"]] for row in rows if row["state"] == "committed"]
    assert expected == [[ORDERS, 1, 5]]
    (group,) = (line for line in run.groups if line["group"] == "readers")
    assert [offset[:3] for offset in group["offsets"]] == expected
    assert run.done.groups == {"readers": {"orders-1": 5}}


def test_admin_says_what_is_in_the_image_of_the_source(run: Run) -> None:
    """Topic ids, configs, features, quotas, SCRAM credentials and ACLs; replicas as far as there are nodes."""
    expected = cluster_state.of_image(run.source.image())
    expected["configs"] = [row for row in expected["configs"] if row[:2] != ["BROKER", "1"]]  # of a node that is gone
    found = cluster_state.in_order(run.state)
    assert all(expected.values())
    for state in (expected, found):
        for topic in state["topics"].values():
            topic["replicas"] = [len(replicas) for replicas in topic["replicas"]]
    found["features"].pop("kraft.version", None)
    assert found == expected


def test_producers_go_on(run: Run) -> None:
    before, after = (records.by_partition(lines) for lines in (run.consumed["read_committed"][0], run.later))
    added = {of: after[of][len(before.get(of, [])) :] for of in after}
    assert {of: len(lines) for of, lines in added.items() if lines} == {(PAYMENTS, 0): 1, (ORDERS, 2): 1}
    assert all(after[of][: len(lines)] == lines for of, lines in before.items())


def test_verify_and_audit_are_silent_afterwards(run: Run) -> None:
    paths = [path for node in run.nodes for path in node.log_dir.parent.glob("logs-*")]
    log = kraftlog.open(paths)
    assert [row for row in log.errors().to_pylist() if row["error"] != "not_read"] == []
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []


def test_the_nodes_do_not_complain(run: Run) -> None:
    """But for what a busy machine makes them say: slow events, and requests to a controller that no longer leads."""
    of_busy_machine = "EventPerformanceMonitor", "ControllerApis"
    assert [error for error in run.errors if not any(word in error for word in of_busy_machine)] == []
