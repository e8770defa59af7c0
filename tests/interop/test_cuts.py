"""Cuts of logs that a real broker wrote, at random times: no transaction is torn, and no committed offset too late.

Producers move amounts between accounts, so that the sum of all accounts is 0, and commit the offset of the order for
it. The files are read as they are after the broker has stopped.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from jvm import Jvm, Line
from kafka_broker import Broker
from kafka_tool import run_tool
from random_rounds import Rounds

import kraftlog
from accounts import ACCOUNTS, ORDERS, counted, holds_nothing_back, is_whole
from kraftlog.log_store.options import milliseconds_now
from kraftlog.topics import CLUSTER_METADATA
from kraftlog.transactions.cut import Cut, CutTime, Side

CONFIGS = {
    ORDERS: {},
    ACCOUNTS: {"internal.segment.bytes": str(16 << 10)},  # several segments
}
PARTITIONS = 3
TURNS, TURN_MS = 60, 30
AHEAD_MS = 10_000
VERSIONS = (2, 1)  # 2 is what a new cluster has
NAMES = ["one", "two", "three"]


class Run(NamedTuple):
    """A log directory, and the times of its markers and plain records in milliseconds."""

    log_dir: Path
    times: list[int]


def program(version: int, written: dict[int, int]) -> Iterator[Line]:
    """Yield the lines that Produce.java takes; three producers have transactions side by side.

    ``written`` counts the orders of each partition.
    """
    draw, now = random.Random(version), milliseconds_now()
    yield {"by": "", "producer": {}}
    under_way: dict[str, bool] = {}
    for name in NAMES:
        yield {"by": name, "producer": {"transactional.id": f"{name}-{version}"}}
    for turn in range(TURNS):
        order = draw.randrange(PARTITIONS)
        for _ in range(draw.randrange(3)):
            ahead = draw.randrange(AHEAD_MS)  # of the clock of another client
            yield _record("", ORDERS, order, "order") | {"timestamp": now + turn * TURN_MS + ahead}
            written[order] += 1
        yield {"by": "", "transaction": "settle"}
        name = draw.choice(NAMES)
        if name in under_way:
            yield {"by": name, "transaction": "commit" if under_way.pop(name) else "abort"}
            continue
        under_way[name] = draw.random() < 0.7
        amount, (to, of) = draw.randrange(1, 100), draw.sample(range(PARTITIONS), 2)
        yield {"by": name, "transaction": "begin"}
        yield _record(name, ACCOUNTS, to, str(amount))
        yield _record(name, ACCOUNTS, of, str(-amount))
        yield {
            "by": name,
            "group": "transfers",
            "topic": ORDERS,
            "partition": order,
            "offset": written[order],
            "metadata": "",
        }
    for name in NAMES:
        yield {"by": name, "transaction": "leave" if name in under_way else "settle"}


def _record(by: str, topic: str, partition: int, value: str) -> Line:
    # a time of the client, which cuts do not look at within transactions
    record = {"topic": topic, "partition": partition, "timestamp": 1_700_000_000_000, "key": None, "headers": []}
    return {"by": by, **record, "value": value.encode().hex()}


@pytest.fixture(scope="module")
def run(java: Jvm) -> Iterator[Run]:
    """Let producers write with each transaction version; the last ones leave transactions open."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-kafka-") as home:
        broker = Broker(java, Path(home), {"offsets.topic.num.partitions": "2"})
        with broker:
            broker.create({"name": name, "partitions": PARTITIONS, "configs": CONFIGS[name]} for name in CONFIGS)
            written = dict.fromkeys(range(PARTITIONS), 0)
            for version in VERSIONS:
                if version != VERSIONS[0]:
                    to = ["--bootstrap-server", broker.bootstrap_servers, "downgrade"]
                    feature = ["--feature", f"transaction.version={version}"]
                    (told,) = run_tool(java, "org.apache.kafka.tools.FeatureCommand", [[*to, *feature]])
                    assert told.code == 0, told
                broker.produce(program(version, written))
        times = [time for *_, time in counted(kraftlog.open(broker.log_dir, topics=[ACCOUNTS, ORDERS]))]
        yield Run(broker.log_dir, times)


def torn(log: kraftlog.Log, at: kraftlog.Log) -> list[Line]:
    """Return the transactions of which a cut has some of the markers."""
    ends = {(one.topic, one.partition): one.end_offset for one in at.partitions}
    found = []
    for row in log.transactions(["partitions"]).to_pylist():
        parts = [one for one in row["partitions"] if one["marker_offset"] is not None]
        inside = [one for one in parts if one["marker_offset"] < ends[one["topic"], one["partition"]]]
        if inside and len(inside) < len(row["partitions"]):
            found.append(row)
    return found


def cut_after(log: kraftlog.Log, time: int) -> Cut | None:
    """Return the least cut, or None where a transaction is never ended."""
    try:
        return log.cut(CutTime(Side.AT_OR_AFTER, time))
    except ValueError as error:
        if not str(error).startswith("no cut: transaction"):
            raise
        return None


def test_cuts_at_random_times(run: Run, rounds: Rounds) -> None:
    """Nothing is torn before and after a time, and a cut has all that it may have."""
    log = kraftlog.open(run.log_dir)
    for seed in rounds:
        draw = random.Random(seed)
        time = draw.choice(run.times) + draw.randint(-2, 2)
        after = cut_after(log, time)
        rounds.drawn("no cut after" if after is None else "after")
        before = log.cut(CutTime(Side.AT_OR_BEFORE, time))
        rounds.drawn("before", *["moved"][: any(True for _ in before.notes())])
        for cut in (before, after):
            if cut is None:
                continue
            at = log.at(cut)
            rounds.found("torn", [str(row) for row in torn(log, at)])
            rounds.found("sums", [] if is_whole(at) else [f"{cut.ends}"])
            if cut is before:
                of_cut = [row for row in counted(at) if row[0] != CLUSTER_METADATA]  # which no cut ends
                rounds.found("order", [str(row) for row in of_cut if row[3] > time])
                rounds.found("held back", [] if holds_nothing_back(at) else [f"{cut.ends}"])
            else:
                ends = cut.ends
                late = [of for of, end in before.ends.items() if end > ends[of]]
                rounds.found("sides", [str(of) for of in late])
    rounds.check({"before": 10, "after": 1, "moved": 3})


def test_what_is_not_known_without_the_coordinators(run: Run, tmp_path: Path) -> None:
    """Transactions of version 1 have one marker epoch after another: a note says that the cut may tear them."""
    log = kraftlog.open(run.log_dir)
    assert log.cut("end").unknown == ()
    copy = tmp_path / "logs"
    shutil.copytree(run.log_dir, copy, ignore=shutil.ignore_patterns("__transaction_state-*"))
    (note,) = kraftlog.open(copy).cut("end").unknown
    assert "known by partition only, since __transaction_state does not reach so far back" in note
