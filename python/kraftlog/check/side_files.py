"""One index or snapshot file, by itself and against the log next to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kraftlog.check.partitions import check_segments
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError, Fault
from kraftlog.layout import names
from kraftlog.layout.discover import discover
from kraftlog.layout.index_files import read_index
from kraftlog.layout.producer_snapshot import read_producer_snapshot
from kraftlog.layout.segment import Segment
from kraftlog.read.end_offset import end_offset
from kraftlog.read.log_pass import Pass

SNAPSHOT = "snapshot"
OF_ITS_SEGMENT = ("index", "timeindex")  # the others depend on earlier segments, too
MISMATCHES = ("index_mismatch", "txnindex_mismatch", "snapshot_mismatch")


def is_side_file(path: LogPath) -> bool:
    """Whether the name is that of an index file or a snapshot of producers."""
    parsed = names.parse_segment_file(path.name)
    return parsed is not None and parsed.kind in names.KINDS_BESIDE


def side_file_faults(path: LogPath, notes: list[str]) -> Iterator[Fault]:
    """Return the faults of an index file or a snapshot of producers.

    Parameters
    ----------
    path : Path or RemotePath
    notes : list of str
        Receives the reason if the file was not compared with a log.

    Raises
    ------
    OSError
        When the file cannot be read.
    """
    parsed = names.parse_segment_file(path.name)
    assert parsed is not None
    folder = path.absolute().parent
    topic, partition = names.parse_partition_folder(folder.name) or (None, None)
    for fault in _own_faults(path, parsed.kind, parsed.base_offset):
        yield replace(fault, topic=topic, partition=partition, segment_base_offset=parsed.base_offset)
    segments = _log_of(path, parsed.kind, parsed.base_offset)
    if not segments:
        where = "no log next to it reaches its offset" if parsed.kind == SNAPSHOT else "its log is not next to it"
        notes.append(f"{path}: {where}; only its own structure was checked")
        return
    others = 0
    for fault in check_segments(segments, Pass()):
        if fault.error in MISMATCHES and path.name in fault.message:
            yield fault
        else:
            others += fault.error not in MISMATCHES
    if others:
        errors = "1 error" if others == 1 else f"{others} errors"
        notes.append(f"{path}: its log has {errors}, which may hide differences; kraftlog verify {folder} lists them")


def _own_faults(path: LogPath, kind: str, base_offset: int) -> list[Fault]:
    """Return the faults of the structure."""
    faults: list[Fault] = []
    if kind != SNAPSHOT:
        read_index(path, kind, base_offset, faults)
        return faults
    try:
        read_producer_snapshot(path)
    except CorruptRecordError as error:
        faults.append(Fault("bad_snapshot", str(error)))
    return faults


def _log_of(path: LogPath, kind: str, base_offset: int) -> list[Segment]:
    """Return the segments of the folder with which a file can be compared; an empty list if there are none."""
    try:
        segments = [segment for segment in discover(path.absolute().parent).segments if not segment.state]
    except ValueError:  # a folder without log files
        return []
    own = [segment for segment in segments if segment.base_offset == base_offset]
    if kind in OF_ITS_SEGMENT:
        return own
    if kind == SNAPSHOT and segments and not own:
        return segments if end_offset(segments[-1], []) == base_offset else []
    return segments if own else []
