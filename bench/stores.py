"""The embedded log: what producing, committing and consuming cost, and whether they cost more as the store grows."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import numpy as np
import pyarrow as pa

import corpus
import kraftlog
from compare.processes import CONSUMER, JAVA, Peers
from kraftlog import LogStore
from kraftlog.log_store.consumer import Consumer
from kraftlog.log_store.producer import Producer
from kraftlog.log_store.staged_write import begin, commit
from kraftlog.log_store.staging import Stager, StagingOptions
from kraftlog.log_store.write_id import write_of_batch
from rounds import Contender

PRODUCED, ENCODED, IN_TRANSACTIONS = "producer.send, {} B", "encode, {} B", "a commit every 100 ms, {} B"
CONSUMED = "consumer.poll, {} B, {}"
KAFKA = "Kafka's consumer, 100 B"
SYNCED, FIRST, LATER = "commit of one record, on disk", "the same, not waited for", "the same, behind {} commits"
FSYNC = "write and fsync of one record"
STAGED, STAGED_LATER = "a staged batch of {} partitions, on disk", "the same, behind {} batches"
STAGED_PARTITIONS, STAGED_BATCHES, STAGED_BEFORE = 4, 10, 300
SIZES = (100, 1000)
COMMITS, OLDER = 50, 10_000
MB_PER_SEND, SECONDS_PER_COMMIT, MB_SENT = 1, 0.1, 500  # so that there are some commits
USUAL_MEGABYTES = 20  # and what is behind or sent is less, too, where there is less


def store(megabytes: float, peers: Peers) -> list[Contender]:
    """Rows to a store and back, without a wait for the disk; and commits, with and without one.

    Kafka's consumer reads what kraftlog's does: a broker opens a directory that a store has written.
    """
    home = Path(tempfile.mkdtemp(prefix="kraftlog-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    part = min(1.0, megabytes / USUAL_MEGABYTES)
    opened = LogStore(home / "unsynced", fsync="close")
    found = [contender for size in SIZES for contender in _rows(opened, size, megabytes, int(part * MB_SENT))]
    opened.create_topic("t", 1)
    synced = LogStore(home / "synced")
    synced.create_topic("t", 1)
    one = pa.table({"value": [b"x" * 100]})
    older = LogStore(home / "older", fsync="close")
    older.create_topic("t", 1)
    _commits(older.producer("old"), one, int(part * OLDER))()
    for name, where in ((SYNCED, synced), (FIRST, opened), (LATER.format(OLDER), older)):
        found.append(Contender(name, _commits(where.producer("p"), one, COMMITS), COMMITS, 100 * COMMITS))
    found.append(Contender(FSYNC, _fsyncs(home / "file"), COMMITS, 100 * COMMITS))
    if JAVA in peers:
        found.append(_kafka(home / "kafka", megabytes, peers))
    return found + _staged(home, int(part * STAGED_BEFORE))


def _kafka(home: Path, megabytes: float, peers: Peers) -> Contender:
    size = SIZES[0]
    rows = values(size, megabytes)
    with LogStore(home / "logs", fsync="close") as written:
        written.create_topic("read", configs={"retention.ms": -1})
        with written.producer() as producer:
            producer.send("read", rows)
    port, controller = _free_ports(2)
    properties = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": home / "logs",
    }
    file = home / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    contender = peers.contender(KAFKA, CONSUMER, "read", file, rows.num_rows, rows.nbytes, (rows.num_rows,))
    contender.cpu_clock = None  # the broker's work is no part of the consumer's: what counts is how long it takes
    return contender


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _staged(home: Path, before: int) -> list[Contender]:
    """Return what a stream of Spark does in each batch: it stages rows in files, and opens the store to commit them."""
    first, later = _Batches(home / "staged"), _Batches(home / "staged-later")
    first.write(1)
    later.write(before)
    names = {STAGED.format(STAGED_PARTITIONS): first, STAGED_LATER.format(STAGED_BEFORE): later}
    rows = STAGED_BATCHES * STAGED_PARTITIONS
    return [
        Contender(name, lambda each=each: each.write(STAGED_BATCHES), rows, 100 * rows) for name, each in names.items()
    ]


class _Batches:
    """The batches of a query, each with a row for each partition."""

    def __init__(self, log_directory: Path) -> None:
        self._log_directory = log_directory
        self._next = 0

    def write(self, count: int) -> None:
        rows = pa.record_batch({"value": [b"x" * 100]})
        for batch_id in range(self._next, self._next + count):
            write = write_of_batch("query", batch_id)
            stager = Stager(begin(self._log_directory, write), StagingOptions(), task=0)
            for partition in range(STAGED_PARTITIONS):
                stager.write("t", partition, rows)
            commit(self._log_directory, write, stager.finish())
        self._next += count


def _rows(store: LogStore, size: int, megabytes: float, megabytes_sent: int) -> list[Contender]:
    rows = values(size, megabytes)
    count = rows.num_rows
    piece = max(1, MB_PER_SEND * corpus.MB // size)
    topic = f"read-{size}"
    store.create_topic(topic)
    with store.producer("reader") as producer:
        for start in range(0, count, 10 * piece):
            with producer.transaction():
                producer.send(topic, rows.slice(start, 10 * piece))
    times = max(1, megabytes_sent * corpus.MB // rows.nbytes)
    sent = pa.concat_tables([rows] * times)
    plain, transactional = store.producer(), store.producer(f"etl-{size}")
    contenders = [
        Contender(ENCODED.format(size), lambda: _nothing(kraftlog.encode(rows, max_batch_bytes=1 << 16)), count, 0),
        Contender(
            PRODUCED.format(size),
            _fresh(store, size, lambda name: _send(plain, name, sent, piece)),
            times * count,
            0,
        ),
        Contender(
            IN_TRANSACTIONS.format(size),
            _fresh(store, size, lambda name: _send_committed(transactional, name, sent, piece)),
            times * count,
            0,
        ),
    ]
    for level in ("read_uncommitted", "read_committed"):
        consumer = store.consumer(isolation_level=level)  # type: ignore[arg-type]
        consumer.assign([(topic, 0)])
        contenders.append(Contender(CONSUMED.format(size, level), _consume(consumer, topic), count, 0))
    for contender in contenders:
        contender.size = rows.nbytes * contender.records // count
    return contenders


def values(size: int, megabytes: float) -> pa.Table:
    """Return rows of random letters."""
    count = max(1, int(megabytes * corpus.MB / size))
    cells = np.random.default_rng(corpus.SEED).integers(97, 123, count * size, np.uint8)
    ends = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(cells)]
    return pa.table({"value": pa.Array.from_buffers(pa.binary(), count, buffers)})


def _fresh(store: LogStore, size: int, produce: Callable[[str], None]) -> Callable[[], None]:
    """Return what produces to a topic that is made for it and deleted again."""

    def run() -> None:
        name = f"written-{size}"
        store.create_topic(name)
        produce(name)
        store.delete_topic(name)

    return run


def _send(producer: Producer, topic: str, rows: pa.Table, piece: int) -> None:
    for start in range(0, rows.num_rows, piece):
        producer.send(topic, rows.slice(start, piece))
    producer.flush()


def _send_committed(producer: Producer, topic: str, rows: pa.Table, piece: int) -> None:
    producer.begin_transaction()
    commit_at = monotonic() + SECONDS_PER_COMMIT
    for start in range(0, rows.num_rows, piece):
        producer.send(topic, rows.slice(start, piece))
        if monotonic() >= commit_at:
            producer.commit_transaction()
            producer.begin_transaction()
            commit_at = monotonic() + SECONDS_PER_COMMIT
    producer.commit_transaction()


def _consume(consumer: Consumer, topic: str) -> Callable[[], int]:
    def run() -> int:
        consumer.seek((topic, 0), 0)
        count = 0
        while found := consumer.poll(1 << 16).num_rows:
            count += found
        return count

    return run


def _commits(producer: Producer, rows: pa.Table, count: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            with producer.transaction():
                producer.send("t", rows)

    return run


def _fsyncs(path: Path) -> Callable[[], None]:
    def run() -> None:
        with path.open("ab", buffering=0) as file:
            for _ in range(COMMITS):
                file.write(b"x" * 100)
                os.fsync(file.fileno())

    return run


def _nothing(_: object) -> None:
    """Drop what a contender made."""
