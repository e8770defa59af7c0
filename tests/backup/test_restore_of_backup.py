"""A cluster is restored from a backup as from the log directory that was backed up."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlog
from kraftlog.times import text_of
from standing_clock import StandingClock


@pytest.mark.parametrize("names_backup", [True, False])
def test_records_and_groups_are_those_of_the_source(tmp_path: Path, *, names_backup: bool) -> None:
    with kraftlog.LogStore(tmp_path / "store") as store:
        store.create_topic("orders", partitions=2)
        with store.producer(transactional_id="checkout") as producer, producer.transaction():
            producer.send("orders", value="first", partition=0)
            producer.send("orders", value="second", partition=1)
            producer.send_offsets_to_transaction({("orders", 0): 1}, group="billing")
    manifest = kraftlog.Repository(tmp_path / "nightly").backup(tmp_path / "store")
    backup = f"{tmp_path / 'nightly'}@{manifest.name}" if names_backup else tmp_path / "nightly"
    done = kraftlog.restore(backup, tmp_path / "cluster", nodes=1, cut="end")
    assert done.faults == []
    assert done.groups == {"billing": {"orders-0": 1}}
    columns = ["topic", "partition", "offset", "value"]
    restored, source = (
        kraftlog.open(path, topics=["orders"]).records(columns, isolation_level="read_committed").to_table()
        for path in (tmp_path / "cluster" / "node-1" / "logs-0", tmp_path / "store")
    )
    assert restored.equals(source)
    assert restored["value"].to_pylist() == [b"first", b"second"]


def test_the_metadata_is_that_of_the_time_of_the_path(tmp_path: Path) -> None:
    clock = StandingClock()
    with kraftlog.LogStore(tmp_path / "store", clock=clock) as store, store.producer() as producer:
        store.create_topic("early")
        producer.send("early", value="first")
        producer.flush()
        time = clock.now + 500
        clock.now += 1000
        store.create_topic("late")
        producer.send("late", value="second")
        producer.send("early", value="third")
    kraftlog.Repository(tmp_path / "nightly").backup(tmp_path / "store")
    done = kraftlog.restore(f"{tmp_path / 'nightly'}@{text_of(time)}", tmp_path / "cluster")
    records = {one.topic: one.written.records for one in done.partitions if one.written}
    assert {topic: count for topic, count in records.items() if not topic.startswith("__")} == {"early": 1}
    assert done.faults == []
    (directory,) = (tmp_path / "cluster").glob("node-*/logs-*")
    image = kraftlog.open(directory).image().image
    assert "late" not in {row["name"] for row in image.tables()["TopicRecord"].to_pylist()}
