"""The table ``producers``: what a broker would know of each producer after reading a partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.headers import last_offsets, repeated, timestamps
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import by_partition, producers_before, producers_of_snapshot
from kraftlog.read.records import Progress
from kraftlog.read.segment_reader import segment_headers
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read
from kraftlog.transactions.producer_state import NONE, ProducerState, ProducerStates

_NEVER_NULL = ("producer_id", "producer_epoch")


def producer_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the ``producers`` table, from snapshots and headers.

    It starts from the last ``.snapshot`` that is known to be on disk, as a broker that loads the log, which has removed
    producers that were idle for too long; without one from the first segment. Where records were deleted, it starts
    from the log start offset, as a broker that rebuilds it. It ends before the ``end_offset`` of the options. The other
    bounds have no meaning here. Kafka's -1 is null.
    """
    for group in by_partition(read.segments):
        states = producer_states(group, read.options, read.faults, read.on_progress)
        if states:
            yield _columns(group[0], states, read.schema)


def producer_states(
    group: list[Segment], options: ReadOptions, faults: list[Fault], on_progress: Progress | None = None
) -> list[ProducerState]:
    """Return what a broker would know of the producers of one partition, by producer id.

    As for a broker that loads the log, what lies before the log start offset says nothing. Its cleaner removes records
    with the largest timestamp of a producer's batch: a ``.snapshot`` from before that knows better, and is taken where
    it is that of the last segment or of the end of the log.
    """
    found: list[Fault] = []
    first, known = _snapshot_behind(group, options, found)
    producers, last = ProducerStates(known), group[-1]
    end = 0
    for number, segment in enumerate(group[first:]):
        if (segment.base_offset or 0) >= options.end_offset:
            break
        if segment is last and number:
            producers = _with_later_timestamps(producers, _believed_before(segment, found))
        end = max(end, _read(segment, producers, options, faults))
        if on_progress:
            on_progress(segment.size)
    if end < options.end_offset and last.base_offset is not None and end > last.base_offset:
        producers = _with_later_timestamps(producers, _producers_at_end(last, end, found))
    if found and options.strict:
        raise CorruptRecordError(found[0].message, found[0])
    faults.extend(found)
    return sorted(producers.states(), key=lambda state: state.producer_id)


def _snapshot_behind(
    group: list[Segment], options: ReadOptions, faults: list[Fault]
) -> tuple[int, list[ProducerState]]:
    """Return the number of the segment to read from, and what is known of producers where it starts.

    As Kafka's ``ProducerStateManager.truncateAndReload``: where records were deleted a snapshot of the log start offset
    or before it does not count, and one behind it knows producers whose records were deleted. Behind the recovery point
    a broker makes new snapshots from the headers.
    """
    start = 0 if options.include_deleted else group[0].log_start_offset
    for number in range(len(group) - 1, 0, -1):
        base = group[number].base_offset or 0
        if start < base <= min(options.end_offset, group[number].settled_offset):
            known = producers_before(group[number], faults)
            if known is not None:
                return number, known
    if start == 0 or start < (group[0].base_offset or 0):
        return 0, producers_before(group[0], faults) or []
    for number, segment in enumerate(group):
        if start < (segment.base_offset or 0) <= options.end_offset:
            known = _believed_before(segment, faults)
            if known is not None:
                return number, known
    return 0, []


def _believed_before(segment: Segment, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers as the ``.snapshot`` beside a segment has them, if a crash has left all of it.

    Behind the recovery point it may be cut or empty: that is no fault, and the headers tell.
    """
    is_on_disk = (segment.base_offset or 0) <= segment.settled_offset
    return producers_before(segment, faults if is_on_disk else [])


def _producers_at_end(last: Segment, end: int, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers as the ``.snapshot`` of the log's end has them, which is beside no segment."""
    path = last.folder / f"{end:020d}.snapshot"
    if last.state or disk().entry(path) is None:
        return None
    return producers_of_snapshot(path, last, faults if end <= last.settled_offset else [])


def _with_later_timestamps(producers: ProducerStates, snapshot: list[ProducerState] | None) -> ProducerStates:
    """Return producers with the timestamps of a snapshot, where it has the same batch of theirs with a later one."""
    if not snapshot:
        return producers
    known = {state.producer_id: state for state in snapshot}
    states = producers.states()
    later = [_later(state, known.get(state.producer_id)) for state in states]
    return producers if later == states else ProducerStates(later)


def _later(state: ProducerState, known: ProducerState | None) -> ProducerState:
    if known is None or known.last_timestamp <= state.last_timestamp:
        return state
    is_same = (known.producer_epoch, known.coordinator_epoch) == (state.producer_epoch, state.coordinator_epoch)
    is_same &= state.last_offset in (known.last_offset, NONE)
    return replace(state, last_timestamp=known.last_timestamp) if is_same else state


def _read(segment: Segment, producers: ProducerStates, options: ReadOptions, faults: list[Fault]) -> int:
    """Take the batches of a segment; return the offset behind them."""
    end, start = 0, 0 if options.include_deleted else segment.log_start_offset
    for headers in segment_headers(segment, faults, strict=options.strict, check_control=True):
        last = last_offsets(headers)
        is_read = (headers["base_offset"] < options.end_offset) & (last >= start)
        # a marker whose crc does not match says nothing that can be believed
        producers.add(headers[is_read & (headers["crc_ok"] != 0)])
        end = int(last[-1]) + 1 if len(last) else end
    return end


def _columns(segment: Segment, states: list[ProducerState], arrow_schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in arrow_schema:
        if field.name in ("topic", "partition"):
            columns.append(repeated(getattr(segment, field.name), field.type, len(states)))
        elif field.type == schema.TIMESTAMP:
            columns.append(timestamps(np.array([state.last_timestamp for state in states], np.int64)))
        else:
            columns.append(pa.array([_value(state, field.name) for state in states], field.type))
    return rows_of(columns, arrow_schema, len(states))


def _value(state: ProducerState, column: str) -> Any:
    value = getattr(state, column.removesuffix("_ms"))
    return None if value == NONE and column not in _NEVER_NULL else value
