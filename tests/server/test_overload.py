"""More than a broker can hold: it refuses, waits or closes as Kafka does, in bounded memory, and goes on afterwards."""

from __future__ import annotations

import os
import resource
import socket
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from select import select
from threading import Event

import pyarrow as pa
import pytest
from broker_client import ADD_OFFSETS, END, METADATA, PRODUCE, BrokerClient, batch, check, log_of, values_of
from group_member import LEAVE, Member
from test_broker_transactions import DELETE_GROUPS, OFFSET_DELETE, commit_offsets, named

import kraftlog
from broker_process import BrokerProcess
from faulty_disk import FaultyDisk, no_space
from kraftlog.disk.disk import use_disk
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker
from kraftlog.server.server import Server

LIMIT = 60
MIB = 1 << 20
CONNECTIONS = 1000
SPARE = 200  # descriptors of this process, and of a broker, beside its connections


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Raise the limit of this process and its children to the highest one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CONNECTIONS + SPARE:
        pytest.skip(f"this user may open {hard} files, fewer than {CONNECTIONS + SPARE}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_connections_each_produce_and_fetch(tmp_path: Path, many_descriptors: None):
    path = tmp_path / "log"
    with BrokerProcess(path, "--fsync", "close") as broker, ExitStack() as opened:
        clients = [opened.enter_context(BrokerClient(broker)) for _ in range(CONNECTIONS)]
        clients[0].create("orders")
        for number, client in enumerate(clients):
            client.send(client.produce_frame(batch(str(number))))
        offsets = []
        for client in clients:
            (answered,) = client.answer(PRODUCE, 11)["responses"]
            (one,) = answered["partition_responses"]
            assert one["error_code"] == ErrorCode.NONE
            offsets.append(one["base_offset"])
        assert sorted(offsets) == list(range(CONNECTIONS))
        for client, offset in zip(clients, offsets, strict=True):
            client.send(client.fetch_frame(offset, max_bytes=1))
        for number, client in enumerate(clients):
            assert values_of(client.fetched()["records"])[0] == str(number)
        with BrokerClient(broker) as refused:
            assert refused.is_closed()
        clients.pop().socket.close()
        until(lambda: is_answered(broker))
        assert broker.close()[0] == 0
    assert log_of(path) == [(offset, str(number)) for offset, number in sorted(zip(offsets, range(1000), strict=True))]
    check(path)


def is_answered(broker: BrokerProcess) -> bool:
    """Whether a new connection is."""
    with BrokerClient(broker) as client:
        try:
            return bool(client.ask(METADATA, 12, {"topics": []})["brokers"])
        except ConnectionError:
            return False


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def memory(pid: int, name: str = "VmHWM") -> int:
    """Return what a process takes, or has taken at most, in bytes."""
    return int(Path(f"/proc/{pid}/status").read_text().split(f"{name}:")[1].split()[0]) << 10


def test_file_descriptors_are_used_up(tmp_path: Path):
    """What needs one is refused with an error of the disk, the rest goes on, and nothing is lost or torn."""
    path = tmp_path / "log"
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with BrokerProcess(path) as broker, BrokerClient(broker) as client, ExitStack() as opened:
        for topic in ("orders", "others"):
            client.create(topic)
        assert client.produce(batch("one"))["base_offset"] == 0
        most = descriptors(broker.pid) + 5
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (most, hard))
        waiting = [opened.enter_context(BrokerClient(broker)) for _ in range(50)]
        until(lambda: descriptors(broker.pid) == most)
        before = cpu_seconds(broker.pid)
        time.sleep(2)  # asyncio tries again each second
        assert cpu_seconds(broker.pid) - before < 0.3
        assert client.produce(batch("two"))["base_offset"] == 1  # its segment is open
        for refused in (client.produce(batch("one"), "others"), client.fetch(0)):
            assert refused["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR
        created = client.ask(METADATA, 12, {"topics": [{"name": "third"}]})["topics"]
        assert [one["error_code"] for one in created] == [ErrorCode.KAFKA_STORAGE_ERROR]

        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (hard, hard))
        for number, late in enumerate(waiting):
            assert late.produce(batch(str(number)), "others")["base_offset"] == number
        assert client.produce(batch("three"))["base_offset"] == 2
        assert values_of(client.fetch(0)["records"]) == ["one", "two", "three"]
        client.create("third")
        assert client.produce(batch("four"), "third")["base_offset"] == 0
        assert broker.close()[0] == 0
    lines = broker.errors.splitlines()
    assert len([one for one in lines if "no connection is accepted: [Errno 24] Too many open files" in one]) == 1
    assert len([one for one in lines if one.startswith("a part of a request has failed: ")]) == 3
    assert len(lines) == 5  # and the number of topics
    assert log_of(path) == [(0, "one"), (1, "two"), (2, "three")]
    assert log_of(path, "others") == [(number, str(number)) for number in range(50)]
    assert log_of(path, "third") == [(0, "four")]
    check(path)


def test_coordinators_without_space(tmp_path: Path):
    """Clients look for another one, as with Kafka, and try again; a producer without an id has none to look for."""
    is_full = Event()
    full = FaultyDisk(lambda step: no_space() if is_full.is_set() and step.name == "append" else None)
    with use_disk(full), Broker(tmp_path) as broker, BrokerClient(broker) as client, Member(broker) as one:
        client.create("orders")
        one.join()
        one.sync({one.member_id: b"a"})
        for group in ("h", "i"):
            broker.store.parts.groups.commit(GroupMetadata(group), {("orders", 0): OffsetAndMetadata(1)})
        begun, other = client.init("t"), client.init("u")
        assert commit_offsets(client, begun, 5, 5) == 0
        offsets = {"group_id": "i", "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]}
        asks: list[Callable[[], int]] = [
            lambda: one.commit(8),
            lambda: one.join()["error_code"] or one.sync({one.member_id: b"b"})["error_code"],
            lambda: client.ask(DELETE_GROUPS, 2, {"groups_names": ["h"]})["results"][0]["error_code"],
            lambda: client.ask(OFFSET_DELETE, 0, offsets)["error_code"],
            lambda: client.init("t")["error_code"],
            lambda: client.ask(ADD_OFFSETS, 4, named(other, transactional_id="u", group_id="g"))["error_code"],
            lambda: commit_offsets(client, other, 5, 7, transactional_id="u"),
            lambda: client.ask(END, 5, named(other, transactional_id="u", committed=True))["error_code"],
            lambda: one.ask(LEAVE, 5, {"group_id": "g", "members": [{"member_id": one.member_id}]})["error_code"],
        ]
        member_id, generation, cluster = one.member_id, one.generation, broker.store.parts.cluster
        is_full.set()
        assert [ask() for ask in asks] == [ErrorCode.NOT_COORDINATOR] * len(asks)
        cluster._first_free_id = cluster._end_of_ids
        assert client.init()["error_code"] == ErrorCode.KAFKA_STORAGE_ERROR
        broker.kill()
        is_full.clear()
        broker.restart()
        with BrokerClient(broker) as client, Member(broker) as one:
            one.member_id, one.generation = member_id, generation
            assert client.ask(END, 5, named(begun, committed=True))["error_code"] == 0
            assert one.committed() == (5, "m")
            assert one.commit(8) == 0
            assert broker.store.groups() == ["g", "h", "i"]
    check(tmp_path)


@pytest.mark.parametrize(
    ("compression", "size", "code"),
    [
        ("gzip", 100 * MIB, ErrorCode.NONE),
        ("gzip", 900 * MIB, ErrorCode.MESSAGE_TOO_LARGE),
        ("zstd", 100 * MIB, ErrorCode.NONE),
        ("zstd", 900 * MIB, ErrorCode.MESSAGE_TOO_LARGE),
        ("lz4", 200 * MIB, ErrorCode.NONE),
        ("snappy", 15 * MIB, ErrorCode.NONE),
    ],
)
def test_a_small_batch_of_large_records(tmp_path: Path, compression: str, size: int, code: ErrorCode):
    """Kafka reads them in pieces and takes them all; here, more than 256 MiB are refused before they are in memory."""
    records = pa.table({"value": pa.array([bytes(size)], pa.large_binary())})
    bomb = bytes(kraftlog.encode(records, compression=compression, max_batch_bytes=2**31 - 1))
    del records
    assert len(bomb) < MIB
    path = tmp_path / "log"
    with BrokerProcess(path, "--fsync", "close") as broker, BrokerClient(broker) as client:
        client.create("orders")
        before = memory(broker.pid)
        assert client.produce(bomb)["error_code"] == code
        assert memory(broker.pid) - before < 850 * MIB
        assert client.produce(batch("after"))["base_offset"] == (code == ErrorCode.NONE)
        assert broker.close()[0] == 0
    assert kraftlog.open(path).errors().to_pylist() == []


def test_a_request_of_two_gigabytes_is_announced(tmp_path: Path):
    """The largest one that is allowed takes no memory until it arrives, and a larger one closes the connection."""
    with Broker(tmp_path, max_request_bytes=2**31 - 1) as broker, BrokerClient(broker) as announcing:
        with BrokerClient(broker) as client:
            client.create("orders")
            assert client.produce(batch("one"))["base_offset"] == 0  # imports what it needs
            tracemalloc.start()
            announcing.send(struct.pack(">i", 2**31 - 1) + b"0123456789")
            assert client.produce(batch("two"))["base_offset"] == 1
        assert tracemalloc.get_traced_memory()[1] < 10 * MIB
        tracemalloc.stop()
    with Broker(tmp_path) as broker, BrokerClient(broker) as announcing:
        announcing.send(struct.pack(">i", 2**31 - 1) + b"0123456789")
        assert announcing.is_closed()


def test_a_slow_client_keeps_memory_until_the_idle_limit(tmp_path: Path):
    """A request of which a byte arrives now and then is no complete one; others wait for its memory, and no longer."""
    with ExitStack() as opened:
        broker = opened.enter_context(Broker(tmp_path, max_queued_bytes=MIB, max_idle_ms=3000))
        slow, client = (opened.enter_context(BrokerClient(broker)) for _ in range(2))
        client.create("orders")
        frame = slow.produce_frame(batch("x" * 450_000))
        slow.send(frame[:-100])  # it is the first, and keeps its memory
        began = time.monotonic()
        time.sleep(1)  # a client that waits has the same limit; that of this one ends later
        second = opened.enter_context(BrokerClient(broker))
        second.send(second.produce_frame(batch("y" * 450_000)))
        assert client.produce(batch("small"))["base_offset"] == 0  # no large request: it waits for nobody
        slow.socket.settimeout(0.1)
        for at in range(len(frame) - 100, len(frame)):
            try:
                slow.send(frame[at : at + 1])
                if slow.is_closed():
                    break
            except TimeoutError:
                assert not select([second.socket], [], [], 0)[0] or time.monotonic() - began > 1.5
            except ConnectionError:
                break
        assert 1.5 < time.monotonic() - began < 8
        (answered,) = second.answer(PRODUCE, 11)["responses"]
        assert answered["partition_responses"][0]["base_offset"] == 1
        assert second.produce(batch("last"))["base_offset"] == 2


def unread(broker: Broker) -> int:
    """Return the bytes of responses that clients have not read."""
    server = broker._thread._server
    assert isinstance(server, Server)
    return broker._options.max_queued_bytes - server._unread._left


def test_clients_that_do_not_read_fetch_into_bounded_memory(tmp_path: Path):
    """Above the bound a fetch returns one batch; others still read all records, and the memory comes back."""
    most, value = 8 * MIB, "v" * 500_000
    with Broker(tmp_path, fsync="close", max_queued_bytes=most) as broker, ExitStack() as opened:
        client = opened.enter_context(BrokerClient(broker))
        client.create("orders")
        for _ in range(20):
            client.produce(batch(value))
        one = len(batch(value))
        greedy = [opened.enter_context(BrokerClient(broker)) for _ in range(30)]
        partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 16 * MIB}]
        everything = {"max_bytes": 16 * MIB, "topics": [{"topic": "orders", "partitions": partitions}]}
        tracemalloc.start()
        for each in greedy:
            each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)
            each.send(each.fetch_frame(0, **everything))
        until(lambda: len(select([each.socket for each in greedy], [], [], 0)[0]) == len(greedy))  # all are answered
        assert 0 < unread(broker) < most + 30 * one + MIB
        assert tracemalloc.get_traced_memory()[0] < most + 30 * one + 10 * MIB
        tracemalloc.stop()
        read = 0
        while read < 20:
            read += len(values_of(client.fetch(read)["records"]))
        sizes = [len(values_of(each.fetched()["records"])) for each in greedy]
        assert min(sizes) == 1 < max(sizes)
        until(lambda: unread(broker) == 0)
        assert len(values_of(client.fetch(0, **everything)["records"])) > 1


def test_clients_that_do_not_read_ask_for_topics_into_bounded_memory(tmp_path: Path):
    """Each connection has one response at a time, as with Kafka, and it takes little more memory than its bytes."""
    with Broker(tmp_path, fsync="close") as broker, ExitStack() as opened:
        broker.store.create_topic("large", 5_000)
        server = broker._thread._server
        assert isinstance(server, Server)
        server._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        client = opened.enter_context(BrokerClient(broker))
        frame = client.frame(METADATA, 12, {"topics": None})
        client.send(frame)
        (size,) = struct.unpack(">i", client.exactly(4))
        client.exactly(size)
        tracemalloc.start()
        deaf = [opened.enter_context(BrokerClient(broker)) for _ in range(20)]
        for each in deaf:
            each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.send(frame * 20)
        until(lambda: unread(broker) == len(deaf) * (4 + size))
        assert len(client.ask(METADATA, 12, {"topics": [{"name": "large"}]})["topics"]) == 1
        assert unread(broker) == len(deaf) * (4 + size)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 * len(deaf) * size + 20 * MIB  # what the socket does not take is copied
