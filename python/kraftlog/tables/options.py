"""Options of tables: a ``TypedDict`` for each set of options, used by all interfaces.

A method of ``Log`` names its set (``**options: Unpack[BatchOptions]``, PEP 692), so that type checkers find misspelt
and unsupported options. Commands and Spark use ``Table.option_names``. All tables have the option ``strict``, which
raises at the first fault; its default depends on the results that a fault may change.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from kraftlog.types import IsolationLevel

if TYPE_CHECKING:
    from kraftlog.layout.discover import LogPaths

Moment = datetime | str | int


class LineOptions(TypedDict, total=False):
    """Options of tables that are read from one of several replicas of a partition.

    Attributes
    ----------
    heal : bool
        Read missing or damaged offsets of that replica from replicas that agree with it.
    """

    heal: bool


class OffsetBounds(TypedDict, total=False):
    """Options of tables whose rows have an offset.

    Attributes
    ----------
    start_offset, end_offset : int or None
        Offsets in [start_offset, end_offset), in each partition.
    """

    start_offset: int | None
    end_offset: int | None


class Bounds(OffsetBounds, total=False):
    """Options of tables whose rows also have a time.

    Attributes
    ----------
    start_timestamp, end_timestamp : datetime, str, int or None
        Timestamps in [start_timestamp, end_timestamp). Text is ISO 8601, or a time such as ``-1h`` or ``yesterday
        14:00``, UTC where it names no zone; integers are milliseconds since the epoch.
    """

    start_timestamp: Moment | None
    end_timestamp: Moment | None


class PartitionOffsetOptions(TypedDict, total=False):
    """Of the table ``partition_offsets``.

    Attributes
    ----------
    isolation_level : {"read_uncommitted", "read_committed"}
        Whether the end is the last stable offset.
    """

    isolation_level: IsolationLevel


class OffsetAtTimeOptions(PartitionOffsetOptions, total=False):
    """Of the table ``partition_offsets`` where the time is an option as well.

    Attributes
    ----------
    time : str, datetime or int
        ``earliest``, ``latest``, ``max-timestamp``, or a timestamp.
    """

    time: Moment


class ReplicaOptions(TypedDict, total=False):
    """Options of the table ``replicas``.

    Attributes
    ----------
    check_crc : bool
        Verify the checksum of each batch, for ``damaged`` and ``missing``.
    """

    check_crc: bool


class ErrorOptions(OffsetBounds, total=False):
    """Options of the table ``errors``.

    Attributes
    ----------
    salvage : bool
        Search damaged parts of files for batches; bytes of these batches are not among the errors.
    check_crc : bool
        Verify the checksum of each batch.
    max_decompressed_bytes : int
        Maximum size of a batch after decompression, in bytes.
    """

    salvage: bool
    check_crc: bool
    max_decompressed_bytes: int


class FindingOptions(TypedDict, total=False):
    """Options of the table ``findings``.

    Attributes
    ----------
    against : path or iterable of paths
        The log directories of another cluster: a backup, a restored cluster or a mirror. The findings are what it lacks
        or has otherwise.
    """

    against: LogPaths


class BatchOptions(Bounds, total=False):
    """Options of the table ``batches``.

    Attributes
    ----------
    salvage : bool
        Search damaged parts of files for batches.
    check_crc : bool
        Verify the checksum of each batch, which requires reading all bytes.
    """

    salvage: bool
    check_crc: bool


class MetadataTransactionOptions(OffsetBounds, LineOptions, total=False):
    """Options of the table ``metadata_transactions``."""


class TransactionOptions(Bounds, LineOptions, total=False):
    """Options of the table ``partition_transactions``.

    Attributes
    ----------
    include_deleted : bool
        Include records before the log start offset.
    """

    include_deleted: bool


class ProducerOptions(LineOptions, total=False):
    """Options of the table ``producers``.

    Attributes
    ----------
    end_offset : int or None
        End offset, exclusive.
    include_deleted : bool
        Include records before the log start offset.
    """

    end_offset: int | None
    include_deleted: bool


class FoldOptions(LineOptions, total=False):
    """Options of tables that are built from a compacted topic.

    Attributes
    ----------
    at : int or None
        Last offset to apply, in each partition of the topic.
    include_deleted : bool
        Include records before the log start offset.
    """

    at: int | None
    include_deleted: bool


class ChangeOptions(Bounds, LineOptions, total=False):
    """Options of the table ``metadata_changes``.

    Attributes
    ----------
    include_image : bool
        Begin with the initial image, as added entries.
    show_secrets : bool
        Show SCRAM credentials and passwords.
    """

    include_image: bool
    show_secrets: bool


class CountOptions(TransactionOptions, total=False):
    """Of counts of records, such as ``key_stats``.

    Attributes
    ----------
    isolation_level : {"read_uncommitted", "read_committed"}
        ``read_committed`` leaves out records of aborted and open transactions.
    include_control : bool
        Include the records of control batches.
    salvage : bool
        Search damaged parts of files for batches.
    check_crc : bool
        Verify the checksum of each batch. ``read_committed`` always does.
    batch_rows, batch_bytes : int
        Size of a record batch: rows, or bytes of log.
    max_decompressed_bytes : int
        Maximum size of a batch after decompression, in bytes.
    """

    isolation_level: IsolationLevel
    include_control: bool
    salvage: bool
    check_crc: bool
    batch_rows: int
    batch_bytes: int
    max_decompressed_bytes: int


class RecordOptions(CountOptions, total=False):
    """Of the table ``records``, and of ``grep``.

    Attributes
    ----------
    committed_only : bool
        End each partition at the high watermark that its files prove.
    """

    committed_only: bool


class MessageOptions(RecordOptions, total=False):
    """Options of the table ``messages``, and of the tables of message types.

    Attributes
    ----------
    show_secrets : bool
        Show SCRAM credentials and passwords.
    """

    show_secrets: bool
