"""The table ``waits``: why consumers get no more records of a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.header_columns import timestamps
from kraftlog.codec.headers import NO_TIMESTAMP
from kraftlog.errors import error_from_fault
from kraftlog.layout.discover import Discovery
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.stream import rows_of
from kraftlog.tables.causes import NOTHING, Cause, GroupState, LogState
from kraftlog.tables.coordinator_segments import coordinator_segments
from kraftlog.tables.hanging import whole_partition
from kraftlog.tables.lag import group_places
from kraftlog.tables.lines import Lines
from kraftlog.tables.log_states import LogStates
from kraftlog.tables.partition_ends import PartitionEnds
from kraftlog.tables.read import Read
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition

_INTERNAL = (CONSUMER_OFFSETS, TRANSACTION_STATE)


def wait_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table waits: of each partition that any consumer may read, then of each group.

    Partitions of internal topics are there when something holds their readers back. A group has a row for a partition
    whose log is not among the files when its own topic is: else the files were narrowed to some topics.
    """
    faults, whole = read.faults, read.of_whole_log().faults_only()
    lines = Lines(read.files)
    states = LogStates(lines, read.files, whole)
    segments = (lines.healed(lines.found, read.notes) if read.options.heal else lines.found).segments
    takes = _taken(read)
    known, ends = len(faults), dict[TopicPartition, PartitionEnds]()
    rows = []
    for group in by_partition(segments):
        of = group[0].topic_partition
        if of is None or group[0].state or is_metadata(group[0]):
            continue
        ends[of] = PartitionEnds(whole_partition(group, whole), faults)
        if takes(None, of.topic):
            cause, state = states.cause(ends[of])
            if cause.code != NOTHING or of.topic not in _INTERNAL:
                rows.append(_row(of, None, cause, state))
        read.advance(sum(segment.size for segment in group))
    rows += _of_groups(read.files, whole, ends, states, takes)
    if read.options.strict and len(faults) > known:
        raise error_from_fault(faults[known])
    read.notes.extend(note for note in lines.metadata_notes if note not in read.notes)
    if rows:
        yield _columns(rows, read.schema)


def _taken(read: Read) -> Callable[[str | None, str | None], bool]:
    """Return whether rows of a group, or of none, in a topic are wanted."""

    @cache
    def takes(group: str | None, topic: str | None) -> bool:
        return read.bounds is None or read.bounds.allows_values(group=group, topic=topic)

    return takes


def _of_groups(
    files: Discovery,
    whole: Pass,
    ends: dict[TopicPartition, PartitionEnds],
    states: LogStates,
    takes: Callable[[str | None, str | None], bool],
) -> Iterator[dict[str, Any]]:
    coordinators = coordinator_segments(files, whole, CONSUMER_OFFSETS)
    is_whole = any(of.topic == CONSUMER_OFFSETS for of in ends)
    for places in group_places(coordinators, takes, whole, files.ends_at_cut):
        for place, group in places:
            of = TopicPartition(place.topic or place.topic_id or "", place.partition)
            if of in ends or is_whole:
                yield _row(of, group, *states.cause(ends.get(of), group))


def _row(of: TopicPartition, group: GroupState | None, cause: Cause, state: LogState | None) -> dict[str, Any]:
    opened = None if state is None else state.opened
    return {
        "topic": of.topic,
        "partition": of.partition,
        "group": None if group is None else group.name,
        "cause": cause.code,
        "position": cause.position,
        "log_end_offset": None if state is None else state.end,
        "transactional_id": None if opened is None else opened.transactional_id,
        "producer_id": None if opened is None else opened.producer_id,
        "producer_epoch": None if opened is None else opened.producer_epoch,
        "silent_since": None if opened is None else opened.silent_since,
        "ends_at": None if opened is None else opened.ends_at,
        "sentence": f"{of.topic}-{of.partition}: {cause.text}",
    }


def _columns(rows: list[dict[str, Any]], arrow_schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in arrow_schema:
        values = [row[field.name] for row in rows]
        if field.type == schema.TIMESTAMP:
            columns.append(timestamps(np.array([NO_TIMESTAMP if one is None else one for one in values], np.int64)))
        else:
            columns.append(pa.array(values, field.type))
    return rows_of(columns, arrow_schema, len(rows))
