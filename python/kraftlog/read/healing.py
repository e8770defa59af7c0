"""Missing and damaged offsets of a partition's line, read from replicas that agree with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kraftlog.codec.header_scan import HeaderScan, ends
from kraftlog.codec.headers import last_offsets
from kraftlog.disk.disk import disk
from kraftlog.disk.in_order import SEGMENTS_AT_ONCE, in_order
from kraftlog.disk.part_path import PartPath
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.index_files import PREALLOCATED
from kraftlog.layout.names import printable
from kraftlog.layout.segment import Segment
from kraftlog.read.held_offsets import OffsetSet, Stretch, lacks_records
from kraftlog.read.lineage import NO_EPOCH
from kraftlog.read.partitions import Partition, Replica
from kraftlog.read.segment_end import MISSING_BATCHES, end_fault, evidence_of_batches
from kraftlog.read.segment_reader import scanned, segment_file
from kraftlog.topics import CLUSTER_METADATA

_NAMES = ("segment", "start", "end", "first_offset", "end_offset", "first_epoch", "last_epoch")
_RUN = np.dtype([(name, "i8") for name in _NAMES])
LACKS = "the line lacks them"
Runs = npt.NDArray[np.void]
"""Sound batches: the number of their segment, bytes [start, end), offsets [first_offset, end_offset), and the leader
epochs of the first and of the last of them."""


@dataclass(frozen=True)
class Graft:
    """Offsets that are read from another replica than the line.

    Attributes
    ----------
    replica : Replica
        The other replica.
    segment : Segment
        A segment of that replica.
    start, end : int
        Positions in bytes.
    offsets : Stretch
    why : str
        The fault of the line at these offsets.
    """

    replica: Replica
    segment: Segment
    start: int
    end: int
    offsets: Stretch
    why: str


@dataclass(frozen=True)
class HealedLine:
    """The files for readers of data of a partition: its line, with ranges of other replicas for missing offsets.

    Attributes
    ----------
    segments : tuple of Segment
        Segments in order. Segments that are read completely are unchanged; others are parts of files.
    grafts : tuple of Graft
        In order.
    missing : tuple of Stretch
        Offsets outside of damage that neither the line nor an agreeing replica has.
    """

    segments: tuple[Segment, ...]
    grafts: tuple[Graft, ...] = ()
    missing: tuple[Stretch, ...] = ()

    def notes(self) -> Iterator[str]:
        """Return a note for each range that is read from another replica, with the reason."""
        joined: list[Graft] = []
        for one in self.grafts:
            before = joined[-1] if joined else None
            if before is not None and (before.replica, before.offsets.end_offset, before.why) == (
                one.replica,
                one.offsets.first_offset,
                one.why,
            ):
                joined[-1] = replace(before, offsets=Stretch(before.offsets.first_offset, one.offsets.end_offset))
            else:
                joined.append(one)
        for one in joined:
            first, last = one.offsets.first_offset, one.offsets.end_offset - 1
            what = f"offset {first} is" if first == last else f"offsets {first} to {last} are"
            where = printable(str(one.replica.directory))
            yield f"{one.segment.topic_partition}: {what} read from {where}: {one.why}"


def healed_line(
    partition: Partition, cleaned_until: Mapping[Replica, int], *, check_crc: bool, salvages: bool
) -> HealedLine:
    """Return the files for readers of data of a partition.

    In a gap of the line, batches of other replicas are read, up to the offset at which these differ from it. Only
    complete batches without overlap with the line are used: each offset is read once. Records that a cleaner may have
    removed from the line are not a gap, unless the line is damaged there. A line whose files a broker replaced after
    they were listed is returned as it is: others have records that its cleaner has just removed.

    Parameters
    ----------
    partition : Partition
    cleaned_until : mapping
        The offset up to which the log of a replica may have been compacted, from the checkpoints of its directory.
    check_crc : bool
        Whether a wrong checksum means damage.
    salvages : bool
        Whether the reader searches damage for batches: other replicas are then only used if they have all of it.
    """
    others = partition.agreeing
    if not others:
        return HealedLine(tuple(partition.segments))
    line = _Scan(partition.segments, cleaned_until.get(partition.line, 0), check_crc)
    if line.was_replaced():
        return HealedLine(tuple(partition.segments))
    sources = [_Source(replica, until, cleaned_until.get(replica, 0), check_crc) for replica, until in others]
    filled = [gap.filled(sources, salvages=salvages) for gap in [*line.gap_before(), *line.gaps()]]
    healed = _joined(partition, [one for one in filled if one.grafts or one.is_healed])
    return replace(healed, missing=tuple(stretch for one in filled for stretch in one.missing))


class _Content(NamedTuple):
    """The contents of a segment by its headers."""

    batches: Runs
    """The sound ones, one by one."""
    damaged: Runs
    """Those whose checksum does not match, as their headers have them, and those that are missing at the end."""
    faults: list[Fault]
    cleaned_until: int
    """Behind the last batch, where a batch lacks records: only a cleaner leaves such a batch, and it cleans from the
    beginning of the log."""


def _content_of(number: int, segment: Segment, check_crc: bool) -> _Content:
    faults: list[Fault] = []
    sound, damaged = [np.empty(0, _RUN)], [np.empty(0, _RUN)]
    is_cleaned = False
    with segment_file(segment, faults, strict=False) as file:
        scan = HeaderScan(file, check_crc=check_crc)
        for headers in scanned(segment, scan, faults):
            is_sound = headers["crc_ok"] != 0
            is_cleaned |= bool((is_sound & lacks_records(headers)).any())
            batches = np.empty(len(headers), _RUN)
            batches["segment"] = number
            batches["start"], batches["end"] = headers["position"], ends(headers)
            batches["first_offset"], batches["end_offset"] = headers["base_offset"], last_offsets(headers) + 1
            batches["first_epoch"] = batches["last_epoch"] = headers["partition_leader_epoch"]
            sound.append(batches[is_sound])
            damaged.append(batches[~is_sound])
        at_end = end_fault(segment, scan, scan.faults, file)
        if at_end is not None:
            faults.append(at_end)
            if at_end.error == MISSING_BATCHES:
                end, first_offset, end_offset = at_end.position, at_end.base_offset, segment.end_offset
                damaged.append(np.array([(number, end, end, first_offset, end_offset, NO_EPOCH, NO_EPOCH)], _RUN))
    batches = np.concatenate(sound)
    return _Content(batches, np.concatenate(damaged), faults, int(batches["end_offset"].max()) if is_cleaned else 0)


def _runs_of(batches: Runs) -> Runs:
    """Return batches as runs that are consecutive in bytes and offsets."""
    begins = np.ones(len(batches), bool)
    for name, before in (("segment", "segment"), ("start", "end"), ("first_offset", "end_offset")):
        begins[1:] &= batches[name][1:] == batches[before][:-1]
    begins[1:] = ~begins[1:]
    runs = batches[begins]
    ended = np.append(begins[1:], True)[: len(batches)]
    for name in ("end", "end_offset", "last_epoch"):
        runs[name] = batches[name][ended]
    return runs


class _Scan:
    """The intact runs of consecutive segments of a replica, and the gaps between them.

    Parameters
    ----------
    segments : sequence of Segment
    cleaned_until : int
        From checkpoints, or a greater offset that headers show.
    check_crc : bool
    """

    def __init__(self, segments: Sequence[Segment], cleaned_until: int, check_crc: bool) -> None:
        self.segments = segments

        def read(number: int) -> _Content:
            content = _content_of(number, segments[number], check_crc)
            return content._replace(batches=_runs_of(content.batches))

        contents = list(in_order(read, range(len(segments)), SEGMENTS_AT_ONCE))
        self.runs = np.concatenate([content.batches for content in contents])
        self._damaged = np.concatenate([content.damaged for content in contents])
        self._faults = [content.faults for content in contents]
        self._cleaned_until = max([cleaned_until, *(content.cleaned_until for content in contents)])

    def was_replaced(self) -> bool:
        """Whether a broker cleaned or truncated files after they were listed; retention deletes the first ones only."""
        is_behind = False  # a file that is still there
        for segment in self.segments if any(self._faults) else ():
            now = disk().entry(segment.path)
            if is_behind if now is None else (now.size or 0) < segment.size:
                return True
            is_behind |= now is not None
        return False

    def gap_before(self) -> Iterator[_Gap]:
        """Return the gap before the first segment; for a metadata log, snapshots contain the records before it."""
        first = self.segments[0]
        start, end = first.log_start_offset, first.base_offset or 0
        if len(self.runs) and start < end and first.topic != CLUSTER_METADATA:
            yield _Gap(Stretch(start, end), None, self.runs[0], ("the line begins after them",), is_before=True)

    def gaps(self) -> Iterator[_Gap]:
        """Return the gaps from the first segment to the last batch."""
        if not len(self.runs):
            return
        named = self.segments[0].base_offset or 0
        reached = np.maximum.accumulate(np.append(named, self.runs["end_offset"]))[:-1]
        for at in np.flatnonzero(self.runs["first_offset"] > reached).tolist():
            gap = self._gap(int(reached[at]), self.runs[at - 1] if at else None, self.runs[at])
            if gap.offsets.first_offset < gap.offsets.end_offset:
                yield gap

    def _gap(self, first_offset: int, before: np.void | None, after: np.void) -> _Gap:
        low, begin = (0, 0) if before is None else (int(before["segment"]), int(before["end"]))
        high, end = int(after["segment"]), int(after["start"])
        damage = [
            fault
            for number in range(low, high + 1)
            for fault in self._faults[number]
            if (low, begin) <= (number, fault.position or 0) < (high, end)
        ]
        if not damage:
            first_offset = max(first_offset, self._cleaned_until)
        numbers, starts = self._damaged["segment"], self._damaged["start"]
        behind = (numbers > low) | ((numbers == low) & (starts >= begin))
        ahead = (numbers < high) | ((numbers == high) & (starts < end))
        why = tuple(fault.message for fault in damage) or (LACKS,)
        offsets = Stretch(first_offset, int(after["first_offset"]))
        return _Gap(offsets, before, after, why, bool(damage), self._damaged[behind & ahead])


@dataclass(frozen=True)
class _Gap:
    """Missing offsets of a log between two runs; there is no run before the first one.

    Attributes
    ----------
    is_damaged : bool
        Whether batches between the runs are unreadable, or known to be missing.
    damaged : Runs
        Damaged batches among them, from their headers, and missing ones at the ends of segments.
    is_before : bool
        Whether it is before the first segment.
    """

    offsets: Stretch
    before: np.void | None
    after: np.void
    why: tuple[str, ...]
    is_damaged: bool = False
    damaged: Runs = field(default_factory=lambda: np.empty(0, _RUN))
    is_before: bool = False

    @property
    def _has_ends(self) -> bool:
        """Whether headers give the ends of all damaged batches; other damage is searched for batches."""
        return not self.is_damaged or len(self.damaged) == len(self.why)

    def why_of(self, offsets: Stretch) -> str:
        """Return the fault of the line at some offsets: that of their own batch, if each fault concerns one batch."""
        if not self._has_ends:
            return self.why[0]
        overlaps = (self.damaged["first_offset"] < offsets.end_offset) & (
            self.damaged["end_offset"] > offsets.first_offset
        )
        return self.why[int(overlaps.argmax())] if overlaps.any() else LACKS

    def filled(self, sources: Sequence[_Source], *, salvages: bool) -> _Filled:
        """Return the gap with the ranges of other replicas that fill it."""
        lacking = OffsetSet([self.offsets.first_offset], [self.offsets.end_offset])
        removed, grafts = OffsetSet([], []), list[Graft]()
        for source in sources:
            stretches = lacking.within(source.replica.start_offset, source.until)
            if not stretches:
                continue
            grafts += source.grafts(stretches, self)
            lacking -= _offsets_of(grafts)
            removed = OffsetSet.union([removed, source.removed(stretches)])
        is_healed = self.is_damaged and not (lacking - removed).within(*self.offsets)
        taken = _offsets_of(grafts)
        has_all = [taken.has(int(one["first_offset"]), int(one["end_offset"])) for one in self.damaged]
        replaced = self.damaged[np.array(has_all, bool)]
        if salvages and not self._has_ends and not is_healed:
            grafts, replaced = [], replaced[:0]  # the search may find batches whose offsets others have
        damaged = OffsetSet(self.damaged["first_offset"], self.damaged["end_offset"])
        missing = (lacking - removed - damaged).within(*self.offsets)
        if self.is_before or not self._has_ends:
            missing = []  # retention may have removed them, or damage may contain them
        return _Filled(self, sorted(grafts, key=lambda one: one.offsets), replaced, is_healed, missing)


def _offsets_of(grafts: Sequence[Graft]) -> OffsetSet:
    return OffsetSet([one.offsets.first_offset for one in grafts], [one.offsets.end_offset for one in grafts])


class _Filled(NamedTuple):
    """A gap, and the ranges that fill it.

    Attributes
    ----------
    gap : _Gap
    grafts : list of Graft
        In order.
    replaced : Runs
        Damaged batches of the line whose offsets other replicas have.
    is_healed : bool
        Whether other replicas have everything that the gap may have contained: the bytes of the line between its runs
        are then not read.
    missing : list of Stretch
        Other offsets that no replica has.
    """

    gap: _Gap
    grafts: list[Graft]
    replaced: Runs
    is_healed: bool
    missing: list[Stretch]


class _Source:
    """A replica that agrees with the line. Only segments that may contain the requested offsets are read.

    Parameters
    ----------
    replica : Replica
    until : int
        The offset at which it differs from the line.
    cleaned_until : int
    check_crc : bool
    """

    def __init__(self, replica: Replica, until: int, cleaned_until: int, check_crc: bool) -> None:
        self.replica = replica
        self.until = until
        self._how = cleaned_until, check_crc
        self._last: tuple[int, Runs] = (-1, np.empty(0, _RUN))

    def grafts(self, stretches: Sequence[Stretch], gap: _Gap) -> list[Graft]:
        """Return runs of complete batches within ranges of a gap, which are in order.

        Leader epochs never decrease in a log: batches with epochs outside of those around the gap belong to another
        history. Before the start of the line, the first batch may contain the log start offset.
        """
        grafts: list[Graft] = []
        firsts, limits = np.array(stretches, np.int64).T
        if gap.is_before:
            firsts[0] = 0
        low, high = NO_EPOCH if gap.before is None else gap.before["last_epoch"], gap.after["first_epoch"]
        reached = -1
        for number in self._numbers(stretches):
            batches = self._batches(number)
            first, end = batches["first_offset"], batches["end_offset"]
            at = np.searchsorted(limits, end, side="left").clip(max=len(limits) - 1)
            inside = (
                (first >= firsts[at]) & (end <= limits[at]) & (end > stretches[0].first_offset) & (first >= reached)
            )
            inside &= (batches["first_epoch"] >= low) & (batches["last_epoch"] <= high)
            inside[1:] &= first[1:] >= np.maximum.accumulate(end)[:-1]
            for run in _runs_of(batches[inside]):
                offsets = Stretch(int(run["first_offset"]), int(run["end_offset"]))
                reached = offsets.end_offset
                segment = self.replica.segments[number]
                grafts.append(
                    Graft(self.replica, segment, int(run["start"]), int(run["end"]), offsets, gap.why_of(offsets))
                )
        return grafts

    def removed(self, stretches: Sequence[Stretch]) -> OffsetSet:
        """Return the offsets that its cleaner has removed between its first and its last batch in a range."""
        numbers = list(self._numbers(stretches))
        if not numbers:
            return OffsetSet([], [])
        around = self.replica.segments[numbers[0] : numbers[-1] + 2]  # what was removed ends where the next one begins
        scan = _Scan(around, *self._how)
        if not len(scan.runs):
            return OffsetSet([], [])
        named = scan.segments[0].base_offset or 0
        every = OffsetSet([named], [min(int(scan.runs["end_offset"].max()), self.until)])
        gaps = [gap.offsets for gap in scan.gaps()]
        held = OffsetSet(scan.runs["first_offset"], scan.runs["end_offset"])
        return every - held - OffsetSet([one.first_offset for one in gaps], [one.end_offset for one in gaps])

    def _numbers(self, stretches: Sequence[Stretch]) -> Iterator[int]:
        """Return the indexes of the segments that may contain some offsets, by their file names."""
        bases = [segment.base_offset or 0 for segment in self.replica.segments]
        for number, base in enumerate(bases):
            is_before_end = base < stretches[-1].end_offset
            if is_before_end and (number + 1 == len(bases) or bases[number + 1] > stretches[0].first_offset):
                yield number

    def _batches(self, number: int) -> Runs:
        if self._last[0] != number:
            self._last = number, _content_of(number, self.replica.segments[number], self._how[1]).batches
        return self._last[1]


def _joined(partition: Partition, filled: Sequence[_Filled]) -> HealedLine:
    pieces = _Pieces(partition, [graft for one in filled if one.gap.is_before for graft in one.grafts])
    for gap, grafts, replaced, is_healed, missing in filled:
        if gap.before is not None:
            ends_there = (replaced["start"] == replaced["end"]) & (replaced["segment"] == gap.before["segment"])
            pieces.read_to(gap.before, has_all=is_healed or bool(ends_there.any()))
        pieces.add(grafts)
        if is_healed:
            pieces.skip_to(gap.after)
            continue
        for damaged in replaced:  # other damage is read as it is without other replicas: it is a fault
            if not _hides_missing(damaged, partition.segments[damaged["segment"]], missing):
                pieces.skip(damaged)
    return HealedLine(pieces.all(), tuple(graft for one in filled for graft in one.grafts))


def _hides_missing(damaged: np.void, segment: Segment, missing: Sequence[Stretch]) -> bool:
    """Whether a damaged batch is the last one of a file, and its fault stands for later offsets that no replica has."""
    if not damaged["start"] < damaged["end"] == segment.size:
        return False
    behind = OffsetSet([one.first_offset for one in missing], [one.end_offset for one in missing])
    stretches = behind.within(int(damaged["end_offset"]), segment.end_offset or 0)
    return any(evidence_of_batches(segment, *one, is_empty=False) is not None for one in stretches)


class _Pieces:
    """The segments of a line, divided where ranges of other replicas are inserted.

    Parameters
    ----------
    partition : Partition
    before : list of Graft
        Ranges before the first segment: the log starts at the start of these replicas.
    """

    def __init__(self, partition: Partition, before: Sequence[Graft]) -> None:
        self._segments, self._folder = partition.segments, partition.folder
        self._pieces: list[Segment] = []
        self._number, self._byte = 0, 0  # what comes next of the line
        self._offset = 0
        self._grafted = 0
        self._log_start = self._segments[0].log_start_offset
        if before:
            start = min(graft.replica.start_offset for graft in before)
            first = min(graft.offsets.first_offset for graft in before)
            self._log_start = max(self._log_start, start if start > first else 0)

    def read_to(self, run: np.void, *, has_all: bool) -> None:
        """Read the line up to the end of a run, after which nothing is missing if grafts have it."""
        number, byte = int(run["segment"]), int(run["end"])
        self._read_segments(number)
        segment, end_offset = self._segments[number], int(run["end_offset"])
        is_end = byte == segment.size and not has_all
        self._piece(segment, self._byte, byte, segment.end_offset if is_end else end_offset)
        self._byte, self._offset = byte, end_offset

    def skip_to(self, run: np.void) -> None:
        """Continue with the line at the start of a run."""
        self._number, self._byte, self._offset = int(run["segment"]), int(run["start"]), int(run["first_offset"])

    def skip(self, damaged: np.void) -> None:
        """Read the line up to the start of a batch, and continue after it."""
        number, start, end = int(damaged["segment"]), int(damaged["start"]), int(damaged["end"])
        self._read_segments(number)
        if self._byte < start:  # other damage
            self._piece(self._segments[number], self._byte, start, 0)
        self._number, self._byte = (number + 1, 0) if end == self._segments[number].size else (number, end)

    def add(self, grafts: Sequence[Graft]) -> None:
        """Read ranges of other replicas."""
        for graft in grafts:
            self._take(graft.segment, graft.start, graft.end, *graft.offsets)
            self._grafted = graft.offsets.end_offset
        self._offset = max(self._offset, self._grafted)

    def all(self) -> tuple[Segment, ...]:
        """Return all pieces, including the rest of the line."""
        self._read_segments(len(self._segments))
        return tuple(sorted(self._pieces, key=lambda one: one.base_offset or 0))  # an empty file comes after grafts

    def _read_segments(self, behind: int) -> None:
        while self._number < behind:
            segment = self._segments[self._number]
            self._piece(segment, self._byte, segment.size, segment.end_offset)
            self._number, self._byte = self._number + 1, 0

    def _piece(self, segment: Segment, start: int, end: int, end_offset: int | None) -> None:
        if start < end or end == segment.size == 0:
            base_offset = segment.base_offset or 0
            if end > start:
                base_offset = self._offset if start else max(base_offset, self._grafted)
            self._take(segment, start, end, base_offset, end_offset)

    def _take(self, segment: Segment, start: int, end: int, base_offset: int, end_offset: int | None) -> None:
        is_whole = start == 0 and end == segment.size
        if not is_whole or base_offset > (segment.base_offset or 0):
            segment = _part(segment, start, end, base_offset)
        if segment.folder != self._folder:
            segment = replace(segment, folder=self._folder, stored=segment.stored or _stored(segment))
        if segment.end_offset != end_offset:
            segment = replace(segment, end_offset=end_offset)
        if segment.log_start_offset != self._log_start:
            segment = replace(segment, log_start_offset=self._log_start)
        self._pieces.append(segment)


def _stored(segment: Segment) -> tuple[tuple[str, LogPath], ...]:
    return ("log", segment.path), *segment.beside.items()


def _part(segment: Segment, start: int, end: int, base_offset: int) -> Segment:
    """Return a range of a segment; of the files next to it, only a snapshot of its beginning belongs to the range.

    Index files are listed as stored: their entries show whether batches are missing at the end.
    """
    path = PartPath.of(segment.path, start=start, end=end)
    kinds = ("snapshot",) if base_offset == segment.base_offset and "snapshot" in segment.beside else ()
    indexes = [(kind, path) for kind, path in segment.beside.items() if kind in PREALLOCATED]
    return replace(
        segment,
        size=end - start,
        base_offset=base_offset,
        kinds_beside=kinds,
        stored=(("log", path), *indexes, *((kind, segment.beside[kind]) for kind in kinds)),
        first_byte=start,
    )
