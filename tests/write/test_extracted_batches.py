"""Markers that end transactions where a log is cut fit those before them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import kraftlog
from kraftlog.codec.options import ReadOptions
from kraftlog.topics import TopicPartition
from kraftlog.transactions.cut import Cut
from kraftlog.write.extracted_batches import ExtractedBatches

EPOCHS = {7: 5, 8: 2}  # of the coordinators of two producers


def data(offset: int, producer_id: int, sequence: int, leader_epoch: int = 0) -> bytes:
    return kraftlog.encode(
        pa.record_batch({"value": ["x"]}),
        base_offset=offset,
        timestamp_ms=1000 + offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
        partition_leader_epoch=leader_epoch,
    ).to_pybytes()


def commit(offset: int, producer_id: int, coordinator_epoch: int) -> bytes:
    return kraftlog.encode_marker(
        "COMMIT",
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=coordinator_epoch,
        base_offset=offset,
        partition_leader_epoch=0,
        timestamp_ms=1000 + offset,
    ).to_pybytes()


@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(end_timestamp=1008)], ids=["cut", "end time"])
def test_aborts_have_the_coordinator_epoch_of_the_marker_before(tmp_path: Path, options: ReadOptions) -> None:
    """A broker refuses one of an older coordinator, and audits and verify name it."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    batches = [
        *(data(0, 7, 0), commit(1, 7, 1), data(2, 7, 1), commit(3, 7, EPOCHS[7])),
        *(data(4, 8, 0), commit(5, 8, EPOCHS[8])),
        *(data(6, 7, 2), data(7, 8, 1)),  # open
        *(commit(8, 7, 9), commit(9, 8, 9)),
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    cut = None if options.end_timestamp == 1008 else Cut({TopicPartition("t", 0): 8})
    extracted = ExtractedBatches(kraftlog.open(folder, cut=cut).found.segments, options)
    pieces = b"".join(bytes(piece.data) for piece in extracted.pieces())
    (folder / f"{0:020d}.log").write_bytes(pieces)
    parts = kraftlog.open(folder).partition_transactions(["producer_id", "state", "coordinator_epoch"]).to_pylist()
    aborted = {row["producer_id"]: row["coordinator_epoch"] for row in parts if row["state"] == "aborted"}
    assert aborted == (EPOCHS if cut else {7: 9, 8: 9})
    assert [fault.message for fault in kraftlog.open(folder).verify()] == []


def test_aborts_have_the_leader_epoch_of_the_batch_before(tmp_path: Path) -> None:
    """Leader epochs do not go back, also where the producer wrote last before an election."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    batches = [data(0, 7, 0, leader_epoch=1), data(1, 8, 0, leader_epoch=4), data(2, 9, 0, leader_epoch=6)]
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    segments = kraftlog.open(folder, cut=Cut({TopicPartition("t", 0): 2})).found.segments
    extracted = ExtractedBatches(segments, ReadOptions())
    pieces = b"".join(bytes(piece.data) for piece in extracted.pieces())
    (folder / f"{0:020d}.log").write_bytes(pieces)
    epochs = kraftlog.open(folder).batches(["partition_leader_epoch"])["partition_leader_epoch"].to_pylist()
    assert epochs == [1, 4, 4, 4]
    assert extracted.leader_epoch == 4
