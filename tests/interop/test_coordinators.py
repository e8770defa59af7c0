"""Kafka's coordinators load logs that kraftlog wrote, and say of them what kraftlog's tables say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import coordinator_answers as answers
import coordinator_scenarios as scenarios
import pytest
from coordinator_log import CoordinatorLog
from jvm import Jvm, Line
from kafka_broker import Broker, complaints_in
from kafka_tool import run_tool

import kraftlog
from kraftlog.metadata.uuids import uuid_text

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
KNOWN, FUTURE = "known", "future"
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


class Run(NamedTuple):
    """What was written, kraftlog's tables of it, and what Kafka said when it had loaded it, its tools too."""

    tables: dict[str, dict[str, Line]]
    unknown: dict[str, list[int]]
    groups: list[Line]
    ids: list[Line]
    described: list[answers.Described]
    output: str
    tables_afterwards: dict[str, dict[str, Line]]
    lags: list[answers.Described]


@pytest.fixture(scope="module")
def topic_ids(broker: Broker) -> dict[str, str]:
    """Let Kafka make the topics of the coordinators, and those that the records speak of."""
    with broker:
        broker.create({"name": name, "partitions": count, "configs": {}} for name, count in scenarios.TOPICS.items())
        broker.join([{"group": "first", "topic": "orders", "partition": 0, "offset": 0, "metadata": ""}])
        broker.produce([{"producer": {"transactional.id": "first"}}])
    topics = kraftlog.open(broker.log_dir).image().image.tables()["TopicRecord"].to_pylist()
    return {row["name"]: uuid_text(row["topic_id"]) for row in topics}


@pytest.fixture(scope="module")
def runs(java: Jvm, broker: Broker, topic_ids: dict[str, str]) -> dict[str, Run]:
    """Put logs in the place of Kafka's own, and ask it what is in them: once all that is known, once what is not."""
    return {
        KNOWN: _run(java, broker, scenarios.offsets(topic_ids), scenarios.transactional_ids()),
        FUTURE: _run(
            java, broker, scenarios.offsets_of_the_future(topic_ids), scenarios.transactional_ids_of_the_future()
        ),
    }


def _run(java: Jvm, broker: Broker, offsets: CoordinatorLog, ids: CoordinatorLog) -> Run:
    broker.replace_log(OFFSETS, 0, {0: offsets.data})
    broker.replace_log(TRANSACTIONS, 0, {0: ids.data})
    broker.forget_the_clean_shutdown()
    tables, unknown = (
        _tables(broker.log_dir),
        {topic: _unknown(broker.log_dir, topic) for topic in (OFFSETS, TRANSACTIONS)},
    )
    said = len(broker.output())
    with broker:
        groups = broker.groups()
        _, ids_of_broker = broker.transactions(scenarios.TOPICS)
        arguments = ["--bootstrap-server", broker.bootstrap_servers, "--describe", "--all-groups"]
        (told,) = run_tool(java, GROUP_TOOL, [arguments])
        assert told.code == 0, told
        described = answers.described(told.output)
    for topic, log in ((OFFSETS, offsets), (TRANSACTIONS, ids)):  # recovery has cut nothing off
        assert (broker.log_dir / f"{topic}-0" / f"{0:020}.log").read_bytes().startswith(log.data)
    afterwards, lags = _tables(broker.log_dir), answers.lags(broker.log_dir)
    return Run(tables, unknown, groups, ids_of_broker, described, broker.output()[said:], afterwards, lags)


def _tables(log_dir: Path) -> dict[str, dict[str, Line]]:
    return {
        "offsets": answers.table_offsets(log_dir),
        "groups": answers.table_groups(log_dir),
        "transactional_ids": answers.table_transactional_ids(log_dir),
    }


def _unknown(log_dir: Path, topic: str) -> list[int]:
    """Return the types of records that kraftlog does not know, in the order of the log."""
    rows = kraftlog.open(log_dir, topics=[topic]).messages(["type", "raw_key"]).to_table().to_pylist()
    return [int.from_bytes(row["raw_key"][:2], "big", signed=True) for row in rows if row["type"] is None]


@pytest.fixture(params=[KNOWN, FUTURE])
def run(runs: dict[str, Run], request: pytest.FixtureRequest) -> Run:
    return runs[request.param]


def test_offsets(run: Run) -> None:
    """Those of committed transactions included, and those of aborted and open ones not."""
    assert answers.admin_offsets(run.groups) == run.tables["offsets"]


def test_groups(run: Run) -> None:
    """Classic, consumer and share groups, with members and what is assigned to them."""
    assert answers.admin_groups(run.groups) == run.tables["groups"]


def test_lag(run: Run) -> None:
    """A row of each partition that is committed or assigned, of each member; a dash where nothing is committed."""
    assert run.lags == run.described
    *_, of_consumer = (row for row in run.lags if row[0] == "consumer" and row[3] is None)
    assert of_consumer[:3] == ("consumer", "orders", 1)


def test_transactional_ids(run: Run) -> None:
    """Their producers, states and partitions."""
    assert answers.admin_transactional_ids(run.ids) == run.tables["transactional_ids"]


def test_ends_of_transactions(runs: dict[str, Run]) -> None:
    """Kafka takes the markers that kraftlog wrote for what they are."""
    for found in (runs[KNOWN].tables["offsets"], answers.admin_offsets(runs[KNOWN].groups)):
        paid = {partition: offset for partition, (offset, *_) in found["paid"].items()}
        assert paid == {"orders-0": 30, "orders-1": 60, "orders-2": 50, "parts-1": 51}
        assert found.keys().isdisjoint({"never", "pending"})


def test_kafka_passes_over_the_records_of_unknown_types(runs: dict[str, Run]) -> None:
    """And says so of each, and of no other."""
    record = re.compile(r"Unknown (?:record type|message key with version) (-?\d+) while loading .* from (\w+)-0\.")
    for run, count in ((runs[KNOWN], 0), (runs[FUTURE], len(scenarios.UNKNOWN_TYPES))):
        said: dict[str, list[int]] = {OFFSETS: [], TRANSACTIONS: []}
        for number, topic in record.findall(run.output):
            said[topic].append(int(number))
        assert said == run.unknown
        assert len(set(said[OFFSETS])) == count


def test_the_coordinators_had_nothing_else_to_complain_of(run: Run) -> None:
    """They have loaded everything, and written nothing that changes what there is."""
    assert complaints_in(run.output, "ERROR", "Failed") == []
    assert run.tables_afterwards == run.tables
