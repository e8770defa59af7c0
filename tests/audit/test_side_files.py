"""Files beside a log against the log: directories of real brokers that were shut down cleanly, with one change each."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_cluster import SmallCluster

import kraftlog
from golden_files import GOLDEN
from golden_releases import RELEASES, folder_of
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding
from kraftlog.audit.retention import future_timestamps
from kraftlog.audit.side_files import (
    checkpoints,
    gaps_in_tier,
    leader_epochs,
    missing_replicas,
    side_files,
)
from kraftlog.check.partitions import side_file_faults
from kraftlog.layout.tier.remote_tier import RemoteTier
from stopped_broker import evidence_of

CHECKS: list[Callable[[Evidence], Iterator[Finding]]] = [
    side_files,
    checkpoints,
    missing_replicas,
    leader_epochs,
    gaps_in_tier,
]
CLEAN = ".kafka_cleanshutdown"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Copy the directory of a broker of 3.9 that was shut down cleanly."""
    return Path(shutil.copytree(folder_of("3.9.1", "clean") / "log", tmp_path / "log"))


def audit(*paths: Path) -> list[tuple[str, str | None, int | None]]:
    evidence = evidence_of(*paths)
    found = [one for check in CHECKS for one in check(evidence)]
    return [(one.code.name, None if one.topic is None else f"{one.topic}-{one.partition}", one.offset) for one in found]


def replace_line(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert f"{old}\n" in text
    path.write_text(text.replace(f"{old}\n", f"{new}\n"))


@pytest.mark.parametrize("release", RELEASES)
def test_a_clean_directory_has_no_findings(release: str) -> None:
    assert audit(folder_of(release, "clean") / "log") == []


def damage_index(log: Path) -> None:
    path = log / "plain-0" / f"{0:020d}.index"
    path.write_bytes(path.read_bytes()[:4] + (1).to_bytes(4, "big") + path.read_bytes()[8:])


def damage_timeindex(log: Path) -> None:
    path = log / "plain-0" / f"{0:020d}.timeindex"
    path.write_bytes((2**40).to_bytes(8, "big") + path.read_bytes()[8:])


def empty_txnindex(log: Path) -> None:
    (log / "orders-0" / f"{0:020d}.txnindex").write_bytes(b"")


def other_snapshot(log: Path) -> None:
    shutil.copy(log / "orders-1" / f"{66:020d}.snapshot", log / "orders-0" / f"{66:020d}.snapshot")


def damage_snapshot(log: Path) -> None:
    path = log / "orders-0" / f"{66:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        (damage_index, "index_mismatch", "plain-0"),
        (damage_timeindex, "index_mismatch", "plain-0"),
        (empty_txnindex, "txnindex_mismatch", "orders-0"),
        (damage_snapshot, "snapshot_mismatch", "orders-0"),
    ],
)
def test_a_file_that_differs_from_its_log(log: Path, change: Callable[[Path], None], code: str, place: str) -> None:
    change(log)
    assert audit(log) == [(code, place, 0)]
    (log / CLEAN).unlink()  # a broker builds it again: the recovery point is not after the end of a closed segment
    assert audit(log) == []


def test_a_closed_segment_before_the_recovery_point_is_settled(log: Path) -> None:
    (log / CLEAN).unlink()
    (log / "trimmed-0" / f"{0:020d}.txnindex").write_bytes(b"")
    assert audit(log) == [("txnindex_mismatch", "trimmed-0", 0)]
    replace_line(log / "recovery-point-offset-checkpoint", "trimmed 0 88", "trimmed 0 76")
    assert audit(log) == []
    replace_line(log / "recovery-point-offset-checkpoint", "trimmed 0 76", "trimmed 0 77")
    assert audit(log) == [("txnindex_mismatch", "trimmed-0", 0)]


def test_damage_of_the_log_is_not_one_of_its_index(log: Path) -> None:
    path = log / "plain-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[200] ^= 0xFF
    path.write_bytes(data)
    damage_index(log)
    assert audit(log) == []


def test_differences_of_a_segment_are_one_finding(log: Path) -> None:
    damage_index(log)
    damage_timeindex(log)
    (finding,) = side_files(evidence_of(log))
    assert finding.known.endswith("; and 1 more")
    assert finding.node_id == 1
    assert finding.file == str(log / "plain-0")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("recovery-point-offset-checkpoint", "recovery_point_after_end"),
        ("replication-offset-checkpoint", "high_watermark_after_end"),
        ("log-start-offset-checkpoint", "log_start_after_end"),
        ("cleaner-offset-checkpoint", "cleaner_offset_after_end"),
    ],
)
def test_a_checkpoint_after_the_end_of_the_log(log: Path, name: str, code: str) -> None:
    path = log / name
    lines = path.read_text().split()
    rows = [row for row in zip(lines[2::3], lines[3::3], lines[4::3], strict=True) if row[0] != "trimmed"]

    def write(offset: int) -> None:
        texts = [" ".join(row) for row in [*rows, ("trimmed", "0", str(offset))]]
        path.write_text("\n".join(["0", str(len(texts)), *texts, ""]))

    write(88)
    assert audit(log) == []
    write(89)
    assert audit(log) == [(code, "trimmed-0", 88)]
    (log / CLEAN).unlink()  # of a broker that runs, or was killed, the checkpoint may be of a later moment
    assert audit(log) == []


@pytest.mark.parametrize(
    ("is_alone", "last_stable_offset", "is_legal"),
    [(True, 2, True), (True, 3, True), (True, 1, False), (True, 4, False), (False, 0, True), (False, 3, False)],
)
def test_the_last_stable_offset_in_an_entry_of_a_follower(
    tmp_path: Path, is_alone: bool, last_stable_offset: int, is_legal: bool
) -> None:
    """It appends several batches at once, and takes a transaction that begins after a marker for one that was open."""
    cluster = SmallCluster(tmp_path)
    if not is_alone:
        cluster.data("t-0", 2, 0)
    first = cluster.data("t-0", 1, 0)
    marker = cluster.marker("t-0", 1, 1, "ABORT")
    if is_alone:
        cluster.data("t-0")
    cluster.data("t-0", 3, 0)
    folder = cluster.write() / "t-0"
    (folder / f"{0:020d}.txnindex").write_bytes(struct.pack(">hqqqq", 0, 1, first, marker, last_stable_offset))
    faults = side_file_faults(kraftlog.open(folder).found.segments)
    assert [fault.error for fault in faults] == ([] if is_legal else ["txnindex_mismatch"] * 2)


def test_a_log_ends_where_its_empty_last_segment_begins(log: Path) -> None:
    """A cleaner removed what was before it."""
    (log / "trimmed-0" / f"{93:020d}.log").touch()
    path = log / "replication-offset-checkpoint"
    for offset, expected in ((93, []), (94, [("high_watermark_after_end", "trimmed-0", 93)])):
        replace_line(path, next(one for one in path.read_text().split("\n") if "trimmed" in one), f"trimmed 0 {offset}")
        assert [one for one in audit(log) if one[0] == "high_watermark_after_end"] == expected


def test_a_log_whose_end_is_missing(log: Path) -> None:
    for path in (log / "trimmed-0").glob(f"{77:020d}.*"):
        path.unlink()
    names = {name for name, place, _ in audit(log) if place == "trimmed-0"}
    assert {"recovery_point_after_end", "high_watermark_after_end"} <= names


def test_a_segment_file_alone_is_not_the_end_of_its_log(log: Path) -> None:
    first, *_, last = sorted((log / "trimmed-0").glob("*.log"))
    assert audit(first) == audit(last) == audit(first, log / "orders-0") == []
    assert audit(log / "trimmed-0") == []


def test_a_folder_that_is_missing(log: Path) -> None:
    (log / "orders-1").rename(log / ("orders-1." + "a" * 32 + "-future"))
    assert audit(log) == []  # the broker is moving it
    shutil.rmtree(log / ("orders-1." + "a" * 32 + "-future"))
    (finding,) = missing_replicas(evidence_of(log))
    assert finding.code.name == "missing_folder"
    assert finding.known == (
        "recovery-point-offset-checkpoint has the offset 66 of orders-1, which has no folder there"
    )
    (log / CLEAN).unlink()
    assert audit(log) == []


def test_a_folder_without_a_log(log: Path) -> None:
    """Its index files are there."""
    (path,) = (log / "orders-1").glob("*.log")
    path.rename(path.with_suffix(".log.deleted"))
    assert audit(log) == []  # the broker is removing the segment
    path.with_suffix(".log.deleted").unlink()
    assert audit(log) == [("missing_log", "orders-1", None)]
    points = log / "recovery-point-offset-checkpoint"
    points.write_text(points.read_text().replace("orders 1 66", "orders 1 0"))
    assert audit(log) == []
    points.write_text(points.read_text().replace("orders 1 0", "orders 1 66"))
    (log / CLEAN).unlink()
    assert audit(log) == []


def test_high_watermarks_of_partitions_that_were_removed(log: Path) -> None:
    path = log / "replication-offset-checkpoint"
    path.write_text("0\n1\ngone 0 5\n")  # a broker leaves it so when it removes the last partition of a directory
    assert audit(log) == []


def test_folders_of_partitions_that_are_not_asked_for_are_not_missing(log: Path) -> None:
    shutil.rmtree(log / "orders-1")
    assert audit(log / "orders-0") == []
    assert audit(log) == [("missing_folder", "orders-1", None)]
    for chosen, is_found in (
        ({"topics": ["plain"]}, False),
        ({"partitions": [0]}, False),
        ({"topics": ["orders"]}, True),
    ):
        found = kraftlog.open(log, **chosen).findings(["code", "file"]).to_pylist()
        assert bool(found) is is_found
    shutil.rmtree(log / "orders-0")
    other = log.parent / "other"
    shutil.copytree(folder_of("3.9.1", "clean") / "log", other)
    found = kraftlog.open([str(log.parent / "l*"), other], topics=["orders"]).findings(["code", "file"]).to_pylist()
    assert {(one["code"], one["file"]) for one in found} == {
        ("missing_folder", str(log / "recovery-point-offset-checkpoint"))
    }


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("0\n1\n1 0\n", 63),  # another epoch
        ("0\n1\n0 70\n", 63),  # begins after the first batch
        ("0\n2\n0 63\n2 87\n", 87),  # begins before the last batch, which has the epoch before it
        ("0\n2\n0 63\n2 88\n", None),  # a leader that has not written yet
        ("0\n2\n0 63\n2 89\n", 88),  # begins after the end
        ("0\n1\n", 63),
        ("0\n1\nx y\n", 63),
    ],
)
def test_leader_epochs_that_batches_contradict(log: Path, text: str, offset: int | None) -> None:
    (log / "trimmed-0" / "leader-epoch-checkpoint").write_text(text)
    expected = [] if offset is None else [("leader_epoch_mismatch", "trimmed-0", offset)]
    assert audit(log) == expected
    (log / CLEAN).unlink()
    assert audit(log) == []


def test_leader_epochs_of_a_log_whose_records_were_all_deleted(log: Path) -> None:
    """Kafka moves the last epoch to the start of the log, which is its end; the last batch is before it."""
    path = log / "log-start-offset-checkpoint"
    lines = [line for line in path.read_text().splitlines()[2:] if not line.startswith("trimmed 0 ")]
    path.write_text("\n".join(["0", str(len(lines) + 1), *lines, "trimmed 0 88", ""]))
    (log / "trimmed-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 88\n")
    assert audit(log) == []
    (log / "trimmed-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 89\n")
    assert audit(log) == [("leader_epoch_mismatch", "trimmed-0", 88)]


def test_time_indexes_that_a_running_broker_deletes_meanwhile(log: Path) -> None:
    evidence = evidence_of(log)
    assert evidence.lines.partitions
    for path in log.glob("*/*.timeindex"):
        path.unlink()
    assert list(future_timestamps(evidence)) == []


def test_a_log_without_the_file_of_leader_epochs_is_no_finding(log: Path) -> None:
    (log / "trimmed-0" / "leader-epoch-checkpoint").unlink()
    assert audit(log) == []


def test_a_gap_between_the_tier_and_the_log_directory(tmp_path: Path) -> None:
    golden = GOLDEN / "remote_tier"
    logs = Path(shutil.copytree(golden / "logs", tmp_path / "logs"))
    tier = Path(shutil.copytree(golden / "tier", tmp_path / "tier"))
    assert audit(logs, RemoteTier(tier)) == []  # type: ignore[arg-type]
    stored = sorted(path for path in tier.rglob("*") if path.is_file() and path.name.endswith(".log"))
    stored[1].unlink()
    names = [name for name, _, _ in audit(logs, RemoteTier(tier))]  # type: ignore[arg-type]
    assert names == ["tier_gap"]
    assert audit(logs) == []  # without the tier nothing is known of it
