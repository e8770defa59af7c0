"""Writes snapshots of the metadata log: ``<end_offset>-<epoch>.checkpoint``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kraftlog.codec.control_records import control_batch, snapshot_footer, snapshot_header
from kraftlog.codec.encode import Encoder
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import new_file
from kraftlog.transactions.metadata_encoder import metadata_encoder
from kraftlog.transactions.metadata_transaction import Values, value_batches

UNFINISHED_SNAPSHOT = ".part"


def snapshot_path(folder: Path, end_offset: int, epoch: int) -> Path:
    """Return the path of a snapshot of everything before an offset, whose last record has that epoch."""
    return folder / f"{end_offset:020d}-{epoch:010d}.checkpoint"


def write_snapshot(
    path: Path,
    records: Values,
    *,
    epoch: int,
    last_contained_log_timestamp: int,
    timestamp_ms: int,
    max_batch_bytes: int,
    quorum: Iterable[tuple[str, bytes]] = (),
) -> None:
    """Write a snapshot, or nothing on failure.

    Parameters
    ----------
    path : Path
    records : arrays of binary
        Serialized metadata records, none of which is a transaction marker.
    epoch : int
        Epoch of the snapshot, and of all its batches.
    last_contained_log_timestamp : int
        Append time of the last record that the snapshot replaces.
    timestamp_ms : int
        Timestamp of the snapshot's records.
    max_batch_bytes : int
    quorum : iterable of tuple
        The control records with the voters of a dynamic quorum, as type and value.

    Raises
    ------
    FileExistsError
        When the snapshot exists.
    """
    if disk().entry(path) is not None:
        raise FileExistsError(f"{path}: this snapshot exists")
    with new_file(path, UNFINISHED_SNAPSHOT) as file:
        head = [("SNAPSHOT_HEADER", snapshot_header(last_contained_log_timestamp)), *quorum]
        batch = {"partition_leader_epoch": epoch, "timestamp_ms": timestamp_ms}
        for offset, (control_type, value) in enumerate(head):
            file.append(control_batch(control_type, value, base_offset=offset, **batch))
        encoder = metadata_encoder(Encoder, max_batch_bytes, len(head), epoch, timestamp_ms)
        for rows in value_batches(records):
            encoder.write(rows)
            file.append(encoder.take())
        file.append(encoder.finish())
        footer_offset = encoder.next_offset
        file.append(control_batch("SNAPSHOT_FOOTER", snapshot_footer(), base_offset=footer_offset, **batch))
