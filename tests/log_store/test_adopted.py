"""Log directories without a metadata log become stores of the partitions that they have."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog import LogStore
from kraftlog.log_store.directory import existing_topics
from standing_clock import StandingClock


def test_the_partitions_of_a_broker(tmp_path: Path):
    logs = tmp_path / "logs"
    shutil.copytree(GOLDEN / "transactions" / "log", logs)
    last = max(kraftlog.open(logs).partition_transactions()["producer_id"].to_pylist())
    epochs = kraftlog.open(logs, topics=["orders"]).batches(["partition_leader_epoch"])["partition_leader_epoch"]
    transactions = kraftlog.open(logs).transactional_ids().to_pylist()
    before = {row["transactional_id"]: (row["producer_id"], row["producer_epoch"]) for row in transactions}
    clock = StandingClock()  # of the day of the log: after a week without transactions the ids expire
    clock.now = int(max(row["last_update_timestamp"] for row in transactions).timestamp() * 1000) + 60_000
    offsets = {
        (row["group"], row["topic"], row["partition"]): row["offset"]
        for row in kraftlog.open(logs).offsets().to_pylist()
        if row["state"] == "committed"
    }
    assert existing_topics(logs) == {"orders": 3}
    with pytest.raises(ValueError, match=r"is there, but no meta\.properties"):
        LogStore(logs)
    with LogStore(logs, adopts_partitions=True, clock=clock) as store:
        assert {name: topic.partitions for name, topic in store.topics.items()} == {"orders": 3}
        assert min(store.topics["orders"].leader_epochs) >= max(epochs.to_pylist()) - 1
        states = {each.transactional_id: each for each in store.transactional_ids()}
        assert states.keys() == before.keys()
        assert all(states[name].producer_id == producer_id for name, (producer_id, _) in before.items())
        assert {
            (group, *key): each.offset for group in store.groups() for key, each in store.committed(group).items()
        } == offsets
        with store.producer("another") as producer, producer.transaction():
            assert producer.producer_id > last
            producer.send("orders", value="new", partition=0)
    assert existing_topics(logs) == {"orders": 3}
    assert "open" not in kraftlog.open(logs).partition_transactions()["state"].to_pylist()
    with LogStore(logs) as store:
        assert store.topics["orders"].partitions == 3


def test_topic_ids_of_folders_are_kept(tmp_path: Path):
    with LogStore(tmp_path / "first") as store:
        store.create_topic("t", 2)
        topic_id = store.topics["t"].topic_id
        with store.producer() as producer:
            producer.send("t", pa.table({"value": ["a", "b"], "partition": [0, 1]}))
    shutil.copytree(tmp_path / "first" / "t-1", tmp_path / "second" / "t-1")
    with LogStore(tmp_path / "second", adopts_partitions=True) as store:
        assert (store.topics["t"].topic_id, store.topics["t"].partitions) == (topic_id, 2)
    rows = kraftlog.open(tmp_path / "second", topics=["t"]).records(["value"]).to_table()["value"].to_pylist()
    assert rows == [b"b"]
    with LogStore(tmp_path / "third") as store:
        store.create_topic("t", 1)
        with store.producer() as producer:
            producer.send("t", value="c")
    shutil.copytree(tmp_path / "first" / "t-1", tmp_path / "fourth" / "t-1")
    shutil.copytree(tmp_path / "third" / "t-0", tmp_path / "fourth" / "t-0")
    with pytest.raises(ValueError, match=r"t has different topic ids in its partition\.metadata files"):
        LogStore(tmp_path / "fourth", adopts_partitions=True)
    assert not (tmp_path / "fourth" / "meta.properties").exists()


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_folder_of_another_topic(tmp_path: Path, is_clean: bool):
    """It had the name before: a broker deletes it, and so does a store."""
    for name in ("old", "new"):
        with LogStore(tmp_path / name) as store:
            store.create_topic("t")
            if name == "old":
                with store.producer() as producer:
                    producer.send("t", value="old")
    shutil.copytree(tmp_path / "old" / "t-0", tmp_path / "new" / "t-0")
    if not is_clean:
        (tmp_path / "new" / ".kafka_cleanshutdown").unlink()
    with LogStore(tmp_path / "new") as store, store.producer() as producer:
        producer.send("t", value="new")
    records = kraftlog.open(tmp_path / "new", topics=["t"]).records(["value"])
    assert records.to_table()["value"].to_pylist() == [b"new"]


def test_the_leader_epoch_of_a_partition_stays(tmp_path: Path):
    (tmp_path / "t-0").mkdir()
    first = kraftlog.encode(pa.record_batch({"value": ["a"]}), partition_leader_epoch=5).to_pybytes()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(first)
    with (
        LogStore(tmp_path, adopts_partitions=True) as store,
        store.producer("etl") as producer,
        producer.transaction(),
    ):
        producer.send("t", value="b")
    epochs = kraftlog.open(tmp_path / "t-0").batches(["partition_leader_epoch"])["partition_leader_epoch"]
    assert epochs.to_pylist() == [5, 5, 5]  # of the record and its marker, too


def test_a_folder_that_the_metadata_do_not_know(tmp_path: Path):
    """One without a topic id was written by a tool, and is taken over; one with an id is of a deleted topic."""
    with LogStore(tmp_path) as store:
        store.create_topic("t", 1)
        with store.producer() as producer:
            producer.send("t", value="known")
    for name in ("told", "untold"):
        shutil.copytree(tmp_path / "t-0", tmp_path / f"{name}-0")
    (tmp_path / "untold-0" / "partition.metadata").unlink()
    with LogStore(tmp_path) as store:
        for name in ("told", "untold"):
            store.create_topic(name, 1)
            with store.producer() as producer:
                producer.send(name, value="new")
    for name, expected in (("told", [b"new"]), ("untold", [b"known", b"new"])):
        records = kraftlog.open(tmp_path, topics=[name]).records(["value"])
        assert records.to_table()["value"].to_pylist() == expected
    assert [fault.message for fault in kraftlog.open(tmp_path).verify()] == []
