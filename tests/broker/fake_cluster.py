"""A cluster in memory that stands where ``kraftlog.broker.client.Client`` does, and steps at which it goes away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kraftlog.broker.client import BrokerOfCluster, NewTopic
from kraftlog.broker.errors import NotDeliveredError, ReplayError

Place = tuple[str, int]
Row = tuple[Any, ...]


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Cluster:
    """What brokers hold.

    Attributes
    ----------
    logs : dict
        Of each partition records, with whether they are committed; None is a marker, or a record of others.
    offsets : dict
        That groups have committed, by group, topic and partition.
    kills : set of int
        Numbers of steps that are not done, and end the process; a negative one is done before.
    interrupts : bool
        Whether another producer writes to the partition between two calls.
    """

    topics: dict[str, int] = field(default_factory=dict)
    logs: dict[Place, list[list[Any]]] = field(default_factory=dict)
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    created: list[NewTopic] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    busy: dict[str, str] = field(default_factory=dict)
    nodes_count: int = 2
    kills: set[int] = field(default_factory=set)
    interrupts: bool = False
    too_large: int = 1 << 30
    steps: int = 0
    pending: dict[str, list[list[Any]]] = field(default_factory=dict)

    def step(self) -> bool:
        """Count a step; whether the process ends behind it."""
        self.steps += 1
        if self.steps in self.kills:
            raise Killed
        return -self.steps in self.kills

    def log(self, place: Place) -> list[list[Any]]:
        """Return the entries of a partition."""
        return self.logs.setdefault(place, [])

    def committed(self, place: Place) -> list[tuple[int, Row]]:
        """Return offsets and records that consumers see."""
        return [(at, row) for at, (row, state) in enumerate(self.log(place)) if state == "committed"]

    def client(self, to: str, name: str, settings: Mapping[str, str], timeout: float) -> FakeClient:
        """Stand where the class is called."""
        return FakeClient(self, to, name)


class _Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset


class _Error:
    def str(self) -> str:
        return "too large"

    def code(self) -> int:
        return 10


class FakeClient:
    def __init__(self, cluster: Cluster, to: str, name: str) -> None:
        self.cluster, self.to, self.name = cluster, to, name
        self.waiting: list[tuple[Any, ...]] = []
        self.has_failed = False

    def topics(self) -> dict[str, int]:
        return dict(self.cluster.topics)

    def cluster_id(self) -> str:
        return "fake"

    def brokers(self) -> list[BrokerOfCluster]:
        return [BrokerOfCluster(at, "fake", 9092 + at) for at in range(self.cluster.nodes_count)]

    def replicas(self) -> dict[Place, tuple[int, ...]]:
        return {(name, at): (0, 1) for name, count in self.cluster.topics.items() for at in range(count)}

    def refused_topics(self, topics: Sequence[NewTopic]) -> dict[str, str]:
        return {one.name: self.cluster.refused[one.name] for one in topics if one.name in self.cluster.refused}

    def create_topics(self, topics: Sequence[NewTopic]) -> None:
        is_last = self.cluster.step()
        for one in topics:
            self.cluster.topics[one.name] = one.partitions_count
            self.cluster.configs.setdefault(one.name, dict(one.configs))
            self.cluster.created.append(one)
        if is_last:
            raise Killed

    def busy_groups(self) -> dict[str, str]:
        return self.cluster.busy

    def group_offsets(self, group: str, places: Iterable[Place]) -> dict[Place, int]:
        found = {place: self.cluster.offsets.get((group, *place)) for place in places}
        return {place: offset for place, offset in found.items() if offset is not None}

    def set_group_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        is_last = self.cluster.step()
        self.cluster.offsets.update({(group, *place): offset for place, offset in offsets.items()})
        if is_last:
            raise Killed

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: self.cluster.configs.get(name, {}) for name in topics}

    def ends(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        return {place: (0, len(self.cluster.log(place))) for place in places}

    def open(self, compression: str | None, batch_bytes: int) -> None:
        is_last = self.cluster.step()
        self._end("aborted")
        if is_last:
            raise Killed

    def reached(self, places: Iterable[Place]) -> dict[Place, int]:
        found = {place: self.cluster.offsets.get((self.name, *place)) for place in places}
        return {place: offset for place, offset in found.items() if offset is not None}

    def begin(self) -> None:
        assert self.name not in self.cluster.pending
        self.cluster.pending[self.name] = []
        self.has_failed = False

    def produce(self, place: Place, rows: Iterable[Row]) -> None:
        is_last = self.cluster.step()
        if self.cluster.interrupts:
            self.cluster.log(place).append([None, "other"])
        for key, value, timestamp, headers, report in rows:
            if len(value or b"") > self.cluster.too_large:
                self.has_failed = True
                if report is not None:
                    self.waiting.append((report, _Error(), None))
                continue
            entry = [(key, value, timestamp, headers or []), "open"]
            self.cluster.pending[self.name].append(entry)
            self.cluster.log(place).append(entry)
            if report is not None:
                self.waiting.append((report, None, _Message(len(self.cluster.log(place)) - 1)))
        if is_last:
            raise Killed

    def pause(self, seconds: float) -> None:
        raise AssertionError("no rate was asked for")

    def deliver(self) -> None:
        self.cluster.step()
        for report, error, message in self.waiting:
            report(error, message)
        self.waiting.clear()
        if self.has_failed:
            raise NotDeliveredError("one message failed")

    def commit(self, reached: Mapping[Place, int]) -> None:
        is_last = self.cluster.step()
        self.cluster.offsets.update({(self.name, *place): offset for place, offset in reached.items()})
        self._end("committed")
        for place in reached:
            self.cluster.log(place).append([None, "marker"])
        if is_last:
            raise Killed

    def abort(self) -> None:
        self.waiting.clear()
        self._end("aborted")

    def _end(self, state: str) -> None:
        for entry in self.cluster.pending.pop(self.name, ()):
            entry[1] = state

    def close(self) -> None:
        """Leave what is open as it is."""


def gone(*_: object) -> None:
    """Answer as a broker that is not there."""
    raise ReplayError("the broker is gone")
