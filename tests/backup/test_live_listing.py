"""Backups of log directories to which transactions are written between any two steps of their listing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kraftlog
from accounts import ACCOUNTS, ORDERS, is_whole, values
from faulty_disk import FaultyDisk, Step
from kraftlog.disk.disk import use_disk
from kraftlog.log_store import cluster
from standing_clock import StandingClock

Sampled = Callable[[Iterable[Any], int], list[Any]]
CASES = 12
EARLIER = 1  # transactions before the first moment


class Film:
    """The log files of a store, as they were after each write.

    Attributes
    ----------
    sizes : list of dict of str to int
        Of each log file, by its path in the folder.
    completed : list of int
        How many transactions have the record that they are complete.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sizes: list[dict[str, int]] = []
        self.completed: list[int] = []
        clock = StandingClock()
        with use_disk(FaultyDisk(self._see)), kraftlog.LogStore(folder, clock=clock, sync_threads=0) as store:
            store.create_topic(ACCOUNTS, 2)
            store.create_topic(ORDERS, 1)
            plain, producer = store.producer(), store.producer("transfer")
            for _ in range(3):
                plain.send(ORDERS, value="order", partition=0)
            plain.flush()
            for number in range(EARLIER + 2):
                clock.now += 1000
                if number == EARLIER:
                    self.sizes, self.completed = self.sizes[-1:], [EARLIER]
                producer.begin_transaction()
                for partition, amount in enumerate((number + 1, -number - 1)):
                    producer.send(ACCOUNTS, value=str(amount), partition=(partition + number) % 2)
                    producer.flush()
                producer.send_offsets_to_transaction({(ORDERS, 0): number + 1}, group="transfers")
                producer.commit_transaction()
                self._add()
                self.completed[-1] = number + 1

    def _see(self, _: Step) -> None:
        self._add()

    def _add(self) -> None:
        sizes = {str(path.relative_to(self.folder)): path.stat().st_size for path in self.folder.rglob("*.log")}
        if not self.sizes or self.sizes[-1] != sizes:
            self.sizes.append(sizes)
            self.completed.append(self.completed[-1] if self.completed else 0)


@pytest.fixture(scope="module", params=[0, 2])
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Film]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cluster.FEATURES, "transaction.version", request.param)
        yield Film(tmp_path_factory.mktemp("film") / "log")


class Source(FaultyDisk):
    """A disk on which the log files of a film grow at each listing of a partition's folder.

    Attributes
    ----------
    listings : int
        How many there were.
    """

    def __init__(self, film: Film, folder: Path) -> None:
        super().__init__()
        others = shutil.ignore_patterns("*checkpoint", ".kafka_cleanshutdown", "*.json", "*.log", "*.snapshot")
        shutil.copytree(film.folder, folder, ignore=others)
        self.film, self.folder = film, folder
        self.listings = 0
        self.moments: Iterator[int] = iter(())
        self.show(0)

    def entries(self, folder: Any) -> Any:
        if folder.parent == self.folder:
            self.listings += 1
            moment = next(self.moments, None)
            if moment is not None:
                self.show(moment)
        return super().entries(folder)

    def show(self, moment: int) -> None:
        for name, size in self.film.sizes[moment].items():
            path = self.folder / name
            with path.open("ab") as file:
                file.write((self.film.folder / name).read_bytes()[file.tell() : size])


def listings_of_a_backup(film: Film, folder: Path) -> int:
    source = Source(film, folder / "counted")
    with use_disk(source):
        kraftlog.Repository(folder / "counted-backups").backup(source.folder, workers=1)
    return source.listings


def check_whole(path: str, completed: int) -> None:
    """Assert that no transaction is torn in a backup, and that those are there which were complete before it."""
    log = kraftlog.open(path)
    assert is_whole(log)
    transfers = values(log.of_files(log.found.only(lambda topic, _: topic == ACCOUNTS)))
    assert {one for one in transfers if one > 0} >= set(range(1, completed + 1))
    assert "torn" not in log.transactions(["state"]).column("state").to_pylist()
    assert [code for code in log.findings(["code"]).column("code").to_pylist() if "torn" in code] == []


def check_backups(film: Film, folder: Path, moments: list[int]) -> None:
    """Take a backup of a cluster that moves on at each listing, and another one at its end."""
    source, repository = Source(film, folder / "log"), kraftlog.Repository(folder / "backups")
    source.moments = iter(moments)
    with use_disk(source):
        first = repository.backup(source.folder, workers=1)
        check_whole(f"{repository.path}@{first.name}", film.completed[moments[0]])
        source.show(len(film.sizes) - 1)
        second = repository.backup(source.folder, workers=1)
    check_whole(f"{repository.path}@{second.name}", EARLIER + 2)


def test_transactions_that_begin_and_end_between_two_listings(tmp_path: Path, film: Film):
    """A partition is listed before their first record, and another one after their markers."""
    listings, end = listings_of_a_backup(film, tmp_path), len(film.sizes) - 1
    partitions = len(film.sizes[0])
    for at in range(1, 2 * partitions + 2):  # all of them are listed by then
        check_backups(film, tmp_path / f"{at}", [0] * at + [end] * (listings - at))


def test_a_listing_between_any_two_writes(tmp_path: Path, film: Film, sampled: Sampled):
    listings = listings_of_a_backup(film, tmp_path)
    pairs = combinations(range(len(film.sizes)), 2)
    cases = [[before] * at + [after] * (listings - at) for before, after in pairs for at in range(1, listings)]
    for number, moments in enumerate(sampled(cases, CASES)):
        check_backups(film, tmp_path / f"{number}", moments)


def test_transactions_that_end_while_the_files_of_several_backups_are_listed(
    tmp_path: Path, film: Film, sampled: Sampled
):
    listings = listings_of_a_backup(film, tmp_path)
    for seed in sampled(range(500), CASES):
        dice = Random(seed)
        source, repository = Source(film, tmp_path / f"log-{seed}"), kraftlog.Repository(tmp_path / f"backups-{seed}")
        moments = sorted(dice.randrange(len(film.sizes)) for _ in range(3 * listings))
        source.moments = iter(moments)
        with use_disk(source):
            for at in range(0, len(moments), listings):
                manifest = repository.backup(source.folder, workers=1)
                check_whole(f"{repository.path}@{manifest.name}", film.completed[moments[at]])
        assert repository.verify(data=True) == []
