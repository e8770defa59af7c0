"""Checks of replicas against each other: the same offset and leader epoch must be the same record (KIP-101).

Verified checksums are compared first. Batches that differ are decoded, because cleaners remove other records in each
replica: only records that both replicas have are compared. All replicas of a partition are read once, side by side.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog._native.scanner import HEADER_DTYPE
from kraftlog.audit.evidence import Evidence
from kraftlog.audit.finding import Finding, FindingCode, Severity
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers, last_offsets
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.in_order import in_order
from kraftlog.layout.names import printable
from kraftlog.layout.segment import Segment
from kraftlog.read.held_offsets import OffsetSet, Stretch, lacks_records
from kraftlog.read.lineage import NO_EPOCH
from kraftlog.read.log_pass import Pass
from kraftlog.read.partitions import Partition, Replica, ReplicaKind, is_metadata
from kraftlog.read.replica_checkpoints import ReplicaCheckpoints
from kraftlog.read.segment_reader import scanned, segment_file
from kraftlog.tables.all_tables import TABLES
from kraftlog.tables.read import Read
from kraftlog.tables.record_rows import record_rows

SHOWN = 3  # ranges of offsets in a sentence
DECODED_AT_ONCE = 4 << 20  # bytes of batches that differ
FIELDS = ("base_offset", "batch_length", "crc", "magic")  # equal ones are the same batch
RECORD_COLUMNS = (
    "offset",
    "partition_leader_epoch",
    "key",
    "value",
    "headers",
    "timestamp_ms",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "control_type",
)
LAST_OFFSET = np.iinfo(np.int64).max
NO_LEADER = -1  # of a partition, in the metadata log
_COMPARED = "Both replicas have an intact batch with the offset and leader epoch (message format 2)."
_LACKING = (
    "Another replica of the same history has the offsets in intact batches; cleaner-offset-checkpoint, and batches "
    "without gaps, show that no cleaner removed them; they are not before the log start offset; all files are readable."
)

REPLICAS_DIFFER = FindingCode(
    "replicas_differ",
    Severity.ERROR,
    "One of the copies was changed after it was written: by a disk, a restore, or a tool.",
    f"{_COMPARED} They hold records with other contents.",
)
TWO_LEADERS = FindingCode(
    "two_leaders_in_one_epoch",
    Severity.ERROR,
    "Two brokers appended records as leaders of the same epoch, or the files are not of one cluster.",
    f"{_COMPARED} All records of the epoch differ from an offset on, at least two of them.",
)
LEADER_LACKS_RECORDS = FindingCode(
    "leader_lacks_records",
    Severity.ERROR,
    "Consumers do not get these records, although another replica has them.",
    _LACKING,
)
FOLLOWER_LACKS_RECORDS = FindingCode(
    "follower_lacks_records",
    Severity.WARNING,
    "The records are lost when this replica becomes the leader.",
    _LACKING,
)


def replicas_that_differ(evidence: Evidence) -> Iterator[Finding]:
    """Return differences of replicas from the one that readers choose."""
    partitions = [one for one in evidence.lines.partitions if len(local_replicas(one)) > 1]

    def compared(partition: Partition) -> tuple[list[Finding], Pass]:
        apart = evidence.read.apart()
        return list(_Comparison(partition, evidence, apart).findings()), apart

    for findings, apart in in_order(compared, partitions, evidence.read.workers):
        evidence.read.add(*apart.faults)
        yield from findings


def local_replicas(partition: Partition) -> list[Replica]:
    """Return the replicas in log directories that readers may choose, that of the line first; none without the latter.

    Segments of a remote tier are left out.
    """
    line = partition.line
    others = [one for one in partition.replicas if one is not line and one.is_read]
    same = [one for one in others if (one.topic_id or line.topic_id) == (line.topic_id or one.topic_id)]
    chosen, *rest = (one.places[-1] for one in (line, *same))
    is_compared = line.is_read and chosen.kind is not ReplicaKind.REMOTE and chosen.segments[0].base_offset is not None
    return [chosen, *(one for one in rest if one.kind is not ReplicaKind.REMOTE)] if is_compared else []


def name_of(replica: Replica) -> str:
    """Return the node of a replica, or its log directory if that names none."""
    return printable(str(replica.directory)) if replica.node_id is None else f"node {replica.node_id}"


class _Batches:
    """The intact batches of a replica, in order, as far as they are read.

    Attributes
    ----------
    replica : Replica
    read : Pass
        Receives the faults of this replica.
    waiting : Headers
        Batches that were read and not taken.
    is_at_end : bool
    cleaned_until : int or None
        Offset before which a cleaner may have removed records; None if that is unknown.
    """

    def __init__(self, replica: Replica, start_offset: int, checkpoints: ReplicaCheckpoints, read: Pass) -> None:
        self.replica = replica
        self.read = read
        self.waiting: Headers = np.empty(0, HEADER_DTYPE)
        self.is_at_end = False
        is_cleaned = not is_metadata(replica.segments[0])
        self.cleaned_until = checkpoints.cleaner_offset(replica) if is_cleaned else 0
        self._last_offset = -1
        self._headers = self._read(segments_within(replica, start_offset, LAST_OFFSET))
        self.read_on()

    def _read(self, segments: Sequence[Segment]) -> Iterator[Headers]:
        for segment in segments:
            with segment_file(segment, self.read.faults, strict=False) as file:
                for headers in scanned(segment, HeaderScan(file, check_crc=True), self.read.faults):
                    yield self._in_order(headers)

    def _in_order(self, headers: Headers) -> Headers:
        """Return the intact batches that begin after all batches before them."""
        last = last_offsets(headers)
        before = np.maximum.accumulate(np.concatenate(([self._last_offset], last)))
        keep = (headers["crc_ok"] != 0) & (headers["base_offset"] > before[:-1]) & (last >= headers["base_offset"])
        if (headers["magic"] < 2).any():
            self.cleaned_until = None  # these have no leader epochs
            keep &= headers["magic"] >= 2
        kept = headers if keep.all() else headers[keep]
        if len(kept):
            self._last_offset = int(last_offsets(kept[-1:])[0])
            if self.cleaned_until is not None and lacks_records(kept).any():
                self.cleaned_until = max(self.cleaned_until, self._last_offset + 1)
        return kept

    @property
    def known_until(self) -> int:
        """The offset up to which all batches are known."""
        return LAST_OFFSET if self.is_at_end else self._last_offset + 1

    @property
    def has_unreadable_file(self) -> bool:
        """Whether it may have records that could not be read."""
        return any(fault.error == "unreadable_file" for fault in self.read.faults)

    def read_on(self) -> None:
        """Read more batches, unless this is the end."""
        more = next((headers for headers in self._headers if len(headers)), None)
        if more is None:
            self.is_at_end = True
        else:
            self.waiting = np.concatenate([self.waiting, more]) if len(self.waiting) else more

    def left_from(self, offset: int) -> int:
        """Return where the first batch begins that does not end before an offset."""
        at = self._index(offset)
        return int(self.waiting["base_offset"][at]) if at < len(self.waiting) else LAST_OFFSET

    def take(self, end_offset: int) -> Headers:
        """Take the batches before an offset."""
        at = self._index(end_offset)
        taken, self.waiting = self.waiting[:at], self.waiting[at:]
        return taken

    def _index(self, offset: int) -> int:
        if self.is_at_end and offset == LAST_OFFSET:
            return len(self.waiting)
        return int(np.searchsorted(last_offsets(self.waiting), offset))


def _side_by_side(each: Sequence[_Batches]) -> Iterator[list[Headers]]:
    """Return the batches of all replicas, piece by piece: no batch overlaps a batch of another piece."""
    while True:
        end_offset = min(one.known_until for one in each)
        while (lower := min(end_offset, *(one.left_from(end_offset) for one in each))) < end_offset:
            end_offset = lower
        taken = [one.take(end_offset) for one in each]
        if any(map(len, taken)):
            yield taken
        elif all(one.is_at_end for one in each):
            return
        else:
            least = min(one.known_until for one in each)
            for one in each:
                if not one.is_at_end and one.known_until == least:
                    one.read_on()


class _Comparison:
    """The replicas of a partition, each compared with the one that readers choose."""

    def __init__(self, partition: Partition, evidence: Evidence, read: Pass) -> None:
        self._evidence = evidence
        self._read = read
        self._topic, self._partition = partition.topic, partition.partition
        self._replicas = local_replicas(partition)
        self._has_leader = evidence.lines.leader_of(partition) in (None, NO_LEADER, self._replicas[0].node_id)

    def findings(self) -> Iterator[Finding]:
        """Read the replicas, and return how they differ."""
        starts = sorted(one.start_offset for one in self._replicas)
        each = [_Batches(one, starts[1], self._evidence.checkpoints, self._read.apart()) for one in self._replicas]
        line, others = each[0], [_Pair(each[0], one, self._read) for one in each[1:]]
        for taken in _side_by_side(each):
            for pair, headers in zip(others, taken[1:], strict=True):
                pair.compare(taken[0], headers)
        for one in each:
            self._read.faults.extend(fault for fault in one.read.faults if fault not in self._read.faults)
            if one is not line:
                self._read.advance(sum(segment.size for segment in one.replica.segments))
        for pair in others:
            yield from self._of_pair(pair)

    def _of_pair(self, pair: _Pair) -> Iterator[Finding]:
        leader, follower = pair.line.replica, pair.other.replica
        if pair.differing:
            first = pair.differing
            records = "1 record differs" if pair.count == 1 else f"{pair.count} records differ"
            yield self._finding(
                TWO_LEADERS if pair.count > 1 and not pair.agrees_again else REPLICAS_DIFFER,
                f"{records} between {name_of(leader)} and {name_of(follower)}; the first one, at offset {first.offset} "
                f"in leader epoch {first.epoch}, has other values of {', '.join(first.columns)}",
                first.offset,
                follower,
                self._evidence.command(
                    "batches",
                    leader.segments[0].topic_partition,
                    *("--start-offset", first.offset, "--end-offset", first.offset + 1),
                    *("--columns", "replica,base_offset,last_offset,partition_leader_epoch,crc"),
                ),
            )
        for code, lacking, has in (
            (LEADER_LACKS_RECORDS if self._has_leader else FOLLOWER_LACKS_RECORDS, pair.line, pair.other),
            (FOLLOWER_LACKS_RECORDS, pair.other, pair.line),
        ):
            if stretches := pair.lacking(lacking):
                count = sum(end - first for first, end in stretches)
                yield self._finding(
                    code,
                    f"{name_of(lacking.replica)} has no intact batch with {_offsets(stretches)}"
                    f"{f' ({count} in all)' if count > 1 else ''}; {name_of(has.replica)} has",
                    stretches[0].first_offset,
                    lacking.replica,
                    self._evidence.command(
                        "replicas",
                        lacking.replica.segments[0].topic_partition,
                        *("--columns", "directory,log_start_offset,end_offset,missing,damaged"),
                    ),
                )

    def _finding(self, code: FindingCode, known: str, offset: int, replica: Replica, command: str) -> Finding:
        folder = printable(str(replica.folder))
        return Finding(code, known, self._topic, self._partition, offset, replica.node_id, folder, command)


def _offsets(stretches: Sequence[Stretch]) -> str:
    shown = [f"{first} to {end - 1}" if end - first > 1 else str(first) for first, end in stretches[:SHOWN]]
    is_one = len(stretches) == 1 and stretches[0].end_offset - stretches[0].first_offset == 1
    return f"offset{'' if is_one else 's'} {', '.join(shown)}{', ...' if len(stretches) > SHOWN else ''}"


class _Difference(NamedTuple):
    """A record that differs.

    Attributes
    ----------
    offset, epoch : int
    columns : list of str
        Columns with other values.
    """

    offset: int
    epoch: int
    columns: list[str]


class _Pair:
    """The chosen replica and another one.

    Attributes
    ----------
    line, other : _Batches
    differing : _Difference or None
        The first record that differs.
    count : int
        The number of records that differ.
    agrees_again : bool
        Whether a later record of the same epoch is the same.
    """

    def __init__(self, line: _Batches, other: _Batches, read: Pass) -> None:
        self.line, self.other = line, other
        self.differing: _Difference | None = None
        self.count = 0
        self.agrees_again = False
        self._read = read
        self._start = max(line.replica.start_offset, other.replica.start_offset)
        until = other.replica.agrees_until(line.replica)
        self._until = self._start if until is None else until
        self._lacking: dict[_Batches, list[Stretch]] = {line: [], other: []}

    def lacking(self, one: _Batches) -> list[Stretch]:
        """Return the offsets that one of the replicas lacks, and that no cleaner has removed."""
        if one.cleaned_until is None or one.has_unreadable_file:
            return []
        found = np.array(self._lacking[one], np.int64).reshape(-1, 2)
        return OffsetSet(found[:, 0], found[:, 1]).within(one.cleaned_until, self._until)

    def compare(self, line: Headers, other: Headers) -> None:
        """Compare the next batches."""
        if len(line) == len(other) and all(np.array_equal(line[name], other[name]) for name in FIELDS):
            self._agree(line["partition_leader_epoch"], line["base_offset"])
            return
        at = np.searchsorted(line["base_offset"], other["base_offset"]).clip(max=max(len(line) - 1, 0))
        same = np.full(len(other), len(line) > 0)
        for name in FIELDS if len(line) else ():
            same &= line[name][at] == other[name]
        agreeing = other[same]
        is_other = np.ones(len(line), bool)
        is_other[at[same]] = False
        line, other = line[is_other], other[~same]
        held, held_by_other = _offsets_of(line), _offsets_of(other)
        self._lack(self.other, held - held_by_other)
        self._lack(self.line, held_by_other - held)
        epochs = np.intersect1d(line["partition_leader_epoch"], other["partition_leader_epoch"])
        if epochs.max(initial=NO_EPOCH) > NO_EPOCH:
            both = held - (held - held_by_other)
            for first, end in both.within(self._start, LAST_OFFSET):
                for stretch in _cut(line, first, end):
                    self._decode(stretch)
        self._agree(agreeing["partition_leader_epoch"], agreeing["base_offset"])

    def _agree(self, epochs: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]) -> None:
        if self.differing is not None and not self.agrees_again:
            is_later = (epochs == self.differing.epoch) & (offsets > self.differing.offset)
            self.agrees_again = bool(is_later.any())

    def _lack(self, one: _Batches, offsets: OffsetSet) -> None:
        if one.cleaned_until is not None:
            known = [*self._lacking[one], *offsets.within(self._start, self._until)]
            self._lacking[one] = [each for each in known if each.end_offset > one.cleaned_until]

    def _decode(self, stretch: Stretch) -> None:
        """Compare the records that both replicas have."""
        mine, others = (self._records(one.replica, stretch) for one in (self.line, self.other))
        _, at, at_other = np.intersect1d(
            mine["offset"].to_numpy(), others["offset"].to_numpy(), assume_unique=True, return_indices=True
        )
        mine, others = mine.take(pa.array(at)), others.take(pa.array(at_other))
        epochs = mine["partition_leader_epoch"].to_numpy()
        is_same = (epochs == others["partition_leader_epoch"].to_numpy()) & (epochs > NO_EPOCH)
        mine, others = mine.filter(pa.array(is_same)), others.filter(pa.array(is_same))
        epochs, offsets = epochs[is_same], mine["offset"].to_numpy()
        differs = np.zeros(len(offsets), bool)
        columns: dict[str, npt.NDArray[np.bool_]] = {}
        for name in mine.column_names:
            if not mine[name].equals(others[name]):
                pairs = zip(mine[name].to_pylist(), others[name].to_pylist(), strict=True)
                columns[name] = np.array([one != other for one, other in pairs], bool)
                differs |= columns[name]
        if self.differing is None and differs.any():
            row = int(differs.argmax())
            named = [name for name, rows in columns.items() if rows[row]]
            self.differing = _Difference(int(offsets[row]), int(epochs[row]), named)
        self.count += int(differs.sum())
        self._agree(epochs[~differs], offsets[~differs])

    def _records(self, replica: Replica, stretch: Stretch) -> pa.Table:
        options = ReadOptions(
            start_offset=stretch.first_offset,
            end_offset=stretch.end_offset,
            include_control=True,
            include_deleted=True,
        )
        segments = segments_within(replica, *stretch)
        read = Read.of_segments(TABLES["records"], segments, RECORD_COLUMNS, options, self._read.faults)
        rows = pa.Table.from_batches(record_rows(read), schema=read.schema)
        first_rows = np.unique(rows["offset"].to_numpy(), return_index=True)[1]
        return rows.take(pa.array(first_rows))


def _offsets_of(headers: Headers) -> OffsetSet:
    return OffsetSet(headers["base_offset"], last_offsets(headers) + 1)


def _cut(headers: Headers, first_offset: int, end_offset: int) -> Iterator[Stretch]:
    """Divide a range of offsets at batches, by the bytes to decode at a time."""
    inside = headers[(last_offsets(headers) >= first_offset) & (headers["base_offset"] < end_offset)]
    part = np.cumsum(inside["batch_length"], dtype=np.int64) // DECODED_AT_ONCE
    starts = inside["base_offset"][np.flatnonzero(np.diff(part, prepend=-1))]
    bounds = [first_offset, *(one for one in starts.tolist() if one > first_offset), end_offset]
    return (Stretch(*bound) for bound in pairwise(bounds))


def segments_within(replica: Replica, first_offset: int, end_offset: int) -> list[Segment]:
    """Return the segments that may have some offsets, by their names."""
    bases = [segment.base_offset or 0 for segment in replica.segments]
    first = max(bisect_right(bases, first_offset) - 1, 0)
    return list(replica.segments[first : max(bisect_left(bases, end_offset), first + 1)])
