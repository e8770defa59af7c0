"""A store as a log directory: topics, opening and closing it, what it refuses."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

import kraftlog
from faulty_disk import FaultyDisk, Step, no_space, since
from kraftlog import LogStore
from kraftlog.disk.lock import LogDirectoryLockedError
from kraftlog.layout.checkpoints import CLEANER_OFFSETS, LOG_START_OFFSETS, read_offset_checkpoint
from kraftlog.log_store.cluster import Cluster
from kraftlog.log_store.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidTopicError,
    StorageError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kraftlog.log_store.partition import BatchOptions
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.topics import LONGEST_NAME
from kraftlog.write.offset_checkpoint import set_offsets

Opened = Callable[..., LogStore]


def values(path: Path, topic: str = "orders", **options: str) -> list[bytes]:
    return kraftlog.open(path, topics=[topic]).records(["value"], **options).to_table()["value"].to_pylist()


def with_old_records(store: LogStore, name: str) -> None:
    """Close a store with a topic of two partitions that have records, some of which a broker has deleted."""
    store.create_topic(name, 2)
    with store.producer() as producer:
        for partition in range(2):
            producer.send(name, pa.table({"value": ["old"] * 5}), partition=partition)
    with store.consumer("g") as consumer:
        consumer.commit({(name, 0): 5})
    store.close()
    for checkpoint in (LOG_START_OFFSETS, CLEANER_OFFSETS):
        set_offsets(store.path / checkpoint, {(name, 0): 2, (name, 1): 2})


def test_topics_stay(opened: Opened):
    with opened() as store:
        store.create_topic("orders", 3, {"retention.ms": -1, "segment.bytes": 1 << 20})
        store.create_topic("a.b")
    with opened() as store:
        assert {name: (topic.partitions, dict(topic.configs)) for name, topic in store.topics.items()} == {
            "a.b": (1, {}),
            "orders": (3, {"retention.ms": "-1", "segment.bytes": "1048576"}),
        }
        assert store.topics["orders"].topic_id == (3).to_bytes(16)


def test_what_the_directory_holds(opened: Opened, tmp_path: Path):
    with opened() as store:
        store.create_topic("orders", 2)
        with store.producer() as producer:
            producer.send("orders", value="x", partition=1)
        assert not (tmp_path / "store/.kafka_cleanshutdown").exists()
    folder = tmp_path / "store"
    assert sorted(path.name for path in folder.iterdir()) == [
        ".kafka_cleanshutdown",
        ".lock",
        "__cluster_metadata-0",
        "meta.properties",
        "orders-1",
        "recovery-point-offset-checkpoint",
    ]
    assert (folder / "meta.properties").read_text() == (
        "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAg\n"
    )
    assert (folder / "orders-1/partition.metadata").read_text() == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAw"
    assert kraftlog.open(folder).errors().to_pylist() == []


def test_metadata_are_what_a_broker_expects(opened: Opened, tmp_path: Path):
    with opened(node_id=4) as store:
        store.create_topic("orders", 2, {"cleanup.policy": "compact"})
        store.producer()
    image = kraftlog.open(tmp_path / "store").image().image
    assert dict(image.feature_levels()) == {"metadata.version": 25, "group.version": 1, "transaction.version": 2}
    tables = {name: table.to_pylist() for name, table in image.tables().items()}
    assert [(row["partition_id"], row["replicas"], row["isr"], row["leader"]) for row in tables["PartitionRecord"]] == [
        (0, [4], [4], 4),
        (1, [4], [4], 4),
    ]
    assert [row["directories"] for row in tables["PartitionRecord"]] == [[(2).to_bytes(16)]] * 2
    assert [(row["broker_id"], row["next_producer_id"]) for row in tables["ProducerIdsRecord"]] == [(-1, 1000)]


def registrations(folder: Path) -> list[tuple[int, str]]:
    """Return the offset of each registration of a broker, and the type of the record after it."""
    rows = kraftlog.open(folder).messages(columns=["offset", "type"]).to_table().to_pylist()
    following = {row["offset"] - 1: row["type"] for row in rows}
    return [(row["offset"], following.get(row["offset"])) for row in rows if row["type"] == "RegisterBrokerRecord"]


def test_the_node_is_registered_before_its_partitions(opened: Opened, tmp_path: Path):
    """As fenced and without endpoints: no node is running."""
    with opened(node_id=4) as store:
        store.create_topic("orders", 2)
    assert registrations(tmp_path / "store") == [(4, "TopicRecord")]
    with opened() as store:
        store.create_topic("payments", 1)
    assert registrations(tmp_path / "store") == [(4, "TopicRecord")]
    table = kraftlog.open(tmp_path / "store").image().image.tables()["RegisterBrokerRecord"]
    (broker,) = table.to_pylist()
    directory_id = (2).to_bytes(16)
    assert {name: broker[name] for name in ("broker_id", "fenced", "end_points", "rack", "log_dirs")} == {
        "broker_id": 4,
        "fenced": True,
        "end_points": [],
        "rack": None,
        "log_dirs": [directory_id],
    }


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize("has_directory_id", [True, False])
def test_a_node_that_is_not_registered_is_registered_once(
    opened: Opened, tmp_path: Path, was_clean: bool, has_directory_id: bool
):
    """Directories of earlier versions, and nodes that an administrator has unregistered."""
    folder = tmp_path / "store"
    with mock.patch.object(Cluster, "_registration", return_value=pa.array([], pa.binary())), opened() as store:
        store.create_topic("orders", 2)
    assert registrations(folder) == []
    if not was_clean:
        (folder / ".kafka_cleanshutdown").unlink()
    if not has_directory_id:
        properties = folder / "meta.properties"
        lines = properties.read_text().splitlines(keepends=True)
        properties.write_text("".join(line for line in lines if not line.startswith("directory.id")))
    for _ in range(2):
        with opened() as store:
            assert list(store.topics) == ["orders"]
        assert len(registrations(folder)) == 1
    (broker,) = kraftlog.open(folder).image().image.tables()["RegisterBrokerRecord"].to_pylist()
    assert broker["log_dirs"] == ([(2).to_bytes(16)] if has_directory_id else [])


def test_a_deleted_topic_is_gone(opened: Opened, tmp_path: Path):
    with opened() as store:
        store.create_topic("orders", 2)
        with store.producer() as producer:
            producer.send("orders", pa.table({"value": ["x"] * 9, "partition": [0, 1, 0] * 3}))
        with store.consumer("g") as consumer:
            consumer.assign([("orders", 0)])
            assert consumer.poll().num_rows == 6
            consumer.commit()
        store.delete_topic("orders")
        assert (store.topics, store.committed("g"), store.groups()) == ({}, {}, [])
        with pytest.raises(UnknownTopicOrPartitionError, match="no such topic"):
            store.delete_topic("orders")
        assert not list((tmp_path / "store").glob("orders*"))
        store.create_topic("orders", 1)
    with opened() as store:
        assert (list(store.topics), store.committed("g")) == (["orders"], {})
        with store.consumer() as consumer:
            consumer.subscribe(["orders"])
            assert consumer.poll().num_rows == 0


@pytest.mark.parametrize(
    ("name", "partitions", "configs", "error", "says"),
    [
        ("orders", 1, {}, TopicExistsError, "exists"),
        ("__consumer_offsets", 1, {}, InvalidTopicError, "internal to Kafka"),
        ("__cluster_metadata", 1, {}, InvalidTopicError, "internal to Kafka"),
        ("", 1, {}, InvalidTopicError, "1 to 249 characters"),
        ("a b", 1, {}, InvalidTopicError, "1 to 249 characters"),
        ("..", 1, {}, InvalidTopicError, "1 to 249 characters"),
        ("x" * 250, 1, {}, InvalidTopicError, "1 to 249 characters"),
        ("a.b", 1, {}, InvalidTopicError, "collides with 'a_b'"),
        ("t", 0, {}, InvalidPartitionsError, "at least 1"),
        ("t", 1, {"retention": 1}, InvalidConfigError, "unknown configuration 'retention'"),
        ("t", 1, {"retention.ms": "soon"}, InvalidConfigError, "not a number between -1"),
        ("t", 1, {"segment.bytes": 100}, InvalidConfigError, "not a number between 1048576"),
        ("t", 1, {"message.timestamp.type": "LogAppendTime"}, InvalidConfigError, "is 'CreateTime' in a store, found"),
        ("t", 1, {"cleanup.policy": "keep"}, InvalidConfigError, "not delete, compact or both"),
    ],
)
def test_refused_topics(opened: Opened, name: str, partitions: int, configs: dict, error: type[Exception], says: str):
    with opened() as store:
        store.create_topic("orders")
        store.create_topic("a_b")
        with pytest.raises(error, match=says):
            store.create_topic(name, partitions, configs)
        assert list(store.topics) == ["a_b", "orders"]


def test_a_second_store_is_refused(opened: Opened):
    with opened(), pytest.raises(LogDirectoryLockedError):
        opened()
    opened().close()


def _open_elsewhere(path: Path, result: multiprocessing.Queue) -> None:
    try:
        LogStore(path).close()
        result.put("opened")
    except LogDirectoryLockedError as error:
        result.put(str(error))


def test_a_second_process_is_refused(opened: Opened, tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    with opened():
        result = context.Queue()
        process = context.Process(target=_open_elsewhere, args=(tmp_path / "store", result))
        process.start()
        found = result.get(timeout=60)
        process.join()
    assert "held by a broker or another writer" in found


def test_folders_of_others_are_refused(opened: Opened, tmp_path: Path):
    (tmp_path / "store/orders-0").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"orders-0 is there, but no meta\.properties"):
        opened()
    with pytest.raises(ValueError, match="fsync 'never' is not one of commit, batch, close"):
        LogStore(tmp_path / "other", fsync="never")


def test_a_closed_store(opened: Opened):
    store = opened()
    store.create_topic("orders")
    producer, consumer = store.producer(), store.consumer()
    consumer.subscribe(["orders"])
    store.close()
    store.close()
    for call in (store.producer, store.consumer, lambda: store.create_topic("t"), store.flush):
        with pytest.raises(ValueError, match="the store is closed"):
            call()
    producer.send("orders", value="x")
    with pytest.raises(ValueError, match="the store is closed"):
        producer.flush()
    with pytest.raises(ValueError, match="the store is closed"):
        consumer.poll()


def test_a_store_that_was_not_closed(opened: Opened, tmp_path: Path):
    """What was flushed is there; a tail that a crash has torn is cut off."""
    store = opened()
    store.create_topic("orders")
    producer = store.producer()
    producer.send("orders", value="kept")
    producer.flush()
    store._abandon()
    log = tmp_path / "store/orders-0/00000000000000000000.log"
    log.write_bytes(log.read_bytes() + b"\0\0\0\0torn")
    with opened() as again, again.producer() as other:
        other.send("orders", value="more")
    assert values(tmp_path / "store") == [b"kept", b"more"]


def test_a_full_disk(opened: Opened, tmp_path: Path, without_waiting: FaultyDisk):
    """Nothing is lost that was flushed, the error has Kafka's name, and the directory is not called clean."""
    store = opened()
    store.create_topic("orders")
    producer = store.producer()
    producer.send("orders", value="kept")
    producer.flush()
    without_waiting.fails = since(len(without_waiting.steps), no_space)
    producer.send("orders", value="lost")
    with pytest.raises(StorageError, match="No space left on device") as caught:
        producer.flush()
    assert caught.value.kafka_code == 56
    with pytest.raises(StorageError):
        producer.send("orders", value="later")
    without_waiting.fails = lambda step: None
    store.close()
    assert not (tmp_path / "store/.kafka_cleanshutdown").exists()
    with opened() as again:
        producer = again.producer()
        producer.send("orders", value="more")
        producer.flush()
    assert values(tmp_path / "store") == [b"kept", b"more"]


def test_a_full_disk_can_be_read(opened: Opened, tmp_path: Path, without_waiting: FaultyDisk):
    """A store that was not closed writes when it is opened; readers of its directory do not."""
    store = opened()
    store.create_topic("orders")
    producer = store.producer("etl")
    with producer.transaction():
        producer.send("orders", value="kept")
        producer.send_offsets_to_transaction({("orders", 0): 1}, "g")
    producer.begin_transaction()
    producer.send("orders", value="open")
    producer.flush()
    store._abandon()
    without_waiting.fails = lambda step: no_space() if step.name in ("append", "create", "make_folder") else None
    with pytest.raises(StorageError, match=r"No space left on device; kraftlog\.open can still read"):
        opened()
    steps = len(without_waiting.steps)
    path = tmp_path / "store"
    assert values(path, isolation_level="read_committed") == [b"kept"]
    offsets = kraftlog.open(path).offsets().to_pylist()
    assert [(row["group"], row["topic"], row["offset"]) for row in offsets] == [("g", "orders", 1)]
    assert len(without_waiting.steps) == steps
    without_waiting.fails = lambda step: None
    with opened() as again, again.producer("etl") as producer, producer.transaction():
        producer.send("orders", value="more")
    assert values(path, isolation_level="read_committed") == [b"kept", b"more"]


def test_a_store_that_was_closed_is_consumed_on_a_full_disk(opened: Opened, without_waiting: FaultyDisk):
    with opened() as store:
        store.create_topic("orders")
        with store.producer() as producer:
            producer.send("orders", value="kept")
    without_waiting.fails = lambda step: no_space() if step.name in ("append", "create", "make_folder") else None
    store = opened()
    consumer = store.consumer()
    consumer.assign([("orders", 0)])
    assert consumer.poll()["value"].to_pylist() == [b"kept"]
    with pytest.raises(StorageError, match="No space left on device"):
        store.close()


def test_what_fails_of_topics_has_the_name_of_kafkas_error(opened: Opened, without_waiting: FaultyDisk):
    store = opened()
    store.create_topic("orders")
    for work in (lambda: store.create_topic("other"), lambda: store.delete_topic("orders"), store.close):
        without_waiting.fails = since(len(without_waiting.steps), no_space)
        with pytest.raises(StorageError, match="No space left on device"):
            work()
        without_waiting.fails = lambda step: None


def test_segments_are_rolled(opened: Opened, tmp_path: Path):
    with opened() as store:
        store.create_topic("orders", 1, {"internal.segment.bytes": 4096})
        with store.producer(max_batch_bytes=1000) as producer:
            producer.send("orders", pa.table({"value": [b"x" * 90] * 200}))
        with store.consumer() as consumer:
            consumer.subscribe(["orders"])
            assert consumer.poll()["offset"].to_pylist() == list(range(200))
    segments = kraftlog.open(tmp_path / "store/orders-0").segments().to_pylist()
    assert len(segments) > 4
    assert all(segment["size_in_bytes"] <= 4096 and segment["clean"] for segment in segments)


def test_no_client_writes_what_is_of_kafka_itself(opened: Opened):
    with opened() as store:
        with store.consumer("g") as consumer:
            consumer.commit({("t", 0): 1})
        producer = store.producer()
        for name in ("__consumer_offsets", "__transaction_state", "__cluster_metadata"):
            with pytest.raises(InvalidTopicError, match="internal to Kafka"):
                producer.send(name, value="x")
            with pytest.raises(InvalidTopicError, match="internal to Kafka"):
                store.delete_topic(name)
    opened().close()


def test_producers_of_a_closed_store_write_nothing(opened: Opened, tmp_path: Path):
    store = opened()
    store.create_topic("t")
    producer, partition = store.producer("etl"), store._open_partition(("t", 0))
    store.close()
    before = {path: path.stat().st_size for path in (tmp_path / "store").rglob("*.log")}
    with opened():
        with pytest.raises((ValueError, StorageError), match="closed"):
            producer.init_transactions()
        with pytest.raises(StorageError, match="the partition is closed"):
            partition.append_rows(pa.record_batch({"value": ["x"]}), Stamp(), BatchOptions(), timestamp_ms=1)
        assert {path: path.stat().st_size for path in before} == before


def test_a_crash_while_a_topic_is_deleted(opened: Opened, without_waiting: FaultyDisk, tmp_path: Path):
    """At each step: its records do not come back with a new topic of its name, and no record of that is skipped."""
    name = "x" * LONGEST_NAME
    with_old_records(opened(offsets_partitions=1), name)
    old = (tmp_path / "store").rename(tmp_path / "old")

    def deleted(stops_at: int) -> list[Step]:
        """Delete the topic until it is stopped; return the steps of that."""
        shutil.copytree(old, tmp_path / "store")
        store = opened()
        before = len(without_waiting.steps)
        without_waiting.fails = since(before + stops_at, KeyboardInterrupt)
        with suppress(KeyboardInterrupt):
            store.delete_topic(name)
        without_waiting.fails = lambda _: None
        store._abandon()
        return without_waiting.steps[before:]

    def check_a_new_one() -> None:
        with opened() as store:
            if name in store.topics:
                store.delete_topic(name)
            assert store.committed("g") == {}
            store.create_topic(name)
            assert not list(store.path.glob(f"{name}-?"))  # readers of files see nothing of the old one, either
            with store.producer() as producer:
                producer.send(name, pa.table({"value": ["new"] * 3}))
            with store.consumer("g") as consumer:
                consumer.subscribe([name])
                assert consumer.poll()["offset"].to_pylist() == [0, 1, 2]
            assert read_offset_checkpoint(store.path / CLEANER_OFFSETS) == {}
            store.delete_topic(name)
            assert not list(store.path.glob(f"{name}-?"))
        shutil.rmtree(store.path)

    steps = deleted(stops_at=1000)
    check_a_new_one()
    decided = max(number for number, step in enumerate(steps) if step.path.parent.name == "__cluster_metadata-0")
    assert [step.name for step in steps[decided:]].count("remove_tree") == 2
    for number in range(decided - 1, len(steps)):
        deleted(number)
        check_a_new_one()


@pytest.mark.parametrize("wrong", [b"x", 5, ""])
def test_ids_that_are_no_text(opened: Opened, wrong: object):
    with opened() as store:
        store.producer("fine")
        with pytest.raises(ValueError, match="is not a nonempty text"):
            store.producer(wrong)  # type: ignore[arg-type]
        store.flush()
