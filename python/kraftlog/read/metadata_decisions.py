"""The visibility of the records of a metadata log, decided from its markers and headers in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import cached_property

import numpy as np

from kraftlog.codec.headers import last_offsets
from kraftlog.codec.markers import MarkerBlock, scan_markers
from kraftlog.disk.disk import disk
from kraftlog.disk.remote_path import LogPath
from kraftlog.errors import Fault, error_from_fault
from kraftlog.layout import names
from kraftlog.layout.segment import Segment
from kraftlog.read.metadata_faults import faults_of, in_snapshot, unsupported
from kraftlog.read.metadata_levels import MetadataLevels
from kraftlog.transactions.joined_rows import joined
from kraftlog.transactions.metadata_columns import FOREVER, Stretch, Totals
from kraftlog.transactions.metadata_fold import Found, MetadataTransactionFold
from kraftlog.transactions.metadata_view import MetadataView
from kraftlog.types import InputFile

SNAPSHOT = ".checkpoint"

Observer = Callable[[InputFile, MarkerBlock], None]


class MetadataDecisions:
    """Runs the state machine of a metadata log's transactions over blocks of it, and reports their faults.

    Parameters
    ----------
    segments : list of Segment
        Segments of one partition, in order; or one snapshot.
    faults : list of Fault
        Receives misplaced markers, missing offsets, and records that are left out as a result.
    strict : bool
        Raise at the first fault.
    start_offset : int, optional
        Start offset, at which no transaction is open: the end of a snapshot.
    bounds : tuple of int
        Only faults at offsets in [start, end) are reported.
    observe : callable, optional
        Called with a log file and consecutive batches of it.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        faults: list[Fault],
        *,
        strict: bool,
        start_offset: int | None,
        bounds: tuple[int, int],
        observe: Observer | None,
    ) -> None:
        self.segments = list(segments)
        self.start_offset = start_offset
        self._faults = faults
        self._strict = strict
        self._bounds = bounds
        self._observe = observe
        self._levels = MetadataLevels(self._level_before)
        begin = self.segments[0].base_offset if start_offset is None else start_offset
        is_log = self.segments[0].state != SNAPSHOT and begin is not None
        self._fold = self._new_fold(begin or 0) if is_log else None
        self._steps: list[Found] = []
        self._is_finished = False

    @property
    def undecided(self) -> int:
        """The first place at which the visibility of added records is undecided."""
        undecided = self._fold.undecided if self._fold and not self._is_finished else None
        return FOREVER if undecided is None else undecided

    def is_before_start(self, number: int) -> bool:
        """Return whether a segment is before the start."""
        if self.start_offset is None or number + 1 == len(self.segments):
            return False
        return (self.segments[number + 1].base_offset or 0) <= self.start_offset

    def add(self, number: int, file: InputFile, block: MarkerBlock) -> Found:
        """Add the next batches of a segment's file; return the decided ranges."""
        segment = self.segments[number]
        if self._observe is not None:
            self._observe(file, block)
        stretch = Stretch.of(block, number)
        if self.start_offset is not None:
            stretch = behind(stretch, self.start_offset)
        if segment.state == SNAPSHOT:
            markers = stretch.outline(Totals(), stretch.first).markers if len(stretch.headers) else Found().misplaced
            step = Found(misplaced=markers, since=[-1] * len(markers))
        else:
            self._fold = self._fold or self._new_fold(stretch.first if len(stretch.headers) else 0)
            step = self._fold.add(stretch)
        self._report(segment, step, unsupported(stretch, self._levels.refused(stretch, block.levels)))
        return step

    def finish(self, *, is_at_end: bool = True) -> Found:
        """Return the transaction that is open after the last batch, if any.

        Parameters
        ----------
        is_at_end : bool
            Whether the last batch is the log's last one: a snapshot may end after it.
        """
        begin = self.segments[-1].base_offset or 0
        snapshot = self._end_of_newest_snapshot if is_at_end and self._fold is not None else 0
        step = Found() if self._fold is None else self._fold.finish(max(begin, snapshot))
        self._is_finished = True
        self._report(self.segments[-1], step, snapshot_end=snapshot if snapshot > begin else None)
        return step

    def keep(self, step: Found) -> None:
        """Keep decided ranges for ``view``, until they are forgotten."""
        self._steps.append(step)

    def forget(self, place: int) -> None:
        """Forget transactions that end before a place."""
        for step in self._steps:
            keep = step.transactions["last_place"] >= place
            step.transactions, step.begin_values, step.end_values = step.transactions[keep], [], []
            step.misplaced = step.misplaced[step.misplaced["place"] >= place]
        self._steps = [step for step in self._steps if len(step.transactions) or len(step.misplaced)]

    def view(self) -> MetadataView:
        """Return the kept transactions."""
        nothing = Found()
        return MetadataView(
            joined(nothing.transactions, *(step.transactions for step in self._steps)),
            joined(nothing.misplaced, *(step.misplaced for step in self._steps))["offset"],
        )

    def open_at(self, offset: int) -> int | None:
        """Return the start of the kept transaction that is open after an offset; None without one."""
        rows = self.view().transactions
        ends = np.where(rows["end_offset"] >= 0, rows["end_offset"] - 1, rows["last_offset"])
        for row in rows[(rows["first_offset"] <= offset) & (ends >= offset)]:
            return int(max(row["first_offset"], self.segments[0].base_offset or 0))
        return None

    def _new_fold(self, start: int) -> MetadataTransactionFold:
        return MetadataTransactionFold(
            start_offset=start,
            begun_before=start > 0 and self.start_offset is None,
            nothing_open_at=self._ends_of_snapshots,
        )

    def _ends_of_snapshots(self) -> list[int]:
        """Return the end offsets of the snapshots next to the segments, by their names."""
        return [end for end, _ in self._snapshots]

    @property
    def _end_of_newest_snapshot(self) -> int:
        """The end of the newest snapshot of the log; 0 without one, or if the segments are not the log's last ones."""
        ends = self._ends_of_snapshots()
        return max(ends, default=0) if ends and is_last_segment(self.segments[-1], self._names) else 0

    @cached_property
    def _names(self) -> list[str]:
        folder = self.segments[0].folder.absolute()
        try:
            return [entry.name for entry in disk().entries(folder)]
        except OSError as error:
            self._note_unreadable(folder, error)
            return []

    @cached_property
    def _snapshots(self) -> list[tuple[int, LogPath]]:
        """The ends of complete snapshots next to the segments, in order, and their files."""
        folder = self.segments[0].folder.absolute()
        names_beside = self._names
        finished = sorted(
            name for name in names_beside if names.parse_checkpoint_file(name) == "" and name[0].isdigit()
        )
        return [(int(name.split("-")[0]), folder / name) for name in finished]

    def _level_before(self) -> int | None:
        """Return the level of metadata.version in the last snapshot up to the start; None if unknown."""
        start = self.start_offset or self.segments[0].base_offset or 0
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

    def _report(
        self, segment: Segment, step: Found, refused: Iterable[Fault] = (), snapshot_end: int | None = None
    ) -> None:
        if segment.state == SNAPSHOT:
            faults = list(in_snapshot(segment, step.misplaced))
        else:
            faults = list(faults_of(self.segments, segment, step, self._bounds, refused, snapshot_end))
        if faults and self._strict:
            raise error_from_fault(faults[0])
        self._faults += faults


def is_last_segment(segment: Segment, beside: Iterable[str]) -> bool:
    """Return whether a segment is the last one of its folder, by the given file names."""
    last = segment.base_offset or 0
    files = (names.parse_segment_file(name) for name in beside)
    return not any(one and one.kind == "log" and not one.state and one.base_offset > last for one in files)


def behind(stretch: Stretch, offset: int) -> Stretch:
    """Return a range without batches that end before an offset, and without markers before it."""
    keep = last_offsets(stretch.headers) >= offset
    if keep.all() and (stretch.offsets >= offset).all():
        return stretch
    of_kept = keep[stretch.batch_of] & (stretch.offsets >= offset)
    return Stretch(
        stretch.headers[keep],
        (np.cumsum(keep) - 1)[stretch.batch_of[of_kept]],
        stretch.offsets[of_kept],
        stretch.api_keys[of_kept],
        tuple(value for value, is_behind in zip(stretch.values, of_kept.tolist(), strict=True) if is_behind),
        stretch.file,
        None if stretch.cut is None else stretch.cut[keep],
    )
