"""What a store refuses, by the names of Kafka's errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from kraftlog.errors import KraftlogError


class StoreError(KraftlogError):
    """A refusal of a store; nothing was written.

    Attributes
    ----------
    is_fatal : bool
        Whether the producer can do nothing more; else its transaction can be aborted, and the next one begun.
    """

    is_fatal = False


class UnknownTopicOrPartitionError(StoreError, kafka_error="UNKNOWN_TOPIC_OR_PARTITION"):
    """A topic or a partition that the store does not have."""


class InvalidTopicError(StoreError, kafka_error="INVALID_TOPIC_EXCEPTION"):
    """A name that no topic can have."""


class TopicExistsError(StoreError, kafka_error="TOPIC_ALREADY_EXISTS"):
    """A topic that the store has already."""


class InvalidPartitionsError(StoreError, kafka_error="INVALID_PARTITIONS"):
    """A number of partitions that no topic can have."""


class InvalidConfigError(StoreError, kafka_error="INVALID_CONFIG"):
    """A configuration that is unknown, or has a value that it cannot have."""


class CommitFailedError(StoreError):
    """Offsets of a consumer whose partitions may be another member's by now: see IllegalGenerationError.

    Kafka's consumer raises CommitFailedException. The next ``poll`` takes what is the consumer's then, from the offsets
    that its group has committed.
    """


class IllegalGenerationError(CommitFailedError, kafka_error="ILLEGAL_GENERATION"):
    """Offsets of an older generation: members of the group have come or gone."""


class UnknownMemberIdError(CommitFailedError, kafka_error="UNKNOWN_MEMBER_ID"):
    """Offsets that no member commits, of a group that has members."""


class OutOfOrderSequenceError(StoreError, kafka_error="OUT_OF_ORDER_SEQUENCE_NUMBER"):
    """A batch whose sequence does not follow that of the batch before."""

    is_fatal = True


class InvalidProducerEpochError(StoreError, kafka_error="INVALID_PRODUCER_EPOCH"):
    """A batch of an older epoch than its producer has in the partition."""


class InvalidTransactionError(StoreError, kafka_error="INVALID_TXN_STATE"):
    """Work that the state of the transaction does not allow."""


class InvalidProducerIdMappingError(StoreError, kafka_error="INVALID_PRODUCER_ID_MAPPING"):
    """A transactional id that has expired, or belongs to another producer id."""

    is_fatal = True


class InvalidTransactionTimeoutError(StoreError, kafka_error="INVALID_TRANSACTION_TIMEOUT"):
    """A timeout of transactions that the store does not allow."""

    is_fatal = True


class StorageError(StoreError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A store on which a write has failed; it must be opened again."""

    is_fatal = True


class LostRecordsError(StoreError):
    """Records that ``send`` took one by one, and that could not be written.

    All others are written. Kafka's producer tells it by the future of each record.

    Attributes
    ----------
    count : int
        How many there are, since the producer began.
    first : Exception
        What refused the first one.
    """

    def __init__(self, count: int, first: Exception) -> None:
        super().__init__(f"{count} records that were sent could not be written, of the first one: {first}")
        self.count = count
        self.first = self.__cause__ = first

    def __reduce__(self) -> tuple[type[LostRecordsError], tuple[int, Exception]]:
        return type(self), (self.count, self.first)


class ReusedTransactionalIdError(StoreError):
    """A transactional id of a stream with another checkpoint, whose batches have the numbers of committed ones."""

    is_fatal = True


class ForkedStoreError(StoreError):
    """A store that another process has opened, of which this one is a fork."""

    is_fatal = True


class ConcurrentModificationError(StoreError):
    """A consumer that another thread is using (Kafka: ConcurrentModificationException)."""


class ProducerFencedError(StoreError, kafka_error="PRODUCER_FENCED"):
    """A producer after which another one has begun with the same transactional id."""

    is_fatal = True


def storage_error(error: OSError) -> StorageError:
    """Return the error of a store for one of the disk; it says what to do where files run out."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StorageError(
            f"{error}: a store keeps the log files of up to open_files partitions open, and needs some more; lower "
            "open_files, or raise the limit of open files (ulimit -n)"
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return StorageError(f"{error}; meanwhile kraftlog.open reads the log directory, and writes nothing")
    return StorageError(str(error))


@contextmanager
def storage_errors() -> Iterator[None]:
    """Raise errors of the disk as those of a store."""
    try:
        yield
    except OSError as error:
        raise storage_error(error) from error
