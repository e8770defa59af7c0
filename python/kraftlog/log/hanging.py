"""Transactions that are open in a partition and that no coordinator will end.

As ``kafka-transactions find-hanging`` has it: no transactional id has the producer's id, or the partition is none of
those of its transaction. The coordinator's side is read from ``__transaction_state`` of the log directory, whichever
topics are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec import headers as batch_headers
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.transaction_log import TransactionMetadata, read_transaction_metadata, read_transactional_id
from kraftlog.errors import Fault, InvalidRecordError
from kraftlog.log.discover import Segment, discover
from kraftlog.log.partitions import by_partition, is_metadata
from kraftlog.log.producer_tables import producer_states
from kraftlog.log.ranges import Range
from kraftlog.log.read import Progress, located, read_range
from kraftlog.stream import rows_of
from kraftlog.transactions.producer_state import ProducerState

TRANSACTION_TOPIC = "__transaction_state"
_COLUMNS = schema.RECORDS.select(["key", "value", "offset"])
_ABORT = "kafka-transactions.sh --bootstrap-server <broker> abort"

Coordinators = dict[str, TransactionMetadata]


def hanging_rows(
    segments: list[Segment],
    arrow_schema: pa.Schema,
    options: ReadOptions,
    faults: list[Fault],
    on_progress: Progress | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return the table hanging_transactions."""
    everything = ReadOptions(strict=options.strict)  # a part of a log would tell of transactions that have long ended
    coordinators, partitions = read_coordinators(segments, everything, faults)
    by_producer = {metadata.producer_id: metadata for metadata in coordinators.values()}
    rows = []
    for group in by_partition(segments):
        if is_metadata(group[0]) or group[0].topic == TRANSACTION_TOPIC:
            continue
        for state in producer_states(_whole(group), everything, faults, on_progress):
            if state.current_transaction_first_offset is None:
                continue
            metadata = by_producer.get(state.producer_id)
            reason = _why_hanging(group[0], metadata, partitions)
            if reason is not None:
                rows.append(_row(group[0], state, metadata, reason, is_known=partitions > 0))
    if rows:
        yield _columns(rows, arrow_schema)


def _whole(group: list[Segment]) -> list[Segment]:
    """Return all segments of a partition, whichever of them are asked for."""
    if group[0].state or group[0].topic is None:
        return group
    return discover(group[0].path.absolute().parent).segments


def read_coordinators(segments: list[Segment], options: ReadOptions, faults: list[Fault]) -> tuple[Coordinators, int]:
    """Return the last record of each transactional id in the log directories that segments are in.

    Also returns how many partitions of ``__transaction_state`` were found there; of replicas of one the longest counts.
    """
    directories = sorted({segment.path.absolute().parent.parent for segment in segments if segment.topic is not None})
    folders = [folder for directory in directories for folder in directory.glob(f"{TRANSACTION_TOPIC}-*")]
    replicas = by_partition(discover(folders).segments) if folders else []
    longest: dict[int | None, list[Segment]] = {}
    for group in sorted(replicas, key=lambda group: (group[-1].base_offset or 0, group[-1].size)):
        longest[group[0].partition] = group
    found: Coordinators = {}
    for segment in (segment for group in longest.values() for segment in group):
        for batch in read_range(Range(segment, 0, NO_BOUND), _COLUMNS, options, faults):
            for key, value, offset in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                try:
                    _apply(found, key, value)
                except InvalidRecordError as error:
                    fault = Fault("bad_message", f"offset {offset}: {error}", base_offset=offset)
                    faults.append(located(segment, fault))
    return found, len(longest)


def _apply(found: Coordinators, key: bytes | None, value: bytes | None) -> None:
    transactional_id = read_transactional_id(key)
    if transactional_id is None:
        return  # of a later release, or left over from an upgrade that was undone (KIP-915)
    if value is None:
        found.pop(transactional_id, None)
    else:
        found[transactional_id] = read_transaction_metadata(transactional_id, value)


def _why_hanging(segment: Segment, metadata: TransactionMetadata | None, partitions: int) -> str | None:
    """Return why no coordinator will end a transaction; None when one will."""
    if not partitions:
        return f"not known: the log directory has no {TRANSACTION_TOPIC}"
    if metadata is None:
        return f"no transactional id has this producer id, in {partitions} partitions of {TRANSACTION_TOPIC}"
    if (segment.topic, segment.partition) not in metadata.partitions:
        return f"the partition is not in the transaction of {metadata.transactional_id}, which is {metadata.status}"
    return None


def _row(
    segment: Segment, state: ProducerState, metadata: TransactionMetadata | None, reason: str, *, is_known: bool
) -> dict[str, Any]:
    start = state.current_transaction_first_offset
    return {
        "topic": segment.topic,
        "partition": segment.partition,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "coordinator_epoch": None if state.coordinator_epoch < 0 else state.coordinator_epoch,
        "start_offset": start,
        "last_timestamp_ms": state.last_timestamp,
        "transactional_id": metadata.transactional_id if metadata else None,
        "reason": reason,
        "command": f"{_ABORT} --topic {segment.topic} --partition {segment.partition} --start-offset {start}"
        if is_known
        else None,
    }


def _columns(rows: list[dict[str, Any]], arrow_schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in arrow_schema:
        if field.name == "last_timestamp":
            stamps = np.array([row["last_timestamp_ms"] for row in rows], np.int64)
            columns.append(batch_headers.timestamps(stamps))
        else:
            columns.append(pa.array([row[field.name] for row in rows], field.type))
    return rows_of(columns, arrow_schema, len(rows))
