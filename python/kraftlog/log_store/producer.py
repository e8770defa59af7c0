"""``Producer``: rows to partitions, with sequences, and in transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import Any, TypeAlias

import pyarrow as pa

from kraftlog.codec.encode import Encoder
from kraftlog.log_store.errors import InvalidTransactionError, StoreError
from kraftlog.log_store.group_members import GroupMetadata
from kraftlog.log_store.group_offsets import OffsetAndMetadata
from kraftlog.log_store.partition import BatchOptions
from kraftlog.log_store.parts import StoreParts
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.sent_rows import Sent, Waiting, arrow_batches, routed
from kraftlog.log_store.topics import check_not_internal
from kraftlog.log_store.transaction_state import NONE, TopicPartition
from kraftlog.transactions.producer_state import SEQUENCES

OffsetsToCommit: TypeAlias = Mapping[TopicPartition, "int | OffsetAndMetadata"]


class Producer:
    """Writes to the topics of a store. ``LogStore.producer`` makes it; it is for one thread at a time.

    What ``send`` is given is in the log at the latest after ``flush``, which waits for the disk. In a transaction it
    counts when ``commit_transaction`` returns.

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
        self._waiting = Waiting()
        self._spread = 0
        self._written: set[TopicPartition] = set()  # since the last flush
        self._is_in_transaction = self._is_closed = False
        self._failure: StoreError | None = None
        self._abort_needed: BaseException | None = None
        Encoder(**asdict(options))  # refuses options that are not what they should be
        self.init_transactions()

    def init_transactions(self) -> None:
        """Begin anew: with a transactional id other producers of it are fenced, and an open transaction is aborted.

        ``LogStore.producer`` has done it; a producer that was fenced takes its id back with it.
        """
        self._forget_waiting()
        self._sequences.clear()
        self._written.clear()
        self._is_in_transaction, self._failure, self._abort_needed = False, None, None
        if self.transactional_id is None:
            self._state = None
            self.producer_id, self.producer_epoch = self._store.new_producer_id(), 0
        else:
            self._state = self._store.transactions.init_producer_id(self.transactional_id, self._timeout_ms)
            self.producer_id, self.producer_epoch = self._state.producer_id, self._state.producer_epoch

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
            Columns value, and as there are key, headers, timestamp and partition. A row without a partition goes where
            Kafka's partitioner puts its key.
        key, value : bytes or str, optional
            Of one record, when there are no rows. Such records are written together.
        headers : list of (str, bytes), optional
        partition : int, optional
            Of all rows.
        timestamp_ms : int, optional
            By default the time at which it is written.

        Raises
        ------
        UnknownTopicOrPartitionError
            When the store has no such topic or partition.
        InvalidTransactionError
            With a transactional id, outside of a transaction, or in one of which a record could not be written: it can
            only be aborted.
        ProducerFencedError, InvalidProducerEpochError
            When another producer has begun with the id, or the transaction has timed out.
        RecordTooLargeError
            When a record does not fit a batch; rows of record batches before it are written.

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
        self._check_may_write()
        check_not_internal(topic)
        partitions = self._store.topic_of(topic).partitions
        if rows is None:
            self._waiting.add(topic, partitions, key, value, headers, partition, timestamp_ms)
            self._store.unwritten.add(self)
            if self._waiting.is_full:
                self._write_waiting()
            return
        if key is not None or value is not None or headers is not None or timestamp_ms is not None:
            raise ValueError("key, value, headers and timestamp_ms are of one record; rows have columns for them")
        self._write_waiting()
        with self._noted():
            for batch in arrow_batches(rows):
                self._write(topic, batch, partitions, partition)

    def flush(self) -> None:
        """Wait until all that was sent is on disk; in a transaction that happens with its commit."""
        self._check_may_write(outside=True)
        self._write_waiting()
        if not self._is_in_transaction:
            for key in sorted(self._written):
                self._store.partition_of(key).sync()
            self._written.clear()

    def begin_transaction(self) -> None:
        """Begin a transaction; nothing is written before its first record.

        Raises
        ------
        InvalidTransactionError
            Without a transactional id, or inside of a transaction.
        """
        self._check_may_write(outside=True)
        if self.transactional_id is None:
            raise InvalidTransactionError("a producer without a transactional id has no transactions")
        if self._is_in_transaction:
            raise InvalidTransactionError(f"{self._name()} is inside of a transaction")
        self._is_in_transaction = True

    def commit_transaction(self) -> None:
        """Commit: all that was sent since the beginning counts, in all partitions, or nothing of it does.

        Raises
        ------
        ProducerFencedError
            When another producer has begun with the id; nothing counts then.
        StorageError
            When the disk fails. Whether the transaction counts is known when the store has been opened again.
        """
        self._check_in_transaction()
        self._check_complete()
        self._write_waiting()
        self._end(is_commit=True)

    def abort_transaction(self) -> None:
        """Abort: nothing that was sent since the beginning counts."""
        self._check_in_transaction()
        self._forget_waiting()
        self._end(is_commit=False)

    @contextmanager
    def transaction(self) -> Iterator[Producer]:
        """Commit at the end of a ``with`` block, and abort when it raises, or cannot be committed."""
        self.begin_transaction()
        try:
            yield self
            if self._is_in_transaction:
                self.commit_transaction()
        except BaseException:
            if self._is_in_transaction and self._failure is None:
                self.abort_transaction()
            raise

    def send_offsets_to_transaction(self, offsets: OffsetsToCommit, group: str | GroupMetadata) -> None:
        """Commit offsets of a group together with the transaction.

        Parameters
        ----------
        offsets : mapping of (str, int) to int or OffsetAndMetadata
            Of the record that is read next, by partition; ``Consumer.position`` returns them.
        group : str or GroupMetadata
            ``Consumer.group_metadata`` returns who commits. By a name alone only the transactional id fences.

        Raises
        ------
        IllegalGenerationError, UnknownMemberIdError
            When the partitions may be another member's by now; the transaction can only be aborted.
        """
        self._check_in_transaction()
        if not offsets:
            return
        member = group if isinstance(group, GroupMetadata) else GroupMetadata(group)
        key = self._store.groups.partition_for(member.group)
        self._store.partition_of(key)  # it is there before a transaction names it
        with self._noted():
            self._add({key})
            stamp = Stamp(self.producer_id, self.producer_epoch, NONE, is_transactional=True)
            self._store.groups.commit_in_transaction(member, with_metadata(offsets), stamp)

    def close(self) -> None:
        """Flush, or abort an open transaction; a second time does nothing."""
        if self._is_closed:
            return
        try:
            if self._failure is None and self._is_in_transaction:
                self.abort_transaction()
            elif self._failure is None:
                self.flush()
        finally:
            self._is_closed = True

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write_unwritten(self) -> None:
        """Write what waits, when the store is closed; a transaction is aborted then, with what waits for it."""
        if self._is_in_transaction:
            self._forget_waiting()
        else:
            self._write_waiting()

    def _forget_waiting(self) -> None:
        self._waiting.clear()
        self._store.unwritten.discard(self)

    def _write_waiting(self) -> None:
        self._store.unwritten.discard(self)
        with self._noted():
            for topic, rows in self._waiting.take():
                self._write(topic, rows, self._store.topic_of(topic).partitions, None)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note what fails: the transaction lacks records then, and a producer that is fenced writes no more."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, StoreError) and error.is_fatal:
                self._failure = error
            if self._is_in_transaction:
                self._abort_needed = error
            raise

    def _write(self, topic: str, rows: pa.RecordBatch, partitions: int, partition: int | None) -> None:
        self._spread += 1
        parts = list(routed(topic, rows, partitions, partition, self._spread))
        keys = {(topic, number) for number, _ in parts}
        if self._is_in_transaction:
            self._add(keys)
        now = self._store.clock()
        for number, part in parts:
            key = topic, number
            sequence = self._sequences.get(key, 0)
            stamp = Stamp(self.producer_id, self.producer_epoch, sequence, is_transactional=self._is_in_transaction)
            self._written.add(key)
            self._store.partition_of(key).append_rows(part, stamp, self._options, now)
            self._sequences[key] = (sequence + part.num_rows) % SEQUENCES

    def _add(self, keys: set[TopicPartition]) -> None:
        """Take partitions into the transaction, before anything of it is written to them."""
        assert self._state is not None
        self._state = self._store.transactions.add_partitions(self._state, frozenset(keys))

    def _end(self, *, is_commit: bool) -> None:
        assert self._state is not None
        if self._state.is_ongoing:  # else nothing was written
            with self._noted():
                self._state = self._store.transactions.end(self._state, is_commit=is_commit)
            if (self._state.producer_id, self._state.producer_epoch) != (self.producer_id, self.producer_epoch):
                self._sequences.clear()
            self.producer_id, self.producer_epoch = self._state.producer_id, self._state.producer_epoch
        self._is_in_transaction, self._abort_needed = False, None
        self._written.clear()

    def _check_may_write(self, *, outside: bool = False) -> None:
        if self._is_closed:
            raise ValueError(f"{self._name()} is closed")
        if self._failure is not None:
            raise self._failure
        if not outside:
            self._check_complete()
        if self.transactional_id is not None and not self._is_in_transaction and not outside:
            raise InvalidTransactionError(
                f"{self._name()} writes inside of transactions; begin_transaction comes first"
            )

    def _check_complete(self) -> None:
        if self._abort_needed is not None:
            raise InvalidTransactionError(
                f"{self._name()}: a part of the transaction could not be written, it can only be aborted: "
                f"{self._abort_needed}"
            )

    def _check_in_transaction(self) -> None:
        self._check_may_write(outside=True)
        if not self._is_in_transaction:
            raise InvalidTransactionError(f"{self._name()} is in no transaction")

    def _name(self) -> str:
        return "the producer" if self.transactional_id is None else f"transactional id {self.transactional_id!r}"


def with_metadata(offsets: Mapping[TopicPartition, Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets with empty metadata where they are numbers."""
    return {
        key: each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each) for key, each in offsets.items()
    }
