"""Checks of the metadata log against the log directories: topic ids, assignments, in-sync replicas, directories."""

from __future__ import annotations

from collections.abc import Iterator

from kraftlog.audit.cluster_image import ClusterImage
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.metadata.uuids import LOST, names_directory, uuid_text
from kraftlog.read.partitions import Replica
from kraftlog.tables.commands import kraftlog
from kraftlog.topics import CLUSTER_METADATA, TopicPartition

_OWN = (
    "The broker was shut down cleanly, and its own metadata log is the last one among the files: both are of the same"
    " moment."
)

METADATA_LOG_CUT_OFF = FindingCode(
    "metadata_log_cut_off",
    Severity.ERROR,
    "The end of the metadata log is missing: it was truncated, or restored from an older copy. The checks that compare"
    " it with other files are left out.",
    "The broker was shut down cleanly, and no metadata log among the files ends later than its own. A .snapshot of its"
    " log, its broker epoch in .kafka_cleanshutdown, or the leader epoch of one of its partitions is later.",
)
TOPIC_ID_MISMATCH = FindingCode(
    "topic_id_mismatch",
    Severity.ERROR,
    "The folder belongs to another topic of the same name. The broker puts it aside when it starts, and begins with an"
    " empty log.",
    _OWN,
)
MISSING_TOPIC_ID = FindingCode(
    "missing_topic_id",
    Severity.WARNING,
    "A KRaft broker cannot tell which topic the folder belongs to, and may refuse to start.",
    _OWN + " The metadata log has a topic of that name.",
)
UNASSIGNED_FOLDER = FindingCode(
    "unassigned_folder",
    Severity.WARNING,
    "The metadata log does not assign the partition to this broker: it puts the folder aside when it starts, and"
    " deletes it.",
    _OWN + " The folder has a topic id.",
)
FOREIGN_METADATA_LOG = FindingCode(
    "foreign_metadata_log",
    Severity.WARNING,
    "A broker that starts with this metadata log puts all these folders aside, and deletes them: the log belongs to"
    " another cluster, or was made again for a restore.",
    "All partitions are audited. The metadata log is that of other nodes. The directory has folders with topic ids, and"
    " the metadata log has none of these ids.",
)
OFFLINE_DIRECTORY = FindingCode(
    "offline_directory",
    Severity.ERROR,
    "A log directory with replicas failed, or was removed from log.dirs: these replicas are offline.",
    "The broker's registration names its log directories, as from metadata.version 3.7 on.",
)
ISR_LACKS_RECORDS = FindingCode(
    "isr_lacks_records",
    Severity.ERROR,
    "A replica counts as in sync and lacks committed records: as the leader it loses them.",
    "Both brokers were shut down cleanly. The metadata log is the last one among the files, and the broker with the"
    " greater high watermark has it, too.",
)


def metadata_log_cut_off(evidence: Evidence) -> Iterator[Finding]:
    """Return what proves that records are missing at the end of the metadata log."""
    end = evidence.metadata_log_end
    if end is not None:
        yield Finding(
            METADATA_LOG_CUT_OFF,
            f"the metadata log ends at offset {end.end_offset}, but {end.later}",
            CLUSTER_METADATA,
            0,
            end.end_offset,
            end.replica.node_id,
            str(end.replica.folder),
            kraftlog("verify", [str(end.replica.folder)]),
        )


def topic_ids_and_assignments(evidence: Evidence) -> Iterator[Finding]:
    """Return folders whose topic id or broker is not that of the metadata log."""
    cluster = evidence.cluster
    if cluster is None:
        return
    for replica in evidence.live_replicas:
        of = replica.segments[0].topic_partition
        assert of is not None
        if of.topic == CLUSTER_METADATA or replica.node_id not in cluster.node_ids or not _is_clean(evidence, replica):
            continue
        contradiction = _contradiction(cluster, replica, of)
        if contradiction is not None:
            code, known = contradiction
            yield Finding(code, known, *of, None, replica.node_id, str(replica.folder))


def _contradiction(cluster: ClusterImage, replica: Replica, of: TopicPartition) -> tuple[FindingCode, str] | None:
    topic_id = cluster.topic_ids.get(of.topic)
    if replica.topic_id is None:
        known = f"{replica.folder.name} has no topic id; the id of {of.topic} is {topic_id}"
        return None if topic_id is None else (MISSING_TOPIC_ID, known)
    if topic_id not in (None, replica.topic_id):
        return (
            TOPIC_ID_MISMATCH,
            f"partition.metadata has the topic id {replica.topic_id}, the metadata log has {topic_id}",
        )
    assigned = cluster.partitions.get(of)
    if assigned is None:
        return UNASSIGNED_FOLDER, f"the metadata log has no partition {of} of the topic id {replica.topic_id}"
    if replica.node_id not in assigned.replicas:
        return UNASSIGNED_FOLDER, f"the replicas of {of} are {list(assigned.replicas)}, without {replica.node_id}"
    return None


def foreign_metadata_logs(evidence: Evidence) -> Iterator[Finding]:
    """Return log directories with no folder of a topic of the metadata log."""
    cluster = evidence.cluster
    if cluster is None or not evidence.is_whole:
        return
    for directory in evidence.directories.values():
        if directory.node_id in cluster.node_ids:
            continue
        own = [one for one in evidence.live_replicas if one.directory == directory.path]
        topic_ids = {one.topic_id for one in own if one.segments[0].topic != CLUSTER_METADATA} - {None}
        if topic_ids and topic_ids.isdisjoint(cluster.topic_ids.values()):
            yield Finding(
                FOREIGN_METADATA_LOG,
                f"none of the {len(topic_ids)} topic ids in the directory is in the metadata log, which has"
                f" {len(cluster.topic_ids)}",
                node_id=directory.node_id,
                file=str(directory.path),
            )


def offline_directories(evidence: Evidence) -> Iterator[Finding]:
    """Return directories that have replicas by the metadata log, and that their broker has not registered."""
    cluster = evidence.cluster
    if cluster is None:
        return
    offline: dict[tuple[int, bytes], list[TopicPartition]] = {}
    for partition in cluster.partitions.values():
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=False):
            broker = cluster.brokers.get(broker_id)
            is_named = names_directory(directory)
            if broker is None or not broker.log_dirs or directory in broker.log_dirs:
                continue
            if is_named or directory == LOST:
                offline.setdefault((broker_id, directory), []).append(partition.of)
    for (broker_id, directory), partitions in sorted(offline.items()):
        first = min(partitions)
        others = f" and {len(partitions) - 1} more" if len(partitions) > 1 else ""
        which = "an unknown directory" if directory == LOST else f"directory {uuid_text(directory)}"
        yield Finding(
            OFFLINE_DIRECTORY,
            f"the replicas of {first}{others} are in {which} of broker {broker_id}, which is not online",
            *first,
            None,
            broker_id,
            next_command=kraftlog("image", [str(cluster.folder)], "--type", "RegisterBrokerRecord"),
        )


def isr_without_records(evidence: Evidence) -> Iterator[Finding]:
    """Return in-sync replicas whose logs end before the high watermark of another replica."""
    cluster = evidence.cluster
    if cluster is None:
        return
    clean: dict[TopicPartition, list[Replica]] = {}
    for replica in evidence.live_replicas:
        of = replica.segments[0].topic_partition
        if of is not None and _is_clean(evidence, replica):
            clean.setdefault(of, []).append(replica)
    for of, replicas in clean.items():
        assigned = cluster.partitions.get(of)
        if assigned is None:
            continue
        marks = {
            one.node_id: evidence.checkpoints.high_watermark(one) or 0
            for one in replicas
            if one.node_id in cluster.node_ids
        }
        for one in replicas if marks else ():
            node_id, high_watermark = max(marks.items(), key=lambda item: item[1])
            end = one.end.end_offset
            if one.node_id in assigned.isr and one.node_id != node_id and end < high_watermark:
                yield Finding(
                    ISR_LACKS_RECORDS,
                    f"broker {one.node_id} is in the ISR {list(assigned.isr)} and its log ends at offset {end}; the"
                    f" high watermark of broker {node_id} is {high_watermark}",
                    *of,
                    end,
                    one.node_id,
                    str(one.folder),
                    evidence.command("replicas", of),
                )


def _is_clean(evidence: Evidence, replica: Replica) -> bool:
    directory = evidence.directories.get(replica.directory)
    return directory is not None and directory.is_clean


CHECKS = (
    metadata_log_cut_off,
    topic_ids_and_assignments,
    foreign_metadata_logs,
    offline_directories,
    isr_without_records,
)
