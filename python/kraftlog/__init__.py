"""Kafka log files to Arrow and back, without a broker.

A name of this package is imported when it is first used, with the modules that it needs and no others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kraftlog import varint
    from kraftlog._native.checksum import crc32c
    from kraftlog._native.record_objects import Record, RecordIterator
    from kraftlog.backup.extract import extract
    from kraftlog.backup.repository import Repository
    from kraftlog.backup.rescue import rescue
    from kraftlog.backup.restore import restore
    from kraftlog.broker.errors import ReplayError
    from kraftlog.broker.live_restore import restore_live
    from kraftlog.broker.replay import replay
    from kraftlog.codec.batches import batches
    from kraftlog.codec.buffer_stream import BufferStream
    from kraftlog.codec.builder import RecordBatchBuilder
    from kraftlog.codec.control import ControlRecord, decode_control
    from kraftlog.codec.decode import decode
    from kraftlog.codec.encode import Encoder, encode
    from kraftlog.codec.end_transaction_marker import encode_marker
    from kraftlog.codec.partitioner import partition_for_key
    from kraftlog.codec.record_iterator import records
    from kraftlog.codec.rewrite import rewrite_batches
    from kraftlog.codec.validate import validate
    from kraftlog.coordinator.partition_for import group_partition
    from kraftlog.errors import (
        CorruptRecordError,
        DamagedLogWarning,
        Fault,
        InvalidRecordError,
        InvalidTransactionStateError,
        KraftlogError,
        RecordError,
        RecordTooLargeError,
        UnsupportedCompressionTypeError,
    )
    from kraftlog.layout.identity import Identity
    from kraftlog.layout.tier.remote_tier import RemoteTier
    from kraftlog.log_report.report import Report, report
    from kraftlog.log_store.process import process
    from kraftlog.log_store.store import LogStore
    from kraftlog.messages.api import decode_messages, encode_messages
    from kraftlog.query.lazy_frame import scan
    from kraftlog.server.broker import Broker
    from kraftlog.server.log_server import LogServer
    from kraftlog.server.tls import Tls
    from kraftlog.server.users import Users
    from kraftlog.stream import Stream
    from kraftlog.tables.follow import follow
    from kraftlog.tables.log import Log
    from kraftlog.tables.open_log import open
    from kraftlog.transactions.cut import Cut
    from kraftlog.transactions.metadata_transaction import pack_transaction
    from kraftlog.transactions.packing import plan_batches
    from kraftlog.write.metadata_writer import MetadataLogWriter

__version__ = "0.1.0"

__all__ = [
    "Broker",
    "BufferStream",
    "ControlRecord",
    "CorruptRecordError",
    "Cut",
    "DamagedLogWarning",
    "Encoder",
    "Fault",
    "Identity",
    "InvalidRecordError",
    "InvalidTransactionStateError",
    "KraftlogError",
    "Log",
    "LogServer",
    "LogStore",
    "MetadataLogWriter",
    "Record",
    "RecordBatchBuilder",
    "RecordError",
    "RecordIterator",
    "RecordTooLargeError",
    "RemoteTier",
    "ReplayError",
    "Report",
    "Repository",
    "Stream",
    "Tls",
    "UnsupportedCompressionTypeError",
    "Users",
    "batches",
    "crc32c",
    "decode",
    "decode_control",
    "decode_messages",
    "encode",
    "encode_marker",
    "encode_messages",
    "extract",
    "follow",
    "group_partition",
    "open",
    "pack_transaction",
    "partition_for_key",
    "plan_batches",
    "process",
    "records",
    "replay",
    "report",
    "rescue",
    "restore",
    "restore_live",
    "rewrite_batches",
    "scan",
    "validate",
    "varint",
]

_MODULES = {
    "Broker": "kraftlog.server.broker",
    "BufferStream": "kraftlog.codec.buffer_stream",
    "ControlRecord": "kraftlog.codec.control",
    "CorruptRecordError": "kraftlog.errors",
    "Cut": "kraftlog.transactions.cut",
    "DamagedLogWarning": "kraftlog.errors",
    "Encoder": "kraftlog.codec.encode",
    "Fault": "kraftlog.errors",
    "InvalidRecordError": "kraftlog.errors",
    "InvalidTransactionStateError": "kraftlog.errors",
    "KraftlogError": "kraftlog.errors",
    "Log": "kraftlog.tables.log",
    "LogServer": "kraftlog.server.log_server",
    "LogStore": "kraftlog.log_store.store",
    "MetadataLogWriter": "kraftlog.write.metadata_writer",
    "Record": "kraftlog._native.record_objects",
    "RecordBatchBuilder": "kraftlog.codec.builder",
    "RecordError": "kraftlog.errors",
    "RecordIterator": "kraftlog._native.record_objects",
    "RecordTooLargeError": "kraftlog.errors",
    "Identity": "kraftlog.layout.identity",
    "RemoteTier": "kraftlog.layout.tier.remote_tier",
    "ReplayError": "kraftlog.broker.errors",
    "Report": "kraftlog.log_report.report",
    "Repository": "kraftlog.backup.repository",
    "Stream": "kraftlog.stream",
    "Tls": "kraftlog.server.tls",
    "UnsupportedCompressionTypeError": "kraftlog.errors",
    "Users": "kraftlog.server.users",
    "batches": "kraftlog.codec.batches",
    "crc32c": "kraftlog._native.checksum",
    "decode": "kraftlog.codec.decode",
    "decode_control": "kraftlog.codec.control",
    "decode_messages": "kraftlog.messages.api",
    "encode": "kraftlog.codec.encode",
    "encode_marker": "kraftlog.codec.end_transaction_marker",
    "encode_messages": "kraftlog.messages.api",
    "extract": "kraftlog.backup.extract",
    "follow": "kraftlog.tables.follow",
    "group_partition": "kraftlog.coordinator.partition_for",
    "open": "kraftlog.tables.open_log",
    "pack_transaction": "kraftlog.transactions.metadata_transaction",
    "partition_for_key": "kraftlog.codec.partitioner",
    "plan_batches": "kraftlog.transactions.packing",
    "process": "kraftlog.log_store.process",
    "records": "kraftlog.codec.record_iterator",
    "replay": "kraftlog.broker.replay",
    "report": "kraftlog.log_report.report",
    "rescue": "kraftlog.backup.rescue",
    "restore": "kraftlog.backup.restore",
    "restore_live": "kraftlog.broker.live_restore",
    "rewrite_batches": "kraftlog.codec.rewrite",
    "scan": "kraftlog.query.lazy_frame",
    "validate": "kraftlog.codec.validate",
}

if not TYPE_CHECKING:  # a type checker knows the names above, and no others

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _MODULES.get(name)
        found = getattr(import_module(module), name) if module else import_module(f"{__name__}.{name}")
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
