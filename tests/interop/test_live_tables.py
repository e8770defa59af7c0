"""kraftlog's folded tables of a log directory that a broker works in, and what Admin says at the same time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cluster_state
import coordinator_answers as answers
import pytest
from coordinator_log import START
from jvm import Jvm, Line
from kafka_broker import WITH_ACLS, Broker
from records import made

import kraftlog

TOPICS = [
    {"name": "orders", "partitions": 3, "configs": {"retention.ms": "-1"}},
    {"name": "parts", "partitions": 2, "configs": {"cleanup.policy": "compact"}},
]
NAMES = [str(topic["name"]) for topic in TOPICS]
SESSION_MS = "600000"  # a member of a group stays in it to the end of the tests
PROPERTIES = WITH_ACLS | {
    "group.consumer.max.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
}
WHEN = ["running", "stopped", "restarted"]


class Seen(NamedTuple):
    """What Admin said, and kraftlog's tables."""

    groups: list[Line]
    ids: list[Line]
    state: Line
    tables: dict[str, Line]


@pytest.fixture(scope="module")
def seen(java: Jvm) -> Iterator[dict[str, Seen]]:
    """Look at a broker's log directory while it runs, when it is stopped, and when it has loaded its logs again."""
    with tempfile.TemporaryDirectory(prefix="kraftlog-live-") as home:
        broker = Broker(java, Path(home), PROPERTIES)
        with broker:
            broker.create(TOPICS)
            broker.produce(_transactions())
            broker.join(_members())
            running = _look(broker)
        stopped = running._replace(tables=_tables(broker.log_dir))
        with broker:
            yield dict(zip(WHEN, [running, stopped, _look(broker)], strict=True))


def _transactions() -> Iterator[Line]:
    """Yield what transactional producers do: one commits, one aborts at times, and one leaves its transaction open."""
    records = (line | {"timestamp": START} for line in made("orders", 0, 100))
    for name, ends in {"commits": ["commit", "commit"], "aborts": ["abort", "commit", "abort"]}.items():
        yield {"by": name, "producer": {"transactional.id": name, "transaction.timeout.ms": SESSION_MS}}
        for number, end in enumerate(ends):
            yield {"by": name, "transaction": "begin"}
            yield next(records) | {"by": name}
            for partition in range(2):
                yield {"by": name} | _offset("in-transactions", "parts", partition, 10 * number + partition)
            if end == "abort":
                yield {"by": name} | _offset("never", "orders", 0, 1)
            yield {"by": name, "transaction": end}
    yield {"by": "leaves", "producer": {"transactional.id": "leaves", "transaction.timeout.ms": SESSION_MS}}
    yield {"by": "leaves", "transaction": "begin"}
    yield from (next(records) | {"by": "leaves", "partition": partition} for partition in (0, 2))
    yield {"by": "leaves"} | _offset("in-transactions", "orders", 0, 5)
    yield {"by": "leaves"} | _offset("pending", "orders", 1, 6)
    yield {"by": "leaves", "transaction": "leave"}


def _members() -> Iterator[Line]:
    """Yield who joins which group, and offsets of groups without members."""
    yield from (_offset("simple", "orders", partition, 1_000 + partition, "ключ") for partition in range(3))
    yield _offset("simple", "orders", 1, 7)
    for number in range(2):
        classic = {"group.id": "classic", "session.timeout.ms": SESSION_MS, "client.id": f"client-{number}"}
        yield {"consumer": classic, "topics": NAMES}
        yield {"consumer": {"group.id": "new", "group.protocol": "consumer"}, "topics": NAMES}
    static = {"group.id": "static", "group.instance.id": "one", "session.timeout.ms": SESSION_MS}
    yield {"consumer": static | {"partition.assignment.strategy": _COOPERATIVE}, "topics": ["parts"]}


_COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"


def _offset(group: str, topic: str, partition: int, offset: int, metadata: str = "") -> Line:
    return {"group": group, "topic": topic, "partition": partition, "offset": offset, "metadata": metadata}


def _look(broker: Broker) -> Seen:
    ids = broker.ended_transactions(NAMES)
    return Seen(broker.groups(), ids, broker.cluster_state(), _tables(broker.log_dir))


def _tables(log_dir: Path) -> dict[str, Line]:
    return {
        "offsets": answers.table_offsets(log_dir),
        "groups": answers.table_groups(log_dir),
        "transactional_ids": answers.table_transactional_ids(log_dir),
        "image": cluster_state.of_image(kraftlog.open(log_dir).image()),
    }


@pytest.mark.parametrize("when", WHEN)
def test_offsets(seen: dict[str, Seen], when: str) -> None:
    """What members, transactions and an administrator committed."""
    found = seen[when].tables["offsets"]
    assert found == answers.admin_offsets(seen[when].groups)
    assert found.keys() == {"classic", "in-transactions", "new", "simple", "static"}
    assert [offset for offset, _, _ in found["in-transactions"].values()] == [10, 11]


@pytest.mark.parametrize("when", WHEN)
def test_groups(seen: dict[str, Seen], when: str) -> None:
    """Groups whose members are in the middle of their session, and those that have only offsets."""
    found = seen[when].tables["groups"]
    assert found == answers.admin_groups(seen[when].groups)
    assert found.keys() == {"classic", "in-transactions", "never", "new", "pending", "simple", "static"}
    assert {name: len(group["members"]) for name, group in found.items() if group["state"] == "Stable"} == {
        "classic": 2,
        "new": 2,
        "static": 1,
    }


@pytest.mark.parametrize("when", WHEN)
def test_transactional_ids(seen: dict[str, Seen], when: str) -> None:
    """Of the producers that are gone, and of the one whose transaction is open."""
    found = seen[when].tables["transactional_ids"]
    assert found == answers.admin_transactional_ids(seen[when].ids)
    states = {"commits": "CompleteCommit", "aborts": "CompleteAbort", "leaves": "Ongoing"}
    assert {name: line["state"] for name, line in found.items()} == states


@pytest.mark.parametrize("when", WHEN)
def test_image(seen: dict[str, Seen], when: str) -> None:
    """The topics with their ids, the coordinators' own included, configs and features."""
    found = seen[when].tables["image"]
    assert found == cluster_state.in_order(seen[when].state)
    assert set(NAMES) < found["topics"].keys()
