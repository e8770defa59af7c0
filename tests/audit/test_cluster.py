"""The metadata log against log directories: each finding, and the silence where a precondition does not hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from golden_releases import RELEASES, folder_of
from kraftlog.audit.audit import findings
from kraftlog.audit.cluster import (
    foreign_metadata_logs,
    isr_without_records,
    metadata_log_cut_off,
    offline_directories,
    topic_ids_and_assignments,
)
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, Severity
from kraftlog.layout.checkpoints import HIGH_WATERMARKS
from kraftlog.metadata.uuids import LOST, MIGRATING, uuid_text
from stopped_broker import Broker, evidence_of

CHECKS: list[Callable[[Evidence], Iterator[Finding]]] = [
    metadata_log_cut_off,
    topic_ids_and_assignments,
    foreign_metadata_logs,
    offline_directories,
    isr_without_records,
]
OTHER_ID = "AAAAAAAAAAEAAAAAAAAAAQ"
CLEAN = ".kafka_cleanshutdown"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Copy the directory of a broker of 3.9 that was shut down cleanly."""
    return Path(shutil.copytree(folder_of("3.9.1", "clean") / "log", tmp_path / "log"))


def audit(*paths: Path) -> list[Finding]:
    evidence = evidence_of(*paths)
    return [one for check in CHECKS for one in check(evidence)]


def names(findings: list[Finding]) -> list[tuple[str, str | None]]:
    return [(one.code.name, one.topic) for one in findings]


@pytest.mark.parametrize("release", RELEASES)
def test_a_clean_directory_has_no_findings(release: str) -> None:
    assert audit(folder_of(release, "clean") / "log") == []


def test_a_folder_of_another_topic_of_the_same_name(log: Path) -> None:
    path = log / "orders-1" / "partition.metadata"
    before = kraftlog.open(log / "orders-1").partitions[0].line.topic_id
    path.write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")
    shutil.rmtree(log / "orders-0")  # readers refuse two topics of one name
    (finding,) = audit(log)
    assert (finding.code.name, finding.topic, finding.partition, finding.node_id) == (
        "topic_id_mismatch",
        "orders",
        1,
        1,
    )
    assert finding.known == f"partition.metadata has the topic id {OTHER_ID}, the metadata log has {before}"
    assert finding.file == str(log / "orders-1")
    (log / CLEAN).unlink()  # the metadata log may be of a later moment
    assert audit(log) == []


def test_a_folder_without_a_topic_id(log: Path) -> None:
    (log / "plain-0" / "partition.metadata").unlink()
    assert names(audit(log)) == [("missing_topic_id", "plain")]
    (log / "plain-0").rename(log / "gone-0")
    assert audit(log) == []  # nothing tells which topic it is


def test_a_folder_that_the_metadata_log_does_not_have(log: Path) -> None:
    shutil.copytree(log / "plain-0", log / "plain-1")
    shutil.copytree(log / "plain-0", log / "gone-0")
    assert names(audit(log)) == [("unassigned_folder", "gone"), ("unassigned_folder", "plain")]
    (log / CLEAN).unlink()
    assert audit(log) == []


def test_a_partition_that_moved_to_another_broker(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}})
    broker.change_partition("orders", replicas=[2], isr=[2], directories=[OTHER_ID])
    (finding,) = audit(tmp_path)
    assert finding.code.name == "unassigned_folder"
    assert finding.known == "the replicas of orders-0 are [2], without 1"


def second(broker: Broker, path: Path, *, with_metadata: bool = True) -> Path:
    """Copy the directory of a broker as that of another one of the same cluster."""
    shutil.copytree(broker.path, path)
    text = (path / "meta.properties").read_text()
    (path / "meta.properties").write_text(text.replace("node.id=1", "node.id=2").replace(broker.directory_id, OTHER_ID))
    if not with_metadata:
        shutil.rmtree(path / "__cluster_metadata-0")
    return path


def test_a_metadata_log_that_belongs_to_no_folder_of_a_directory(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "1", {"orders": {}, "payments": {}})
    other = second(broker, tmp_path / "2", with_metadata=False)
    for number, folder in enumerate(("orders-0", "payments-0")):
        shutil.rmtree(broker.path / folder)  # of its own, whose ids are others
        (other / folder / "partition.metadata").write_text(
            f"version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAA{'QA'[number]}\n"
        )
    (finding,) = audit(broker.path, other)
    assert (finding.code.name, finding.node_id, finding.file) == ("foreign_metadata_log", 2, str(other))
    assert finding.known == "none of the 2 topic ids in the directory is in the metadata log, which has 3"
    topic_id = broker.evidence().cluster
    assert topic_id is not None
    (other / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id.topic_ids['orders']}\n")
    assert audit(broker.path, other) == []  # one topic was deleted while it was down
    for folder in ("orders-0", "payments-0"):
        (other / folder / "partition.metadata").unlink()
    assert audit(broker.path, other) == []


def test_a_broker_with_a_metadata_log_alone_is_not_of_another_cluster(tmp_path: Path) -> None:
    """All its replicas have moved away, and its metadata log is behind."""
    broker = Broker(tmp_path / "1", {"orders": {}})
    other = second(broker, tmp_path / "2")
    shutil.rmtree(other / "orders-0")
    metadata = other / "__cluster_metadata-0"
    (metadata / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    broker.change_partition("orders", replicas=[1], isr=[1])
    assert audit(broker.path, other) == []


@pytest.mark.parametrize(
    ("directory", "known"),
    [
        (OTHER_ID, f"directory {OTHER_ID}"),
        (uuid_text(LOST), "an unknown directory"),
        (uuid_text(MIGRATING), None),
        (uuid_text(bytes(15) + b"\1"), None),  # not assigned yet
    ],
)
def test_replicas_in_a_directory_that_is_offline(tmp_path: Path, directory: str, known: str | None) -> None:
    broker = Broker(tmp_path, {"orders": {}, "payments": {}})
    for topic in ("orders", "payments"):
        broker.change_partition(topic, directories=[directory])
    if known is None:
        assert audit(tmp_path) == []
        return
    (finding,) = audit(tmp_path)
    assert (finding.code.name, finding.topic, finding.node_id) == ("offline_directory", "orders", 1)
    assert finding.known == f"the replicas of orders-0 and 1 more are in {known} of broker 1, which is not online"


def test_replicas_of_brokers_whose_directories_are_unknown(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}})
    broker.change_partition("orders", replicas=[1, 2], isr=[1], directories=[broker.directory_id, OTHER_ID])
    assert audit(tmp_path) == []  # broker 2 is not registered


def in_sync(tmp_path: Path) -> tuple[Broker, Path]:
    """Two brokers with the same log, both in sync."""
    broker = Broker(tmp_path / "1", {"orders": {}})
    broker.change_partition("orders", replicas=[1, 2], isr=[1, 2], directories=[broker.directory_id, OTHER_ID])
    return broker, second(broker, tmp_path / "2")


def drop_last_segment(path: Path) -> None:
    for one in (path / "orders-0").glob(f"{30:020d}.*"):
        one.unlink()


def test_a_replica_in_sync_that_lacks_committed_records(tmp_path: Path) -> None:
    broker, other = in_sync(tmp_path)
    assert audit(broker.path, other) == []
    drop_last_segment(other)
    (finding,) = audit(broker.path, other)
    assert (finding.code.name, finding.offset, finding.node_id) == ("isr_lacks_records", 30, 2)
    assert finding.known == (
        "broker 2 is in the ISR [1, 2] and its log ends at offset 30; the high watermark of broker 1 is 40"
    )
    broker.checkpoint(HIGH_WATERMARKS, {"orders": 30})
    for path in (other, broker.path):
        (path / HIGH_WATERMARKS).write_text("0\n1\norders 0 30\n")
    assert audit(broker.path, other) == []  # the others were not committed


def test_a_replica_that_is_not_in_sync_may_lack_records(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "1", {"orders": {}})
    broker.change_partition("orders", replicas=[1, 2], isr=[1], directories=[broker.directory_id, OTHER_ID])
    other = second(broker, tmp_path / "2")
    drop_last_segment(other)
    assert audit(broker.path, other) == []


@pytest.mark.parametrize("number", ["1", "2"])
def test_brokers_that_were_killed_prove_nothing_of_the_isr(tmp_path: Path, number: str) -> None:
    broker, other = in_sync(tmp_path)
    drop_last_segment(other)
    (tmp_path / number / CLEAN).unlink()
    assert audit(broker.path, other) == []


def test_an_older_metadata_log_proves_nothing_of_the_isr(tmp_path: Path) -> None:
    broker, other = in_sync(tmp_path)
    drop_last_segment(other)
    later = Broker.at(other, broker.end_ms)
    later.change_partition("orders", isr=[1, 2])  # the last metadata log is that of broker 2
    assert audit(broker.path, other) == []


def cut_metadata_log(log: Path, end_offset: int) -> None:
    """Remove the batches of the metadata log from an offset on, and its index files."""
    (path,) = (log / "__cluster_metadata-0").glob("*.log")
    rows = kraftlog.open(path.parent).batches(["position", "base_offset"]).to_pylist()
    position = next(row["position"] for row in rows if row["base_offset"] >= end_offset)
    path.write_bytes(path.read_bytes()[:position])
    for one in path.parent.glob("*index"):
        one.unlink()


@pytest.mark.parametrize("release", ["3.3.2", "3.7.2", "3.9.1"])
def test_a_metadata_log_that_was_cut_off_is_one_finding(release: str, tmp_path: Path) -> None:
    """Wherever that is; the folders of topics that it does not know yet are not called unassigned."""
    golden = folder_of(release, "clean") / "log"
    offsets = kraftlog.open(golden / "__cluster_metadata-0").batches(["base_offset"])["base_offset"].to_pylist()
    for end_offset in offsets[4::12]:
        log = Path(shutil.copytree(golden, tmp_path / str(end_offset)))
        cut_metadata_log(log, end_offset)
        (finding,) = audit(log)
        assert (finding.code.name, finding.offset, finding.node_id) == ("metadata_log_cut_off", end_offset, 1)
        (path,) = log.glob("__cluster_metadata-0/*.snapshot")
        assert finding.known == (
            f"the metadata log ends at offset {end_offset}, but {path.name} next to it was written at offset"
            f" {int(path.stem)}"
        )
        assert names([one for one in findings(evidence_of(log)) if one.code.severity < Severity.NOTE]) == [
            ("metadata_log_cut_off", "__cluster_metadata")
        ]
        (log / CLEAN).unlink()
        assert audit(log) == []


def test_a_broker_epoch_after_the_end_of_the_metadata_log(log: Path) -> None:
    cut_metadata_log(log, 40)
    next(log.glob("__cluster_metadata-0/*.snapshot")).unlink()
    assert [one.code.name for one in audit(log)] != ["metadata_log_cut_off"]
    (log / CLEAN).write_text('{"version":0,"brokerEpoch":40}')
    (finding,) = audit(log)
    assert finding.known.endswith(f"but the broker registered at offset 40, as {CLEAN} says")
    for text in ('{"version":0,"brokerEpoch":39}', '{"version":0,"brokerEpoch":"x"}', "[]", "{", ""):
        (log / CLEAN).write_text(text)
        assert "metadata_log_cut_off" not in {name for name, _ in names(audit(log))}


def test_a_leader_epoch_that_the_metadata_log_does_not_have(tmp_path: Path) -> None:
    broker = Broker(tmp_path, {"orders": {}})
    assert audit(tmp_path) == []
    rows = {"key": [b"k"], "value": [b"v"]}
    data = kraftlog.encode(pa.table(rows), base_offset=40, partition_leader_epoch=7, timestamp_ms=broker.end_ms)
    last = max(broker.folder("orders").glob("*.log"))
    last.write_bytes(last.read_bytes() + bytes(data))
    (finding,) = audit(tmp_path)
    assert finding.code.name == "metadata_log_cut_off"
    assert finding.known.endswith("but orders-0 has leader epoch 7, in the metadata log it is 0")
    (broker.folder("orders") / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")
    assert names(audit(tmp_path)) == [("topic_id_mismatch", "orders")]  # its epochs are those of another topic
