"""Which replica of each partition is read, where paths name several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import Partition, Replica, ReplicaKind, replicas_of
from kraftlog.topics import CLUSTER_METADATA


class Lines:
    """The partitions among files, and the files that readers of data take: those of one replica of each partition.

    Parameters
    ----------
    found : Discovery

    Raises
    ------
    ValueError
        When the directories are of several clusters, or a name is that of several topics: of one that was deleted, and
        of one that was made after it.
    """

    def __init__(self, found: Discovery) -> None:
        self._all = found
        each = replicas_of(found.segments)
        _check_clusters(one for some in each for one in some)
        _check_topic_ids(each)
        self._leaders = _Leaders(found.metadata_log)
        self.partitions = [Partition(some, self._leaders.of(some)) for some in each]

    @cached_property
    def found(self) -> Discovery:
        """The files without those of replicas that are not the line of their partition."""
        several = [partition for partition in self.partitions if len(partition.replicas) > 1]
        others = {
            segment.path
            for partition in several
            for one in partition.replicas
            if one is not partition.line
            for segment in one.segments
        }
        if not others:
            return self._all
        return replace(self._all, segments=[one for one in self._all.segments if one.path not in others])

    @cached_property
    def notes(self) -> list[str]:
        """Where replicas part from the line of their partition; and how many partitions have others that agree."""
        several = [partition for partition in self.partitions if len(partition.replicas) > 1]
        each = [partition.notes() for partition in several]
        agree = sum(not notes for notes in each)
        found = [note for notes in each for note in notes]
        if self._leaders.faults:
            found.append(f"no leader is taken from the metadata log: {self._leaders.faults[0].message}")
        if agree:
            of = "1 partition has" if agree == 1 else f"{agree} partitions have"
            found.append(f"{of} several replicas that agree; each offset is read once")
        return found


def line_segments(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments of the line of each partition."""
    return Lines(Discovery(segments=list(segments))).found.segments


class _Leaders:
    """The leaders that the metadata log names, which is read only where a partition has several replicas.

    Parameters
    ----------
    metadata_log : list of Segment
        Of one or several replicas; there may be none.

    Attributes
    ----------
    faults : list of Fault
        Why the metadata log cannot be read; it names no leaders then.
    """

    def __init__(self, metadata_log: list[Segment]) -> None:
        self._replicas = replicas_of(metadata_log)
        self.faults: list[Fault] = []

    def of(self, replicas: list[Replica]) -> int | None:
        """Return the node id of a partition's leader; None where no metadata log names one."""
        first = replicas[0].segments[0]
        is_asked = len(replicas) > 1 and first.topic != CLUSTER_METADATA and len(self._replicas) == 1
        if not is_asked or all(one.node_id is None for one in replicas):
            return None
        topic_id = next((one.topic_id for one in replicas if one.topic_id is not None), None)
        leader = self._known.get((topic_id or first.topic, first.partition), -1)
        return None if leader < 0 else leader

    @cached_property
    def _known(self) -> dict[tuple[str | None, int | None], int]:
        """Leaders by partition, and topic id or, for replicas that do not know it, name."""
        from kraftlog.metadata.uuids import uuid_text
        from kraftlog.metadata_log.files import MetadataLog
        from kraftlog.metadata_log.image import image_at

        image = image_at(MetadataLog(Partition(self._replicas[0]).segments), None, self.faults).image
        if self.faults:
            return {}
        tables = image.tables(["TopicRecord", "PartitionRecord"])
        names = {row["topic_id"]: row["name"] for row in tables["TopicRecord"].select(["topic_id", "name"]).to_pylist()}
        found: dict[tuple[str | None, int | None], int] = {}
        for row in tables["PartitionRecord"].select(["topic_id", "partition_id", "leader"]).to_pylist():
            for of in (uuid_text(row["topic_id"]), names.get(row["topic_id"])):
                found[of, row["partition_id"]] = row["leader"]
        return found


def _check_clusters(replicas: Iterable[Replica]) -> None:
    by_directory: dict[LogPath, Replica] = {}
    for one in replicas:
        if one.segments[0].topic_partition is not None and one.kind is not ReplicaKind.REMOTE:
            by_directory.setdefault(one.directory, one)
    if len(by_directory) > 1:
        what = "the directories are of several clusters: cluster id"
        _check_one(by_directory.values(), lambda one: one.cluster_id, what)


def _check_topic_ids(each: list[list[Replica]]) -> None:
    topics: dict[str, list[Replica]] = {}
    for some in each:
        of = some[0].segments[0].topic
        if of is not None:
            topics.setdefault(of, []).extend(some)
    for topic, replicas in topics.items():
        if len({one.directory for one in replicas}) > 1 or len({one.segments[0].partition for one in replicas}) < len(
            replicas
        ):
            read = [one for one in replicas if one.is_read] or replicas
            _check_one(read, lambda one: one.topic_id, f"several topics have the name {topic}: topic id")


def _check_one(replicas: Iterable[Replica], identity: Callable[[Replica], str | None], what: str) -> None:
    """Raise when replicas have several identities; one that has none is taken for one of the others."""
    found: dict[str, Replica] = {}
    for one in replicas:
        if (of := identity(one)) is not None:
            found.setdefault(of, one)
    if len(found) > 1:
        which = " and ".join(f"{of} in {one.directory}" for of, one in found.items())
        raise ValueError(f"{what} {which}; give the paths of one of them")
