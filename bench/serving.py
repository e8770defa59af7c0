"""A broker and a served log beside Kafka, on the same host and with the same clients.

All servers have the log directory that a store has written, and none waits for the disk, as Kafka does not. With
``--cpu-time`` the time of the server counts instead of that of the client, for which there are two processors.
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import monotonic

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compare.processes import CONSUMER, JAVA, Peers, cpu_clock
from kraftlog import LogStore
from rounds import Contender
from stores import values

OWN, SERVE, KAFKA = "kraftlog broker", "kraftlog serve", "Kafka"
STARTED = "{}: started, and a record"
PRODUCED, COMMITTED = "{}: produce, {:,} B", "{}: the same with a commit every 100 ms, {:,} B"
FETCHED, CONSUMED = "{}: fetch, {:,} B", "{}: Kafka's consumer, a long log"
ROUND_TRIPS = "{}: round trips with acks=all"
SIZES = (100, 1000)
LONG_LOG = 5  # times the megabytes of the others
TRIPS = 500
SECONDS_PER_COMMIT = 0.1
MESSAGES_PER_CALL = 10_000
INTEROP = Path(__file__).resolve().parents[1] / "tests" / "interop"
HEAP = ("-Xms1g", "-Xmx1g")  # as Kafka's own scripts set it
START = "import kraftlog, sys; broker = kraftlog.Broker(); print(broker.bootstrap_servers, flush=True); input()"
LIMIT = 120
CLIENT = {"log_level": 0}


@dataclass
class Running:
    """A server.

    Attributes
    ----------
    name : str
    process : subprocess.Popen
    address : str
    """

    name: str
    process: subprocess.Popen[bytes]
    address: str

    @property
    def memory(self) -> int:
        """Bytes that the process has in memory."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0

    def end(self) -> None:
        """Kill it; nobody waits for what a process of a gigabyte leaves."""
        self.process.kill()


def first_record(start: Callable[[], Running]) -> Running:
    """Start a server, and produce a record to a topic that is not there yet."""
    running = start()
    producer = Producer({**CLIENT, "bootstrap.servers": running.address, "linger.ms": 0})
    producer.produce("first", b"record")
    _flush(producer)
    return running


def own_broker() -> Running:
    """Start a process that does nothing else than a broker, with an empty directory."""
    return _python(OWN, "-c", START)


def _python(name: str, *arguments: str) -> Running:
    process = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(process.kill)
    assert process.stdout
    return Running(name, process, process.stdout.readline().decode().strip())


class _Kafka:
    """Kafka as the tests start it."""

    def __init__(self, home: Path) -> None:
        sys.path.append(str(INTEROP))
        from jvm import Jvm
        from kafka_broker import Broker

        self._home, self._broker = home, Broker
        self._numbers = count()
        jvm_home = home / "jvm"
        jvm_home.mkdir(parents=True)
        self._jvm = Jvm(jvm_home, HEAP)

    def __call__(self, log_directory: Path | None = None) -> Running:
        """Start a node; by default with an empty directory."""
        home = self._home / f"{next(self._numbers)}"
        home.mkdir()
        if log_directory is not None:
            log_directory.rename(home / "logs")
        broker = self._broker(self._jvm, home)
        broker.start()
        atexit.register(broker.kill)
        return Running(KAFKA, broker._process, broker.bootstrap_servers)


def serve(megabytes: float, peers: Peers) -> list[Contender]:
    """Send records both ways through librdkafka and a long log to Kafka's own consumer, and start servers."""
    home = Path(tempfile.mkdtemp(prefix="kraftlog-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    rows = {size: values(size, megabytes) for size in SIZES}
    (home / "written").mkdir()
    with LogStore(home / "written" / "logs", fsync="close") as written:
        for size in SIZES:
            _fill(written, f"log-{size}", rows[size], 1)
        _fill(written, "long", rows[SIZES[-1]], LONG_LOG)
    served = _copy(home, "served")
    starts = {OWN: own_broker}
    servers = [_python(OWN, "-m", "kraftlog", "broker", str(_copy(home, "own")), "--port", "0", "--fsync", "close")]
    readers = [_python(SERVE, "-m", "kraftlog", "serve", str(served), "--port", "0")]
    if JAVA in peers:
        kafka = _Kafka(home / "kafka")
        starts[KAFKA] = kafka
        servers.append(kafka(_copy(home, "of-kafka")))
        readers.append(servers[-1])
    return [
        *(Contender(STARTED.format(name), partial(_started, start), 1, 1) for name, start in starts.items()),
        *(contender for size in SIZES for server in servers for contender in _of_rows(server, size, rows[size])),
        *(_round_trips(server) for server in servers),
        *(_consumed(server, rows[SIZES[-1]], peers, home) for server in readers if JAVA in peers),
    ]


def _copy(home: Path, name: str) -> Path:
    return Path(shutil.copytree(home / "written" / "logs", home / name))


def _fill(store: LogStore, topic: str, rows: pa.Table, times: int) -> None:
    store.create_topic(topic, configs={"retention.ms": -1})
    with store.producer() as producer:
        for _ in range(times):
            producer.send(topic, rows)


def _started(start: Callable[[], Running]) -> None:
    first_record(start).end()


def _of_rows(server: Running, size: int, rows: pa.Table) -> list[Contender]:
    messages = [{"value": value} for value in rows["value"].to_pylist()]
    settings = {
        **CLIENT,
        "bootstrap.servers": server.address,
        "queue.buffering.max.messages": 10_000_000,
        "queue.buffering.max.kbytes": 2_000_000,
    }
    plain, transactional = Producer(settings), Producer(settings | {"transactional.id": f"bench-{size}"})
    transactional.init_transactions(LIMIT)
    works = {
        PRODUCED: partial(_produced, plain, _new_topic(server, f"produced-{size}"), messages),
        COMMITTED: partial(_committed, transactional, _new_topic(server, f"committed-{size}"), messages),
        FETCHED: partial(_fetched, server.address, f"log-{size}", len(messages)),
    }
    clock = cpu_clock(server.process.pid)
    return [
        Contender(name.format(server.name, size), run, len(messages), rows.nbytes, cpu_clock=clock)
        for name, run in works.items()
    ]


def _new_topic(server: Running, topic: str) -> str:
    admin = AdminClient({**CLIENT, "bootstrap.servers": server.address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT)
    return topic


def _produced(producer: Producer, topic: str, messages: list[dict[str, bytes]]) -> None:
    for start in range(0, len(messages), MESSAGES_PER_CALL):
        _send(producer, topic, messages[start : start + MESSAGES_PER_CALL])
    _flush(producer)


def _committed(producer: Producer, topic: str, messages: list[dict[str, bytes]]) -> None:
    producer.begin_transaction()
    commit_at = monotonic() + SECONDS_PER_COMMIT
    for start in range(0, len(messages), MESSAGES_PER_CALL):
        _send(producer, topic, messages[start : start + MESSAGES_PER_CALL])
        producer.poll(0)
        if monotonic() >= commit_at:
            producer.commit_transaction(LIMIT)
            producer.begin_transaction()
            commit_at = monotonic() + SECONDS_PER_COMMIT
    producer.commit_transaction(LIMIT)


def _send(producer: Producer, topic: str, messages: list[dict[str, bytes]]) -> None:
    sent = producer.produce_batch(topic, messages, partition=0)
    if sent != len(messages):
        raise AssertionError(f"{sent} messages of {len(messages)} were accepted")


def _flush(producer: Producer) -> None:
    left = producer.flush(LIMIT)
    if left:
        raise AssertionError(f"{left} messages were not delivered in {LIMIT} s")


def _fetched(address: str, topic: str, records: int) -> int:
    settings = {
        **CLIENT,
        "bootstrap.servers": address,
        "group.id": "bench",
        "enable.auto.commit": False,
        "queued.min.messages": 10_000_000,  # a fetcher that waits for its reader waits for a second
        "queued.max.messages.kbytes": 2_000_000,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = 0
    while found < records:
        messages = consumer.consume(min(MESSAGES_PER_CALL, records - found), LIMIT)
        if not messages:
            raise AssertionError(f"{topic}: {found} records of {records} after {LIMIT} s")
        found += len(messages)
    consumer.close()
    return found


def _round_trips(server: Running) -> Contender:
    producer = Producer({**CLIENT, "bootstrap.servers": server.address, "linger.ms": 0, "acks": "all"})

    def run() -> None:
        for _ in range(TRIPS):
            producer.produce("trips", b"x" * 100)
            _flush(producer)

    return Contender(ROUND_TRIPS.format(server.name), run, TRIPS, 100 * TRIPS, cpu_clock=cpu_clock(server.process.pid))


def _consumed(server: Running, rows: pa.Table, peers: Peers, home: Path) -> Contender:
    address = home / f"{server.process.pid}.properties"
    address.write_text(f"bootstrap.servers={server.address}\n")
    records = LONG_LOG * rows.num_rows
    contender = peers.contender(
        CONSUMED.format(server.name), CONSUMER, "long", address, records, LONG_LOG * rows.nbytes, (records,)
    )
    contender.cpu_clock = cpu_clock(server.process.pid)
    return contender
