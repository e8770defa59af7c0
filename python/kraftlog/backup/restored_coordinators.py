"""Records that are appended to the coordinators' topics, so that these agree with partitions that were cut.

Where partitions are cut, transactions that are open there are aborted. ``__transaction_state`` is cut as well, but its
records have no place among the markers: of a transaction that is aborted so, it may hold the decision, to commit even,
and that it is complete. A coordinator that loads a decision sends its markers, to partitions that have aborted the
transaction. No record becomes visible by that, since a marker without a transaction changes nothing; but files and
coordinator contradict each other, and a producer learns of a commit that is not there. So all records of a
transactional id from such a decision on are left out, as they lie after the cut. Each id that is then not at rest gets
last records: PrepareAbort, with a raised epoch as the coordinator writes it for a producer that is gone, and
CompleteAbort; or CompleteCommit, if the transaction was decided and its markers lie before the cut. Otherwise the
coordinator would wait for the timeout of a transaction that has ended.

A cut at a time may have the first records of a transaction, but not what the coordinator wrote of it before: the time
of records is the client's. An id that has a smaller epoch than its producer has in a partition gets a record with that
one. Otherwise the next producer would have an epoch that the partition refuses as an old one.

A group may have committed an offset behind the end of a partition, since the cut lies before it there, or the partition
is restored without its records. The group gets the end of the partition: other records will have the offsets between,
and it would skip them. For the same reason it loses its offsets of topics that are not restored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlog.codec.compression import decompressor
from kraftlog.codec.decode import decode
from kraftlog.codec.filtered_batch import filtered_batch
from kraftlog.codec.header_scan import ends
from kraftlog.codec.headers import last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault
from kraftlog.layout.discover import Discovery
from kraftlog.layout.segment import Segment
from kraftlog.log_store.group_offsets import OffsetAndMetadata, offset_records, tombstones
from kraftlog.log_store.key_and_value import rows_of_records
from kraftlog.log_store.transaction_records import transaction_record, transaction_states
from kraftlog.log_store.transaction_state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    LAST_EPOCH,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Complete,
    TransactionState,
    transition,
)
from kraftlog.read.log_pass import Pass
from kraftlog.tables.transactions import TransactionsOfLog, coordinator_transactions
from kraftlog.topics import TopicPartition
from kraftlog.transactions.transaction import OPEN, CoordinatorTransaction, StateRecord
from kraftlog.write.appended_batches import headers_of
from kraftlog.write.extracted_batches import Piece

_DECIDED = (PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT)


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
    """A committed offset of a group that is another one in the restored cluster, or none.

    Attributes
    ----------
    group : str
    topic, partition : str, int
        In the source.
    offset : int
        That the group had committed.
    new_topic : str or None
        None if the topic is not restored.
    new_offset : int or None
    """

    group: str
    topic: str
    partition: int
    offset: int
    new_topic: str | None = None
    new_offset: int | None = None


def ended(state: TransactionState) -> list[TransactionState]:
    """Return the states by which a transactional id comes to rest; none if it is at rest.

    Parameters
    ----------
    state : TransactionState
        At the cut, without decisions of transactions that are open there.

    Examples
    --------
    >>> from kraftlog.backup.restored_coordinators import ended
    >>> from kraftlog.log_store.transaction_state import ONGOING, PREPARE_COMMIT, TransactionState
    >>> ongoing = TransactionState("etl", 7, 3, 60_000, ONGOING)
    >>> [(one.status_name, one.producer_epoch) for one in ended(ongoing)]
    [('PrepareAbort', 4), ('CompleteAbort', 4)]
    >>> prepared = TransactionState("etl", 7, 3, 60_000, PREPARE_COMMIT)
    >>> [(one.status_name, one.producer_epoch) for one in ended(prepared)]
    [('CompleteCommit', 3)]
    """
    if not state.is_pending:
        return []
    states = []
    if state.is_ongoing:
        epoch = min(state.producer_epoch + 1, LAST_EPOCH)
        states.append(replace(state, status=PREPARE_ABORT, producer_epoch=epoch))
    last = states[-1] if states else state
    return [*states, transition(state.transactional_id, last, Complete(state.last_update_timestamp))]


def decisions_after(
    partitions: Iterable[Sequence[Segment]], known: Iterable[CoordinatorTransaction], read: Pass
) -> dict[str, int]:
    """Return when transactions were decided that are open where partitions are cut, by transactional id.

    Parameters
    ----------
    partitions : iterable of sequence of Segment
        Those in which transactions are open at the cut.
    known : iterable of CoordinatorTransaction
        From ``__transaction_state``.
    read : Pass
    """
    logs = TransactionsOfLog()
    for group in partitions:
        logs.read(list(group), read)
    decided: dict[str, int] = {}
    for some in logs.transactions(known):
        for one in some:
            is_open = any(part.state == OPEN for part in one.parts)
            if is_open and one.known is not None and one.known.decision is not None:
                of = one.known.transactional_id
                decided[of] = min(decided.get(of, one.known.decided_at), one.known.decided_at)
    return decided


@dataclass
class LaterRecords:
    """Records of a partition of ``__transaction_state`` that lie after the cut, though not by their offsets.

    Attributes
    ----------
    offsets : set of int
    before : dict
        Other records of the same transactional ids, with their offsets.
    """

    offsets: set[int] = field(default_factory=set)
    before: dict[str, list[tuple[int, StateRecord]]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, files: Discovery, partition: TopicPartition, decided: Mapping[str, int], read: Pass) -> LaterRecords:
        """Return those from a decision on.

        Parameters
        ----------
        files : Discovery
        partition : TopicPartition
        decided : mapping of str to int
            When transactional ids decided a transaction, in milliseconds.
        read : Pass
        """
        later, is_after = cls(), set[str]()

        def see(of: TopicPartition, offset: int, record: StateRecord) -> None:
            time = decided.get(record.transactional_id)
            if of != partition or time is None:
                return
            if record.status in _DECIDED and record.last_update >= time:
                is_after.add(record.transactional_id)
            if record.transactional_id in is_after:
                later.offsets.add(offset)
            else:
                later.before[record.transactional_id].append((offset, record))

        if decided:
            coordinator_transactions(files, read, see)
        return later

    def states(
        self, segments: Sequence[Segment], decided: Collection[str], end_offset: int, faults: list[Fault]
    ) -> list[TransactionState]:
        """Return the last readable state of each transactional id before an offset, without later records."""
        states = [one for one in transaction_states(list(segments), faults) if one.transactional_id not in decided]
        for records in self.before.values():
            last = [record for offset, record in records if offset < end_offset][-1:]
            states += [_state_of(record) for record in last if record.status is not None]
        return states


def _state_of(record: StateRecord) -> TransactionState:
    assert record.status is not None
    return TransactionState(
        record.transactional_id,
        record.producer_id,
        record.producer_epoch,
        record.timeout_ms,
        record.status,
        record.partitions,
        record.start,
        record.last_update,
        record.previous_producer_id,
        transaction_version=record.version,
    )


def without_offsets(pieces: Iterable[Piece], offsets: Collection[int]) -> Iterator[Piece]:
    """Return pieces without the records at some offsets."""
    left_out = np.fromiter(offsets, np.int64, len(offsets))
    for piece in pieces:
        headers = headers_of(memoryview(piece.data))
        lasts = last_offsets(headers)
        if not len(left_out) or not ((left_out >= headers["base_offset"][0]) & (left_out <= lasts[-1])).any():
            yield piece
            continue
        for start, stop in zip(headers["position"].tolist(), ends(headers).tolist(), strict=True):
            batch = bytes(memoryview(piece.data)[start:stop])
            rows = decode(batch, columns=["offset"], include_control=True).to_table()["offset"].to_numpy()
            keeps = ~np.isin(rows, left_out)
            if keeps.all():
                yield replace(piece, base_offset=int(rows[0]), data=batch, records=len(rows))
            elif keeps.any():
                data = filtered_batch(batch, keeps, None, decompressor(ReadOptions.max_decompressed_bytes), None)
                kept = int(keeps.sum())
                yield replace(piece, base_offset=int(rows[0]), data=data, records=kept, is_copied=False)


def transaction_rows(
    states: Iterable[TransactionState],
    producer_epochs: Mapping[int, int],
    transaction_version: int,
    done: list[EndedTransaction],
) -> Iterator[pa.RecordBatch]:
    """Return the records to append to a partition of ``__transaction_state``: columns key and value.

    Parameters
    ----------
    states : iterable of TransactionState
        As in ``ended``.
    producer_epochs : mapping of int to int
        The largest epoch of each producer in a partition.
    transaction_version : int
    done : list of EndedTransaction
    """
    for state in states:
        after = ended(state)
        last = after[-1] if after else state
        least_epoch = producer_epochs.get(last.producer_id, last.producer_epoch)
        if last.producer_epoch < least_epoch:
            after.append(replace(last, status=EMPTY, producer_epoch=least_epoch))
        if after:
            names = state.status_name, after[-1].status_name
            done.append(EndedTransaction(state.transactional_id, state.producer_id, *names))
        for one in after:
            record = transaction_record(one, transaction_version)
            columns = {"key": pa.array([record.key], pa.binary()), "value": pa.array([record.value], pa.binary())}
            yield pa.record_batch(columns)


def offset_rows(
    committed: Iterable[Mapping[str, Any]],
    new_names: Mapping[str, str | None],
    ends: Mapping[TopicPartition, int],
    timestamp_ms: int,
    done: list[MovedOffset],
) -> Iterator[pa.RecordBatch]:
    """Return the records to append to a partition of ``__consumer_offsets``: columns key and value.

    Offsets of topics that the source does not know stay.

    Parameters
    ----------
    committed : iterable of mapping
        Rows of the table ``offsets``.
    new_names : mapping of str to str or None
        Of the topics of the source, by their names there; None if a topic is not restored.
    ends : mapping of TopicPartition to int
        Where the partitions end, by their new names.
    timestamp_ms : int
    done : list of MovedOffset
    """
    for row in committed:
        topic, partition = row["topic"], row["partition"]
        if topic not in new_names or row["offset"] is None:
            continue
        new_topic = new_names[topic]
        if new_topic is None:
            done.append(MovedOffset(row["group"], topic, partition, row["offset"]))
            yield rows_of_records(tombstones(row["group"], [(topic, partition)]))
            continue
        end = ends.get(TopicPartition(new_topic, partition))
        offset = row["offset"] if end is None else min(row["offset"], end)
        if (new_topic, offset) == (topic, row["offset"]):
            continue
        done.append(MovedOffset(row["group"], topic, partition, row["offset"], new_topic, offset))
        epoch = row["leader_epoch"] if offset == row["offset"] and row["leader_epoch"] is not None else -1
        moved = OffsetAndMetadata(offset, row["metadata"] or "", epoch)
        yield rows_of_records(offset_records(row["group"], {(new_topic, partition): moved}, timestamp_ms))
        if new_topic != topic:
            yield rows_of_records(tombstones(row["group"], [(topic, partition)]))
