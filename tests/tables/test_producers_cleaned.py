"""Timestamps of producers that only a snapshot still has, and producers of records that were deleted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kraftlog
from golden_releases import folder_of
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import ReadOptions
from kraftlog.layout.index_files import ENTRY_TYPES
from kraftlog.layout.producer_snapshot import producer_snapshot_bytes, read_producer_snapshot
from kraftlog.read.log_pass import Pass
from kraftlog.tables.producer_tables import producer_states
from kraftlog.transactions.producer_state import ProducerStates


@pytest.fixture
def compacted(tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder_of("3.9.1", "clean") / "log" / "compacted-0", tmp_path / "compacted-0"))


def timestamps(folder: Path, end_offset: int = (1 << 63) - 1) -> dict[int, int]:
    segments = kraftlog.open(folder).found.segments
    states = producer_states(segments, Pass(ReadOptions(end_offset=end_offset)))
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
    """A broker that loads the log knows them from a snapshot behind the log start offset, and from nothing else."""
    segments = kraftlog.open(folder_of("3.9.1", "clean") / "log" / "trimmed-0").found.segments
    known = producer_states(segments, Pass())
    end = max(state.last_offset for state in known) + 2
    assert known
    for start in range(end):
        behind = [replace(segment, log_start_offset=start) for segment in segments]
        assert producer_states(behind, Pass()) == known
    at_end = [replace(segment, log_start_offset=end) for segment in segments]
    assert producer_states(at_end, Pass()) == []


EVERY, CLOSED, END = {0, 2, 4, 6, 8, 10}, None, 12
NO_END = f"{END:020d}.snapshot"


def log_of(base_offset: int) -> str:
    return f"{base_offset:020d}.log"


def index_of(base_offset: int) -> str:
    return f"{base_offset:020d}.index"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a log of segments at 0, 4 and 8, of batches of two records, each of the producer of its base offset."""
    folder, states = tmp_path / "t-0", ProducerStates()
    folder.mkdir()
    rows = pa.table({"value": [b"a", b"b"]})
    for base in 0, 4, 8:
        batches = [
            kraftlog.encode(rows, base_offset=offset, producer_id=offset, producer_epoch=0, base_sequence=0)
            for offset in (base, base + 2)
        ]
        data = b"".join(batch.to_pybytes() for batch in batches)
        (folder / f"{base:020d}.log").write_bytes(data)
        (folder / index_of(base)).write_bytes(b"")
        states.add(next(HeaderScan(data, check_crc=True).headers()))
        (folder / f"{base + 4:020d}.snapshot").write_bytes(producer_snapshot_bytes(states.states()))
    return tmp_path


@pytest.mark.parametrize(
    ("point", "start", "lost", "known"),
    [
        (CLOSED, 9, [], EVERY),  # the snapshot of the end
        (CLOSED, END, [], set()),
        (CLOSED, 6, [NO_END], EVERY),  # that of the last segment
        (CLOSED, 9, [NO_END], {8, 10}),  # the batch with the log start offset
        (CLOSED, 10, [NO_END], {10}),
        (CLOSED, 6, [index_of(4)], {4, 6, 8, 10}),  # the segment is recovered, and all snapshots behind it made anew
        (CLOSED, 4, [index_of(8)], EVERY),
        (CLOSED, 2, [index_of(0)], EVERY),
        (CLOSED, 4, [log_of(0)], EVERY),
        (CLOSED, 4, [log_of(0), index_of(4)], {4, 6, 8, 10}),
        (CLOSED, 6, [index_of(0)], set()),  # no snapshot is left: a broker believes that there were no producers
        (END, 9, [], {8, 10}),  # the last segment is recovered, and the snapshot of the end made anew
        (8, 6, [], EVERY),
        (8, 8, [], {8, 10}),
        (8, 10, [], {8, 10}),
        (4, 5, [], {4, 6, 8, 10}),
        (4, 2, [], EVERY),
        (0, 2, [], EVERY),
        (0, 6, [], {4, 6, 8, 10}),
        (0, 11, [], {8, 10}),
        (0, END, [], set()),
        (8, 6, [index_of(0)], {6, 8, 10}),  # what is between is read from the log start offset on
        (8, 7, [index_of(4)], {4, 6, 8, 10}),
    ],
)
def test_where_a_broker_begins(directory: Path, point: int | None, start: int, lost: list[str], known: set[int]):
    """As Kafka 4.3 loads the same files: ``test_producers_behind_a_log_start`` in tests/interop."""
    (directory / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {start}\n")
    if point is CLOSED:
        (directory / ".kafka_cleanshutdown").write_text("")
    (directory / "recovery-point-offset-checkpoint").write_text(f"0\n1\nt 0 {END if point is CLOSED else point}\n")
    for name in lost:
        (directory / "t-0" / name).unlink()
    log = kraftlog.open(directory)
    assert set(log.producers(["producer_id"])["producer_id"].to_pylist()) == known
    everything = producer_states(log.found.segments, Pass(ReadOptions(include_deleted=True)))
    assert {state.producer_id for state in everything} == EVERY


@pytest.mark.parametrize("point", [0, 4, 8])
@pytest.mark.parametrize(("start", "known"), [(0, {0, 2, 4, 6}), (5, {4, 6}), (7, {4, 6}), (8, set())])
def test_a_last_segment_of_which_a_crash_has_left_nothing(directory: Path, point: int, start: int, known: set[int]):
    """The segment ends where it begins: what the snapshot there knows was not before the log start offset."""
    (directory / "t-0" / log_of(8)).write_bytes(b"")
    (directory / "t-0" / NO_END).unlink()
    (directory / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {start}\n")
    (directory / "recovery-point-offset-checkpoint").write_text(f"0\n1\nt 0 {point}\n")
    log = kraftlog.open(directory)
    if point == 8 and known:
        known = {0, 2, 4, 6}  # the snapshot there is on disk
    assert set(log.producers(["producer_id"])["producer_id"].to_pylist()) == known


def test_a_txnindex_that_a_broker_does_not_take(directory: Path):
    """It names a transaction that ended before its segment, which a broker recovers then."""
    test_where_a_broker_begins(directory, CLOSED, 6, [], EVERY)
    entry = np.zeros(1, ENTRY_TYPES["txnindex"])
    entry["last_offset"] = 4
    path = directory / "t-0" / f"{4:020d}.txnindex"
    path.write_bytes(entry.tobytes())
    test_where_a_broker_begins(directory, CLOSED, 6, [], EVERY)
    entry["last_offset"] = 3
    path.write_bytes(entry.tobytes())
    test_where_a_broker_begins(directory, CLOSED, 6, [], {4, 6, 8, 10})
