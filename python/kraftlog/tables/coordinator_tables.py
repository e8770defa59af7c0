"""The tables ``offsets``, ``groups`` and ``transactional_ids``: the topics of the coordinators, read and folded.

They are as the coordinators would have it after reading up to the ``end_offset`` of the options. The other bounds have
no meaning here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from kraftlog.codec.options import NO_BOUND, READ_UNCOMMITTED, ReadOptions
from kraftlog.coordinator.group_rows import group_columns
from kraftlog.coordinator.groups import GroupFold
from kraftlog.coordinator.offset_columns import groups_with_offsets, offset_columns, topic_names
from kraftlog.coordinator.offsets import OffsetFold
from kraftlog.coordinator.transactional_ids import TRANSACTION_LOG, TransactionalIdFold, transactional_id_columns
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.marker_stream import MarkerStream
from kraftlog.read.messages import TypedChunk, typed_chunks
from kraftlog.read.partitions import longest_replicas
from kraftlog.read.records import Progress
from kraftlog.topics import CONSUMER_OFFSETS, TRANSACTION_STATE

OFFSET_COMMIT = "OffsetCommit"


def offset_rows(
    segments: list[Segment],
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the table ``offsets``, a record batch for each partition of ``__consumer_offsets``."""
    for group in replicas(segments, CONSUMER_OFFSETS):
        fold, _ = _folds(group, options, faults, on_progress, with_groups=False)
        rows = offset_columns(fold, arrow_schema)
        if rows is not None:
            yield rows


def group_rows(
    segments: list[Segment],
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the table ``groups``, a record batch for each partition of ``__consumer_offsets``."""
    folds = [
        _folds(group, options, faults, on_progress, with_groups=True) for group in replicas(segments, CONSUMER_OFFSETS)
    ]
    names = {topic_id: name for offsets, _ in folds for topic_id, name in topic_names(offsets).items()}
    for offsets, groups in folds:
        rows = group_columns(groups, groups.simple_groups(groups_with_offsets(offsets)), names, arrow_schema)
        if rows is not None:
            yield rows


def transactional_id_rows(
    segments: list[Segment],
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the table ``transactional_ids``, a record batch for each partition of ``__transaction_state``."""
    for group in replicas(segments, TRANSACTION_STATE):
        rows = transactional_id_columns(fold_transactional_ids(group, options, faults, on_progress), arrow_schema)
        if rows is not None:
            yield rows


def fold_transactional_ids(
    group: Iterable[Segment], options: ReadOptions, faults: list[Fault], on_progress: Progress | None = None
) -> TransactionalIdFold:
    """Fold the segments of one partition of ``__transaction_state``."""
    fold = TransactionalIdFold()
    for segment in group:
        for chunk in _chunks(segment, options, faults, on_progress):
            fold.add(_rows(chunk, TRANSACTION_LOG))
            chunk.take_faults(faults, strict=options.strict)
    return fold


def replicas(segments: Iterable[Segment], topic: str) -> list[list[Segment]]:
    """Return the live segments of each partition of a topic; of several replicas of one the longest counts."""
    return longest_replicas(segment for segment in segments if segment.topic == topic)


def _folds(
    group: Iterable[Segment],
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None,
    *,
    with_groups: bool,
) -> tuple[OffsetFold, GroupFold]:
    """Fold the segments of one partition of ``__consumer_offsets``."""
    offsets, groups = OffsetFold(), GroupFold()
    for segment in group:
        markers = MarkerStream(segment, options.end_offset)
        for chunk in _chunks(segment, options, faults, on_progress):
            last_offset = chunk.records.column("offset")[-1].as_py()
            commits = _rows(chunk, OFFSET_COMMIT)
            offsets.add(commits, markers.through(last_offset))
            if with_groups:
                groups.add_commits(commits)
            for name in GroupFold.types if with_groups else ():
                groups.add(name, _rows(chunk, name))
            chunk.take_faults(faults, strict=options.strict)
        offsets.add(None, markers.rest())
    return offsets, groups


def _chunks(
    segment: Segment, options: ReadOptions, faults: list[Fault], on_progress: Progress | None
) -> Iterator[TypedChunk]:
    everything = replace(
        options,
        start_offset=-NO_BOUND,
        start_timestamp=-NO_BOUND,
        end_timestamp=NO_BOUND,
        isolation_level=READ_UNCOMMITTED,
        include_control=False,
    )
    return typed_chunks([segment], ["producer_id"], everything, faults, on_progress=on_progress)


def _rows(chunk: TypedChunk, name: str) -> pa.RecordBatch | None:
    """Return the records of a type: its fields, and the columns of each record that a fold needs."""
    if name not in chunk.messages.types_there:
        return None
    typed = chunk.messages.typed(name)
    records = chunk.records.select(["offset", "producer_id"]).take(pa.array(typed.rows))
    fields = typed.fields
    for column in records.schema.names:
        if column not in fields.schema.names:  # records of __transaction_state have a producer id of their own
            fields = fields.append_column(column, records.column(column))
    fields = fields.append_column("value_version", pa.array(chunk.messages.value_versions[typed.rows]))
    return fields.append_column("is_tombstone", pa.array(typed.is_tombstone))
