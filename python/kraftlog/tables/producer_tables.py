"""The table ``producers``: what a broker would know of each producer after reading a partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec.headers import repeated, timestamps
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.discover import Segment
from kraftlog.read.partitions import by_partition, producers_before
from kraftlog.read.records import Progress
from kraftlog.read.segment_reader import segment_headers
from kraftlog.stream import rows_of
from kraftlog.transactions.producer_state import NONE, ProducerState, ProducerStates

_NEVER_NULL = ("producer_id", "producer_epoch")


def producer_rows(
    segments: list[Segment],
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the ``producers`` table, from headers alone.

    It starts from the ``.snapshot`` beside the first segment of a partition and ends before the ``end_offset`` of the
    options; the other bounds have no meaning here. Kafka's -1 is null.
    """
    for group in by_partition(segments):
        states = producer_states(group, options, faults, on_progress)
        if states:
            yield _columns(group[0], states, arrow_schema)


def producer_states(
    group: list[Segment], options: ReadOptions, faults: list[Fault], on_progress: Progress | None = None
) -> list[ProducerState]:
    """Return what a broker would know of the producers of one partition, by producer id."""
    found: list[Fault] = []
    producers = ProducerStates(producers_before(group[0], found) or ())
    if found and options.strict:
        raise CorruptRecordError(found[0].message, found[0])
    faults.extend(found)
    for segment in group:
        _read(segment, producers, options, faults)
        if on_progress:
            on_progress(segment.size)
    return sorted(producers.states(), key=lambda state: state.producer_id)


def _read(segment: Segment, producers: ProducerStates, options: ReadOptions, faults: list[Fault]) -> None:
    for headers in segment_headers(segment, faults, strict=options.strict, check_control=True):
        # a marker whose crc does not match says nothing that can be believed
        producers.add(headers[(headers["base_offset"] < options.end_offset) & (headers["crc_ok"] != 0)])


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
