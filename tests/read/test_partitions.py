"""Which segments belong together: those of one folder, whatever else is named beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.write.recover import recover
from kraftlog.write.recovery_action import RecoverOptions

PARTITION = Path("orders-0")


@pytest.fixture
def replicas(tmp_path: Path) -> list[Path]:
    """Return two log directories with the same partition, of several segments."""
    folders = [tmp_path / name / PARTITION for name in ("a", "b")]
    for folder in folders:
        shutil.copytree(GOLDEN / "transactions" / "log" / PARTITION, folder)
    return folders


def test_checks_and_recovery_are_of_each_replica(replicas: list[Path]):
    """What is read of both is in tests/tables/test_replicas.py."""
    both = kraftlog.open(replicas)
    assert len(both.found.segments) > 4
    assert list(both.verify()) == []
    assert {action.action for _, action in recover(replicas, RecoverOptions(interval_bytes=1024))} == {"keep"}


def test_a_torn_tail_is_refused_beside_another_replica(replicas: list[Path]):
    """Segments follow it, in its own folder."""
    first = replicas[0] / "00000000000000000000.log"
    first.write_bytes(first.read_bytes()[:-5])
    actions = [action for _, action in recover(replicas, RecoverOptions())]
    assert [action.path for action in actions if action.action == "refuse"] == [first]
    assert not [action for action in actions if action.action in ("cut", "remove")]


def test_a_segment_in_another_state_stands_alone(replicas: list[Path]):
    folder = replicas[0]
    live = kraftlog.open(folder).records(["offset"], isolation_level="read_committed").to_table()["offset"].to_pylist()
    deleted = folder / "00000000000000000102.log.deleted"
    shutil.copy(folder / "00000000000000000102.log", deleted)
    log = kraftlog.open([folder, deleted])
    found = log.records(["offset"], isolation_level="read_committed").to_table()["offset"].to_pylist()
    assert found[: len(live)] == live
    assert len(found) > len(live)


def test_files_of_other_names_stand_alone(tmp_path: Path):
    source = GOLDEN / "transactions" / "log" / "orders-2" / "00000000000000000000.log"
    names = [tmp_path / name for name in ("a.log", "b.log")]
    for name in names:
        shutil.copy(source, name)
    each = kraftlog.open(names[0]).partition_transactions().to_pylist()
    assert kraftlog.open(names).partition_transactions().to_pylist() == 2 * each


def test_a_metadata_log_outside_of_its_folder(tmp_path: Path):
    """It is known by the control record that only a Raft log begins with."""
    source = GOLDEN / "metadata_txn" / "controller_failover" / "log" / "__cluster_metadata-0"
    inside = kraftlog.open(source)
    copy = tmp_path / "00000000000000000000.log"
    shutil.copy(source / copy.name, copy)
    outside = kraftlog.open(copy)
    assert outside.metadata_transactions().to_pylist() == inside.metadata_transactions().to_pylist()
    assert outside.partition_transactions().num_rows == 0
    rows = [
        log.records(["offset"], isolation_level="read_committed").to_table().to_pylist() for log in (inside, outside)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 0
