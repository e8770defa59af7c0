"""The visible records of a metadata log, typed, for an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kraftlog.codec.arrow_arrays import array_of
from kraftlog.codec.metadata_markers import MARKER_NAMES
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.run_ahead import run_ahead
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.messages.arrow_types import UUID_BINARY
from kraftlog.messages.catalog import BUILT_IN
from kraftlog.messages.format_of import METADATA
from kraftlog.messages.reader import MessageReader
from kraftlog.messages.typed_pass import Typed
from kraftlog.metadata_log.batches import Batches
from kraftlog.metadata_log.files import MetadataLog
from kraftlog.read.log_pass import Pass, Progress
from kraftlog.read.messages import faults_of_messages
from kraftlog.read.metadata_walk import Decided, MetadataWalk

Ints = npt.NDArray[np.int64]

_MARKERS = frozenset(MARKER_NAMES.values())
_NEVER = -1
_BATCH_BYTES, _LEAST_BATCH_BYTES, _BATCH_ROWS = 4 << 20, 1 << 20, 1 << 16  # measured
_CHUNKS = 16  # bytes per chunk of a small log, of which several are held at the same time


class Visible:
    """The visible records of a chunk.

    Parameters
    ----------
    typed : dict of str to Typed
        By type.
    offsets : numpy.ndarray of int64
        Offset of each record of the chunk.
    find_visible_at : callable
        Returns ``visible_at``.
    is_rising : bool
        Whether offsets are strictly increasing.
    """

    def __init__(
        self, typed: dict[str, Typed], offsets: Ints, find_visible_at: Callable[[], Ints], *, is_rising: bool
    ) -> None:
        self.typed = typed
        self.offsets = offsets
        self._has_every_offset = is_rising and int(offsets[-1]) - int(offsets[0]) == len(offsets) - 1
        self._find_visible_at = find_visible_at

    @cached_property
    def visible_at(self) -> Ints:
        """The offset at which each record of the chunk became visible; -1 for markers."""
        return self._find_visible_at()

    def before(self, end: int) -> npt.NDArray[np.bool_] | None:
        """Return which records are visible before an offset; None for all."""
        return None if end == NO_BOUND else self.visible_at < end

    def tables(self, rows: npt.NDArray[np.bool_] | None = None) -> dict[str, pa.RecordBatch]:
        """Return the selected records of the chunk, by default all, for ``Image.apply``."""
        if rows is None or rows.all():
            return {name: self._table(typed, 0, len(typed.rows)) for name, typed in self.typed.items()}
        at = np.flatnonzero(rows)
        first, end = (int(at[0]), int(at[-1]) + 1) if len(at) else (0, 0)
        are_together = end - first == len(at)
        tables = {}
        for name, typed in self.typed.items():
            begin, stop = np.searchsorted(typed.rows, (first, end)).tolist()
            batch = self._table(typed, begin, stop)
            tables[name] = batch if are_together else batch.filter(array_of(rows[typed.rows[begin:stop]]))
        return tables

    def _table(self, typed: Typed, begin: int, stop: int) -> pa.RecordBatch:
        rows = typed.rows[begin:stop]
        offsets = rows + self.offsets[0] if self._has_every_offset else self.offsets[rows]
        fields = typed.fields if len(rows) == len(typed.rows) else typed.fields.slice(begin, stop - begin)
        return fields.add_column(0, "offset", array_of(offsets))


class Replay:
    """Reads a metadata log, or a snapshot, in one pass that also resolves transactions.

    Parameters
    ----------
    log : MetadataLog
    start, end : int
        Offsets [start, end) of the records.
    batches : Batches
        Receives the batches of the log.
    is_start_known : bool
        Whether no transaction is open at ``start``, as at the end of a snapshot; otherwise the pass starts at the last
        snapshot before it, or at the start of the log.
    batch_bytes : int, optional
        Bytes of log in a chunk; by default tuned for speed.
    """

    def __init__(
        self,
        log: MetadataLog,
        start: int,
        end: int,
        batches: Batches,
        *,
        is_start_known: bool = False,
        batch_bytes: int | None = None,
    ) -> None:
        self.batches = batches
        self._bounds = start, end
        first = log.segments[0].base_offset
        is_bound = first is None or start > first  # otherwise no record needs the comparison
        self._options = ReadOptions(
            start_offset=start if is_bound else -NO_BOUND,
            end_offset=end,
            batch_rows=_BATCH_ROWS,
            batch_bytes=batch_bytes or min(_BATCH_BYTES, max(_LEAST_BATCH_BYTES, _size(log) // _CHUNKS)),
        )
        self._log = log
        self._start = start if is_start_known else log.known_start(start)

    def visible(
        self, faults: list[Fault], on_progress: Progress | None = None, *, ahead: bool = False
    ) -> Iterator[Visible]:
        """Return the records that are visible to readers of a committed log.

        Parameters
        ----------
        faults : list of Fault
            Receives faults.
        on_progress : callable, optional
        ahead : bool
            Let a thread read and decode the next chunks of a large log. ``batches`` is then ahead, too.
        """
        faults_of_values: list[Fault] = []
        walk = self._walk = MetadataWalk(
            self._log.segments,
            Pass(self._options, faults_of_values, on_progress=on_progress),
            self._bounds,
            self._start,
            self.batches.see,
        )
        reader = MessageReader(BUILT_IN.formats[METADATA], UUID_BINARY)

        def blocks() -> Iterator[tuple[Decided, list[Fault]]]:
            for decided in walk.blocks():
                noted = faults_of_values.copy()
                faults_of_values.clear()
                yield decided, noted

        def typed(item: tuple[Decided, list[Fault]]) -> tuple[list[Visible], list[Fault]]:
            decided, noted = item
            return list(self._typed(decided, reader, noted)), noted

        for shown, noted in run_ahead(typed, blocks()) if ahead and self._is_large else map(typed, blocks()):
            faults += noted
            yield from shown
        faults += faults_of_values

    def _typed(self, decided: Decided, reader: MessageReader, faults: list[Fault]) -> Iterator[Visible]:
        block = decided.block
        if not len(offsets := block.rows.numbers("offset")):
            return
        if self._hides_only_markers(decided, offsets):
            messages = reader.read(None, block.values)
            typed = _without_markers(messages.every_typed())
            if not messages.faults:
                find = partial(decided.view.visible_at, block.rows.headers, offsets)
                yield Visible(typed, offsets, find, is_rising=True)
                return
        yield from self._shown(decided, offsets, reader, faults)

    @property
    def _is_large(self) -> bool:
        """Whether there is more than one chunk."""
        return _size(self._log) > _BATCH_BYTES

    def open_at(self, offset: int) -> int | None:
        """Return the begin offset of a transaction that is open after an offset, among those read; or None."""
        return self._walk.decisions.open_at(offset)

    def _bounds_in(self, segment: Segment) -> tuple[int, int]:
        options = self._options.from_log_start(segment.log_start_offset)
        return options.start_offset, options.end_offset

    def _hides_only_markers(self, decided: Decided, offsets: Ints) -> bool:
        """Return whether all records except markers are visible and within bounds."""
        start, end = self._bounds_in(decided.segment)
        is_within = decided.block.is_rising and start <= offsets[0] and offsets[-1] < end
        return bool(is_within) and decided.view.is_committed

    def _shown(self, decided: Decided, offsets: Ints, reader: MessageReader, faults: list[Fault]) -> Iterator[Visible]:
        """Leave out hidden records before they are decoded: their faults do not count."""
        start, end = self._bounds_in(decided.segment)
        visible_at = decided.view.visible_at(decided.block.rows.headers, offsets)
        keep = (visible_at != _NEVER) & (offsets >= start) & (offsets < end)
        if keep.any():
            offsets, visible_at = offsets[keep], visible_at[keep]
            messages = reader.read(None, decided.block.values.filter(array_of(keep)))
            typed = _without_markers(messages.every_typed())
            records = pa.record_batch({"offset": array_of(offsets)})
            faults += faults_of_messages(decided.segment, records, messages.faults)
            yield Visible(typed, offsets, lambda: visible_at, is_rising=False)


def _size(log: MetadataLog) -> int:
    return sum(segment.size for segment in log.segments)


def _without_markers(every: dict[str, Typed]) -> dict[str, Typed]:
    return {name: one for name, one in every.items() if name not in _MARKERS}
