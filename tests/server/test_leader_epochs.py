"""Leader epochs: where each of them ends, and requests of clients that know older or newer ones (KIP-320)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from broker_client import BrokerClient, batch
from test_connections import Client

import kraftlog
from kraftlog.protocol.error_code import ErrorCode
from kraftlog.server.broker import Broker
from kraftlog.server.log_server import LogServer

KILLED = Path(__file__).parents[1] / "golden" / "releases" / "3.9.1" / "killed" / "log"
FETCH, LIST_OFFSETS, METADATA, LEADER_EPOCH = 1, 2, 3, 23
EPOCHS = [(1, 0), (1, 2), (4, 3), (4, 5), (7, 9)]  # of batches, with their base offsets
END = 12
FENCED, UNKNOWN = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LogServer]:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    ends = [offset for _, offset in EPOCHS[1:]] + [END]
    for (epoch, offset), end in zip(EPOCHS, ends, strict=True):
        rows = pa.table({"value": [f"{number}" for number in range(offset, end)]})
        data = kraftlog.encode(rows, base_offset=offset, partition_leader_epoch=epoch)
        with (folder / f"{offset // 5 * 5:020}.log").open("ab") as file:  # a segment begins within epoch 4
            file.write(data)
    with LogServer(tmp_path) as running:
        yield running


def epoch_end(client: Client, epoch: int, version: int = 4, **others: Any) -> tuple[int, int, int]:
    """Return error code, leader epoch and end offset."""
    partitions = [{"partition": 0, "leader_epoch": epoch} | others]
    answer = client.ask(LEADER_EPOCH, version, {"topics": [{"topic": "orders", "partitions": partitions}]})
    (one,) = answer["topics"][0]["partitions"]
    return one["error_code"], one["leader_epoch"], one["end_offset"]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_ends_of_epochs(server: LogServer, version: int):
    with Client(server) as client:
        found = {epoch: epoch_end(client, epoch, version) for epoch in range(-2, 9)}
    assert found == {
        -2: (0, -2, 0),  # before the first epoch: its start, as Kafka answers
        -1: (0, -1, -1),
        0: (0, 0, 0),
        1: (0, 1, 3),
        2: (0, 1, 3),
        3: (0, 1, 3),
        4: (0, 4, 9),
        5: (0, 4, 9),
        6: (0, 4, 9),
        7: (0, 7, END),
        8: (0, -1, -1),
    }


def test_older_and_newer_epochs_of_clients(server: LogServer):
    """Of the epoch that a client knows from its metadata; -1 is not checked."""
    with Client(server) as client:
        (topic,) = client.ask(METADATA, 12, {"topics": [{"name": "orders"}]})["topics"]
        assert [one["leader_epoch"] for one in topic["partitions"]] == [7]
        for known, code in ((-1, 0), (6, FENCED), (7, 0), (8, UNKNOWN)):
            assert epoch_end(client, 1, current_leader_epoch=known)[0] == code
            one = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100, "current_leader_epoch": known}
            topics = [{"topic": "orders", "partitions": [one]}]
            fetched = client.ask(FETCH, 12, {"max_wait_ms": 0, "min_bytes": 1, "topics": topics})
            (partition,) = fetched["responses"][0]["partitions"]
            assert (partition["error_code"], bool(partition["records"])) == (code, code == 0)
            partitions = [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": known}]
            values = {"topics": [{"name": "orders", "partitions": partitions}]}
            (listed,) = client.ask(LIST_OFFSETS, 7, values)["topics"][0]["partitions"]
            assert (listed["error_code"], listed["offset"]) == (code, -1 if code else END)


def test_unknown_partitions(server: LogServer):
    with Client(server) as client:
        asked = [("orders", 1), ("orders", -1), ("nothing", 0), ("", 0)]
        topics = [{"topic": name, "partitions": [{"partition": number, "leader_epoch": 1}]} for name, number in asked]
        answer = client.ask(LEADER_EPOCH, 4, {"topics": topics})
    found = [
        (one["topic"], each["partition"], each["error_code"]) for one in answer["topics"] for each in one["partitions"]
    ]
    assert found == [(*one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for one in asked]


@pytest.mark.parametrize(
    ("last_epoch", "offset", "expected"),
    [
        (7, 10, None),
        (4, 9, None),
        (4, 10, (4, 9)),  # the reader has records of epoch 4 that this log does not have
        (6, 9, (4, 9)),
        (1, 2, None),
        (-1, 10, None),
        (8, 10, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_a_reader_whose_log_diverges(server: LogServer, last_epoch: int, offset: int, expected: Any):
    one = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 100, "last_fetched_epoch": last_epoch}
    with Client(server) as client:
        topics = [{"topic": "orders", "partitions": [one]}]
        answer = client.ask(FETCH, 12, {"max_wait_ms": 60_000, "min_bytes": 1, "topics": topics})
    (partition,) = answer["responses"][0]["partitions"]
    if isinstance(expected, int):
        assert partition["error_code"] == expected
        return
    diverging = partition["diverging_epoch"]
    assert (diverging["epoch"], diverging["end_offset"]) == (expected or (-1, -1))
    assert bool(partition["records"]) == (expected is None)


def test_a_session_is_told_of_divergence_until_it_ends(server: LogServer):
    """The reader has to truncate its log, whether or not it has got the first answer."""
    one = {"partition": 0, "fetch_offset": 10, "partition_max_bytes": 100, "last_fetched_epoch": 4}
    diverging, session_id = {"epoch": 4, "end_offset": 9}, 0
    with Client(server) as client:
        for epoch in range(3):
            topics = [] if epoch else [{"topic": "orders", "partitions": [one]}]
            values = {"session_id": session_id, "session_epoch": epoch, "min_bytes": 0, "topics": topics}
            answer = client.ask(FETCH, 12, values)
            session_id = answer["session_id"]
            (partition,) = answer["responses"][0]["partitions"]
            assert {name: partition["diverging_epoch"][name] for name in diverging} == diverging


@pytest.mark.parametrize(("offset", "expected"), [(4, ErrorCode.OFFSET_OUT_OF_RANGE), (5, 0)])
def test_a_reader_before_the_start_of_the_log_is_told_that_and_no_divergence(
    tmp_path: Path, offset: int, expected: int
):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for base_offset, epoch in ((5, 1), (7, 3)):
        data = kraftlog.encode(pa.table({"value": ["a", "b"]}), base_offset=base_offset, partition_leader_epoch=epoch)
        with (folder / f"{5:020}.log").open("ab") as file:
            file.write(data)
    one = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 100, "last_fetched_epoch": 2}
    with LogServer(tmp_path) as server, Client(server) as client:
        values = {"max_wait_ms": 0, "min_bytes": 1, "topics": [{"topic": "orders", "partitions": [one]}]}
        (partition,) = client.ask(FETCH, 12, values)["responses"][0]["partitions"]
    assert partition["error_code"] == expected
    assert partition["diverging_epoch"]["epoch"] == (-1 if expected else 1)


def test_a_log_without_epochs_is_not_checked(tmp_path: Path):
    (tmp_path / "orders-0").mkdir()
    data = kraftlog.encode(pa.table({"value": ["one"]}), partition_leader_epoch=-1)
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(data)
    with LogServer(tmp_path) as server, Client(server) as client:
        assert epoch_end(client, 0) == (0, -1, -1)
        assert epoch_end(client, 0, current_leader_epoch=5)[0] == 0


def test_a_log_that_cannot_be_read(tmp_path: Path):
    """The topic is known all the same; what its log would say is an error."""
    (tmp_path / "orders-0").mkdir()
    path = tmp_path / "orders-0" / f"{0:020}.log"
    path.write_bytes(kraftlog.encode(pa.table({"value": ["one"]}), partition_leader_epoch=3))
    with LogServer(tmp_path) as server, Client(server) as client:
        path.unlink()
        (topic,) = client.ask(METADATA, 12, {"topics": [{"name": "orders"}]})["topics"]
        assert [(one["leader_epoch"], one["leader_id"]) for one in topic["partitions"]] == [(-1, 1)]
        assert epoch_end(client, 3)[0] in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE)
        assert server.faults


def test_a_broker_that_continues_the_log_of_kafka(tmp_path: Path):
    """Its log has two epochs; a third one begins where the broker of this package begins."""
    path = tmp_path / "log"
    shutil.copytree(KILLED, path)
    rows = (path / "orders-0" / "leader-epoch-checkpoint").read_text().split("\n")[2:4]
    entries = [tuple(map(int, row.split())) for row in rows]
    assert [epoch for epoch, _ in entries] == [0, 2]
    with Broker(path) as broker, BrokerClient(broker) as client:
        end = broker.store.parts.partition_of(("orders", 0)).next_offset
        (topic,) = client.ask(METADATA, 12, {"topics": [{"name": "orders"}]})["topics"]
        current = next(one["leader_epoch"] for one in topic["partitions"] if one["partition_index"] == 0)
        assert current >= 2
        client.produce(batch("one"))
        assert epoch_end(client, 0) == (0, 0, entries[1][1])
        assert epoch_end(client, current) == (0, current, end + 1)
        assert epoch_end(client, 0, current_leader_epoch=current - 1)[0] == FENCED
        broker.store.delete_records("orders", 0, end)
        assert epoch_end(client, 0) == (0, 0, end)  # its records are deleted: the log starts here
        assert epoch_end(client, current) == (0, current, end + 1)


def test_a_new_topic(tmp_path: Path):
    with Broker(tmp_path) as broker, BrokerClient(broker) as client:
        client.create("orders")
        assert epoch_end(client, 0) == (0, 0, 0)
        client.produce(batch("one", "two"))
        assert epoch_end(client, 0, current_leader_epoch=0) == (0, 0, 2)
        assert epoch_end(client, 1) == (0, -1, -1)


def test_librdkafka_notices_a_log_that_ends_before_its_position(server: LogServer):
    """A position with an epoch that has ended before it, as after an unclean election: it reads on at that end."""
    options = {"bootstrap.servers": server.bootstrap_servers, "group.id": "g", "auto.offset.reset": "latest"}
    consumer = confluent_kafka.Consumer(options | {"enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 11, leader_epoch=4)])
    message = consumer.poll(30)
    assert message is not None
    assert message.error() is None, message.error()
    assert message.offset() == 9
    consumer.close()
