"""Three brokers that are killed while others lead, with elections of replicas that were not in sync.

At the end nothing runs, and each broker's disk holds another log. kraftlog says of these what the cluster will serve,
before the cluster starts again and serves it.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from jvm import Jvm
from kafka_cluster import BROKERS, CONTROLLER, Cluster, Seen

import kraftlog

TOPIC = "orders"
PARTITIONS = 3
ROUNDS = 2
BOUNDS = ["partition", "high_watermark_at_least", "high_watermark_at_most"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Take a seed for each minute of ``--random-seconds``, from ``--random-seed`` on."""
    if "seed" in metafunc.fixturenames:
        first, seconds = metafunc.config.getoption("--random-seed"), metafunc.config.getoption("--random-seconds")
        seeds: list[object] = list(range(first, first + int(seconds) // 60))
        why = "four nodes that wait for each other's ends take a minute: --random-seconds=60 asks for one seed"
        metafunc.parametrize("seed", seeds or [pytest.param(first, marks=pytest.mark.skip(reason=why))])


def test_the_line_is_what_the_restarted_cluster_serves(java: Jvm, tmp_path: Path, seed: int) -> None:
    """Compare offsets, values and ends of what is read of three directories with what consumers get."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-cluster-") as home:
        cluster = Cluster(java, Path(home))
        with cluster.ended():
            leaders, watermarks, is_alone = _fail(cluster, random.Random(seed))
            copies = {node: cluster.copy(node, tmp_path) for node in (CONTROLLER, *BROKERS)}
            every = [path for paths in copies.values() for path in paths]

            cluster.start(CONTROLLER, *sorted(BROKERS, key=lambda node: -list(leaders.values()).count(node)))
            led = cluster.wait_for_leaders(TOPIC)
            served = {number: cluster.consume(TOPIC, number) for number in led}

    log = kraftlog.open(every, topics=[TOPIC])
    replicas = log.replicas().to_pylist()
    bounds = {row["partition"]: row for row in log.partition_offsets(columns=BOUNDS).to_table().to_pylist()}
    parted = [row for row in replicas if not row["is_chosen"] and row["agrees_until"] < row["end_offset"]]
    assert parted, "no broker has records that were cut off: the test proves nothing"
    for number in range(PARTITIONS):
        (chosen,) = (row for row in replicas if row["is_chosen"] and row["partition"] == number)
        assert chosen["node_id"] == leaders[number]
        assert watermarks[number] <= served[number].end_offset
        committed, at_most = (bounds[number][name] for name in BOUNDS[1:])
        assert watermarks[number] <= at_most == committed <= served[number].end_offset  # all in sync are given
        kept = [row for row in _rows(every, number).records if row[0] < committed]
        assert [row for row in served[number].records if row[0] < committed] == kept
        if led[number] == leaders[number]:
            assert _rows(every, number) == served[number]
        else:  # several were in sync, and the controller took another one: what that one had is served
            assert not is_alone
            assert _rows(copies[led[number]], number) == served[number]


class _Ending(NamedTuple):
    """How all were killed.

    Attributes
    ----------
    leaders, watermarks : dict
        Of each partition: its last leader, and where a consumer was told that the log ends while that one led.
    is_alone : bool
        Whether the leader was the only replica in sync.
    """

    leaders: dict[int, int]
    watermarks: dict[int, int]
    is_alone: bool


def _fail(cluster: Cluster, drawn: random.Random) -> _Ending:
    """Let brokers die and come back, and kill all in the end."""
    cluster.start(CONTROLLER, *BROKERS)
    cluster.create(TOPIC, PARTITIONS)
    cluster.wait_for_leaders(TOPIC)
    numbers = itertools.count()

    def produce() -> None:
        for partition in range(PARTITIONS):
            values = [str(next(numbers)).encode() for _ in range(drawn.randint(1, 7))]
            assert cluster.produce(TOPIC, partition, values)

    produce()
    for left in reversed(range(ROUNDS)):
        # the last one that is left leads all and writes on; then one comes back that lacks what it wrote
        last, *others = drawn.sample(sorted(cluster.brokers), len(cluster.brokers))
        for node in others:
            cluster.kill(node)
            cluster.wait_for_leaders(TOPIC)
            produce()
        if not left or drawn.random() < 0.8:
            cluster.kill(last)
            cluster.start(drawn.choice([node for node in BROKERS if node != last]))
            cluster.wait_for_leaders(TOPIC)
            produce()
        if drawn.random() < 0.6:  # the one that was left stays away at the end, with what is lost
            cluster.start(
                drawn.choice([one for one in BROKERS if one not in cluster.brokers and (left or one != last)])
            )
            produce()
    if is_alone := drawn.random() < 0.7:
        cluster.kill(*drawn.sample(sorted(cluster.brokers), len(cluster.brokers) - 1))
        cluster.wait_for_leaders(TOPIC)
        produce()
    leaders = cluster.wait_for_leaders(TOPIC)
    watermarks = {partition: cluster.consume(TOPIC, partition).end_offset for partition in leaders}
    produce()
    cluster.kill_all()
    cluster.forbid_unclean_elections()
    return _Ending(leaders, watermarks, is_alone)


def _rows(paths: Iterable[Path], partition: int) -> Seen:
    log = kraftlog.open(list(paths), topics=[TOPIC], partitions=[partition])
    table = log.records(["offset", "value"]).to_table()
    (end,) = log.partition_offsets("latest", ["offset"]).to_table()["offset"].to_pylist()
    return Seen(list(zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True)), end)
