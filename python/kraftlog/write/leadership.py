"""How a controller takes over a metadata log: it finds the end, begins an epoch, and ends an open transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kraftlog.codec.batch_encoder import BatchEncoder
from kraftlog.codec.control_records import control_batch, leader_change
from kraftlog.codec.metadata_markers import abort_transaction
from kraftlog.codec.metadata_version import has_metadata_transactions
from kraftlog.disk.disk import disk
from kraftlog.disk.durable import write_file
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, InvalidTransactionStateError
from kraftlog.layout.partition_folder import PartitionFolder
from kraftlog.write.log_end import LogEnd, find_log_end
from kraftlog.write.metadata_tail import ends_inside_transaction
from kraftlog.write.partition_log import PartitionLog

CONTROLLER_FAILOVER = "Controller failover"  # Kafka's reason
PARTITION_METADATA = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass(frozen=True)
class MetadataLogEnd:
    """The end of a metadata log for a new controller.

    Attributes
    ----------
    log : LogEnd
    is_in_transaction : bool
        Whether it ends inside a transaction.
    quorum_epoch : int
        Epoch in ``quorum-state``; -1 without one.
    """

    log: LogEnd
    is_in_transaction: bool
    quorum_epoch: int


def find_metadata_log_end(folder: Path, index_interval_bytes: int, recovery_point: int | None) -> MetadataLogEnd:
    """Read the end of a metadata log for a controller; nothing is written.

    Raises
    ------
    CorruptRecordError
        When there are sound batches, which may have been acknowledged, after damage.
    ValueError
        When the log ends before its newest snapshot.
    """
    snapshots = [(each.end_offset, each.epoch) for each in PartitionFolder.of(folder).metadata_snapshots]
    snapshot_end, snapshot_epoch = max(snapshots, default=(0, -1))
    end = find_log_end(
        folder,
        index_interval_bytes=index_interval_bytes,
        recovery_point=recovery_point,
        start_offset=snapshot_end,
    )
    if end.next_offset < snapshot_end:
        raise ValueError(f"{folder}: the log ends at offset {end.next_offset}, before its snapshot of {snapshot_end}")
    if not end.segments:
        end.epochs.add([(snapshot_epoch, snapshot_end)])
    paths = [segment.local_path for segment in end.segments]
    return MetadataLogEnd(end, ends_inside_transaction(paths, end.size), quorum_epoch(folder))


def quorum_epoch(folder: LogPath) -> int:
    """Return the epoch in ``quorum-state``, which may have another leader; -1 without one."""
    path = folder / "quorum-state"
    if disk().entry(path) is None:
        return -1
    try:
        return int(json.loads(disk().read_bytes(path))["leaderEpoch"])
    except (ValueError, KeyError, TypeError):
        raise CorruptRecordError(f"{path.parent.name}/{path.name}: expected JSON with a number leaderEpoch") from None


def next_epoch(end: MetadataLogEnd) -> int:
    """Return the epoch of the next controller: greater than those of the log and its quorum."""
    return max(end.log.epochs.last, end.quorum_epoch, 0) + 1


def check_may_lead(end: MetadataLogEnd, epoch: int, metadata_version_level: int) -> None:
    """Raise when a log cannot be led under an epoch.

    Raises
    ------
    ValueError
        When the log or its quorum has a greater epoch.
    InvalidTransactionStateError
        When it ends inside a transaction, and that cannot be aborted.
    """
    if epoch < end.log.epochs.last:
        raise ValueError(f"leader_epoch {epoch} is stale; the last epoch of the log is {end.log.epochs.last}")
    if epoch < end.quorum_epoch:
        raise ValueError(f"leader_epoch {epoch} is stale; the epoch in quorum-state is {end.quorum_epoch}")
    if not end.is_in_transaction:
        return
    if epoch == end.log.epochs.last:
        raise InvalidTransactionStateError(
            f"the log ends inside a transaction; only a leader_epoch greater than {epoch} can abort it"
        )
    if not has_metadata_transactions(metadata_version_level):
        raise InvalidTransactionStateError(
            "the log ends inside a transaction, which this metadata.version does not support"
        )


def lead(
    log: PartitionLog, epoch: int, timestamp_ms: int, leader: int, voters: Sequence[int], *, is_in_transaction: bool
) -> None:
    """Begin a new epoch, and abort a transaction left open by the last; an epoch that is not new writes nothing."""
    if epoch <= log.epochs.last:
        return
    log.begin_epoch(epoch)
    batch = control_batch(
        "LEADER_CHANGE",
        leader_change(leader, voters, voters),
        base_offset=log.next_offset,
        partition_leader_epoch=epoch,
        timestamp_ms=timestamp_ms,
    )
    log.append(batch, commit=True)
    if is_in_transaction:
        encoder = BatchEncoder(base_offset=log.next_offset, partition_leader_epoch=epoch, timestamp_ms=timestamp_ms)
        encoder.write_marker(abort_transaction(CONTROLLER_FAILOVER))
        log.append(encoder.finish(), commit=True)


def write_partition_metadata(folder: Path) -> None:
    """Write the file with the topic id of the metadata log, when it is missing."""
    path = folder / "partition.metadata"
    if disk().entry(path) is None:
        write_file(path, PARTITION_METADATA)
