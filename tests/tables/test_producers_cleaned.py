"""Timestamps of producers that only a snapshot still has, and producers of records that were deleted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import kraftlog
from golden_releases import folder_of
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot
from kraftlog.tables.producer_tables import producer_states


@pytest.fixture
def compacted(tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder_of("3.9.1", "clean") / "log" / "compacted-0", tmp_path / "compacted-0"))


def timestamps(folder: Path, end_offset: int = (1 << 63) - 1) -> dict[int, int]:
    segments = kraftlog.open(folder).found.segments
    states = producer_states(segments, ReadOptions(end_offset=end_offset), [])
    return {state.producer_id: state.last_timestamp for state in states}


def test_the_snapshot_of_the_end_knows_later_timestamps(compacted: Path):
    """As after a compaction that removed the record with the largest timestamp of a batch."""
    before = timestamps(compacted)
    path = max(compacted.glob("*.snapshot"))
    states = read_producer_snapshot(path)
    assert {state.producer_id: state.last_timestamp for state in states} == before
    later = [replace(state, last_timestamp=state.last_timestamp + 1) for state in states]
    path.write_bytes(producer_snapshot_bytes(later))
    assert timestamps(compacted) == {producer_id: timestamp + 1 for producer_id, timestamp in before.items()}
    end = int(path.stem)
    assert timestamps(compacted, end - 1).items() <= before.items()  # of the end, and of nothing before
    earlier = [replace(state, last_timestamp=state.last_timestamp - 1) for state in states]
    path.write_bytes(producer_snapshot_bytes(earlier))
    assert timestamps(compacted) == before


def test_another_batch_has_another_timestamp(compacted: Path):
    before = timestamps(compacted)
    path = max(compacted.glob("*.snapshot"))
    states = read_producer_snapshot(path)
    others = [replace(one, last_timestamp=one.last_timestamp + 1, last_offset=one.last_offset - 1) for one in states]
    path.write_bytes(producer_snapshot_bytes(others))
    assert timestamps(compacted) == before


def test_producers_of_deleted_records():
    """A broker that loads the log does not know them."""
    segments = kraftlog.open(folder_of("3.9.1", "clean") / "log" / "trimmed-0").found.segments
    known = producer_states(segments, ReadOptions(), [])
    end = max(state.last_offset for state in known) + 2
    at_end = [replace(segment, log_start_offset=end) for segment in segments]
    assert known
    assert producer_states(at_end, ReadOptions(), []) == []
    snapshot = max(segment.base_offset or 0 for segment in segments if "snapshot" in segment.beside)
    behind = [replace(segment, log_start_offset=snapshot + 1) for segment in segments]
    assert 0 < len(producer_states(behind, ReadOptions(), [])) < len(known)
    before = [replace(segment, log_start_offset=snapshot - 1) for segment in segments]  # a broker loads the snapshot
    assert producer_states(before, ReadOptions(), []) == known
