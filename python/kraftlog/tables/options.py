"""The options of tables: one ``TypedDict`` for each set of them, which every door takes its options from.

A method of ``Log`` names its set (``**options: Unpack[BatchOptions]``, PEP 692), so that type checkers find an option
that is misspelt or that a table does not have. Commands and Spark ask ``Table.option_names``. The option ``strict``, to
raise at the first fault, is that of every table; its default depends on what a fault may change.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from kraftlog.types import IsolationLevel

Moment = datetime | str | int


class LineOptions(TypedDict, total=False):
    """Of tables that are read from one of several replicas of a partition.

    Attributes
    ----------
    heal : bool
        Read what that replica lacks, or has damaged, from others that agree with it.
    """

    heal: bool


class OffsetBounds(TypedDict, total=False):
    """Of tables whose rows have a place in a log.

    Attributes
    ----------
    start_offset, end_offset : int or None
        Offsets in [start_offset, end_offset), in every partition.
    """

    start_offset: int | None
    end_offset: int | None


class Bounds(OffsetBounds, total=False):
    """Of tables whose rows have a time, too.

    Attributes
    ----------
    start_timestamp, end_timestamp : datetime, str, int or None
        Timestamps in [start_timestamp, end_timestamp). Text is ISO 8601, UTC where it names no zone; integers are
        milliseconds since the epoch.
    """

    start_timestamp: Moment | None
    end_timestamp: Moment | None


class ReplicaOptions(TypedDict, total=False):
    """Of the table ``replicas``.

    Attributes
    ----------
    check_crc : bool
        Compare the checksum of each batch, for ``damaged`` and ``missing``.
    """

    check_crc: bool


class ErrorOptions(OffsetBounds, total=False):
    """Of the table ``errors``.

    Attributes
    ----------
    salvage : bool
        Search for batches where damage leaves no header to go on with; what is found is not among the errors.
    check_crc : bool
        Compare the checksum of each batch.
    max_decompressed_bytes : int
        Most bytes that one batch may take after decompression.
    """

    salvage: bool
    check_crc: bool
    max_decompressed_bytes: int


class BatchOptions(Bounds, total=False):
    """Of the table ``batches``.

    Attributes
    ----------
    salvage : bool
        Search for batches where damage leaves no header to go on with.
    check_crc : bool
        Compare the checksum of each batch, which reads all of it.
    """

    salvage: bool
    check_crc: bool


class MetadataTransactionOptions(OffsetBounds, LineOptions, total=False):
    """Of the table ``metadata_transactions``."""


class TransactionOptions(Bounds, LineOptions, total=False):
    """Of the table ``partition_transactions``.

    Attributes
    ----------
    include_deleted : bool
        Show also what lies before the log start offset.
    """

    include_deleted: bool


class ProducerOptions(LineOptions, total=False):
    """Of the table ``producers``.

    Attributes
    ----------
    end_offset : int or None
        The offset before which batches count.
    include_deleted : bool
        Count also what lies before the log start offset.
    """

    end_offset: int | None
    include_deleted: bool


class FoldOptions(LineOptions, total=False):
    """Of tables that are folded from a compacted topic.

    Attributes
    ----------
    at : int or None
        The last offset that counts, in each partition of the topic.
    include_deleted : bool
        Count also what lies before the log start offset.
    """

    at: int | None
    include_deleted: bool


class ChangeOptions(Bounds, LineOptions, total=False):
    """Of the table ``metadata_changes``.

    Attributes
    ----------
    include_image : bool
        Begin with the image that changes start from, as what was added.
    show_secrets : bool
        Show SCRAM credentials and passwords.
    """

    include_image: bool
    show_secrets: bool


class RecordOptions(TransactionOptions, total=False):
    """Of the table ``records``, and of what else reads records: ``grep``, counts of keys, ``follow``.

    Attributes
    ----------
    isolation_level : {"read_uncommitted", "read_committed"}
        Whether records of aborted and open transactions are left out.
    include_control : bool
        Show the records of control batches.
    salvage : bool
        Search for batches where damage leaves no header to go on with.
    check_crc : bool
        Compare the checksum of each batch.
    batch_rows, batch_bytes : int
        Size at which a record batch is handed out: rows, or bytes of log.
    max_decompressed_bytes : int
        Most bytes that one batch may take after decompression.
    """

    isolation_level: IsolationLevel
    include_control: bool
    salvage: bool
    check_crc: bool
    batch_rows: int
    batch_bytes: int
    max_decompressed_bytes: int


class MessageOptions(RecordOptions, total=False):
    """Of the table ``messages``, and of those of types of messages.

    Attributes
    ----------
    show_secrets : bool
        Show SCRAM credentials and passwords.
    """

    show_secrets: bool
