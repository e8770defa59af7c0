"""Errors of a store, under the names of Kafka's errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from kraftlog.errors import KraftlogError


class StoreError(KraftlogError):
    """A request that a store rejects; nothing was written.

    Attributes
    ----------
    is_fatal : bool
        Whether the producer is unusable; otherwise its transaction can be aborted, and the next one begun.
    """

    is_fatal = False


class UnknownTopicOrPartitionError(StoreError, kafka_error="UNKNOWN_TOPIC_OR_PARTITION"):
    """A topic or a partition that the store does not have."""


class OffsetOutOfRangeError(StoreError, kafka_error="OFFSET_OUT_OF_RANGE"):
    """An offset before the start or after the end of a partition."""


class FencedLeaderEpochError(StoreError, kafka_error="FENCED_LEADER_EPOCH"):
    """A request whose leader epoch is older than that of the partition (KIP-320)."""


class UnknownLeaderEpochError(StoreError, kafka_error="UNKNOWN_LEADER_EPOCH"):
    """A request whose leader epoch is newer than that of the partition (KIP-320)."""


class PolicyViolationError(StoreError, kafka_error="POLICY_VIOLATION"):
    """A request that the configuration of a topic forbids."""


class InvalidTopicError(StoreError, kafka_error="INVALID_TOPIC_EXCEPTION"):
    """An invalid name of a topic."""


class TopicExistsError(StoreError, kafka_error="TOPIC_ALREADY_EXISTS"):
    """A topic that the store has already."""


class InvalidPartitionsError(StoreError, kafka_error="INVALID_PARTITIONS"):
    """An invalid number of partitions."""


class InvalidConfigError(StoreError, kafka_error="INVALID_CONFIG"):
    """An unknown configuration, or an invalid value of one."""


class CommitFailedError(StoreError):
    """Offsets of a consumer whose partitions another member may have now: see IllegalGenerationError.

    Kafka's consumer raises CommitFailedException. The next ``poll`` takes the consumer's partitions, at the committed
    offsets of its group.
    """


class IllegalGenerationError(CommitFailedError, kafka_error="ILLEGAL_GENERATION"):
    """Offsets of an older generation: members have joined or left the group."""


class UnknownMemberIdError(CommitFailedError, kafka_error="UNKNOWN_MEMBER_ID"):
    """Offsets from a non-member, for a group that has members."""


class OutOfOrderSequenceError(StoreError, kafka_error="OUT_OF_ORDER_SEQUENCE_NUMBER"):
    """A batch whose sequence does not follow the previous batch."""

    is_fatal = True


class InvalidProducerEpochError(StoreError, kafka_error="INVALID_PRODUCER_EPOCH"):
    """A batch with an older epoch than the producer's in the partition."""


class TransactionCoordinatorFencedError(StoreError, kafka_error="TRANSACTION_COORDINATOR_FENCED"):
    """A marker of a coordinator with an older epoch than that of the producer's last marker in the partition."""


class InvalidTransactionError(StoreError, kafka_error="INVALID_TXN_STATE"):
    """An operation that the state of the transaction does not allow."""


class InvalidProducerIdMappingError(StoreError, kafka_error="INVALID_PRODUCER_ID_MAPPING"):
    """A transactional id that has expired, or belongs to another producer id."""

    is_fatal = True


class InvalidTransactionTimeoutError(StoreError, kafka_error="INVALID_TRANSACTION_TIMEOUT"):
    """A transaction timeout that the store does not allow."""

    is_fatal = True


class StorageError(StoreError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A store in which a write has failed; it must be reopened."""

    is_fatal = True


class LostRecordsError(StoreError):
    """Single records from ``send`` that could not be written.

    All others are written. Kafka's producer reports it in the future of each record.

    Attributes
    ----------
    count : int
        Number of such records since the producer began.
    first : Exception
        The error of the first one.
    """

    def __init__(self, count: int, first: Exception) -> None:
        super().__init__(f"{count} records that were sent could not be written; error of the first one: {first}")
        self.count = count
        self.first = self.__cause__ = first

    def __reduce__(self) -> tuple[type[LostRecordsError], tuple[int, Exception]]:
        return type(self), (self.count, self.first)


class ReusedTransactionalIdError(StoreError):
    """A transactional id under which a stream with another checkpoint has committed batches with the same numbers."""

    is_fatal = True


class ForkedStoreError(StoreError):
    """A store that the parent of this forked process has opened."""

    is_fatal = True


class ConcurrentModificationError(StoreError):
    """A consumer that another thread is using (Kafka: ConcurrentModificationException)."""


class ProducerFencedError(StoreError, kafka_error="PRODUCER_FENCED"):
    """A producer that a newer one with the same transactional id has fenced."""

    is_fatal = True


def storage_error(error: OSError) -> StorageError:
    """Return the store's error for an error of the disk, with advice when the limit of open files is reached."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StorageError(
            f"{error}: a store keeps log files of up to open_files partitions open, and needs a few others; lower "
            "open_files, or raise the limit of open files (ulimit -n)"
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return StorageError(f"{error}; kraftlog.open can still read the log directory, and writes nothing")
    return StorageError(str(error))


@contextmanager
def storage_errors() -> Iterator[None]:
    """Raise errors of the disk as errors of the store."""
    try:
        yield
    except OSError as error:
        raise storage_error(error) from error
