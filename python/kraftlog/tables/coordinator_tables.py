"""The tables ``offsets``, ``groups`` and ``transactional_ids``: the state of the coordinators' topics.

They show the state of a coordinator that has read up to the ``end_offset`` of the options. Other bounds are ignored.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, cast

import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.options import NO_BOUND, READ_UNCOMMITTED, ReadOptions
from kraftlog.coordinator.group_rows import group_columns
from kraftlog.coordinator.groups import Groups
from kraftlog.coordinator.members import Names
from kraftlog.coordinator.offset_columns import groups_with_offsets, offset_columns, topic_names, up_to
from kraftlog.coordinator.transactional_ids import TRANSACTION_LOG, transactional_id_columns
from kraftlog.disk.run_ahead import run_ahead
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.format_of import CONSUMER_OFFSETS as CONSUMER_OFFSETS_FORMAT
from kraftlog.messages.format_of import TRANSACTION_STATE as TRANSACTION_STATE_FORMAT
from kraftlog.messages.last_records import GroupRule, LastRecords, Markers, OddRecords
from kraftlog.read.log_pass import Pass
from kraftlog.read.marker_stream import MarkerStream
from kraftlog.read.messages import TypedChunk
from kraftlog.read.partitions import by_partition
from kraftlog.read.ranges import plan
from kraftlog.read.records import read_range
from kraftlog.read.topic_names import TopicNames
from kraftlog.tables.read import Read
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE

OFFSET_COMMIT = "OffsetCommit"
_READ = ["key", "value", "offset", "producer_id"]
_BATCH_BYTES = 4 * ReadOptions.batch_bytes  # measured: fewer record batches
_SCHEMA = schema.RECORDS.select(_READ)
_NO_RECORDS = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in _SCHEMA], schema=_SCHEMA)


def offset_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``offsets``, a record batch for each partition of ``__consumer_offsets``."""
    for group in partitions_of_topic(read.segments, CONSUMER_OFFSETS):
        last = _taken(commit_records(), group, read)
        rows = offset_columns(up_to(last.typed(OFFSET_COMMIT), read.files.ends_at_cut), read.schema)
        if rows is not None:
            yield rows


def group_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``groups``, a record batch for each partition of ``__consumer_offsets``."""
    found, names = commits_and_groups(read.segments, read)
    for commits, groups in found:
        rows = group_columns(groups, groups.simple_groups(groups_with_offsets(commits)), names, read.schema)
        if rows is not None:
            yield rows


def transactional_id_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table ``transactional_ids``, a record batch for each partition of ``__transaction_state``."""
    for group in partitions_of_topic(read.segments, TRANSACTION_STATE):
        last = last_transactional_ids(group, read)
        rows = transactional_id_columns(last, read.schema)
        if rows is not None:
            yield rows


def last_transactional_ids(group: Iterable[Segment], read: Pass) -> pa.RecordBatch:
    """Return the last record of each transactional id in the segments of one partition of ``__transaction_state``."""
    last = LastRecords(BUILT_IN.formats[TRANSACTION_STATE_FORMAT], [TRANSACTION_LOG])
    return _taken(last, group, read).typed(TRANSACTION_LOG)


def last_group_records(group: Iterable[Segment], read: Pass) -> LastRecords:
    """Return the last records of groups and their offsets in one partition of ``__consumer_offsets``."""
    return _taken(group_records(), group, read)


def commits_and_groups(segments: list[Segment], read: Pass) -> tuple[list[tuple[pa.RecordBatch, Groups]], Names]:
    """Return the commits and the groups of each partition of ``__consumer_offsets``, and topics by their ids.

    The ids come from commits of all partitions, and from the folders of the topics.
    """
    found = [groups_of(last_group_records(group, read)) for group in partitions_of_topic(segments, CONSUMER_OFFSETS)]
    told = {topic_id: name for commits, _ in found for topic_id, name in topic_names(commits).items()}
    return found, ChainMap(told, cast("dict[str, str]", TopicNames(segments, read.faults)))


def commit_records() -> LastRecords:
    """Return the collector of the commits of one partition, for the table ``offsets``."""
    return LastRecords(BUILT_IN.formats[CONSUMER_OFFSETS_FORMAT], [OFFSET_COMMIT], [OFFSET_COMMIT])


def group_records() -> LastRecords:
    """Return the collector of the records of one partition, for the table ``groups``."""
    rule = GroupRule(OFFSET_COMMIT, Groups.of_groups)
    wanted = (OFFSET_COMMIT, *Groups.types)
    return LastRecords(BUILT_IN.formats[CONSUMER_OFFSETS_FORMAT], wanted, [OFFSET_COMMIT], rule)


def groups_of(last: LastRecords) -> tuple[pa.RecordBatch, Groups]:
    """Return the remaining commits and groups of one partition."""
    return last.typed(OFFSET_COMMIT), Groups({name: last.typed(name) for name in Groups.types}, last.groups())


def partitions_of_topic(segments: Iterable[Segment], topic: str) -> list[list[Segment]]:
    """Return the live segments of each partition of a topic."""
    return by_partition(segment for segment in segments if segment.topic == topic and not segment.state)


class _Chunk(NamedTuple):
    """Records of a segment, the transaction markers before the next ones, and the faults up to there."""

    segment: Segment
    records: pa.RecordBatch
    markers: Markers
    faults: list[Fault]


def _taken(last: LastRecords, group: Iterable[Segment], read: Pass) -> LastRecords:
    """Add the segments of one partition to the last records; the next chunk of a large segment is read ahead."""
    segments = list(group)
    chunks = _chunks(segments, read)
    is_large = sum(segment.size for segment in segments) > _BATCH_BYTES
    for chunk in run_ahead(lambda chunk: chunk, chunks) if is_large else chunks:
        read.faults.extend(chunk.faults)
        _note(chunk, last.add(chunk.records, chunk.markers), read)
    return last


def _chunks(segments: list[Segment], read: Pass) -> Iterator[_Chunk]:
    everything = replace(
        read.options,
        start_offset=-NO_BOUND,
        start_timestamp=-NO_BOUND,
        end_timestamp=NO_BOUND,
        isolation_level=READ_UNCOMMITTED,
        batch_bytes=_BATCH_BYTES,
        include_control=False,
    )
    arrow_schema = schema.RECORDS.select(_READ)
    for segment in segments:
        markers = MarkerStream(read.options.end_offset)
        ahead = read.with_options(everything).apart()
        for part in plan([segment], everything, None):
            for records in read_range(part, arrow_schema, ahead, observe=markers.see):
                yield _Chunk(segment, records, markers.take(), ahead.faults.copy())
                ahead.faults.clear()
        yield _Chunk(segment, _NO_RECORDS, markers.take(), ahead.faults)


def _note(chunk: _Chunk, odd: OddRecords | None, read: Pass) -> None:
    if odd is not None:
        typed = TypedChunk(chunk.segment, chunk.records.take(pa.array(odd.rows)), odd.messages)
        typed.take_faults(read.faults, strict=read.options.strict)
