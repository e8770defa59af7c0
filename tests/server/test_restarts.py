"""What survives a restart of a broker, in order or by a kill: open transactions, and members of classic groups."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep, time

import confluent_kafka
import pytest
from broker_client import ADD_OFFSETS, END, BrokerClient, batch, check, values_of
from group_member import SESSION_MS, Member
from test_broker_transactions import (
    NEW,
    OLD,
    add_partitions,
    commit_offsets,
    committed_values,
    fetch_offset,
    in_log,
    named,
    of,
)

import kraftlog
from kraftlog.log_store.partition import Partition
from kraftlog.log_store.produced_batch import ProducedBatch
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker

LIMIT = 30.0
DESCRIBE_GROUPS, DELETE_GROUPS = 15, 42
QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 10}
RESTARTS = ["in order", "killed"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "log") as running:
        yield running
    check(running.path)


@pytest.fixture(params=RESTARTS)
def restart(request: pytest.FixtureRequest, broker: Broker) -> Callable[[], None]:
    def run() -> None:
        if request.param == "killed":
            broker.kill()
        broker.restart()

    return run


# producers


def batches_of(client: BrokerClient, count: int) -> list[bytes]:
    """Return batches of an idempotent producer."""
    stamp = {"producer_id": client.init()["producer_id"], "producer_epoch": 0, "timestamp_ms": int(time() * 1000)}
    return [batch(str(number), base_sequence=number, **stamp) for number in range(count)]


def test_what_a_producer_sends_again_is_known_after_a_kill(broker: Broker):
    """As in Kafka, which reads the log after its last snapshot: five batches (NUM_BATCHES_TO_RETAIN)."""
    gap = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    with BrokerClient(broker) as client:
        client.create("orders")
        batches = batches_of(client, 6)
        for data in batches[:5]:
            client.produce(data)
    broker.kill()
    broker.restart()
    with BrokerClient(broker) as client:
        answers = [client.produce(data) for data in batches]
        assert [(one["error_code"], one["base_offset"]) for one in answers] == [(0, number) for number in range(6)]
        broker.store.parts.partition_of(("orders", 0))._begin_step()  # as KeyboardInterrupt leaves it: it is read again
        answers = [client.produce(data) for data in batches]
        found = [(one["error_code"], one["base_offset"]) for one in answers]
        assert found == [(gap, -1), *((0, number) for number in range(1, 6))]
    broker.restart()
    with BrokerClient(broker) as client:  # a snapshot has one batch of each producer
        assert [client.produce(data)["error_code"] for data in batches] == [*[gap] * 5, 0]


def test_batches_behind_a_snapshot_are_known_after_a_kill(broker: Broker):
    with BrokerClient(broker) as client:
        client.create("orders")
        batches = batches_of(client, 4)
        for number, data in enumerate(batches):
            client.produce(data)
            if number == 1:
                broker.store.parts.partition_of(("orders", 0)).roll()
    broker.kill()
    broker.restart()
    with BrokerClient(broker) as client:  # the one in the snapshot, and those after it
        codes = [client.produce(data)["error_code"] for data in batches]
        assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0, 0, 0]


# transactions


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
def test_an_open_transaction_continues(broker: Broker, restart: Callable[[], None], is_commit: bool, is_new: bool):
    """Records and offsets from before and after restarts count together, or not at all."""
    version, ends_with, commits_with = (NEW, 5, 5) if is_new else (OLD, 4, 4)
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        if not is_new:
            assert add_partitions(client, begun, "orders") == [0]
            assert client.ask(ADD_OFFSETS, 4, named(begun, group_id="g"))["error_code"] == 0
        first = of(begun, "first", sequence=0)
        assert client.produce(first, version=version, transactional_id="t")["error_code"] == 0
        assert commit_offsets(client, begun, commits_with, 0) == 0
    restart()
    with BrokerClient(broker) as client:
        assert fetch_offset(client) == (0, -1)
        assert fetch_offset(client, require_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        read = client.fetch(0, isolation_level=1)
        assert (read["records"], read["high_watermark"], read["last_stable_offset"]) == (b"", 1, 0)
        again = client.produce(first, version=version, transactional_id="t")
        assert (again["error_code"], again["base_offset"]) == (0, 0)  # the log has its sequence
        second = of(begun, "second", sequence=1)
        assert client.produce(second, version=version, transactional_id="t")["error_code"] == 0
    restart()
    with BrokerClient(broker) as client:
        assert client.ask(END, ends_with, named(begun, committed=is_commit))["error_code"] == 0
        assert fetch_offset(client, require_stable=True) == (0, 0 if is_commit else -1)
        assert values_of(client.fetch(0, isolation_level=1)["records"]) == ["first", "second"]
    state = "committed" if is_commit else "aborted"
    assert in_log(broker) == [("first", state), ("second", state)]
    assert committed_values(broker) == (["first", "second"] if is_commit else [])
    restart()
    with BrokerClient(broker) as client:
        assert client.ask(END, ends_with, named(begun, committed=is_commit))["error_code"] == 0  # asked again
        assert fetch_offset(client) == (0, 0 if is_commit else -1)


def test_a_later_commit_outside_of_the_transaction_wins_as_before_the_restart(
    broker: Broker, restart: Callable[[], None]
):
    """Of two commits the one with the later record counts, also when the earlier one takes effect later."""
    with BrokerClient(broker) as client:
        client.create("orders")
        for _ in range(9):
            client.produce(batch("x"))
        begun = client.init("t")
        assert commit_offsets(client, begun, 5, 3) == 0
        partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        client.ask(8, 9, {"group_id": "g", "topics": [{"name": "orders", "partitions": [partition]}]})
    restart()
    with BrokerClient(broker) as client:
        assert client.ask(END, 5, named(begun, committed=True))["error_code"] == 0
        assert fetch_offset(client) == (0, 5)


def test_a_transaction_that_nobody_ends_is_aborted_by_its_timeout(broker: Broker, restart: Callable[[], None]):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t", timeout_ms=1)
        client.produce(of(begun, "late", sequence=0), version=NEW, transactional_id="t")
    restart()
    with BrokerClient(broker) as client:
        while client.fetch(0, isolation_level=1)["last_stable_offset"] == 0:
            sleep(0.05)
        refused = client.ask(END, 5, named(begun, committed=True))
        assert refused["error_code"] == ErrorCode.PRODUCER_FENCED
    assert in_log(broker) == [("late", "aborted")]


def test_another_producer_with_the_id_ends_the_transaction(broker: Broker, restart: Callable[[], None]):
    with BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        client.produce(of(begun, "first", sequence=0), version=NEW, transactional_id="t")
    restart()
    with BrokerClient(broker) as client:
        assert client.init("t")["producer_epoch"] > begun["producer_epoch"]
        late = client.produce(of(begun, "second", sequence=1), version=NEW, transactional_id="t")
        assert late["error_code"] in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert in_log(broker) == [("first", "aborted")]


def test_what_a_transaction_needs_after_a_crash_is_on_disk_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[str] = []
    sync = Partition.sync
    monkeypatch.setattr(Partition, "sync", lambda self: (synced.append(self.key[0]), sync(self))[1])
    with Broker(tmp_path, fsync="commit") as broker, BrokerClient(broker) as client:
        client.create("orders")
        begun = client.init("t")
        synced.clear()
        client.produce(of(begun, "first", sequence=0), version=NEW, transactional_id="t")
        assert synced == ["__transaction_state", "orders"]
        assert commit_offsets(client, begun, 5, 0) == 0
        assert synced[2:] == ["__transaction_state", "__consumer_offsets"]


def test_records_that_no_transactional_id_knows_of_are_aborted(broker: Broker):
    """A crash can keep records and lose the transaction that they belong to."""
    with BrokerClient(broker) as client:
        client.create("orders")
        client.produce(of(client.init("t"), "known", sequence=0), version=NEW, transactional_id="t")
    partition = broker.store.parts.partition_of(("orders", 0))
    lost = of({"producer_id": 1000, "producer_epoch": 0}, "unknown", sequence=0)
    partition.append_batch(ProducedBatch.checked(lost, partition.topic, 1), 1)
    broker.kill()
    broker.restart()
    assert in_log(broker) == [("known", "open"), ("unknown", "aborted")]
    broker.store.abort_transaction("t")


def test_a_store_aborts_what_a_broker_left_open(tmp_path: Path):
    """Producers of a store are part of its process, so nobody could end the transaction."""
    with Broker(tmp_path) as broker, BrokerClient(broker) as client:
        client.create("orders")
        client.produce(of(client.init("t"), "open", sequence=0), version=NEW, transactional_id="t")
    assert in_log(broker) == [("open", "open")]
    assert [one["code"] for one in kraftlog.open(tmp_path).findings().to_pylist()] == ["open_transaction"]
    kraftlog.LogStore(tmp_path).close()
    assert in_log(broker) == [("open", "aborted")]
    check(tmp_path)


def test_a_process_that_is_killed_continues_a_transaction_of_librdkafka(tmp_path: Path):
    """The producer does not notice: it writes on, and commits."""
    path, port = tmp_path / "log", None
    with Broker() as free:
        port = free.bootstrap_servers.rpartition(":")[2]

    def started() -> subprocess.Popen[bytes]:
        ready = tmp_path / "ready"
        ready.unlink(missing_ok=True)
        words = ["broker", str(path), "--port", port, "--ready-file", str(ready)]
        process = subprocess.Popen([sys.executable, "-m", "kraftlog", *words], stdout=subprocess.PIPE)
        while not ready.exists():
            assert process.poll() is None
            sleep(0.02)
        return process

    process = started()
    try:
        options = {"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": "t", "log_level": 0}
        producer = confluent_kafka.Producer(options | QUICK)
        producer.init_transactions(LIMIT)
        producer.begin_transaction()
        for number, value in enumerate(["one", "two", "three"]):
            if number:
                process.send_signal(signal.SIGKILL)
                process.wait()
                process = started()
            producer.produce("orders", value)
            assert producer.flush(LIMIT) == 0
        producer.commit_transaction(LIMIT)
    finally:
        process.kill()
        process.wait()
    with Broker(path) as broker:
        assert committed_values(broker) == ["one", "two", "three"]
    check(path)


# classic groups


def test_members_keep_their_place(broker: Broker, restart: Callable[[], None]):
    """The next heartbeat succeeds, and with it the next commit; ids, generation and assignments are the same."""
    with Member(broker) as one, Member(broker) as two:
        BrokerClient.create(one, "orders")
        one.join()
        one.sync({one.member_id: b"all"})
        two.send(two.join_frame())
        two.joined()
        two.send(two.join_frame())
        while one.heartbeat() == 0:
            pass
        one.join()
        two.joined()
        answers: list[bytes] = []
        waits = threading.Thread(target=lambda: answers.append(two.sync()["assignment"]))
        waits.start()
        one.sync({one.member_id: b"first", two.member_id: b"second"})
        waits.join(LIMIT)
        assert answers == [b"second"]
        ids, generation = [one.member_id, two.member_id], one.generation
    restart()
    with Member(broker) as one, Member(broker) as two:
        for member, member_id, assignment in zip((one, two), ids, (b"first", b"second"), strict=True):
            member.member_id, member.generation = member_id, generation
            assert member.heartbeat() == 0
            assert member.sync()["assignment"] == assignment
            assert member.commit(0) == 0
            member.generation -= 1
            assert member.heartbeat() == ErrorCode.ILLEGAL_GENERATION
        (group,) = one.ask(DESCRIBE_GROUPS, 6, {"groups": ["g"]})["groups"]
        assert (group["group_state"], group["protocol_data"]) == ("Stable", "range")
        assert {each["member_id"]: each["member_metadata"] for each in group["members"]} == dict.fromkeys(ids, b"m")
        left = one.ask(13, 5, {"group_id": "g", "members": [{"member_id": each} for each in ids]})
        assert [each["error_code"] for each in left["members"]] == [0, 0]
    restart()
    with Member(broker) as one:
        (group,) = one.ask(DESCRIBE_GROUPS, 6, {"groups": ["g"]})["groups"]
        assert (group["group_state"], group["protocol_type"], group["members"]) == ("Empty", "consumer", [])
        assert one.ask(DELETE_GROUPS, 2, {"groups_names": ["g"]})["results"][0]["error_code"] == 0
    restart()
    with Member(broker) as one:
        assert one.ask(16, 5, {})["groups"] == []


def test_a_static_member_that_starts_again_has_its_new_id_after_a_restart(broker: Broker, restart: Callable[[], None]):
    with Member(broker, instance="i") as before, Member(broker, instance="i") as after:
        before.join()
        before.sync({before.member_id: b"all"})
        assert after.join()["error_code"] == 0
    restart()
    with Member(broker, instance="i") as one:
        one.member_id, one.generation = before.member_id, before.generation
        assert one.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
        one.member_id = after.member_id
        assert one.heartbeat() == 0
        assert one.sync()["assignment"] == b"all"


def test_a_member_that_does_not_come_back_loses_its_place(broker: Broker, restart: Callable[[], None]):
    """Its session begins with the restart."""
    with Member(broker) as one:
        one.join()
        one.sync({one.member_id: b"all"})
    restart()
    with Member(broker) as two:
        two.send(two.join_frame(session_timeout_ms=SESSION_MS))
        two.joined()
        two.send(two.join_frame())
        answer = two.joined()
        assert (answer["error_code"], answer["leader"], len(answer["members"])) == (0, two.member_id, 1)


def test_the_table_of_groups_shows_them(broker: Broker):
    with Member(broker) as one:
        one.join()
        one.sync({one.member_id: b"all"})
        (group,) = kraftlog.open(broker.path).groups().to_pylist()
    assert (group["group"], group["state"], group["generation_or_epoch"]) == ("g", "Stable", 1)
    (member,) = group["members"]
    assert (member["member_id"], member["raw_assignment"], member["client_id"]) == (one.member_id, b"all", "c")


def test_a_consumer_of_librdkafka_keeps_its_partitions(broker: Broker, restart: Callable[[], None]):
    assigned: list[list[int]] = []
    with BrokerClient(broker) as client:
        client.create("orders")
    configs = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 100,
        "log_level": 0,
    }
    consumer = confluent_kafka.Consumer(configs | QUICK)
    consumer.subscribe(["orders"], on_assign=lambda _, some: assigned.append([one.partition for one in some]))
    for value in ("one", "two"):
        with broker.store.producer() as producer:
            producer.send("orders", value=value)
        message = None
        while message is None or message.error() is not None:
            message = consumer.poll(LIMIT)
        assert message.value().decode() == value
        consumer.commit(asynchronous=False)
        restart()
    consumer.commit(asynchronous=False, offsets=[confluent_kafka.TopicPartition("orders", 0, 2)])
    assert assigned == [[0]]
    consumer.close()
