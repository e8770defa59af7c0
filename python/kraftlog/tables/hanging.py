"""Open transactions of a partition that no coordinator will end.

The rules are those of ``kafka-transactions find-hanging``: no transactional id has the producer's id, or the partition
is not part of the id's transaction. The coordinator's state is read from ``__transaction_state`` of the log directory,
even if other topics are requested.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog import schema
from kraftlog.codec import header_columns
from kraftlog.coordinator.transactional_ids import transactional_id_columns
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.stream import rows_of
from kraftlog.tables.causes import LogState, OpenTransaction, TransactionalId, cause_of
from kraftlog.tables.coordinator_segments import coordinator_segments, listed_segments
from kraftlog.tables.coordinator_tables import last_transactional_ids, partitions_of_topic
from kraftlog.tables.lines import line_segments
from kraftlog.tables.producer_tables import producer_states
from kraftlog.tables.read import Read
from kraftlog.topics import TRANSACTION_STATE
from kraftlog.transactions.producer_state import ProducerState

_ABORT = "kafka-transactions.sh --bootstrap-server <broker> abort"
_KNOWN = schema.TRANSACTIONAL_IDS.select(
    [
        "transactional_id",
        "producer_id",
        "status",
        "partitions",
        "timeout_ms",
        "start_timestamp_ms",
        "last_update_timestamp_ms",
    ]
)


def hanging_rows(read: Read) -> Iterator[pa.RecordBatch]:
    """Return the table hanging_transactions, of all replicas: coordinators may be in the directory of another one."""
    whole = read.of_whole_log()
    coordinators = Coordinators(read.files, whole.faults_only())
    rows, others = [], 0
    for group in by_partition(line_segments(read.files, read.notes, heals=read.options.heal)):
        if is_metadata(group[0]) or group[0].topic == TRANSACTION_STATE:
            continue
        for one in coordinators.opened(group, whole):
            if one.hanging is None:
                others += 1
            else:
                rows.append(_row(group[0], one))
    if others:
        of = "1 other open transaction is" if others == 1 else f"{others} other open transactions are"
        read.notes.append(f"{of} not hanging: coordinators end them; kraftlog why says when")
    if rows:
        yield _columns(rows, read.schema)


class Coordinators:
    """What ``__transaction_state`` of the log directories that files are in says of open transactions.

    Parameters
    ----------
    files : Discovery
    read : Pass
    """

    def __init__(self, files: Discovery, read: Pass) -> None:
        partitions = partitions_of_topic(coordinator_segments(files, read), TRANSACTION_STATE)
        self._count = len(partitions)
        self._by_producer: dict[int, TransactionalId] = {}
        for group in partitions:
            rows = transactional_id_columns(last_transactional_ids(group, read), _KNOWN)
            if rows is not None:
                self._by_producer |= {row["producer_id"]: row for row in rows.to_pylist()}

    def opened(self, group: list[Segment], read: Pass) -> list[OpenTransaction]:
        """Return the transactions that are open at the end of a partition, by producer id."""
        return [
            self.open_transaction(group[0], state)
            for state in producer_states(whole_partition(group, read), read)
            if state.current_transaction_first_offset is not None
        ]

    def open_transaction(self, segment: Segment, state: ProducerState) -> OpenTransaction:
        """Return what coordinators say of the transaction that a producer has open in the partition of a segment."""
        known = self._by_producer.get(state.producer_id)
        assert state.current_transaction_first_offset is not None
        return OpenTransaction(
            state.producer_id,
            state.producer_epoch,
            state.coordinator_epoch,
            state.current_transaction_first_offset,
            state.last_timestamp,
            known,
            self._why_hanging(segment, known),
            has_coordinator=self._count > 0,
        )

    def _why_hanging(self, segment: Segment, known: TransactionalId | None) -> str | None:
        """Return why no coordinator will end a transaction; None when one will."""
        if not self._count:
            return f"not known: the log directory has no {TRANSACTION_STATE}"
        if known is None:
            return f"no transactional id has this producer id, in {self._count} partitions of {TRANSACTION_STATE}"
        if not any(
            each["topic"] == segment.topic and segment.partition in each["partitions"] for each in known["partitions"]
        ):
            return f"the partition is not in the transaction of {known['transactional_id']}, which is {known['status']}"
        return None


def whole_partition(group: list[Segment], read: Pass) -> list[Segment]:
    """Return all segments of a partition, whichever of them are asked for."""
    if group[0].state or group[0].topic is None or any(segment.stored for segment in group):
        return group  # of a remote tier, it is not in one folder
    return listed_segments([group[0].folder.absolute()], read)


def _row(segment: Segment, one: OpenTransaction) -> dict[str, Any]:
    start = one.first_offset
    partition = f"--topic {quote(segment.topic or '')} --partition {segment.partition}"
    cause = cause_of(LogState(0, start, start, opened=one))
    return {
        "topic": segment.topic,
        "partition": segment.partition,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator_epoch": None if one.coordinator_epoch < 0 else one.coordinator_epoch,
        "start_offset": start,
        "last_timestamp_ms": one.last_timestamp,
        "transactional_id": one.transactional_id,
        "reason": one.hanging,
        "command": f"{_ABORT} {partition} --start-offset {start}" if one.has_coordinator else None,
        "cause": cause.code,
        "sentence": f"{segment.topic}-{segment.partition}: {cause.text}",
    }


def _columns(rows: list[dict[str, Any]], arrow_schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in arrow_schema:
        if field.name == "last_timestamp":
            stamps = np.array([row["last_timestamp_ms"] for row in rows], np.int64)
            columns.append(header_columns.timestamps(stamps))
        else:
            columns.append(pa.array([row[field.name] for row in rows], field.type))
    return rows_of(columns, arrow_schema, len(rows))
