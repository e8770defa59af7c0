"""``kraftlog dump``: the text of kafka-dump-log, for every file that stands in a partition's folder."""

from __future__ import annotations

import json
import sys
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
from kraftlog.layout.discover import Segment, discover, expanded_paths
from kraftlog.layout.index_files import read_index
from kraftlog.layout.small_files import read_producer_snapshot
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
    return f" {name} {json.dumps(control.fields, separators=(',', ':'), ensure_ascii=False)}"


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
    if batch["is_control"]:
        return line + _control_text(record)
    if contents:
        for title, data in (("key", record["key"]), ("payload", record["value"])):
            if data is not None:
                line += f" {title}: {data.decode('utf-8', 'replace')}"
    return line


def _rows(batches: Iterator[Any]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def dump_log(segment: Segment, *, deep: bool, contents: bool) -> Iterator[str | Fault]:
    """Return the lines of a log file; what could not be read comes as faults behind them."""
    if segment.base_offset is not None and not segment.state:
        yield f"Log starting offset: {segment.base_offset}"
    log = Log.of_segment(segment)
    batches = log.scan("batches", BATCH_COLUMNS, ReadOptions(check_crc=True))
    # records of a batch with a bad crc are printed all the same, as far as they can be read; the batch says so
    records = log.scan("records", RECORD_COLUMNS, ReadOptions(include_control=True, check_crc=False))
    rows = _rows(records.batches()) if deep else iter(())
    record = next(rows, None)
    last_offset, jumps = None, []
    for batch in _rows(batches.batches()):
        yield batch_line(batch)
        while record is not None and record["position"] == batch["position"]:
            if last_offset is not None and record["offset"] != last_offset + 1:
                jumps.append((last_offset, record["offset"]))
            last_offset = record["offset"]
            yield record_line(record, batch, contents=contents)
            record = next(rows, None)
    yield from _torn(segment)
    if jumps:
        yield f"Non-consecutive offsets in {segment.path}"
        yield from (f"  {before} is followed by {after}" for before, after in jumps)
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
    """Return the lines of an index file."""
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
    for row in zip(*entries.values(), strict=True):
        yield texts[kind].format(**dict(zip(entries, row, strict=True)))
    yield from faults


def dump_snapshot(path: LogPath) -> Iterator[str]:
    """Return the lines of a producer state snapshot."""
    for state in read_producer_snapshot(path):
        first = state.last_sequence - state.offset_delta if state.last_sequence >= 0 else -1
        yield (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} "
            f"currentTxnFirstOffset: {_optional(state.current_transaction_first_offset)} "
            f"lastTimestamp: {state.last_timestamp} firstSequence: {first} lastSequence: {state.last_sequence} "
            f"lastOffset: {state.last_offset} offsetDelta: {state.offset_delta} timestamp: {state.last_timestamp}"
        )


def _dump_file(path: LogPath, *, deep: bool, contents: bool) -> Iterator[str | Fault]:
    parsed = names.parse_segment_file(path.name)
    if parsed and parsed.kind == "snapshot":
        yield from dump_snapshot(path)
    elif parsed and parsed.kind != "log":
        yield from dump_index(path, parsed.kind, parsed.base_offset)
    else:
        yield from dump_log(discover(path).segments[0], deep=deep, contents=contents)


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
    its log files. Keys and values are printed as UTF-8.

    \b
    Example:
      kraftlog dump --print-data-log tests/golden/transactions/log/orders-0
    """  # noqa: D301  (\b keeps the example as it is)
    faults: list[Fault] = []
    for given in paths:
        for path in _files(given):
            print(f"Dumping {path}")
            for line in _dump_file(path, deep=deep_iteration or print_data_log, contents=print_data_log):
                if isinstance(line, Fault):
                    faults.append(line)
                else:
                    print(line)
    sys.stdout.flush()
    sys.exit(report_faults(faults))


def _is_folder(path: LogPath) -> bool:
    entry = disk().entry(path)
    return entry is not None and entry.is_dir
