"""``kraftlog dump``: the text of kafka-dump-log, for every file that stands in a partition's folder."""

from __future__ import annotations

import codecs
import json
import struct
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import click

from kraftlog.cli import options
from kraftlog.cli.report import report_faults
from kraftlog.codec.control import decode_control
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault, RecordError
from kraftlog.layout import names
from kraftlog.layout.discover import discover, expanded_paths
from kraftlog.layout.index_files import ENTRY_TYPES, PREALLOCATED, read_index
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import segment_file
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
RECORD_COLUMNS = ["position", "offset", "timestamp_ms", "timestamp_type", "sequence", "key", "value", "headers"]


JAVA_REPLACEMENT = "java-replacement"
LOG_APPEND_TIME_BIT = 8
Jumps = dict[LogPath, list[tuple[int, int]]]


def _java(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


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
            f"isTransactional: {_java(batch['is_transactional'])} isControl: {_java(batch['is_control'])} "
            f"deleteHorizonMs: {_optional(batch['delete_horizon_ms'])}"
        )
    return (
        f"{start} position: {batch['position']} {batch['timestamp_type']}: {batch['max_timestamp_ms']} "
        f"size: {batch['size_in_bytes']} magic: {batch['magic']} compresscodec: {batch['compression']} "
        f"crc: {batch['crc']} isvalid: {_java(batch['crc_ok'])}"
    )


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


def record_line(record: dict[str, Any], batch: dict[str, Any], *, contents: bool) -> str:
    """Return the line that kafka-dump-log prints for a record."""
    line = (
        f"| offset: {record['offset']} {record['timestamp_type']}: {record['timestamp_ms']} "
        f"keySize: {_size(record['key'])} valueSize: {_size(record['value'])}"
    )
    if batch["magic"] >= 2:
        keys = ",".join(header["key"] for header in record["headers"])
        line += f" sequence: {record['sequence']} headerKeys: [{keys}]"
    else:
        is_valid, crc = _legacy_crc(record, batch)
        line += f" isValid: {_java(is_valid)} crc: {crc}"
    if batch["is_control"]:
        return line + _control_text(record)
    if contents:
        for title, data in (("key", record["key"]), ("payload", record["value"])):
            if data is not None:
                line += f" {title}: {data.decode('utf-8', JAVA_REPLACEMENT)}"
    return line


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


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Replace malformed UTF-8 as ``new String(bytes, UTF_8)`` does, which takes an encoded surrogate for one."""
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start
    if data[at] == 0xED and data[at + 1 : at + 2] >= b"\xa0" and data[at + 1] < 0xC0:
        return "\ufffd", at + 2 + (0x80 <= data[at + 2] < 0xC0 if at + 2 < len(data) else 0)
    return "\ufffd", error.end


codecs.register_error(JAVA_REPLACEMENT, _replace_as_java)


def _rows(batches: Iterator[Any]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _title(segment: Segment) -> str | None:
    """Return what is printed of a file as a whole."""
    if segment.base_offset is not None and not segment.state:
        return f"Log starting offset: {segment.base_offset}"
    snapshot = names.parse_metadata_snapshot(segment.path.name)
    if snapshot is not None:
        return f"Snapshot end offset: {snapshot[0]}, epoch: {snapshot[1]}"
    return "KRaft bootstrap snapshot" if segment.path.name == "bootstrap.checkpoint" else None


def dump_log(segment: Segment, jumps: Jumps, *, deep: bool, contents: bool) -> Iterator[str | Fault]:
    """Return the lines of a log file; what could not be read comes as faults behind them.

    Offsets that do not follow the one before are noted in ``jumps``.
    """
    if title := _title(segment):
        yield title
    log = Log.of_segment(segment)
    batches = log.scan("batches", BATCH_COLUMNS, ReadOptions(check_crc=True))
    # records of a batch with a bad crc are printed all the same, as far as they can be read; the batch says so
    records = log.scan(
        "records", RECORD_COLUMNS, ReadOptions(include_control=True, include_deleted=True, check_crc=False)
    )
    rows = _rows(records.batches()) if deep else iter(())
    record = next(rows, None)
    last_offset = -1  # Kafka calls any other first offset a jump
    for batch in _rows(batches.batches()):
        yield batch_line(batch)
        while record is not None and record["position"] == batch["position"]:
            if record["offset"] != last_offset + 1:
                jumps.setdefault(segment.path, []).append((last_offset, record["offset"]))
            last_offset = record["offset"]
            yield record_line(record, batch, contents=contents)
            record = next(rows, None)
    yield from _torn(segment)
    yield from batches.faults
    known = {fault.position for fault in batches.faults}
    yield from (fault for fault in records.faults if fault.position not in known)


def _torn(segment: Segment) -> Iterator[str]:
    torn = 0
    with segment_file(segment, [], strict=False) as file:  # what cannot be read was reported with the batches
        scan = HeaderScan(file)
        for _ in scan.headers():
            pass
        torn = scan.size - scan.torn_at if scan.torn_at >= 0 else 0
    if torn:
        yield f"Found {torn} invalid bytes at the end of {segment.path.name}"


def dump_index(path: LogPath, kind: str, base_offset: int) -> Iterator[str | Fault]:
    """Return the lines of an index file; of one that is preallocated up to its first entry that is zero."""
    faults: list[Fault] = []
    entries = read_index(path, kind, base_offset, faults)
    texts = {
        "index": "offset: {offset} position: {position}",
        "timeindex": "timestamp: {timestamp} offset: {offset}",
        "txnindex": (
            "version: {version} producerId: {producer_id} firstOffset: {offset} lastOffset: {last_offset} "
            "lastStableOffset: {lso}"
        ),
    }
    rows = [dict(zip(entries, row, strict=True)) for row in zip(*entries.values(), strict=True)]
    entry = disk().entry(path)
    size = (entry and entry.size) or 0
    if kind == "index" and size < ENTRY_TYPES[kind].itemsize:
        yield f"{path} is empty."
    elif kind in PREALLOCATED and not rows and size >= ENTRY_TYPES[kind].itemsize:
        rows = [{"offset": base_offset, "position": 0, "timestamp": 0}]  # nothing but zeros
    for row in rows:
        yield texts[kind].format(**row)
    yield from faults


def dump_snapshot(path: LogPath) -> Iterator[str]:
    """Return the lines of a producer state snapshot."""
    for state in read_producer_snapshot(path):
        first = state.last_sequence - state.offset_delta if state.last_sequence >= 0 else -1
        line = (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} "
            f"currentTxnFirstOffset: {_optional(state.current_transaction_first_offset)} "
            f"lastTimestamp: {state.last_timestamp}"
        )
        if state.last_offset >= 0:  # else there is no batch of the producer's
            line += (
                f" firstSequence: {first} lastSequence: {state.last_sequence} lastOffset: {state.last_offset} "
                f"offsetDelta: {state.offset_delta} timestamp: {state.last_timestamp}"
            )
        yield line


def _dump_file(path: LogPath, jumps: Jumps, *, deep: bool, contents: bool) -> Iterator[str | Fault]:
    parsed = names.parse_segment_file(path.name)
    if parsed and parsed.kind == "snapshot":
        yield from dump_snapshot(path)
    elif parsed and parsed.kind != "log":
        yield from dump_index(path, parsed.kind, parsed.base_offset)
    else:
        yield from dump_log(discover(path).segments[0], jumps, deep=deep, contents=contents)


def _files(given: str) -> list[LogPath]:
    """Return the files that a path or a glob names; of a folder, its log files."""
    files: list[LogPath] = []
    for path in expanded_paths(given):
        files += [segment.path for segment in discover(path).segments] if _is_folder(path) else [path]
    return files


@click.command()
@options.PATHS
@click.option("--print-data-log", is_flag=True, help="Print keys and values; implies --deep-iteration.")
@click.option("--deep-iteration", is_flag=True, help="Print a line for each record as well.")
def dump(paths: tuple[str, ...], print_data_log: bool, deep_iteration: bool) -> None:
    """Print the text of kafka-dump-log.

    Takes log files, snapshots of the metadata log, .index, .timeindex, .txnindex and .snapshot files; of a folder all
    its log files. Keys and values are printed as UTF-8. Offsets that jump are listed on stderr behind all files. Index
    files are not compared with the log: verify does that.

    \b
    Example:
      kraftlog dump --print-data-log tests/golden/transactions/log/orders-0
    """  # noqa: D301  (\b keeps the example as it is)
    faults: list[Fault] = []
    jumps: Jumps = {}
    for given in paths:
        for path in _files(given):
            print(f"Dumping {path}")
            for line in _dump_file(path, jumps, deep=deep_iteration or print_data_log, contents=print_data_log):
                if isinstance(line, Fault):
                    faults.append(line)
                else:
                    print(line)
    sys.stdout.flush()
    for path, pairs in jumps.items():
        print(f"Non-consecutive offsets in {path.absolute()}", file=sys.stderr)
        for before, after in pairs:
            print(f"  {before} is followed by {after}", file=sys.stderr)
    sys.exit(report_faults(faults))


def _is_folder(path: LogPath) -> bool:
    entry = disk().entry(path)
    return entry is not None and entry.is_dir


COMMANDS = [dump]
