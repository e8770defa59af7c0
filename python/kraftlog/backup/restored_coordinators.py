"""Records that are appended to the coordinators' topics, so that these agree with partitions that were cut.

Where partitions are cut, transactions that are open there are aborted. ``__transaction_state`` is cut as well, and may
say otherwise of a transactional id: that its transaction is ongoing, or prepared, or that it is complete although its
markers lie after the cut. A coordinator that loads such a state would go on with it: it sends the markers of a prepared
transaction, COMMIT among them, to partitions that have aborted the transaction already, and lets an ongoing one time
out a minute later. No record would become visible by that, since a marker without a transaction changes nothing. But
the coordinator would report a commit that did not happen, and producers would wait for it. So each id that is not at
rest gets a last record at the cut: CompleteAbort with a raised epoch, as the coordinator itself writes when it aborts
for a producer that is gone; or CompleteCommit, if all of the markers lie before the cut. An id that is complete stays
as it is.

A group may have committed an offset behind the end of a partition, since the cut lies before it there. The group gets
the end of the partition: other records will have the offsets between, and it would skip them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kraftlog.layout.segment import Segment
from kraftlog.log_store.group_offsets import OffsetAndMetadata, offset_records, tombstones
from kraftlog.log_store.transaction_records import transaction_record, transaction_states
from kraftlog.log_store.transaction_state import (
    LAST_EPOCH,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Complete,
    TransactionState,
    transition,
)
from kraftlog.topics import TopicPartition


@dataclass(frozen=True)
class EndedTransaction:
    """A transaction of an id that was not at rest at the cut.

    Attributes
    ----------
    transactional_id : str
    producer_id : int
    before, after : str
        Kafka's names of the states.
    """

    transactional_id: str
    producer_id: int
    before: str
    after: str


@dataclass(frozen=True)
class MovedOffset:
    """A committed offset of a group that is another one in the restored cluster.

    Attributes
    ----------
    group : str
    topic, partition : str, int
        In the source.
    offset : int
        That the group had committed.
    new_topic : str
    new_offset : int
    """

    group: str
    topic: str
    partition: int
    offset: int
    new_topic: str
    new_offset: int


def ended(state: TransactionState, aborted_producers: Collection[int]) -> TransactionState:
    """Return the state of a transactional id at rest; the same one if it is.

    Parameters
    ----------
    state : TransactionState
        At the cut.
    aborted_producers : collection of int
        Producers whose transactions were open at the cut in a partition.

    Examples
    --------
    >>> from kraftlog.backup.restored_coordinators import ended
    >>> from kraftlog.log_store.transaction_state import NAMES, PREPARE_COMMIT, TransactionState
    >>> prepared = TransactionState("etl", 7, 3, 60_000, PREPARE_COMMIT)
    >>> [(NAMES[one.status], one.producer_epoch) for one in (ended(prepared, {7}), ended(prepared, {8}))]
    [('CompleteAbort', 4), ('CompleteCommit', 3)]
    """
    if not state.is_pending:
        return state
    prepared = state
    if state.status != PREPARE_COMMIT or state.producer_id in aborted_producers:
        epoch = min(state.producer_epoch + 1, LAST_EPOCH)
        prepared = replace(state, status=PREPARE_ABORT, producer_epoch=epoch)
    return transition(state.transactional_id, prepared, Complete(state.last_update_timestamp))


def transaction_rows(
    segments: Sequence[Segment],
    aborted_producers: Collection[int],
    transaction_version: int,
    done: list[EndedTransaction],
) -> Iterator[pa.RecordBatch]:
    """Return the records to append to a partition of ``__transaction_state``: columns key and value.

    Raises
    ------
    RecordError
        When a record cannot be read.
    """
    for state in transaction_states(list(segments)):
        after = ended(state, aborted_producers)
        if after is not state:
            record = transaction_record(after, transaction_version)
            done.append(
                EndedTransaction(state.transactional_id, state.producer_id, state.status_name, after.status_name)
            )
            yield pa.record_batch(
                {"key": pa.array([record.key], pa.binary()), "value": pa.array([record.value], pa.binary())}
            )


def offset_rows(
    committed: Iterable[Mapping[str, Any]],
    new_names: Mapping[str, str],
    ends: Mapping[TopicPartition, int],
    timestamp_ms: int,
    done: list[MovedOffset],
) -> Iterator[pa.RecordBatch]:
    """Return the records to append to a partition of ``__consumer_offsets``: columns key and value.

    Parameters
    ----------
    committed : iterable of mapping
        Rows of the table ``offsets``.
    new_names : mapping of str to str
        Of topics, by their names in the source.
    ends : mapping of TopicPartition to int
        Where the partitions end, by their new names.
    timestamp_ms : int
    done : list of MovedOffset
    """
    for row in committed:
        topic, partition = row["topic"], row["partition"]
        new_topic = new_names.get(topic)
        if new_topic is None or row["offset"] is None:
            continue
        end = ends.get(TopicPartition(new_topic, partition))
        offset = row["offset"] if end is None else min(row["offset"], end)
        if (new_topic, offset) == (topic, row["offset"]):
            continue
        done.append(MovedOffset(row["group"], topic, partition, row["offset"], new_topic, offset))
        epoch = row["leader_epoch"] if offset == row["offset"] and row["leader_epoch"] is not None else -1
        moved = OffsetAndMetadata(offset, row["metadata"] or "", epoch)
        yield offset_records(row["group"], {(new_topic, partition): moved}, timestamp_ms)
        if new_topic != topic:
            yield tombstones(row["group"], [(topic, partition)])
