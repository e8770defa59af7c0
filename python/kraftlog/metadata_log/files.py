"""The files of a metadata log: its segments, its snapshots, and offsets and times from their batch headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.layout import names
from kraftlog.layout.backups import resolved
from kraftlog.layout.discover import discover
from kraftlog.layout.segment import Segment
from kraftlog.messages.arrow_types import UUID_BINARY
from kraftlog.messages.format_of import format_of_topic
from kraftlog.read.log_pass import Pass
from kraftlog.read.messages import typed_chunks
from kraftlog.read.metadata_decisions import SNAPSHOT, is_last_segment
from kraftlog.read.partitions import by_partition, is_metadata
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import segment_file
from kraftlog.topics import CLUSTER_METADATA

HEADER = "SnapshotHeaderRecord"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of everything before an offset.

    Attributes
    ----------
    end_offset : int
        The offset after the last record that it replaces; 0 for ``bootstrap.checkpoint``.
    epoch : int
        Epoch of that record.
    """

    segment: Segment
    end_offset: int
    epoch: int


class MetadataLog:
    """One metadata log, or one snapshot of it.

    Parameters
    ----------
    segments : sequence of Segment
        Segments of one partition, in order; or only a snapshot.

    Raises
    ------
    ValueError
        When they belong to no metadata log, or to several.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        groups = by_partition(segment for segment in segments if segment.state in ("", SNAPSHOT))
        if len(groups) != 1:
            folders = ", ".join(sorted({str(group[0].path) for group in groups}))
            raise ValueError(f"one metadata log is needed, not {len(groups)}{': ' if groups else ''}{folders}")
        # independent of the folder's name: ``node-1`` would be taken for the partition of a topic
        self.segments = [replace(segment, topic=CLUSTER_METADATA, partition=0) for segment in groups[0]]
        self.is_snapshot = self.segments[0].state == SNAPSHOT

    @classmethod
    def open(cls, path: str | LogPath) -> MetadataLog:
        """Open the folder of a metadata log, a log directory that has it, or one snapshot.

        In a folder with snapshots but no log the latest snapshot is opened.

        Raises
        ------
        FileNotFoundError
            When the path does not exist.
        ValueError
            When there is no metadata log, or more than one.
        """
        where = resolved(path)
        entry = disk().entry(where)
        if entry is not None and entry.is_file:
            segments = discover(where).segments
            others = {segment.topic for segment in segments if format_of_topic(segment.topic or "")} - {
                CLUSTER_METADATA
            }
            if others:
                raise ValueError(f"{path} is of {others.pop()}, not of the metadata log")
            return cls(segments)
        for folder in (where, where / f"{CLUSTER_METADATA}-0"):
            snapshots = disk().matches(folder, "[0-9]*-[0-9]*.checkpoint")
            latest = max(snapshots, default=None, key=str)
            # Kafka also starts from a snapshot without a log
            if latest is not None and not disk().matches(folder, "*.log"):
                return cls(discover(latest).segments)
        discovery = discover(where)
        segments = [one for one in discovery.segments if is_metadata(one)]
        if not segments:
            denied = [f"; {item.name}: {item.reason}" for item in discovery.unread if item.is_fault]
            raise ValueError(f"{path}: no metadata log in it{''.join(denied)}")
        return cls(segments)

    @property
    def folders(self) -> set[LogPath]:
        """The folder of its files."""
        return {segment.path.absolute().parent for segment in self.segments}

    @property
    def start_offset(self) -> int:
        """Base offset of its first segment."""
        return self.segments[0].base_offset or 0

    @cached_property
    def end_offset(self) -> int:
        """The offset after the last readable batch, regardless of snapshots."""
        for segment in reversed(self.segments):
            with segment_file(segment, [], strict=False) as file:
                from_index = seek(segment, file, ReadOptions(start_offset=NO_BOUND))[0]
            for start in dict.fromkeys((from_index, 0)):
                last = [int(last_offsets(headers).max()) for headers in _headers(segment, start)]
                if last:
                    return max(last) + 1
        return self.start_offset

    @cached_property
    def snapshot_ahead(self) -> Snapshot | None:
        """The newest snapshot, if it ends after the log.

        A node that died after fetching it has such files. Kafka's ``truncateToLatestSnapshot`` then drops the log: the
        snapshot is the node's state.
        """
        newest = self.snapshots[0] if self.snapshots and not self.is_snapshot else None
        if newest is None or newest.end_offset <= (self.segments[-1].base_offset or 0):
            return None
        if newest.end_offset <= self.end_offset:
            return None
        folder = self.segments[-1].folder.absolute()
        is_last = is_last_segment(self.segments[-1], (entry.name for entry in disk().entries(folder)))
        return newest if is_last else None

    @property
    def last_offset(self) -> int:
        """The last offset of the image at the end: of the log, or of a snapshot that ends after it."""
        ahead = self.snapshot_ahead
        return (self.end_offset if ahead is None else ahead.end_offset) - 1

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """The finished snapshots, the latest first."""
        folder = self.segments[0].folder.absolute()
        paths = [path for path in disk().matches(folder, "*") if names.parse_checkpoint_file(path.name) == ""]
        numbered = [path for path in paths if path.name[0].isdigit()]
        snapshots = [snapshot_of(segment) for segment in discover(numbered).segments] if numbered else []
        return sorted(snapshots, key=lambda one: (one.end_offset, one.epoch), reverse=True)

    def known_start(self, offset: int) -> int | None:
        """Return the end of the last snapshot up to an offset, where no transaction is open; None without one."""
        if self.is_snapshot:
            return None
        ends = [one.end_offset for one in self.snapshots if self.start_offset <= one.end_offset <= offset]
        return max((end for end in ends if end > 0), default=None)

    def segment_of(self, offset: int) -> Segment:
        """Return the segment for an offset."""
        before = [segment for segment in self.segments if (segment.base_offset or 0) <= offset]
        return before[-1] if before else self.segments[0]

    def batch_at(self, offset: int) -> Headers | None:
        """Return the header of the sound batch with an offset, as an array of one; None without such a batch."""
        segment = self.segment_of(offset)
        with segment_file(segment, [], strict=False) as file:
            start = seek(segment, file, ReadOptions(start_offset=offset))[0]
        for headers in _headers(segment, start):
            at = np.flatnonzero((headers["base_offset"] <= offset) & (last_offsets(headers) >= offset))
            if len(at):
                return headers[at[:1]]
        return None

    def last_offset_of(self, epoch: int) -> int:
        """Return the last offset of a leader epoch or an earlier one; without one the offset before the log."""
        last_offset = self.start_offset - 1
        for segment in self.segments:
            for headers in _headers(segment):
                at = np.flatnonzero(headers["partition_leader_epoch"] <= epoch)
                last_offset = int(last_offsets(headers)[at[-1]]) if len(at) else last_offset
        return last_offset

    def offset_at(self, timestamp: int) -> int:
        """Return the last offset that was appended at or before a time in milliseconds.

        If a snapshot ends after the log, it is the snapshot's last offset from the snapshot's time on, and before that
        the last offset of the log: the records in between are missing.

        Raises
        ------
        ValueError
            When the log begins later.
        """
        last_offset = latest = None
        for segment in self.segments:
            for headers in _headers(segment):
                latest = max(int(headers["max_timestamp"].max()), -1 if latest is None else latest)
                stamps = headers["max_timestamp"]
                at = np.flatnonzero((stamps >= 0) & (stamps <= timestamp))
                last_offset = int(last_offsets(headers)[at[-1]]) if len(at) else last_offset
        ahead = self.snapshot_ahead
        if ahead is not None and (latest is None or latest <= timestamp):
            stamp = last_contained_timestamp(ahead.segment)
            if 0 <= stamp <= timestamp:
                return ahead.end_offset - 1
            last_offset = None if last_offset is None else ahead.end_offset - 2
        if last_offset is None:
            raise ValueError(f"timestamp {timestamp} is before the first one of the log")
        return last_offset


def snapshot_of(segment: Segment) -> Snapshot:
    """Parse the name of a snapshot's file."""
    identity = segment.path.name.split(".")[0].split("-")
    end_offset, epoch = (int(part) for part in identity) if len(identity) == 2 else (0, 0)
    return Snapshot(segment, end_offset, epoch)


def last_contained_timestamp(snapshot: Segment) -> int:
    """Return the append time of the last record that a snapshot replaces, from its header; else -1."""
    options = ReadOptions(include_control=True, end_offset=1)
    for chunk in typed_chunks([snapshot], [], Pass(options), uuid=UUID_BINARY):
        if HEADER in chunk.messages.types_there:
            stamps = chunk.messages.typed(HEADER).fields.column("last_contained_log_timestamp")
            return int(stamps[0].as_py()) if len(stamps) else -1
    return -1


def _headers(segment: Segment, start: int = 0) -> Iterator[Headers]:
    """Return the headers of sound batches; faults are reported where records are read."""
    with segment_file(segment, [], strict=False) as file:
        for headers in HeaderScan(file, start, check_crc=True).headers():
            sound = headers[headers["crc_ok"] != 0]
            if len(sound):
                yield sound
