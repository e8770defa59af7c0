"""Segments of one partition, in the order of the log, and the open transactions that a producer snapshot knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kraftlog.codec.headers import CONTROL_TYPES
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.names import printable
from kraftlog.layout.producer_snapshot import OpenProducer, read_open_transactions, read_producer_snapshot
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import located, segment_headers
from kraftlog.topics import CLUSTER_METADATA, TopicPartition
from kraftlog.transactions.producer import Transactions, opened_before
from kraftlog.transactions.producer_state import ProducerState

T = TypeVar("T")

NO_TOPIC = "files in no partition's folder (--as-topic says what they are)"
FIRST_RAFT_TYPE = CONTROL_TYPES.index("LEADER_CHANGE")  # of control records that only a Raft log has


def by_partition(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Group the segments of each folder, in the order of their offsets.

    What is not a live segment of a log stands alone: a snapshot, a segment in another state, a file of another name.
    """
    groups: dict[LogPath, list[Segment]] = {}
    for segment in segments:
        is_alone = segment.state or segment.base_offset is None
        groups.setdefault(segment.path if is_alone else segment.folder.absolute(), []).append(segment)
    return [sorted(group, key=lambda segment: segment.base_offset or 0) for group in groups.values()]


def longest_replicas(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Return the live segments of each partition; of several replicas of one that with the most of the log."""
    live = [segment for segment in segments if not segment.state]
    longest: dict[TopicPartition, list[Segment]] = {}
    for group in sorted(by_partition(live), key=lambda group: (group[-1].base_offset or 0, group[-1].size)):
        longest[TopicPartition(group[0].topic or "", group[0].partition or 0)] = group
    return [group for _, group in sorted(longest.items())]


def topics_of(segments: Iterable[Segment]) -> list[str]:
    """Return the names of the topics that segments are of, for people."""
    return sorted({printable(segment.topic) if segment.topic else NO_TOPIC for segment in segments})


def log_start_offset(group: list[Segment], options: ReadOptions) -> int:
    """Return the offset at which the log of a partition starts for a reader.

    Parameters
    ----------
    group : list of Segment
        Of one partition, in order.
    options : ReadOptions
        With ``include_deleted`` the log starts with its first segment.
    """
    first = group[0].base_offset or 0
    return first if options.include_deleted else max(first, group[0].log_start_offset)


def is_metadata(segment: Segment) -> bool:
    """Whether a segment is of the metadata log; outside of a partition's folder its first batch tells."""
    if segment.topic is not None:
        return segment.topic == CLUSTER_METADATA
    headers = next(segment_headers(segment, [], end=1), None)
    return headers is not None and bool(headers["control_type"][0] >= FIRST_RAFT_TYPE)


def producers_before(segment: Segment, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers as the ``.snapshot`` beside a segment has them; None when there is none to be read."""
    path = segment.beside.get("snapshot")
    return producers_of_snapshot(path, segment, faults) if path is not None else None


def producers_of_snapshot(path: LogPath, segment: Segment, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers of a ``.snapshot``; None, and a fault of the segment, when it cannot be read."""
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
    """Return the producers with an open transaction where a segment starts, as its ``.snapshot`` says.

    Nothing is open before offset 0.

    Returns
    -------
    list of OpenProducer or None
        None when there is no snapshot, or none that can be read, which is in ``faults``.
    """
    path = segment.beside.get("snapshot")
    opened = None if path is None else _read_snapshot(read_open_transactions, path, segment, faults)
    return [] if opened is None and segment.base_offset == 0 else opened


def opened_before_segment(segment: Segment, faults: list[Fault]) -> Transactions | None:
    """Return the transactions that are open where a segment starts; None when that is not known."""
    producers = open_producers_before(segment, faults)
    return None if producers is None else opened_before(producers)
