"""Transactions of clients: all of one or nothing, fenced producers, and offsets that count with the records."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from broker_client import ADD_OFFSETS, ADD_PARTITIONS, COMMIT_OFFSETS, END, INIT, BrokerClient, batch, check, values_of
from clients import kafka
from confluent_kafka import TopicPartition
from group_member import Member

import kraftlog
from kraftlog.disk.waiting import about_to_wait
from kraftlog.log_store.group_coordinator import GroupCoordinator
from kraftlog.log_store.open_files import OpenFiles
from kraftlog.log_store.partition import Partition
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker
from kraftlog.server.client_transactions import ClientProducer

LIMIT = 30.0
OFFSET_FETCH, DELETE_GROUPS, OFFSET_DELETE = 9, 42, 47
OLD, NEW = 11, 12  # versions of Produce: the older one requires AddPartitionsToTxn (KIP-890)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        yield running
    check(running.path)


def producer_of(broker: Broker, transactional_id: str, **options: object) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": transactional_id, "linger.ms": 0} | options
    )
    producer.init_transactions(LIMIT)
    return producer


def committed_values(broker: Broker, topic: str = "orders") -> list[str]:
    """Return what a consumer of committed records reads to the end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    values = []
    while True:
        message = consumer.poll(LIMIT)
        assert message is not None
        if message.error() is not None:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            break
        values.append(message.value().decode())
    consumer.close()
    return values


def in_log(broker: Broker) -> list[tuple[str, str]]:
    rows = kraftlog.open(broker.path, topics=["orders"]).records(
        ["value", "transaction_state"], isolation_level="read_uncommitted"
    )
    return [(row["value"].decode(), row["transaction_state"]) for row in rows.to_table().to_pylist()]


def test_committed_and_aborted_transactions(broker: Broker):
    producer = producer_of(broker, "t")
    for number in range(6):
        producer.begin_transaction()
        for part in "ab":
            producer.produce("orders", f"{number}{part}")
        if number % 3 == 2:
            producer.flush(LIMIT)
            producer.abort_transaction(LIMIT)
        else:
            producer.commit_transaction(LIMIT)
    expected = [f"{number}{part}" for number in (0, 1, 3, 4) for part in "ab"]
    assert committed_values(broker) == expected
    assert [value for value, state in in_log(broker) if state == "committed"] == expected
    assert [value for value, state in in_log(broker) if state == "aborted"] == ["2a", "2b", "5a", "5b"]


def test_a_second_producer_fences_the_first(broker: Broker):
    first = producer_of(broker, "t")
    first.begin_transaction()
    first.produce("orders", "of the first")
    first.flush(LIMIT)
    second = producer_of(broker, "t")
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        first.commit_transaction(LIMIT)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    second.begin_transaction()
    second.produce("orders", "of the second")
    second.commit_transaction(LIMIT)
    assert committed_values(broker) == ["of the second"]


def test_a_transaction_that_lasts_too_long_is_aborted(broker: Broker):
    with BrokerClient(broker) as client, BrokerClient(broker) as reader:
        client.create("orders")
        begun = client.init("t", timeout_ms=1)
        assert client.produce(of(begun, "late", sequence=0), version=NEW, transactional_id="t")["error_code"] == 0
        reader.send(reader.fetch_frame(1, max_wait_ms=600_000))  # until the marker is there
        assert reader.fetched()["error_code"] == 0
        assert in_log(broker) == [("late", "aborted")]
        assert client.ask(END, 4, named(begun, committed=True))["error_code"] == ErrorCode.PRODUCER_FENCED


def test_consume_transform_produce(broker: Broker):
    source = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(21):  # three times seven: a consumer waits for as many as it asks for
        source.produce("orders", str(number))
    assert source.flush(LIMIT) == 0
    options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "doubles", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(options | {"enable.auto.commit": False})
    consumer.subscribe(["orders"])
    producer = producer_of(broker, "doubles")
    consumed = 0
    while consumed < 21:
        messages = consumer.consume(7, LIMIT)
        is_aborted = consumed == 0
        producer.begin_transaction()
        for message in messages:
            producer.produce("doubled", str(2 * int(message.value())))
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), LIMIT)
        if is_aborted:
            producer.abort_transaction(LIMIT)
            assert broker.store.committed("doubles") == {}
            consumer.seek(TopicPartition("orders", 0, 0))
            producer.begin_transaction()
            for message in messages:
                producer.produce("doubled", str(2 * int(message.value())))
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), LIMIT)
            consumer.seek(TopicPartition("orders", 0, len(messages)))
        producer.commit_transaction(LIMIT)
        consumed += len(messages)
        assert broker.store.committed("doubles")["orders", 0].offset == consumed
    consumer.close()
    assert committed_values(broker, "doubled") == [str(2 * number) for number in range(21)]


def test_transactions_of_two_other_clients(broker: Broker):
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="kafka-python")
    producer.init_transactions()
    for value, end in ((b"one", producer.commit_transaction), (b"two", producer.abort_transaction)):
        producer.begin_transaction()
        producer.send("orders", value)
        producer.flush()
        end()
    producer.close()

    async def write() -> None:
        other = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="aiokafka")
        await other.start()
        async with other.transaction():
            await other.send("orders", b"three")
            await other.send_offsets_to_transaction({aiokafka.TopicPartition("orders", 0): 4}, "group")
        await other.stop()

    asyncio.run(asyncio.wait_for(write(), LIMIT))
    assert in_log(broker) == [("one", "committed"), ("two", "aborted"), ("three", "committed")]
    assert committed_values(broker) == ["one", "three"]
    assert broker.store.committed("group")["orders", 0].offset == 4


# requests by hand, as newer and older clients send them


def of(begun: dict[str, Any], *values: str, sequence: int) -> bytes:
    """Return a transactional batch of a producer."""
    return batch(
        *values,
        producer_id=begun["producer_id"],
        producer_epoch=begun["producer_epoch"],
        base_sequence=sequence,
        is_transactional=True,
    )


def named(begun: dict[str, Any], **others: Any) -> dict[str, Any]:
    identity = {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"]}
    return {"transactional_id": "t"} | identity | others


def add_partitions(client: BrokerClient, begun: dict[str, Any], *topics: str) -> list[int]:
    values = {
        "v3_and_below_transactional_id": "t",
        "v3_and_below_producer_id": begun["producer_id"],
        "v3_and_below_producer_epoch": begun["producer_epoch"],
        "v3_and_below_topics": [{"name": name, "partitions": [0]} for name in topics],
    }
    answer = client.ask(ADD_PARTITIONS, 3, values)["results_by_topic_v3_and_below"]
    return [one["results_by_partition"][0]["partition_error_code"] for one in answer]


def test_a_newer_client_adds_partitions_by_writing(broker: Broker):
    """Each end gives it the next epoch, and asking again gives the same answer (KIP-890)."""
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        for number, is_commit in enumerate([True, False, True]):
            data = of(begun, str(number), sequence=0)
            assert client.produce(data, version=NEW, transactional_id="t")["error_code"] == 0
            first, again = (client.ask(END, 5, named(begun, committed=is_commit)) for _ in range(2))
            assert first == again
            assert (first["error_code"], first["producer_epoch"]) == (0, begun["producer_epoch"] + 1)
            opposite = client.ask(END, 5, named(begun, committed=not is_commit))
            assert opposite["error_code"] == ErrorCode.PRODUCER_FENCED
            late = client.produce(of(begun, "late", sequence=1), version=NEW, transactional_id="t")
            assert late["error_code"] == ErrorCode.INVALID_PRODUCER_EPOCH
            begun = first
    assert in_log(broker) == [("0", "committed"), ("1", "aborted"), ("2", "committed")]


def test_the_first_sequence_behind_the_end_of_a_transaction_is_0(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        assert client.produce(of(begun, "a", sequence=0), version=NEW, transactional_id="t")["error_code"] == 0
        begun = client.ask(END, 5, named(begun, committed=True))
        codes = [  # two requests in flight; the first one is lost
            client.produce(of(begun, str(sequence), sequence=sequence), version=NEW, transactional_id="t")["error_code"]
            for sequence in (1, 0, 1)
        ]
        assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0, 0]
        assert client.ask(END, 5, named(begun, committed=True))["error_code"] == 0
    assert in_log(broker) == [("a", "committed"), ("0", "committed"), ("1", "committed")]


def test_a_newer_client_may_abort_nothing_and_not_commit_it(broker: Broker):
    with BrokerClient(broker) as client:
        begun = client.init("t")
        assert client.ask(END, 5, named(begun, committed=True))["error_code"] == ErrorCode.INVALID_TXN_STATE
        aborted = client.ask(END, 5, named(begun, committed=False))
        assert (aborted["error_code"], aborted["producer_epoch"]) == (0, begun["producer_epoch"] + 1)


def test_an_older_client_adds_partitions_first(broker: Broker):
    """Its epoch stays, and what arrives outside of its transaction is refused (KIP-890, part 1)."""
    with BrokerClient(broker) as client:
        client.create("orders")
        client.create("other")
        begun = client.init("t")
        for number, is_commit in enumerate([True, False]):
            data = of(begun, str(number), sequence=number)
            refused = client.produce(data, version=OLD, transactional_id="t")
            assert refused["error_code"] == ErrorCode.INVALID_TXN_STATE
            assert add_partitions(client, begun, "orders") == [0]
            assert client.produce(data, version=OLD, transactional_id="t")["error_code"] == 0
            elsewhere = client.produce(of(begun, "x", sequence=0), "other", version=OLD, transactional_id="t")
            assert elsewhere["error_code"] == ErrorCode.INVALID_TXN_STATE
            for _ in range(2):
                assert client.ask(END, 4, named(begun, committed=is_commit))["error_code"] == 0
            opposite = client.ask(END, 4, named(begun, committed=not is_commit))
            assert opposite["error_code"] == ErrorCode.INVALID_TXN_STATE
        assert add_partitions(client, begun, "orders", "nothing") == [
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert add_partitions(client, begun, "__consumer_offsets", "orders") == [
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.OPERATION_NOT_ATTEMPTED,
        ]
        assert client.init("t")["producer_epoch"] == begun["producer_epoch"] + 1
        assert add_partitions(client, begun, "orders") == [ErrorCode.PRODUCER_FENCED]
        assert client.ask(ADD_PARTITIONS, 4, {})["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert in_log(broker) == [("0", "committed"), ("1", "aborted")]


def test_batches_that_do_not_belong_to_the_transaction(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        data = of(begun, "x", sequence=0)
        assert client.produce(data)["error_code"] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        unknown = client.produce(data, version=NEW, transactional_id="unknown")
        assert unknown["error_code"] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        other = of({**begun, "producer_id": begun["producer_id"] + 1}, "x", sequence=0)
        mapped = client.produce(other, version=OLD, transactional_id="t")
        assert mapped["error_code"] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        newer = client.init("t")
        assert add_partitions(client, newer, "orders") == [0]
        for epoch in (-1, 1):  # the partition knows neither of them
            stale = of({**newer, "producer_epoch": newer["producer_epoch"] + epoch}, "x", sequence=0)
            fenced = client.produce(stale, version=OLD, transactional_id="t")
            assert fenced["error_code"] == ErrorCode.INVALID_PRODUCER_EPOCH
        assert client.fetch(0)["high_watermark"] == 0
        assert client.ask(END, 4, named(newer, committed=False))["error_code"] == 0


@pytest.mark.parametrize(
    ("key", "first_version", "others"),
    [
        (INIT, 4, {"transaction_timeout_ms": 60_000}),
        (ADD_PARTITIONS, 2, {"topics": [{"name": "orders", "partitions": [0]}]}),
        (ADD_OFFSETS, 2, {"group_id": "g"}),
        (END, 2, {"committed": True}),
    ],
)
def test_the_first_version_that_knows_that_a_producer_is_fenced(
    broker: Broker, key: int, first_version: int, others: dict[str, Any]
):
    """Clients of earlier ones are told that its epoch is invalid (KIP-588)."""
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        client.init("t")
        values = named(begun, **others)
        codes = []
        for version in (first_version - 1, first_version):
            if key == ADD_PARTITIONS:
                older = {f"v3_and_below_{name}": value for name, value in values.items()}
                (topic,) = client.ask(key, version, older)["results_by_topic_v3_and_below"]
                codes += [one["partition_error_code"] for one in topic["results_by_partition"]]
            else:
                codes.append(client.ask(key, version, values)["error_code"])
        assert codes == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED]


def test_init_producer_id(broker: Broker):
    with BrokerClient(broker) as client:
        assert client.init("")["error_code"] == ErrorCode.INVALID_REQUEST
        assert client.init("t", timeout_ms=0)["error_code"] == 50  # INVALID_TRANSACTION_TIMEOUT
        begun = client.init("t")
        claim = {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"]}
        for _ in range(2):  # asked again, it is the same producer (KIP-360)
            assert client.init("t", **claim)["producer_epoch"] == begun["producer_epoch"] + 1
        other = claim | {"producer_id": begun["producer_id"] + 1}
        assert client.init("t", **other)["error_code"] == ErrorCode.PRODUCER_FENCED
        assert client.init("t")["producer_epoch"] == begun["producer_epoch"] + 2
        assert client.init("t", **claim)["error_code"] == ErrorCode.PRODUCER_FENCED
        assert client.init("unknown", **claim)["producer_epoch"] == 0  # such as one that has expired
        older = client.ask(22, 3, {"transactional_id": "t", "transaction_timeout_ms": 1} | claim)
        assert older["error_code"] == ErrorCode.INVALID_PRODUCER_EPOCH
        refused = client.ask(22, 6, {"transactional_id": "t", "transaction_timeout_ms": 1, "enable2_pc": True})
        assert refused["error_code"] == ErrorCode.UNSUPPORTED_VERSION


def test_a_producer_that_goes_on_after_an_error_twice_is_not_the_one_before(broker: Broker):
    """It gets the same answer again only as long as nobody has begun or ended a transaction since."""
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        claim = {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"]}
        begun = client.init("t", **claim)
        client.produce(of(begun, "x", sequence=0), version=NEW, transactional_id="t")
        assert client.init("t", **claim)["producer_epoch"] == begun["producer_epoch"]  # a request that came late
        assert client.ask(END, 5, named(begun, committed=True))["error_code"] == 0
        assert client.init("t", **claim)["error_code"] == ErrorCode.PRODUCER_FENCED
    assert in_log(broker) == [("x", "committed")]


def ended_by_another(broker: Broker, topic: str, patch: pytest.MonkeyPatch) -> list[str]:
    """Let the next append to a topic find a transaction aborted that was open before: its markers come first.

    Returns
    -------
    list of str
        The status of the transaction before that append.
    """
    markers, statuses = threading.Event(), list[str]()
    use, end = OpenFiles.use, GroupCoordinator.end
    transactions = broker.store.parts.transactions

    def ending(*args: Any, **others: Any) -> None:
        markers.set()  # they are in their partitions, and so is the lock of the groups still to be taken
        end(*args, **others)

    def using(files: OpenFiles, partition: Partition) -> None:
        about_to_wait()
        if partition.key[0] == topic and not statuses:
            state = transactions.state("t")
            assert state is not None
            statuses.append(state.status_name)
            abort = partial(transactions.end, ClientProducer("t", state.producer_id, state.producer_epoch))
            threading.Thread(target=abort, kwargs={"is_commit": False}).start()
            assert markers.wait(LIMIT)
        use(files, partition)

    patch.setattr(OpenFiles, "use", using)
    patch.setattr(GroupCoordinator, "end", ending)
    return statuses


def test_a_batch_that_its_marker_overtakes_is_refused(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    """It would begin a transaction that nobody ends, or be in the next one (KIP-890, part 1)."""
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        assert add_partitions(client, begun, "orders") == [0]
        broker.store.parts.partition_of(("orders", 0))  # open before the append
        with monkeypatch.context() as patch:
            statuses = ended_by_another(broker, "orders", patch)
            late = client.produce(of(begun, "late", sequence=0), version=OLD, transactional_id="t")
        assert (late["error_code"], statuses) == (ErrorCode.INVALID_TXN_STATE, ["Ongoing"])
        assert add_partitions(client, begun, "orders") == [0]
        data = of(begun, "next", sequence=0)
        assert client.produce(data, version=OLD, transactional_id="t")["error_code"] == 0
        assert client.ask(END, 4, named(begun, committed=True))["error_code"] == 0
    assert in_log(broker) == [("next", "committed")]


def test_offsets_that_their_marker_overtakes_are_refused(broker: Broker, monkeypatch: pytest.MonkeyPatch):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        assert client.ask(ADD_OFFSETS, 4, named(begun, group_id="g"))["error_code"] == 0
        with monkeypatch.context() as patch:
            statuses = ended_by_another(broker, "__consumer_offsets", patch)
            assert commit_offsets(client, begun, 4, 7) == ErrorCode.INVALID_TXN_STATE
        assert statuses == ["Ongoing"]
        assert fetch_offset(client, require_stable=True) == (0, -1)
        assert client.ask(ADD_OFFSETS, 4, named(begun, group_id="g"))["error_code"] == 0
        assert client.ask(END, 4, named(begun, committed=True))["error_code"] == 0
        assert fetch_offset(client) == (0, -1)


def commit_offsets(client: BrokerClient, begun: dict[str, Any], version: int, offset: int, **others: Any) -> int:
    partitions = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}]
    values = named(begun, group_id="g", topics=[{"name": "orders", "partitions": partitions}])
    answer = client.ask(COMMIT_OFFSETS, version, values | others)
    return answer["topics"][0]["partitions"][0]["error_code"]


def fetch_offset(client: BrokerClient, **others: Any) -> tuple[int, int]:
    groups = [{"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0]}]}]
    answer = client.ask(OFFSET_FETCH, 9, {"groups": groups} | others)["groups"][0]["topics"][0]["partitions"][0]
    return answer["error_code"], answer["committed_offset"]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("whole_group", [False, True])
def test_offsets_that_are_removed_do_not_come_back_with_their_transaction(
    broker: Broker, whole_group: bool, is_committed: bool, restarts: bool
):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        if is_committed:
            assert commit_offsets(client, begun, 5, 3) == 0
            begun = client.ask(END, 5, named(begun, committed=True))
            assert fetch_offset(client) == (0, 3)
        assert commit_offsets(client, begun, 5, 5) == 0
        partitions = [{"name": "orders", "partitions": [{"partition_index": 0}]}]

        def remove() -> int:
            if whole_group:
                return client.ask(DELETE_GROUPS, 2, {"groups_names": ["g"]})["results"][0]["error_code"]
            return client.ask(OFFSET_DELETE, 0, {"group_id": "g", "topics": partitions})["error_code"]

        assert remove() == 0
        assert remove() == ErrorCode.GROUP_ID_NOT_FOUND
        assert fetch_offset(client, require_stable=True) == (0, -1)
    if restarts:
        broker.restart()
    with BrokerClient(broker) as client:
        assert client.ask(END, 5, named(begun, committed=True))["error_code"] == 0
        assert fetch_offset(client) == (0, -1)
    broker.restart()
    assert broker.store.committed("g") == {}


@pytest.mark.parametrize("is_new", [False, True])
def test_offsets_count_with_their_transaction(broker: Broker, is_new: bool):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        for offset, is_commit in [(5, True), (7, False)]:
            if not is_new:
                assert commit_offsets(client, begun, 4, offset) == ErrorCode.INVALID_TXN_STATE
                assert client.ask(ADD_OFFSETS, 4, named(begun, group_id="g"))["error_code"] == 0
            assert commit_offsets(client, begun, 5 if is_new else 4, offset) == 0
            before = -1 if is_commit else 5
            assert fetch_offset(client) == (0, before)
            assert fetch_offset(client, require_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
            ended = client.ask(END, 5 if is_new else 4, named(begun, committed=is_commit))
            begun = ended if is_new else begun
            assert fetch_offset(client, require_stable=True) == (0, 5)
        assert commit_offsets(client, begun, 5, 9, member_id="m", generation_id=1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert commit_offsets(client, begun, 5, 9, group_id="") == ErrorCode.INVALID_GROUP_ID
        for size, code in ((4097, ErrorCode.OFFSET_METADATA_TOO_LARGE), (4096, 0)):  # offset.metadata.max.bytes
            partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "m" * size}
            topics = [{"name": "orders", "partitions": [partition]}]
            if not is_new and not code:
                assert client.ask(ADD_OFFSETS, 4, named(begun, group_id="g"))["error_code"] == 0
            assert commit_offsets(client, begun, 5 if is_new else 4, 5, topics=topics) == code
        assert client.ask(END, 5 if is_new else 4, named(begun, committed=False))["error_code"] == 0


def test_offsets_of_a_member_that_waits_for_its_assignment_count_in_a_transaction(broker: Broker):
    """Its generation is the current one; a commit outside of a transaction fails with REBALANCE_IN_PROGRESS."""
    with BrokerClient(broker) as client, Member(broker) as member:
        client.create("orders")
        begun = client.init("t")
        assert commit_offsets(client, begun, 5, 9, member_id="m", generation_id=1) == ErrorCode.ILLEGAL_GENERATION
        generation = member.join()["generation_id"]
        identity = {"member_id": member.member_id, "generation_id": generation}
        assert member.commit(9) == ErrorCode.REBALANCE_IN_PROGRESS
        assert commit_offsets(client, begun, 5, 9, **identity) == 0
        assert commit_offsets(client, begun, 5, 9, **identity | {"generation_id": 7}) == ErrorCode.ILLEGAL_GENERATION
        assert client.ask(END, 5, named(begun, committed=True))["error_code"] == 0
        assert fetch_offset(client) == (0, 9)


def test_open_transactions_are_not_read_and_their_end_wakes_readers(broker: Broker):
    with BrokerClient(broker) as client, BrokerClient(broker) as reader:
        client.create("orders")
        begun = client.init("t")
        client.produce(of(begun, "aborted", sequence=0), version=NEW, transactional_id="t")
        begun = client.ask(END, 5, named(begun, committed=False))
        client.produce(of(begun, "committed", sequence=0), version=NEW, transactional_id="t")
        open_ = reader.fetch(2, isolation_level=1)
        assert (open_["records"], open_["high_watermark"], open_["last_stable_offset"]) == (b"", 3, 2)
        assert values_of(reader.fetch(0, isolation_level=1)["records"]) == ["aborted"]
        reader.send(reader.fetch_frame(2, isolation_level=1, max_wait_ms=600_000))
        client.ask(END, 5, named(begun, committed=True))
        assert values_of(reader.fetched()["records"]) == ["committed"]
        everything = reader.fetch(0, isolation_level=1)
        assert values_of(everything["records"]) == ["aborted", "committed"]
        assert [one["first_offset"] for one in everything["aborted_transactions"]] == [0]
