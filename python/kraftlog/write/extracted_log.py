"""Writes batches of a partition's log as a new log: offsets stay, index files and snapshots are rebuilt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kraftlog._native.checksum import crc32c
from kraftlog.codec.rewrite import rewrite_batches
from kraftlog.disk.disk import disk
from kraftlog.layout.segment import Segment
from kraftlog.read.lineage import NO_EPOCH
from kraftlog.types import Buffer
from kraftlog.write.extracted_batches import Piece
from kraftlog.write.log_end import find_log_end
from kraftlog.write.log_options import LogOptions
from kraftlog.write.partition_log import PartitionLog

_OPTIONS = LogOptions(fsync="close", allows_gaps=True)


@dataclass
class Written:
    """The extract of a partition.

    Attributes
    ----------
    records : int
        Number of records, without markers.
    size_in_bytes : int
        Size in bytes of all batches.
    copied_bytes : int
        Bytes of the batches in which only the leader epoch was changed.
    start_offset, end_offset : int
        Offset of the first batch, and the offset after the last one.
    last_epoch : int
        The largest leader epoch; -1 without one.
    crc32c : int
        Of the bytes of all batches.
    """

    records: int = 0
    size_in_bytes: int = 0
    copied_bytes: int = 0
    start_offset: int = 0
    end_offset: int = 0
    last_epoch: int = NO_EPOCH
    crc32c: int = 0


def write_extracted(
    folder: Path,
    pieces: Iterable[Piece],
    *,
    index_interval_bytes: int,
    leader_epoch: int | None,
    least_end_offset: int | None = None,
) -> Written:
    """Write a partition's folder and sync it; without batches there is no folder, unless ``least_end_offset`` is given.

    A segment begins where a segment of the source does, with the first batch that is taken from it.

    Parameters
    ----------
    folder : Path
        A folder that does not exist.
    pieces : iterable of Piece
    index_interval_bytes : int
        Kafka's ``index.interval.bytes``.
    leader_epoch : int or None
        Leader epoch of all batches; None keeps the epoch of each.
    least_end_offset : int, optional
        The next offset of the log, where the batches end before it: its records are gone, but not to be given again.

    Raises
    ------
    OSError
        When a step fails.
    """
    done, log = Written(), None
    segment: Segment | None = None
    try:
        for piece in pieces:
            if log is None:
                log = _new_log(folder, piece.base_offset, index_interval_bytes)
                done.start_offset = piece.base_offset
            elif piece.segment is not segment:
                log.roll(piece.base_offset)
            segment = piece.segment
            data = _with_epoch(piece.data, leader_epoch)
            log.append(data, commit=False)
            done.crc32c = crc32c(data, done.crc32c)
            done.records += piece.records
            done.size_in_bytes += len(piece.data)
            done.copied_bytes += len(piece.data) if piece.is_copied else 0
        if log is None and least_end_offset is not None:
            log = _new_log(folder, least_end_offset, index_interval_bytes)
            done.start_offset = least_end_offset
        if log is not None:
            if least_end_offset is not None and least_end_offset > log.next_offset:
                log.roll(least_end_offset)
            done.end_offset, done.last_epoch = log.next_offset, log.epochs.last
            log.close()
    finally:
        if log is not None:
            log.abandon()
    return done


def _new_log(folder: Path, start_offset: int, index_interval_bytes: int) -> PartitionLog:
    disk().make_new_folder(folder)
    end = find_log_end(folder, index_interval_bytes=index_interval_bytes, start_offset=start_offset)
    return PartitionLog(end, _OPTIONS)


def _with_epoch(data: bytes | memoryview, leader_epoch: int | None) -> Buffer:
    if leader_epoch is None:
        return data
    changed = bytearray(data)
    rewrite_batches(changed, partition_leader_epoch=leader_epoch)
    return changed
