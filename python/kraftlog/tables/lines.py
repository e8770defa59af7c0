"""The choice of the replica to read, if paths name several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.healing import HealedLine, healed_line
from kraftlog.read.partitions import Partition, Replica, ReplicaKind, replicas_of
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.topics import CLUSTER_METADATA

if TYPE_CHECKING:
    from kraftlog.metadata_log.image_at import ImageAt

_STATE_COLUMNS = ["topic_id", "partition_id", "leader", "leader_epoch", "isr"]


class Lines:
    """The partitions among files, and the files of the chosen replica of each partition.

    Parameters
    ----------
    found : Discovery

    Raises
    ------
    ValueError
        When the directories belong to several clusters, or several topics have the same name: a deleted topic, and the
        one created after it.
    """

    def __init__(self, found: Discovery) -> None:
        self._all = found
        each = replicas_of(found.segments)
        _check_clusters(one for some in each for one in some)
        _check_topic_ids(each)
        self._metadata = _Metadata(found.metadata_log)
        self.partitions = [Partition(some, self._metadata.leader_of(some)) for some in each]
        self._checkpoints = ReplicaCheckpoints([])  # the table replicas names those that cannot be read
        self._healed: dict[tuple[Partition, bool, bool], HealedLine] = {}

    def partition_of(self, segment: Segment) -> Partition:
        """Return the partition whose line has a segment."""
        return self._by_place[_place(segment)]

    @cached_property
    def _by_place(self) -> dict[LogPath, Partition]:
        return {_place(segment): partition for partition in self.partitions for segment in partition.segments}

    def isr_of(self, partition: Partition) -> frozenset[int] | None:
        """Return the node ids of the in-sync replicas; None where no metadata log among the files has the partition."""
        return self._metadata.isr_of(partition.replicas)

    def leader_of(self, partition: Partition) -> int | None:
        """Return the node id of the leader, -1 where there is none; None where no metadata log has the partition."""
        return self._metadata.named_leader_of(partition.replicas)

    def leader_epoch_of(self, partition: Partition) -> int | None:
        """Return the leader epoch of a partition; None where no metadata log among the files has the partition."""
        return self._metadata.leader_epoch_of(partition.replicas)

    def min_insync_replicas_of(self, partition: Partition) -> int:
        """Return ``min.insync.replicas`` of a partition from the metadata log; the brokers' own files may differ."""
        return self._metadata.min_insync_replicas_of(partition.replicas)

    @property
    def metadata_image(self) -> ImageAt | None:
        """The image at the end of the metadata log; None without one, and if it is not known for certain."""
        return self._metadata.at

    @property
    def metadata_notes(self) -> list[str]:
        """Notes on an unused metadata log."""
        faults = self._metadata.faults
        return [f"no leader is taken from the metadata log: {faults[0].message}"] if faults else []

    @cached_property
    def found(self) -> Discovery:
        """The files without those of replicas that are not lines."""
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

    def healed(
        self, found: Discovery, notes: list[str], *, check_crc: bool = True, salvages: bool = False
    ) -> Discovery:
        """Return files with missing or damaged offsets of lines replaced from replicas that agree.

        Parameters
        ----------
        found : Discovery
            Files of the lines of some or all partitions.
        notes : list of str
            Receives the offsets and replicas that are used.
        check_crc, salvages : bool
            As in ``healed_line``.
        """
        if not self._by_path:
            return found
        segments: list[Segment] = []
        taken = set[LogPath]()
        for segment in found.segments:
            partition = self._by_path.get(segment.path)
            if partition is None:
                segments.append(segment)
            elif partition.folder not in taken:
                taken.add(partition.folder)
                line = self._healed_line(partition, check_crc, salvages)
                notes.extend(line.notes())
                segments += line.segments
        return replace(found, segments=segments)

    @cached_property
    def _by_path(self) -> dict[LogPath, Partition]:
        """The partitions with other replicas, by the paths of the segments of their lines."""
        several = [partition for partition in self.partitions if len(partition.replicas) > 1]
        return {segment.path: partition for partition in several for segment in partition.segments}

    def _healed_line(self, partition: Partition, check_crc: bool, salvages: bool) -> HealedLine:
        known = partition, check_crc, salvages
        if known not in self._healed:
            cleaned = {one: self._checkpoints.cleaned_until(one) for one in partition.replicas}
            self._healed[known] = healed_line(partition, cleaned, check_crc=check_crc, salvages=salvages)
        return self._healed[known]

    def notes(self, *, heals: bool = True) -> list[str]:
        """Return notes on replicas that differ from the line, and on the number of partitions with others that agree.

        Parameters
        ----------
        heals : bool
            Whether missing offsets are read from the others; otherwise a note says that they have them.
        """
        several = [partition for partition in self.partitions if len(partition.replicas) > 1]
        each = [partition.notes(heals=heals) for partition in several]
        agree = sum(not notes for notes in each)
        found = [note for notes in each for note in notes]
        found += [*self.metadata_notes, *self._all.notes]
        if agree:
            of = "1 partition has" if agree == 1 else f"{agree} partitions have"
            found.append(f"{of} several replicas that agree; each offset is read once")
        return found


def _place(segment: Segment) -> LogPath:
    """Return the path of what ``by_partition`` groups: the folder of a replica, or a file that is not part of one."""
    return segment.path if segment.state or segment.base_offset is None else segment.folder


def line_segments(found: Discovery, notes: list[str], *, heals: bool) -> list[Segment]:
    """Return the segments of the line of each partition.

    Parameters
    ----------
    found : Discovery
        Files of all replicas.
    notes : list of str
        Receives the offsets that are read from other replicas.
    heals : bool
        Whether to read from other replicas.
    """
    lines = Lines(found)
    return (lines.healed(lines.found, notes) if heals else lines.found).segments


class _State(NamedTuple):
    """The last state of a partition in the metadata log."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]
    min_insync_replicas: int


class _Metadata:
    """Leaders and in-sync replicas in the metadata log, which is read on the first request.

    Parameters
    ----------
    metadata_log : list of Segment
        Segments of one or several replicas, or none.

    Attributes
    ----------
    faults : list of Fault
        Faults of the metadata log; with faults it names no leaders.
    """

    def __init__(self, metadata_log: list[Segment]) -> None:
        self._replicas = replicas_of(metadata_log)
        self.faults: list[Fault] = []

    def leader_of(self, replicas: Sequence[Replica]) -> int | None:
        """Return the node id of the leader of a partition with several replicas; None if it is unknown."""
        state = self._state_of(replicas) if len(replicas) > 1 else None
        return None if state is None or state.leader < 0 else state.leader

    def named_leader_of(self, replicas: Sequence[Replica]) -> int | None:
        """Return what the metadata log says of a partition's leader, -1 where there is none; None where it has none."""
        state = self._state_of(replicas)
        return None if state is None else state.leader

    def leader_epoch_of(self, replicas: Sequence[Replica]) -> int | None:
        """Return the leader epoch of a partition; None where the metadata log does not have the partition."""
        state = self._state_of(replicas)
        return None if state is None else state.leader_epoch

    def isr_of(self, replicas: Sequence[Replica]) -> frozenset[int] | None:
        """Return the node ids of the in-sync replicas; None if they are unknown."""
        state = self._state_of(replicas)
        return None if state is None else state.isr

    def min_insync_replicas_of(self, replicas: Sequence[Replica]) -> int:
        """Return the number of in-sync replicas required to commit; 1 by default."""
        state = self._state_of(replicas)
        return 1 if state is None else state.min_insync_replicas

    def _state_of(self, replicas: Sequence[Replica]) -> _State | None:
        first = replicas[0].segments[0]
        is_asked = first.topic != CLUSTER_METADATA and len(self._replicas) == 1
        if not is_asked or all(one.node_id is None for one in replicas):
            return None
        topic_id = next((one.topic_id for one in replicas if one.topic_id is not None), None)
        return self._known.get((topic_id or first.topic, first.partition))

    @cached_property
    def at(self) -> ImageAt | None:
        """The image at the end of the metadata log; None without one, and with several or faulty ones."""
        from kraftlog.metadata_log.files import MetadataLog
        from kraftlog.metadata_log.image import image_at

        if len(self._replicas) != 1:
            return None
        at = image_at(MetadataLog(Partition(self._replicas[0]).segments), None, self.faults)
        return None if self.faults else at

    @cached_property
    def _known(self) -> dict[tuple[str | None, int | None], _State]:
        """The states of partitions, by number and topic id, or by name for replicas without a topic id."""
        from kraftlog.metadata.health import min_isr
        from kraftlog.metadata.uuids import uuid_text

        if self.at is None:
            return {}
        image = self.at.image
        tables = image.tables(["TopicRecord", "PartitionRecord", "ConfigRecord"])
        names = {row["topic_id"]: row["name"] for row in tables["TopicRecord"].select(["topic_id", "name"]).to_pylist()}
        found: dict[tuple[str | None, int | None], _State] = {}
        rows = tables["PartitionRecord"].select(_STATE_COLUMNS).to_pylist()
        least = min_isr(tables["ConfigRecord"], pa.array([names.get(row["topic_id"]) for row in rows], pa.string()))
        for row, needed in zip(rows, least.tolist(), strict=True):
            state = _State(row["leader"], row["leader_epoch"], frozenset(row["isr"]), needed)
            for of in (uuid_text(row["topic_id"]), names.get(row["topic_id"])):
                found[of, row["partition_id"]] = state
        return found


def _check_clusters(replicas: Iterable[Replica]) -> None:
    by_directory: dict[LogPath, Replica] = {}
    for one in replicas:
        if one.segments[0].topic_partition is not None and one.kind is not ReplicaKind.REMOTE:
            by_directory.setdefault(one.directory, one)
    if len(by_directory) > 1:
        what = "the directories are of several clusters: cluster id"
        _check_one(by_directory.values(), lambda one: one.cluster_id, what, "cluster_id (--cluster-id)")


def _check_topic_ids(each: list[list[Replica]]) -> None:
    topics: dict[str, list[Replica]] = {}
    for some in each:
        of = some[0].segments[0].topic
        if of is not None:
            topics.setdefault(of, []).extend(some)
    for topic, replicas in topics.items():
        is_asked = len({one.directory for one in replicas}) > 1  # of one directory no file is read for it
        is_asked |= len({one.segments[0].partition for one in replicas}) < len(replicas)
        if is_asked or any(one.kind is ReplicaKind.REMOTE for one in replicas):
            read = [one for one in replicas if one.is_read] or replicas
            what = f"several topics have the name {topic}: topic id"
            _check_one(read, lambda one: one.topic_id, what, "topic_ids (--topic-id)")


def _check_one(replicas: Iterable[Replica], identity: Callable[[Replica], str | None], what: str, option: str) -> None:
    """Raise if replicas have several identities; a replica without one is assumed to have that of the others."""
    found: dict[str, Replica] = {}
    for one in replicas:
        if (of := identity(one)) is not None:
            found.setdefault(of, one)
    if len(found) > 1:
        which = " and ".join(f"{of} in {one.directory}" for of, one in found.items())
        raise ValueError(f"{what} {which}; {option} chooses one of them")
