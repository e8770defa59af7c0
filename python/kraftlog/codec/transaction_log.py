"""Records of ``__transaction_state``: what the coordinator knows of each transactional id.

Key: version int16, transactional_id. Value: version int16, then producer_id int64, producer_epoch int16, timeout int32,
status int8, partitions, last_update_timestamp int64, start_timestamp int64. Version 0 has plain strings and arrays
(lengths int16 and int32), version 1 compact ones and tagged fields at the end of each struct.
"""

from __future__ import annotations

from dataclasses import dataclass

from kraftlog.codec.cursor import Cursor
from kraftlog.errors import InvalidRecordError

TRANSACTION_LOG_KEY = 0
LAST_VALUE_VERSION = 1
STATUSES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


@dataclass(frozen=True)
class TransactionMetadata:
    """What the coordinator knows of a transactional id.

    Attributes
    ----------
    partitions : frozenset of tuple
        Topic and partition of those that the transaction has been in.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    status: str
    partitions: frozenset[tuple[str, int]]


def read_transactional_id(key: bytes | None) -> str | None:
    """Return the transactional id of a record's key; None for a key of a type that is not known.

    Raises
    ------
    InvalidRecordError
        When the key is null or ends early.
    """
    cursor = Cursor(key or b"", "key of a transaction log record")
    if cursor.number(">h") != TRANSACTION_LOG_KEY:
        return None
    return bytes(cursor.take(cursor.number(">h"))).decode("utf-8", "replace")


def read_transaction_metadata(transactional_id: str, value: bytes) -> TransactionMetadata:
    """Read a record's value.

    Raises
    ------
    InvalidRecordError
        When the value is of a version that is not known, or ends early.
    """
    cursor = Cursor(value, "value of a transaction log record")
    cursor.version = cursor.number(">h")
    if not 0 <= cursor.version <= LAST_VALUE_VERSION:
        raise InvalidRecordError(f"{cursor.what}: version {cursor.version} is not between 0 and {LAST_VALUE_VERSION}")
    producer_id, producer_epoch = cursor.number(">q"), cursor.number(">h")
    cursor.number(">i")  # timeout
    status = cursor.number(">b")
    partitions = frozenset(_partitions(cursor))
    cursor.take(16)  # timestamps
    name = STATUSES[status] if 0 <= status < len(STATUSES) else f"UNKNOWN({status})"
    return TransactionMetadata(transactional_id, producer_id, producer_epoch, name, partitions)


def _length(cursor: Cursor, plain: str) -> int:
    return cursor.uvarint() - 1 if cursor.version > 0 else cursor.number(plain)


def _count(cursor: Cursor) -> int:
    count = _length(cursor, ">i")  # -1 for null
    if count > cursor.left:
        raise cursor.fault(f"{count} elements, but {cursor.left} bytes left")
    return count


def _partitions(cursor: Cursor) -> list[tuple[str, int]]:
    found = []
    for _ in range(_count(cursor)):
        topic = bytes(cursor.take(_length(cursor, ">h"))).decode("utf-8", "replace")
        found += [(topic, cursor.number(">i")) for _ in range(_count(cursor))]
        if cursor.version > 0:
            cursor.tagged_fields()
    return found
