"""A restore into a live cluster: topics, committed records and groups of the source, or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fake_cluster import Cluster, Killed

import kraftlog
from command_line import run_command
from kraftlog import LogStore, MetadataLogWriter
from kraftlog.broker import live_restore, replay, run
from kraftlog.broker.live_restore import LiveRestore
from kraftlog.broker.mapping import OffsetMapping
from kraftlog.log_store.group_offsets import OffsetAndMetadata

CONFIG = pa.schema(
    [("resource_type", pa.int8()), ("resource_name", pa.string()), ("name", pa.string()), ("value", pa.string())]
)
CONFIGS = {
    ("orders", "retention.ms"): "-1",
    ("orders", "cleanup.policy"): "compact",
    ("orders", "min.insync.replicas"): "3",
    ("orders", "remote.storage.enable"): "true",
}
NOBODY_READS = "empty"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory with committed and aborted transactions, one that is open, and groups."""
    folder = tmp_path_factory.mktemp("source") / "store"
    with LogStore(folder) as store:
        store.create_topic("orders", partitions=3)
        store.create_topic("paid.late")
        store.create_topic(NOBODY_READS, partitions=2)
        producer = store.producer(transactional_id="etl")
        for number in range(12):
            producer.begin_transaction()
            producer.send("orders", key=b"%d" % number, value=f"order {number}", partition=number % 2)
            producer.send("paid.late", value=f"paid {number}", headers=[("at", b"%d" % number)])
            producer.send_offsets_to_transaction(
                {("orders", 0): OffsetAndMetadata(number, f"m{number}")}, group="readers"
            )
            if number % 4 == 3:
                producer.flush()  # what is not written yet would never be
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        with store.producer("late") as late, late.transaction():
            late.send_offsets_to_transaction({("paid.late", 0): 24, ("orders", 1): 3}, group="at the end")
            late.send_offsets_to_transaction({("paid.late", 0): 2}, group="in the middle")
        producer.begin_transaction()
        producer.send("orders", value="open", partition=2)
        producer.send("orders", value="open", partition=0)
        producer.flush()
        kraftlog.Repository(folder.parent / "nightly").backup(folder)
        producer.abort_transaction()
    return folder


@pytest.fixture(scope="module")
def backup(store: Path) -> Path:
    """Return a repository with a backup that was taken while a transaction was open."""
    return store.parent / "nightly"


@pytest.fixture(scope="module")
def with_configs(store: Path) -> Path:
    rows = [{"resource_type": 2, "resource_name": of, "name": name, "value": CONFIGS[of, name]} for of, name in CONFIGS]
    rows += [{"resource_type": 4, "resource_name": "", "name": "log.retention.ms", "value": "5"}]
    with MetadataLogWriter(store / "__cluster_metadata-0", None) as writer:
        writer.append(kraftlog.encode_messages("ConfigRecord", pa.RecordBatch.from_pylist(rows, CONFIG), 0))
    kraftlog.Repository(store.parent / "configured").backup(store)
    return store.parent / "configured"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Let restores go into a cluster in memory, a few records at a time."""
    found = Cluster()
    for module in (replay, live_restore):
        monkeypatch.setattr(module, "Client", lambda *given: found.client(*given))
    monkeypatch.setattr(run, "TRANSACTION_BYTES", 20)
    monkeypatch.setattr(run, "STEP_ROWS", 2)
    return found


def restored(source: Path, target: Path, **given: Any) -> LiveRestore:
    return kraftlog.restore_live(source, "fake:9092", target, **given)


def rows_of(source: Path, topic: str) -> dict[int, list[tuple[int, Any]]]:
    """Return offsets and records of each partition, as a read_committed consumer gets them."""
    columns = ["partition", "offset", "key", "value", "timestamp_ms", "headers"]
    log = kraftlog.open(source)
    if topic not in log.topics:
        return {}
    files = log.of_files(log.found.only(lambda name, _: name == topic))
    table = files.records(columns, isolation_level="read_committed").to_table()
    found: dict[int, list[tuple[int, Any]]] = {}
    for row in table.to_pylist():
        headers = [(header["key"], header["value"]) for header in row["headers"]]
        record = row["key"], row["value"], row["timestamp_ms"], headers
        found.setdefault(row["partition"], []).append((row["offset"], record))
    return found


def check(cluster: Cluster, source: Path, done: LiveRestore, names: dict[str, str]) -> None:
    """Compare records, the place at which groups read on, and the report, with the source."""
    for topic, new in names.items():
        expected = rows_of(source, topic)
        for one in (one for one in done.partitions if one.topic == new):
            rows, there = expected.get(one.partition, []), cluster.committed((new, one.partition))
            assert [record for _, record in there] == [record for _, record in rows]
            assert (one.records, one.end_offset) == (len(rows), len(cluster.log((new, one.partition))))
            if rows:
                assert one.start_offset == there[0][0]
    for row in kraftlog.open(source).offsets().to_pylist():
        if row["state"] != "committed" or row["topic"] not in names:
            continue
        place = names[row["topic"]], row["partition"]
        offset = cluster.offsets[(row["group"], *place)]
        assert done.groups[row["group"]][f"{place[0]}-{place[1]}"] == offset
        left = [record for at, record in cluster.committed(place) if at >= offset]
        assert left == [record for at, record in rows_of(source, row["topic"])[place[1]] if at >= row["offset"]]


def test_topics_records_and_groups(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    done = restored(backup, tmp_path / "evidence")
    # a store makes folders with the first record
    assert [fault.message.partition(":")[0] for fault in done.faults] == [f"{NOBODY_READS}-0", f"{NOBODY_READS}-1"]
    assert cluster.topics == {"orders": 3, "paid.late": 1, NOBODY_READS: 2}
    check(cluster, backup, done, {name: name for name in cluster.topics})
    assert done.groups.keys() == {"readers", "at the end", "in the middle"}
    assert "1 committed offsets lose their metadata: the client cannot set it" in done.notes
    moved = {(one.group, one.topic): (one.offset, one.new_offset) for one in done.moved_offsets}
    mapping = OffsetMapping(tmp_path / "evidence" / "mapping.csv")
    assert moved["at the end", "paid.late"] == (24, mapping.target("paid.late", 0, 24)[1])
    assert not [entry for entry in cluster.log(("orders", 2)) if entry[0] is not None and entry[1] == "committed"]
    report = json.loads((tmp_path / "evidence" / "restored.json").read_text())
    assert report == json.loads(json.dumps(done.to_dict()))
    assert {one["topic"]: one["records"] for one in report["partitions"] if one["partition"] == 0}["paid.late"] == 9


def test_the_report_has_the_names_of_that_of_directories(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    live = restored(backup, tmp_path / "evidence").to_dict()
    of_directories = kraftlog.restore(backup, tmp_path / "cluster", cut="end").to_dict()
    assert of_directories.keys() <= live.keys()
    own = {"size_in_bytes", "copied_bytes", "crc32c", "is_identical", "last_epoch", "excluded_records"}  # of files
    assert of_directories["partitions"][0].keys() - own <= live["partitions"][0].keys()


def test_topics_get_their_configs(cluster: Cluster, with_configs: Path, tmp_path: Path) -> None:
    """As many replicas as before, and no more in sync than there are; no configs of tiered storage or of brokers."""
    done = restored(with_configs, tmp_path / "evidence", topics=["orders"])
    (created,) = cluster.created
    assert (created.name, created.partitions_count, created.replication_factor) == ("orders", 3, 1)
    assert created.configs == {"retention.ms": "-1", "cleanup.policy": "compact", "min.insync.replicas": "1"}
    notes = " ".join(done.notes)
    assert "min.insync.replicas is 1, not 3" in notes
    assert "configs of tiered storage are left out" in notes
    assert [one.topic for one in done.partitions] == ["orders"] * 3


def test_some_topics_and_partitions_by_another_name(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    done = restored(backup, tmp_path / "evidence", topics=["pa*", "orders"], partitions=[0], rename={"orders": "tried"})
    assert cluster.topics == {"tried": 3, "paid.late": 1}
    assert {one.name: one.records for one in done.partitions} == {
        **{"tried-0": 6, "tried-1": 0, "tried-2": 0},
        "paid.late-0": 9,
    }
    assert done.groups["readers"].keys() == {"tried-0"}
    assert done.groups["at the end"].keys() == {"paid.late-0"}
    assert "groups get no offsets in orders-1, which have no records" in done.notes
    assert all(of[1] in ("tried", "paid.late") for of in cluster.offsets)


def test_a_dry_run_changes_nothing(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    cluster.topics["paid.late"] = 2
    cluster.refused["orders"] = "not authorized"
    cluster.busy["readers"] = "STABLE"
    before = json.dumps([cluster.topics, len(cluster.offsets), len(cluster.logs)])
    done = restored(backup, tmp_path / "evidence", dry_run=True)
    assert done.obstacles == [
        "the topic orders cannot be created: not authorized",
        "the topic paid.late has 2 partitions, and 1 in the source",
        "the group readers has members (STABLE); its offsets cannot be set",
    ]
    assert [one.name for one in done.new_topics] == [NOBODY_READS, "orders"]
    assert json.dumps([cluster.topics, len(cluster.offsets), len(cluster.logs)]) == before
    assert cluster.steps == 0
    assert not (tmp_path / "evidence").exists()
    with pytest.raises(kraftlog.ReplayError, match="cannot be created: not authorized; 2 more, which a dry run lists"):
        restored(backup, tmp_path / "evidence")
    assert (cluster.steps, cluster.created) == (0, [])


def test_the_target_has_records_or_offsets_already(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    restored(backup, tmp_path / "evidence", topics=["orders"])
    kept = dict(cluster.offsets)
    with pytest.raises(ValueError, match="has the report of a finished restore"):
        restored(backup, tmp_path / "evidence", topics=["orders"])
    done = restored(backup, tmp_path / "other", topics=["orders"], dry_run=True)
    assert [text for text in done.obstacles if "holds offsets" in text] == [
        f"orders-{at} holds offsets 0 to {len(cluster.log(('orders', at))) - 1}" for at in range(3)
    ]
    assert "the group readers has offsets in orders-0" in done.obstacles
    with pytest.raises(kraftlog.ReplayError, match="orders-0 holds offsets"):
        restored(backup, tmp_path / "other", topics=["orders"])
    assert cluster.offsets == kept
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds notes\.txt; choose a new or empty folder"):
        restored(backup, tmp_path / "own", topics=["orders"])


def test_topics_that_are_there_and_empty_are_filled(cluster: Cluster, with_configs: Path, tmp_path: Path) -> None:
    cluster.topics["orders"] = 3
    cluster.configs["orders"] = {"retention.ms": "1000", "cleanup.policy": "compact", "min.insync.replicas": "1"}
    done = restored(with_configs, tmp_path / "evidence", topics=["orders"])
    assert cluster.created == []
    check(cluster, with_configs, done, {"orders": "orders"})
    assert "the topic orders keeps retention.ms=1000; in the source it has retention.ms=-1" in done.notes


@pytest.mark.parametrize("side", [1, -1], ids=["before", "behind"])
def test_killed_at_every_step(
    cluster: Cluster, backup: Path, tmp_path: Path, side: int, sampled: Callable[..., list[int]]
) -> None:
    """The same command resumes: nothing is lost, nothing comes twice, and what a group has read since stays."""
    restored(backup, tmp_path / "count", rename={"orders": "count"}, topics=["orders"])
    steps = cluster.steps
    assert steps > 10
    for number in sampled(range(1, steps + 1), 8):
        given: dict[str, Any] = {"topics": ["orders"], "rename": {"orders": f"at-{number}"}}
        target = tmp_path / f"at{side}-{number}"
        cluster.steps, cluster.kills = 0, {side * number}
        cluster.offsets = {of: offset for of, offset in cluster.offsets.items() if of[0].startswith("kraftlog")}
        try:
            done = restored(backup, target, **given)
        except Killed:
            cluster.kills = set()
            done = restored(backup, target, **given)
        check(cluster, backup, done, {"orders": f"at-{number}"})
    cluster.steps, cluster.kills = 0, {-(steps - 1)}
    given = {"topics": ["orders"], "rename": {"orders": "last"}}
    with pytest.raises(Killed):
        restored(backup, tmp_path / "last", **given)
    (group, place) = next((of[0], of[1:]) for of in cluster.offsets if of[1] == "last" and "kraftlog" not in of[0])
    cluster.offsets[(group, *place)] = 1
    cluster.kills = set()
    assert restored(backup, tmp_path / "last", **given).groups[group][f"last-{place[1]}"] == 1
    assert cluster.offsets[(group, *place)] == 1


def test_an_interrupted_restore_goes_on_with_the_same_topics(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    cluster.kills = {12}
    with pytest.raises(Killed):
        restored(backup, tmp_path / "evidence")
    cluster.kills = set()
    done = restored(backup, tmp_path / "evidence", topics=["orders"], dry_run=True)
    assert any("is of a restore with" in text and "paid.late-0" in text for text in done.obstacles)
    with pytest.raises(kraftlog.ReplayError, match="as well"):
        restored(backup, tmp_path / "evidence", topics=["orders"])
    check(cluster, backup, restored(backup, tmp_path / "evidence"), {name: name for name in cluster.topics})


def test_without_some_keys(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    """Records of a key are not sent; a group whose next record is one of them reads on with the one after it."""
    (tmp_path / "keys").write_text("10\norders\t2\npaid.late\t4\n")
    done = restored(backup, tmp_path / "evidence", topics=["orders"], exclude_keys=tmp_path / "keys")
    values = [row[1] for _, row in cluster.committed(("orders", 0))]
    assert values == [b"order 0", b"order 4", b"order 6", b"order 8"]
    assert done.excluded_keys_sha256 is not None
    assert "2 records were left out, since their keys are excluded" in done.notes
    assert done.partitions[0].records == 4


def test_what_cannot_be_restored(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    for given, message in [
        ({"topics": ["none*"]}, "no topic of the metadata matches 'none*'"),
        ({"topics": ["__consumer_offsets"]}, "internal ones only"),
        ({"rename": {"orders": "paid.late"}}, "there would be two topics"),
    ]:
        with pytest.raises(ValueError, match=message.replace("*", r"\*")):
            restored(backup, tmp_path / "evidence", **given)
    assert (cluster.steps, cluster.topics) == (0, {})


def test_the_time_of_a_backup_counts_for_its_metadata(store: Path, tmp_path: Path, cluster: Cluster) -> None:
    """Topics that were made after the time are not there."""
    with LogStore(tmp_path / "store") as made:
        made.create_topic("early")
        with made.producer() as producer:
            producer.send("early", value="one", timestamp_ms=1_000)
    before = kraftlog.open(tmp_path / "store", topics=["__cluster_metadata"]).image().timestamp
    with LogStore(tmp_path / "store", clock=lambda: before + 100_000) as made:
        made.create_topic("late")
    manifest = kraftlog.Repository(tmp_path / "nightly").backup(tmp_path / "store")
    assert manifest.taken_ms > before
    restored(f"{tmp_path / 'nightly'}@{before + 1}", tmp_path / "evidence")
    assert cluster.topics == {"early": 1}


def test_command(cluster: Cluster, backup: Path, tmp_path: Path) -> None:
    to = ["--bootstrap-server", "fake:9092", "--no-progress"]
    cluster.topics["orders"] = 1
    done = run_command("restore", backup, tmp_path / "evidence", *to, "--dry-run")
    assert done.returncode == 1
    assert "in the way: the topic orders has 1 partitions, and 3 in the source" in done.stderr
    assert "nothing was changed; there would be 6 partitions" in done.stdout
    done = run_command("restore", backup, tmp_path / "evidence", *to)
    assert (done.returncode, "the topic orders has 1 partitions" in done.stderr) == (1, True)
    del cluster.topics["orders"]
    done = run_command("restore", backup, tmp_path / "evidence", *to, "-t", "orders", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == json.loads((tmp_path / "evidence" / "restored.json").read_text())
    for option, message in [("--nodes=2", "--nodes cannot be used"), ("--quorum=static", "--quorum cannot be used")]:
        done = run_command("restore", backup, tmp_path / "other", *to, option)
        assert (done.returncode, message in done.stderr) == (2, True)
    done = run_command("restore", backup, tmp_path / "other", "--rate", "5")
    assert (done.returncode, "--rate requires --bootstrap-server" in done.stderr) == (2, True)
