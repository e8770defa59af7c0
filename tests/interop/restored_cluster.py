"""The nodes of a cluster that ``kraftlog restore`` wrote, started as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from jvm import Jvm
from kafka_broker import WITH_ACLS, Broker, free_ports

TEST_PROPERTIES = {**WITH_ACLS, "log.retention.ms": "-1"}  # the records of tests are from long ago


class RestoredNode(Broker):
    """A node whose properties and log directory are there."""

    def __init__(self, jvm: Jvm, folder: Path, port: int, log_directory: str = "logs-0") -> None:
        self._jvm = jvm
        self._output = folder / "kafka.out"
        self._process = None
        self._port = port
        self.is_own_log = True
        self.log_dir = folder / log_directory
        self._properties = folder / "server.properties"

    def end(self) -> None:
        """Begin the end of the process, which ``stop`` waits for."""
        assert self._process is not None
        self._process.terminate()


def node_addresses(count: int) -> list[str]:
    """Return nodes for ``restore`` on free ports, all of them brokers and controllers."""
    ports = free_ports(2 * count)
    return [f"{at + 1}@127.0.0.1:{ports[2 * at]}:{ports[2 * at + 1]}" for at in range(count)]


def restored_nodes(jvm: Jvm, target: Path, addresses: list[str]) -> list[RestoredNode]:
    """Return the nodes of a restored cluster, stopped."""
    nodes = []
    for address in addresses:
        node_id, _, rest = address.partition("@")
        node = RestoredNode(jvm, target / f"node-{node_id}", int(rest.split(":")[1]))
        for name, value in TEST_PROPERTIES.items():
            node.configure(name, value)
        nodes.append(node)
    return nodes


@contextmanager
def running(nodes: list[RestoredNode]) -> Iterator[None]:
    """Run nodes; controllers wait for each other, so all processes start before one of them listens."""
    with ExitStack() as stack:
        for node in nodes:
            node.begin_to_start()
            stack.callback(node.stop)
        for node in nodes:
            node.wait_until_it_listens()
        yield
        for node in nodes:  # all at once: the last controllers have no quorum, and would wait for one
            node.end()
