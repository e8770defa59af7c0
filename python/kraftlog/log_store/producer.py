"""``Producer``: rows to partitions, with sequences, and in transactions."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, TypeAlias

import pyarrow as pa

from kraftlog.codec.encode import Encoder
from kraftlog.errors import RecordError
from kraftlog.log_store.errors import (
    InvalidTransactionError,
    LostRecordsError,
    StoreError,
    UnknownTopicOrPartitionError,
)
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.partition import BatchOptions
from kraftlog.log_store.parts import StoreParts
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.sent_rows import Sent, Waiting, arrow_batches, routed
from kraftlog.log_store.topics import check_not_internal
from kraftlog.log_store.transaction_state import NONE, TopicPartition, TransactionState
from kraftlog.transactions.producer_state import SEQUENCES

OffsetsToCommit: TypeAlias = Mapping[TopicPartition, "int | OffsetAndMetadata"]


@dataclass(slots=True)
class _Piece:
    """Rows of one partition that wait to be written.

    Attributes
    ----------
    sequence : int
        Sequence of its first record; -1 until the first attempt to write it. With it the partition detects duplicates.
    """

    key: TopicPartition
    rows: pa.RecordBatch
    sequence: int = NONE


class Producer:
    """Writes to the topics of a store. ``LogStore.producer`` makes it; it is thread-safe, as Kafka's is.

    Any method may raise an exception such as KeyboardInterrupt. The interrupted step is done or not; records that were
    sent before stay queued. The transaction can then only be aborted, except after the decision to commit: then only
    ``commit_transaction`` can be called again, as with Kafka's producer.

    Rows of ``send`` are in the log after ``flush`` at the latest, which waits for the disk. In a transaction they count
    once ``commit_transaction`` returns.

    Attributes
    ----------
    transactional_id : str or None
    producer_id, producer_epoch : int
        As in the batch header.
    """

    def __init__(
        self, store: StoreParts, transactional_id: str | None, transaction_timeout_ms: int, options: BatchOptions
    ) -> None:
        self.transactional_id = transactional_id
        self._store = store
        self._timeout_ms = transaction_timeout_ms
        self._options = options
        self._sequences: dict[TopicPartition, int] = {}
        self._lock = threading.RLock()
        self._waiting = Waiting()
        self._pieces: deque[_Piece] = deque()  # rows taken from the queue, to be written
        self._spread = 0
        self._written: set[TopicPartition] = set()  # since the last flush
        self._is_in_transaction = self._is_closed = False
        self._failure: StoreError | None = None
        self._abort_needed: BaseException | None = None
        self._lost: LostRecordsError | None = None
        Encoder(**asdict(options))  # raises for invalid options
        self.init_transactions()

    def init_transactions(self) -> None:
        """Start over: with a transactional id, fence its other producers and abort an open transaction.

        ``LogStore.producer`` calls it; a fenced producer can call it to take its id back.
        """
        self._store.owner.check()
        with self._lock:
            if self.transactional_id is None:
                state, producer_id, producer_epoch = None, self._store.new_producer_id(), 0
            else:
                state = self._store.transactions.init_producer_id(self.transactional_id, self._timeout_ms)
                producer_id, producer_epoch = state.producer_id, state.producer_epoch
            self._forget_waiting()
            self._sequences.clear()
            self._written.clear()
            self.producer_id, self.producer_epoch, self._state = producer_id, producer_epoch, state
            self._is_in_transaction, self._failure, self._abort_needed, self._lost = False, None, None, None

    def send(
        self,
        topic: str,
        rows: Sent | None = None,
        *,
        key: bytes | str | None = None,
        value: bytes | str | None = None,
        headers: list[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Write rows of Arrow, or one record.

        Parameters
        ----------
        topic : str
        rows : pyarrow.RecordBatch, pyarrow.Table, Stream or any Arrow stream, optional
            Column value, and optionally key, headers, timestamp and partition. Kafka's partitioner places a row without
            a partition by its key.
        key, value : bytes or str, optional
            Key and value of one record, instead of rows. Such records are written together.
        headers : list of (str, bytes), optional
        partition : int, optional
            Partition of all rows.
        timestamp_ms : int, optional
            By default the time of the write.

        Raises
        ------
        UnknownTopicOrPartitionError
            When the store has no such topic or partition.
        InvalidTransactionError
            With a transactional id, outside of a transaction, or in one that failed to write a record: it can only be
            aborted.
        ProducerFencedError, InvalidProducerEpochError
            When another producer has taken the id, or the transaction has timed out.
        RecordTooLargeError
            When a record does not fit a batch; rows of earlier record batches are written. For single records, which
            are written together, ``flush`` reports it.

        Examples
        --------
        >>> import tempfile, kraftlog
        >>> with tempfile.TemporaryDirectory() as path, kraftlog.LogStore(path) as store:
        ...     store.create_topic("orders")
        ...     producer = store.producer()
        ...     producer.send("orders", key="a", value="one")
        ...     producer.flush()
        ...     kraftlog.open(path, topics=["orders"]).records(["value"]).to_table()["value"].to_pylist()
        [b'one']
        """
        self._store.owner.check()
        with self._lock:
            self._check_may_write()
            check_not_internal(topic)
            partitions = self._store.topic_of(topic).partitions
            if rows is None:
                self._store.unwritten.add(self)
                self._waiting.add(topic, partitions, key, value, headers, partition, timestamp_ms)
                if self._waiting.is_full:
                    self._write_waiting()
                return
            if key is not None or value is not None or headers is not None or timestamp_ms is not None:
                raise ValueError("rows cannot be combined with key, value, headers or timestamp_ms: use columns")
            self._write_waiting()
            with self._noted():
                for batch in arrow_batches(rows):
                    for piece in self._routed(topic, batch, partitions, partition):
                        self._write(piece)

    def flush(self) -> None:
        """Wait until everything sent is on disk; in a transaction its commit does this.

        Raises
        ------
        LostRecordsError
            When single records could not be written, now or since the producer began; all others are on disk.
        """
        self._store.owner.check()
        with self._lock:
            self._check_may_write(outside=True)
            self._write_waiting()
            if not self._is_in_transaction:
                for key in sorted(self._written):
                    with suppress(UnknownTopicOrPartitionError):  # deleted since
                        self._store.partition_of(key).sync()
                self._written.clear()
            self._check_lost()

    def begin_transaction(self) -> None:
        """Begin a transaction; nothing is written before its first record.

        Raises
        ------
        InvalidTransactionError
            Without a transactional id, or inside a transaction.
        """
        self._store.owner.check()
        with self._lock:
            self._check_may_write(outside=True)
            if self.transactional_id is None:
                raise InvalidTransactionError("transactions require a transactional id")
            if self._is_in_transaction:
                raise InvalidTransactionError(f"{self._name()} is already in a transaction")
            self._is_in_transaction = True

    def commit_transaction(self) -> None:
        """Commit: either everything sent since the beginning counts, in all partitions, or nothing does.

        After an exception such as KeyboardInterrupt it can be called again; once it returns, the transaction counts,
        once. Kafka's producer has the same rule for InterruptException and TimeoutException.

        Raises
        ------
        ProducerFencedError
            When another producer has taken the id; nothing counts then.
        StorageError
            When the disk fails. Reopening the store decides whether the transaction counts.
        """
        self._store.owner.check()
        with self._lock:
            self._check_in_transaction()
            if not self._is_decided():
                self._check_complete()
                self._write_waiting()
            self._end(is_commit=True)

    def abort_transaction(self) -> None:
        """Abort: nothing that was sent since the beginning counts.

        Raises
        ------
        InvalidTransactionError
            When its commit was interrupted after the decision: then only ``commit_transaction`` can be called again.
        """
        self._store.owner.check()
        with self._lock:
            self._check_in_transaction()
            if not self._is_decided():
                self._abort_needed = self._abort_needed or InvalidTransactionError("its abort has begun")
                self._forget_waiting()
            self._end(is_commit=False)

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Commit at the end of a ``with`` block; abort when the block or the commit raises.

        An interruption after the decision to commit aborts nothing: ``commit_transaction`` can be called again.
        """
        try:
            self.begin_transaction()
            yield self
            if self._is_in_transaction:
                self.commit_transaction()
        except BaseException:
            if not self._store.owner.is_here:
                raise
            with self._lock:
                if self._is_in_transaction and self._failure is None and not self._is_decided():
                    self.abort_transaction()
            raise

    def send_offsets_to_transaction(self, offsets: OffsetsToCommit, group: str | GroupMetadata) -> None:
        """Commit offsets of a group together with the transaction.

        Parameters
        ----------
        offsets : mapping of (str, int) to int or OffsetAndMetadata
            Offset of the next record to read, by partition; ``Consumer.position`` returns them.
        group : str or GroupMetadata
            The committer, from ``Consumer.group_metadata``. With only a name, only the transactional id fences.

        Raises
        ------
        IllegalGenerationError, UnknownMemberIdError
            When another member may have the partitions now; the transaction can only be aborted.
        """
        self._store.owner.check()
        with self._lock:
            self._check_in_transaction()
            if not offsets:
                return
            member = group if isinstance(group, GroupMetadata) else GroupMetadata(group)
            key = self._store.groups.partition_for(member.group)
            self._store.partition_of(key)  # the partition exists before a transaction names it
            with self._noted():
                self._add({key})
                stamp = Stamp(self.producer_id, self.producer_epoch, NONE, is_transactional=True)
                self._store.groups.commit_in_transaction(member, with_metadata(offsets), stamp)

    def close(self) -> None:
        """Flush, or abort an open transaction; a second call does nothing.

        A transaction whose commit was interrupted after the decision is committed.
        """
        if not self._store.owner.is_here:
            return
        with self._lock:
            if self._is_closed:
                return
            try:
                if self._failure is None and self._is_in_transaction:
                    self._end_transaction()
                elif self._failure is None:
                    self.flush()
            except Exception:
                self._is_closed = True
                raise
            self._is_closed = True  # otherwise, such as after Ctrl-C, it can be closed again

    def _end_transaction(self) -> None:
        if self._is_decided():
            self.commit_transaction()
        else:
            self.abort_transaction()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write_unwritten(self) -> None:
        """Write queued records when the store is closed; an open transaction is aborted with its queued records."""
        with self._lock:
            if self._is_in_transaction:
                self._forget_waiting()
            else:
                self._write_waiting()
                self._check_lost()

    def _check_lost(self) -> None:
        if self._lost is not None:
            raise LostRecordsError(self._lost.count, self._lost.first)

    def _forget_waiting(self) -> None:
        self._waiting.clear()
        self._pieces.clear()
        self._store.unwritten.discard(self)

    def _write_waiting(self) -> None:
        """Write the queued single records; after an exception, those that are not in the log stay queued.

        Without a transaction only the failing record is lost; in a transaction nothing more is written.
        """
        if not self._pieces and self._waiting.is_empty:
            return
        with self._noted():
            try:
                self._take_waiting()
                while self._pieces:
                    self._write_or_lose(self._pieces[0])
            except (StoreError, RecordError, ValueError):  # a retry would fail again
                self._forget_waiting()
                raise
            self._store.unwritten.discard(self)

    def _take_waiting(self) -> None:
        """Split the queue into pieces by partition, in one step: an exception leaves it unchanged."""
        if self._waiting.is_empty:
            return
        pieces, lost = list[_Piece](), self._lost
        for topic, rows in self._waiting.batches():
            try:
                pieces += self._routed(topic, rows, self._store.topic_of(topic).partitions, None)
            except UnknownTopicOrPartitionError as error:  # deleted since
                if self._is_in_transaction:
                    raise
                lost = _more_lost(lost, rows.num_rows, error)
        self._pieces, self._waiting, self._lost = deque([*self._pieces, *pieces]), Waiting(), lost

    def _write_or_lose(self, piece: _Piece) -> None:
        """Write the first piece; if it fails, bisect it down to the record that is lost."""
        try:
            self._write(piece)
        except (StoreError, RecordError) as error:
            if self._is_in_transaction or (isinstance(error, StoreError) and error.is_fatal):
                raise
            rows, rest = piece.rows, list(self._pieces)[1:]
            if rows.num_rows == 1 or isinstance(error, UnknownTopicOrPartitionError):
                self._pieces, self._lost = deque(rest), _more_lost(self._lost, rows.num_rows, error)
            else:
                half = rows.num_rows // 2
                halves = [_Piece(piece.key, rows.slice(0, half)), _Piece(piece.key, rows.slice(half))]
                self._pieces = deque([*halves, *rest])
        else:
            self._pieces.popleft()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note an error: the transaction lacks records then, and a fenced producer writes no more."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, StoreError) and error.is_fatal:
                self._failure = error
            if self._is_in_transaction:
                self._abort_needed = error
            raise

    def _routed(self, topic: str, rows: pa.RecordBatch, partitions: int, partition: int | None) -> list[_Piece]:
        """Return the rows of each partition, and add the partitions to the transaction."""
        self._spread += 1
        pieces = [
            _Piece((topic, number), part) for number, part in routed(topic, rows, partitions, partition, self._spread)
        ]
        if self._is_in_transaction:
            self._add({piece.key for piece in pieces})
        return pieces

    def _write(self, piece: _Piece) -> None:
        key, partition = piece.key, self._store.partition_of(piece.key)
        if piece.sequence == NONE:  # after an interrupted append only the log has the right sequence
            otherwise = self._sequences.get(key, 0)
            piece.sequence = partition.next_sequence(self.producer_id, self.producer_epoch, otherwise)
        stamp = Stamp(self.producer_id, self.producer_epoch, piece.sequence, is_transactional=self._is_in_transaction)
        self._written.add(key)
        partition.append_rows(piece.rows, stamp, self._options, self._store.clock())
        self._sequences[key] = (piece.sequence + piece.rows.num_rows) % SEQUENCES

    def _add(self, keys: set[TopicPartition]) -> None:
        """Add partitions to the transaction before writing to them."""
        assert self._state is not None
        self._state = self._store.transactions.add_partitions(self._state, frozenset(keys))

    def _is_decided(self) -> bool:
        return self._is_in_transaction and self._state is not None and self._store.transactions.has_decided(self._state)

    def _end(self, *, is_commit: bool) -> None:
        assert self._state is not None
        state = self._store.transactions.state(self._state.transactional_id)
        if state is not None and state.is_ongoing and _producer(state) == _producer(self._state):
            self._state = state  # the interrupted call may have begun the transaction
        if self._state.is_ongoing:  # otherwise nothing was written
            with self._noted():
                ended = self._store.transactions.end(self._state, is_commit=is_commit)
            if _producer(ended) != (self.producer_id, self.producer_epoch):
                self._sequences.clear()
            self.producer_id, self.producer_epoch = ended.producer_id, ended.producer_epoch
            self._written.clear()
            self._state, self._is_in_transaction, self._abort_needed = ended, False, None  # no signal comes between
        else:
            self._is_in_transaction, self._abort_needed = False, None

    def _check_may_write(self, *, outside: bool = False) -> None:
        if self._is_closed:
            raise ValueError(f"{self._name()} is closed")
        if self._failure is not None:
            raise self._failure
        if not outside:
            self._check_complete()
        if self.transactional_id is not None and not self._is_in_transaction and not outside:
            raise InvalidTransactionError(f"{self._name()}: send requires a transaction; call begin_transaction first")

    def _check_complete(self) -> None:
        if self._abort_needed is not None:
            raise InvalidTransactionError(
                f"{self._name()}: a record of the transaction could not be written; it can only be aborted: "
                f"{self._abort_needed}"
            )

    def _check_in_transaction(self) -> None:
        self._check_may_write(outside=True)
        if not self._is_in_transaction:
            raise InvalidTransactionError(f"{self._name()} is not in a transaction")

    def _name(self) -> str:
        return "the producer" if self.transactional_id is None else f"transactional id {self.transactional_id!r}"


def _more_lost(lost: LostRecordsError | None, count: int, error: Exception) -> LostRecordsError:
    if lost is None:
        return LostRecordsError(count, error)
    return LostRecordsError(lost.count + count, lost.first)


def _producer(state: TransactionState) -> tuple[int, int]:
    return state.producer_id, state.producer_epoch


def with_metadata(offsets: Mapping[TopicPartition, Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets with empty metadata where they are numbers."""
    return {
        key: each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each) for key, each in offsets.items()
    }
