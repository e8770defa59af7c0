"""What proves that records are missing at the end of the metadata log: files next to it, and data that is newer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from kraftlog.audit.cluster_image import ClusterImage
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout.checkpoints import CLEAN_SHUTDOWN
from kraftlog.layout.log_directory import LogDirectory
from kraftlog.layout.names import parse_segment_file
from kraftlog.read.partitions import Replica, ReplicaKind
from kraftlog.tables.lines import Lines


class MetadataLogEnd(NamedTuple):
    """The end of a metadata log, and what is later.

    Attributes
    ----------
    replica : Replica
    end_offset : int
    later : str
        What proves that there were later records.
    """

    replica: Replica
    end_offset: int
    later: str


def end_of_metadata_log(image: ClusterImage, lines: Lines) -> MetadataLogEnd | None:
    """Return what proves that the last metadata log among the files was longer; None without proof.

    Only directories whose broker was shut down cleanly count: all their files are of the same moment.
    """
    for replica in image.replicas:
        directory = LogDirectory.of(replica.directory, [])
        if directory is not None and directory.is_clean:
            later = next(_later(replica, image, lines), None)
            if later is not None:
                return MetadataLogEnd(replica, image.end_offset, later)
    return None


def _later(replica: Replica, image: ClusterImage, lines: Lines) -> Iterator[str]:
    parsed = [parse_segment_file(entry.name) for entry in disk().entries(replica.folder)]
    snapshots = [one.base_offset for one in parsed if one is not None and (one.kind, one.state) == ("snapshot", "")]
    if max(snapshots, default=0) > image.end_offset:  # a broker deletes them when it truncates the log
        yield f"{max(snapshots):020d}.snapshot next to it was written at offset {max(snapshots)}"
    broker_epoch = _broker_epoch(replica.directory / CLEAN_SHUTDOWN)
    if broker_epoch is not None and broker_epoch >= image.end_offset:
        yield f"the broker registered at offset {broker_epoch}, as {CLEAN_SHUTDOWN} says"
    for partition in lines.partitions:
        epoch = lines.leader_epoch_of(partition)  # by topic id
        for one in partition.replicas if epoch is not None else ():
            is_own = one.kind is ReplicaKind.LIVE and one.directory == replica.directory and one.topic_id is not None
            if is_own and epoch is not None and one.end.last_epoch > epoch:
                yield f"{one.folder.name} has leader epoch {one.end.last_epoch}, in the metadata log it is {epoch}"


def _broker_epoch(path: LogPath) -> int | None:
    """Return the broker epoch, the offset of the registration, that a broker wrote when it was shut down."""
    try:
        epoch = json.loads(disk().read_bytes(path))["brokerEpoch"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # before Kafka 3.7 the file is empty
    return epoch if isinstance(epoch, int) else None
