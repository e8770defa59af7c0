"""A batch that a client sends: checked as by a broker, and placed in a log without being encoded again."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kraftlog._native.scanner import TRANSACTIONAL_BIT, header_at
from kraftlog.codec import produce_checks
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import KAFKA_ERRORS
from kraftlog.log_store.errors import StoreError
from kraftlog.log_store.producer_entries import Stamp
from kraftlog.log_store.topics import Topic
from kraftlog.types import Buffer

_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_AT = 12


class InvalidBatchError(StoreError, kafka_error="INVALID_RECORD"):
    """A batch that a broker refuses.

    Attributes
    ----------
    record_index : int or None
        The first bad record, if it is known.
    """

    def __init__(self, kafka_code: int, kafka_error: str, message: str, record_index: int | None = None) -> None:
        super().__init__(message)
        self.kafka_error = kafka_error
        self.kafka_code = kafka_code
        self.is_retriable = kafka_error in KAFKA_ERRORS and KAFKA_ERRORS[kafka_error].is_retriable
        self.record_index = record_index


@dataclass(frozen=True)
class ProducedBatch:
    """A valid batch of a produce request.

    Attributes
    ----------
    data : memoryview
        Its bytes; the base offset is 0 until it is placed.
    stamp : Stamp
        The producer.
    records_count : int
    """

    data: memoryview
    stamp: Stamp
    records_count: int

    @classmethod
    def checked(
        cls,
        data: Buffer,
        topic: Topic,
        now_ms: int,
        max_decompressed_bytes: int = ReadOptions.max_decompressed_bytes,
    ) -> ProducedBatch:
        """Return the only batch of a buffer.

        Parameters
        ----------
        data : buffer
            The records for one partition of a request.
        topic : Topic
        now_ms : int
            The time of the broker.
        max_decompressed_bytes : int
            Limit of the records when they are decompressed.

        Raises
        ------
        InvalidBatchError
            When a broker would refuse the records.
        """
        checks = produce_checks.Topic(
            max_message_bytes=topic.max_message_bytes,
            compacted="compact" in topic.cleanup_policy,
            timestamp_type="CreateTime",
            timestamp_before_max_ms=NO_BOUND,
            timestamp_after_max_ms=produce_checks.DEFAULT_TIMESTAMP_AFTER_MAX_MS,
            now_ms=now_ms,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        verdicts = produce_checks.verdicts(data, checks)
        if not verdicts:
            code, name = produce_checks.INVALID_RECORD
            raise InvalidBatchError(code, name, f"{topic.name}: expected one record batch, found none")
        for verdict in verdicts:
            if verdict.error_code:
                message = f"{topic.name}: {verdict.message}"
                raise InvalidBatchError(verdict.error_code, verdict.error, message, verdict.record_index)
        header = header_at(data, 0)[0]
        stamp = Stamp(
            int(header["producer_id"]),
            int(header["producer_epoch"]),
            int(header["base_sequence"]),
            is_transactional=bool(int(header["attributes"]) & TRANSACTIONAL_BIT),
        )
        return cls(memoryview(data).cast("B")[: verdicts[0].size_in_bytes], stamp, int(header["records_count"]))

    def placed(self, base_offset: int, leader_epoch: int) -> Buffer:
        """Return its bytes at an offset, in the same memory if it can be written.

        The checksum does not cover offset and leader epoch.
        """
        placed = bytearray(self.data) if self.data.readonly else self.data
        _BASE_OFFSET.pack_into(placed, 0, base_offset)
        _LEADER_EPOCH.pack_into(placed, _LEADER_EPOCH_AT, leader_epoch)
        return placed
