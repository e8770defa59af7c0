"""Log files as kafka-dump-log prints them: a line for each batch, and one for each record."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kraftlog.cli.dump.differences import Differences
from kraftlog.cli.dump.java_text import java, optional_long
from kraftlog.cli.dump.texts import Parser, Texts
from kraftlog.codec.control import decode_control
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import ReadOptions
from kraftlog.errors import Fault, RecordError
from kraftlog.layout import names
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import located, segment_file
from kraftlog.tables.log import Log

BATCH_COLUMNS = [
    "position",
    "size_in_bytes",
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "magic",
    "crc",
    "crc_ok",
    "compression",
    "timestamp_type",
    "max_timestamp_ms",
    "delete_horizon_ms",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_offset_delta",
    "records_count",
    "is_transactional",
    "is_control",
]
RECORD_COLUMNS = [
    "position",
    "offset",
    "timestamp_ms",
    "timestamp_type",
    "sequence",
    "key",
    "value",
    "headers",
    "is_control",
]
LOG_APPEND_TIME_BIT = 8


@dataclass(frozen=True)
class Wanted:
    """What is printed of a log.

    Attributes
    ----------
    records : bool
        Whether each record has a line.
    parser : callable or None
        Makes the text of keys and values; None when they are not printed.
    skips_metadata : bool
        Whether offset, timestamp and the like of records are left out, and all of control records.
    max_bytes : int or None
        The bytes of the file that count; batches that end behind them do not.
    """

    records: bool = False
    parser: Parser | None = None
    skips_metadata: bool = False
    max_bytes: int | None = None


def dump_log(segment: Segment, wanted: Wanted, differences: Differences) -> Iterator[str | Fault]:
    """Return the lines of a log file; what could not be read comes as faults behind them."""
    if title := _title(segment):
        yield title
    if wanted.max_bytes is not None:
        segment = replace(segment, size=min(segment.size, wanted.max_bytes))
    log = Log.of_segment(segment)
    batches = log.scan("batches", BATCH_COLUMNS, ReadOptions(check_crc=True))
    # records of a batch with a bad crc are printed all the same, as far as they can be read; the batch says so
    records = log.scan(
        "records", RECORD_COLUMNS, ReadOptions(include_control=True, include_deleted=True, check_crc=False)
    )
    unshown: list[Fault] = []
    rows = _records(segment, records.batches(), wanted.parser, unshown) if wanted.records else iter(())
    record = next(rows, None)
    last_offset = -1  # Kafka calls any other first offset a jump
    for batch in _rows(batches.batches()):
        yield batch_line(batch)
        while record is not None and record["position"] == batch["position"]:
            if record["offset"] != last_offset + 1:
                differences.jumps.setdefault(segment.path, {})[last_offset] = record["offset"]
            last_offset = record["offset"]
            yield record_line(record, batch, wanted)
            record = next(rows, None)
    if wanted.max_bytes is None:
        yield from _torn(segment)
    yield from batches.faults
    known = {fault.position for fault in batches.faults}
    yield from (fault for fault in records.faults if fault.position not in known)
    yield from unshown


def _title(segment: Segment) -> str | None:
    """Return what is printed of a file as a whole."""
    if segment.base_offset is not None and not segment.state:
        return f"Log starting offset: {segment.base_offset}"
    snapshot = names.parse_metadata_snapshot(segment.path.name)
    if snapshot is not None:
        return f"Snapshot end offset: {snapshot[0]}, epoch: {snapshot[1]}"
    return "KRaft bootstrap snapshot" if segment.path.name == "bootstrap.checkpoint" else None


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _records(
    segment: Segment, batches: Iterator[pa.RecordBatch], parser: Parser | None, faults: list[Fault]
) -> Iterator[dict[str, Any]]:
    """Return records with the text of key and payload; ``faults`` receives those that have none."""
    for batch in batches:
        texts = Texts([None] * batch.num_rows, [None] * batch.num_rows) if parser is None else parser(batch)
        for row, record in enumerate(batch.to_pylist()):
            if row in texts.faults and not record["is_control"]:
                faults.append(located(segment, Fault("bad_message", texts.faults[row], record["position"])))
            yield {**record, "key_text": texts.keys[row], "payload_text": texts.payloads[row]}


def batch_line(batch: dict[str, Any]) -> str:
    """Return the line that kafka-dump-log prints for a batch."""
    if batch["magic"] < 2:
        start = f"offset: {batch['last_offset']}"
    else:
        first = batch["base_sequence"]
        last = -1 if first < 0 else (first + batch["last_offset_delta"]) & 0x7FFFFFFF
        start = (
            f"baseOffset: {batch['base_offset']} lastOffset: {batch['last_offset']} count: {batch['records_count']} "
            f"baseSequence: {first} lastSequence: {last} producerId: {batch['producer_id']} "
            f"producerEpoch: {batch['producer_epoch']} partitionLeaderEpoch: {batch['partition_leader_epoch']} "
            f"isTransactional: {java(batch['is_transactional'])} isControl: {java(batch['is_control'])} "
            f"deleteHorizonMs: {optional_long(batch['delete_horizon_ms'])}"
        )
    return (
        f"{start} position: {batch['position']} {batch['timestamp_type']}: {batch['max_timestamp_ms']} "
        f"size: {batch['size_in_bytes']} magic: {batch['magic']} compresscodec: {batch['compression']} "
        f"crc: {batch['crc']} isvalid: {java(batch['crc_ok'])}"
    )


def record_line(record: dict[str, Any], batch: dict[str, Any], wanted: Wanted) -> str:
    """Return the line that kafka-dump-log prints for a record."""
    line = "" if wanted.skips_metadata else _metadata(record, batch)
    if not batch["is_control"]:
        for title, text in (("key", record["key_text"]), ("payload", record["payload_text"])):
            if text is not None:
                line += f"{' ' if line else '| '}{title}: {text}"
    return line


def _metadata(record: dict[str, Any], batch: dict[str, Any]) -> str:
    line = (
        f"| offset: {record['offset']} {record['timestamp_type']}: {record['timestamp_ms']} "
        f"keySize: {_size(record['key'])} valueSize: {_size(record['value'])}"
    )
    if batch["magic"] >= 2:
        keys = ",".join(header["key"] for header in record["headers"])
        line += f" sequence: {record['sequence']} headerKeys: [{keys}]"
    else:
        is_valid, crc = _legacy_crc(record, batch)
        line += f" isValid: {java(is_valid)} crc: {crc}"
    return line + _control_text(record) if batch["is_control"] else line


def _control_text(record: dict[str, Any]) -> str:
    try:
        control = decode_control(record["key"] or b"", record["value"])
    except RecordError as error:
        return f" {error}"
    if control.control_type in ("ABORT", "COMMIT"):
        return f" endTxnMarker: {control.control_type} coordinatorEpoch: {control.fields['coordinatorEpoch']}"
    if not control.fields:
        return f" controlType: {control.control_type}"
    name = "".join(word.capitalize() for word in control.control_type.split("_")).replace("Kraft", "KRaft")
    colon = ":" if control.control_type == "LEADER_CHANGE" else ""
    fields = without_directories(control.fields) if colon and control.version == 0 else control.fields
    return f" {name}{colon} {json.dumps(fields, separators=(',', ':'), ensure_ascii=False)}"


def without_directories(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a LeaderChangeMessage as Kafka prints version 0, which has no directories of voters."""
    return {
        name: [{"voterId": voter["voterId"]} for voter in value] if isinstance(value, list) else value
        for name, value in fields.items()
    }


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _legacy_crc(record: dict[str, Any], batch: dict[str, Any]) -> tuple[bool, int]:
    """Return whether the crc of a message of magic 0 or 1 is right, and the crc.

    That of a message in a compressed one is computed; the timestamp type is taken to be that of the outer message.
    """
    if batch["compression"] == "none":
        return bool(batch["crc_ok"]), batch["crc"]
    is_append_time = record["timestamp_type"] == "LogAppendTime"
    data = struct.pack(">bb", batch["magic"], LOG_APPEND_TIME_BIT if is_append_time else 0)
    if batch["magic"] == 1:
        data += struct.pack(">q", record["timestamp_ms"])
    for part in (record["key"], record["value"]):
        data += struct.pack(">i", _size(part)) + (part or b"")
    return True, zlib.crc32(data)


def _torn(segment: Segment) -> Iterator[str]:
    torn = 0
    with segment_file(segment, [], strict=False) as file:  # what cannot be read was reported with the batches
        scan = HeaderScan(file)
        for _ in scan.headers():
            pass
        torn = scan.size - scan.torn_at if scan.torn_at >= 0 else 0
    if torn:
        yield f"Found {torn} invalid bytes at the end of {segment.path.name}"
