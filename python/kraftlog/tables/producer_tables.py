"""The table ``producers``: the producer state of a broker that has read a partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.header_columns import repeated, timestamps
from kraftlog.codec.headers import last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.errors import Fault
from kraftlog.layout.names import LARGEST_OFFSET
from kraftlog.layout.recovered import first_unflushed, is_taken_as_it_is
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, producers_before, producers_of_snapshot
from kraftlog.read.segment_reader import segment_headers
from kraftlog.stream import rows_of
from kraftlog.tables.read import Read
from kraftlog.transactions.producer_state import NONE, ProducerState, ProducerStates

_NEVER_NULL = ("producer_id", "producer_epoch")


def producer_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the ``producers`` table, from snapshots and headers.

    It starts from the last ``.snapshot`` that was synced, like a broker that loads the log and has removed idle
    producers; without one from the first segment. If records were deleted, it starts where such a broker starts. It
    ends before the ``end_offset`` of the options. Other bounds are ignored. Kafka's -1 is null.
    """
    for group in by_partition(read.segments):
        states = producer_states(group, read)
        if states:
            yield _columns(group[0], states, read.schema)


def producer_states(group: list[Segment], read: Pass) -> list[ProducerState]:
    """Return the producer state of a broker for one partition, by producer id.

    This is the state of a broker that loads the log (``_Loading``). Kafka's log cleaner removes records with the
    largest timestamp of a producer's batch; an earlier ``.snapshot`` still has this timestamp. It is used if it is that
    of the last segment or of the end of the log.
    """
    options, found = read.options, list[Fault]()
    loading = _Loading(group, options)
    first_offset, known = loading.snapshot(found)
    producers, last, end, is_begun = ProducerStates(known), group[-1], 0, False
    has_snapshot = first_offset > loading.start or not any(loading.is_recovered)
    for number, segment in enumerate(group):
        if (segment.base_offset or 0) >= options.end_offset:
            break
        if segment is not last and (group[number + 1].base_offset or 0) <= first_offset:
            continue
        if segment is last and is_begun:
            producers = _with_later_timestamps(producers, _believed_before(segment, found))
        is_begun = True
        is_recovered = loading.is_recovered[number]
        reached = _read(segment, producers, read, 0 if is_recovered else first_offset)
        end = max(end, segment.base_offset or 0, reached)  # one that is empty ends where it begins
        if is_recovered and end <= loading.start:
            producers = ProducerStates()  # a broker takes no snapshot of that
        has_snapshot |= is_recovered and end > loading.start
        read.advance(segment.size)
    at_end = None
    if end <= options.end_offset and last.base_offset is not None and end > max(last.base_offset, loading.start):
        at_end = _producers_at_end(last, end, found)
    if at_end is not None and not any(loading.is_recovered):
        producers = ProducerStates(at_end)
    elif has_snapshot or not loading.is_closed:
        producers = _with_later_timestamps(producers, at_end)
    else:
        producers = ProducerStates()
    read.add(*found)
    return sorted(producers.states(), key=lambda state: state.producer_id)


class _Loading:
    """The position at which a broker begins to rebuild producers when it loads a log.

    The rules are those of ``LogLoader`` and ``ProducerStateManager.truncateAndReload`` of Kafka 4.3. Snapshots at or
    before the log start offset are ignored, and those after the first recovered segment are rewritten. Segments are
    recovered one after another, each from the last snapshot up to its base offset. The range between these two is read
    from the log start offset on, by whole batches; a recovered segment is read completely, including records before the
    log start offset. A snapshot and a recovered segment therefore know producers of deleted records.

    If nothing was deleted, snapshots agree with the log, and it does not matter which ones a broker rewrites.

    Kafka assumes that a cleanly closed log without a snapshot is older than producer ids; here such a log is read.

    Parameters
    ----------
    group : list of Segment
        Segments of one partition, in order.
    options : ReadOptions

    Attributes
    ----------
    start : int
        The log start offset.
    is_recovered : list of bool
        Whether each segment is recovered.
    """

    def __init__(self, group: list[Segment], options: ReadOptions) -> None:
        self._group = group
        self._end_offset = options.end_offset
        self.start = 0 if options.include_deleted else group[0].log_start_offset
        first_base = group[0].base_offset or 0
        settled = min((one.settled_offset for one in group if not one.is_swap), default=0)
        self.is_closed = settled == LARGEST_OFFSET
        unflushed = len(group) if self.is_closed else first_unflushed(group, settled)
        is_deleted = 0 < self.start >= first_base
        self.is_recovered = [
            not one.stored and (number >= unflushed or (is_deleted and not is_taken_as_it_is(one)))
            for number, one in enumerate(group)
        ]

    def snapshot(self, faults: list[Fault]) -> tuple[int, list[ProducerState]]:
        """Return the offset from which batches are read, and the producers at this offset."""
        recovered = zip(self._group, self.is_recovered, strict=True)
        before = next((one.base_offset or 0 for one, is_recovered in recovered if is_recovered), LARGEST_OFFSET)
        for segment in reversed(self._group):
            base = segment.base_offset or 0
            if self.start < base <= min(self._end_offset, before):
                # without that of the first segment nothing tells what was before: a fault, whenever it was lost
                is_first = segment is self._group[0]
                known = producers_before(segment, faults) if is_first else _believed_before(segment, faults)
                if known is not None:
                    return base, known
        return self.start, []


def _believed_before(segment: Segment, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers in the ``.snapshot`` of a segment, if it survived a crash completely.

    After the recovery point it may be truncated or empty: this is not a fault, and headers are used.
    """
    is_on_disk = (segment.base_offset or 0) <= segment.settled_offset
    return producers_before(segment, faults if is_on_disk else [])


def _producers_at_end(last: Segment, end: int, faults: list[Fault]) -> list[ProducerState] | None:
    """Return the producers in the ``.snapshot`` of the log's end, which belongs to no segment."""
    path = last.folder / f"{end:020d}.snapshot"
    if last.state or disk().entry(path) is None:
        return None
    return producers_of_snapshot(path, last, faults if end <= last.settled_offset else [])


def _with_later_timestamps(producers: ProducerStates, snapshot: list[ProducerState] | None) -> ProducerStates:
    """Return producers with the later timestamps of a snapshot, if it has the same batches."""
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


def _read(segment: Segment, producers: ProducerStates, read: Pass, first_offset: int) -> int:
    """Add the batches of a segment that end at or after an offset; return the offset after the last one."""
    end = 0
    for headers in segment_headers(segment, read.faults, strict=read.options.strict, check_control=True):
        last = last_offsets(headers)
        is_read = (headers["base_offset"] < read.options.end_offset) & (last >= first_offset)
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
