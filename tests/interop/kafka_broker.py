"""A real Kafka on this machine: one node, broker and controller in one, on 127.0.0.1 with its own directory.

A broker can be entered again: between two ``with`` blocks it is stopped, cleanly, and its log directory is there
to be read or changed.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from jvm import BROKER, Jvm, Line

NODE = 1
CLUSTER = "a3JhZnRsb2ctaW50ZXJvcA"  # any 16 bytes in base64
START_LIMIT = 240.0
STOP_LIMIT = 240.0  # the first one archives its classes, which takes long on a busy machine
MARKERS_LIMIT = 60.0
_SHOWN = 4_000  # characters
_STATIC_QUORUM = "controller.quorum.voters", f"{NODE}@127.0.0.1:{{controller}}"
_DYNAMIC_QUORUM = "controller.quorum.bootstrap.servers", "127.0.0.1:{controller}"
# With these a node has ACLs, and lets the tests do anything all the same.
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

_LEADERSHIP_ENDED = re.compile(r"Failed to load metadata from \S+ with epoch \d+ .* is no longer the leader")


class Node:
    """A process of Kafka with the properties below ``home``, running inside ``with``.

    Its log directories are formatted, unless they are there already; ``log_dir`` is the first one.

    Attributes
    ----------
    observers : list of callable
        Of all nodes: called with the log directories and "live" at the end of ``with``, and with "stopped" after it.
    is_own_log : bool
        Whether Kafka wrote all its logs.
    """

    observers: ClassVar[list[Callable[[list[Path], str], None]]] = []

    def __init__(
        self,
        jvm: Jvm,
        home: Path,
        port: int,
        properties: Mapping[str, object],
        format_options: Iterable[str] = (),
        more_log_dirs: Iterable[Path] = (),
    ) -> None:
        self._jvm = jvm
        self._output = home / "kafka.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = port
        self.is_own_log = True
        self.log_dir = home / "logs"
        self.log_dirs = [self.log_dir, *more_log_dirs]
        self._properties = home / "server.properties"
        log_dirs = ",".join(map(str, self.log_dirs))
        lines = [f"{name}={value}\n" for name, value in {"log.dirs": log_dirs, **properties}.items()]
        self._properties.write_text("".join(lines))
        if not (self.log_dir / "meta.properties").exists():
            self._format(properties["node.id"], [*format_options])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self._observe("live")
        else:
            error.add_note(f"Kafka said last:\n{self.output()[-_SHOWN:]}")
        code = self.stop()
        # 143 is the JVM's code for an end by SIGTERM after its shutdown hooks.
        assert error is not None or code in (0, 143), f"Kafka ended with {code}:\n{self.output()}"

        if error is None:
            self._observe("stopped")

    def _observe(self, state: str) -> None:
        for observer in self.observers if self.is_own_log else ():
            observer(self.log_dirs, state)

    def start(self) -> None:
        """Start the process, and wait until it listens."""
        self.begin_to_start()
        self.wait_until_it_listens()

    def begin_to_start(self) -> None:
        """Start the process."""
        with self._output.open("ab") as output:
            command = self._jvm.command(BROKER, str(self._properties))
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)

    def wait_until_it_listens(self) -> None:
        """Wait for a process that begins."""
        try:
            self._wait_until_it_listens()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> int:
        """End the process as an administrator does, and return its exit code."""
        assert self._process is not None
        with self._process as process:
            process.terminate()
            try:
                return process.wait(STOP_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                return process.wait(STOP_LIMIT)

    def configure(self, name: str, value: str) -> None:
        """Set a property that the next start reads."""
        others = [line for line in self._properties.read_text().splitlines() if not line.startswith(f"{name}=")]
        self._properties.write_text("\n".join([*others, f"{name}={value}", ""]))

    def kill(self) -> None:
        """End the process at once, as a loss of power would, but that what was written reaches the disk."""
        assert self._process is not None
        with self._process as process:
            process.kill()
            process.wait(STOP_LIMIT)

    def freeze(self) -> None:
        """Stop the process, which keeps its connections and its memory."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a process that was frozen go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def output(self) -> str:
        """Read what Kafka has said so far: its warnings and errors."""
        return self._output.read_text(errors="replace")

    def _format(self, node: object, options: list[str]) -> None:
        """Format the log directory; one that Kafka has formatted for the node with the same options is copied."""
        kept = [
            self._jvm.home / "-".join(["formatted", str(node), str(number), *options])
            for number in range(len(self.log_dirs))
        ]
        if all(one.exists() for one in kept):
            for one, log_dir in zip(kept, self.log_dirs, strict=True):
                shutil.copytree(one, log_dir, dirs_exist_ok=True)
            return
        is_new = not any(log_dir.exists() and [*log_dir.iterdir()] for log_dir in self.log_dirs)
        self._jvm.run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._properties), "-g", *options)
        if is_new:
            for one, log_dir in zip(kept, self.log_dirs, strict=True):
                shutil.copytree(log_dir, one, dirs_exist_ok=True)

    def _wait_until_it_listens(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"Kafka did not start:\n{self.output()}"
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(f"Kafka does not listen after {START_LIMIT:.0f} s:\n{self.output()}")


class Broker(Node):
    """The only node of a cluster. Properties are set beside its own.

    A node with a dynamic quorum takes the voters from its metadata log, which has yet to be written when the node has
    been made.
    """

    def __init__(
        self, jvm: Jvm, home: Path, properties: Mapping[str, str] | None = None, *, is_dynamic: bool = False
    ) -> None:
        port, controller = free_ports(2)
        name, voters = _DYNAMIC_QUORUM if is_dynamic else _STATIC_QUORUM
        others = {name: voters.format(controller=controller), **(properties or {})}
        options = ["--no-initial-controllers"] if is_dynamic else []
        super().__init__(jvm, home, port, _properties(port, controller, others), options)

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self._port}"

    def errors(self) -> list[str]:
        """Return the errors that Kafka has logged, as complaints_in has them."""
        return complaints_in(self.output(), "ERROR")

    def create(self, topics: Iterable[Line]) -> None:
        """Create topics: {"name", "partitions", "configs"} each."""
        failed = {name: error for name, error in self.try_to_create(topics).items() if error is not None}
        assert not failed

    def try_to_create(self, topics: Iterable[Line]) -> dict[str, str | None]:
        """Create topics, and say by their names which exception each of them met, or None."""
        return {line["name"]: line["error"] for line in self._run("Topics", lines=topics)}

    def produce(self, lines: Iterable[Line]) -> None:
        """Let Kafka's own producers carry out the lines: records, and what Produce.java says of the others."""
        self._run("Produce", lines=lines)

    def consume(self, topics: Iterable[str]) -> list[Line]:
        """Return every record of the topics, as Kafka's own consumer sees it."""
        return self.consume_at("read_uncommitted", topics)[0]

    def consume_at(self, isolation_level: str, topics: Iterable[str]) -> tuple[list[Line], dict[tuple[str, int], int]]:
        """Return the records that an isolation level shows, and the position it ends at in each partition."""
        lines = self._run("Consume", isolation_level, *topics)
        records = [line for line in lines if "position" not in line]
        ends = {(line["topic"], line["partition"]): line["position"] for line in lines if "position" in line}
        return records, ends

    def transactions(self, topics: Iterable[str]) -> tuple[list[Line], list[Line]]:
        """Return what the broker knows of the topics' producers, and its coordinator of transactional ids."""
        lines = self._run("Transactions", *topics)
        ids = [line for line in lines if "transactional_id" in line]
        return [line for line in lines if "transactional_id" not in line], ids

    def ended_transactions(self, topics: Iterable[str], *, known: Iterable[str] = ()) -> list[Line]:
        """Return what the coordinator says of transactional ids once every decided transaction has its markers.

        A coordinator that has just been elected knows no id at all: wait for those that are ``known``.
        """
        deadline = time.monotonic() + MARKERS_LIMIT
        while True:
            _, ids = self.transactions(topics)
            is_decided = any(line["state"].startswith("Prepare") for line in ids)
            if not is_decided and {line["transactional_id"] for line in ids}.issuperset(known):
                return ids
            assert time.monotonic() < deadline, ids
            time.sleep(0.1)

    def groups(self) -> list[Line]:
        """Return what the broker says of groups, their members and their offsets: see Groups.java."""
        return self._run("Groups")

    def cluster_state(self) -> Line:
        """Return what the broker says of the metadata: see ClusterState.java."""
        (state,) = self._run("ClusterState")
        return state

    def quorum(self) -> Line:
        """Return what the broker says of the controllers: see Quorum.java."""
        (quorum,) = self._run("Quorum")
        return quorum

    def join(self, lines: Iterable[Line]) -> None:
        """Let consumers join groups and stay their members: see Members.java."""
        self._jvm.run("Members", self.bootstrap_servers, lines=lines)

    def take_directory_id(self, directory_id: str) -> None:
        """Become the node whose log directory has this id in the metadata."""
        self.take_identity("directory.id", directory_id)

    def take_identity(self, name: str, value: str) -> None:
        """Set a property of the log directory's identity, before its first start."""
        path = self.log_dir / "meta.properties"
        lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{name}=")]
        path.write_text("\n".join([*lines, f"{name}={value}", ""]))

    def forget_the_clean_shutdown(self) -> None:
        """Make Kafka check every batch when it starts, as it does after a crash, rather than trust the files."""
        (self.log_dir / ".kafka_cleanshutdown").unlink()
        (self.log_dir / "recovery-point-offset-checkpoint").unlink()

    def replace_log(self, topic: str, partition: int, segments: Mapping[int, bytes]) -> None:
        """Make segments a partition's whole log: what Kafka kept beside the old one must not speak for it."""
        self.is_own_log = False
        folder = self.log_dir / f"{topic}-{partition}"
        for old in folder.iterdir():
            if old.name != "partition.metadata":  # it says which topic this is
                old.unlink()
        for base_offset, data in segments.items():
            (folder / f"{base_offset:020}.log").write_bytes(data)

    def _run(self, main: str, *arguments: str, lines: Iterable[Line] = ()) -> list[Line]:
        printed = self._jvm.run_client(main, self.bootstrap_servers, *arguments, lines=lines)
        return [json.loads(line) for line in printed]


def complaints_in(output: str, *words: str) -> list[str]:
    """Return the lines of Kafka's log that have one of the words.

    One kind is left out. A node that starts has first the leader epoch of its metadata log; its registration ends that
    epoch. A coordinator that loads a partition at this moment gives up with an error, and loads it at the next epoch.
    """
    lines = [line for line in output.splitlines() if any(word in line for word in words)]
    return [line for line in lines if not _LEADERSHIP_ENDED.search(line)]


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _properties(broker: int, controller: int, others: Mapping[str, str]) -> Line:
    return {
        "process.roles": "broker,controller",
        "node.id": NODE,
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        # The records carry timestamps of their own, long past: nothing may be deleted for its age.
        "log.retention.ms": -1,
        # One node has to do, and the internal topics stay small.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        **others,
    }
