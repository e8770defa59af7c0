"""One pass over a metadata log that decides what becomes of its records: ranges to read, each with its transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property

import numpy as np

from kraftlog.codec.headers import Headers, copied, last_offsets
from kraftlog.codec.markers import MarkerBlock, scan_markers
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout import names
from kraftlog.layout.segment import Segment
from kraftlog.read.metadata_faults import BEGUN_BEFORE, faults_of, in_snapshot, of_markers, unsupported
from kraftlog.read.metadata_levels import MetadataLevels
from kraftlog.read.ranges import Range, plan
from kraftlog.read.records import Progress
from kraftlog.read.seek import seek
from kraftlog.read.segment_reader import located, segment_file
from kraftlog.transactions.metadata_columns import FOREVER, Stretch, Totals
from kraftlog.transactions.metadata_fold import Found, MetadataTransactionFold
from kraftlog.transactions.metadata_view import MetadataView
from kraftlog.transactions.places import PLACE_BITS, place_of
from kraftlog.types import Buffer, InputFile

SNAPSHOT = ".checkpoint"
MOST_BYTES = 1 << PLACE_BITS  # of a segment

Observer = Callable[[InputFile, Headers], None]


class MetadataScan:
    """Goes over the markers and headers of a metadata log once, and compares the crc of each batch.

    Parameters
    ----------
    segments : list of Segment
        Of one partition, in order; or one snapshot.
    faults : list of Fault
        Receives markers that are out of place, offsets that are missing, and what is left out because of that.
    unread : list of Fault, optional
        Receives what cannot be read, for those who do not read the records as well.
    strict : bool
        Raise at the first fault.
    start_offset : int, optional
        Where to start: an offset at which no transaction is open, the end of a snapshot.
    bounds : tuple of int
        Only faults at offsets in [start, end) are noted.
    observe : callable, optional
        Is called with a log file and the headers of some of its batches, all of them in order.
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
        self._faults = faults
        self._unread = unread
        self._strict = strict
        self._start_offset = start_offset
        self._bounds = bounds
        self._observe = observe
        self._on_progress = on_progress
        self._levels = MetadataLevels(self._level_before)
        self._place = 0
        self._ends: dict[int, int] = {}
        begin = self.segments[0].base_offset if start_offset is None else start_offset
        is_log = self.segments[0].state != SNAPSHOT and begin is not None
        self._fold = self._new_fold(begin or 0) if is_log else None
        self._steps = self._walk()
        self._kept: list[Found] = []

    def found(self) -> Iterator[Found]:
        """Return what each stretch of the log decides; the transaction that is open at the end comes last."""
        return self._steps

    def ranges(self, options: ReadOptions, range_bytes: int | None) -> Iterator[Range]:
        """Return the ranges to read, each when it is decided what becomes of its records.

        Batches that are appended behind the scan are in none of them.
        """
        files = {segment.path: number for number, segment in enumerate(self.segments)}
        for part in plan(self.segments, options, range_bytes):
            file = files[part.segment.path]
            start, end = (place_of(file, min(byte, MOST_BYTES)) for byte in (part.start, part.end))
            while not self._has_decided(end):
                self._kept.append(next(self._steps))
            self._forget(start)
            yield replace(part, transactions=self._view(), end=min(part.end, self._ends.get(file, NO_BOUND)))
        if self._place >= place_of(len(self.segments), 0):
            self._kept += self._steps

    def open_at(self, offset: int) -> int | None:
        """Return where the transaction began that is open behind an offset of the last range; None without one."""
        rows = self._view().transactions
        ends = np.where(rows["end_offset"] >= 0, rows["end_offset"] - 1, rows["last_offset"])
        for row in rows[(rows["first_offset"] <= offset) & (ends >= offset)]:
            return int(max(row["first_offset"], self.segments[0].base_offset or 0))
        return None

    def _has_decided(self, place: int) -> bool:
        undecided = self._fold.undecided if self._fold and self._place < FOREVER else None
        return self._place >= place and (undecided is None or undecided >= place)

    def _forget(self, place: int) -> None:
        """Forget transactions that end before a place."""
        for found in self._kept:
            keep = found.transactions["last_place"] >= place
            found.transactions, found.begin_values, found.end_values = found.transactions[keep], [], []
            found.misplaced = found.misplaced[found.misplaced["place"] >= place]
        self._kept = [found for found in self._kept if len(found.transactions) or len(found.misplaced)]

    def _view(self) -> MetadataView:
        nothing = Found()
        return MetadataView(
            np.concatenate([nothing.transactions, *(found.transactions for found in self._kept)]),
            np.concatenate([nothing.misplaced, *(found.misplaced for found in self._kept)])["offset"],
        )

    def _walk(self) -> Iterator[Found]:
        for number, segment in enumerate(self.segments):
            if not self._is_before_start(number):
                yield from self._scan(number, segment)
            self._place = place_of(number + 1, 0)
        found = Found() if self._fold is None else self._fold.finish(self.segments[-1].base_offset or 0)
        self._place = FOREVER
        self._report(self.segments[-1], found)
        yield found

    def _is_before_start(self, number: int) -> bool:
        if self._start_offset is None or number + 1 == len(self.segments):
            return False
        return (self.segments[number + 1].base_offset or 0) <= self._start_offset

    def _scan(self, number: int, segment: Segment) -> Iterator[Found]:
        missing: list[Fault] = []
        damaged: list[Fault] = []
        end = None
        with segment_file(segment, missing, strict=False) as file:
            start = 0
            if self._start_offset is not None:
                start = seek(segment, file, ReadOptions(start_offset=self._start_offset))[0]
            for block in scan_markers(file, damaged, start=start):
                if self._observe is not None:
                    self._observe(file, block.headers)
                stretch = self._stretch(number, block)
                found = self._take(segment, stretch)
                self._place = place_of(number, block.position)
                self._report(segment, found, unsupported(stretch, self._levels.refused(stretch, block.levels)))
                yield found
                end = block.position
        if end is not None and not missing:
            self._ends[number] = end
        if self._unread is not None:
            self._unread += missing + [located(segment, fault) for fault in damaged]
        if self._on_progress:
            self._on_progress(segment.size)

    def _stretch(self, number: int, block: MarkerBlock) -> Stretch:
        stretch = Stretch(block.headers, block.offsets, block.api_keys, block.values, number, block.cut)
        return stretch if self._start_offset is None else behind(stretch, self._start_offset)

    def _take(self, segment: Segment, stretch: Stretch) -> Found:
        if segment.state == SNAPSHOT:
            markers = stretch.markers(Totals())
            return Found(misplaced=markers, since=[-1] * len(markers))
        self._fold = self._fold or self._new_fold(int(stretch.base[0]) if len(stretch.headers) else 0)
        return self._fold.add(stretch)

    def _new_fold(self, start: int) -> MetadataTransactionFold:
        return MetadataTransactionFold(
            start_offset=start,
            begun_before=start > 0 and self._start_offset is None,
            nothing_open_at=self._ends_of_snapshots,
        )

    def _ends_of_snapshots(self) -> list[int]:
        """Return the offsets at which the snapshots beside the segments end, by their names."""
        return [end for end, _ in self._snapshots]

    @cached_property
    def _snapshots(self) -> list[tuple[int, LogPath]]:
        """Where the finished snapshots beside the segments end, in order, and their files."""
        folder = self.segments[0].path.absolute().parent
        try:
            found = [entry.name for entry in disk().entries(folder)]
        except OSError as error:
            self._note_unreadable(folder, error)
            return []
        finished = sorted(name for name in found if names.parse_checkpoint_file(name) == "" and name[0].isdigit())
        return [(int(name.split("-")[0]), folder / name) for name in finished]

    def _level_before(self) -> int | None:
        """Return the level of metadata.version in the last snapshot up to the start; None when that is not known."""
        start = self._start_offset or self.segments[0].base_offset or 0
        before = [path for end, path in self._snapshots if end <= start]
        if not before or self.segments[0].state == SNAPSHOT:
            return None
        try:
            file = disk().open(before[-1])
        except OSError as error:
            self._note_unreadable(before[-1], error)
            return None
        with closing(file):
            levels = [level for block in scan_markers(file, []) for _, level in block.levels]
        return levels[-1] if levels else None

    def _note_unreadable(self, path: LogPath, error: OSError) -> None:
        what = names.printable(f"{path.parent.name}/{path.name}")
        self._faults.append(Fault("unreadable_file", f"{what}: {error.strerror or error}"))

    def _report(self, segment: Segment, found: Found, refused: Iterable[Fault] = ()) -> None:
        if segment.state == SNAPSHOT:
            faults = list(in_snapshot(segment, found.misplaced))
        else:
            faults = list(faults_of(self.segments, segment, found, self._bounds, refused))
        if faults and self._strict:
            raise error_from_fault(faults[0])
        self._faults += faults


def behind(stretch: Stretch, offset: int) -> Stretch:
    """Return a stretch without batches that end before an offset, and without markers before it."""
    keep = last_offsets(stretch.headers) >= offset
    if keep.all() and (stretch.offsets >= offset).all():
        return stretch
    of_kept = keep[stretch.batch_of] & (stretch.offsets >= offset)
    headers = copied(stretch.headers)
    headers["rows"] = np.bincount(stretch.batch_of[of_kept], minlength=len(headers))
    return Stretch(
        headers[keep],
        stretch.offsets[of_kept],
        stretch.api_keys[of_kept],
        tuple(value for value, kept in zip(stretch.values, of_kept.tolist(), strict=True) if kept),
        stretch.file,
        None if stretch.cut is None else stretch.cut[keep],
    )


def metadata_ranges(
    segments: list[Segment], options: ReadOptions, range_bytes: int | None, faults: list[Fault]
) -> Iterator[Range]:
    """Return the ranges of a metadata log to read, each with the transactions of its records.

    Parameters
    ----------
    segments : list of Segment
        Of one partition, in order; or one snapshot.
    options : ReadOptions
    range_bytes : int, optional
        Bytes of log in a range; one range for each segment when None.
    faults : list of Fault
        Receives what is wrong with the transactions within the bounds of offset.
    """
    bounds = (options.start_offset, options.end_offset)
    return MetadataScan(segments, faults, strict=options.strict, bounds=bounds).ranges(options, range_bytes)


def scan_piece(buffer: Buffer) -> Iterator[Found]:
    """Find the transactions of a piece of a metadata log, which may begin and end inside of one.

    Parameters
    ----------
    buffer : buffer
        Record batches, one behind the other.

    Raises
    ------
    RecordError
        At the first batch that cannot be read, and at the first marker that is out of place.
    """
    fold: MetadataTransactionFold | None = None
    for block in scan_markers(buffer, [], strict=True):
        stretch = Stretch(block.headers, block.offsets, block.api_keys, block.values)
        fold = fold or MetadataTransactionFold(begun_before=bool(stretch.base[0] > 0))
        found = fold.add(stretch)
        for fault in of_markers(found):
            if fault.error != BEGUN_BEFORE:
                raise error_from_fault(fault)
        yield found
    if fold is not None:
        yield fold.finish()
