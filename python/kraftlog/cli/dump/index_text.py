"""Index files and producer snapshots as kafka-dump-log prints them, and what of an index differs from its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kraftlog.cli.dump.differences import Differences
from kraftlog.cli.dump.java_text import optional_long
from kraftlog.codec.headers import NO_TIMESTAMP, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout.discover import discover
from kraftlog.layout.index_files import ENTRY_TYPES, PREALLOCATED, IndexColumns, read_index, recovery_fault
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.layout.segment import Segment
from kraftlog.read.segment_reader import segment_headers
from kraftlog.tables.log import Log

TEXTS = {
    "index": "offset: {offset} position: {position}",
    "timeindex": "timestamp: {timestamp} offset: {offset}",
    "txnindex": (
        "version: {version} producerId: {producer_id} firstOffset: {offset} lastOffset: {last_offset} "
        "lastStableOffset: {lso}"
    ),
}
_LARGEST_SEQUENCE = 2**31 - 1

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class IndexFile:
    """A file beside a log file.

    Attributes
    ----------
    path : Path or RemotePath
    kind : {"index", "timeindex", "txnindex"}
    base_offset : int
    """

    path: LogPath
    kind: str
    base_offset: int

    @property
    def segment(self) -> Segment | None:
        """The segment whose entries it has; None when its log file is not there."""
        path = self.beside("log")
        return discover(path).segments[0] if path is not None else None

    def beside(self, kind: str) -> LogPath | None:
        """Return the path of another file of the segment; None when it is not there."""
        path = self.path.parent / f"{self.base_offset:020}.{kind}"
        return path if disk().entry(path) is not None else None


def dump_index(
    file: IndexFile, differences: Differences, *, only_checked: bool, only_verified: bool
) -> Iterator[str | Fault]:
    """Return the lines of an index file; of one that is preallocated up to its first entry that is zero.

    Parameters
    ----------
    file : IndexFile
    differences : Differences
        Receives what differs from the log.
    only_checked : bool
        Whether only that is checked what a broker checks when it starts.
    only_verified : bool
        Whether entries are compared with the log and not printed.
    """
    entry = disk().entry(file.path)
    size = (entry and entry.size) or 0
    if file.kind == "index" and size < ENTRY_TYPES[file.kind].itemsize:
        yield f"{file.path} is empty."
        return
    if only_checked and file.kind in PREALLOCATED:
        fault = recovery_fault(file.path, file.kind, file.base_offset)
        yield f"{file.path} passed sanity check." if fault is None else fault
        return
    faults: list[Fault] = []
    entries = read_index(file.path, file.kind, file.base_offset, faults)
    if file.kind in PREALLOCATED and not len(entries["offset"]) and size >= ENTRY_TYPES[file.kind].itemsize:
        zeros = {"offset": [file.base_offset], "position": [0], "timestamp": [0]}
        entries = {name: np.array(zeros[name], np.int64) for name in entries}  # nothing but zeros
    if not (only_verified and file.kind in PREALLOCATED):
        for row in zip(*(values.tolist() for values in entries.values()), strict=True):
            yield TEXTS[file.kind].format(**dict(zip(entries, row, strict=True)))
    if file.kind in PREALLOCATED and len(entries["offset"]):
        compare = _compare_offsets if file.kind == "index" else _compare_timestamps
        compare(file, entries, differences, faults)
    yield from faults


def _compare_offsets(file: IndexFile, entries: IndexColumns, differences: Differences, faults: list[Fault]) -> None:
    positions, last = _batches(file, faults)
    for offset, position in zip(entries["offset"].tolist(), entries["position"].tolist(), strict=True):
        at = int(np.searchsorted(positions, position))
        if at == len(positions) or positions[at] != position:
            faults.append(_index_fault(file, f"no batch starts at byte {position}, where offset {offset} should be"))
        elif last[at] != offset:
            differences.mismatches.setdefault(file.path, {})[offset] = int(last[at])


def _compare_timestamps(file: IndexFile, entries: IndexColumns, differences: Differences, faults: list[Fault]) -> None:
    positions, last = _batches(file, faults)
    largest = _largest_timestamps(file)
    index_path = file.beside("index")
    index = None if index_path is None else read_index(index_path, "index", file.base_offset, [])
    before = NO_TIMESTAMP
    for offset, timestamp in zip(entries["offset"].tolist(), entries["timestamp"].tolist(), strict=True):
        behind = np.flatnonzero((positions >= _start(index, offset)) & (last >= offset))
        found = int(last[behind[0]]) if len(behind) else -1
        if found != offset:
            differences.not_found.setdefault(file.path, []).append((offset, found))
        else:
            of_log = largest.get(int(positions[behind[0]]), NO_TIMESTAMP)
            if of_log != timestamp:
                differences.timestamps.setdefault(file.path, []).append((timestamp, of_log))
            if before >= timestamp:
                differences.out_of_order.setdefault(file.path, []).append((timestamp, before))
        before = timestamp


def _batches(file: IndexFile, faults: list[Fault]) -> tuple[Numbers, Numbers]:
    """Return positions and last offsets of the batches of the log; faults when it is not there."""
    if file.segment is None:
        faults.append(_index_fault(file, f"not compared with {file.base_offset:020}.log, which is not beside it"))
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    found = [(headers["position"], last_offsets(headers)) for headers in segment_headers(file.segment, [])]
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] or [np.zeros(0, np.int64)] * 2
    return columns[0].astype(np.int64), columns[1].astype(np.int64)


def _largest_timestamps(file: IndexFile) -> dict[int, int]:
    """Return the largest timestamp of the records of each batch, by its position."""
    if file.segment is None:
        return {}
    options = ReadOptions(include_control=True, include_deleted=True, check_crc=False)
    rows = Log.of_segment(file.segment).scan("records", ["position", "timestamp_ms"], options).to_table()
    found = rows.group_by("position").aggregate([("timestamp_ms", "max")])
    stamps = found.column("timestamp_ms_max").fill_null(NO_TIMESTAMP).to_pylist()
    return dict(zip(found.column("position").to_pylist(), stamps, strict=True))


def _start(index: IndexColumns | None, offset: int) -> int:
    """Return the byte from which on an offset is searched for."""
    if index is None:
        return 0
    at = int(np.searchsorted(index["offset"], offset, side="right")) - 1
    return int(index["position"][at]) if at >= 0 else 0


def _index_fault(file: IndexFile, what: str) -> Fault:
    return Fault("index_mismatch", f"{file.path.parent.name}/{file.path.name}: {what}")


def dump_snapshot(path: LogPath) -> Iterator[str | Fault]:
    """Return the lines of a producer state snapshot."""
    try:
        states = read_producer_snapshot(path)
    except CorruptRecordError as error:
        yield Fault("bad_snapshot", f"{path.parent.name}/{error}")
        return
    for state in states:
        line = (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch} "
            f"coordinatorEpoch: {state.coordinator_epoch} "
            f"currentTxnFirstOffset: {optional_long(state.current_transaction_first_offset)} "
            f"lastTimestamp: {state.last_timestamp}"
        )
        if state.last_offset >= 0:  # else there is no batch of the producer's
            line += (
                f" firstSequence: {_first_sequence(state.last_sequence, state.offset_delta)} "
                f"lastSequence: {state.last_sequence} lastOffset: {state.last_offset} "
                f"offsetDelta: {state.offset_delta} timestamp: {state.last_timestamp}"
            )
        yield line


def _first_sequence(last: int, delta: int) -> int:
    """Return the sequence that lies so far before another; those after the largest start with 0 again."""
    return last - delta if last >= delta else last - delta + _LARGEST_SEQUENCE + 1
