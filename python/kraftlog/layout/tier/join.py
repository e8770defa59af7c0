"""Partitions whose log is in a remote tier, completely or up to the start of the local log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import numpy as np

from kraftlog.codec.header_scan import HeaderScan, indexed_batch
from kraftlog.codec.headers import last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.part_path import PartPath
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import CorruptRecordError
from kraftlog.layout.checkpoints import LEADER_EPOCHS, read_leader_epochs, read_properties
from kraftlog.layout.names import LARGEST_OFFSET, PARTITION_METADATA
from kraftlog.layout.segment import Segment
from kraftlog.layout.tier.find import UNREADABLE_TIER
from kraftlog.layout.tier.lineage import NO_END, SegmentChoice, Taken, log_of, newest_epochs
from kraftlog.layout.tier.stored_segment import Epochs, StoredSegment
from kraftlog.layout.unread import TIER_DUPLICATE, TIER_ORPHAN, Unread
from kraftlog.topics import TopicPartition
from kraftlog.types import InputFile

TIER_GAP = "tier_gap"
_INDEXES = ("index", "timeindex", "txnindex")


@dataclass
class Joined:
    """Segments that are read from a remote tier, and its faults and notes."""

    segments: list[Segment] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def join(local: Iterable[Segment], stored: Iterable[StoredSegment]) -> Joined:
    """Return the segments of a remote tier that belong to logs, up to the start of the local log.

    Parameters
    ----------
    local : iterable of Segment
        Live segments of log directories, which take precedence over the tier.
    stored : iterable of StoredSegment
        Segments whose copy was finished.
    """
    joined = Joined()
    folders: dict[TopicPartition, dict[LogPath, list[Segment]]] = {}
    for one in local:
        if not one.state and one.base_offset is not None and one.topic_partition is not None:
            folders.setdefault(one.topic_partition, {}).setdefault(one.folder, []).append(one)
    ordered = sorted(stored, key=lambda one: (one.topic_partition, one.topic_id))
    for of, of_partition in groupby(ordered, key=lambda one: one.topic_partition):
        by_id = {topic_id: list(some) for topic_id, some in groupby(of_partition, key=lambda one: one.topic_id)}
        if of not in folders:
            for some in by_id.values():
                _Log(some, None, joined).join()
            continue
        for folder, segments in folders[of].items():
            chosen = _of_topic_id(by_id, folder, joined)
            if chosen:
                _Log(chosen, sorted(segments, key=lambda one: one.base_offset or 0), joined).join()
    return joined


def _of_topic_id(by_id: dict[str, list[StoredSegment]], folder: LogPath, joined: Joined) -> list[StoredSegment]:
    """Return the segments of a folder's topic id; deleted topics of the same name have left others."""
    path = folder / PARTITION_METADATA
    try:
        topic_id = read_properties(path).get("topic_id")
    except FileNotFoundError:
        topic_id = None
    except (OSError, CorruptRecordError) as error:
        joined.unread.append(_odd(path, next(iter(by_id.values()))[0], str(error), "bad_checkpoint"))
        topic_id = None
    if topic_id is None:
        if len(by_id) == 1:
            return next(iter(by_id.values()))
        ids = ", ".join(sorted(by_id))
        why = f"expected a topic id, as the remote tier has several ({ids}), found no {PARTITION_METADATA}"
        joined.unread.append(_odd(folder, next(iter(by_id.values()))[0], why, UNREADABLE_TIER))
        return []
    for other, segments in by_id.items():
        if other != topic_id:
            why = f"of the topic id {other}, that of the log directory is {topic_id}"
            joined.unread += [_odd(one.path, one, why, TIER_ORPHAN) for one in segments]
    return by_id.get(topic_id, [])


def _odd(path: LogPath, of: StoredSegment, why: str, error: str) -> Unread:
    return Unread(path, of.size, why, of.topic, of.partition, of.base_offset, error)


class _Log:
    """The log of one partition with segments in the remote tier."""

    def __init__(self, stored: Sequence[StoredSegment], local: Sequence[Segment] | None, joined: Joined) -> None:
        self._stored = sorted(stored, key=lambda one: (one.event_timestamp_ms, one.epochs[-1][0], one.end_offset))
        self._local = local
        self._joined = joined

    def join(self) -> None:
        """Choose segments, and note faults."""
        lineage = self._lineage()
        taken = log_of(SegmentChoice(self._stored), lineage)
        self._note_unused(taken, lineage)
        limit = NO_END if self._local is None else self._local[0].base_offset or 0
        log_start = 0 if self._local is None else self._local[0].log_start_offset
        parts = [part._replace(end=min(part.end, limit - 1)) for part in taken if part.start < limit]
        self._note_gaps(parts, limit, log_start)
        before: Taken | None = None
        for part in parts:
            segment = self._segment(part, before, log_start)
            if segment is not None:
                self._joined.segments.append(segment)
            before = part

    def _lineage(self) -> Epochs:
        """Return the leader epochs of the log: from the replica's folder, or from the newest segment that has them."""
        newest = newest_epochs(self._stored)
        for of in (None, *newest):
            if of is None:
                path = None if self._local is None else self._local[0].folder / LEADER_EPOCHS
            else:
                path = of.leader_epochs
            if path is None:
                continue
            try:
                epochs = tuple(read_leader_epochs(path)) if of is None else of.history()
            except FileNotFoundError:
                continue
            except (OSError, CorruptRecordError) as error:
                self._joined.unread.append(_odd(path, newest[0] if of is None else of, str(error), "bad_checkpoint"))
                continue
            if epochs:
                return epochs
        first_offsets: dict[int, int] = {}
        for one in newest:
            for epoch, first in one.epochs:
                first_offsets[epoch] = min(first, first_offsets.get(epoch, first))
        return tuple(sorted(first_offsets.items()))

    def _note_unused(self, taken: Sequence[Taken], lineage: Epochs) -> None:
        used = {part.segment.segment_id for part in taken}
        for one in self._stored:
            if one.segment_id in used:
                continue
            other = next((part for part in taken if part.start <= one.base_offset <= part.end), None)
            if other is not None and _is_within(one, lineage):
                why = f"offsets {one.base_offset} to {one.end_offset} are read from {other.segment.file_name}"
                self._joined.unread.append(_odd(one.path, one, why, TIER_DUPLICATE))
            else:
                epochs = ", ".join(f"{epoch} from offset {first}" for epoch, first in one.epochs)
                why = f"not of this log: its leader epochs are {epochs}, those of the log are others"
                self._joined.unread.append(_odd(one.path, one, why, TIER_ORPHAN))

    def _note_gaps(self, parts: Sequence[Taken], limit: int, log_start: int) -> None:
        """Note offsets that no segment has, from the expected first one to the start of the local log."""
        ranges = [(part.start, part.end) for part in parts]
        first = (log_start, log_start - 1) if log_start else None
        last = (limit, limit) if limit != NO_END and parts else None
        for (_, end), (start, _) in pairwise([one for one in (first, *ranges, last) if one is not None]):
            if end + 1 < start:
                of = parts[0].segment
                why = f"expected offsets {end + 1} to {start - 1}, found no segment that has them"
                self._joined.unread.append(Unread(of.folder, 0, why, of.topic, of.partition, end + 1, TIER_GAP))

    def _segment(self, part: Taken, before: Taken | None, log_start: int) -> Segment | None:
        """Return the part of a segment to read, as a separate segment; None if that cannot be determined."""
        of = part.segment
        files = {"log": of.path} | {kind: of.files[kind] for kind in _INDEXES if kind in of.files}
        size = of.size
        if part.start > of.base_offset or part.end < of.end_offset:
            try:
                start, end = _bytes_of(part, self._joined)
            except OSError as error:
                self._joined.unread.append(_odd(of.path, of, str(error), "unreadable_file"))
                return None
            if (start, end) != (0, size):  # its index files cover more than this part
                size = end - start
                files = {"log": PartPath.of(of.path, start=start, end=end)}
        if before is not None and before.end + 1 == part.start and before.end == before.segment.end_offset:
            snapshot = before.segment.files.get("snapshot")  # the snapshot at its end
            files |= {} if snapshot is None else {"snapshot": snapshot}
        return Segment(
            of.folder if self._local is None else self._local[0].folder,
            of.file_name,
            size,
            part.start,
            of.topic,
            of.partition,
            kinds_beside=tuple(kind for kind in files if kind != "log"),
            log_start_offset=log_start,
            end_offset=part.end + 1,
            settled_offset=LARGEST_OFFSET,
            stored=tuple(files.items()),
        )


def _is_within(segment: StoredSegment, lineage: Epochs) -> bool:
    """Whether the leader epochs of a segment are those of the log."""
    ranges = {epoch: (first, behind) for (epoch, first), (_, behind) in pairwise((*lineage, (-1, NO_END)))}
    for epoch, start in segment.epochs:
        first, behind = ranges.get(epoch, (NO_END, 0))
        if start < first or segment.end_of(epoch) >= behind:
            return False
    return True


def _bytes_of(part: Taken, joined: Joined) -> tuple[int, int]:
    """Return the bytes [start, end) of a segment's log file for an offset range, at batch boundaries."""
    of, start, end = part.segment, None, part.segment.size
    file = disk().open(of.path, of.size)
    try:
        for headers in HeaderScan(file, _position_before(of, file, part.start)).headers():
            base, last = headers["base_offset"], last_offsets(headers)
            for at in np.flatnonzero(
                (base < part.start) & (last >= part.start) | (base <= part.end) & (last > part.end)
            ):
                expected = f"a batch that begins at {part.start}, or ends at {part.end}"
                why = f"expected {expected}, found one of {base[at]} to {last[at]}"
                joined.unread.append(_odd(of.path, of, why, UNREADABLE_TIER))
            inside = np.flatnonzero(base >= part.start)
            behind = np.flatnonzero(last > part.end)
            if start is None and len(inside):
                start = int(headers["position"][inside[0]])
            if len(behind):
                end = int(headers["position"][behind[0]])
                break
    finally:
        file.close()
    return (end if start is None else min(start, end)), end


def _position_before(segment: StoredSegment, file: InputFile, offset: int) -> int:
    """Return the position of a batch at or before an offset, from the index file; 0 without a valid one."""
    entries = segment.index_entries()
    at = -1 if entries is None else int(np.searchsorted(entries["offset"], offset, side="right")) - 1
    if entries is None or at < 0:
        return 0
    header = indexed_batch(file, entries["offset"], entries["position"], at)
    return 0 if header is None else int(entries["position"][at])
