"""The nodes of a new cluster: where they listen, their log directories, and the placement of replicas on them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from kraftlog.backup.quorum import CONTROLLER_LISTENER, Voter, quorum_properties
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE

BROKER_LISTENER = "PLAINTEXT"
FIRST_PORT = 9092
VOTERS_COUNT = 3
_NODE = re.compile(r"(?P<node_id>[0-9]+)@(?P<host>\[[^\]]+\]|[^:@]+):(?P<port>[0-9]+)(:(?P<controller>[0-9]+))?")


@dataclass(frozen=True)
class NewNode:
    """A node of a new cluster.

    Attributes
    ----------
    node_id : int
    host, port : str, int
        Where clients connect to it.
    controller_port : int or None
        Where other nodes connect to its controller; None for a broker without one.
    directory_ids : tuple of bytes
        Of its log directories.
    """

    node_id: int
    host: str
    port: int
    controller_port: int | None
    directory_ids: tuple[bytes, ...]

    @property
    def voter(self) -> Voter | None:
        """Its controller."""
        if self.controller_port is None:
            return None
        return Voter(self.node_id, self.host, self.controller_port, self.directory_ids[0])

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"node-{self.node_id}"

    def directories(self, target: Path) -> list[Path]:
        """Return its log directories in the folder of a cluster."""
        return [target / self.name / f"logs-{at}" for at in range(len(self.directory_ids))]

    def properties(self, target: Path, voters: Sequence[Voter], quorum: str) -> dict[str, object]:
        """Return the properties with which it starts."""
        listeners = [f"{BROKER_LISTENER}://{self.host}:{self.port}"]
        if self.controller_port is not None:
            listeners.append(f"{CONTROLLER_LISTENER}://{self.host}:{self.controller_port}")
        return {
            "process.roles": "broker" if self.controller_port is None else "broker,controller",
            "node.id": self.node_id,
            "log.dirs": ",".join(str(one.absolute()) for one in self.directories(target)),
            "listeners": ",".join(listeners),
            "controller.listener.names": CONTROLLER_LISTENER,
            "listener.security.protocol.map": f"{BROKER_LISTENER}:PLAINTEXT,{CONTROLLER_LISTENER}:PLAINTEXT",
            **quorum_properties(voters, quorum),
        }


def random_uuid() -> bytes:
    """Return a new id whose text does not begin with a dash, as Kafka's."""
    return next(one for one in iter(lambda: uuid.uuid4().bytes, b"") if one[0] >> 2 != 62)


def new_nodes(
    nodes: int | str | Iterable[str], directories_count: int, new_uuid: Callable[[], bytes] = random_uuid
) -> list[NewNode]:
    """Return the nodes of a new cluster.

    Parameters
    ----------
    nodes : int, str or iterable of str
        How many on this machine; or ``ID@HOST:PORT:CONTROLLER_PORT`` of each, without the last one for a broker that
        is no controller.
    directories_count : int
        Log directories of each node.
    new_uuid : callable
        Returns 16 bytes.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from kraftlog.backup.new_nodes import new_nodes
    >>> [(node.node_id, node.port, node.controller_port) for node in new_nodes(2, 1)]
    [(1, 9092, 9093), (2, 9094, 9095)]
    """
    if directories_count < 1:
        raise ValueError(f"directories {directories_count}: expected 1 or more")
    made = list(_nodes(nodes, lambda: tuple(new_uuid() for _ in range(directories_count))))
    ids = [node.node_id for node in made]
    if len(set(ids)) < len(ids):
        raise ValueError(f"nodes {', '.join(map(str, ids))}: each id once is expected")
    ports = [(node.host, port) for node in made for port in (node.port, node.controller_port) if port is not None]
    twice = [f"{host}:{port}" for at, (host, port) in enumerate(ports) if (host, port) in ports[:at]]
    if twice:
        raise ValueError(f"two listeners have the address {twice[0]}")
    if not any(node.controller_port for node in made):
        raise ValueError("no node is a controller: ID@HOST:PORT:CONTROLLER_PORT is expected of at least one")
    return made


def _nodes(nodes: int | str | Iterable[str], ids: Callable[[], tuple[bytes, ...]]) -> Iterator[NewNode]:
    if isinstance(nodes, int):
        if nodes < 1:
            raise ValueError(f"nodes {nodes}: expected 1 or more")
        voters_count = min(nodes, VOTERS_COUNT)
        for at in range(nodes):
            port = FIRST_PORT + 2 * at
            yield NewNode(at + 1, "127.0.0.1", port, port + 1 if at < voters_count else None, ids())
        return
    for text in [nodes] if isinstance(nodes, str) else nodes:
        found = _NODE.fullmatch(text)
        if found is None or int(found["node_id"]) >= 2**31:
            raise ValueError(f"node {text!r}: expected ID@HOST:PORT:CONTROLLER_PORT, as 1@localhost:9092:9093")
        ports = [int(port) for port in (found["port"], found["controller"]) if port is not None]
        if any(not 0 < port < 2**16 for port in ports):
            raise ValueError(f"node {text!r}: expected ports from 1 to 65535")
        yield NewNode(int(found["node_id"]), found["host"], ports[0], ports[1] if len(ports) > 1 else None, ids())


class Place(NamedTuple):
    """A replica: the node, and which of its log directories."""

    node: NewNode
    directory: int

    @property
    def directory_id(self) -> bytes:
        """The id of the log directory."""
        return self.node.directory_ids[self.directory]

    def path(self, target: Path) -> Path:
        """Return the log directory."""
        return self.node.directories(target)[self.directory]


def placements(nodes: Sequence[NewNode], replication_factors: Iterable[int]) -> Iterator[tuple[Place, ...]]:
    """Return the replicas of partitions, the leader first.

    Leaders go from node to node; the other replicas follow at a distance that grows with each round, as Kafka's do, so
    that the partitions of a node that fails are not all led by the next one. A node puts its replicas into its log
    directories in turn.

    Parameters
    ----------
    nodes : sequence of NewNode
    replication_factors : iterable of int
        Of each partition; the number of nodes bounds it.

    Examples
    --------
    >>> from kraftlog.backup.new_nodes import new_nodes, placements
    >>> [[place.node.node_id for place in places] for places in placements(new_nodes(3, 1), [2, 2, 2, 2])]
    [[1, 2], [2, 3], [3, 1], [1, 3]]
    """
    turns: Mapping[int, Iterator[int]] = {node.node_id: count() for node in nodes}
    size = len(nodes)
    for at, factor in enumerate(replication_factors):
        shift = at // size
        others = [1 + (shift + number) % (size - 1) for number in range(min(factor, size) - 1)]
        chosen = [nodes[(at + distance) % size] for distance in (0, *others)]
        yield tuple(Place(node, next(turns[node.node_id]) % len(node.directory_ids)) for node in chosen)


def internal_topic_properties(partitions: Mapping[str, int], nodes_count: int) -> dict[str, object]:
    """Return the properties of the coordinators' topics: partitions as in the image, replicas as the nodes allow."""
    factor = min(nodes_count, 3)
    properties: dict[str, object] = {
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min(factor, 2),
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": min(factor, 2),
    }
    counts = ((CONSUMER_OFFSETS, "offsets.topic"), (TRANSACTION_STATE, "transaction.state.log"))
    return properties | {f"{of}.num.partitions": partitions[topic] for topic, of in counts if topic in partitions}
