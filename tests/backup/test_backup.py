"""Backups: the rows of ``REPOSITORY@NAME`` are those of the source at its cut, whatever happened to the source."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.disk.backup_path import BackupPath
from kraftlog.layout.discover import discover
from kraftlog.topics import CLUSTER_METADATA
from kraftlog.transactions.cut import Cut

LEVELS = ("read_committed", "read_uncommitted")
LATE = 2**62
COLUMNS = [
    *("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers", "producer_id"),
    *("producer_epoch", "sequence", "is_transactional", "is_control", "partition_leader_epoch", "transaction_state"),
]
LOGS = sorted(
    path
    for path in GOLDEN.rglob("log")
    if path.is_dir() and not (path.parent.parent.name == "damaged" and path.name != "log")
)
NAMES = [str(path.relative_to(GOLDEN).parent) for path in LOGS]


def rows(log: kraftlog.Log, level: str, **given: Any) -> pa.Table:
    """Return all records, and control records, by partition."""
    found = log.records(COLUMNS, isolation_level=level, include_control=True, **given).to_table()
    return found.sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])


def check_same(source: Path | list[Path], backup: str, **given: Any) -> None:
    """Assert that the records of a backup are those of its source at the cut."""
    has_offsets_of_damage = "bit_flip_base_offset" in str(source)  # at which a cut would end the log in its middle
    expected = kraftlog.open(source, cut=None if has_offsets_of_damage else "end", **given)
    found = kraftlog.open(backup, **given)
    for level in LEVELS:
        assert rows(found, level).equals(rows(expected, level))


@pytest.fixture
def repository(tmp_path: Path) -> kraftlog.Repository:
    return kraftlog.Repository(tmp_path / "nightly")


@pytest.mark.sweep(12)
@pytest.mark.parametrize("log", LOGS, ids=NAMES)
def test_rows_of_a_backup_are_those_of_the_source(log: Path, repository: kraftlog.Repository):
    manifest = repository.backup(log)
    path = f"{repository.path}@{manifest.name}"
    check_same(log, path)
    assert repository.verify(data=True) == []
    again = repository.backup(log)
    assert again.stored_size == 0
    assert (again.size, again.files, again.faults) == (manifest.size, manifest.files, manifest.faults)
    check_same(log, f"{repository.path}@{again.name}")


class Cluster:
    """A log store whose producers leave transactions open, and end them later."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.store = kraftlog.LogStore(folder)
        self.dice = dice
        self.store.create_topic("accounts", 2, {"cleanup.policy": "compact"})
        self.store.create_topic("orders", 2)
        self.producers = [self.store.producer(f"tx-{number}") for number in range(3)]
        self.is_open = [False] * len(self.producers)
        self.sent = 0

    def step(self) -> None:
        """Send some records, or end a transaction."""
        number = self.dice.randrange(len(self.producers))
        producer = self.producers[number]
        if self.is_open[number] and self.dice.random() < 0.4:
            (producer.commit_transaction if self.dice.random() < 0.7 else producer.abort_transaction)()
            self.is_open[number] = False
            return
        if not self.is_open[number]:
            producer.begin_transaction()
            self.is_open[number] = True
        for _ in range(self.dice.randrange(1, 4)):
            self.sent += 1
            value = pa.record_batch({"key": [f"{self.sent % 5}".encode()], "value": [f"{self.sent:05}".encode()]})
            producer.send(self.dice.choice(("accounts", "orders")), value, partition=self.dice.randrange(2))
        producer.flush()


@pytest.mark.parametrize("seed", range(4))
def test_backups_of_a_growing_log_end_at_its_greatest_cut(tmp_path: Path, repository: kraftlog.Repository, seed: int):
    """The cut of a later backup comes from new batches alone; the oracle reads all of them."""
    log = tmp_path / "log"
    cluster = Cluster(log, random.Random(seed))
    before: dict[Any, int] = {}
    for _ in range(12):
        for _ in range(cluster.dice.randrange(6)):
            cluster.step()
        if cluster.dice.random() < 0.3:
            cluster.store.clean(roll=True)
        manifest = repository.backup(log, workers=cluster.dice.choice((1, 3)))
        whole = BackupPath.of(tmp_path / "nightly", manifest.name, until=LATE)
        expected = kraftlog.open([whole], cut="end")
        ends = {of: end for of, end in manifest.ends.items() if of.topic != CLUSTER_METADATA}
        assert ends == dict(kraftlog.Log(discover([whole])).cut("end").ends)
        assert all(manifest.ends[of] >= end for of, end in before.items())
        before = dict(manifest.ends)
        log_at_cut = kraftlog.open(log, cut=Cut(ends))
        for level in LEVELS:
            of_backup = rows(kraftlog.open(f"{repository.path}@{manifest.name}"), level)
            assert of_backup.equals(rows(log_at_cut, level))
            assert of_backup.equals(rows(expected, level))
    cluster.store.close()
    assert repository.verify(data=True) == []
