"""Transactions that kraftlog or real producers wrote: Kafka and kraftlog see the same, and rebuild the same files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import real_transactions
from jvm import Line
from kafka_broker import Broker
from producer_log import ProducerLog
from real_transactions import TOPIC as REAL
from records import COLUMNS, by_partition, lines
from scenarios import SCENARIOS

import kraftlog
from kraftlog.write.recover import partition_folders, recover
from kraftlog.write.recovery_action import Action, RecoverOptions

# Whether a marker raises its producer's epoch: since transaction.version 2 it does.
STYLES = {"tv1": False, "tv2": True}
TOPICS = {f"{style}-{scenario.__name__}": (style, scenario) for style in STYLES for scenario in SCENARIOS}
ALL_TOPICS = [*TOPICS, REAL]
PARTITIONS = [*((topic, 0) for topic in TOPICS), *((REAL, partition) for partition in real_transactions.PARTITIONS)]
ISOLATION_LEVELS = ["read_uncommitted", "read_committed"]
REBUILT = {".index", ".timeindex", ".txnindex", ".snapshot"}


class Runs(NamedTuple):
    """What Kafka made of the logs, and said of them."""

    logs: dict[str, ProducerLog]
    consumed: dict[str, dict[tuple[str, int], list[Line]]]
    ends: dict[str, dict[tuple[str, int], int]]
    producers: list[Line]
    transactional_ids: list[Line]
    recovered: list[Action]
    broker: Broker


@pytest.fixture(scope="module")
def runs(broker: Broker) -> Runs:
    """Let Kafka recover the logs and serve them, ask it all there is to ask, and stop it."""
    logs = {
        topic: ProducerLog(topic, raises_epoch=STYLES[style], more=100 * number)
        for number, (topic, (style, _)) in enumerate(TOPICS.items())
    }
    for topic, (_, scenario) in TOPICS.items():
        scenario(logs[topic])
    with broker:
        broker.create({"name": topic, "partitions": 1, "configs": {}} for topic in TOPICS)
        real = {"name": REAL, "partitions": len(real_transactions.PARTITIONS), "configs": real_transactions.CONFIGS}
        broker.create([real])
        broker.produce(real_transactions.program())
    for topic, log in logs.items():
        broker.replace_log(topic, 0, log.segments)
    broker.forget_the_clean_shutdown()
    with broker:
        recovered = [action for _, action in recover(partition_folders([broker.log_dir]), RecoverOptions())]
        answers = {level: broker.consume_at(level, ALL_TOPICS) for level in ISOLATION_LEVELS}
        producers, transactional_ids = broker.transactions(ALL_TOPICS)
    consumed = {level: by_partition(records) for level, (records, _) in answers.items()}
    ends = {level: ends for level, (_, ends) in answers.items()}
    return Runs(logs, consumed, ends, producers, transactional_ids, recovered, broker)


def folder_of(runs: Runs, topic: str, partition: int = 0) -> Path:
    return runs.broker.log_dir / f"{topic}-{partition}"


@pytest.mark.parametrize("topic", TOPICS)
def test_kafka_keeps_all_that_kraftlog_wrote(runs: Runs, topic: str) -> None:
    """Recovery has cut nothing off, or the comparisons below would say little."""
    assert runs.consumed["read_uncommitted"][topic, 0] == runs.logs[topic].lines
    assert runs.ends["read_uncommitted"][topic, 0] == runs.logs[topic].next_offset
    segments = {int(path.stem): path.read_bytes() for path in folder_of(runs, topic).glob("*.log")}
    assert segments == runs.logs[topic].segments


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_something_is_aborted(runs: Runs, topic: str, partition: int) -> None:
    """Each of the logs has records that the isolation levels do not agree on."""
    committed = runs.consumed["read_committed"][topic, partition]
    assert 0 < len(committed) < len(runs.consumed["read_uncommitted"][topic, partition])


@pytest.mark.parametrize("isolation_level", ISOLATION_LEVELS)
@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_records(runs: Runs, topic: str, partition: int, isolation_level: str) -> None:
    """The same records as the consumer's."""
    stream = kraftlog.open(folder_of(runs, topic, partition)).records(COLUMNS, isolation_level=isolation_level)
    assert list(lines(stream.to_table())) == runs.consumed[isolation_level][topic, partition]


def test_last_stable_offsets(runs: Runs) -> None:
    """Where the consumer ends that reads what is committed; it ends early where a transaction is open."""
    rows = kraftlog.open(runs.broker.log_dir, topics=ALL_TOPICS).last_stable_offsets().to_pylist()
    ours = {(row["topic"], row["partition"]): row["last_stable_offset"] for row in rows}
    assert ours == runs.ends["read_committed"]
    early = {at for at, end in runs.ends["read_uncommitted"].items() if ours[at] < end}
    assert early == {(f"{style}-{name}", 0) for style in STYLES for name in ("unfinished", "shuffled")} | {(REAL, 0)}


def test_producers(runs: Runs) -> None:
    """The state of each producer, as the broker tells it."""
    table = kraftlog.open(runs.broker.log_dir, topics=ALL_TOPICS).producers(list(runs.producers[0]))
    assert _by_producer(table.to_pylist()) == _by_producer(runs.producers)


def _by_producer(rows: list[Line]) -> dict[tuple[str, int, int], Line]:
    return {(row["topic"], row["partition"], row["producer_id"]): row for row in rows}


def test_transactions_of_real_producers(runs: Runs) -> None:
    """What the producers did is what the table says, and the coordinator knows of the one that is open."""
    ids = {row["transactional_id"]: row["producer_id"] for row in runs.transactional_ids}
    consumed = [line for at, lines in runs.consumed["read_uncommitted"].items() if at[0] == REAL for line in lines]
    expected = real_transactions.expected(consumed, ids)
    table = kraftlog.open(runs.broker.log_dir, topics=[REAL]).partition_transactions(list(expected[0]))

    def order(row: Line) -> tuple[int, int]:
        return row["partition"], row["first_offset"]

    assert sorted(table.to_pylist(), key=order) == sorted(expected, key=order)
    ongoing = [row for row in runs.transactional_ids if row["state"] == "Ongoing"]
    still_open = [[REAL, row["partition"]] for row in expected if row["state"] == "open"]
    assert [row["partitions"] for row in ongoing] == [still_open] == [[[REAL, 0]]]


def test_hanging_transactions(runs: Runs) -> None:
    """No coordinator knows of our producers: what they left open hangs. What a real one left open does not."""
    start = "current_transaction_first_offset"
    ends = {(row["producer_id"], *place) for row in runs.transactional_ids for place in row["partitions"]}
    expected = {
        (row["topic"], row["partition"], row["producer_id"], row[start])
        for row in runs.producers
        if row[start] is not None and (row["producer_id"], row["topic"], row["partition"]) not in ends
    }
    rows = kraftlog.open(runs.broker.log_dir).hanging_transactions().to_pylist()
    assert {(row["topic"], row["partition"], row["producer_id"], row["start_offset"]) for row in rows} == expected
    assert len(rows) == len(expected) > 2 * len(STYLES)
    assert REAL not in {row["topic"] for row in rows}


def test_nothing_is_wrong(runs: Runs) -> None:
    """The index files and snapshots that Kafka built beside the logs say what kraftlog reads in them."""
    log = kraftlog.open(runs.broker.log_dir)
    assert log.errors().to_pylist() == []
    assert [fault.message for fault in log.verify()] == []


def test_there_is_nothing_to_recover_when_kafka_has_recovered(runs: Runs) -> None:
    """While the broker runs, with the files of its last segments preallocated."""
    ours = [action for action in runs.recovered if action.path.parent.name.rpartition("-")[0] in TOPICS]
    assert [(action.path.name, action.action) for action in ours if action.action != "keep"] == []
    assert any("preallocated" in action.reason for action in ours)


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_recover_builds_what_kafka_built(runs: Runs, topic: str, partition: int, tmp_path: Path) -> None:
    """From the log files alone, byte for byte; where nothing aborted Kafka has a .txnindex without entries, or none."""
    theirs = folder_of(runs, topic, partition)
    folder = tmp_path / theirs.name
    folder.mkdir()
    for path in theirs.glob("*.log"):
        shutil.copy(path, folder)
    list(recover([folder], RecoverOptions(write=True)))
    rebuilt = _rebuilt(folder)
    assert rebuilt == _rebuilt(theirs)
    assert {Path(name).suffix for name in rebuilt} == REBUILT


def _rebuilt(folder: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in REBUILT}
    return {name: data for name, data in files.items() if data or not name.endswith(".txnindex")}
