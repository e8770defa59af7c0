"""Requests that no well-behaved client sends: each has an error or ends its connection, and leaves nothing behind."""

from __future__ import annotations

import random
import socket
import struct
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_client import LIST_OFFSETS, METADATA, PRODUCE, BrokerClient, batch, check, log_of
from test_broker_faults import request_of

import kraftlog
from kraftlog.errors import InvalidRecordError
from kraftlog.log_store.partition import Partition
from kraftlog.messages.one_message import decode_message
from kraftlog.protocol.api import apis
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker

CREATE_PARTITIONS, CREATE_TOPICS = 37, 19
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        yield running
    check(running.path)


def test_times_of_a_partition_without_records(broker: Broker):
    """It has no file yet; afterwards it has a file, and no records."""

    def offsets(client: BrokerClient, isolation_level: int) -> list[tuple[int, int, int]]:
        found = []
        for timestamp in (0, 5, MAX_TIMESTAMP, LATEST, EARLIEST):
            topics = [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
            answer = client.ask(LIST_OFFSETS, 7, {"topics": topics, "isolation_level": isolation_level})
            (one,) = answer["topics"][0]["partitions"]
            found.append((one["error_code"], one["timestamp"], one["offset"]))
        return found

    with BrokerClient(broker) as client:
        client.create("orders")
        for level in (0, 1):
            assert offsets(client, level) == [(0, -1, -1)] * 3 + [(0, -1, 0)] * 2
        client.produce(batch("one"))
        broker.store.delete_records("orders", 0, -1)
        for level in (0, 1):
            assert offsets(client, level) == [(0, -1, -1)] * 3 + [(0, -1, 1)] * 2


def test_a_number_of_partitions_takes_no_memory(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        for count, assignments, code in (
            (10**7, [{"broker_ids": [1]}], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (10**7, None, ErrorCode.INVALID_PARTITIONS),
            (1, [], ErrorCode.INVALID_PARTITIONS),
            (0, [{"broker_ids": [1]}], ErrorCode.INVALID_PARTITIONS),
            (-(2**31), None, ErrorCode.INVALID_PARTITIONS),
            (3, [{"broker_ids": [1]}, {"broker_ids": [2]}], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ):
            topics = [{"name": "orders", "count": count, "assignments": assignments}]
            tracemalloc.start()
            answer = client.ask(CREATE_PARTITIONS, 3, {"topics": topics, "timeout_ms": 1000})
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert answer["results"][0]["error_code"] == code
            assert peak < 10 << 20
        topics = [{"name": "more", "num_partitions": 2**31 - 1, "replication_factor": 1}]
        for is_trial in (True, False):
            answer = client.ask(CREATE_TOPICS, 7, {"topics": topics, "validate_only": is_trial})
            assert answer["topics"][0]["error_code"] == ErrorCode.INVALID_PARTITIONS
    assert {name: one.partitions for name, one in broker.store.topics.items()} == {"orders": 1}


def test_a_handler_that_fails_is_an_error_and_is_logged(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fail(*_: object) -> None:
        raise RuntimeError("a fault of this program")

    with BrokerClient(broker) as client, BrokerClient(broker) as other:
        client.create("orders")
        with monkeypatch.context() as broken:
            broken.setattr(Partition, "append_batch", fail)
            assert client.produce(batch("one"))["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
            other.send(other.produce_frame(batch("one"), acks=0))
            assert other.is_closed()
        assert [one.message for one in caplog.records if one.exc_info] == ["Produce of client 'c' has failed"] * 2
        assert client.produce(batch("two"))["base_offset"] == 0  # on the same connection
        with monkeypatch.context() as broken:
            broken.setattr("kraftlog.server.live_log.LiveLog.topics", property(fail))
            client.send(client.frame(METADATA, 12, {"topics": None}))
            assert client.is_closed()  # its response has no place for an error: it would name no topics
    assert log_of(broker.path) == [(0, "two")]


def test_records_for_an_unknown_id_that_nobody_waits_for(broker: Broker, caplog: pytest.LogCaptureFixture):
    with BrokerClient(broker) as client:
        data = [{"topic_id": b"?" * 16, "partition_data": [{"index": 0, "records": batch("one")}]}]
        client.send(client.frame(PRODUCE, 13, {"acks": 0, "timeout_ms": 1, "topic_data": data}))
        assert client.is_closed()
    assert [(one.levelname, one.exc_info) for one in caplog.records] == [("WARNING", None)]
    assert "no topic has this id" in caplog.text


def test_hundreds_of_silent_and_half_sent_connections(broker: Broker):
    half = struct.pack(">i", 50 << 20) + b"\0" * 10
    silent = []
    try:
        for number in range(300):
            client = BrokerClient(broker)
            silent.append(client)
            client.send((b"", b"\0", half)[number % 3])
        with BrokerClient(broker) as client:
            client.create("orders")
            assert client.produce(batch("one"))["base_offset"] == 0
    finally:
        for client in silent:
            client.socket.close()
    assert log_of(broker.path) == [(0, "one")]


def test_a_client_that_does_not_read_its_responses(broker: Broker):
    """It is held back after some responses, and does not fill the memory with more."""
    value = "x" * 500_000
    with BrokerClient(broker) as client, BrokerClient(broker) as greedy:
        client.create("orders")
        client.produce(batch(value))
        answered = 0
        fetched = Partition.last_segment

        def counted(*arguments: Any) -> Any:
            nonlocal answered
            answered += 1
            return fetched(*arguments)

        with pytest.MonkeyPatch.context() as counting:
            counting.setattr(Partition, "last_segment", counted)
            greedy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            for _ in range(200):
                greedy.send(greedy.fetch_frame(0))
            for number in range(20):
                assert client.produce(batch(str(number)))["base_offset"] == number + 1
        assert answered < 100
        greedy.correlation_id = 1
        assert len(greedy.fetched()["records"]) > len(value)


INTEGERS = [-1, 0, 1, 2, -2, 127, 255, 32767, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
TEXTS = ["", "orders", "name", "__consumer_offsets", "\0", "a/b", "é" * 200, "x" * 300, "..", "retention.ms", None]
TEXTS += ["t" * 32_767, "t" * 32_768]
OF_CLIENTS = "Future exception was never retrieved"  # what asyncio says of clients of other tests in this process
ONE = batch("one")
WAITS = {"max_wait_ms", "rebalance_timeout_ms", "session_timeout_ms"}


def changed_values(value: Any, dice: random.Random, rate: float) -> Any:
    """Return fields of a request with other values, in which some are as they may not be."""
    if isinstance(value, dict):
        return {key: one if key in WAITS else changed_values(one, dice, rate) for key, one in value.items()}
    if isinstance(value, list):
        if dice.random() < rate:
            return None
        return [changed_values(one, dice, rate) for one in value * dice.choice([1, 1, 1, 0, 2])]
    if dice.random() >= rate:
        return value
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return dice.choice(INTEGERS)
    if isinstance(value, str):
        return dice.choice(TEXTS)
    if not isinstance(value, bytes | memoryview):
        return None
    return dice.choice([None, b"", ONE, ONE[: dice.randrange(70)], dice.randbytes(80)])


def changed_bytes(data: bytes, dice: random.Random) -> bytes:
    """Return a request with other bytes after its header."""
    frame = bytearray(data[4:])
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(11, max(len(frame), 12))
        frame[at : at + dice.randrange(5)] = dice.randbytes(dice.randrange(5))
    return struct.pack(">i", len(frame)) + frame


@pytest.mark.sweep(6)
@pytest.mark.parametrize("seed", range(60))
def test_random_requests(tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture):
    """Of all kinds and versions: none of them makes a handler fail, and the log is whole afterwards."""
    dice = random.Random(seed)
    with Broker(tmp_path) as broker:
        with BrokerClient(broker) as client:
            client.create("name")
            client.create("orders")
        for _ in range(300):
            with BrokerClient(broker) as client:
                key = dice.choice(sorted(apis()))
                versions = apis()[key].request.versions
                version = dice.randint(versions.first, versions.last)
                values = decode_message(apis()[key].request, version, request_of(key, version))
                known = {name: one for name, one in values.items() if name not in WAITS}
                try:
                    frame = client.frame(key, version, changed_values(known, dice, dice.choice([0.05, 0.2, 0.5])))
                except (ValueError, InvalidRecordError):
                    frame = client.frame(key, version, known)
                client.send(changed_bytes(frame, dice) if dice.random() < 0.3 else frame)
        with BrokerClient(broker) as client:
            assert client.ask(METADATA, 12, {"topics": []})["brokers"]
    failures = [one.message for one in caplog.records if one.exc_info]
    assert [one for one in failures if not one.startswith(OF_CLIENTS)] == []
    check_files(tmp_path)


def check_files(path: Path) -> None:
    """Check that nothing is damaged; offsets that random requests commit may be strange."""
    assert kraftlog.open(path).errors().to_pylist() == []


def test_a_client_that_is_gone_before_a_large_response_is_no_error(broker: Broker, caplog: pytest.LogCaptureFixture):
    with BrokerClient(broker) as client, BrokerClient(broker) as gone:
        client.create("orders")
        client.produce(batch("x" * 100_000))
        broker.faults.delay("Fetch", 0.5)
        gone.send(gone.fetch_frame(0))
        gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closes with a reset
        gone.socket.close()
        broker.faults.delay("Metadata", 1)
        client.create("later")
    assert not caplog.records
