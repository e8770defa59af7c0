"""Three brokers that die while others lead: the loss ledger is what was acknowledged and is not consumed.

In each round a broker that lacks records is elected. All are killed before one that has them returns and truncates its
log, or its log directories are copied before it does. kraftlog says of the directories what is lost, before the cluster
starts again and a consumer reads what it has.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow.parquet as pq
import pytest
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, Cluster

import kraftlog
from kraftlog.backup.loss_ledger import LEDGER_FILE, write_loss_ledger
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE

TOPIC = "orders"
PARTITIONS = 3
ROUNDS = 3
UNCOMMITTED: Literal["read_uncommitted"] = "read_uncommitted"
COMMITTED: Literal["read_committed"] = "read_committed"
OF_LOSSES = {"lost_records", "lost_committed_records"}
OF_MARKERS = {"commit_marker_lost", "abort_marker_lost"}
ENDED_WRONGLY = "ended_by_wrong_marker"
OF_OPEN = {"open_transaction", "hanging_transaction", "overdue_transaction", "torn_transaction"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take a seed for each minute of ``--random-seconds``, and one at least."""
    if "seed" in metafunc.fixturenames:
        first, seconds = metafunc.config.getoption("--random-seed"), metafunc.config.getoption("--random-seconds")
        metafunc.parametrize("seed", range(first, first + max(1, int(seconds) // 60)))


@dataclass
class Transaction:
    """A transaction that a producer has asked to commit.

    Attributes
    ----------
    transactional_id : str
    values : set of bytes
    """

    transactional_id: str
    values: set[bytes]


@dataclass
class Ledger:
    """What kraftlog says of the directories of a cluster that was killed.

    Attributes
    ----------
    values, committed_values : set of bytes
        In the ledger.
    lost_ids : set of str
        Transactional ids of which a lost line of __transaction_state alone has records.
    waiting : list of str
        Transactions that the audit calls open or torn.
    open, stuck : list of (int, int)
        Partition and first offset of transactions that are open, and of those of them whose marker is lost.
    wrong : list of (int, int)
        Partition and first offset of transactions that the marker of another one ended.
    """

    values: set[bytes]
    committed_values: set[bytes]
    lost_ids: set[str]
    waiting: list[str]
    open: list[tuple[int, int]]
    stuck: list[tuple[int, int]]
    wrong: list[tuple[int, int]]


class Sent:
    """The values that were sent; no two are the same."""

    def __init__(self, cluster: Cluster, drawn: random.Random) -> None:
        self._cluster, self._drawn = cluster, drawn
        self._numbers = itertools.count()
        self.all: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.committed: list[Transaction] = []

    def send(self) -> None:
        """Send some records to each partition, in one of several ways, and perhaps a transaction."""
        self._cluster.wait_for_leaders(TOPIC)
        for partition in range(PARTITIONS):
            is_idempotent = self._drawn.random() < 0.3
            acks = -1 if is_idempotent or self._drawn.random() < 0.5 else 1
            values = self._values()
            self.acknowledged |= set(
                self._cluster.produce(TOPIC, partition, values, acks=acks, is_idempotent=is_idempotent)
            )
        has_coordinator = set(self._cluster.leaders(TRANSACTION_STATE).values()) <= self._cluster.running
        for _ in range(self._drawn.randint(0, 2) if has_coordinator else 0):
            self.transact()

    def _values(self) -> list[bytes]:
        values = [str(next(self._numbers)).encode() for _ in range(self._drawn.randint(1, 6))]
        self.all |= set(values)
        return values

    def transact(self) -> None:
        """Send a transaction."""
        end = self._drawn.choice(["commit", "commit", "commit", "abort", "open"])
        of = self._drawn.sample(range(PARTITIONS), self._drawn.randint(1, PARTITIONS))
        values = {partition: self._values() for partition in of}
        name = f"t-{self._drawn.randint(0, 2)}"
        done = self._cluster.transact(name, values, TOPIC, end)
        self.acknowledged |= set(done.records)
        if end == "commit" and done.has_ended:
            self.committed.append(Transaction(name, set(itertools.chain(*values.values()))))


def test_the_ledger_is_what_was_acknowledged_and_is_not_consumed(java: Jvm, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    lost = full_disks = lost_markers = 0
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home), has_disks=True)
        with cluster.ended():
            sent = Sent(cluster, drawn)
            cluster.start(CONTROLLER, *BROKERS)
            cluster.create(TOPIC, PARTITIONS)
            cluster.wait_for_leaders(TOPIC)
            sent.transact()
            if seed % 2:
                cluster.allow_unclean_elections(TRANSACTION_STATE)
            known_lost: set[bytes] = set()
            for number in range(ROUNDS):
                leader, copies, filled = _fail(cluster, sent, drawn, tmp_path / str(number))
                full_disks += len(filled)
                ledger = _ledger(copies, tmp_path / f"ledger-{number}")
                line = _line(copies)
                _restart(cluster, leader)
                consumed = _consumed(cluster, UNCOMMITTED, line.ends)
                missing = sent.all - consumed - known_lost
                assert (sent.acknowledged - consumed) - known_lost <= ledger.values <= missing
                assert ledger.committed_values <= ledger.values
                known_lost |= missing
                lost += len(ledger.values)
                lost_markers += len(ledger.stuck)
                _check_transactions(cluster, sent, ledger, line, consumed, known_lost)
    print(f"seed {seed}: {lost} records lost, {lost_markers} markers lost, {full_disks} disks full")
    assert lost, "nothing was lost: the test proves nothing"


def test_replay_of_the_ledger_gives_the_records_back(java: Jvm, tmp_path: Path) -> None:
    """Once each, into the cluster that lost them; its groups keep the offsets that they have."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home), has_disks=True)
        with cluster.ended():
            cluster.start(CONTROLLER, *BROKERS)
            cluster.create(TOPIC, PARTITIONS)
            cluster.wait_for_leaders(TOPIC)
            numbers = itertools.count()

            def send() -> None:
                for partition in range(PARTITIONS):
                    values = [b"%d" % next(numbers) for _ in range(4)]
                    assert cluster.produce(TOPIC, partition, values) == values

            send()
            cluster.commit_offset("readers", TOPIC, 0, 2)
            cluster.allow_unclean_elections(CONSUMER_OFFSETS)
            first, second, third = BROKERS
            cluster.kill(first, second)
            cluster.wait_for_leaders(TOPIC)
            send()
            cluster.commit_offset("readers", TOPIC, 0, 7)
            cluster.kill(third)
            cluster.start(first)
            cluster.wait_for_leaders(TOPIC)
            send()
            cluster.freeze(CONTROLLER)
            cluster.kill(first)
            copies = [path for node in (CONTROLLER, *BROKERS) for path in cluster.copy(node, tmp_path)]
            done = write_loss_ledger(kraftlog.open(copies), tmp_path / "ledger")
            rows = pq.read_table(tmp_path / "ledger" / LEDGER_FILE, columns=["topic", "value"]).to_pylist()
            assert {row["topic"] for row in rows} == {TOPIC, CONSUMER_OFFSETS}
            lost = {row["value"] for row in rows if row["topic"] == TOPIC}
            _restart(cluster, first)
            assert lost == {b"%d" % number for number in range(next(numbers))} - _consumed(cluster)
            before = cluster.committed_offset("readers", TOPIC, 0)
            for folder in done.folders:
                for _ in range(2):  # the second time, all are there
                    to = str(cluster.settings["bootstrap.servers"])
                    kraftlog.replay(folder, to, tmp_path / f"{folder.name}.mapping", append=True)
            values = [
                value for number in range(PARTITIONS) for _, value in cluster.consume(TOPIC, number, COMMITTED).records
            ]
            assert len(values) == len(set(values))
            assert set(values) == {b"%d" % number for number in range(3 * 4 * PARTITIONS)}
            assert cluster.committed_offset("readers", TOPIC, 0) == before != 7


def _fail(cluster: Cluster, sent: Sent, drawn: random.Random, copies: Path) -> tuple[int, list[Path], list[int]]:
    """Lose brokers until one that lacks records leads all partitions, and kill all.

    Returns
    -------
    int
        The leader.
    list of Path
        Copies of all log directories.
    list of int
        The brokers that lost a disk because it was full.
    """
    made: list[Path] = []
    filled: list[int] = []
    sent.send()
    others = drawn.sample(sorted(cluster.brokers), len(cluster.brokers) - 1)
    for node in others:
        disk = cluster.disks[node]
        how = drawn.choice(["kill", "kill", "freeze", "fill"] if disk.is_own else ["kill", "freeze"])
        if how == "fill":  # it goes on with its other log directory
            disk.fill()
            filled.append(node)
        else:
            cluster.freeze(node) if how == "freeze" else cluster.kill(node)
        sent.send()
    filled = [node for node in filled if cluster.has_lost_disk(node)]
    cluster.kill(*cluster.brokers, *cluster.frozen - {CONTROLLER})
    returning, *rest = drawn.sample(others, len(others))
    cluster.start(returning)
    sent.send()
    if drawn.random() < 0.5:  # this one truncates its log: what it had is in the copy
        made += cluster.copy(rest[0], copies / "before")
        cluster.start(rest[0])
        sent.send()
    cluster.freeze(CONTROLLER)  # it does not elect the last one that is killed
    cluster.kill(*cluster.brokers)
    for node in (CONTROLLER, *BROKERS):
        made += cluster.copy(node, copies)
    return returning, made, filled


def _ledger(copies: list[Path], target: Path) -> Ledger:
    """Return what is in the ledger, and what else is found."""
    log = kraftlog.open(copies)
    rows = log.findings(["code", "severity", "topic", "partition", "offset", "known", "sentence"]).to_pylist()
    expected = OF_LOSSES | OF_MARKERS | {ENDED_WRONGLY, "torn_transaction", "offline_directory"}
    assert [row["sentence"] for row in rows if row["code"] not in expected and row["severity"] != "note"] == []
    done = write_loss_ledger(kraftlog.open(copies, topics=[TOPIC, TRANSACTION_STATE]), target)
    assert not done.faults
    table = pq.read_table(target / LEDGER_FILE).to_pylist()
    values = [row["value"] for row in table if row["topic"] == TOPIC]
    places = [(row["topic"], row["partition"], row["offset"], row["partition_leader_epoch"]) for row in table]
    assert len(places) == len(set(places))  # a client without sequences may have sent a value twice
    columns = ["topic", "value"]
    written = [row for folder in done.folders for row in kraftlog.open(folder).records(columns).to_table().to_pylist()]
    assert sorted(row["value"] for row in written if row["topic"] == TOPIC) == sorted(values)
    committed = {row["value"] for row in table if row["topic"] == TOPIC and row["is_committed"]}
    ids = {row["key"][4:].decode() for row in table if row["topic"] == TRANSACTION_STATE}

    def places_of(codes: set[str]) -> list[tuple[int, int]]:
        some = [row for row in rows if row["code"] in codes and row["topic"] == TOPIC]
        return [(row["partition"], row["offset"]) for row in some if row["offset"] is not None]

    waiting = [row["known"] for row in rows if row["code"] in OF_OPEN]
    kinds = (OF_OPEN, OF_MARKERS, {ENDED_WRONGLY})
    return Ledger(set(values), committed, ids, waiting, *map(places_of, kinds))


class _Line(NamedTuple):
    """What kraftlog reads of the line that the cluster will go on with.

    Attributes
    ----------
    ends, stable_ends : dict of int
        By partition: the end of the log, and that of what is committed.
    committed, aborted : set of bytes
    values : dict of bytes
        By partition and offset.
    """

    ends: dict[int, int]
    stable_ends: dict[int, int]
    committed: set[bytes]
    aborted: set[bytes]
    values: dict[tuple[int, int], bytes]

    def values_from(self, place: tuple[int, int]) -> set[bytes]:
        """Return the values of a partition from an offset on."""
        partition, offset = place
        return {value for (number, at), value in self.values.items() if number == partition and at >= offset}


def _line(copies: list[Path]) -> _Line:
    log = kraftlog.open(copies, topics=[TOPIC])
    ends = log.partition_offsets("latest", ["partition", "offset"]).to_table().to_pylist()
    rows = log.records(["partition", "offset", "value", "transaction_state"]).to_table().to_pylist()
    committed = log.records(["partition", "offset", "value"], isolation_level=COMMITTED).to_table().to_pylist()
    return _Line(
        {row["partition"]: row["offset"] for row in ends},
        {
            number: max((row["offset"] + 1 for row in committed if row["partition"] == number), default=0)
            for number in range(PARTITIONS)
        },
        {row["value"] for row in committed},
        {row["value"] for row in rows if row["transaction_state"] == "aborted"},
        {(row["partition"], row["offset"]): row["value"] for row in rows},
    )


def _restart(cluster: Cluster, leader: int) -> None:
    """Start all, the leader first: it leads again, also if another replica was in sync when all were killed."""
    cluster.thaw(CONTROLLER)
    cluster.start(leader)
    assert set(cluster.wait_for_leaders(TOPIC).values()) == {leader}
    cluster.start(*(node for node in BROKERS if node != leader))
    cluster.wait_until_all_are_in_sync(TOPIC)


def _consumed(cluster: Cluster, level: str = UNCOMMITTED, ends: dict[int, int] | None = None) -> set[bytes]:
    """Return what consumers get of all partitions, at least to these offsets."""
    ends = ends or dict.fromkeys(range(PARTITIONS), 0)
    each = [cluster.consume(TOPIC, number, level, at_least=end).records for number, end in ends.items()]
    return {value for records in each for _, value in records}


def _check_transactions(
    cluster: Cluster, sent: Sent, ledger: Ledger, line: _Line, consumed: set[bytes], known_lost: set[bytes]
) -> None:
    """Compare what a read_committed consumer gets with what kraftlog reads, and with what was to be committed.

    An acknowledged transaction is whole, or has records in a ledger, or its decision is lost, or its marker: the
    records are there, and the audit says that they wait, for it or another one, or that another marker ended them.
    """
    committed = _consumed(cluster, COMMITTED, line.stable_ends)
    assert line.committed <= committed <= consumed
    assert not line.aborted & committed
    for place in ledger.stuck:
        assert line.values_from(place)
        assert not line.values_from(place) & committed
    waits = {value for place in ledger.open for value in line.values_from(place)}
    wrong = {line.values[place] for place in ledger.wrong}
    for one in sent.committed:
        is_lost = bool(one.values & known_lost) or one.transactional_id in ledger.lost_ids
        is_open = any(f"{one.transactional_id} " in known for known in ledger.waiting)
        is_wrong = bool(one.values & wrong)
        assert one.values <= committed | waits or is_lost or is_open or is_wrong, one
