"""How a controller takes over a metadata log: finds its end, begins an epoch, ends what its predecessor left open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kraftlog.codec.control_records import control_batch, leader_change
from kraftlog.codec.encode import Encoder
from kraftlog.codec.metadata_markers import abort_transaction
from kraftlog.codec.metadata_version import has_metadata_transactions
from kraftlog.disk.durable import write_file
from kraftlog.errors import CorruptRecordError, InvalidTransactionStateError
from kraftlog.layout.leader_epochs import LeaderEpochs
from kraftlog.layout.names import parse_checkpoint_file, parse_segment_file
from kraftlog.write.log_appender import LogAppender
from kraftlog.write.metadata_tail import ends_inside_transaction
from kraftlog.write.segment_tail import SegmentState, empty_segment, read_segment

CONTROLLER_FAILOVER = "Controller failover"  # the reason that Kafka gives, too
PARTITION_METADATA = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass(frozen=True)
class LogEnd:
    """The end of a metadata log, as it is found.

    Attributes
    ----------
    base_offset : int
        Of the last segment; of the first one to come, when there is none.
    state : SegmentState
        Of the last segment.
    epochs : LeaderEpochs
    is_in_transaction : bool
        Whether it ends inside a transaction.
    quorum_epoch : int
        That ``quorum-state`` knows of; -1 when it says nothing.
    """

    base_offset: int
    state: SegmentState
    epochs: LeaderEpochs
    is_in_transaction: bool
    quorum_epoch: int


def find_end(folder: Path, index_interval_bytes: int) -> LogEnd:
    """Read what an appender must know of a metadata log; nothing is written.

    Raises
    ------
    CorruptRecordError
        When the last segment has damage with sound batches behind it.
    ValueError
        When the log ends before its newest snapshot.
    """
    names = [path.name for path in folder.iterdir()]
    parsed = [file for name in names if (file := parse_segment_file(name)) and file.kind == "log" and not file.state]
    bases = sorted(file.base_offset for file in parsed)
    paths = [folder / f"{base:020d}.log" for base in bases]
    snapshots = [_snapshot_id(name) for name in names if parse_checkpoint_file(name) == "" and name[0].isdigit()]
    snapshot_end, snapshot_epoch = max(snapshots, default=(0, -1))
    quorum_epoch = _quorum_epoch(folder / "quorum-state")
    if not paths:
        epochs = LeaderEpochs(folder, snapshot_end, [(snapshot_epoch, snapshot_end)])
        return LogEnd(snapshot_end, empty_segment(snapshot_end, index_interval_bytes), epochs, False, quorum_epoch)
    state = read_segment(paths[-1], bases[-1], index_interval_bytes)
    if state.next_offset < snapshot_end:
        raise ValueError(f"{folder}: the log ends at offset {state.next_offset}, before its snapshot of {snapshot_end}")
    epochs = LeaderEpochs(folder, bases[-1], state.epochs)
    if not epochs.is_in_file:
        for base, path in zip(bases, paths, strict=True):
            epochs.add(read_segment(path, base, index_interval_bytes).epochs)
    return LogEnd(bases[-1], state, epochs, ends_inside_transaction(paths, state.size), quorum_epoch)


def _quorum_epoch(path: Path) -> int:
    """Return the epoch that a node of the quorum has seen; another one may lead under it."""
    if not path.exists():
        return -1
    try:
        return int(json.loads(path.read_text())["leaderEpoch"])
    except (ValueError, KeyError, TypeError):
        raise CorruptRecordError(f"{path.parent.name}/{path.name}: not JSON with a number leaderEpoch") from None


def _snapshot_id(name: str) -> tuple[int, int]:
    end_offset, epoch = name.removesuffix(".checkpoint").split("-")
    return int(end_offset), int(epoch)


def check_may_lead(end: LogEnd, epoch: int, metadata_version_level: int) -> None:
    """Raise when a log cannot be led under an epoch.

    Raises
    ------
    ValueError
        When the log, or its quorum, has a larger epoch.
    InvalidTransactionStateError
        When it ends inside a transaction, and that cannot be aborted.
    """
    if epoch < end.epochs.last:
        raise ValueError(f"leader_epoch {epoch} is less than the last one of the log, {end.epochs.last}")
    if epoch < end.quorum_epoch:
        raise ValueError(f"leader_epoch {epoch} is less than that of quorum-state, {end.quorum_epoch}")
    if not end.is_in_transaction:
        return
    if epoch == end.epochs.last:
        raise InvalidTransactionStateError(
            f"the log ends inside a transaction; only a leader_epoch above {epoch} can abort it"
        )
    if not has_metadata_transactions(metadata_version_level):
        raise InvalidTransactionStateError("the log ends inside a transaction, which metadata.version does not know")


def lead(log: LogAppender, end: LogEnd, epoch: int, timestamp_ms: int, leader: int, voters: Sequence[int]) -> None:
    """Begin a new epoch, and abort what the one before left open; nothing is written when the epoch is not new."""
    if epoch > end.epochs.last:
        end.epochs.assign(epoch, log.next_offset)
        value = leader_change(leader, voters, voters)
        batch = control_batch(
            "LEADER_CHANGE",
            value,
            base_offset=log.next_offset,
            partition_leader_epoch=epoch,
            timestamp_ms=timestamp_ms,
        )
        log.append(batch, commit=True)
        if end.is_in_transaction:
            encoder = Encoder(base_offset=log.next_offset, partition_leader_epoch=epoch, timestamp_ms=timestamp_ms)
            encoder.write_marker(abort_transaction(CONTROLLER_FAILOVER))
            log.append(encoder.finish(), commit=True)
    end.epochs.write()


def write_partition_metadata(folder: Path) -> None:
    """Write the file with the topic id of the metadata log, when it is missing."""
    path = folder / "partition.metadata"
    if not path.exists():
        write_file(path, PARTITION_METADATA)
