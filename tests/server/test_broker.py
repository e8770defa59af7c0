"""A broker: what clients write is in its directory, and what they read is what is there."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import aiokafka
import confluent_kafka
import pyarrow as pa
import pytest
from broker_client import METADATA, BrokerClient, batch, check, log_of, values_of
from clients import READERS
from group_member import OFFSET_COMMIT

import kraftlog
from kraftlog import LogStore
from kraftlog.disk.waiting import about_to_wait
from kraftlog.log_store.open_files import OpenFiles
from kraftlog.log_store.partition import Partition
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker
from kraftlog.server.fetch_sessions import Answer
from kraftlog.server.reading_requests import ReadingRequests

LIMIT = 30.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        yield running
    check(running.path)


def librdkafka(broker: Broker, **options: object) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0} | options)


@pytest.mark.parametrize("acks", ["all", "1", "0"])
@pytest.mark.parametrize("codec", CODECS)
def test_what_librdkafka_sends_is_in_the_log(broker: Broker, codec: str, acks: str):
    broker.store.create_topic("orders", partitions=3)
    producer = librdkafka(broker, **{"compression.type": codec, "acks": acks})
    delivered: dict[tuple[int, int], bytes] = {}

    def note(error: object, message: confluent_kafka.Message) -> None:
        assert error is None
        delivered[message.partition(), message.offset()] = message.value()

    for number in range(300):
        value = f"value {number} ".encode() * 20
        producer.produce("orders", value, f"key {number % 7}", headers={"n": str(number)}, on_delivery=note)
    assert producer.flush(LIMIT) == 0
    if acks == "0":  # nobody has said when it was written
        with BrokerClient(broker) as client:
            until = monotonic() + LIMIT
            while sum(client.fetch(0, partition=number)["high_watermark"] for number in range(3)) < 300:
                assert monotonic() < until
    rows = kraftlog.open(broker.path, topics=["orders"]).records(
        ["partition", "offset", "key", "value", "headers", "timestamp"]
    )
    found = {(row["partition"], row["offset"]): row for row in rows.to_table().to_pylist()}
    values = [row["value"] for row in found.values()]
    assert sorted(values) == sorted(f"value {number} ".encode() * 20 for number in range(300))
    if acks != "0":
        assert {key: row["value"] for key, row in found.items()} == delivered
    for row in found.values():
        number = int(row["headers"][0]["value"])
        assert (row["key"], row["value"]) == (f"key {number % 7}".encode(), f"value {number} ".encode() * 20)
    compressions = set(
        kraftlog.open(broker.path, topics=["orders"]).batches(["compression"])["compression"].to_pylist()
    )
    assert compressions == {codec}


def test_three_clients_read_what_aiokafka_writes(broker: Broker):
    async def write() -> list[tuple[int, int]]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True)
        await producer.start()
        try:
            places = [await producer.send_and_wait("orders", f"{number}".encode()) for number in range(20)]
            return [(one.partition, one.offset) for one in places]
        finally:
            await producer.stop()

    assert asyncio.run(asyncio.wait_for(write(), LIMIT)) == [(0, number) for number in range(20)]
    rows = [read(broker.bootstrap_servers, "read_committed", [("orders", 0)]) for read in READERS.values()]
    assert [one.offset for one in rows[0]] == list(range(20))
    assert rows[0] == rows[1] == rows[2]


def test_a_consumer_waits_for_the_next_record(broker: Broker):
    """The wait ends with the append: the limit of the socket is shorter than the wait that the client asks for."""
    with BrokerClient(broker) as reader, BrokerClient(broker) as writer:
        reader.socket.settimeout(LIMIT)
        writer.create("orders")
        reader.send(reader.fetch_frame(0, max_wait_ms=600_000))
        assert writer.produce(batch("one"))["base_offset"] == 0
        assert values_of(reader.fetched()["records"]) == ["one"]


def test_a_store_in_this_process_wakes_consumers(broker: Broker):
    with BrokerClient(broker) as reader:
        reader.create("orders")
        reader.send(reader.fetch_frame(0, max_wait_ms=600_000))
        with broker.store.producer() as producer:
            producer.send("orders", value="from here")
        assert values_of(reader.fetched()["records"]) == ["from here"]


def test_a_fetch_waits_for_its_minimum(broker: Broker):
    with BrokerClient(broker) as reader, BrokerClient(broker) as writer:
        writer.create("orders")
        first = batch("one")
        reader.send(reader.fetch_frame(0, max_wait_ms=600_000, min_bytes=len(first) + 1))
        writer.produce(first)
        writer.produce(batch("two"))
        assert values_of(reader.fetched()["records"]) == ["one", "two"]
        assert len(reader.fetch(0, max_wait_ms=600_000, min_bytes=2 * len(first))["records"]) == 2 * len(first)


def test_an_append_while_a_fetch_reads_wakes_it(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    fetched = ReadingRequests._fetched
    values = ["one"]

    def read_and_append(*arguments: Any) -> list[Answer]:
        answers = fetched(*arguments)
        while values:
            with broker.store.producer() as producer:
                producer.send("orders", value=values.pop())
        return answers

    with BrokerClient(broker) as reader:
        reader.create("orders")
        monkeypatch.setattr(ReadingRequests, "_fetched", read_and_append)
        assert values_of(reader.fetch(0, max_wait_ms=600_000)["records"]) == ["one"]


def test_a_fetch_without_news_ends_at_its_limit(broker: Broker):
    with BrokerClient(broker) as reader:
        reader.create("orders")
        answer = reader.fetch(0, max_wait_ms=50)
        assert (answer["error_code"], answer["records"], answer["high_watermark"]) == (0, b"", 0)


@pytest.mark.parametrize(("acks", "synced"), [(-1, ["orders"]), (1, []), (0, [])])
def test_what_a_producer_waits_for(tmp_path: Path, acks: int, synced: list[str], monkeypatch: pytest.MonkeyPatch):
    """Without acknowledgements there is no answer; the next one is that of the next request."""
    found: list[str] = []
    sync = Partition.sync
    monkeypatch.setattr(Partition, "sync", lambda self: (found.append(self.key[0]), sync(self))[1])
    with Broker(tmp_path / "log", fsync="commit") as broker, BrokerClient(broker) as client:
        client.create("orders")
        found.clear()
        if acks:
            assert client.produce(batch("one"), acks=acks)["base_offset"] == 0
        else:
            client.send(client.produce_frame(batch("one"), acks=0))
        assert values_of(client.fetch(0)["records"]) == ["one"]
        assert found == synced


def idempotent(*values: str, sequence: int, producer_id: int, epoch: int = 0) -> bytes:
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_sequences_of_an_idempotent_producer(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init()
        assert (begun["error_code"], begun["producer_epoch"]) == (0, 0)
        one = idempotent("a", "b", sequence=0, producer_id=begun["producer_id"])
        two = idempotent("c", sequence=2, producer_id=begun["producer_id"])
        late = idempotent("x", sequence=7, producer_id=begun["producer_id"])
        assert [client.produce(data)["base_offset"] for data in (one, two, one, two)] == [0, 2, 0, 2]
        assert client.produce(late)["error_code"] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        newer = idempotent("d", sequence=0, producer_id=begun["producer_id"], epoch=1)
        assert client.produce(newer)["base_offset"] == 3
        assert client.produce(two)["error_code"] == ErrorCode.INVALID_PRODUCER_EPOCH
        assert client.init()["producer_id"] != begun["producer_id"]
    assert log_of(broker.path) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]


def damaged(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (batch("one")[:-1], ErrorCode.INVALID_RECORD),
        (batch("one") + batch("two"), ErrorCode.INVALID_RECORD),
        (damaged(batch("one"), 16, b"\1"), ErrorCode.INVALID_RECORD),
        (damaged(batch("one"), 16, b"\3"), ErrorCode.CORRUPT_MESSAGE),
        (damaged(batch("one"), 17, b"\0\0\0\0"), ErrorCode.CORRUPT_MESSAGE),
        (damaged(batch("one"), 0, struct.pack(">q", 5)), ErrorCode.INVALID_RECORD),
        (batch("x" * (1 << 20), max_batch_bytes=1 << 22), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=["null", "empty", "cut", "two", "magic 1", "magic 3", "crc", "offset", "large"],
)
def test_bad_records_are_refused(broker: Broker, records: bytes | None, code: ErrorCode):
    with BrokerClient(broker) as client:
        client.create("orders")
        answer = client.produce(records)
        assert (answer["error_code"], answer["base_offset"]) == (code, -1)
        assert answer["error_message"]
        assert client.produce(batch("good"))["base_offset"] == 0
        unacknowledged = client.produce_frame(records, acks=0)
        client.send(unacknowledged)
        assert client.is_closed()
    assert log_of(broker.path) == [(0, "good")]


@pytest.mark.sweep(12)
@pytest.mark.parametrize("seed", range(60))
def test_random_changes_are_judged_as_by_validate(broker: Broker, seed: int):
    dice = random.Random(seed)
    codec = dice.choice(CODECS)
    with BrokerClient(broker) as client:
        client.create("orders")
        for _ in range(20):
            data = bytearray(batch("one", "two", compression=codec))
            for _ in range(dice.randrange(3)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            verdicts = kraftlog.validate(bytes(data))["error_code"].to_pylist()
            expected = next((code for code in verdicts if code), 0) if verdicts else ErrorCode.INVALID_RECORD
            assert client.produce(bytes(data))["error_code"] == expected


def test_a_record_without_a_key_in_a_compacted_topic(broker: Broker):
    broker.store.create_topic("tables", configs={"cleanup.policy": "compact"})
    records = bytes(kraftlog.encode(pa.table({"key": ["a", None], "value": ["1", "2"]})))
    with BrokerClient(broker) as client:
        answer = client.produce(records, "tables")
        assert answer["error_code"] == ErrorCode.INVALID_RECORD
        assert [one["batch_index"] for one in answer["record_errors"]] == [1]


@pytest.mark.parametrize(
    ("topic", "partition", "code"),
    [
        ("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("__consumer_offsets", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_partitions_that_nobody_writes(broker: Broker, topic: str, partition: int, code: ErrorCode):
    with BrokerClient(broker) as client:
        client.create("orders")
        assert client.produce(batch("one"), topic, partition)["error_code"] == code
        assert client.produce(batch("one"), acks=2)["error_code"] == ErrorCode.INVALID_REQUIRED_ACKS


def test_topics_by_id(broker: Broker):
    with BrokerClient(broker) as client:
        (topic,) = client.ask(METADATA, 13, {"topics": [{"name": "orders"}]})["topics"]
        data = {"topic_id": topic["topic_id"], "partition_data": [{"index": 0, "records": batch("one")}]}
        offsets = {"group_id": "g", "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]}
        client.ask(OFFSET_COMMIT, 9, offsets)  # which creates the topic of the coordinator
        internal = broker.store.parts.cluster.topics["__consumer_offsets"].topic_id
        rows = [data, *(data | {"topic_id": topic_id} for topic_id in (b"?" * 16, internal))]
        answer = client.ask(0, 13, {"acks": 1, "timeout_ms": 1, "topic_data": rows})
        codes = [one["partition_responses"][0]["error_code"] for one in answer["responses"]]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert log_of(broker.path) == [(0, "one")]


@pytest.mark.parametrize(
    ("owner", "step", "code"),
    [
        (LogStore, "_partition", ErrorCode.UNKNOWN_TOPIC_ID),  # its partition is found by name
        (OpenFiles, "use", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),  # it is found, and yet to be written
    ],
    ids=["found", "written"],
)
def test_a_topic_that_is_created_again_gets_no_records_by_its_old_id(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, owner: type, step: str, code: ErrorCode
):
    run = getattr(owner, step)
    created: list[bytes] = []

    def late(*args: Any) -> Any:
        about_to_wait()
        if not created:
            created.append(broker.store.topics["orders"].topic_id)
            broker.store.delete_topic("orders")
            broker.store.create_topic("orders")
            created.append(broker.store.topics["orders"].topic_id)
        return run(*args)

    with BrokerClient(broker) as client:
        (topic,) = client.ask(METADATA, 13, {"topics": [{"name": "orders"}]})["topics"]
        client.produce(batch("one"))
        data = {"topic_id": topic["topic_id"], "partition_data": [{"index": 0, "records": batch("late")}]}
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, late)
            (answer,) = client.ask(0, 13, {"acks": 1, "timeout_ms": 1, "topic_data": [data]})["responses"]
        assert created[0] == topic["topic_id"] != created[1]
        assert answer["partition_responses"][0]["error_code"] == code
        assert client.produce(batch("new"))["base_offset"] == 0
    assert log_of(broker.path) == [(0, "new")]


def test_topics_that_clients_create(tmp_path: Path):
    def codes(client: BrokerClient, name: str, **others: object) -> int:
        (topic,) = client.ask(METADATA, 12, {"topics": [{"name": name}]} | others)["topics"]
        return topic["error_code"]

    with Broker(tmp_path / "creates", auto_create_partitions=4) as broker, BrokerClient(broker) as client:
        unknown = codes(client, "orders", allow_auto_topic_creation=False)
        assert unknown == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes(client, "orders") == ErrorCode.NONE
        assert codes(client, "a/b") == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert {name: one.partitions for name, one in broker.store.topics.items()} == {"orders": 4}
    with Broker(tmp_path / "refuses", auto_create_partitions=0) as broker, BrokerClient(broker) as client:
        assert codes(client, "orders") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.store.topics == {}


def test_features(broker: Broker):
    """Older clients refuse a feature whose lowest level is 0 (KIP-584)."""
    with BrokerClient(broker) as client:
        answers = {version: client.ask(18, version, {}) for version in range(5)}
    levels = {one["name"]: one["max_version_level"] for one in answers[4]["finalized_features"]}
    assert levels["transaction.version"] == 2
    for version, answer in answers.items():
        assert bool(answer["finalized_features"]) == (version >= 3)
        assert bool(answer["supported_features"]) == (version >= 4)
        least = {one["name"]: one["min_version"] for one in answer["supported_features"]}
        assert least.get("metadata.version", 7) == 7


def test_a_temporary_broker_leaves_nothing():
    with Broker() as broker:
        with BrokerClient(broker) as client:
            client.create("orders")
        assert broker.path.is_dir()
    broker.close()  # a second time does nothing
    assert not broker.path.exists()


def test_a_broker_that_starts_again_has_its_records(tmp_path: Path):
    for number in range(3):
        with Broker(tmp_path) as broker, BrokerClient(broker) as client:
            client.create("orders")
            assert client.produce(batch(str(number)))["base_offset"] == number
            with pytest.raises(kraftlog.KraftlogError, match=r"\.lock|lock"):
                Broker(tmp_path)
    assert log_of(tmp_path) == [(0, "0"), (1, "1"), (2, "2")]
    check(tmp_path)
