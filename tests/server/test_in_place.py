"""What waits for nothing is answered in the event loop; all else goes to a thread, before anything of it is done."""

from __future__ import annotations

import asyncio
import os
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from broker_client import BrokerClient, batch, check, values_of
from test_connections import Client

from kraftlog.disk.waiting import WouldWait
from kraftlog.server import in_place
from kraftlog.server.broker import Broker
from kraftlog.server.log_server import LogServer
from kraftlog.tables.redaction import Redaction

GOLDEN = Path(__file__).parents[1] / "golden"
FETCH = 1
LIMIT = 30.0


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what goes to a thread because it would wait; all files are in the page cache."""
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, buffers, start, _=0: read(file, buffers, start))
    monkeypatch.setattr(os, "RWF_NOWAIT", 8, raising=False)
    found: list[Any] = []
    switch = asyncio.to_thread

    async def noted(run: Callable[[], Any], *arguments: Any) -> Any:
        if isinstance(sys.exception(), WouldWait):  # others always go to a thread, such as the steps of the upkeep
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
    [
        batch("x" * (1 << 16)),
        *(batch("x", compression=name) for name in ("gzip", "snappy", "lz4", "zstd")),
        batch("x", producer_id=0, producer_epoch=0, base_sequence=0, is_transactional=True),
    ],
    ids=["large", "gzip", "snappy", "lz4", "zstd", "transactional"],
)
def test_a_batch_that_takes_long_goes_to_a_thread(broker: Broker, records: bytes, switches: list[Any]):
    broker.store.create_topic("large-segments")
    with BrokerClient(broker) as client:
        client.produce(batch("first"), "large-segments", acks=1)
        switches.clear()
        client.produce(records, "large-segments", acks=1)
        assert len(switches) == 1


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
