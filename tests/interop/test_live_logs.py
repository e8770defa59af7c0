"""Reads of a log in which Kafka's ``Cleaner`` or ``UnifiedLog`` is at work: no record is missing without a fault."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from jvm import Jvm, Line
from log_views import RECORDS, read
from partition_logs import PartitionLogs, cleaning, opening
from random_rounds import Rounds

import kraftlog

LEVELS = ("read_uncommitted", "read_committed")
SHORT = 1500  # milliseconds of a case


class Live:
    """A log that changes while it is read."""

    def __init__(self, kafka: PartitionLogs, folder: Path, chance: random.Random, rounds: Rounds) -> None:
        folder.mkdir(parents=True)
        self.kafka, self.folder, self.chance, self.rounds = kafka, folder, chance, rounds
        self.now = int(time.time() * 1000)
        self.times = iter(range(self.now - 7_200_000, self.now))

    def batches(self, first: int, count: int, *, keys: int) -> list[bytes]:
        """Return batches of one record each."""
        made: list[bytes] = []
        for offset in range(first, first + count):
            row = {"key": [b"k%d" % (offset % keys)], "value": [b"%d" % offset], "timestamp_ms": [next(self.times)]}
            made.append(kraftlog.encode(pa.table(row), base_offset=offset, partition_leader_epoch=1).to_pybytes())
        return made

    def open(self, config: Line) -> None:
        self.kafka.do(opening(self.folder, config=config))

    def append(self, batches: list[bytes], roll_every: int) -> None:
        steps: list[Line] = []
        for number, batch in enumerate(batches, 1):
            steps.append({"do": "append", "folder": str(self.folder), "batches": batch.hex()})
            if number % roll_every == 0:
                steps.append({"do": "roll", "folder": str(self.folder)})
        self.kafka.do(*steps)

    def read_while(self, step: Line, judge: Any) -> None:
        """Read until Kafka has done a step, at both levels."""
        self.kafka.send(step)
        where = step["do"]
        while not self.kafka.is_done():
            level = self.chance.choice(LEVELS)
            stream = kraftlog.open(self.folder.parent).records(RECORDS, isolation_level=level)  # type: ignore[arg-type]
            found = stream.to_table()["offset"].to_pylist()
            self.rounds.drawn(f"reads: {where}")
            if stream.faults:
                self.rounds.drawn(f"with a fault: {where}")
            self.rounds.found(where, [] if stream.faults else judge(found), level)
        (answer,) = self.kafka.answers()
        assert isinstance(answer, int), answer

    def close(self) -> None:
        self.kafka.do({"do": "close", "folder": str(self.folder)})


def beside_a_cleaner(live: Live) -> None:
    """Read while segments are swapped; each key is there once, so that the cleaner may drop none."""
    count = live.chance.choice([100, 400])
    live.open({"cleanup.policy": "compact"})
    live.append(live.batches(0, count, keys=count), live.chance.choice([3, 10]))
    step = {
        **cleaning(live.folder, live.now, dirty=0),
        "do": "clean for",
        "ms": SHORT,
        "pause": live.chance.choice([0, 5]),
    }
    every = list(range(count))
    live.read_while(step, lambda found: [] if found == every else [f"records are missing: {len(found)} of {count}"])
    live.close()
    live.rounds.found("at the end", [] if [row[0] for row in read(live.folder.parent)] == every else ["records"])


def beside_a_leader(live: Live) -> None:
    """Read while batches are appended and old segments deleted: one stretch without a hole, which does not go back."""
    keeps = live.chance.choice([1000, 4000, -1])
    live.open({"cleanup.policy": "delete", "retention.bytes": keeps})
    batches = live.batches(0, live.chance.choice([300, 900]), keys=7)
    step = {
        "do": "work for",
        "folder": str(live.folder),
        "batches": [batch.hex() for batch in batches],
        "roll_every": live.chance.choice([5, 20]),
        "delete_every": live.chance.choice([7, 50]),
        "pause": 1,
    }
    ends = [0]

    def judge(found: list[int]) -> list[str]:
        if not found:
            return [] if ends[-1] == 0 else ["nothing is there any more"]
        wrong = [] if found == list(range(found[0], found[-1] + 1)) else ["a hole"]
        wrong += [] if keeps >= 0 or found[0] == 0 else ["the first records are missing"]
        wrong += [] if found[-1] >= ends[-1] else [f"an end before the last one: {found[-1]} < {ends[-1]}"]
        ends.append(found[-1])
        return wrong

    live.read_while(step, judge)
    live.close()
    last = [row[0] for row in read(live.folder.parent)][-1:]
    live.rounds.found("at the end", [] if last == [len(batches) - 1] else [f"end: {last}"])


def test_reads_of_a_log_that_kafka_changes(java: Jvm, tmp_path: Path, rounds: Rounds) -> None:
    """By turns: a cleaner that swaps segments, and a leader that rolls and deletes them."""
    with PartitionLogs(java, tmp_path / "stderr") as kafka:
        for seed in rounds:
            home = tmp_path / str(seed)
            live = Live(kafka, home / "t-0", random.Random(seed), rounds)
            (beside_a_leader if seed % 2 else beside_a_cleaner)(live)
            shutil.rmtree(home)
    rounds.check(at_least={"reads: clean for": 10})
