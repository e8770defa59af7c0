"""Kafka log files to Arrow and back, without a broker."""

from kraftlog import varint
from kraftlog._native.checksum import crc32c
from kraftlog._native.record_objects import Record, RecordIterator
from kraftlog.codec.batches import batches
from kraftlog.codec.buffer_stream import BufferStream
from kraftlog.codec.control import ControlRecord, decode_control
from kraftlog.codec.decode import decode
from kraftlog.codec.encode import Encoder, encode
from kraftlog.codec.end_transaction_marker import encode_marker
from kraftlog.codec.partitioner import partition_for_key
from kraftlog.codec.record_iterator import records
from kraftlog.codec.validate import validate
from kraftlog.coordinator.partition_for import group_partition
from kraftlog.errors import (
    CorruptRecordError,
    Fault,
    InvalidRecordError,
    InvalidTransactionStateError,
    RecordError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kraftlog.messages.api import decode_messages, encode_messages
from kraftlog.stream import Stream
from kraftlog.tables.log import Log
from kraftlog.tables.open_log import open
from kraftlog.transactions.metadata_transaction import pack_transaction
from kraftlog.transactions.packing import plan_batches
from kraftlog.write.metadata_writer import MetadataLogWriter

__version__ = "0.1.0"

__all__ = [
    "BufferStream",
    "ControlRecord",
    "CorruptRecordError",
    "Encoder",
    "Fault",
    "InvalidRecordError",
    "InvalidTransactionStateError",
    "Log",
    "MetadataLogWriter",
    "Record",
    "RecordError",
    "RecordIterator",
    "RecordTooLargeError",
    "Stream",
    "UnsupportedCompressionTypeError",
    "batches",
    "crc32c",
    "decode",
    "decode_control",
    "decode_messages",
    "encode",
    "encode_marker",
    "encode_messages",
    "group_partition",
    "open",
    "pack_transaction",
    "partition_for_key",
    "plan_batches",
    "records",
    "validate",
    "varint",
]
