"""Transactions that are open in a partition and that no coordinator will end.

As ``kafka-transactions find-hanging`` has it: no transactional id has the producer's id, or the partition is none of
those of its transaction. The coordinator's side is read from ``__transaction_state`` of the log directory, whichever
topics are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec import headers as batch_headers
from kraftlog.codec.options import ReadOptions
from kraftlog.coordinator.transactional_ids import transactional_id_columns
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.stream import rows_of
from kraftlog.tables.coordinator_segments import coordinator_segments, listed_segments
from kraftlog.tables.coordinator_tables import last_transactional_ids, partitions_of_topic
from kraftlog.tables.lines import line_segments
from kraftlog.tables.producer_tables import producer_states
from kraftlog.tables.read import Read
from kraftlog.topics import TRANSACTION_STATE
from kraftlog.transactions.producer_state import ProducerState

_ABORT = "kafka-transactions.sh --bootstrap-server <broker> abort"
_KNOWN = schema.TRANSACTIONAL_IDS.select(["transactional_id", "producer_id", "status", "partitions"])

TransactionalId = dict[str, Any]
"""A row of the table transactional_ids."""


def hanging_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table hanging_transactions, of all replicas: coordinators may be in the directory of another one."""
    faults = read.faults
    # a part of a log would tell of transactions that have long ended
    everything = ReadOptions(strict=read.options.strict, heal=read.options.heal)
    by_producer, partitions = _transactional_ids(read.files, everything, faults)
    rows = []
    for group in by_partition(line_segments(read.files, read.notes, heals=everything.heal)):
        if is_metadata(group[0]) or group[0].topic == TRANSACTION_STATE:
            continue
        whole = _whole(group, everything, faults)
        for state in producer_states(whole, everything, faults, read.on_progress):
            if state.current_transaction_first_offset is None:
                continue
            known = by_producer.get(state.producer_id)
            reason = _why_hanging(group[0], known, partitions)
            if reason is not None:
                rows.append(_row(group[0], state, known, reason, is_known=partitions > 0))
    if rows:
        yield _columns(rows, read.schema)


def _whole(group: list[Segment], options: ReadOptions, faults: list[Fault]) -> list[Segment]:
    """Return all segments of a partition, whichever of them are asked for."""
    if group[0].state or group[0].topic is None or any(segment.stored for segment in group):
        return group  # of a remote tier, it is not in one folder
    return listed_segments([group[0].folder.absolute()], options, faults)


def _transactional_ids(
    files: Discovery, options: ReadOptions, faults: list[Fault]
) -> tuple[dict[int, TransactionalId], int]:
    """Return the transactional ids, by producer id, of the log directories that files are in.

    Also returns how many partitions of ``__transaction_state`` were found there.
    """
    partitions = partitions_of_topic(coordinator_segments(files, options, faults), TRANSACTION_STATE)
    found: dict[int, TransactionalId] = {}
    for group in partitions:
        rows = transactional_id_columns(last_transactional_ids(group, options, faults), _KNOWN)
        if rows is not None:
            found |= {row["producer_id"]: row for row in rows.to_pylist()}
    return found, len(partitions)


def _why_hanging(segment: Segment, known: TransactionalId | None, partitions: int) -> str | None:
    """Return why no coordinator will end a transaction; None when one will."""
    if not partitions:
        return f"not known: the log directory has no {TRANSACTION_STATE}"
    if known is None:
        return f"no transactional id has this producer id, in {partitions} partitions of {TRANSACTION_STATE}"
    if not any(
        each["topic"] == segment.topic and segment.partition in each["partitions"] for each in known["partitions"]
    ):
        return f"the partition is not in the transaction of {known['transactional_id']}, which is {known['status']}"
    return None


def _row(
    segment: Segment, state: ProducerState, known: TransactionalId | None, reason: str, *, is_known: bool
) -> dict[str, Any]:
    start = state.current_transaction_first_offset
    partition = f"--topic {quote(segment.topic or '')} --partition {segment.partition}"
    return {
        "topic": segment.topic,
        "partition": segment.partition,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "coordinator_epoch": None if state.coordinator_epoch < 0 else state.coordinator_epoch,
        "start_offset": start,
        "last_timestamp_ms": state.last_timestamp,
        "transactional_id": known["transactional_id"] if known else None,
        "reason": reason,
        "command": f"{_ABORT} {partition} --start-offset {start}" if is_known else None,
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
