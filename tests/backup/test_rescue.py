"""``kraftlog rescue``: what new controllers start from, and what is said to be lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import kraftlog
from command_line import run_command
from golden_files import GOLDEN
from kraftlog import LogStore
from kraftlog.layout.checkpoints import read_properties
from kraftlog.metadata_log.voters import voters_of

CLUSTER = "a3JhZnRsb2ctaW50ZXJvcA"
VOTERS = ["7@127.0.0.1:9093", "8@localhost:9095"]
METADATA = GOLDEN / "metadata" / "log"


def image_of(directory: Path) -> kraftlog.metadata_log.image_at.ImageAt:  # type: ignore[name-defined]
    return kraftlog.open(directory).image()


@pytest.mark.parametrize("quorum", ["static", "dynamic"])
def test_controllers_get_the_image(tmp_path: Path, quorum: str) -> None:
    """All records but the registrations of the controllers that are gone; each voter its own directory id."""
    done = kraftlog.rescue(METADATA, tmp_path / "new", voters=VOTERS, cluster_id=CLUSTER, quorum=quorum)
    source = image_of(METADATA)
    assert (done.offset, done.epoch, done.losses, done.faults) == (source.offset, source.epoch, [], [])
    ids = set()
    for node in (7, 8):
        directory = tmp_path / "new" / f"node-{node}" / "logs-0"
        at = image_of(directory)
        assert (at.offset, at.epoch) == (source.offset, source.epoch + 1)
        for name, table in source.image.tables().items():
            rows = at.image.tables()[name]
            assert rows.equals(table) or (name == "RegisterControllerRecord" and not rows.num_rows)
        properties = read_properties(directory / "meta.properties")
        assert (properties["cluster.id"], properties["node.id"]) == (CLUSTER, str(node))
        ids.add(properties["directory.id"])
        segments = kraftlog.open(next(directory.glob("*/*.checkpoint"))).found.segments
        assert voters_of(segments, []) == (frozenset({7, 8}) if quorum == "dynamic" else None)
        text = (directory.parent / "server.properties").read_text()
        assert ("controller.quorum.voters=" in text) == (quorum == "static")
    assert len(ids) == 2
    of_brokers = (tmp_path / "new" / "brokers.properties").read_text().splitlines()
    voters = "controller.quorum.voters=7@127.0.0.1:9093,8@localhost:9095"
    servers = "controller.quorum.bootstrap.servers=127.0.0.1:9093,localhost:9095"
    assert of_brokers[-1] == (voters if quorum == "static" else servers)


def test_a_damaged_tail_is_named(tmp_path: Path) -> None:
    log = shutil.copytree(METADATA, tmp_path / "log")
    (segment, *_) = sorted((log / "__cluster_metadata-0").glob("*.log"), reverse=True)
    data = bytearray(segment.read_bytes())
    data[-20] ^= 1
    segment.write_bytes(data)
    done = kraftlog.rescue(log, tmp_path / "new", voters=VOTERS, cluster_id=CLUSTER)
    assert done.offset < image_of(METADATA).offset
    assert [fault.error for fault in done.faults] == ["bad_crc"]
    assert segment.read_bytes() == data


@pytest.fixture
def brokers(tmp_path: Path) -> Path:
    with LogStore(tmp_path / "broker") as store:
        store.create_topic("orders")
        with store.producer() as producer:
            producer.send("orders", value="one")
    shutil.copytree(tmp_path / "broker", tmp_path / "old")
    with LogStore(tmp_path / "broker") as store:
        store.create_topic("later", partitions=2)
        with store.producer() as producer:
            producer.send("later", value="one", partition=1)
    return tmp_path


def test_partitions_that_the_metadata_does_not_know_are_named(brokers: Path) -> None:
    """With the metadata log of an earlier time, and the data of a later one."""
    shutil.rmtree(brokers / "broker" / "__cluster_metadata-0")
    shutil.copytree(brokers / "old" / "__cluster_metadata-0", brokers / "broker" / "__cluster_metadata-0")
    done = kraftlog.rescue(brokers / "broker", brokers / "new", voters=VOTERS, dry_run=True)
    assert not (brokers / "new").exists()
    assert [(one.code, one.topic, one.partition) for one in done.losses] == [("unknown_topic", "later", 1)]
    assert "offsets 0 to 0 on nodes 1" in done.losses[0].message
    (folder,) = (brokers / "broker").glob("later-1")
    assert done.losses[0].topic_id == read_properties(folder / "partition.metadata")["topic_id"]
    assert done.cluster_id == read_properties(brokers / "broker" / "meta.properties")["cluster.id"]


def test_records_of_a_later_leader_raise_the_epoch(brokers: Path) -> None:
    """A leader of a lower epoch than that of its records would truncate them."""
    log = next((brokers / "broker" / "orders-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    kraftlog.rewrite_batches(data, partition_leader_epoch=9)
    log.write_bytes(data)
    done = kraftlog.rescue(brokers / "broker", brokers / "new", voters=VOTERS)
    assert [(one.code, one.topic, one.node_id) for one in done.losses] == [("later_epoch", "orders", 1)]
    tables = image_of(brokers / "new" / "node-7" / "logs-0").image.tables()
    topics = {row["topic_id"]: row["name"] for row in tables["TopicRecord"].to_pylist()}
    (row,) = (row for row in tables["PartitionRecord"].to_pylist() if topics[row["topic_id"]] == "orders")
    assert (row["leader_epoch"], row["leader"], row["isr"]) == (10, 1, [1])


def test_the_snapshot_lies_behind_every_log_and_vote(brokers: Path) -> None:
    """A broker whose metadata goes on differently drops it: its epoch and its end are less than the snapshot's."""
    quorum_state = {"leaderId": 1, "leaderEpoch": 40, "votedId": -1, "data-version": 1}
    (brokers / "old" / "__cluster_metadata-0" / "quorum-state").write_text(json.dumps(quorum_state))
    paths = [brokers / "broker", brokers / "old"]
    ends = [kraftlog.open(path / "__cluster_metadata-0").partitions[0].end_offset for path in paths]
    assert ends[0] != ends[1]
    done = kraftlog.rescue(paths, brokers / "new", voters=VOTERS)
    assert (done.snapshot_offset, done.snapshot_epoch) == (max(ends), 41)
    (brokers / "old" / "__cluster_metadata-0" / "quorum-state").write_text("{")
    again = kraftlog.rescue(paths, brokers / "again", voters=VOTERS)
    assert [fault.error for fault in again.faults] == ["bad_checkpoint"]


@pytest.mark.parametrize(
    ("voters", "message"),
    [
        ([], "voters none: one or more are expected"),
        (["1@a:1", "1@b:1"], "each id once"),
        (["a:1"], "expected ID@HOST:PORT"),
        (["1@a:0"], "expected ID@HOST:PORT"),
        (["1@a:70000"], "expected ID@HOST:PORT"),
    ],
)
def test_refusals(tmp_path: Path, voters: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kraftlog.rescue(METADATA, tmp_path / "new", voters=voters, cluster_id=CLUSTER)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected one cluster id in meta\.properties, found none"):
        kraftlog.rescue(METADATA, tmp_path / "new", voters=VOTERS)
    with pytest.raises(ValueError, match="no __cluster_metadata among the files"):
        kraftlog.rescue(GOLDEN / "transactions" / "log", tmp_path / "new", voters=VOTERS, cluster_id=CLUSTER)
    assert not (tmp_path / "new").exists()


def test_the_command_says_what_may_be_lost(brokers: Path) -> None:
    shutil.rmtree(brokers / "broker" / "__cluster_metadata-0")
    arguments = [brokers / "new", "--voter", VOTERS[0]]
    done = run_command("rescue", brokers / "old" / "__cluster_metadata-0", brokers / "broker", *arguments)
    assert done.returncode == 0
    assert "unknown_topic: later-1: the metadata has no such partition" in done.stdout
    assert (brokers / "new" / "node-7" / "server.properties").exists()
