"""A real controller takes over a metadata log that kraftlog wrote: it holds what was committed, and nothing else."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from jvm import Jvm, Line
from kafka_broker import NODE, Broker
from records import made

import kraftlog
from kraftlog import MetadataLogWriter

NOT_AUDITED = "Kafka's loader makes topics of aborted transactions, which are made again under other ids"
EPOCH = 7  # larger than the one of the real controller before
SEGMENT_BYTES = 24 << 10  # a few batches
# Partitions of each topic, by the name of the transaction that makes them: several batches of 8 KB each.
TRANSACTIONS = {
    "committed": {"committed-0": 150, "committed-1": 150, "committed-2": 1},
    "aborted": {"aborted-0": 150, "aborted-1": 1},
    "killed": {"killed-0": 150, "killed-1": 150},  # its writer, which a second writer follows
    "dangling": {"dangling-0": 150, "dangling-1": 150},  # the same, and a real controller follows
}
COMMITTED = TRANSACTIONS["committed"]
RECORDS = made("committed-1", 149, 10)  # of its last partition
NAMES = [name for topics in TRANSACTIONS.values() for name in topics]
KILLED_WRITER = """
import os, signal, sys
from kraftlog import MetadataLogWriter

folder, epoch, segment_bytes, name = sys.argv[1:]
writer = MetadataLogWriter(folder, int(epoch), segment_bytes=int(segment_bytes))
writer.transaction(name).append([bytes.fromhex(line) for line in sys.stdin])
os.kill(os.getpid(), signal.SIGKILL)
"""


class Runs(NamedTuple):
    """What was written, what the real controller answered, and the log before and after it."""

    values: dict[str, list[bytes]]  # of each transaction
    before: Path
    created: dict[str, str | None]
    consumed: list[Line]
    ends: dict[tuple[str, int], int]
    folder: Path


@pytest.fixture(scope="module")
def runs(java: Jvm, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Let a node begin its log, go on with it, and give it back to the node."""
    with broker:
        pass
    folder = broker.log_dir / "__cluster_metadata-0"
    values = _serialized(java)
    _write(folder, values)
    before = shutil.copytree(folder, tmp_path_factory.mktemp("before") / folder.name)
    with broker:
        created = broker.try_to_create({"name": name, "partitions": 1, "configs": {}} for name in NAMES)
        broker.produce([{"producer": {}}, *RECORDS])
        consumed, ends = broker.consume_at("read_committed", COMMITTED)
    return Runs(values, before, created, consumed, ends, folder)


def _serialized(java: Jvm) -> dict[str, list[bytes]]:
    lines = [{"name": name, "partitions": count} for topics in TRANSACTIONS.values() for name, count in topics.items()]
    printed = map(json.loads, java.run("TopicRecords", str(NODE), lines=lines))
    records = {line["name"]: [bytes.fromhex(record) for record in line["records"]] for line in printed}
    return {name: [value for topic in topics for value in records[topic]] for name, topics in TRANSACTIONS.items()}


def _write(folder: Path, values: dict[str, list[bytes]]) -> None:
    with MetadataLogWriter(folder, EPOCH, segment_bytes=SEGMENT_BYTES) as writer:
        with writer.transaction("committed") as transaction:
            for value in values["committed"]:
                transaction.append([value])
        with suppress(RuntimeError), writer.transaction("aborted") as transaction:
            transaction.append(values["aborted"])
            raise RuntimeError("changed its mind")
    _write_and_be_killed(folder, EPOCH, "killed", values)
    _write_and_be_killed(folder, EPOCH + 1, "dangling", values)


def _write_and_be_killed(folder: Path, epoch: int, name: str, values: dict[str, list[bytes]]) -> None:
    lines = "".join(f"{value.hex()}\n" for value in values[name])
    command = [sys.executable, "-c", KILLED_WRITER, str(folder), str(epoch), str(SEGMENT_BYTES), name]
    done = subprocess.run(command, input=lines, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_the_controller_holds_what_was_committed_and_nothing_else(runs: Runs) -> None:
    """A name that it holds cannot be created again; any other one can."""
    assert runs.created == {name: "TopicExistsException" if name in COMMITTED else None for name in NAMES}


def test_the_broker_serves_what_was_committed(runs: Runs) -> None:
    """All partitions have a leader, and the last one takes records and gives them back."""
    assert runs.ends.keys() == {(name, p) for name, count in COMMITTED.items() for p in range(count)}
    assert runs.consumed == RECORDS


def test_the_transactions_afterwards(runs: Runs) -> None:
    """Each open one was aborted by who came next: a writer of kraftlog, then the real controller."""
    table = kraftlog.open(runs.folder).metadata_transactions()
    epochs = ["name", "state", "reason", "begin_epoch", "end_epoch"]
    assert [tuple(row[column] for column in epochs) for row in table.to_pylist()] == [
        ("Bootstrap records", "committed", None, 1, 1),
        ("committed", "committed", None, EPOCH, EPOCH),
        ("aborted", "aborted", "RuntimeError: changed its mind", EPOCH, EPOCH),
        ("killed", "aborted", "Controller failover", EPOCH, EPOCH + 1),
        ("dangling", "aborted", "Controller failover", EPOCH + 1, EPOCH + 2),
    ]
    assert min(table["batches"].to_pylist()[1:]) > 1
    before = kraftlog.open(runs.before).metadata_transactions(["name", "state", "end_offset"]).to_pylist()
    assert before[-1] == {"name": "dangling", "state": "open", "end_offset": None}


def test_the_real_controller_aborts_as_kraftlog_does(runs: Runs) -> None:
    """LEADER_CHANGE and Abort: the same bytes, but for offset, epoch, time and crc."""
    table = kraftlog.open(runs.folder).records(
        ["partition_leader_epoch", "is_control", "key", "value"], include_control=True
    )
    of_epoch: dict[int, list[Line]] = {}
    for row in table.to_table().to_pylist():
        of_epoch.setdefault(row.pop("partition_leader_epoch"), []).append(row)
    assert of_epoch[EPOCH + 1][:2] == of_epoch[EPOCH + 2][:2]
    assert of_epoch[EPOCH][0] == of_epoch[1][0]


def test_kraftlog_shows_what_was_committed_and_nothing_else(runs: Runs) -> None:
    """At read_committed, in the order it was written."""
    ours = {value for values in runs.values.values() for value in values}
    for folder in (runs.before, runs.folder):
        values = kraftlog.open(folder).records(["value"], isolation_level="read_committed").to_table()["value"]
        assert [value for value in values.to_pylist() if value in ours] == runs.values["committed"]


@pytest.mark.parametrize(
    ("published_after", "shown"), [("batch", ["committed"]), ("log", ["committed", "aborted", "killed"])]
)
def test_what_a_broker_shows_of_the_log(java: Jvm, runs: Runs, published_after: str, shown: list[str]) -> None:
    """Kafka 4.3's loader publishes aborted records with what follows the Abort in the same read; kraftlog does not.

    A broker that starts reads the log at once, and so has topics that its controller does not know of.
    """
    printed = map(json.loads, java.run("Image", str(runs.before), published_after))
    topics = [name for transaction in shown for name in TRANSACTIONS[transaction]]
    assert [line["name"] for line in printed] == sorted(topics)


def test_kafka_keeps_the_log(runs: Runs) -> None:
    """Its recovery cuts nothing off, and builds the index files that the writer has built for its closed segments."""
    logs = sorted(runs.before.glob("*.log"))
    assert len(logs) > 3
    for log in logs:
        assert (runs.folder / log.name).read_bytes().startswith(log.read_bytes())
    for log in logs[:-1]:
        for path in (log, log.with_suffix(".index"), log.with_suffix(".timeindex")):
            assert (runs.folder / path.name).read_bytes() == path.read_bytes(), path.name


def test_nothing_is_wrong(runs: Runs) -> None:
    """Neither before the real controller nor afterwards; what is written by a killed writer needs no recovery."""
    for folder in (runs.before, runs.folder):
        log = kraftlog.open(folder)
        assert log.errors().to_pylist() == []
        assert [fault.message for fault in log.verify()] == []
