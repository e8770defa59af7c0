"""The states of a remote tier's segments in ``__remote_log_metadata``: copied, deleted or unfinished."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.decode import RecordDecoder
from kraftlog.codec.decode_plan import DecodePlan
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.records import Origin
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.layout.tier.find import UNREADABLE_TIER, Stored
from kraftlog.layout.tier.object_names import parse_file
from kraftlog.layout.tier.stored_segment import Epochs, StoredSegment
from kraftlog.layout.unread import TIER_ORPHAN, Unread
from kraftlog.messages.api import decode_messages
from kraftlog.topics import REMOTE_LOG_METADATA

COPY_STARTED, COPY_FINISHED, DELETE_STARTED, DELETE_FINISHED = range(4)
PARTITION_DELETED = 2

_ADD, _UPDATE = "RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord"
_DELETE = "RemotePartitionDeleteMetadataRecord"
_NEXT = {  # allowed transitions of states
    COPY_STARTED: (COPY_STARTED, COPY_FINISHED, DELETE_STARTED),
    COPY_FINISHED: (COPY_FINISHED, DELETE_STARTED),
    DELETE_STARTED: (DELETE_STARTED, DELETE_FINISHED),
    DELETE_FINISHED: (DELETE_FINISHED,),
}
_WHY = {
    COPY_STARTED: f"its copy was not finished, by {REMOTE_LOG_METADATA}",
    DELETE_STARTED: f"it is being deleted, by {REMOTE_LOG_METADATA}",
    DELETE_FINISHED: f"it was deleted, by {REMOTE_LOG_METADATA}",
}


@dataclass(frozen=True)
class KnownSegment:
    """The last state of a segment in the topic."""

    topic: str
    partition: int
    topic_id: str
    start_offset: int
    end_offset: int
    epochs: Epochs
    event_timestamp_ms: int
    size: int
    state: int


def heeding_metadata(stored: Stored, local: Iterable[Segment]) -> Stored:
    """Return the segments of a remote tier that are valid by the metadata in log directories.

    Segments that the topic does not list are valid, too: its records may have been deleted.
    """
    unread: list[Unread] = []
    topic = [one for one in local if one.topic == REMOTE_LOG_METADATA and not one.state]
    if not topic:
        return stored
    by_id = known_segments(topic, unread)
    segments = []
    for segment in stored.segments:
        of_topic = by_id.get(segment.segment_id)
        if of_topic is None or of_topic.state == COPY_FINISHED:
            segments.append(segment if of_topic is None else _with_metadata(segment, of_topic))
        else:
            of = segment.topic, segment.partition, segment.base_offset
            unread.append(Unread(segment.path, segment.size, _WHY[of_topic.state], *of, TIER_ORPHAN))
    for item in stored.unread:
        name = parse_file(item.path.name)
        of_topic = None if name is None else by_id.get(name.segment_id)
        is_gone = of_topic is not None and of_topic.state != COPY_FINISHED
        unread.append(replace(item, reason=_WHY[of_topic.state], error=TIER_ORPHAN) if of_topic and is_gone else item)
    unread += _missing(stored, by_id)
    return stored._replace(segments=segments, unread=unread)


def _with_metadata(segment: StoredSegment, of_topic: KnownSegment) -> StoredSegment:
    return replace(
        segment, end_offset=of_topic.end_offset, epochs=of_topic.epochs, event_timestamp_ms=of_topic.event_timestamp_ms
    )


def _missing(stored: Stored, by_id: dict[str, KnownSegment]) -> Iterator[Unread]:
    """Return the missing segments of topics that are present."""
    there = {one.segment_id for one in stored.segments}
    there |= {name.segment_id for one in stored.unread if (name := parse_file(one.path.name)) is not None}
    folders = {(one.topic_id, one.partition): one.folder for one in stored.segments}
    for segment_id, one in by_id.items():
        folder = folders.get((one.topic_id, one.partition))
        if one.state == COPY_FINISHED and segment_id not in there and folder is not None:
            path = folder / f"{one.start_offset:020d}-{segment_id}.log"
            expected = f"expected a segment of offsets {one.start_offset} to {one.end_offset}, by {REMOTE_LOG_METADATA}"
            why = f"{expected}, found none"
            yield Unread(path, one.size, why, one.topic, one.partition, one.start_offset, UNREADABLE_TIER)


def known_segments(segments: Iterable[Segment], unread: list[Unread]) -> dict[str, KnownSegment]:
    """Return the last state of each segment in the topic, by id.

    Parameters
    ----------
    segments : iterable of Segment
        Segments of the topic.
    unread : list of Unread
        Receives unreadable files.
    """
    by_id: dict[str, KnownSegment] = {}
    for segment in sorted(segments, key=lambda one: (one.partition or 0, str(one.folder), one.base_offset or 0)):
        odd: list[str] = []
        try:
            for values in _values(segment, odd):
                _take(values, by_id, odd)
        except OSError as error:
            odd.append(str(error.strerror or error))
        if odd:
            why = f"{len(odd)} records or batches of it cannot be read, the first: {odd[0]}"
            unread.append(Unread(segment.path, 0, why, error=UNREADABLE_TIER))  # of all partitions
    return by_id


def _values(segment: Segment, odd: list[str]) -> Iterator[pa.BinaryArray]:
    """Return the values of the records of a segment; note faults."""
    faults: list[Fault] = []
    options = ReadOptions()
    plan = DecodePlan(schema.RECORDS.select(["value"]), options, Origin(segment.topic, segment.partition, None))
    file = disk().open(segment.path, segment.size)
    try:
        for batch in RecordDecoder(file, 0, NO_BOUND, plan).batches(faults):
            yield batch.column(0)
    finally:
        file.close()
    odd += [fault.message for fault in faults]


def _take(values: pa.BinaryArray, by_id: dict[str, KnownSegment], odd: list[str]) -> None:
    """Apply records, in their order."""
    read = [decode_messages(name, values).to_pylist() for name in (_ADD, _UPDATE, _DELETE)]
    for add, update, delete in zip(*read, strict=True):
        if add["error"] is None:
            _add(add, by_id)
        elif update["error"] is None:
            segment_id, state = update["remote_log_segment_id"]["id"], update["remote_log_segment_state"]
            before = by_id.get(segment_id)
            if before is not None and state in _NEXT[before.state]:
                by_id[segment_id] = replace(before, state=state, event_timestamp_ms=update["event_timestamp_ms"])
        elif delete["error"] is None:
            if delete["remote_partition_delete_state"] == PARTITION_DELETED:
                of = delete["topic_id_partition"]
                for segment_id, one in list(by_id.items()):
                    if (one.topic_id, one.partition) == (of["id"], of["partition"]):
                        by_id[segment_id] = replace(one, state=DELETE_FINISHED)
        else:
            odd.append(str(add["error"]))


def _add(row: dict[str, Any], by_id: dict[str, KnownSegment]) -> None:
    """Add a segment whose copy begins; Kafka ignores one that is already known or has another state."""
    name = row["remote_log_segment_id"]
    if name["id"] in by_id or row["remote_log_segment_state"] != COPY_STARTED:
        return
    of = name["topic_id_partition"]
    by_id[name["id"]] = KnownSegment(
        of["name"],
        of["partition"],
        of["id"],
        row["start_offset"],
        row["end_offset"],
        tuple(sorted((one["leader_epoch"], one["offset"]) for one in row["segment_leader_epochs"])),
        row["event_timestamp_ms"],
        row["segment_size_in_bytes"],
        COPY_STARTED,
    )
