"""Facts about a partition from one pass over its segments."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kraftlog._native.scanner import LOG_OVERHEAD
from kraftlog.check.partitions import Observer, check_segments
from kraftlog.codec.header_scan import HeaderScan
from kraftlog.codec.headers import Headers
from kraftlog.codec.options import ReadOptions
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.log_report.fault_counts import FaultCounts, SegmentDamage
from kraftlog.log_report.transaction_sums import TransactionSums
from kraftlog.notes import Notes
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.partitions import is_metadata
from kraftlog.read.segment_reader import scanned, segment_file
from kraftlog.tables.file_tables import SegmentTotals
from kraftlog.tables.partition_ends import PartitionEnds
from kraftlog.tables.stats import Totals
from kraftlog.tables.transaction_tables import PartitionTransactions, transactions_within
from kraftlog.transactions.producer import Transactions

SIZES = 32  # sizes of batches are counted by powers of two
_UNREADABLE = "unreadable_file"


@dataclass
class SegmentFacts:
    """A segment: its row in the table ``segments``, and its damage."""

    name: str
    base_offset: int | None
    next_offset: int | None
    size: int
    batches: int
    records: int | None
    torn_bytes: int
    damage: SegmentDamage | None = None


@dataclass
class PartitionFacts:
    """A partition, or a file outside of partition folders.

    Attributes
    ----------
    totals : Totals
        As in ``kraftlog stats``.
    largest_batch : int
        Bytes of the largest batch.
    batch_sizes : numpy.ndarray
        Number of batches with [2^n, 2^(n+1)) bytes.
    last_stable_offset, log_end_offset : int or None
        None if unreadable.
    faults : FaultCounts
        Faults of ``kraftlog verify``.
    segments : list of SegmentFacts
    notes : Notes
    """

    topic: str | None
    partition: int | None
    folder: LogPath
    name: str
    size: int
    totals: Totals = field(default_factory=Totals)
    largest_batch: int = 0
    batch_sizes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(SIZES, np.int64))
    log_start_offset: int = 0
    last_stable_offset: int | None = None
    log_end_offset: int | None = None
    transactions: dict[str, int] = field(default_factory=dict)
    faults: FaultCounts = field(default_factory=FaultCounts)
    segments: list[SegmentFacts] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)

    @property
    def torn_bytes(self) -> int:
        """Bytes after the last whole batch."""
        return sum(segment.torn_bytes for segment in self.segments) if self.notes else 0

    @property
    def is_partly_unread(self) -> bool:
        """Whether something of it, maybe a marker, could not be read."""
        return self.faults.size_in_bytes > 0 or _UNREADABLE in self.faults

    @property
    def stable_lag(self) -> int | None:
        """Distance of read_committed consumers from the end."""
        if self.last_stable_offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.last_stable_offset


def partition_facts(
    group: list[Segment],
    options: ReadOptions,
    on_progress: Progress | None = None,
    observe: Observer | None = None,
) -> tuple[PartitionFacts, TransactionSums, PartitionEnds]:
    """Read the segments of a partition, each once, and return the facts.

    Parameters
    ----------
    group : list of Segment
        Segments of one partition, in order.
    options : ReadOptions
    on_progress : callable, optional
    """
    first = group[0]
    name = first.file_name if first.topic is None else f"{first.topic}-{first.partition}"
    facts = PartitionFacts(first.topic, first.partition, first.folder, name, sum(one.size for one in group))
    seen = _Seen(facts, group, options)

    def take(segment: Segment, unread: list[Fault], headers: Headers) -> None:
        seen.take(segment, unread, headers)
        if observe is not None:
            observe(segment, unread, headers)

    checks = check_segments(group, Pass(options, notes=facts.notes, on_progress=on_progress), observe=take)
    for fault in checks:
        facts.faults.add(fault)
        seen.damage(fault)
    seen.finish()
    ends = PartitionEnds(group, [])
    facts.log_start_offset = ends.log_start_offset
    facts.last_stable_offset, facts.log_end_offset = ends.last_stable_offset, ends.log_end_offset
    return facts, seen.transactions, ends


class _HeaderSums:
    """Sums over the headers of a segment."""

    def __init__(self, segment: Segment) -> None:
        self.of_segment = SegmentTotals(segment)
        self.totals = Totals()
        self.sizes = np.zeros(SIZES, np.int64)
        self.largest = 0

    def add(self, headers: Headers) -> None:
        """Add the next headers."""
        self.of_segment.add(headers)
        self.totals.add(headers)
        sizes = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD
        self.largest = max(self.largest, int(sizes.max()))
        self.sizes += np.bincount(np.frexp(sizes)[1] - 1, minlength=SIZES)[:SIZES]


class _Seen:
    """Collects the facts of the pass over a partition, segment by segment."""

    def __init__(self, facts: PartitionFacts, group: list[Segment], options: ReadOptions) -> None:
        self._options = options
        self.transactions = TransactionSums()
        self._facts = facts
        self._group = group
        self._at = -1
        self._sums = _HeaderSums(group[0])
        self._is_unread = False
        self._damage: dict[int | None, SegmentDamage] = {}
        self._sizes = {segment.base_offset: segment.size for segment in group}
        self._fold = None if is_metadata(group[0]) else PartitionTransactions(group[0], [])

    def take(self, segment: Segment, unread: list[Fault], headers: Headers) -> None:
        """Add the next headers of the pass."""
        if self._at < 0 or segment is not self._group[self._at]:
            self._end_segment()
            self._at += 1
            self._sums, self._is_unread = _HeaderSums(segment), False
        self._is_unread |= any(fault.error == _UNREADABLE for fault in unread)
        if len(headers):
            self._sums.add(headers)
            if self._fold is not None:
                self._add_transactions(self._fold.add(headers))

    def damage(self, fault: Fault) -> None:
        """Note the place of a fault."""
        size = self._sizes.get(fault.segment_base_offset)
        if size is not None:
            self._damage.setdefault(fault.segment_base_offset, SegmentDamage(size)).add(fault)

    def finish(self) -> None:
        """Process the end of the log."""
        self._end_segment()
        if self._fold is not None:
            self._add_transactions(self._fold.open)
        self._facts.transactions = self.transactions.counts
        for one in self._facts.segments:
            one.damage = self._damage.get(one.base_offset)

    def _end_segment(self) -> None:
        """Sum a segment; if not every byte is in a sound batch, all headers count, as in the tables."""
        if self._at < 0:
            return
        segment, facts, sums, torn = self._group[self._at], self._facts, self._sums, 0
        if sums.of_segment.size_in_bytes != segment.size:
            sums, torn = _all_headers(segment)
        row = sums.of_segment.row()
        facts.segments.append(
            SegmentFacts(
                segment.name,
                segment.base_offset,
                row["next_offset"],
                segment.size,
                row["batches"],
                row["records"],
                torn,
            )
        )
        facts.totals.join(sums.totals)
        facts.batch_sizes += sums.sizes
        facts.largest_batch = max(facts.largest_batch, sums.largest)
        if self._is_unread and self._fold is not None:
            following = self._group[self._at + 1] if self._at + 1 < len(self._group) else None
            self._add_transactions(self._fold.lose(following, []))

    def _add_transactions(self, rows: Transactions) -> None:
        chosen = transactions_within(self._group[0], rows, self._options)
        self.transactions.add(self._facts.topic, self._facts.partition, chosen)


def _all_headers(segment: Segment) -> tuple[_HeaderSums, int]:
    """Return the sums over all headers, sound or not, and the number of torn bytes."""
    sums, torn = _HeaderSums(segment), 0
    with segment_file(segment, [], strict=False) as file:
        scan = HeaderScan(file)
        for headers in scanned(segment, scan, []):
            sums.add(headers)
        torn = segment.size - scan.torn_at if scan.torn_at >= 0 else 0
    return sums, torn
