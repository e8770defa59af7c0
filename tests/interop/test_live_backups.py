"""Backups of a cluster under load, and clusters that boot on random cuts of them: nothing is torn, and all agree.

The load is in ``transfers.py``. With ``--random-seconds=600`` it lasts longer and more cuts are tried; ``--boots=20``
starts as many clusters, of one and of three nodes by turns.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cluster_state
import pytest
import records
from confluent_kafka.admin import AdminClient
from jvm import Jvm, Line
from kafka_cluster import Cluster, replicas_behind
from random_rounds import Rounds
from restored_cluster import RestoredNode, node_addresses, restored_nodes, running
from transfers import ACCOUNTS, COMPACTION_LAG_MS, LEFT, ORDERS, RIGHT, SHORT, Load, start, violations

import kraftlog
from faulty_disk import FaultyDisk
from kraftlog.backup.restore import Restore
from kraftlog.disk.disk import use_disk
from kraftlog.layout.backups import Manifest
from kraftlog.times import text_of
from kraftlog.topics import CONSUMER_OFFSETS

LEAST_SECONDS, MOST_SECONDS = 14, 90  # of the load, once each kind of event has happened
LIMIT = 300.0  # until then
OF_LOAD = {"killed", "topics deleted", "lowered", "older: open"}
LEVELS = ("read_uncommitted", "read_committed")
MOVE_MS = 1000  # by which cuts lie before a time, so that no transaction is torn
# while files are read: topics that are deleted, and segments that retention deletes or the cleaner replaces
MAY_VANISH = (SHORT, ORDERS, LEFT, RIGHT, CONSUMER_OFFSETS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "boot" in metafunc.fixturenames:
        metafunc.parametrize("boot", range(metafunc.config.getoption("--boots")))


class Live(NamedTuple):
    """A repository with backups of a cluster under load, the oldest first; the last one is of stopped brokers."""

    repository: Path
    manifests: list[Manifest]
    load: Load


class AskedCut(NamedTuple):
    """A cut of a backup.

    Attributes
    ----------
    path : str
    cut : str or None
        Where it is not that of the path.
    has_all_keys : bool
        Whether no record that the cleaner removed before the backup was the last of its key at the cut.
    kind : str
    """

    path: str
    cut: str | None
    has_all_keys: bool
    kind: str


@pytest.fixture(scope="module")
def live(java: Jvm, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Live:
    seed = request.config.getoption("--random-seed")
    seconds = min(max(LEAST_SECONDS, request.config.getoption("--random-seconds") / 6), MOST_SECONDS)
    folder = tmp_path_factory.mktemp("live")
    repository, manifests = kraftlog.Repository(folder / "repository"), []
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home))
        with cluster.ended():
            start(cluster)
            load = Load(cluster)
            with load.running(java, seed, folder / "transfers.err"):
                begin = time.monotonic()
                while time.monotonic() < begin + seconds or not load.done.keys() >= OF_LOAD:
                    assert time.monotonic() < begin + LIMIT, load.done
                    manifests.append(repository.backup(cluster.log_dirs))
                    if not load.done["lowered"] and time.monotonic() > begin + seconds / 2:
                        load.lower_transaction_version()
        manifests.append(repository.backup(cluster.log_dirs))
    return Live(folder / "repository", manifests, load)


def random_cut(live: Live, draw: random.Random) -> AskedCut:
    """Return a cut at a time up to the end of the load, or that of a backup."""
    first, last = live.manifests[0].taken_ms, live.manifests[-1].taken_ms
    side = draw.choices(("path", "at-or-before", "at-or-after", "end"), (12, 4, 3, 1))[0]
    if side == "end":
        manifest = draw.choice(live.manifests)
        return AskedCut(f"{live.repository}@{manifest.name}", None, manifest is live.manifests[-1], side)
    moment = draw.randint(first, last)
    later = [one for one in live.manifests if one.taken_ms >= moment]
    if side == "path":
        return AskedCut(f"{live.repository}@{text_of(moment)}", None, _has_all_keys(later[0], moment), side)
    manifest = draw.choice(later[:3])
    cut = f"{side}:{text_of(moment)}"
    return AskedCut(f"{live.repository}@{manifest.name}", cut, _has_all_keys(manifest, moment), side)


def _has_all_keys(manifest: Manifest, moment: int) -> bool:
    """Whether the cleaner kept the last records of a time until the last file was read."""
    return manifest.finished_ms - moment < COMPACTION_LAG_MS - MOVE_MS


def restored(asked: AskedCut, target: Path, **options: object) -> Restore | None:
    """Restore a cut; return None where there is no cut after a time, as a transaction is never ended."""
    try:
        return kraftlog.restore(asked.path, target, cut=asked.cut, **options)  # type: ignore[arg-type]
    except ValueError as error:
        if not str(error).startswith("no cut: "):
            raise
        return None


def judged(log: kraftlog.Log, asked: AskedCut, done: Restore) -> dict[str, list[str]]:
    """Return what is wrong with restored log directories, by where it shows."""
    gone = {one.message.rpartition("-")[0].partition("/")[0] for one in done.faults} & {LEFT, RIGHT, CONSUMER_OFFSETS}
    return {
        "load": [*violations(log, has_all_keys=asked.has_all_keys and not gone)],
        "verify": [str(row) for row in log.errors().to_pylist() if row["error"] != "not_read"],
        "audit": [f"{row['code']}: {row['known']}" for row in log.findings().to_pylist() if row["severity"] != "note"],
        "missing": [one.message for one in done.faults if not one.message.startswith(MAY_VANISH)],
    }


def test_random_cuts_tear_nothing(live: Live, rounds: Rounds, tmp_path: Path) -> None:
    """Sums hold on each restored cluster, groups are where transactions have brought them, and audits find nothing."""
    for seed in rounds:
        draw = random.Random(seed)
        asked, target = random_cut(live, draw), tmp_path / str(seed)
        with use_disk(FaultyDisk()):  # does not wait for the disk
            done = restored(asked, target, nodes=draw.choice((1, 3)))
        rounds.drawn(asked.kind if done else f"no cut: {asked.kind}")
        if done is None:
            continue
        rounds.drawn(*(["aborts"] if done.ended_transactions else []), *(["moves"] if done.moved_offsets else []))
        log = kraftlog.open(sorted(target.glob("node-*/logs-*")))
        for where, differences in judged(log, asked, done).items():
            rounds.found(where, differences, asked)
        shutil.rmtree(target)
    assert live.load.done["committed"] > 3, live.load.done
    rounds.check({"path": 3})


def wait_until_all_are_in_sync(nodes: list[RestoredNode]) -> None:
    """Wait until all replicas of all partitions are in sync."""
    admin = AdminClient({"bootstrap.servers": nodes[0].bootstrap_servers})
    Cluster.wait(lambda: replicas_behind(admin), lambda found: not found)


def transfer(name: str, amount: int) -> Iterator[Line]:
    yield {"producer": {"transactional.id": name}}
    yield {"transaction": "begin"}
    for partition, value in ((0, amount), (1, -amount)):
        record = {"topic": ACCOUNTS, "partition": partition, "timestamp": 1_700_000_000_000, "key": None, "headers": []}
        yield {**record, "value": str(value).encode().hex()}
    yield {"transaction": "commit"}


def test_a_cluster_boots_on_a_random_cut(java: Jvm, live: Live, boot: int, request: pytest.FixtureRequest) -> None:
    """Consumers, groups, Admin and controllers agree with the tables at the cut, and producers go on."""
    count = (1, 3)[boot % 2]
    draw = random.Random(f"{request.config.getoption('--random-seed')} {boot}")
    with tempfile.TemporaryDirectory(prefix="kraftlog-restored-") as home:
        target, addresses = Path(home) / "cluster", node_addresses(count)
        done = None
        while done is None:
            asked = random_cut(live, draw)
            done = restored(asked, target, nodes=addresses, quorum=draw.choice(("static", "dynamic")))
        at = kraftlog.open(asked.path, cut=asked.cut)
        nodes = restored_nodes(java, target, addresses)
        with running(nodes):
            wait_until_all_are_in_sync(nodes)
            assert nodes[0].quorum()["voters"] == [*range(1, count + 1)]
            assert_agrees(nodes, at, done)
            before = committed(nodes[0])
            if count > 1:
                nodes[-1].kill()
                assert committed(nodes[0]) == before, "a broker that ends takes nothing with it"
                nodes[-1].begin_to_start()
                nodes[-1].wait_until_it_listens()
            names = {row["transactional_id"] for row in at.transactional_ids(strict=False, faults=[]).to_pylist()}
            for number, name in enumerate(sorted(names)):
                nodes[-1].produce(transfer(name, number + 1))
            after = committed(nodes[0])
            assert {of: lines[: len(before.get(of, []))] for of, lines in after.items() if of in before} == before
            added = {of[1]: lines[len(before.get(of, [])) :] for of, lines in after.items()}
            assert [len(added[partition]) for partition in (0, 1)] == [len(names)] * 2
            wait_until_all_are_in_sync(nodes)
            ended = nodes[0].ended_transactions([ACCOUNTS], known=sorted(names))
            assert {line["state"] for line in ended} <= {"CompleteCommit", "CompleteAbort", "Empty"}
        log = kraftlog.open(sorted(target.glob("node-*/logs-*")))
        wrong = judged(log, asked._replace(has_all_keys=False), done)
        assert not any(wrong.values()), (asked, wrong)


def committed(node: RestoredNode) -> dict[tuple[str, int], list[Line]]:
    return records.by_partition(node.consume_at("read_committed", [ACCOUNTS])[0])


def assert_agrees(nodes: list[RestoredNode], at: kraftlog.Log, done: Restore) -> None:
    """Compare what a cluster answers with the tables of the backup at the cut."""
    accounts = at.of_files(at.found.only(lambda topic, _: topic == ACCOUNTS))
    for level in LEVELS:
        found, ends = nodes[0].consume_at(level, [ACCOUNTS])
        rows = accounts.records(records.COLUMNS, isolation_level=level).to_table()  # type: ignore[arg-type]
        assert records.by_partition(found) == records.by_partition(records.lines(rows)), level
        written = {(one.topic, one.partition): one.written for one in done.partitions}
        assert ends == {of: written[of].end_offset for of in ends}  # type: ignore[union-attr]
    moved = {(one.group, one.topic, one.partition): one.new_offset for one in done.moved_offsets}
    expected = {
        (row["group"], row["topic"], row["partition"]): row["offset"]
        for row in at.offsets(strict=False, faults=[]).to_pylist()
        if row["state"] == "committed"
    }
    groups = {
        (line["group"], topic, partition): offset
        for line in nodes[-1].groups()
        for topic, partition, offset, *_ in line.get("offsets", [])
    }
    assert groups == expected | moved
    state, image = (
        cluster_state.in_order(nodes[0].cluster_state()),
        cluster_state.of_image(at.image(done.metadata_offset)),
    )
    for topic in image["topics"].values():
        topic["replicas"] = [min(len(replicas), len(nodes)) for replicas in topic["replicas"]]
    for topic in state["topics"].values():
        topic["replicas"] = [len(replicas) for replicas in topic["replicas"]]
    state["features"].pop("kraft.version", None)
    assert state == image
