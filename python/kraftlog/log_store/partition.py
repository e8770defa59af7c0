"""A partition of a store: its log, its producers, and the threads that append to it and wait for its disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kraftlog._native.scanner import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD
from kraftlog.codec.end_transaction_marker import marker_batch
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.waiting import Lock, about_to_wait
from kraftlog.errors import InvalidRecordError, RecordError, RecordTooLargeError
from kraftlog.layout.segment import Segment
from kraftlog.log_store.aborted_transactions import AbortedRow, AbortedTransactions
from kraftlog.log_store.appends import Appends
from kraftlog.log_store.errors import StorageError, UnknownTopicOrPartitionError, storage_errors
from kraftlog.log_store.open_files import OpenFiles
from kraftlog.log_store.placing import is_large, placed_bytes, placed_headers, write_headers
from kraftlog.log_store.produced_batch import ProducedBatch
from kraftlog.log_store.producer_entries import ProducerEntries, Stamp
from kraftlog.log_store.topics import Topic
from kraftlog.log_store.transaction_state import TopicPartition
from kraftlog.read.lineage import LeaderEpoch, Lineage
from kraftlog.read.ranges import Range
from kraftlog.transactions.producer_state import ProducerState
from kraftlog.types import Buffer
from kraftlog.write.appended_batches import largest_batch
from kraftlog.write.clean_end import clean_log_end
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import RecoveryPoint, RecoveryPointFile
from kraftlog.write.replaced_segments import finish_replacing

if TYPE_CHECKING:
    import pyarrow as pa

Value = TypeVar("Value")

PRODUCER_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms


@dataclass(frozen=True)
class BatchOptions:
    """How rows become record batches.

    Attributes
    ----------
    compression : str
    compression_level : int or None
    max_batch_bytes : int
        Maximum bytes of a batch before compression; a larger record is an error.
    """

    compression: str = "none"
    compression_level: int | None = None
    max_batch_bytes: int = 1 << 20


class LastSegment(NamedTuple):
    """The last segment of a partition.

    Attributes
    ----------
    base_offset : int
    place : (Segment, int) or None
        The segment, as far as it is written, and the byte from which to read; None for an offset in earlier segments.
    aborted : list of (int, int, int)
        Producer id, first offset and marker's offset of the aborted transactions whose markers are in it.
    """

    base_offset: int
    place: tuple[Segment, int] | None
    aborted: list[AbortedRow]


class Partition:
    """A partition that is open for writing; its methods are thread-safe.

    Parameters
    ----------
    key : (str, int)
    folder : Path
        The folder, which exists.
    topic : Topic
    options : LogOptions
    recovery_points : RecoveryPointFile
    open_files : OpenFiles
    log_start_offset : int
        From ``log-start-offset-checkpoint``.
    appends : Appends
        Receives each append.
    was_clean : bool
        Whether the log directory was closed cleanly, so that index and snapshot files are complete.

    Attributes
    ----------
    log_start_offset : int
        Offset of the first record that a consumer may read.
    changes : int
        Number of times that the removal or replacement of segments has begun: files listed before may be gone.
    """

    def __init__(
        self,
        key: TopicPartition,
        folder: Path,
        topic: Topic,
        options: LogOptions,
        recovery_points: RecoveryPointFile,
        open_files: OpenFiles,
        log_start_offset: int = 0,
        *,
        appends: Appends,
        was_clean: bool = False,
    ) -> None:
        self.key = key
        self.folder = folder
        self.topic = topic
        self.leader_epoch = topic.leader_epochs[key[1]]
        self._open_files = open_files
        self._appends = appends
        self._options = options
        self._recovery_points = recovery_points
        self._syncs = options.fsync != "close"
        finish_replacing(folder)
        self._housekeeping = threading.Lock()
        self._is_housekeeping = False
        self._replacement = Lock()  # while files of closed segments are removed or replaced
        self.changes = 0
        self.log_start_offset = log_start_offset
        self._lock = Lock()
        self._one_waits = threading.Lock()
        self._is_closed = self._is_halfway = self._is_deleted = False
        self._open_log(was_clean=was_clean)

    def _open_log(self, *, was_clean: bool) -> None:
        """Open the log, and read its producers and transactions."""
        point = RecoveryPoint(self.folder, file=self._recovery_points)
        end = clean_log_end(self.folder, point.offset) if was_clean else None
        if end is None:
            end = find_log_end(self.folder, recovery_point=point.offset)
        self._aborted = AbortedTransactions(end.checked[-1].txnindex if end.checked else b"")
        first = (end.segments[0].base_offset or 0) if end.segments else end.start_offset
        self.log_start_offset = max(self.log_start_offset, first)
        self.producers = ProducerEntries(end.producers.states(), end.last_batches.by_epoch())
        self._log = PartitionLog(end, self._options, point)
        self._synced = self._log.next_offset

    @property
    def next_offset(self) -> int:
        """Offset of the next record: Kafka's log end offset."""
        log = self._log
        end = log.next_offset
        if not self._is_halfway and log is self._log:  # after the end: an append may be interrupted
            return end
        with self._lock:
            self._make_whole()
            return self._log.next_offset

    @property
    def last_base_offset(self) -> int:
        """Base offset of the last segment."""
        return self._log.last_base_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset of the first record whose transaction is open."""
        with self._lock:
            self._make_whole()
            unstable = self.producers.first_unstable_offset()
            return self.next_offset if unstable is None else unstable

    @property
    def lineage(self) -> Lineage:
        """The leader epochs of the log; the current one begins at the end if no batch has it, as for a new leader."""
        with self._lock:
            self._make_whole()
            epochs = [LeaderEpoch(*entry) for entry in self._log.epochs.entries()]
            end_offset = self._log.next_offset
        if not epochs or epochs[-1].epoch < self.leader_epoch:
            epochs.append(LeaderEpoch(self.leader_epoch, end_offset))
        return Lineage(tuple(epochs), end_offset).starting_at(self.log_start_offset)

    @property
    def has_failed(self) -> bool:
        """Whether a write has failed; the partition must be reopened."""
        return self._is_halfway or self._log.failure is not None

    @property
    def waits_for_disk(self) -> bool:
        """Whether ``sync`` waits; with the option fsync="close" it does not."""
        return self._syncs

    @property
    def is_synced(self) -> bool:
        """Whether everything appended is on disk; true for a deleted partition."""
        return self._is_deleted or self._synced >= self.next_offset

    def append_rows(
        self,
        rows: pa.RecordBatch,
        stamp: Stamp,
        options: BatchOptions,
        timestamp_ms: int,
        verify: Callable[[], None] | None = None,
    ) -> int:
        """Append rows; they are on disk after ``sync``.

        Parameters
        ----------
        rows : RecordBatch
        stamp : Stamp
        options : BatchOptions
        timestamp_ms : int
        verify : callable, optional
            As in ``append_batch``.

        Returns
        -------
        int
            The offset of the first record.

        Raises
        ------
        InvalidProducerEpochError, OutOfOrderSequenceError
            When the producer may not write this.
        RecordTooLargeError
            When a record does not fit a batch of ``max.message.bytes``.
        InvalidRecordError
            When a record of a compacted topic has no key.
        StorageError
            When the log can no longer be written.
        """
        if "compact" in self.topic.cleanup_policy:
            self._check_keys(rows, "-".join(map(str, self.key)))
        return self._append_of(
            stamp, rows.num_rows, lambda: self._encoded(rows, stamp, options, timestamp_ms), timestamp_ms, verify
        )

    def append_batch(self, batch: ProducedBatch, timestamp_ms: int, verify: Callable[[], None] | None = None) -> int:
        """Append the batch of a client as it is; it is on disk after ``sync``.

        Parameters
        ----------
        batch : ProducedBatch
        timestamp_ms : int
        verify : callable, optional
            Raises an error if the batch may not be appended now. A transaction in whose state this partition is has its
            marker still to come: no marker is appended during the call. Kafka has a ``VerificationGuard`` for this
            (KIP-890).

        Returns
        -------
        int
            The offset of the first record; the earlier one if the batch is already in the log.

        Raises
        ------
        InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTransactionError
            When the producer may not write this.
        StorageError
            When the log can no longer be written.
        """

        def placed() -> Buffer:
            if self._log.waits_to_append(batch.data.nbytes, self.leader_epoch):
                about_to_wait()  # before the memory of the request is changed, which is then checked again
            return batch.placed(self._log.next_offset, self.leader_epoch)

        return self._append_of(batch.stamp, batch.records_count, placed, timestamp_ms, verify)

    def _append_of(
        self,
        stamp: Stamp,
        records_count: int,
        batches: Callable[[], Buffer],
        timestamp_ms: int,
        verify: Callable[[], None] | None,
    ) -> int:
        """Append batches of a producer, unless they are already in the log; return their first offset."""
        where = "-".join(map(str, self.key))
        self._open_files.use(self)
        with self._lock:
            self._check_open()
            self._make_whole()
            if verify is not None:
                verify()
            duplicate = self.producers.check(stamp, records_count, where)
            if duplicate is not None:
                return duplicate.base_offset
            base_offset = self._log.next_offset
            data = batches()
            self._begin_step()
            self._append(data)
            self.producers.add(stamp, base_offset, self._log.next_offset - 1, timestamp_ms)
            self._expire(timestamp_ms)
            self._end_step()
            return base_offset

    def append_staged(self, path: Path, staged: Headers, stamp: Stamp, timestamp_ms: int) -> int:
        """Append a staged file: a large file is renamed to a segment, the batches of a small one are copied.

        Parameters
        ----------
        path : Path
        staged : structured array of HEADER_DTYPE
            Headers of its batches, as staged.
        stamp : Stamp
            Stamp of its first batch.
        timestamp_ms : int
            The current time.

        Returns
        -------
        int
            The offset of its first record.

        Raises
        ------
        RecordTooLargeError
            When a batch is larger than ``max.message.bytes``.
        StorageError
            When the log can no longer be written.
        """
        largest = int(staged["batch_length"].max()) + LOG_OVERHEAD
        if largest > self.topic.max_message_bytes:
            raise RecordTooLargeError(self._too_large(f"a batch of {largest} bytes, more than"))
        self._open_files.use(self)
        with self._lock:
            self._check_open()
            self._make_whole()
            count = int(last_offsets(staged)[-1]) + 1 - int(staged["base_offset"][0])
            duplicate = self.producers.check(stamp, count, "-".join(map(str, self.key)))
            if duplicate is not None:
                return duplicate.base_offset
            base_offset = self._log.next_offset
            headers = placed_headers(
                staged, base_offset=base_offset, stamp=stamp, partition_leader_epoch=self.leader_epoch
            )
            small = None if is_large(headers) else placed_bytes(disk().read_bytes(path), headers)
            self._begin_step()
            if small is None:
                write_headers(path, headers)
                with storage_errors():
                    self._log.adopt(path, headers)
            else:
                self._append(small)
            self.producers.add(stamp, base_offset, self._log.next_offset - 1, timestamp_ms)
            self._end_step()
            return base_offset

    def roll(self) -> int:
        """Begin a new segment, unless the last one is empty; return the offset at which it begins."""
        self._open_files.use(self)
        with self._lock, storage_errors():
            self._check_open()
            self._make_whole()
            self._begin_step()
            self._log.roll()
            self._end_step()
            return self._log.next_offset

    def delete_before(self, offset: int, producer_id: int) -> None:
        """Delete everything before a segment, and all producers except one, which wrote after it."""
        self._open_files.use(self)
        with self._lock, storage_errors():
            self._check_open()
            self._make_whole()
            self._log.delete_before(offset, producer_id)
            self.log_start_offset = max(self.log_start_offset, offset)
            self.producers.keep(producer_id)

    def append_records(self, encode: Callable[[int, int], Buffer]) -> None:
        """Append batches from a function of an offset and a leader epoch."""
        self._open_files.use(self)
        with self._lock:
            self._check_open()
            self._make_whole()
            batches = encode(self._log.next_offset, self.leader_epoch)
            self._begin_step()
            self._append(batches)
            self._end_step()

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        raises_epoch: bool,
        timestamp_ms: int,
        coordinator_epoch: int = 0,
        checks: bool = False,
    ) -> None:
        """Append the marker of a transaction unless it is there already; its epoch then fences the producer here.

        A partition whose topic is deleted needs none.

        Parameters
        ----------
        producer_id, producer_epoch : int
            Producer of the marker.
        is_commit : bool
        raises_epoch : bool
            Whether the marker's epoch is greater than that of the data, as with transaction version 2 (KIP-890): data
            with the marker's epoch then belong to the next transaction.
        timestamp_ms : int
        coordinator_epoch : int
            Epoch of the coordinator that decided it.
        checks : bool
            Whether stale epochs are errors: for markers that the store's coordinator has not decided.

        Raises
        ------
        InvalidProducerEpochError, TransactionCoordinatorFencedError
            When the producer or the coordinator has a newer epoch in the partition.
        """
        self._open_files.use(self)
        with self._lock:
            if self._is_deleted:
                return
            self._make_whole()
            if checks:
                self._check_open()
                where = "-".join(map(str, self.key))
                self.producers.check_marker(
                    producer_id, producer_epoch, coordinator_epoch, where, raises_epoch=raises_epoch
                )
            entry = self.producers.get(producer_id)
            if entry is not None and entry.has_marker(producer_epoch, raises_epoch=raises_epoch):
                return
            marker = marker_batch(
                "COMMIT" if is_commit else "ABORT",
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_offset=self._log.next_offset,
                partition_leader_epoch=self.leader_epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp_ms=timestamp_ms,
            )
            self._begin_step()
            if not is_commit and entry is not None and entry.is_in_transaction:
                self._aborted.add(producer_id, entry.transaction_start, self._log.next_offset)
            self._append(marker)
            self.producers.end(producer_id, producer_epoch, timestamp_ms, coordinator_epoch)
            self._expire(timestamp_ms)
            self._end_step()

    def tail(self, offset: int, end: int) -> Range | None:
        """Return the range of the last segment with offsets [offset, end), without aborted transactions.

        Returns
        -------
        Range or None
            None when the offset lies in an earlier segment.
        """
        with self._lock:
            self._make_whole()
            found = self._log.last_segment(offset)
            if found is None:
                return None
            segment, position = found
            return Range(
                segment, position, segment.size, transactions=self._aborted.view(segment.base_offset or 0, end)
            )

    def last_segment(self, offset: int) -> LastSegment:
        """Return the last segment, for a reader of an offset."""
        with self._lock:
            self._make_whole()
            base_offset = self._log.last_base_offset
            return LastSegment(base_offset, self._log.last_segment(offset), self._aborted.rows(base_offset))

    def sync(self) -> None:
        """Wait until everything appended before is on disk; concurrent callers share one sync.

        Raises
        ------
        StorageError
            When the disk fails; the partition must be reopened.
        """
        if not self._syncs:
            return
        end_offset = self.next_offset
        with self._one_waits:
            while not self._is_deleted:
                self._check_open()
                if self._synced >= end_offset:
                    return
                log = self._log
                with storage_errors():
                    end = log.sync(self._lock)
                with self._lock:
                    self._make_whole()
                    if log is self._log:  # the end may belong to an append that was undone
                        self._synced = end
                        return

    @contextmanager
    def housekeeping(self) -> Iterator[None]:
        """Let one thread at a time remove and replace closed segments."""
        with self._housekeeping:
            self._check_open()
            with storage_errors():
                self._finish_housekeeping()
                self._is_housekeeping = True
                yield
                self._is_housekeeping = False

    def _finish_housekeeping(self) -> None:
        """Finish a step that an exception such as KeyboardInterrupt has interrupted, as opening a log does."""
        if self._is_housekeeping:
            with self.replacing():
                finish_replacing(self.folder)
            self._is_housekeeping = False

    def producer_states(self) -> list[ProducerState]:
        """Return the producers as the log shows them."""
        with self._lock:
            self._make_whole()
            return self._log.producer_states()

    def take_topic(self, topic: Topic) -> None:
        """Take the topic with other configurations or more partitions."""
        with self._lock:
            self._make_whole()
            self.topic = topic
            self._options = replace(self._options, segment_bytes=topic.segment_bytes)
            self._log.segment_bytes = topic.segment_bytes

    @contextmanager
    def replacing(self) -> Iterator[None]:
        """Let readers of closed segments wait, and read again what they have begun to read."""
        with self._replacement:
            self.changes += 1
            yield

    def settled_changes(self) -> int:
        """Return ``changes`` while no segment is being replaced: files that are listed now stay until it changes."""
        with self._replacement:
            return self.changes

    def while_unchanged(self, read: Callable[[], Value]) -> Value:
        """Return what a function reads of segments, none of which was removed or replaced meanwhile.

        A name stands for another file once its segment was cleaned: bytes that were found in one are not in the other.

        Parameters
        ----------
        read : callable
            Is called again after a change.

        Raises
        ------
        RecordError, OSError
            Of a call during which nothing has changed.
        """
        while True:
            changes = self.changes
            try:
                value = read()
            except (OSError, RecordError):
                if changes == self.changes:
                    raise
            else:
                if changes == self.changes:
                    return value

    def move_log_start(self, offset: int) -> None:
        """Set the start offset of the log."""
        self.log_start_offset = max(self.log_start_offset, offset)
        self.changes += 1

    def rest(self) -> None:
        """Close the log file until the next append if all of it is on disk."""
        with suppress(StorageError):  # the next append or commit raises the error
            self.sync()
        with self._one_waits, self._lock:
            if not self._is_closed and not self._is_halfway:
                self._log.rest()

    def close(self) -> None:
        """Complete index and snapshot files."""
        self._open_files.forget(self)
        with self._housekeeping, self._one_waits, self._lock:
            if not self._is_closed:
                self._make_whole()
                self._finish_housekeeping()
            self._is_closed = True
            self._log.close()

    def abandon(self) -> None:
        """Close the files without completing them; the next opening does."""
        self._open_files.forget(self)
        with self._lock:
            self._is_closed = True
            self._log.abandon()

    def delete(self) -> None:
        """Close the files of a partition whose topic is deleted."""
        self._is_deleted = True
        with self._one_waits:  # a waiting sync would write a recovery point that a new topic inherits
            self.abandon()

    def next_sequence(self, producer_id: int, producer_epoch: int, otherwise: int) -> int:
        """Return the sequence of a producer's next batch; ``otherwise`` for an unknown producer."""
        with self._lock:
            self._make_whole()
            entry = self.producers.get(producer_id)
            return otherwise if entry is None else entry.next_sequence(producer_epoch)

    def _begin_step(self) -> None:
        """Begin an append; an exception undoes it, and nothing before it."""
        self._log.begin_append()
        self._is_halfway = True

    def _end_step(self) -> None:
        self._is_halfway = False
        self._appends.notify(self.key)

    def _make_whole(self) -> None:
        """Undo an append that an exception such as KeyboardInterrupt has interrupted; the lock is held.

        Log and state of the producers change in one step: ``_is_halfway`` says so from before the first byte until the
        producers have the batch. After an error of the disk, every call fails until the store is reopened.
        """
        if not self._is_halfway or isinstance(self._log.failure, OSError) or self._is_closed:
            return
        about_to_wait()
        with storage_errors():
            self._log.take_back()
            self._open_log(was_clean=False)
        self._is_halfway = False

    def _check_open(self) -> None:
        if self._is_deleted:
            raise UnknownTopicOrPartitionError(f"topic {self.key[0]!r} was deleted")
        if self._is_closed:
            raise StorageError(f"{self.folder}: the partition is closed")

    def _append(self, batches: Buffer) -> None:
        self._check_open()
        with storage_errors():
            self._log.append(batches, commit=False)

    @staticmethod
    def _check_keys(rows: pa.RecordBatch, where: str) -> None:
        if rows.num_rows and ("key" not in rows.schema.names or rows.column("key").null_count):
            raise InvalidRecordError(f"{where}: a record has no key, but the topic is compacted and would lose it")

    def _expire(self, now: int) -> None:
        """Drop producers that were idle for ``producer.id.expiration.ms``."""
        self._log.least_timestamp = now - PRODUCER_EXPIRATION_MS
        self.producers.expire(now - PRODUCER_EXPIRATION_MS)

    def _encoded(self, rows: pa.RecordBatch, stamp: Stamp, options: BatchOptions, timestamp_ms: int) -> Buffer:
        """Return batches for the end of the log; batches that exceed the topic's limit are split, as in Kafka."""
        from kraftlog.codec.encode import Encoder

        limit = max(self.topic.max_message_bytes, RECORD_BATCH_OVERHEAD + 1)
        for max_batch_bytes in (options.max_batch_bytes, min(limit, options.max_batch_bytes)):
            encoder = Encoder(
                compression=options.compression,
                compression_level=options.compression_level,
                max_batch_bytes=max_batch_bytes,
                base_offset=self._log.next_offset,
                partition_leader_epoch=self.leader_epoch,
                producer_id=stamp.producer_id,
                producer_epoch=stamp.producer_epoch,
                base_sequence=stamp.base_sequence,
                is_transactional=stamp.is_transactional,
                timestamp_ms=timestamp_ms,
            )
            try:
                encoder.write(rows)
            except RecordTooLargeError as error:
                if max_batch_bytes < options.max_batch_bytes:
                    raise RecordTooLargeError(self._too_large(f"{error}, which is")) from error
                raise
            batches: Buffer = encoder.finish()
            if options.max_batch_bytes <= limit or largest_batch(batches) <= limit:
                return batches
        raise RecordTooLargeError(self._too_large(f"a compressed batch of {largest_batch(batches)} bytes, more than"))

    def _too_large(self, what: str) -> str:
        return f"{'-'.join(map(str, self.key))}: {what} max.message.bytes of the topic (MESSAGE_TOO_LARGE)"
