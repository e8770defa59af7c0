"""What waits for nothing is answered in the event loop; all else goes to a thread, before anything of it is done."""

from __future__ import annotations

import asyncio
import errno
import os
import pkgutil
import queue
import random
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from broker_client import END, PRODUCE, BrokerClient, batch, check, values_of
from test_connections import Client

from certificates import certificates
from kraftlog.disk.file_bytes import FileBytes
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.waiting import WouldWait, must_not_wait
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server import in_place
from kraftlog.server.broker import Broker
from kraftlog.server.connection import Connection
from kraftlog.server.live_log import LiveLog
from kraftlog.server.log_server import LogServer
from kraftlog.server.places import Asked
from kraftlog.server.reading_requests import ReadingRequests
from kraftlog.server.received_bytes import ReceivedBytes
from kraftlog.server.segment_batches import SegmentBatches
from kraftlog.server.tls import Tls
from kraftlog.tables.redaction import Redaction

GOLDEN = Path(__file__).parents[1] / "golden"
FETCH = 1
COMPRESSIONS = ["gzip", "snappy", "lz4", "zstd"]
LIMIT = 30.0
MIB = 1 << 20


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what goes to a thread because it would wait; all files are in the page cache."""
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, buffers, start, _=0: read(file, buffers, start))
    monkeypatch.setattr(os, "RWF_NOWAIT", 8, raising=False)
    found: list[Any] = []
    switch = asyncio.to_thread

    async def noted(run: Callable[[], Any], *arguments: Any) -> Any:
        if sys._getframe(1).f_code is in_place.in_place.__code__:  # others always go to a thread, such as the upkeep
            found.append(run)
        return await switch(run, *arguments)

    monkeypatch.setattr(in_place.asyncio, "to_thread", noted)
    return found


@pytest.fixture(params=["close", "commit"])
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(tmp_path / "log", fsync=request.param) as running:
        running.store.create_topic("orders", 3, configs={"internal.segment.bytes": 1 << 14})
        yield running
    check(running.path)


def threads_of(monkeypatch: pytest.MonkeyPatch, path: str) -> list[str]:
    """Return the names of the threads that call a function."""
    function: Callable[..., Any] = pkgutil.resolve_name(path)
    threads = list[str]()

    def noted(*arguments: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return function(*arguments, **options)

    monkeypatch.setattr(path, noted)
    return threads


def is_slow(broker: Broker) -> bool:
    return broker._fsync == "commit"


def test_small_batches_are_appended_in_place_unless_the_disk_is_waited_for(broker: Broker, switches: list[Any]):
    with BrokerClient(broker) as client:
        client.produce(batch("first"))  # opens the partition
        switches.clear()
        for number in range(10):
            assert client.produce(batch(f"{number}"))["base_offset"] == number + 1
        assert len(switches) == 10 * is_slow(broker)
        switches.clear()
        client.produce(batch("leader only"), acks=1)
        assert not switches
        assert values_of(client.fetch(0)["records"])[-1] == "leader only"


@pytest.mark.parametrize(
    "records",
    [batch("x" * (1 << 16)), *(batch("x" * (1 << 16), compression=name) for name in COMPRESSIONS)],
    ids=["large", *COMPRESSIONS],
)
def test_a_batch_that_takes_long_goes_to_a_thread(broker: Broker, records: bytes, switches: list[Any]):
    broker.store.create_topic("large-segments")
    with BrokerClient(broker) as client:
        client.produce(batch("first"), "large-segments", acks=1)
        switches.clear()
        assert client.produce(records, "large-segments", acks=1)["error_code"] == 0
        assert len(switches) == 1


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_small_batch_is_decompressed_in_place(broker: Broker, compression: str, switches: list[Any]):
    records = batch("x" * 1000, "y", compression=compression)
    wrong = bytearray(records)
    wrong[-1] ^= 1
    with BrokerClient(broker) as client:
        client.produce(batch("first"), acks=1)
        switches.clear()
        assert client.produce(records, acks=1)["error_code"] == 0
        assert client.produce(bytes(wrong), acks=1)["error_code"] == ErrorCode.CORRUPT_MESSAGE
        assert not switches


def test_a_transaction_goes_to_a_thread_when_it_begins(broker: Broker, switches: list[Any]):
    with BrokerClient(broker) as client:
        begun = client.init("t")
        stamp = {name: begun[name] for name in ("producer_id", "producer_epoch")}
        client.produce(batch("first"), acks=1)
        of_transaction: dict[str, Any] = {"acks": 1, "version": 12, "transactional_id": "t"}
        for number in range(4):
            records = batch(f"{number}", base_sequence=number, is_transactional=True, **stamp)
            switches.clear()
            assert client.produce(records, **of_transaction)["error_code"] == 0
            assert len(switches) == (number == 0)
        fields = {"transactional_id": "t", "committed": True}
        assert client.ask(END, 5, stamp | fields)["error_code"] == 0
        late = batch("late", base_sequence=4, is_transactional=True, **stamp)
        assert client.produce(late, **of_transaction)["error_code"] == ErrorCode.INVALID_PRODUCER_EPOCH
        assert values_of(client.fetch(0, isolation_level=1)["records"]) == ["first", "0", "1", "2", "3"]


def test_a_new_segment_is_begun_in_a_thread(broker: Broker, switches: list[Any], monkeypatch: pytest.MonkeyPatch):
    with BrokerClient(broker) as client:
        client.produce(batch("first"), acks=1)
        partition = broker.store.parts.partition_of(("orders", 0))
        monkeypatch.setattr(type(partition._log), "take_back", None)  # an append was not interrupted, but put off
        switches.clear()
        for number in range(1, 8):
            assert client.produce(batch("x" * 1500), acks=1)["base_offset"] == number
        assert len(switches) == 1
        assert partition.last_base_offset == 6


def test_a_batch_that_is_put_off_is_the_same_in_the_thread(broker: Broker):
    """Its offset is written into the memory of a large request."""
    broker.store.create_topic("larger", 3, configs={"internal.segment.bytes": 1 << 16})
    with BrokerClient(broker) as client:
        for number in range(4):
            data = [{"index": index, "records": batch("x" * 15_000)} for index in range(3)]
            values = {"acks": 1, "timeout_ms": 1000, "topic_data": [{"name": "larger", "partition_data": data}]}
            (answered,) = client.ask(PRODUCE, 11, values)["responses"]
            found = [(one["error_code"], one["base_offset"]) for one in answered["partition_responses"]]
            assert found == [(0, number)] * 3
    assert broker.store.parts.partition_of(("larger", 2)).last_base_offset == 2


def test_a_log_file_that_rests_is_closed_in_a_thread(broker: Broker, switches: list[Any]):
    with BrokerClient(broker) as client:
        for number in range(3):
            client.produce(batch("first"), partition=number, acks=1)
        broker.store._open_files._most = 2
        switches.clear()
        assert client.produce(batch("second"), acks=1)["base_offset"] == 1
        assert len(switches) == 1


def test_partitions_before_one_that_waits_are_written_once(broker: Broker, switches: list[Any]):
    with BrokerClient(broker) as client:
        client.produce(batch("first"), acks=1)
        switches.clear()
        partitions = [{"index": number, "records": batch(f"{number}")} for number in (0, 1, 2, 7)]
        topics = [{"name": "orders", "partition_data": part} for part in (partitions[:2], partitions[2:])]
        values = {"acks": 1, "timeout_ms": 1000, "topic_data": topics}
        answers = [
            (one["index"], one["error_code"], one["base_offset"])
            for topic in client.ask(0, 11, values)["responses"]
            for one in topic["partition_responses"]
        ]
        assert answers == [(0, 0, 1), (1, 0, 0), (2, 0, 0), (7, 3, -1)]
        assert len(switches) == 1
        read = [values_of(client.fetch(0, partition=number)["records"]) for number in range(3)]
        assert read == [["first", "0"], ["1"], ["2"]]


def test_a_lock_that_is_taken_holds_up_no_other_connection(broker: Broker, switches: list[Any]):
    with BrokerClient(broker) as client, BrokerClient(broker) as other:
        for number in range(2):
            client.produce(batch("first"), partition=number, acks=1)
        partition = broker.store.parts.partition_of(("orders", 0))
        taken, release = threading.Event(), threading.Event()

        def hold() -> None:
            with partition._lock:
                taken.set()
                release.wait(LIMIT)

        holder = threading.Thread(target=hold)
        holder.start()
        assert taken.wait(LIMIT)
        switches.clear()
        try:
            client.send(client.produce_frame(batch("second"), acks=1))
            assert other.produce(batch("third"), partition=1, acks=1)["base_offset"] == 1
        finally:
            release.set()
        (answered,) = client.answer(0, 11)["responses"]
        assert answered["partition_responses"][0]["base_offset"] == 1
        assert len(switches) == 1
        holder.join()


def test_fetches_of_cached_batches_are_answered_in_place(broker: Broker, switches: list[Any]):
    with BrokerClient(broker) as client:
        client.produce(batch("first"), acks=1)
        switches.clear()
        for level in (0, 1):
            assert values_of(client.fetch(0, isolation_level=level)["records"]) == ["first"]
        assert not switches


def test_an_append_that_was_interrupted_is_undone_in_a_thread(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    with BrokerClient(broker) as client:
        client.produce(batch("first"), acks=1)
        partition = broker.store.parts.partition_of(("orders", 0))
        threads = threads_of(monkeypatch, "kraftlog.log_store.partition.Partition._open_log")
        partition._begin_step()  # as KeyboardInterrupt leaves it
        assert client.produce(batch("second"), acks=1)["base_offset"] == 1
        assert values_of(client.fetch(0)["records"]) == ["first", "second"]
    assert [name.startswith("kraftlog-io") for name in threads] == [True]


def test_a_partition_is_opened_in_a_thread(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    threads = threads_of(monkeypatch, "kraftlog.log_store.store.LogStore._opened")
    with BrokerClient(broker) as client:
        for _ in range(2):
            assert not client.fetch(0, partition=2)["records"]
    assert [name.startswith("kraftlog-io") for name in threads] == [True]


def test_closed_segments_are_listed_in_a_thread(broker: Broker, switches: list[Any], monkeypatch: pytest.MonkeyPatch):
    with BrokerClient(broker) as client:
        for _ in range(8):
            client.produce(batch("x" * 1500), acks=1)
        threads = threads_of(monkeypatch, "kraftlog.server.live_log.PartitionFolder.of")
        switches.clear()
        offset = 0
        while offset < 8:
            offset += len(values_of(client.fetch(offset, max_bytes=4000)["records"]))
        assert len(switches) == 1
        assert [name.startswith("kraftlog-io") for name in threads] == [True]


def test_fetches_of_many_bytes_or_partitions_go_to_a_thread(tmp_path: Path, switches: list[Any]):
    rows = pa.table({"value": ["x" * 1_000_000] * 4})
    with Broker(tmp_path / "log", fsync="close") as broker, BrokerClient(broker) as client:
        broker.store.create_topic("orders", 22)
        with broker.store.producer() as producer:
            producer.send("orders", rows, partition=0)
            for number in range(1, 22):
                producer.send("orders", value="x", partition=number)

        def ask(partitions: range, max_bytes: int) -> int:
            switches.clear()
            fetches = [
                {"partition": number, "fetch_offset": 0, "partition_max_bytes": max_bytes} for number in partitions
            ]
            values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 30, "session_epoch": -1}
            client.ask(FETCH, 12, values | {"topics": [{"topic": "orders", "partitions": fetches}]})
            return len(switches)

        assert [ask(range(1), 1 << 21), ask(range(1), 1 << 22)] == [0, 1]
        assert [ask(range(1, 21), 5000), ask(range(1, 22), 5000)] == [0, 1]


def rows_of(size: int) -> pa.Table:
    """Return rows that LogStore writes as one batch of a little more than a number of bytes."""
    return pa.table({"value": [random.Random(size).randbytes(size)]})


def log_files(broker: Broker) -> int:
    """Return how many files of a broker are open in this process."""
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found += str(broker.path) in str(one.readlink())
    return found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many bytes of files were sent at once."""
    send, found = FileBytes.send, list[int]()

    def noted(some: FileBytes, target: int) -> int:
        found.append(send(some, target))
        return found[-1]

    monkeypatch.setattr(FileBytes, "send", noted)
    return found


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Broker]:
    """Return a broker with batches of 900,000, 70,000 and 60,000 bytes in two partitions each."""
    with Broker(tmp_path / "log", fsync="close") as running:
        running.store.create_topic("orders", 2)
        with running.store.producer() as producer:
            for size in (900_000, 70_000, 60_000):
                for number in range(2):
                    producer.send("orders", rows_of(size), partition=number)
        yield running


def stored(broker: Broker, partition: int = 0) -> bytes:
    return b"".join(one.read_bytes() for one in sorted((broker.path / f"orders-{partition}").glob("*.log")))


@pytest.mark.usefixtures("switches")
def test_many_bytes_are_sent_from_their_file(large: Broker, sent: list[int]):
    with BrokerClient(large) as client:
        open_files = log_files(large)
        whole = stored(large)
        assert bytes(client.fetch(0)["records"]) == whole
        second = bytes(client.fetch(1)["records"])
        assert whole.endswith(second)
        assert len(second) < 200_000
        assert sent == [len(whole), len(second)]
        assert whole.endswith(bytes(client.fetch(2)["records"]))
        assert len(sent) == 2  # few bytes are copied
        assert log_files(large) == open_files


@pytest.mark.usefixtures("switches")
def test_what_a_reader_asks_next_is_checked_in_a_thread(large: Broker, monkeypatch: pytest.MonkeyPatch):
    check, checked = SegmentBatches._check, queue.Queue[tuple[str, int]]()

    def noted(batches: SegmentBatches, asked: Asked) -> None:
        check(batches, asked)
        checked.put((threading.current_thread().name, asked.offset))

    monkeypatch.setattr(SegmentBatches, "_check", noted)
    with BrokerClient(large) as client:
        fetches = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 950_000}]
        values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 30, "session_epoch": -1}
        for _ in range(2):
            client.ask(FETCH, 12, values | {"topics": [{"topic": "orders", "partitions": fetches}]})
        name, offset = checked.get(timeout=LIMIT)
        assert name.startswith("kraftlog-io")
        assert offset == 1
        fetches[0]["fetch_offset"] = 1
        monkeypatch.setattr(SegmentBatches, "_batches_of", None)  # nothing is read now
        (answered,) = client.ask(FETCH, 12, values | {"topics": [{"topic": "orders", "partitions": fetches}]})[
            "responses"
        ]
        assert stored(large).endswith(bytes(answered["partitions"][0]["records"]))


@pytest.mark.usefixtures("switches")
def test_one_check_ahead_is_under_way_at_a_time(large: Broker, monkeypatch: pytest.MonkeyPatch):
    release, begun = threading.Event(), queue.Queue[int]()

    def held(_: SegmentBatches, asked: Asked) -> None:
        begun.put(asked.offset)
        assert release.wait(LIMIT)

    monkeypatch.setattr(SegmentBatches, "_check", held)
    fetches = [{"partition": number, "fetch_offset": 0, "partition_max_bytes": 950_000} for number in (0, 1)]
    values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 30, "session_epoch": -1}
    values |= {"topics": [{"topic": "orders", "partitions": fetches}]}
    with BrokerClient(large) as client:
        for _ in range(5):
            client.ask(FETCH, 12, values)
        assert begun.get(timeout=LIMIT) == 1
        assert begun.empty()
        release.set()
        while begun.empty():
            client.ask(FETCH, 12, values)


@pytest.mark.usefixtures("switches")
def test_a_client_that_reads_slowly_gets_all_bytes_and_holds_no_file_open(large: Broker, sent: list[int]):
    with BrokerClient(large) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        open_files = log_files(large)
        fetches = [{"partition": number, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for number in (0, 1)]
        values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 30, "session_epoch": -1}
        for _ in range(6):  # more than the buffers of both sockets take
            client.send(client.frame(FETCH, 12, values | {"topics": [{"topic": "orders", "partitions": fetches}]}))
        deadline = time.monotonic() + LIMIT
        while log_files(large) > open_files or not sent:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for number in range(6):
            client.correlation_id = number + 1
            (answered,) = client.answer(FETCH, 12)["responses"]
            assert [bytes(one["records"]) for one in answered["partitions"]] == [stored(large, 0), stored(large, 1)]
        assert min(sent) < max(sent)  # the socket has taken a part of one


def test_a_thread_opens_no_files_for_a_connection(large: Broker, sent: list[int], monkeypatch: pytest.MonkeyPatch):
    """It may read thousands of partitions for one response."""
    read = os.preadv

    def uncached(file: int, buffers: Any, start: int, flags: int = 0) -> int:
        if flags:
            raise BlockingIOError(errno.EAGAIN, "not in memory")
        return read(file, buffers, start)

    monkeypatch.setattr(os, "preadv", uncached)
    with BrokerClient(large) as client:
        assert bytes(client.fetch(0)["records"]) == stored(large)
    assert not sent


@pytest.mark.usefixtures("switches")
def test_a_fetch_that_waits_for_more_holds_no_file_open(large: Broker, monkeypatch: pytest.MonkeyPatch):
    """At its limit it reads what there is, with what was appended while it waited."""
    open_files, growth, held = log_files(large), LiveLog.growth, list[int]()

    def noted(*arguments: Any) -> Any:
        held.append(log_files(large) - open_files)
        return growth(*arguments)

    monkeypatch.setattr(LiveLog, "growth", noted)
    with BrokerClient(large) as client:
        assert bytes(client.fetch(0, max_wait_ms=50, min_bytes=MIB)["records"]) == stored(large)
    assert held == [0, 0]


@pytest.mark.usefixtures("switches")
def test_a_thread_has_no_files_of_the_first_try(large: Broker, monkeypatch: pytest.MonkeyPatch):
    open_files, fetched, held = log_files(large), ReadingRequests._fetched, list[int]()

    def noted(*arguments: Any) -> Any:
        if must_not_wait():
            kept = fetched(*arguments)
            assert log_files(large) == open_files + len(kept)
            raise WouldWait
        held.append(log_files(large) - open_files)
        return fetched(*arguments)

    monkeypatch.setattr(ReadingRequests, "_fetched", noted)
    with BrokerClient(large) as client:
        assert bytes(client.fetch(0)["records"]) == stored(large)
    assert held == [0]


def test_bytes_that_wait_are_sent_before_a_file(large: Broker, sent: list[int]):
    class Waiting:
        """A transport with a little that the socket has not taken."""

        def get_write_buffer_size(self) -> int:
            return 10

        def is_closing(self) -> bool:
            return False

    (path,) = (large.path / "orders-0").glob("*.log")
    connection: Any = Connection(None, memoryview(b""), ReceivedBytes(0))  # type: ignore[arg-type]
    connection._transport = Waiting()
    pieces = [b"head", FileBytes(LocalFile(path), 0, 100_000)]
    assert connection._send_at_once(pieces) == [b"head", path.read_bytes()[:100_000]]
    assert not sent


@pytest.mark.usefixtures("switches")
def test_with_tls_no_file_is_sent(tmp_path: Path, sent: list[int]):
    files = certificates(tmp_path / "tls")
    with Broker(tmp_path / "log", fsync="close", tls=Tls(files.server, files.server_key)) as broker:
        broker.store.create_topic("orders")
        with broker.store.producer() as producer:
            producer.send("orders", rows_of(900_000))
        with BrokerClient(broker) as client:
            context = ssl.create_default_context(cafile=str(files.authority))
            client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
            assert bytes(client.fetch(0)["records"]) == stored(broker)
    assert not sent


@pytest.mark.usefixtures("switches")
def test_a_file_that_is_truncated_before_it_is_sent_ends_the_connection(
    large: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    send = FileBytes.send
    (path,) = (large.path / "orders-0").glob("*.log")

    def truncated(some: FileBytes, target: int) -> int:
        os.truncate(path, 500_000)
        return send(some, target)

    whole = path.read_bytes()
    monkeypatch.setattr(FileBytes, "send", truncated)
    with BrokerClient(large) as client, pytest.raises(ConnectionError):
        client.fetch(0)
    assert "the file was truncated" in caplog.text
    path.write_bytes(whole)


def test_a_served_log_is_read_in_place_when_its_ends_are_known(switches: list[Any]):
    with LogServer(GOLDEN / "transactions" / "log") as server, Client(server) as client:
        (name,) = [one for one in server.topics if not one.startswith("__")][:1]
        counts = []
        for _ in range(3):
            switches.clear()
            for level in (0, 1):
                fetches = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
                values = {"topics": [{"topic": name, "partitions": fetches}], "isolation_level": level}
                client.ask(FETCH, 12, values | {"max_wait_ms": 0, "min_bytes": 1, "session_epoch": -1})
            counts.append(len(switches))
        assert counts == [2, 0, 0]


def test_redaction_goes_to_a_thread(tmp_path: Path, switches: list[Any]):
    with Broker(tmp_path / "log") as broker, BrokerClient(broker) as producer:
        broker.store.create_topic("orders")
        producer.produce(batch("secret"))
    with LogServer(tmp_path / "log", redaction=Redaction(["value=mask"])) as server, Client(server) as client:
        topics = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}]
        for _ in range(2):
            switches.clear()
            client.ask(FETCH, 12, {"topics": topics, "max_wait_ms": 0, "min_bytes": 1, "session_epoch": -1})
            assert len(switches) == 1
