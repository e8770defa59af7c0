"""Compaction keeps the last committed value of each key, wherever transactions begin and end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import kraftlog
from kraftlog import LogStore
from kraftlog.layout.checkpoints import CLEANER_OFFSETS
from kraftlog.read.log_pass import Pass
from kraftlog.tables.space import Housekeeping, space
from kraftlog.write.offset_checkpoint import set_offsets

SEEDS = range(40)
FAR = 2**42  # milliseconds, behind all that is written
CONFIGS = {"cleanup.policy": "compact", "delete.retention.ms": 3_600_000}


def committed(path: Path, topic: str = "t") -> dict[bytes, bytes | None]:
    log = kraftlog.open(path, topics=[topic])
    table = log.records(["key", "value"], isolation_level="read_committed", strict=True).to_table()
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def values(known: dict[bytes, bytes | None]) -> dict[bytes, bytes]:
    return {key: value for key, value in known.items() if value is not None}


class Writers:
    """Producers whose transactions overlap, and what each has sent since its transaction began."""

    def __init__(self, store: LogStore, dice: random.Random) -> None:
        self.store, self.dice, self.number = store, dice, 0
        self.plain = store.producer()
        self.transactional = {name: store.producer(name) for name in ("a", "b", "c")}
        self.waiting: dict[str, list[tuple[int, bytes, bytes | None]]] = {}
        self.committed: list[tuple[int, bytes, bytes | None]] = []

    def row(self) -> tuple[int, bytes, bytes | None]:
        self.number += 1
        key = b"k%d" % self.dice.randrange(6)
        return self.number, key, None if self.dice.random() < 0.1 else b"%060d" % self.number

    def send(self) -> None:
        name = self.dice.choice(["", *self.transactional])
        producer = self.transactional.get(name, self.plain)
        if name and name not in self.waiting:
            producer.begin_transaction()
            self.waiting[name] = []
        for _ in range(self.dice.randint(1, 5)):
            row = self.row()
            producer.send("t", key=row[1], value=row[2])
            (self.waiting[name] if name else self.committed).append(row)
        producer.flush()

    def end(self) -> None:
        if self.waiting:
            name = self.dice.choice(sorted(self.waiting))
            if self.dice.random() < 0.5:
                self.transactional[name].commit_transaction()
                self.committed += self.waiting.pop(name)
            else:
                self.transactional[name].abort_transaction()
                self.waiting.pop(name)

    def last_values(self) -> dict[bytes, bytes]:
        return values({key: value for _, key, value in sorted(self.committed, key=lambda row: row[0])})


@pytest.mark.sweep(8)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_committed_value_of_each_key_stays(tmp_path: Path, seed: int) -> None:
    """A model of what was committed says the values; cleaning at any time, with any segments open, changes none."""
    dice = random.Random(seed)
    with LogStore(tmp_path / "store") as store:
        store.create_topic("t", configs={**CONFIGS, "internal.segment.bytes": dice.choice([1024, 1500, 4000])})
        writers = Writers(store, dice)
        writers.send()  # makes the folder
        for _ in range(60):
            step = dice.choices([writers.send, writers.end, None], [6, 3, 1])[0]
            if step is not None:
                step()
                continue
            before = committed(store.path)
            store.clean(["t"], roll=dice.random() < 0.3)
            assert committed(store.path) == before
        while writers.waiting:
            writers.end()
        assert values(committed(store.path)) == writers.last_values()
        for _ in range(2):
            store.clean(["t"], roll=dice.random() < 0.5)
            assert values(committed(store.path)) == writers.last_values()
        assert list(kraftlog.open(store.path).verify()) == []


def test_what_compaction_leaves_heeds_aborts_of_later_segments(tmp_path: Path) -> None:
    """The table ``space`` runs the same cleaner, so it counts the committed value."""
    with LogStore(tmp_path / "store") as store:
        store.create_topic("t", configs={**CONFIGS, "internal.segment.bytes": 1024})
        with store.producer() as producer:
            producer.send("t", key="k", value="committed")
        aborted = store.producer("etl")
        aborted.begin_transaction()
        aborted.send("t", key="k", value="aborted")
        for number in range(4):
            aborted.send("t", key=f"other-{number}", value="x" * 600)
            aborted.flush()
        aborted.abort_transaction()
        segments = kraftlog.open(store.path, topics=["t"]).found.segments
        read = Pass()
        (row,) = space(segments, read, Housekeeping(FAR, compacts=True)).to_pylist()
        left = row["compacted_records"]
        store.clean(["t"])
        table = kraftlog.open(store.path, topics=["t"]).records(["key"], isolation_level="read_uncommitted").to_table()
        assert (left, read.faults) == (table.num_rows, [])
        assert committed(store.path) == {b"k": b"committed"}


def test_a_transaction_that_was_aborted_before_the_dirty_part_ends_there(tmp_path: Path) -> None:
    """Its producer commits another one in the dirty part, which an earlier cleaning of the rest does not change."""
    with LogStore(tmp_path / "store") as store:
        store.create_topic("t", configs={**CONFIGS, "internal.segment.bytes": 1024})
        with store.producer() as plain:
            plain.send("t", key="k", value="earlier")
        producer = store.producer("etl")
        for value, ends in ("aborted", producer.abort_transaction), ("committed", producer.commit_transaction):
            producer.begin_transaction()
            producer.send("t", key="k", value=value)
            producer.flush()
            ends()
            with store.producer() as plain:
                plain.send("t", key=f"after {value}", value="x" * 1000)  # begins a segment
        bases = [segment.base_offset for segment in kraftlog.open(store.path, topics=["t"]).found.segments]
        set_offsets(store.path / CLEANER_OFFSETS, {("t", 0): bases[1]})
        store.clean(["t"], roll=True)
        log = kraftlog.open(store.path, topics=["t"])
        table = log.records(["key", "value"], isolation_level="read_uncommitted").to_table()
        of_k = [row["value"] for row in table.to_pylist() if row["key"] == b"k"]
        assert of_k == [b"committed"]
