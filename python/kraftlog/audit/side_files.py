"""Checks of the files beside a log: indexes, snapshots, checkpoints, leader epochs, and the remote tier."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.check.partitions import side_file_faults
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_leader_epochs,
)
from kraftlog.layout.names import LARGEST_OFFSET
from kraftlog.layout.segment import Segment
from kraftlog.layout.tier.join import TIER_GAP
from kraftlog.read.lineage import Lineage
from kraftlog.read.partitions import Replica
from kraftlog.topics import TopicPartition

_SETTLED = (
    "The segment was closed before the recovery point of its directory, or its broker was shut down cleanly: after a"
    " crash a broker rebuilds these files. All batches of the segment are intact."
)
_CLEAN = "The broker of the directory was shut down cleanly, so that all its files are of the same moment."

INDEX_MISMATCH = FindingCode(
    "index_mismatch",
    Severity.WARNING,
    "The broker trusts this index: a fetch or a search by time may start at the wrong batch. Delete the index while the"
    " broker is stopped; it builds a new one when it starts.",
    _SETTLED,
    ("bad_index",),
)
TXNINDEX_MISMATCH = FindingCode(
    "txnindex_mismatch",
    Severity.ERROR,
    "The broker tells read_committed consumers by this file which transactions were aborted: they see records of"
    " aborted transactions, or miss committed ones.",
    _SETTLED + " In a cleaned segment only contradictions count.",
)
SNAPSHOT_MISMATCH = FindingCode(
    "snapshot_mismatch",
    Severity.WARNING,
    "The broker loads its producers from this snapshot: it may refuse their next batch, or accept a duplicate.",
    _SETTLED + " All records up to the snapshot are in the log.",
    ("bad_snapshot",),
)
RECOVERY_POINT_AFTER_END = FindingCode(
    "recovery_point_after_end",
    Severity.ERROR,
    "Records that were on disk are missing at the end of the log.",
    _CLEAN,
)
HIGH_WATERMARK_AFTER_END = FindingCode(
    "high_watermark_after_end",
    Severity.ERROR,
    "Records that were committed on all in-sync replicas are missing at the end of this log.",
    _CLEAN,
)
LOG_START_AFTER_END = FindingCode(
    "log_start_after_end",
    Severity.ERROR,
    "The checkpoint deletes the whole log: it belongs to another log, or the end of this one is missing.",
    _CLEAN,
)
CLEANER_OFFSET_AFTER_END = FindingCode(
    "cleaner_offset_after_end",
    Severity.NOTE,
    "The cleaner starts over: the checkpoint belongs to another log, or the end of this one is missing.",
    _CLEAN,
)
MISSING_FOLDER = FindingCode(
    "missing_folder",
    Severity.ERROR,
    "The broker had a replica here, and its folder is gone. A broker that starts creates an empty one: if it becomes"
    " the leader, the other replicas truncate their logs.",
    _CLEAN + " It is one of the paths. No folder in it has the partition, not even one that Kafka moves or deletes.",
)
MISSING_LOG = FindingCode(
    "missing_log",
    Severity.ERROR,
    "The log files of this replica are gone. A broker that starts begins an empty log: if it becomes the leader, the"
    " other replicas truncate theirs.",
    _CLEAN
    + " It is one of the paths. The recovery point is not 0, and the folder has no log file, not even one that Kafka"
    " deletes.",
)
LEADER_EPOCH_MISMATCH = FindingCode(
    "leader_epoch_mismatch",
    Severity.WARNING,
    "The broker answers followers by this file when they ask where to truncate: replicas may diverge.",
    _CLEAN + " No part of the log is in a remote tier, and its batches can be read.",
)
GAP_IN_TIER = FindingCode(
    TIER_GAP,
    Severity.ERROR,
    "A consumer that reaches these offsets gets an error, or skips them: neither the remote tier nor the log directory"
    " has them.",
    "The remote tier is among the paths. Segments that __remote_log_metadata calls deleted are not expected.",
)

_CODES = {
    "bad_index": INDEX_MISMATCH,
    "index_mismatch": INDEX_MISMATCH,
    "txnindex_mismatch": TXNINDEX_MISMATCH,
    "bad_snapshot": SNAPSHOT_MISMATCH,
    "snapshot_mismatch": SNAPSHOT_MISMATCH,
}


def side_files(evidence: Evidence) -> Iterator[Finding]:
    """Return index files and snapshots that differ from their log: the first difference of each segment."""
    for replica in evidence.live_replicas:
        settled = {one.base_offset: one for one in replica.segments if _is_settled(one)}
        faults: dict[tuple[FindingCode, Segment], list[Fault]] = {}
        for fault in side_file_faults(list(replica.segments)) if settled else ():
            segment = settled.get(fault.segment_base_offset)
            if segment is not None and fault.error in _CODES:
                faults.setdefault((_CODES[fault.error], segment), []).append(fault)
        for (code, segment), some in faults.items():
            others = f"; and {len(some) - 1} more" if len(some) > 1 else ""
            yield Finding(
                code,
                some[0].message.removeprefix(f"{segment.name}: ") + others,
                segment.topic,
                segment.partition,
                segment.base_offset,
                replica.node_id,
                str(segment.folder),
                evidence.command("verify", segment.topic_partition),
            )


def _is_settled(segment: Segment) -> bool:
    """Whether a broker trusts the files beside a segment, up to its end."""
    is_clean = segment.settled_offset == LARGEST_OFFSET
    return is_clean or (segment.end_offset is not None and segment.end_offset <= segment.settled_offset)


def checkpoints(evidence: Evidence) -> Iterator[Finding]:
    """Return offsets in the checkpoints of a log directory that the logs do not have."""
    of_checkpoints = evidence.checkpoints
    kinds = (
        (RECOVERY_POINT_AFTER_END, RECOVERY_POINTS, of_checkpoints.recovery_point),
        (HIGH_WATERMARK_AFTER_END, HIGH_WATERMARKS, of_checkpoints.high_watermark),
        (LOG_START_AFTER_END, LOG_START_OFFSETS, of_checkpoints.log_start_offset),
        (CLEANER_OFFSET_AFTER_END, CLEANER_OFFSETS, of_checkpoints.cleaner_offset),
    )
    for replica in _clean_replicas(evidence):
        end = replica.end.end_offset
        for code, name, offset_of in kinds:
            offset = offset_of(replica)
            if offset is not None and offset > end:
                of = replica.segments[0].topic_partition
                assert of is not None
                yield Finding(
                    code,
                    f"{name} has the offset {offset}, but the log ends at offset {end}",
                    *of,
                    end,
                    replica.node_id,
                    str(replica.directory / name),
                    evidence.command(
                        "replicas", of, "--columns", "directory,log_start_offset,end_offset,high_watermark"
                    ),
                )


def missing_replicas(evidence: Evidence) -> Iterator[Finding]:
    """Return partitions that the recovery points of a log directory have, and whose folder or log files are gone.

    High watermarks prove less: a broker does not write them again when it removes the last partition of a directory.
    """
    there = {of for of in (one.segments[0].topic_partition for one in evidence.live_replicas) if of is not None}
    for directory in evidence.whole_directories:
        offsets = evidence.checkpoints.offsets(directory.path, RECOVERY_POINTS) or {} if directory.is_clean else {}
        for of, offset in sorted((TopicPartition(*of), offset) for of, offset in offsets.items()):
            folders = directory.folders.get(of)
            if not evidence.is_selected(of):
                continue
            if folders is None:
                code, what, file = MISSING_FOLDER, "which has no folder there", directory.path / RECOVERY_POINTS
            elif offset and folders == (str(of),) and not _has_log(directory.path / str(of)):
                code, what, file = MISSING_LOG, "whose folder has no log file", directory.path / str(of)
            else:
                continue
            yield Finding(
                code,
                f"{RECOVERY_POINTS} has the offset {offset} of {of}, {what}",
                *of,
                None,
                directory.node_id,
                str(file),
                evidence.command("replicas", of) if of in there else None,
            )


def _has_log(folder: LogPath) -> bool:
    """Whether a folder has a log file in any state; so has one that cannot be listed, which is a fault."""
    try:
        return any(".log" in entry.name for entry in disk().entries(folder))
    except OSError:
        return True


def leader_epochs(evidence: Evidence) -> Iterator[Finding]:
    """Return logs whose ``leader-epoch-checkpoint`` names another epoch for a batch than the batch itself."""
    for replica in _clean_replicas(evidence):
        if any(segment.stored for segment in replica.segments):
            continue
        path = replica.folder / LEADER_EPOCHS
        lineage = replica.lineage
        contradiction = None if replica.faults else _contradiction(path, lineage, replica.start_offset)
        if contradiction is not None:
            offset, what = contradiction
            of = replica.segments[0].topic_partition
            assert of is not None
            yield Finding(LEADER_EPOCH_MISMATCH, what, *of, offset, replica.node_id, str(path))


def _contradiction(path: LogPath, lineage: Lineage, start_offset: int) -> tuple[int, str] | None:
    """Return the first offset for which the file and the batches have different epochs; None without one."""
    try:
        entries = sorted(read_leader_epochs(path))
    except FileNotFoundError:
        return None  # before message format 2
    except (OSError, CorruptRecordError) as error:
        return start_offset, f"{path.name} cannot be read: {error}"
    places = [(one.epoch, max(one.start_offset, start_offset)) for one in lineage.epochs]
    places += [(lineage.last_epoch, max(lineage.end_offset - 1, start_offset))] if places else []
    for epoch, offset in places:
        if offset >= lineage.end_of(epoch):
            continue  # the epoch lies before the start of the log
        of_file = max((one for one, first in entries if first <= offset), default=None)
        if of_file != epoch:
            names = "no epoch" if of_file is None else f"epoch {of_file}"
            return offset, f"{path.name} has {names} for offset {offset}, whose batch has epoch {epoch}"
    if entries and entries[-1][1] > lineage.end_offset:
        epoch, first = entries[-1]
        return lineage.end_offset, (
            f"{path.name} has epoch {epoch} from offset {first} on, but the log ends at offset {lineage.end_offset}"
        )
    return None


def gaps_in_tier(evidence: Evidence) -> Iterator[Finding]:
    """Return offsets between a remote tier and the log directory that neither of them has."""
    for item in evidence.files.unread:
        if item.error == TIER_GAP:
            yield Finding(GAP_IN_TIER, item.reason, item.topic, item.partition, item.base_offset, file=str(item.path))


def _clean_replicas(evidence: Evidence) -> Iterator[Replica]:
    """Return the live replicas in directories whose broker was shut down cleanly."""
    for replica in evidence.live_replicas:
        directory = evidence.directories.get(replica.directory)
        if directory is not None and directory.is_clean:
            yield replica


CHECKS = (side_files, checkpoints, missing_replicas, leader_epochs, gaps_in_tier)
