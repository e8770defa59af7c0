"""``kraftlog restore``: what is written is the source at the cut, on other nodes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from accounts import history, is_whole, with_clocks_of_leaders
from command_line import run_command
from faulty_disk import FaultyDisk, since
from kraftlog import LogStore, MetadataLogWriter
from kraftlog.backup.new_nodes import new_nodes, placements
from kraftlog.backup.quorum import with_records, write_controller
from kraftlog.backup.restore import Restore
from kraftlog.backup.restored_coordinators import MovedOffset, offset_rows
from kraftlog.codec.rewrite import rewrite_batches
from kraftlog.disk.disk import use_disk
from kraftlog.layout.checkpoints import read_offset_checkpoint, read_properties
from kraftlog.log_store.cluster import FEATURES
from kraftlog.log_store.partition import Partition
from kraftlog.metadata.uuids import uuid_text
from kraftlog.topics import TopicPartition
from kraftlog.transactions.cut import CutTime, Side
from standing_clock import StandingClock

COLUMNS = ["topic", "partition", "offset", "key", "value", "headers", "timestamp", "partition_leader_epoch"]
LEVELS = ("read_committed", "read_uncommitted")
TIMES = 6
CONFIG = pa.schema(
    [("resource_type", pa.int8()), ("resource_name", pa.string()), ("name", pa.string()), ("value", pa.string())]
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory with closed segments, deleted records, transactions and a group."""
    folder = tmp_path_factory.mktemp("source") / "store"
    with LogStore(folder) as store:
        store.create_topic("orders", partitions=2, configs={"retention.ms": -1})
        store.create_topic("paid.late")
        store.create_topic("never")
        producer = store.producer(transactional_id="etl")
        for number in range(12):
            with producer.transaction():
                producer.send("orders", value=f"order {number}", partition=number % 2)
                producer.send("paid.late", value=f"paid {number}")
                producer.send_offsets_to_transaction({("orders", 0): number // 2}, group="readers")
    configs = [("orders", "min.insync.replicas", "2"), ("paid.late", "remote.storage.enable", "true")]
    rows = [{"resource_type": 2, "resource_name": of, "name": name, "value": value} for of, name, value in configs]
    with MetadataLogWriter(folder / "__cluster_metadata-0", None) as writer:
        writer.append(kraftlog.encode_messages("ConfigRecord", pa.RecordBatch.from_pylist(rows, CONFIG), 0))
    return folder


def directories(target: Path) -> list[Path]:
    return sorted(target.glob("node-*/logs-*"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix == ".log"}


def rows_of(log: kraftlog.Log, topic: str, level: str) -> list[object]:
    files = log.of_files(log.found.only(lambda name, _: name == topic))
    return files.records(COLUMNS, isolation_level=level).to_table().to_pylist()


def test_all_is_there_byte_by_byte_on_all_replicas(store: Path, tmp_path: Path) -> None:
    done = kraftlog.restore(store, tmp_path / "cluster", nodes=3, directories=2)
    assert [fault.message.partition(":")[0] for fault in done.faults] == ["never-0"]  # a store makes its folder later
    assert (done.ended_transactions, done.moved_offsets) == ([], [])
    assert all(one.is_identical for one in done.partitions)
    assert len(directories(tmp_path / "cluster")) == 6
    for one in done.partitions:
        folders = list((tmp_path / "cluster").glob(f"node-*/logs-*/{one.name}"))
        assert len(folders) == len(one.replicas) == 1
        assert {path.name for path in folders[0].parents[1:2]} == {f"node-{one.replicas[0]}"}
        source = store / one.name
        if source.exists():
            assert files_of(folders[0]) == files_of(source)
    log, source_log = kraftlog.open(directories(tmp_path / "cluster")), kraftlog.open(store)
    assert log.offsets().to_pylist() == source_log.offsets().to_pylist()
    assert log.errors().to_pylist() == []
    assert done.groups == {"readers": {"orders-0": 5}}


def test_the_image_is_that_of_the_source_but_for_the_nodes(store: Path, tmp_path: Path) -> None:
    done = kraftlog.restore(store, tmp_path / "cluster", nodes=2, quorum="dynamic")
    found, source = kraftlog.open(directories(tmp_path / "cluster")).image(), kraftlog.open(store).image()
    tables, expected = found.image.tables(), source.image.tables()
    assert [row["broker_id"] for row in tables["RegisterBrokerRecord"].to_pylist()] == [1, 2]
    topics = [sorted(map(repr, some["TopicRecord"].to_pylist())) for some in (tables, expected)]
    assert topics[0] == topics[1]
    assert tables["FeatureLevelRecord"].equals(expected["FeatureLevelRecord"])
    assert [name for name, _ in found.quorum] == ["KRAFT_VERSION", "KRAFT_VOTERS"]
    configs = {(row["resource_name"], row["name"]): row["value"] for row in tables["ConfigRecord"].to_pylist()}
    assert configs["orders", "retention.ms"] == "-1"
    assert configs["orders", "min.insync.replicas"] == "1"  # there is one replica, as in the source
    assert ("paid.late", "remote.storage.enable") not in configs
    assert [note.partition(":")[0] for note in done.notes] == ["orders", "paid.late"]
    before, after = (
        {(row["topic_id"], row["partition_id"]): row["leader_epoch"] for row in some["PartitionRecord"].to_pylist()}
        for some in (expected, tables)
    )
    assert {of: epoch + 1 for of, epoch in before.items()} == after
    ids = [table["ProducerIdsRecord"].column("next_producer_id").to_pylist() for table in (tables, expected)]
    assert ids[0] == ids[1] != []


def test_the_files_of_a_node_agree(store: Path, tmp_path: Path) -> None:
    """Checkpoints, topic ids and the identity of each directory, by which a broker takes its replicas for its own."""
    target = tmp_path / "cluster"
    done = kraftlog.restore(store, target, nodes=2, directories=2, new_cluster_id="a3JhZnRsb2ctaW50ZXJvcA")
    image = kraftlog.open(directories(target)).image().image
    topics = {uuid_text(row["topic_id"]): row["name"] for row in image.tables()["TopicRecord"].to_pylist()}
    assigned = {
        (topics[uuid_text(row["topic_id"])], row["partition_id"]): (row["replicas"], uuid_text(row["directories"][0]))
        for row in image.tables()["PartitionRecord"].to_pylist()
    }
    ends = {(one.topic, one.partition): one.written.end_offset for one in done.partitions if one.written}
    seen = set()
    for directory in directories(target):
        properties = read_properties(directory / "meta.properties")
        assert properties["cluster.id"] == done.cluster_id == "a3JhZnRsb2ctaW50ZXJvcA"
        assert json.loads((directory / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 0}
        for folder in directory.glob("*-*/partition.metadata"):
            topic, _, number = folder.parent.name.rpartition("-")
            if topic == "__cluster_metadata":
                continue
            of = topic, int(number)
            seen.add(of)
            assert topics[read_properties(folder)["topic_id"]] == topic
            assert assigned[of] == ([int(properties["node.id"])], properties["directory.id"])
            for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
                assert read_offset_checkpoint(directory / name)[of] == ends[of]
    assert seen == set(ends)


def test_cuts_at_random_times_tear_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums, transactions, coordinators and groups agree, and neither verify nor audit says otherwise."""
    draw = Random(3)
    with_clocks_of_leaders(monkeypatch, draw)
    begin, end = history(tmp_path / "store", draw)
    source = kraftlog.open(tmp_path / "store")
    ended = left_out = 0
    for number in range(TIMES):
        time = CutTime(Side.AT_OR_BEFORE, draw.randint(begin, end)) if number else CutTime.of("end")
        target = tmp_path / f"cluster-{number}"
        done = kraftlog.restore(tmp_path / "store", target, nodes=2, cut=time)
        assert done.faults == []
        log, at = kraftlog.open(directories(target)), source.cut_at(time)
        assert is_whole(log)
        for level in LEVELS:
            for topic in ("accounts", "orders"):
                assert rows_of(log, topic, level) == rows_of(at, topic, level)
        states = {row["status"] for row in log.transactional_ids().to_pylist()}
        assert not states & {"Ongoing", "PrepareCommit", "PrepareAbort"}
        assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []
        assert log.errors().to_pylist() == []
        ends = {(one.topic, one.partition): one.end_offset for one in log.partitions}
        assert all(row["offset"] <= ends[row["topic"], row["partition"]] for row in log.offsets().to_pylist())
        ended += len(done.ended_transactions)
        state = [one.written for one in done.partitions if one.topic == "__transaction_state"]
        all_states = len(rows_of(at, "__transaction_state", "read_uncommitted")) + 2 * len(done.ended_transactions)
        left_out += sum(written.records for written in state if written) < all_states
    assert ended
    assert left_out, "no decision lay after a cut"


def test_threads_change_nothing(tmp_path: Path) -> None:
    """Partitions are written by several threads; the report and all files of partitions are those of one thread."""
    begin, end = history(tmp_path / "store", Random(5))
    time = CutTime(Side.AT_OR_BEFORE, (begin + end) // 2)
    reports, files = [], []
    for workers in (1, 5):
        target = tmp_path / f"cluster-{workers}"
        done = kraftlog.restore(
            tmp_path / "store", target, nodes=2, cut=time, new_cluster_id="a3JhZnRsb2ctaW50ZXJvcA", workers=workers
        )
        reports.append(done.to_dict())
        logs = sorted(target.glob("node-*/logs-*/[a-z_]*-*/*.log"))
        files.append({path.relative_to(target): path.read_bytes() for path in logs})
    assert reports[0] == reports[1]
    assert files[0] == files[1]
    assert any(reports[0]["notes"])


def test_topics_by_pattern_and_other_names(store: Path, tmp_path: Path) -> None:
    """Committed offsets go with the topic; the topics of the coordinators are always there."""
    target = tmp_path / "cluster"
    done = kraftlog.restore(store, target, topics=["ord*"], rename={"orders": "copy"})
    assert {one.topic for one in done.partitions} == {"copy", "__consumer_offsets", "__transaction_state"}
    log = kraftlog.open(directories(target))
    assert len(rows_of(log, "copy", "read_committed")) == 12
    assert done.groups == {"readers": {"copy-0": 5}}
    assert [(one.topic, one.new_topic, one.new_offset) for one in done.moved_offsets] == [("orders", "copy", 5)]
    assert {row["resource_name"] for row in log.image().image.tables()["ConfigRecord"].to_pylist()} >= {"copy"}
    some = kraftlog.restore(store, tmp_path / "some", topics=["orders"], partitions=[1])
    counts = {one.name: one.written.records for one in some.partitions if one.topic == "orders" and one.written}
    assert counts == {"orders-0": 0, "orders-1": 6}


def test_a_partition_without_files_is_named_and_empty(store: Path, tmp_path: Path) -> None:
    source = [store / name for name in ("__cluster_metadata-0", "orders-1", "__transaction_state-0")]
    dry = kraftlog.restore(source, tmp_path / "cluster", topics=["orders"], dry_run=True)
    assert not (tmp_path / "cluster").exists()
    assert "orders-0: no folder of it among the files; it will have no records" in [one.message for one in dry.faults]
    done = kraftlog.restore(source, tmp_path / "cluster", topics=["orders"])
    ends = {one.name: one.written.end_offset for one in done.partitions if one.topic == "orders" and one.written}
    assert ends["orders-0"] == 0 < ends["orders-1"]
    with pytest.raises(kraftlog.RecordError, match="no folder of it"):
        kraftlog.restore(source, tmp_path / "strict", topics=["orders"], strict=True)


def test_deleted_records_stay_deleted(store: Path, tmp_path: Path) -> None:
    """The log start offset stays, also where no record is behind it: offsets are not given twice."""
    copy = tmp_path / "store"
    for path in sorted(store.rglob("*")):
        if path.is_file() and path.name != ".lock":
            (copy / path.relative_to(store)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(store)).write_bytes(path.read_bytes())
    end = kraftlog.open(store, topics=["orders"], partitions=[1]).partitions[0].end_offset
    (copy / "log-start-offset-checkpoint").write_text(f"0\n2\norders 0 3\norders 1 {end}\n")
    done = kraftlog.restore(copy, tmp_path / "cluster", topics=["orders"])
    starts = {one.name: one.log_start_offset for one in done.partitions if one.topic == "orders"}
    assert starts == {"orders-0": 3, "orders-1": end}
    (directory,) = directories(tmp_path / "cluster")
    assert read_offset_checkpoint(directory / "log-start-offset-checkpoint") == {("orders", 0): 3, ("orders", 1): end}
    parts = {one.partition: one for one in kraftlog.open(directory, topics=["orders"]).partitions}
    assert [(parts[at].start_offset, parts[at].end_offset) for at in (0, 1)][1] == (end, end)


def restored_on(disk: FaultyDisk, store: Path, target: Path) -> Restore:
    with use_disk(disk):
        return kraftlog.restore(store, target, nodes=2, topics=["orders"], cut="end", workers=1)  # steps in one order


def test_a_disk_that_fails_leaves_nothing_under_the_name(store: Path, tmp_path: Path) -> None:
    """Each step in turn is where the disk is gone; the source is never written to; all is synced before the name."""
    disk = FaultyDisk()
    restored_on(disk, store, tmp_path / "copy")
    renamed = next(one.number for one in disk.steps if one.name == "rename" and one.path.name.startswith("copy"))
    assert not [one for one in disk.steps if store in (one.path, *one.path.parents)]
    written = {one.path for one in disk.steps if one.name == "append" and one.number < renamed}
    synced = {one.path for one in disk.steps if one.name == "sync" and one.number < renamed}
    assert written <= synced
    folders = {path.parent for path in written}
    assert folders <= {one.path for one in disk.steps if one.name == "sync_folder" and one.number < renamed}
    for number in range(0, renamed + 1, 7):
        with pytest.raises(OSError, match="Input/output error"):
            restored_on(FaultyDisk(since(number)), store, tmp_path / f"copy-{number}")
        assert not (tmp_path / f"copy-{number}").exists()


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_an_interrupted_restore_has_left_is_refused(store: Path, tmp_path: Path, *, dry_run: bool) -> None:
    left = tmp_path / "cluster.unfinished"
    left.mkdir()
    with pytest.raises(
        ValueError, match=r"cluster\.unfinished exists: another process is writing it, .*then remove it"
    ):
        kraftlog.restore(store, tmp_path / "cluster", dry_run=dry_run)
    assert [path.name for path in tmp_path.rglob("*")] == [left.name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": ["none*"]}, "no topic of the metadata matches 'none*'"),
        ({"rename": {"none": "new"}}, "there is no topic 'none'"),
        ({"rename": {"orders": "never"}}, "there would be two topics 'never'"),
        ({"rename": {"orders": "a/b"}}, "expected 1 to 249 characters"),
        ({"rename": {"__consumer_offsets": "new"}}, "a coordinator does not find its topic"),
        ({"nodes": 0}, "nodes 0: expected 1 or more"),
        ({"nodes": ["1@host"]}, "expected ID@HOST:PORT:CONTROLLER_PORT"),
        ({"nodes": ["1@host:9092"]}, "no node is a controller"),
        ({"nodes": ["1@a:1:2", "1@b:1:2"]}, "each id once"),
        ({"nodes": ["1@a:1:1"]}, "two listeners have the address a:1"),
        ({"nodes": ["1@a:1:2", "2@a:3:1"]}, "two listeners have the address a:1"),
        ({"workers": 0}, "workers 0: expected 1 or more"),
        ({"new_cluster_id": "a b\nlog.dirs=/x"}, "expected 22 characters"),
        ({"topics": ["orders"], "partitions": [1, 7]}, "no topic that is restored has a partition 7"),
        ({"directories": 0}, "directories 0: expected 1 or more"),
        ({"quorum": "other"}, "quorum 'other' is not one of static, dynamic"),
    ],
)
def test_refusals(store: Path, tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        kraftlog.restore(store, tmp_path / "cluster", **options)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_source_without_metadata_is_refused(store: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no __cluster_metadata among the files"):
        kraftlog.restore(store / "orders-0", tmp_path / "cluster")
    with pytest.raises(ValueError, match="lies in"):
        kraftlog.restore(store, store / "cluster")


def test_replicas_are_spread() -> None:
    """Each node leads as many partitions, has as many replicas, and no replica twice."""
    nodes = new_nodes(4, 2)
    places = list(placements(nodes, [3] * 48))
    leaders = [some[0].node.node_id for some in places]
    assert {leaders.count(node.node_id) for node in nodes} == {12}
    every = [place for some in places for place in some]
    assert {sum(place.node is node for place in every) for node in nodes} == {36}
    assert all(len({place.node.node_id for place in some}) == 3 for some in places)
    assert {(place.node.node_id, place.directory) for place in every} == {(n, d) for n in range(1, 5) for d in range(2)}
    followers = {some[1].node.node_id for some in places if some[0].node.node_id == 1}
    assert len(followers) == 3


def test_the_command_prints_the_report(store: Path, tmp_path: Path) -> None:
    done = run_command("restore", store, tmp_path / "cluster", "--cut", "end", "-t", "orders", "--json")
    assert done.returncode == 0
    assert done.stdout == (tmp_path / "cluster" / "restored.json").read_text()
    partitions = {one["topic"]: one for one in json.loads(done.stdout)["partitions"]}
    assert partitions["orders"]["crc32c"] == f"{kraftlog.crc32c(next(iter(files_of(store / 'orders-1').values()))):08x}"
    dry = run_command("restore", store, tmp_path / "dry", "--dry-run", "--nodes", "2")
    assert "nothing was written; there would be" in dry.stdout
    assert not (tmp_path / "dry").exists()


def test_replicas_are_copies_that_are_on_disk(store: Path, tmp_path: Path) -> None:
    """Every file of a partition is the same on its nodes, in files of their own."""
    source = tmp_path / "store"
    shutil.copytree(store, source, ignore=shutil.ignore_patterns("__cluster_metadata-0"))
    at = kraftlog.open(store).image()
    table = at.image.tables()["PartitionRecord"]
    rows = [row | {"replicas": [1, 2], "directories": row["directories"] * 2} for row in table.to_pylist()]
    image = with_records(at.image, {"PartitionRecord": pa.Table.from_pylist(rows, table.schema)})
    cluster_id = read_properties(store / "meta.properties")["cluster.id"]
    write_controller(tmp_path / "controller", replace(at, image=image), cluster_id, 100, bytes(16))
    paths = [source, tmp_path / "controller" / "__cluster_metadata-0"]
    disk = FaultyDisk()
    with use_disk(disk):
        done = kraftlog.restore(paths, tmp_path / "copy", nodes=3, topics=["orders"], workers=1)
    renamed = next(one.number for one in disk.steps if one.name == "rename" and one.path.name.startswith("copy"))
    synced = {one.path for one in disk.steps if one.name == "sync" and one.number < renamed}
    assert {one.path for one in disk.steps if one.name == "append" and one.number < renamed} <= synced
    for one in done.partitions:
        first, second = sorted((tmp_path / "copy").glob(f"node-*/logs-0/{one.name}"))
        assert {int(folder.parts[-3].removeprefix("node-")) for folder in (first, second)} == set(one.replicas)
        names = [sorted(path.name for path in folder.iterdir()) for folder in (first, second)]
        assert names[0] == names[1]
        assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names[0])
        assert not any((first / name).samefile(second / name) for name in names[0])
    assert not any("fewer replicas" in note for note in done.notes)
    few = kraftlog.restore(paths, tmp_path / "few", nodes=1, topics=["orders"], dry_run=True)
    count = len(few.partitions)
    assert f"{count} of {count} partitions have fewer replicas than in the source" in few.notes


def test_groups_do_not_skip_what_is_written_later(tmp_path: Path) -> None:
    """Offsets of topics that are not restored are removed; those of partitions without records are their ends."""
    with LogStore(tmp_path / "store") as store:
        for topic in ("orders", "other"):
            store.create_topic(topic, partitions=2)
        with store.producer(transactional_id="etl") as producer, producer.transaction():
            for partition in range(2):
                producer.send("orders", value="one", partition=partition)
            offsets = {("orders", 0): 1, ("orders", 1): 1, ("other", 0): 7, ("gone", 3): 9}
            producer.send_offsets_to_transaction(offsets, group="readers")
    done = kraftlog.restore(tmp_path / "store", tmp_path / "cluster", topics=["orders"], partitions=[1])
    moved = {(one.topic, one.partition): (one.offset, one.new_topic, one.new_offset) for one in done.moved_offsets}
    assert moved == {("orders", 0): (1, "orders", 0), ("other", 0): (7, None, None)}
    assert done.groups == {"readers": {"gone-3": 9, "orders-0": 0, "orders-1": 1}}
    (directory,) = directories(tmp_path / "cluster")
    found = {(row["topic"], row["partition"]): row["offset"] for row in kraftlog.open(directory).offsets().to_pylist()}
    assert found == {("gone", 3): 9, ("orders", 0): 0, ("orders", 1): 1}
    told = run_command("restore", tmp_path / "store", tmp_path / "told", "-t", "orders", "-p", "1")
    assert "group readers: other-0 at 7 became none\n" in told.stdout
    assert "group readers: orders-0 at 1 became orders-0 at 0\n" in told.stdout


def test_an_id_has_no_smaller_epoch_than_its_producer_has_in_a_partition(tmp_path: Path) -> None:
    """Records with an old time lie before the cut, and what the coordinator wrote before them lies after it."""
    clock = StandingClock()
    begin = clock.now
    with LogStore(tmp_path / "store", clock=clock) as store:
        store.create_topic("orders")
        with store.producer("etl") as producer, producer.transaction():
            producer.send("orders", value="one")
        clock.now += 1000
        producer = store.producer("etl")
        producer.begin_transaction()
        producer.send("orders", value="two", timestamp_ms=begin)
        producer.flush()
        shutil.copytree(tmp_path / "store", tmp_path / "copy", ignore=shutil.ignore_patterns(".lock"))
        producer.abort_transaction()
    time = CutTime(Side.AT_OR_BEFORE, begin + 500)
    done = kraftlog.restore(tmp_path / "copy", tmp_path / "cluster", cut=time)
    (directory,) = directories(tmp_path / "cluster")
    log = kraftlog.open(directory)
    (before,) = kraftlog.open(tmp_path / "copy", cut=time).transactional_ids().to_pylist()
    (state,) = log.transactional_ids().to_pylist()
    (producer_state,) = log.producers().to_pylist()
    assert before["status"] == "PrepareCommit"  # the record that it is complete lies after the cut as well
    assert (state["status"], state["producer_epoch"]) == ("Empty", producer_state["producer_epoch"])
    assert state["producer_epoch"] > before["producer_epoch"] + 1
    assert [(one.transactional_id, one.before, one.after) for one in done.ended_transactions] == [
        ("etl", "PrepareCommit", "Empty")
    ]
    files = log.of_files(log.found.only(lambda topic, _: topic == "__transaction_state"))
    values = [json.loads(row["value"]) for row in files.messages(["value"]).to_table().to_pylist()]
    statuses = [value["transactionStatus"] for value in values]
    assert statuses[-3:] == [2, 4, 0]  # the first transaction is complete, and is not the one that was open
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []
    assert log.errors().to_pylist() == []


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_that_is_decided_is_not_the_next_one_of_its_producer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """The next one is open at the cut; with version 0 both have one epoch."""
    monkeypatch.setitem(FEATURES, "transaction.version", version)
    clock = StandingClock()
    begin = clock.now
    with LogStore(tmp_path / "store", clock=clock) as store:
        store.create_topic("orders")
        producer = store.producer("etl")
        with producer.transaction():
            producer.send("orders", value="one")
        clock.now += 1000
        producer.begin_transaction()
        producer.send("orders", value="two", timestamp_ms=begin)
        producer.flush()
        shutil.copytree(tmp_path / "store", tmp_path / "copy", ignore=shutil.ignore_patterns(".lock"))
        producer.abort_transaction()
    time = CutTime(Side.AT_OR_BEFORE, begin + 500)
    done = kraftlog.restore(tmp_path / "copy", tmp_path / "cluster", cut=time)
    (directory,) = directories(tmp_path / "cluster")
    log = kraftlog.open(directory)
    assert [row["value"] for row in rows_of(log, "orders", "read_committed")] == [b"one"]  # type: ignore[index]
    assert len(rows_of(log, "orders", "read_uncommitted")) == 2  # type: ignore[arg-type]
    assert [(one.before, one.after) for one in done.ended_transactions] == [("PrepareCommit", "Empty")]
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []


@pytest.mark.parametrize("version", [0, 2])
def test_a_decision_whose_markers_lie_after_the_cut_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Transactions of version 0 have one epoch; what the coordinator wrote of later ones does not count at the cut."""
    append = Partition.append_marker

    def append_later(self: Partition, *args: Any, timestamp_ms: int, **more: Any) -> None:
        append(self, *args, timestamp_ms=timestamp_ms + 50, **more)

    monkeypatch.setattr(Partition, "append_marker", append_later)
    monkeypatch.setitem(FEATURES, "transaction.version", version)
    clock, times = StandingClock(), []
    with LogStore(tmp_path / "store", clock=clock) as store, store.producer("etl") as producer:
        store.create_topic("orders")
        for number in range(4):
            producer.begin_transaction()
            producer.send("orders", value=str(number))
            producer.flush()
            clock.now += 1000
            times.append(clock.now)
            producer.commit_transaction()
    cut = CutTime(Side.AT_OR_BEFORE, times[1] + 20)
    decided = kraftlog.open(tmp_path / "store", cut=cut).transactions(["decision_timestamp_ms"]).to_pylist()
    assert all((row["decision_timestamp_ms"] or 0) <= times[1] for row in decided)
    done = kraftlog.restore(tmp_path / "store", tmp_path / "cluster", cut=cut)
    (directory,) = directories(tmp_path / "cluster")
    log = kraftlog.open(directory)
    assert [row["value"] for row in rows_of(log, "orders", "read_committed")] == [b"0"]  # type: ignore[index]
    assert [(one.before, one.after) for one in done.ended_transactions] == [("Ongoing", "CompleteAbort")]
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []


def test_what_is_appended_has_no_older_leader_epoch(store: Path, tmp_path: Path) -> None:
    """A metadata log may be older than the logs of partitions, and know of fewer elections."""
    copy = tmp_path / "store"
    shutil.copytree(store, copy, ignore=shutil.ignore_patterns(".lock"))
    for path in (copy / "__consumer_offsets-0").iterdir():
        if path.suffix == ".log":
            batches = bytearray(path.read_bytes())
            rewrite_batches(batches, partition_leader_epoch=9)
            path.write_bytes(batches)
        elif path.name == "leader-epoch-checkpoint":
            path.write_text("0\n1\n9 0\n")
    done = kraftlog.restore(copy, tmp_path / "cluster", topics=["paid.late"])
    assert len(done.moved_offsets) == 1
    (directory,) = directories(tmp_path / "cluster")
    log = kraftlog.open(directory, topics=["__consumer_offsets"])
    assert set(log.batches(["partition_leader_epoch"])["partition_leader_epoch"].to_pylist()) == {9}
    assert log.errors().to_pylist() == []
    assert [row for row in log.findings().to_pylist() if row["severity"] != "note"] == []


def test_a_group_behind_the_end_gets_the_end() -> None:
    row = {"group": "readers", "topic": "orders", "partition": 0, "leader_epoch": 4, "metadata": "note"}
    done: list[MovedOffset] = []
    committed = [row | {"offset": 9}, row | {"offset": 7}, row | {"topic": "unknown", "offset": 9}]
    rows = list(offset_rows(committed, {"orders": "orders"}, {TopicPartition("orders", 0): 7}, 5, done))
    assert [(one.offset, one.new_offset) for one in done] == [(9, 7)]
    assert [batch.num_rows for batch in rows] == [1]
