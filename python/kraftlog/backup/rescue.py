"""``kraftlog.rescue``: a new quorum of controllers, from the metadata log of one node that is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kraftlog.backup.new_folder import check_new_folder, new_folder
from kraftlog.backup.new_nodes import random_uuid
from kraftlog.backup.quorum import (
    CONTROLLER_LISTENER,
    DYNAMIC,
    QUORUMS,
    STATIC,
    Voter,
    of_voters,
    properties_text,
    quorum_properties,
    with_records,
    write_controller,
)
from kraftlog.disk.durable import write_file
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.discover import LogPaths
from kraftlog.metadata.image import Image
from kraftlog.metadata.uuids import uuid_text
from kraftlog.metadata_log.image_at import ImageAt
from kraftlog.read.lineage import LogEnd
from kraftlog.read.partitions import Partition, Replica, is_metadata
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open as open_log
from kraftlog.topics import TopicPartition, names
from kraftlog.write.leadership import quorum_epoch

BROKERS_FILE = "brokers.properties"
PROPERTIES_FILE = "server.properties"


@dataclass(frozen=True)
class Loss:
    """What may be lost, since the metadata log ends before it.

    Attributes
    ----------
    code : str
        ``metadata_tail``: other replicas of the metadata log go on behind the last offset that could be read;
        ``unknown_topic``: brokers have partitions of a topic that the metadata does not have, and set them aside as
        ``-stray``; ``unknown_replica``: a broker has a replica that the metadata does not assign to it;
        ``later_epoch``: a replica has records of a leader that the metadata does not know.
    message : str
    topic, partition, topic_id, node_id : optional
    """

    code: str
    message: str
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None
    node_id: int | None = None


@dataclass
class Rescue:
    """The result of ``rescue``.

    Attributes
    ----------
    cluster_id : str
    voters : list of Voter
    offset, epoch : int
        The last record of the metadata log that is in the image, and its leader epoch.
    snapshot_offset, snapshot_epoch : int
        Identity of the snapshot from which the controllers start: behind all records and epochs of the given files, so
        that each broker takes it in place of its own metadata.
    topics_count, partitions_count : int
    losses : list of Loss
    faults : list of Fault
        What could not be read of the metadata log.
    notes : list of str
    """

    cluster_id: str
    voters: list[Voter]
    offset: int
    epoch: int
    snapshot_offset: int
    snapshot_epoch: int
    topics_count: int
    partitions_count: int
    losses: list[Loss] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def rescue(
    paths: LogPaths,
    target: str | Path,
    *,
    voters: Iterable[str],
    cluster_id: str | None = None,
    quorum: str | None = None,
    dry_run: bool = False,
) -> Rescue:
    """Write log directories for new controllers, from the metadata log of one node that is left.

    Cluster id, topic ids and everything else of the image stay, so that brokers start with their log directories as
    they are, once their properties name the new voters. The log directories of brokers are read and never changed.

    The controllers start from a snapshot. Its offset and epoch lie behind those of all given metadata logs, so that a
    broker whose own metadata goes on differently drops it and fetches the snapshot.

    Where brokers are given, their partitions are compared with the metadata. If a replica has records of a later leader
    epoch than the metadata knows, the partition gets a higher one, and the replicas with the greatest end lead it: the
    controllers that are gone have elected one of them.

    Parameters
    ----------
    paths : path or iterable of paths
        The log directory with the metadata log: of a controller or a broker, or the folder itself; of several, the one
        that goes farthest is taken. With the log directories of all brokers, what may be lost is named.
    target : path
        A new or empty folder. It gets ``node-ID/logs-0`` and ``node-ID/server.properties`` for each controller, and
        ``brokers.properties`` with the properties that brokers need.
    voters : iterable of str
        ``ID@HOST:PORT`` of each new controller.
    cluster_id : str, optional
        By default that of the ``meta.properties`` among the files.
    quorum : {"static", "dynamic"}, optional
        Whether voters are in the nodes' properties or in the metadata log; by default as in the metadata log.
    dry_run : bool
        Write nothing, and return what would be lost.

    Returns
    -------
    Rescue

    Raises
    ------
    ValueError
        When there is no metadata log, its cluster id is not known, or a voter is not of the form.
    OSError
        When a step fails. Nothing is left at the target.

    Examples
    --------
    >>> import tempfile, kraftlog
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = kraftlog.rescue(
    ...         "tests/golden/metadata/log",
    ...         f"{folder}/controllers",
    ...         voters=["100@localhost:9093"],
    ...         cluster_id="a3JhZnRsb2ctaW50ZXJvcA",
    ...     )
    ...     done.offset, done.snapshot_offset, done.snapshot_epoch, done.topics_count
    (522, 523, 5, 21)
    """
    if quorum is not None and quorum not in QUORUMS:
        raise ValueError(f"quorum {quorum!r} is not one of {', '.join(QUORUMS)}")
    new_voters = [Voter.of(text, random_uuid()) for text in names(voters)]
    ids = [voter.node_id for voter in new_voters]
    if not ids or len(set(ids)) < len(ids):
        raise ValueError(f"voters {', '.join(map(str, ids)) or 'none'}: one or more are expected, each id once")
    log = open_log(paths)
    target = Path(target)
    check_new_folder(target, log.folders)
    metadata = [one for one in log.lines.partitions if is_metadata(one.line.segments[0])]
    if len(metadata) != 1:
        raise ValueError("no __cluster_metadata among the files: the log directory of a controller or broker has it")
    at = log.image(strict=False, cache=False)
    if at.offset < 0 or not at.image.metadata_version:
        raise ValueError(f"{metadata[0].folder}: no metadata.version in it: nothing to rescue")
    replicas, faults = metadata[0].replicas, list(at.faults)
    done = Rescue(
        cluster_id or _cluster_id(log),
        new_voters,
        at.offset,
        at.epoch,
        max(at.offset + 1, *(one.end.end_offset for one in replicas)),
        max(at.epoch, *(epoch for one in replicas for epoch in _epochs(one, faults))) + 1,
        *at.image.counts,
        faults=faults,
        notes=list(log.lines.notes()),
    )
    done.losses += _metadata_losses(at, replicas)
    image = _with_later_epochs(at.image, log, done.losses)
    at = replace(
        at,
        image=image,
        offset=done.snapshot_offset - 1,
        epoch=done.snapshot_epoch,
        open_since=None,
        is_offset_batch_aligned=True,
    )
    if not dry_run:
        _write(target, of_voters(at, new_voters, quorum or (DYNAMIC if at.quorum else STATIC)), done)
    return done


def _epochs(replica: Replica, faults: list[Fault]) -> Iterator[int]:
    """Return the epochs that a replica of the metadata log knows."""
    yield replica.end.last_epoch
    try:
        yield quorum_epoch(replica.folder)
    except (OSError, CorruptRecordError) as error:
        faults.append(Fault("bad_checkpoint", str(error)))


def _cluster_id(log: Log) -> str:
    ids = {one.cluster_id for partition in log.lines.partitions for one in partition.replicas} - {None}
    if len(ids) != 1:
        found = ", ".join(sorted(map(str, ids))) or "none"
        raise ValueError(f"expected one cluster id in meta.properties, found {found}: cluster_id (--cluster-id)")
    return str(ids.pop())


def _write(target: Path, at: ImageAt, done: Rescue) -> None:
    properties = quorum_properties(done.voters, DYNAMIC if at.quorum else STATIC)
    with new_folder(target) as folder:
        for voter in done.voters:
            name = f"node-{voter.node_id}"
            directory = folder / name / "logs-0"
            write_controller(directory, at, done.cluster_id, voter.node_id, voter.directory_id)
            own = {
                "process.roles": "controller",
                "node.id": voter.node_id,
                "log.dirs": (target / name / "logs-0").absolute(),
                "listeners": f"{CONTROLLER_LISTENER}://{voter.host}:{voter.port}",
                "controller.listener.names": CONTROLLER_LISTENER,
                **properties,
            }
            text = properties_text(own, [f"controller {voter.node_id} of cluster {done.cluster_id}"])
            write_file(folder / name / PROPERTIES_FILE, text.encode())
        comment = "in server.properties of each broker, in place of what it says of its controllers"
        of_brokers = {"controller.listener.names": CONTROLLER_LISTENER, **properties}
        write_file(folder / BROKERS_FILE, properties_text(of_brokers, [comment]).encode())


def _metadata_losses(at: ImageAt, replicas: Sequence[Replica]) -> Iterator[Loss]:
    for one in replicas:
        if one.end.end_offset > at.offset + 1:
            behind = f"offsets {at.offset + 1} to {one.end.end_offset - 1}"
            yield Loss("metadata_tail", f"{one.folder}: {behind} of the metadata log are not in the image")
    if at.open_since is not None:
        yield Loss("metadata_tail", f"the metadata transaction that is open since offset {at.open_since} is left out")


def _with_later_epochs(image: Image, log: Log, losses: list[Loss]) -> Image:
    """Return the image in which no partition has an epoch that its records are ahead of."""
    tables = image.tables(["TopicRecord", "PartitionRecord"])
    topics = {uuid_text(row["topic_id"]): row["name"] for row in tables["TopicRecord"].to_pylist()}
    rows: list[dict[str, Any]] = tables["PartitionRecord"].to_pylist()
    known = {(uuid_text(row["topic_id"]), row["partition_id"]): row for row in rows}
    ids = {name: topic_id for topic_id, name in topics.items()}
    is_changed = False
    for partition in log.lines.partitions:
        of = partition.line.segments[0].topic_partition
        if of is None or is_metadata(partition.line.segments[0]):
            continue
        ends = {one.node_id: one.end for one in partition.replicas if one.is_read and one.node_id is not None}
        topic_id = next((one.topic_id for one in partition.replicas if one.topic_id is not None), ids.get(of.topic))
        row = known.get((topic_id or "", of.partition))
        if row is None:
            losses.append(_unknown(of, topic_id, partition))
            continue
        for node_id in sorted(ends.keys() - set(row["replicas"])):
            message = f"{of}: node {node_id} has a replica that the metadata does not assign to it"
            losses.append(Loss("unknown_replica", message, *of, topic_id, node_id))
        assigned = {node_id: end for node_id, end in ends.items() if node_id in row["replicas"]}
        if max((end.last_epoch for end in assigned.values()), default=-1) > row["leader_epoch"]:
            losses.append(_lead(row, of, topic_id, assigned))
            is_changed = True
    if not is_changed:
        return image
    return with_records(image, {"PartitionRecord": pa.Table.from_pylist(rows, tables["PartitionRecord"].schema)})


def _unknown(of: TopicPartition, topic_id: str | None, partition: Partition) -> Loss:
    nodes = ", ".join(sorted(str(one.node_id) for one in partition.replicas if one.node_id is not None))
    start, end = partition.line.start_offset, partition.line.end.end_offset
    message = (
        f"{of}: the metadata has no such partition of the topic {topic_id or 'without an id'}; "
        f"offsets {start} to {end - 1} on nodes {nodes or 'unknown'}: brokers set it aside as stray"
    )
    return Loss("unknown_topic", message, *of, topic_id)


def _lead(row: dict[str, Any], of: TopicPartition, topic_id: str | None, ends: dict[int, LogEnd]) -> Loss:
    """Let the replicas with the greatest end lead, under an epoch that is greater than that of any record."""
    greatest = max(ends.values())
    message = (
        f"{of}: records of leader epoch {greatest.last_epoch}, the metadata knows {row['leader_epoch']}; "
        f"{greatest.end_offset} is the greatest end of those given"
    )
    row["isr"] = [node_id for node_id in row["replicas"] if ends.get(node_id) == greatest]
    row["leader"] = row["isr"][0]
    row["leader_epoch"], row["partition_epoch"] = greatest.last_epoch + 1, row["partition_epoch"] + 1
    return Loss("later_epoch", f"{message}; node {row['leader']} leads", *of, topic_id, row["leader"])
