"""Backups: the rows of ``REPOSITORY@NAME`` are those of the source at its cut, whatever happened to the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kraftlog
from golden_files import GOLDEN
from kraftlog.errors import RecordError

LEVELS = ("read_committed", "read_uncommitted")
COLUMNS = [
    *("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value", "headers", "producer_id"),
    *("producer_epoch", "sequence", "is_transactional", "is_control", "partition_leader_epoch", "transaction_state"),
]
LOGS = sorted(
    path for path in GOLDEN.rglob("log") if path.is_dir() and not (path.parent.parent.name == "damaged" and path.name != "log")
)
NAMES = [str(path.relative_to(GOLDEN).parent) for path in LOGS]


def rows(log: kraftlog.Log, level: str, **given: Any) -> pa.Table:
    """Return all records, and control records, by partition."""
    found = log.records(COLUMNS, isolation_level=level, include_control=True, **given).to_table()
    return found.sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])


def check_same(source: Path | list[Path], backup: str, **given: Any) -> None:
    """The records of a backup are those of its source at the cut."""
    has_offsets_of_damage = "bit_flip_base_offset" in str(source)  # at which a cut would end the log in its middle
    expected = kraftlog.open(source, cut=None if has_offsets_of_damage else "end", **given)
    found = kraftlog.open(backup, **given)
    for level in LEVELS:
        assert rows(found, level).equals(rows(expected, level))


@pytest.fixture
def repository(tmp_path: Path) -> kraftlog.Repository:
    return kraftlog.Repository(tmp_path / "nightly")


@pytest.mark.sweep(12)
@pytest.mark.parametrize("log", LOGS, ids=NAMES)
def test_rows_of_a_backup_are_those_of_the_source(log: Path, repository: kraftlog.Repository):
    manifest = repository.backup(log)
    path = f"{repository.path}@{manifest.name}"
    check_same(log, path)
    assert repository.verify(data=True) == []
    again = repository.backup(log)
    assert again.stored_size == 0
    assert (again.size, again.files, again.faults) == (manifest.size, manifest.files, manifest.faults)
    check_same(log, f"{repository.path}@{again.name}")
