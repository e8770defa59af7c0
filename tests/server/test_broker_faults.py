"""Faults that a test asks a broker for, and what clients make of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import confluent_kafka
import pytest
from broker_client import FETCH, METADATA, PRODUCE, BrokerClient, batch, check, log_of, values_of

import kraftlog
from kraftlog.messages.one_message import decode_message, encoded
from kraftlog.protocol.api import apis
from kraftlog.protocol.request import API_VERSIONS, Request
from kraftlog.server.broker import Broker
from kraftlog.server.error_response import error_response

LIMIT = 30.0
REQUEST_TIMED_OUT = 7


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        yield running
    check(running.path)


def producer_of(broker: Broker, **options: object) -> confluent_kafka.Producer:
    quiet = {"log_level": 0, "retry.backoff.ms": 1, "reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 10}
    return confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers} | quiet | options)


@pytest.mark.parametrize("fault", ["drop_before", "drop_after"])
def test_an_idempotent_producer_writes_once(broker: Broker, fault: str):
    getattr(broker.faults, fault)("Produce", times=2)
    producer = producer_of(broker, **{"enable.idempotence": True})
    producer.produce("orders", "one")
    assert producer.flush(LIMIT) == 0
    assert log_of(broker.path) == [(0, "one")]


def test_a_producer_without_sequences_writes_twice():
    """The answer is lost, and not the record: that is how the two faults differ; an audit finds the repetition."""
    with Broker() as broker:
        broker.faults.drop_after("Produce")
        producer = producer_of(broker)
        producer.produce("orders", "one")
        assert producer.flush(LIMIT) == 0
        assert log_of(broker.path) == [(0, "one"), (1, "one")]
        broker.faults.drop_before("Produce")
        producer.produce("orders", "two")
        assert producer.flush(LIMIT) == 0
        assert log_of(broker.path) == [(0, "one"), (1, "one"), (2, "two")]
        assert len(kraftlog.open(broker.path).findings()) == 1


def test_a_connection_that_is_lost_before_the_write(broker: Broker):
    with BrokerClient(broker) as client, BrokerClient(broker) as other:
        client.create("orders")
        broker.faults.drop_before("Produce")
        client.send(client.produce_frame(batch("lost")))
        assert client.is_closed()
        assert other.fetch(0)["high_watermark"] == 0


def test_errors(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        broker.faults.fail("Produce", REQUEST_TIMED_OUT, times=2)
        answers = [client.produce(batch(str(number))) for number in range(3)]
        assert [one["error_code"] for one in answers] == [REQUEST_TIMED_OUT, REQUEST_TIMED_OUT, 0]
        assert values_of(client.fetch(0)["records"]) == ["2"]
        broker.faults.fail("Fetch", 6)
        assert client.fetch(0)["error_code"] == 6
        assert client.fetch(0)["error_code"] == 0
        for code in (6, 7):
            broker.faults.fail("Fetch", code)
        assert [client.fetch(0)["error_code"] for _ in range(3)] == [6, 7, 0]  # in the order of the calls
    broker.faults.fail("EndTxn", 51)  # CONCURRENT_TRANSACTIONS
    producer = producer_of(broker, **{"transactional.id": "t"})
    producer.init_transactions(LIMIT)
    producer.begin_transaction()
    producer.produce("orders", "committed")
    producer.commit_transaction(LIMIT)
    assert [value for _, value in log_of(broker.path)] == ["2", "committed"]


@pytest.mark.parametrize("key", sorted(apis()))
def test_every_request_has_an_answer_with_an_error(key: int):
    """Of every version: it is encoded, and names what the request names."""
    api = apis()[key]
    for version in range(api.request.versions.first, api.request.versions.last + 1):
        values = decode_message(api.request, version, request_of(key, version))
        answer = error_response(Request(api, version, 1, "c", "h", values), 55)
        decoded = decode_message(api.response, version, b"".join(encoded(api.response, version, answer)))
        if key != API_VERSIONS:
            assert 55 in set(numbers_in(decoded)), (api.name, version, decoded)


def request_of(key: int, version: int) -> bytes:
    """Return a request that names one of everything."""

    def filled(fields: tuple, level: int) -> dict:
        values = {}
        for field in fields:
            if version in field.versions and field.is_array and version not in field.tagged:
                one = filled(field.fields, level + 1) if field.kind == "struct" else sample[field.kind]
                values[field.column] = [one]
            elif version in field.versions and field.kind == "string" and version not in field.tagged:
                values[field.column] = "name"
        return values

    sample = {"string": "name", "int32": 3, "int64": 3, "uuid": bytes(16), "int8": 1}
    request = apis()[key].request
    return b"".join(encoded(request, version, filled(request.fields, 0)))


def numbers_in(value: object) -> Iterator[int]:
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, int):
        yield value


def test_a_pause(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        broker.faults.pause()
        client.send(client.produce_frame(batch("late")))
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        assert broker.store.parts.partition_of(("orders", 0)).next_offset == 0
        client.socket.settimeout(LIMIT)
        broker.faults.resume()
        (answered,) = client.answer(PRODUCE, 11)["responses"]
        assert answered["partition_responses"][0]["error_code"] == 0
    assert log_of(broker.path) == [(0, "late")]


def test_a_delay_holds_back_only_its_own_connection(broker: Broker):
    with BrokerClient(broker) as slow, BrokerClient(broker) as other:
        other.create("orders")
        broker.faults.delay("Produce", 0.3)
        begun = time.monotonic()
        slow.send(slow.produce_frame(batch("late")))
        assert other.fetch(0)["records"] == b""
        assert slow.answer(PRODUCE, 11)["responses"][0]["partition_responses"][0]["base_offset"] == 0
        assert time.monotonic() - begun >= 0.3


def test_faults_are_forgotten(broker: Broker):
    broker.faults.fail("Produce", REQUEST_TIMED_OUT, times=100)
    broker.faults.pause()
    broker.faults.clear()
    with BrokerClient(broker) as client:
        client.create("orders")
        assert client.produce(batch("one"))["error_code"] == 0
    with pytest.raises(ValueError, match="'Produced' is known; expected one of AddOffsetsToTxn"):
        broker.faults.delay("Produced", 1)
    with pytest.raises(ValueError, match="times 0"):
        broker.faults.drop_after("Produce", times=0)


def test_a_killed_broker_keeps_what_it_acknowledged(broker: Broker):
    """A producer goes on as soon as the broker is back at its address, and so does the open transaction."""
    address = broker.bootstrap_servers
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        identity = {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"]}
        data = batch("open", base_sequence=0, is_transactional=True, **identity)
        assert client.produce(data, version=12, transactional_id="t")["error_code"] == 0
        producer = producer_of(broker, **{"enable.idempotence": True})
        producer.produce("orders", "before")
        assert producer.flush(LIMIT) == 0
        broker.kill()
        assert client.is_closed()
        assert not (broker.path / ".kafka_cleanshutdown").exists()
    producer.produce("orders", "after")
    started = threading.Timer(0.2, broker.restart)
    started.start()
    assert producer.flush(LIMIT) == 0
    started.join()
    assert broker.bootstrap_servers == address
    broker.store.abort_transaction("t")
    rows = kraftlog.open(broker.path, topics=["orders"]).records(["value"], isolation_level="read_committed")
    assert [value.decode() for value in rows.to_table()["value"].to_pylist()] == ["before", "after"]


def test_a_killed_broker_does_not_say_that_its_store_is_closed(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    """A producer would take an error for an answer, and end; without an answer it sends its records again."""
    with BrokerClient(broker) as client:
        client.create("orders")
        assert client.produce(batch("before"))["base_offset"] == 0
        abandon = broker.store._abandon

        def abandoned() -> None:
            abandon()
            with suppress(OSError):
                client.send(client.produce_frame(batch("one")))
            assert client.is_closed()

        with monkeypatch.context() as asking:
            asking.setattr(broker.store, "_abandon", abandoned)
            broker.kill()
    broker.kill()  # a second time does nothing
    broker.restart()
    assert log_of(broker.path) == [(0, "before")]


def test_a_temporary_broker_survives_a_restart():
    with Broker() as broker:
        with BrokerClient(broker) as client:
            client.create("orders")
            client.produce(batch("one"))
        broker.restart()
        broker.kill()
        broker.restart()
        with BrokerClient(broker) as client:
            assert values_of(client.fetch(0)["records"]) == ["one"]
            assert client.ask(METADATA, 12, {"topics": None})["topics"][0]["name"] == "orders"
            assert FETCH in apis()
    assert not broker.path.exists()
