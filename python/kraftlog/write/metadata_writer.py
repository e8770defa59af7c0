"""Writes the metadata log of a KRaft controller: atomic batches, transactions (KIP-868), snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kraftlog._native.scanner import RECORD_BATCH_OVERHEAD
from kraftlog.codec.batch_encoder import BatchEncoder
from kraftlog.codec.metadata_version import metadata_version_level
from kraftlog.disk.disk import disk
from kraftlog.disk.lock import lock_log_directories
from kraftlog.disk.remote_path import PathLike, local_path
from kraftlog.errors import InvalidTransactionStateError
from kraftlog.layout.build_index import INDEX_INTERVAL_BYTES
from kraftlog.transactions.metadata_encoder import (
    DEFAULT_BATCH_BYTES,
    LARGEST_BATCH_BYTES,
    is_list_of_bytes,
    metadata_encoder,
)
from kraftlog.write.leadership import (
    check_may_lead,
    find_metadata_log_end,
    lead,
    next_epoch,
    write_partition_metadata,
)
from kraftlog.write.locked_directory import LockedLogDirectory
from kraftlog.write.log_options import FSYNC, LogOptions
from kraftlog.write.partition_log import PartitionLog
from kraftlog.write.recovery_points import RecoveryPoint

if TYPE_CHECKING:
    from kraftlog.transactions.metadata_transaction import Values
    from kraftlog.write.streamed_transaction import MetadataTransaction

SEGMENT_BYTES = 1 << 30
LARGEST_EPOCH = 2**31 - 1


def milliseconds_now() -> int:
    """Return the time in milliseconds, as in Kafka."""
    return time.time_ns() // 1_000_000


class MetadataLogWriter:
    """Appends to a metadata log, as its leader.

    Opening acquires Kafka's lock on the log directory, removes a torn tail of the last segment and rebuilds its index
    files. If the epoch is larger than the log's last one, the writer begins with a LEADER_CHANGE record, and then an
    Abort record with the reason "Controller failover" if the log ends within a transaction. Use a writer in one thread
    only.

    Parameters
    ----------
    directory : path
        Folder of the partition, such as ``kraft/__cluster_metadata-0``; created if missing.
    leader_epoch : int or None
        Not less than the log's last one; larger if the log ends within a transaction. None: one above those of the log
        and of its quorum.
    metadata_version : int or str, optional
        A level or a name; default: the newest. Below 3.6-IV1 a transaction has no markers and must fit in one batch.
    node_id : int
        Node id of the leader.
    voters : sequence of int
        Node ids of the quorum.
    max_batch_bytes : int
        Maximum size of a batch in bytes, including the header; at most 8 MiB.
    segment_bytes : int
        Size at which a segment is rolled.
    fsync : {"commit", "batch", "close"}
        When to sync: before ``append`` and the end of a transaction return, after each batch, or when a segment is
        closed.
    clock : callable, optional
        Returns the time of an append in milliseconds.
    index_interval_bytes : int
        Kafka's ``index.interval.bytes``.
    log_directory : LockedLogDirectory, optional
        The parent directory, if the caller holds its lock. By default it is locked until the writer is closed.

    Raises
    ------
    LogDirectoryLockedError
        When a broker or another writer has the log directory.
    CorruptRecordError
        When intact batches that may have been acknowledged follow damage.
    InvalidTransactionStateError
        When the log ends within a transaction that cannot be aborted.
    ValueError
        When an option is invalid, or the epoch is too small.

    Examples
    --------
    >>> import tempfile, kraftlog
    >>> no_op = bytes.fromhex("01140000")
    >>> with tempfile.TemporaryDirectory() as log_directory:
    ...     folder = Path(log_directory) / "__cluster_metadata-0"
    ...     with MetadataLogWriter(folder, leader_epoch=1) as writer:
    ...         with writer.transaction("two at once") as transaction:
    ...             transaction.append([no_op])
    ...             transaction.append([no_op])
    ...     kraftlog.open(folder).records(columns=["offset"]).to_table()["offset"].to_pylist()
    [1, 2, 3, 4]
    """

    def __init__(
        self,
        directory: PathLike,
        leader_epoch: int | None,
        *,
        metadata_version: int | str | None = None,
        node_id: int = 1,
        voters: Sequence[int] = (1,),
        max_batch_bytes: int = DEFAULT_BATCH_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        fsync: str = "commit",
        clock: Callable[[], int] | None = None,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        log_directory: LockedLogDirectory | None = None,
    ) -> None:
        if not RECORD_BATCH_OVERHEAD < max_batch_bytes <= LARGEST_BATCH_BYTES:
            least = RECORD_BATCH_OVERHEAD + 1
            raise ValueError(f"max_batch_bytes {max_batch_bytes} is not between {least} and {LARGEST_BATCH_BYTES}")
        if not max_batch_bytes <= segment_bytes < 2**31:
            raise ValueError(f"segment_bytes {segment_bytes} is not between max_batch_bytes and 2^31 - 1")
        if fsync not in FSYNC:
            raise ValueError(f"fsync {fsync!r} is not one of {', '.join(FSYNC)}")
        if leader_epoch is not None and not 0 <= leader_epoch <= LARGEST_EPOCH:
            raise ValueError(f"leader_epoch {leader_epoch} is not between 0 and {LARGEST_EPOCH}")
        if node_id not in voters:
            raise ValueError(f"node_id {node_id} is not one of the voters {', '.join(map(str, voters))}")
        level = metadata_version_level(metadata_version)
        self._folder = local_path(directory)
        self._level = level
        self._max_batch_bytes = max_batch_bytes
        self._clock = clock or milliseconds_now
        self._transaction: MetadataTransaction | None = None
        disk().make_folder(self._folder)
        self._lock = lock_log_directories([self._folder]) if log_directory is None else None
        self._log: PartitionLog | None = None
        try:
            recovery_point = RecoveryPoint(
                self._folder, keeps=False, file=log_directory.recovery_points if log_directory else None
            )
            end = find_metadata_log_end(self._folder, index_interval_bytes, recovery_point.offset)
            if leader_epoch is None:
                leader_epoch = next_epoch(end)
            self._epoch = leader_epoch
            check_may_lead(end, leader_epoch, level)
            write_partition_metadata(self._folder)
            self._log = PartitionLog(end.log, LogOptions(segment_bytes, fsync), recovery_point)
            now = self._clock()
            lead(self._log, leader_epoch, now, node_id, voters, is_in_transaction=end.is_in_transaction)
        except BaseException:
            self._release()
            raise

    @property
    def next_offset(self) -> int:
        """Offset of the next record; within a transaction, after its records so far."""
        return self._open_log().next_offset

    @property
    def failure(self) -> BaseException | None:
        """The reason why the writer accepts no more records; None while all writes succeed."""
        return None if self._log is None else self._log.failure

    def append(self, records: Values) -> int:
        """Append records as one atomic batch.

        Parameters
        ----------
        records : pyarrow.Array or pyarrow.ChunkedArray of binary, list of bytes, or iterable of these
            Serialized metadata records.

        Returns
        -------
        int
            Offset of the last record of the log.

        Raises
        ------
        RecordTooLargeError
            When the records do not fit in one batch; nothing is written.
        InvalidRecordError
            When one of the records is a transaction marker; nothing is written.
        InvalidTransactionStateError
            When a transaction is open; nothing is written.
        OSError
            When the write fails; the writer then accepts no more records.
        """
        log = self._log_outside_transaction("append")
        batch = self._max_batch_bytes, log.next_offset, self._epoch, self._clock()
        if is_list_of_bytes(records):
            plain = metadata_encoder(BatchEncoder, *batch, one_batch=True)
            plain.write_records(records)
            log.append(plain.finish(), commit=True)
        else:
            from kraftlog.codec.encode import Encoder
            from kraftlog.transactions.metadata_transaction import value_batches

            encoder = metadata_encoder(Encoder, *batch, one_batch=True)
            for rows in value_batches(records):
                encoder.write(rows)
            log.append(encoder.finish(), commit=True)
        return log.next_offset - 1

    def transaction(self, name: str | None = None) -> MetadataTransaction:
        """Begin a transaction, which ends with the ``with`` block; an exception aborts it.

        Parameters
        ----------
        name : str, optional
            At most 255 bytes of UTF-8; None differs from the empty name.

        Returns
        -------
        MetadataTransaction

        Raises
        ------
        InvalidTransactionStateError
            When a transaction is open.
        ValueError
            When the name is too long.
        """
        from kraftlog.transactions.metadata_transaction import TransactionEncoder
        from kraftlog.write.streamed_transaction import MetadataTransaction

        log = self._log_outside_transaction("a second transaction")
        packed = TransactionEncoder(
            name,
            max_batch_bytes=self._max_batch_bytes,
            base_offset=log.next_offset,
            partition_leader_epoch=self._epoch,
            timestamp_ms=self._clock(),
            metadata_version=self._level,
        )
        self._transaction = MetadataTransaction(log, packed, self._clock, self._forget_transaction)
        return self._transaction

    def write_snapshot(self, records: Values) -> Path:
        """Write a snapshot of the log up to the current end.

        Parameters
        ----------
        records : arrays of binary
            The state as serialized metadata records.

        Returns
        -------
        Path
            Path of the new file.

        Raises
        ------
        InvalidTransactionStateError
            When a transaction is open.
        FileExistsError
            When a snapshot of this offset exists.
        """
        from kraftlog.metadata_log.snapshot_writer import snapshot_path, write_snapshot

        log = self._log_outside_transaction("a snapshot")
        path = snapshot_path(self._folder, log.next_offset, self._epoch)
        write_snapshot(
            path,
            records,
            epoch=self._epoch,
            last_contained_log_timestamp=log.last_timestamp,
            timestamp_ms=self._clock(),
            max_batch_bytes=self._max_batch_bytes,
        )
        return path

    def close(self) -> None:
        """Abort an open transaction, complete the index files, release the lock; a second call does nothing."""
        try:
            if self._transaction is not None and self._log is not None and self._log.failure is None:
                self._transaction.cut_short()
        finally:
            self._release()

    def __enter__(self) -> MetadataLogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _release(self) -> None:
        log, self._log = self._log, None
        try:
            if log is not None:
                log.close()
        finally:
            if self._lock is not None:
                self._lock.close()

    def _open_log(self) -> PartitionLog:
        if self._log is None:
            raise ValueError("the writer is closed")
        return self._log

    def _log_outside_transaction(self, what: str) -> PartitionLog:
        log = self._open_log()
        log.check()
        if self._transaction is not None:
            raise InvalidTransactionStateError(f"{what} is not possible while a transaction is open")
        return log

    def _forget_transaction(self) -> None:
        self._transaction = None
