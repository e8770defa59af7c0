"""What is written into the log directory of a stopped broker, Kafka serves: each row of a committed write once."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from jvm import Line
from kafka_broker import Broker
from records import made, table

from kraftlog.layout.checkpoints import read_leader_epochs
from kraftlog.log_store.staged_transaction import StagedTransaction
from kraftlog.log_store.staged_write import abort, abort_unfinished, begin, commit, recover
from kraftlog.log_store.staging import StagedFile, Stager, StagingOptions
from kraftlog.log_store.write_id import WriteId, new_write, write_of_batch

APPENDED, OVERWRITTEN, TRIED = "sink-appended", "sink-overwritten", "sink-tried"
TOPICS = [APPENDED, OVERWRITTEN, TRIED]
PARTITIONS = 3
COUNT = 120
TASKS = 4
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]

Served = dict[tuple[str, int], list[tuple[int, str | None]]]  # timestamps and values, in the order of their offsets


class Killed(BaseException):
    """The driver is no more."""


def stage(log_dir: Path, write: WriteId, topic: str, lines: Iterable[Line], codec: str) -> list[StagedFile]:
    """Let tasks stage the lines; some attempts stage a part and fail."""
    folder, dice = begin(log_dir, write), random.Random(write.name)
    options = StagingOptions(codec, max_batch_bytes=120_000, segment_bytes=200_000)
    every, staged = list(lines), []
    for task in range(TASKS):
        for attempt in range(4):
            stager = Stager(folder, options, task=task)
            fails = attempt < 3 and dice.random() < 0.5
            for partition in range(PARTITIONS):
                own = [line for line in every if line["partition"] == partition][task::TASKS]
                for rows in table(own[: len(own) // 2] if fails else own).to_batches():
                    stager.write(topic, partition, rows)
            files = stager.finish()
            if not fails:
                staged += files
                break
    return staged


def lines_of(topic: str) -> list[Line]:
    return [line for partition in range(PARTITIONS) for line in made(topic, partition, COUNT)]


def plain(lines: Iterable[Line]) -> Served:
    served: Served = {}
    for line in lines:
        served.setdefault((line["topic"], line["partition"]), []).append((line["timestamp"], line["value"]))
    return served


def as_sets(served: Served) -> dict[tuple[str, int], list[tuple[int, str | None]]]:
    return {at: sorted(rows, key=str) for at, rows in served.items()}


@pytest.fixture(scope="module")
def served(broker: Broker) -> dict[str, Served]:
    """Write while Kafka is stopped, and return what it serves at each isolation level; then let it append."""
    with broker:
        broker.create({"name": topic, "partitions": PARTITIONS, "configs": {}} for topic in TOPICS)
        broker.produce([{"producer": {}}, *(made(topic, 0, 1)[0] for topic in (APPENDED, OVERWRITTEN))])
    log_dir = broker.log_dir
    for number, codec in enumerate(CODECS):
        write = new_write()
        commit(log_dir, write, stage(log_dir, write, APPENDED, lines_of(f"{APPENDED}-{number}"), codec))
    for text in ("before", "after"):
        write = new_write()
        staged = stage(log_dir, write, OVERWRITTEN, lines_of(text), "zstd")
        commit(log_dir, write, staged, overwrite=True)
    never = new_write()
    stage(log_dir, never, APPENDED, lines_of("never"), "none")
    abort(log_dir, never)
    _killed_and_rerun(log_dir)
    with broker:
        levels = {level: plain(broker.consume_at(level, TOPICS)[0]) for level in ("read_committed", "read_uncommitted")}
        broker.produce([{"producer": {}}, *(made(topic, 1, 2)[1] for topic in TOPICS)])
        levels["appended"] = plain(broker.consume_at("read_committed", TOPICS)[0])
    return levels


def _killed_and_rerun(log_dir: Path) -> None:
    """Kill the driver before the decision, and behind it; each batch is run again after that."""
    for batch_id, moment in enumerate(("commit", "_decided")):
        write = write_of_batch("the only writer", batch_id)
        lines = lines_of(f"{TRIED}-{batch_id}")
        staged = stage(log_dir, write, TRIED, lines, "lz4")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StagedTransaction, moment, _kill)
            with pytest.raises(Killed):
                commit(log_dir, write, staged)
        recover(log_dir)
        again = commit(log_dir, write, stage(log_dir, write, TRIED, lines, "lz4"))
        assert (again is None) == (moment == "_decided")
    assert abort_unfinished(log_dir) == []


def _kill(*_: object, **__: object) -> None:
    raise Killed


def expected_values(topics: Iterable[str], topic: str) -> Served:
    lines = [line | {"topic": topic} for name in topics for line in lines_of(name)]
    return plain(lines)


def test_appended(served: dict[str, Served]) -> None:
    """Behind what the broker had; compressed with each codec, in several segments."""
    expected = expected_values([f"{APPENDED}-{number}" for number in range(len(CODECS))], APPENDED)
    expected[APPENDED, 0] += plain(made(APPENDED, 0, 1))[APPENDED, 0]
    for level in ("read_committed", "read_uncommitted"):
        found = {at: rows for at, rows in served[level].items() if at[0] == APPENDED}
        assert as_sets(found) == as_sets(expected)


def test_overwritten(served: dict[str, Served]) -> None:
    found = {at: rows for at, rows in served["read_committed"].items() if at[0] == OVERWRITTEN}
    assert as_sets(found) == as_sets(expected_values(["after"], OVERWRITTEN))


def test_killed_and_rerun(served: dict[str, Served]) -> None:
    found = {at: rows for at, rows in served["read_committed"].items() if at[0] == TRIED}
    assert as_sets(found) == as_sets(expected_values([f"{TRIED}-0", f"{TRIED}-1"], TRIED))


def test_the_broker_goes_on(served: dict[str, Served]) -> None:
    for topic in TOPICS:
        before, after = served["read_committed"][topic, 1], served["appended"][topic, 1]
        assert after == before + plain([made(topic, 1, 2)[1]])[topic, 1]


def test_epochs_of_the_broker_are_kept(broker: Broker, served: dict[str, Served]) -> None:
    epochs = read_leader_epochs(broker.log_dir / f"{OVERWRITTEN}-1" / "leader-epoch-checkpoint")
    assert epochs == sorted(epochs)
    assert len(epochs) > 0
