"""Partitions and their replicas, and the producer snapshots of segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.in_order import SEGMENTS_AT_ONCE, in_order
from kraftlog.disk.remote_path import LogPath, RemotePath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.checkpoints import META_PROPERTIES, read_properties
from kraftlog.layout.names import PARTITION_METADATA, printable, transition_of
from kraftlog.layout.producer_snapshot import OpenProducer, read_open_transactions, read_producer_snapshot
from kraftlog.layout.replica_directory import directory_of, folder_of
from kraftlog.layout.segment import Segment
from kraftlog.layout.tier.object_names import parse_folder
from kraftlog.read.end_offset import end_offset
from kraftlog.read.lineage import NO_EPOCH, Lineage, LogEnd, lineage_of, log_end
from kraftlog.read.segment_reader import located, segment_headers
from kraftlog.topics import CLUSTER_METADATA, TopicPartition
from kraftlog.transactions.producer import Transactions, opened_before
from kraftlog.transactions.producer_state import ProducerState

T = TypeVar("T")

NO_TOPIC = "files in no partition's folder (--as-topic says what they are)"
FIRST_RAFT_TYPE = CONTROL_TYPES.index("LEADER_CHANGE")  # of control records that only a Raft log has


class ReplicaKind(StrEnum):
    """The state of a partition's folder in its broker, by its name."""

    LIVE = "live"
    FUTURE = "future"
    """A copy that the broker makes in another of its log directories."""
    STRAY = "stray"
    """Of a partition that the metadata log does not assign to the broker."""
    DELETE = "delete"
    REMOTE = "remote"
    """A remote tier without a log directory."""


class Replica:
    """The replica of a partition in one folder or remote tier.

    Parameters
    ----------
    segments : sequence of Segment
        Segments in log order.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)

    @property
    def folder(self) -> LogPath:
        """The folder of the partition."""
        return self.segments[0].folder

    @property
    def directory(self) -> LogPath:
        """The log directory, or the remote tier."""
        return directory_of(self.segments[-1])

    @property
    def places(self) -> list[Replica]:
        """Its parts in a remote tier and in the log directory that continues it."""
        stored = [segment for segment in self.segments if segment.stored]
        here = [segment for segment in self.segments if not segment.stored]
        return [Replica(some) for some in (stored, here) if some] if stored and here else [self]

    @property
    def kind(self) -> ReplicaKind:
        """The state of the folder in its broker."""
        if all(segment.stored for segment in self.segments):
            return ReplicaKind.REMOTE
        return ReplicaKind(transition_of(self.folder.absolute().name) or ReplicaKind.LIVE)

    @property
    def is_read(self) -> bool:
        """Whether it is a replica of the partition in its broker, and not being moved or deleted."""
        return self.kind in (ReplicaKind.LIVE, ReplicaKind.REMOTE)

    @cached_property
    def topic_id(self) -> str | None:
        """From ``partition.metadata``, or the name of the folder in a remote tier; otherwise None."""
        return self._read_topic_id()

    def _read_topic_id(self) -> str | None:
        if self.kind is ReplicaKind.REMOTE:
            stored = parse_folder(folder_of(self.segments[0]))
            return None if stored is None else stored.topic_id
        return self._properties(self.folder / PARTITION_METADATA).get("topic_id")

    @cached_property
    def node_id(self) -> int | None:
        """The node id of the log directory, from ``meta.properties``; otherwise None."""
        if self.kind is ReplicaKind.REMOTE:
            return None
        properties = self._properties(self.directory / META_PROPERTIES)
        node_id = properties.get("node.id", properties.get("broker.id", ""))
        return int(node_id) if node_id.isdecimal() else None

    @cached_property
    def cluster_id(self) -> str | None:
        """From ``meta.properties``; otherwise None."""
        if self.kind is ReplicaKind.REMOTE:
            return None
        return self._properties(self.directory / META_PROPERTIES).get("cluster.id")

    def _properties(self, path: LogPath) -> dict[str, str]:
        try:
            return read_properties(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.faults.append(Fault("unreadable_file", f"{path}: {error.strerror or error}"))
        except CorruptRecordError as error:
            self.faults.append(Fault("bad_checkpoint", f"{path.parent}: {error}"))
        return {}

    @property
    def start_offset(self) -> int:
        """The first offset that a consumer sees."""
        return log_start_offset(self.segments, ReadOptions())

    @cached_property
    def faults(self) -> list[Fault]:
        """Faults found when its identity, its end and its leader epochs were read."""
        return []

    @cached_property
    def end(self) -> LogEnd:
        """Its last leader epoch and end offset, from the headers of the last batches."""
        return log_end(self.segments, self.faults)

    @cached_property
    def lineage(self) -> Lineage:
        """Its leader epochs, from the headers of segments in which they change."""
        return lineage_of(self.segments, self.end, self.faults)

    def agrees_until(self, other: Replica) -> int | None:
        """Return the offset up to which two replicas have the same records; None without leader epochs."""
        if self.end.last_epoch == other.end.last_epoch != NO_EPOCH:  # the largest epoch of both: no others are needed
            return min(self.end.end_offset, other.end.end_offset)
        return self.lineage.agrees_until(other.lineage)


class Partition:
    """A partition of a topic, with one or several replicas; or a single file outside a partition's folder.

    Parameters
    ----------
    replicas : sequence of Replica
        In the order of the listing.
    leader : int, optional
        Node id of the leader, if a metadata log names it.
    line : Replica, optional
        A replica to use regardless of the others.

    Attributes
    ----------
    topic : str or None
    partition : int or None
    """

    def __init__(self, replicas: Sequence[Replica], leader: int | None = None, line: Replica | None = None) -> None:
        self.replicas = tuple(replicas)
        self._line = line
        self.topic, self.partition = self.replicas[0].segments[0].topic, self.replicas[0].segments[0].partition
        self._leader = leader

    @cached_property
    def line(self) -> Replica:
        """The replica whose records are those of the partition.

        It is the leader's replica; if that is unknown, or not among the replicas, the one with the greatest last leader
        epoch and end offset, as in an unclean election. Among equal ends it is the one that begins first. Folders that
        Kafka moves or deletes are only used if there are no others.
        """
        if self._line is not None or len(self.replicas) == 1:
            return self._line or self.replicas[0]
        read = [one for one in self.replicas if one.is_read] or self.replicas
        named = [one for one in read if self._leader is not None and one.node_id == self._leader]
        return max(named or read, key=lambda one: (one.end, -one.start_offset))

    @cached_property
    def agreeing(self) -> tuple[tuple[Replica, int], ...]:
        """Other replicas that share a leader epoch with the line, each with the offset at which it differs.

        The replica with the largest shared epoch comes first. Its records from before the start of the line belong to
        the line's history, so that the next replicas may share an epoch of these. Folders that Kafka moves or deletes
        are left out.
        """
        line = self.line
        others = [one for one in self.replicas if one is not line and one.is_read and line.is_read]
        rest = [one for one in others if (one.topic_id or line.topic_id) == (line.topic_id or one.topic_id)]
        same = [one for one in rest if one.end.last_epoch == line.end.last_epoch != NO_EPOCH]
        agreeing = [(one, min(one.end.end_offset, line.end.end_offset)) for one in same]
        rest = [one for one in rest if one not in same]
        if rest:
            lineage = line.lineage
            for one, until in agreeing:
                lineage = lineage.continued(one.lineage, until)
            while rest:
                one = max(rest, key=lambda one: lineage.common_epoch(one.lineage))
                if lineage.common_epoch(one.lineage) == NO_EPOCH:
                    break
                parts_at = lineage.agrees_until(one.lineage)
                if parts_at is not None:
                    lineage = lineage.continued(one.lineage, parts_at)
                    agreeing.append((one, parts_at))
                rest.remove(one)
        return tuple(agreeing)

    @property
    def folder(self) -> LogPath:
        """The folder of the line."""
        return self.line.folder

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments of the line, in log order; a segment in another state is returned as the only one."""
        return self.line.segments

    @property
    def size_in_bytes(self) -> int:
        """Size of the log files when they were listed."""
        return sum(segment.size for segment in self.segments)

    @property
    def start_offset(self) -> int | None:
        """The first offset of the first segment that a consumer sees, or the log start offset; None if unknown."""
        return None if self.segments[0].base_offset is None else self.line.start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last batch.

        It is read from the last batch headers each time. If the last segment cannot be read, it is the end of the
        readable part.
        """
        return end_offset(self.segments[-1], list[Fault]())

    def __repr__(self) -> str:
        name = self.segments[0].file_name if self.topic is None else f"{self.topic}-{self.partition}"
        count = "1 segment" if len(self.segments) == 1 else f"{len(self.segments)} segments"
        return f"<Partition {name}: {count}, {self.size_in_bytes} bytes>"

    def notes(self, *, heals: bool) -> list[str]:
        """Return notes on replicas: records that only replicas other than the line have, and damage.

        Parameters
        ----------
        heals : bool
            Whether records of the others before the start of the line are read from there, which has its own note.
        """
        others = [one for one in self.replicas if one is not self.line]
        notes = [note for one in others if (note := self._note(one, heals=heals))]
        damaged = [(one.directory, one.faults) for one in self.replicas if one.faults]
        return notes + [f"{directory}: {faults[0].message}" for directory, faults in damaged]

    def _note(self, other: Replica, *, heals: bool) -> str:
        line, where = self.line, f"{self.topic}-{self.partition}: read from {self.line.directory}; {other.directory}"
        if line.is_read and not other.is_read:
            return f"{where} has a folder that Kafka marked {other.kind}, which is not read"
        until, end = other.agrees_until(line), other.end
        before = min(line.start_offset, end.end_offset) - 1
        if until is None:
            return f"{where} ends at offset {end.end_offset} and has no leader epochs to compare"
        if until < end.end_offset:
            parts = f"parts from it at offset {until} and ends at offset {end.end_offset}"
            return f"{where} {parts} in leader epoch {end.last_epoch}"
        if not heals and other.start_offset <= before:
            return f"{where} also has offsets {other.start_offset} to {before}"
        return ""


def read_topic_ids(replicas: Iterable[Replica]) -> None:
    """Read the topic ids of those replicas that are in an object store, several at the same time."""
    remote = [one for one in replicas if isinstance(one.folder, RemotePath) and "topic_id" not in vars(one)]
    each = in_order(Replica._read_topic_id, remote, SEGMENTS_AT_ONCE)  # Python 3.11 computes cached ones in turn
    for one, topic_id in zip(remote, each, strict=True):
        vars(one)["topic_id"] = topic_id


def by_partition(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Group the segments of each folder, in offset order: those of each replica.

    Files other than live segments are groups of their own: a snapshot, a segment in another state, a file of another
    name.
    """
    groups: dict[LogPath, list[Segment]] = {}
    for segment in segments:
        is_alone = segment.state or segment.base_offset is None
        groups.setdefault(segment.path if is_alone else segment.folder.absolute(), []).append(segment)
    return [sorted(group, key=lambda segment: segment.base_offset or 0) for group in groups.values()]


def replicas_of(segments: Iterable[Segment]) -> list[list[Replica]]:
    """Return the replicas of each partition. Files outside a partition's folder, and single files, are not replicas."""
    replicas: dict[TopicPartition | int, list[Replica]] = {}
    for number, group in enumerate(by_partition(segments)):
        of = group[0].topic_partition
        is_alone = of is None or group[0].state or group[0].base_offset is None
        replicas.setdefault(number if is_alone or of is None else of, []).append(Replica(group))
    return list(replicas.values())


def topics_of(segments: Iterable[Segment]) -> list[str]:
    """Return the names of the topics of segments, for display."""
    return sorted({printable(segment.topic) if segment.topic else NO_TOPIC for segment in segments})


def log_start_offset(group: Sequence[Segment], options: ReadOptions) -> int:
    """Return the start offset of a partition's log for a reader.

    Parameters
    ----------
    group : sequence of Segment
        Segments of one partition, in order.
    options : ReadOptions
        With ``include_deleted`` the log starts at its first segment.
    """
    first = group[0].base_offset or 0
    return first if options.include_deleted else max(first, group[0].log_start_offset)


def is_metadata(segment: Segment) -> bool:
    """Whether a segment belongs to the metadata log; outside a partition's folder its first batch decides."""
    if segment.topic is not None:
        return segment.topic == CLUSTER_METADATA
    headers = next(segment_headers(segment, [], end=1), None)
    return headers is not None and bool(headers["control_type"][0] >= FIRST_RAFT_TYPE)


def producers_before(segment: Segment, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers in the ``.snapshot`` of a segment; None without a readable one."""
    path = segment.beside.get("snapshot")
    return producers_of_snapshot(path, segment, faults) if path is not None else None


def producers_of_snapshot(path: LogPath, segment: Segment, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers of a ``.snapshot``; None, and a fault of the segment, if it cannot be read."""
    return _read_snapshot(read_producer_snapshot, path, segment, faults)


def _read_snapshot(
    read: Callable[[LogPath], list[T]], path: LogPath, segment: Segment, faults: list[Fault]
) -> list[T] | None:
    try:
        return read(path)
    except (OSError, CorruptRecordError) as error:
        faults.append(located(segment, Fault("bad_snapshot", str(error))))
        return None


def open_producers_before(segment: Segment, faults: list[Fault]) -> list[OpenProducer] | None:
    """Return the producers with an open transaction at the start of a segment, from its ``.snapshot``.

    No transaction is open before offset 0.

    Returns
    -------
    list of OpenProducer or None
        None if there is no snapshot, or if it cannot be read. That is in ``faults``, except behind the recovery point,
        where a crash may have left a part of it.
    """
    path, is_on_disk = segment.beside.get("snapshot"), (segment.base_offset or 0) <= segment.settled_offset
    found = faults if is_on_disk else []
    opened = None if path is None else _read_snapshot(read_open_transactions, path, segment, found)
    return [] if opened is None and segment.base_offset == 0 else opened


def opened_before_segment(segment: Segment, faults: list[Fault]) -> Transactions | None:
    """Return the transactions that are open at the start of a segment; None if unknown."""
    producers = open_producers_before(segment, faults)
    return None if producers is None else opened_before(producers)
