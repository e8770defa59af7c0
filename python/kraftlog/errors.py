"""Exceptions, and the faults that become rows of the ``errors`` table.

Numbers, codes and messages of codec faults are defined in ``native/c/base/status.h``. Faults of whole files and logs
are defined where they are found, in ``kraftlog.read``:

- files: ``unreadable_file``, ``batch_cut_off``, ``missing_batches``, ``not_read``, ``bad_index``,
  ``index_mismatch``, ``txnindex_mismatch``, ``bad_snapshot``, ``snapshot_mismatch``, ``not_recovered``,
  ``not_extracted``, ``not_redacted``;
- offsets: ``offset_goes_back``, ``bad_last_offset_delta``;
- producers: ``sequence_gap``, ``bad_producer_epoch``, ``not_transactional``,
  ``bad_coordinator_epoch``; transactions: ``torn_transaction``;
- messages of internal topics: ``bad_message``;
- typed keys and values: ``bad_key``, ``bad_value``; the topic of a schema registry: ``bad_schema_record``;
- the metadata log: ``begin_inside_transaction``, ``end_outside_transaction``, ``begun_before_log``,
  ``marker_in_snapshot``, ``unsupported_marker``, ``bad_marker``, ``missing_offsets``, ``damaged_transaction``;
- metadata images: ``incomplete_image``, ``incomplete_snapshot``; in
  ``kraftlog.metadata`` ``unknown_topic``, ``unknown_partition``, ``unknown_broker``, ``broker_epoch_mismatch``,
  ``bad_broker_change``, ``unknown_acl``, ``bad_directories``, ``bad_leader_recovery_state``, ``bad_feature_level``.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """Unreadable input: one row of the ``errors`` table.

    Attributes
    ----------
    error : str
        Short code, from ``native/c/base/status.h`` for codec faults.
    message : str
        Expected and actual values, and their position.
    position : int or None
        Start of the batch, or of the unreadable range, in bytes of the file or buffer.
    size_in_bytes : int or None
        Number of bytes that were skipped because of it.
    base_offset : int or None
        Base offset of the batch, if known.
    record_index : int or None
        Index of the bad record within its batch; None for a fault of the whole batch.
    replica : str or None
        Log directory, or remote tier, of the partition's folder. Faults of copies compare as equal.
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
        """Return the same fault with its file, which also begins the message.

        ``first_byte`` is the position of the examined bytes in the file.
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
    """Return a fault from a report of the extension modules.

    Parameters
    ----------
    native : tuple
        status, record_index, position, expected, actual, batch_position, base_offset, skipped, is_rest.
    detail : str
        Message of a decompressor, if one failed.
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
    "OFFSET_OUT_OF_RANGE": KafkaError(1),
    "CORRUPT_MESSAGE": KafkaError(2, is_retriable=True),
    "UNKNOWN_TOPIC_OR_PARTITION": KafkaError(3, is_retriable=True),
    "MESSAGE_TOO_LARGE": KafkaError(10),
    "INVALID_TOPIC_EXCEPTION": KafkaError(17),
    "ILLEGAL_GENERATION": KafkaError(22),
    "UNKNOWN_MEMBER_ID": KafkaError(25),
    "UNSUPPORTED_VERSION": KafkaError(35),
    "TOPIC_ALREADY_EXISTS": KafkaError(36),
    "INVALID_PARTITIONS": KafkaError(37),
    "INVALID_CONFIG": KafkaError(40),
    "POLICY_VIOLATION": KafkaError(44),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": KafkaError(45),
    "INVALID_PRODUCER_EPOCH": KafkaError(47),
    "INVALID_TXN_STATE": KafkaError(48),
    "INVALID_PRODUCER_ID_MAPPING": KafkaError(49),
    "INVALID_TRANSACTION_TIMEOUT": KafkaError(50),
    "TRANSACTION_COORDINATOR_FENCED": KafkaError(52),
    "KAFKA_STORAGE_ERROR": KafkaError(56, is_retriable=True),
    "SASL_AUTHENTICATION_FAILED": KafkaError(58),
    "FENCED_LEADER_EPOCH": KafkaError(74, is_retriable=True),
    "UNKNOWN_LEADER_EPOCH": KafkaError(75, is_retriable=True),
    "UNSUPPORTED_COMPRESSION_TYPE": KafkaError(76),
    "INVALID_RECORD": KafkaError(87),
    "PRODUCER_FENCED": KafkaError(90),
}
"""The errors of Kafka's protocol that exceptions of this package stand for, by Kafka's names (``Errors``)."""


class KraftlogError(Exception):
    """The base class of all exceptions of this package.

    Attributes
    ----------
    kafka_error : str
        The name of the corresponding Kafka error in ``KAFKA_ERRORS``, or ``UNKNOWN_SERVER_ERROR``.
    kafka_code : int
        Its number in Kafka's protocol.
    is_retriable : bool
        Whether Kafka's clients retry the request.
    """

    kafka_error = "UNKNOWN_SERVER_ERROR"
    kafka_code, is_retriable = KAFKA_ERRORS[kafka_error]

    def __init_subclass__(cls, kafka_error: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if kafka_error is not None:
            cls.kafka_error = kafka_error
            cls.kafka_code, cls.is_retriable = KAFKA_ERRORS[kafka_error]


class DamagedLogWarning(UserWarning):
    """Faults may have changed rows that were read, and were not looked at."""


class RecordError(KraftlogError, ValueError, kafka_error="CORRUPT_MESSAGE"):
    """Input that violates the format.

    Attributes
    ----------
    fault : Fault or None
        The fault, as in the ``errors`` table.
    """

    def __init__(self, message: str, fault: Fault | None = None) -> None:
        super().__init__(message)
        self.fault = fault

    @property
    def position(self) -> int | None:
        """Position of the bad batch, in bytes."""
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
    """A batch with a wrong length, magic, crc or compressed data."""


class InvalidRecordError(RecordError, kafka_error="INVALID_RECORD"):
    """A batch with a matching crc and malformed records."""


class UnsupportedCompressionTypeError(RecordError, kafka_error="UNSUPPORTED_COMPRESSION_TYPE"):
    """A compression type that Kafka does not define."""


class RecordTooLargeError(RecordError, kafka_error="MESSAGE_TOO_LARGE"):
    """A record that is too large for ``max_batch_bytes``."""


class InputError(KraftlogError, OSError, kafka_error="KAFKA_STORAGE_ERROR"):
    """A file that cannot be read to its end: it was truncated during the read, or the device failed.

    Attributes
    ----------
    position : int
        Position of the first unread batch or byte.
    """

    def __init__(self, error: OSError, position: int) -> None:
        super().__init__(error.errno, error.strerror or str(error), error.filename)
        self.position = position

    def __reduce__(self) -> tuple[Any, ...]:
        return _input_error, (type(self), self.errno, self.strerror, self.filename, self.position)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}" if self.filename else str(self.strerror)


def input_error(error: BaseException, position: int) -> BaseException:
    """Return what a reader raises for an error of its file: a missing one is as if it could not be opened."""
    is_input = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
    return InputError(error, position) if is_input else error  # type: ignore[arg-type]


def _input_error(kind: type[InputError], number: int | None, text: str, filename: Any, position: int) -> InputError:
    """Recreate an ``InputError`` from another process."""
    error = OSError(text)
    error.errno, error.strerror, error.filename = number, text, filename
    return kind(error, position)


class InvalidTransactionStateError(KraftlogError, ValueError, kafka_error="INVALID_TXN_STATE"):
    """An operation that the state of the log's transaction does not allow."""


def distinct(faults: Iterable[Fault]) -> list[Fault]:
    """Return faults without those that another pass over the same files found before, perhaps in fewer bytes."""
    first: dict[tuple[object, ...], Fault] = {}
    for one in faults:
        first.setdefault((one.error, one.message, one.position), one)
    return list(first.values())


def error_from_fault(fault: Fault) -> RecordError:
    """Return the exception that ``strict`` raises for a fault."""
    if fault.error in RECORD_FAULTS:
        return InvalidRecordError(fault.message, fault)
    if fault.error == "unknown_compression":
        return UnsupportedCompressionTypeError(fault.message, fault)
    return CorruptRecordError(fault.message, fault)
