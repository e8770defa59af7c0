"""A pass over a metadata log that decides the visibility of its records: ranges to read, with their transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kraftlog.codec.markers import scan_markers
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.metadata_decisions import MetadataDecisions, Observer
from kraftlog.read.metadata_faults import BEGUN_BEFORE, of_markers
from kraftlog.read.ranges import Range, plan
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import located, segment_file
from kraftlog.transactions.metadata_columns import FOREVER, Stretch
from kraftlog.transactions.metadata_fold import Found, MetadataTransactionFold
from kraftlog.transactions.places import PLACE_BITS, place_of
from kraftlog.types import Buffer

MOST_BYTES = 1 << PLACE_BITS  # of a segment


class MetadataScan:
    """Scans the markers and headers of a metadata log once, and verifies the crc of each batch.

    Parameters
    ----------
    segments : list of Segment
        Segments of one partition, in order; or one snapshot.
    faults : list of Fault
        Receives misplaced markers, missing offsets, and records that are left out as a result.
    unread : list of Fault, optional
        Receives read faults, for callers that do not read the records as well.
    strict : bool
        Raise at the first fault.
    start_offset : int, optional
        Start offset, at which no transaction is open: the end of a snapshot.
    bounds : tuple of int
        Only faults at offsets in [start, end) are reported.
    observe : callable, optional
        Called with a log file and consecutive batches of it.
    on_progress : callable, optional
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        faults: list[Fault],
        *,
        unread: list[Fault] | None = None,
        strict: bool = False,
        start_offset: int | None = None,
        bounds: tuple[int, int] = (-NO_BOUND, NO_BOUND),
        observe: Observer | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self.segments = list(segments)
        self._unread = unread
        self._start_offset = start_offset
        self._on_progress = on_progress
        self._place = 0
        self._ends: dict[int, int] = {}
        self._decisions = MetadataDecisions(
            segments, faults, strict=strict, start_offset=start_offset, bounds=bounds, observe=observe
        )
        self._steps = self._walk()

    def found(self) -> Iterator[Found]:
        """Return the decisions of each range of the log; the transaction that is open at the end comes last."""
        return self._steps

    def ranges(self, options: ReadOptions, range_bytes: int | None) -> Iterator[Range]:
        """Return the ranges to read, each as soon as the visibility of its records is decided.

        Batches appended after the scan are not included.
        """
        files = {segment.path: number for number, segment in enumerate(self.segments)}
        for part in plan(self.segments, options, range_bytes):
            file = files[part.segment.path]
            start, end = (place_of(file, min(byte, MOST_BYTES)) for byte in (part.start, part.end))
            while min(self._place, self._decisions.undecided) < end:
                self._decisions.keep(next(self._steps))
            self._decisions.forget(start)
            view = self._decisions.view()
            yield replace(part, transactions=view, end=min(part.end, self._ends.get(file, NO_BOUND)))
        if self._place >= place_of(len(self.segments), 0):
            for step in self._steps:
                self._decisions.keep(step)

    def _walk(self) -> Iterator[Found]:
        for number, segment in enumerate(self.segments):
            if not self._decisions.is_before_start(number):
                yield from self._scan(number, segment)
            self._place = place_of(number + 1, 0)
        step = self._decisions.finish()
        self._place = FOREVER
        yield step

    def _scan(self, number: int, segment: Segment) -> Iterator[Found]:
        missing: list[Fault] = []
        damaged: list[Fault] = []
        end = None
        with segment_file(segment, missing, strict=False) as file:
            start = 0
            if self._start_offset is not None:
                start = seek(segment, file, ReadOptions(start_offset=self._start_offset))[0]
            for block in scan_markers(file, damaged, start=start):
                step = self._decisions.add(number, file, block)
                self._place = place_of(number, block.position)
                yield step
                end = block.position
        if end is not None and not missing:
            self._ends[number] = end
        if self._unread is not None:
            self._unread += missing + [located(segment, fault) for fault in damaged]
        if self._on_progress:
            self._on_progress(segment.size)


def metadata_ranges(segments: list[Segment], read: Pass) -> Iterator[Range]:
    """Return the ranges of a metadata log to read, each with the transactions of its records.

    Parameters
    ----------
    segments : list of Segment
        Segments of one partition, in order; or one snapshot.
    read : Pass
        Receives faults of the transactions within the bounds of offsets.
    """
    options = read.options
    scan = MetadataScan(segments, read.faults, strict=options.strict, bounds=(options.start_offset, options.end_offset))
    return scan.ranges(options, read.range_bytes)


def scan_piece(buffer: Buffer) -> Iterator[Found]:
    """Find the transactions of a piece of a metadata log, which may begin and end within a transaction.

    Parameters
    ----------
    buffer : buffer
        Consecutive record batches.

    Raises
    ------
    RecordError
        At the first unreadable batch, and at the first misplaced marker.
    """
    fold: MetadataTransactionFold | None = None
    for block in scan_markers(buffer, [], strict=True):
        stretch = Stretch.of(block)
        fold = fold or MetadataTransactionFold(begun_before=bool(stretch.first > 0))
        step = fold.add(stretch)
        for fault in of_markers(step):
            if fault.error != BEGUN_BEFORE:
                raise error_from_fault(fault)
        yield step
    if fold is not None:
        yield fold.finish()
