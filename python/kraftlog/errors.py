"""Exceptions, and the faults that become rows of the ``errors`` table.

The numbers, codes and sentences of what the codec finds are defined once, in ``native/c/base/status.h``. What concerns
whole files and logs is named where it is found, in ``kraftlog.read``:

- files: ``unreadable_file``, ``batch_cut_off``, ``not_read``, ``bad_index``, ``index_mismatch``,
  ``txnindex_mismatch``, ``bad_snapshot``, ``snapshot_mismatch``, ``not_recovered``, ``not_extracted``;
- offsets: ``offset_goes_back``, ``bad_last_offset_delta``;
- producers: ``sequence_gap``, ``bad_producer_epoch``, ``not_transactional``; transactions: ``torn_transaction``;
- messages of internal topics: ``bad_message``;
- typed keys and values: ``bad_key``, ``bad_value``; the topic of a schema registry: ``bad_schema_record``;
- the metadata log: ``begin_inside_transaction``, ``end_outside_transaction``, ``begun_before_log``,
  ``marker_in_snapshot``, ``unsupported_marker``, ``bad_marker``, ``missing_offsets``, ``damaged_transaction``;
- metadata images: ``incomplete_image``, ``incomplete_snapshot``; in
  ``kraftlog.metadata`` ``unknown_topic``, ``unknown_partition``, ``unknown_broker``, ``broker_epoch_mismatch``,
  ``bad_broker_change``, ``unknown_acl``, ``bad_directories``, ``bad_leader_recovery_state``, ``bad_feature_level``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kraftlog._native import status

RECORD_FAULTS = frozenset(
    {
        "bad_record_length",
        "truncated_field",
        "varint_too_long",
        "bad_key_length",
        "bad_value_length",
        "bad_headers_count",
        "bad_header_key_length",
        "bad_header_value_length",
        "bad_record_size",
        "bad_inner_magic",
        "bad_inner_crc",
        "nested_compression",
        "empty_wrapper",
        "bad_wrapper_offset",
        "missing_records",
        "trailing_bytes",
        "bad_records_count",
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A piece of input that could not be read: one row of the ``errors`` table.

    Attributes
    ----------
    error : str
        Short code, from ``native/c/base/status.h`` for what the codec finds.
    message : str
        What was expected, what was found and where.
    position : int or None
        Byte of the file or buffer at which the batch, or the unreadable stretch, starts.
    size_in_bytes : int or None
        Bytes that were left out because of it.
    base_offset : int or None
        Of the batch, where it is known.
    record_index : int or None
        Of the bad record within its batch; None when the fault is the batch's own.
    replica : str or None
        The log directory, or remote tier, that the partition's folder is in. Faults of copies compare as equal.
    """

    error: str
    message: str
    position: int | None = None
    size_in_bytes: int | None = None
    base_offset: int | None = None
    record_index: int | None = None
    topic: str | None = None
    partition: int | None = None
    segment_base_offset: int | None = None
    replica: str | None = field(default=None, compare=False)

    def located(
        self,
        where: str,
        topic: str | None,
        partition: int | None,
        segment_base_offset: int | None,
        replica: str | None = None,
        first_byte: int = 0,
    ) -> Fault:
        """Return the same fault with the file it was found in, which also opens the message.

        ``first_byte`` is where in the file the bytes begin in which it was found.
        """
        message, position = self.message, self.position
        if first_byte:
            behind = (position or 0) + first_byte
            message = message.replace(f"at byte {position or 0}", f"at byte {behind}", 1)
            position = behind
        return replace(
            self,
            message=f"{where}: {message}",
            position=position,
            topic=topic,
            partition=partition,
            segment_base_offset=segment_base_offset,
            replica=replica,
        )


NativeFault = tuple[int, int, int, int, int, int, int, int, bool]


def fault_from_native(native: NativeFault, detail: str = "") -> Fault:
    """Make a fault from what the extension modules report.

    Parameters
    ----------
    native : tuple
        status, record_index, position, expected, actual, batch_position, base_offset, skipped, is_rest.
    detail : str
        The words of a decompressor, where one failed.
    """
    number, record_index, _, expected, actual, batch_position, base_offset, skipped, is_rest = native
    code = status.CODES[number]
    sentence = status.TEXTS[code].format(expected=expected, actual=actual) or detail
    if is_rest:
        sentence += f"; the {skipped} bytes from here to the end are not read, salvage searches them"
    where = f"batch at byte {batch_position}"
    if record_index >= 0:
        where += f", record {record_index}"
    return Fault(
        error=code,
        message=f"{where}: {sentence}",
        position=batch_position,
        size_in_bytes=skipped,
        base_offset=None if base_offset == -1 else base_offset,
        record_index=None if record_index < 0 else record_index,
    )


class KafkaError(NamedTuple):
    """An error of Kafka's protocol.

    Attributes
    ----------
    code : int
    is_retriable : bool
        Whether the same request can succeed later.
    """

    code: int
    is_retriable: bool = False


KAFKA_ERRORS = {
    "UNKNOWN_SERVER_ERROR": KafkaError(-1),
    "CORRUPT_MESSAGE": KafkaError(2, is_retriable=True),
    "UNKNOWN_TOPIC_OR_PARTITION": KafkaError(3, is_retriable=True),
    "MESSAGE_TOO_LARGE": KafkaError(10),
    "INVALID_TOPIC_EXCEPTION": KafkaError(17),
    "ILLEGAL_GENERATION": KafkaError(22),
    "UNKNOWN_MEMBER_ID": KafkaError(25),
    "TOPIC_ALREADY_EXISTS": KafkaError(36),
    "INVALID_PARTITIONS": KafkaError(37),
    "INVALID_CONFIG": KafkaError(40),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": KafkaError(45),
    "INVALID_PRODUCER_EPOCH": KafkaError(47),
    "INVALID_TXN_STATE": KafkaError(48),
    "INVALID_PRODUCER_ID_MAPPING": KafkaError(49),
    "INVALID_TRANSACTION_TIMEOUT": KafkaError(50),
    "KAFKA_STORAGE_ERROR": KafkaError(56, is_retriable=True),
    "UNSUPPORTED_COMPRESSION_TYPE": KafkaError(76),
    "INVALID_RECORD": KafkaError(87),
    "PRODUCER_FENCED": KafkaError(90),
}
"""The errors of Kafka's protocol that exceptions of this package stand for, by Kafka's names (``Errors``)."""


class KraftlogError(Exception):
    """The base of all exceptions that this package defines.

    Attributes
    ----------
    kafka_error : str
        The name of Kafka's error that says the same, of ``KAFKA_ERRORS``; ``UNKNOWN_SERVER_ERROR`` where there is none.
    kafka_code : int
        Its number in Kafka's protocol.
    is_retriable : bool
        Whether Kafka's clients try the same request again.
    """

    kafka_error = "UNKNOWN_SERVER_ERROR"
    kafka_code, is_retriable = KAFKA_ERRORS[kafka_error]

    def __init_subclass__(cls, kafka_error: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if kafka_error is not None:
            cls.kafka_error = kafka_error
            cls.kafka_code, cls.is_retriable = KAFKA_ERRORS[kafka_error]


class DamagedLogWarning(UserWarning):
    """Rows were read that faults may have changed, and nobody has looked at the faults."""


class RecordError(KraftlogError, ValueError, kafka_error="CORRUPT_MESSAGE"):
    """Input that is not what the format says.

    Attributes
    ----------
    fault : Fault or None
        What was found and where, as the ``errors`` table shows it.
    """

    def __init__(self, message: str, fault: Fault | None = None) -> None:
        super().__init__(message)
        self.fault = fault

    @property
    def position(self) -> int | None:
        """Byte at which the bad batch starts."""
        return self.fault.position if self.fault else None

    @property
    def base_offset(self) -> int | None:
        """Base offset of the bad batch."""
        return self.fault.base_offset if self.fault else None

    @property
    def record_index(self) -> int | None:
        """Index of the bad record within its batch."""
        return self.fault.record_index if self.fault else None


class CorruptRecordError(RecordError, kafka_error="CORRUPT_MESSAGE"):
    """A batch whose length, magic, crc or compressed data is wrong."""


class InvalidRecordError(RecordError, kafka_error="INVALID_RECORD"):
    """A batch with a matching crc whose records are not well-formed."""


class UnsupportedCompressionTypeError(RecordError, kafka_error="UNSUPPORTED_COMPRESSION_TYPE"):
    """A compression type that Kafka does not define."""


class RecordTooLargeError(RecordError, kafka_error="MESSAGE_TOO_LARGE"):
    """A record that does not fit a batch of ``max_batch_bytes``."""


class InputError(KraftlogError, OSError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A file that cannot be read to its end: it was truncated meanwhile, or the device fails.

    Attributes
    ----------
    position : int
        Byte of the first batch that was not read.
    """

    def __init__(self, error: OSError, position: int) -> None:
        super().__init__(error.errno, error.strerror or str(error), error.filename)
        self.position = position

    def __reduce__(self) -> tuple[Any, ...]:
        return _input_error, (type(self), self.errno, self.strerror, self.filename, self.position)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}" if self.filename else str(self.strerror)


def _input_error(kind: type[InputError], number: int | None, text: str, filename: Any, position: int) -> InputError:
    """Make an ``InputError`` that was sent from another process."""
    error = OSError(text)
    error.errno, error.strerror, error.filename = number, text, filename
    return kind(error, position)


class InvalidTransactionStateError(KraftlogError, ValueError, kafka_error="INVALID_TXN_STATE"):
    """Work that the state of the log's transaction does not allow."""


def error_from_fault(fault: Fault) -> RecordError:
    """Return the exception that ``strict`` raises for a fault."""
    if fault.error in RECORD_FAULTS:
        return InvalidRecordError(fault.message, fault)
    if fault.error == "unknown_compression":
        return UnsupportedCompressionTypeError(fault.message, fault)
    return CorruptRecordError(fault.message, fault)
