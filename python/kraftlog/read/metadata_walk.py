"""A walk over a metadata log that decodes its records and decides their visibility.

Records of a transaction wait for its end. If it is far away, waiting records are dropped and only markers are read
until it is decided; then the dropped records are decoded again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from kraftlog._native.scanner import header_at
from kraftlog.codec.header_scan import ends
from kraftlog.codec.headers import last_offsets
from kraftlog.codec.markers import MarkerBlock, ValueBlock, ValueReader, scan_markers
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.disk import ReadableFile
from kraftlog.errors import Fault
from kraftlog.layout.segment import Segment
from kraftlog.read.log_pass import Pass
from kraftlog.read.metadata_decisions import MetadataDecisions, Observer
from kraftlog.read.ranges import relevant
from kraftlog.read.seek import seek
from kraftlog.read.segment_end import end_fault
from kraftlog.read.segment_reader import located, segment_file
from kraftlog.transactions.metadata_view import MetadataView
from kraftlog.transactions.places import place_of

MOST_WAITING = 64 << 20  # bytes of chunks


@dataclass(frozen=True)
class Decided:
    """Some records, and the transactions around them.

    Attributes
    ----------
    segment : Segment
    block : ValueBlock
    view : MetadataView
    """

    segment: Segment
    block: ValueBlock
    view: MetadataView


class _Waiting:
    """Batches of a segment whose visibility is undecided.

    Attributes
    ----------
    number : int
        Number of the segment.
    start, end : int
        Positions in bytes.
    base_offset : int
        Base offset of the first batch.
    block : ValueBlock or None
        The records; None if they are decoded after the decision.
    faults : list of Fault or None
        Faults up to the next waiting batches; None if they are found when the records are decoded.
    """

    def __init__(self, number: int, start: int, markers: MarkerBlock, block: ValueBlock | None) -> None:
        self.number, self.start, self.end = number, start, markers.position
        self.base_offset = int(markers.headers["base_offset"][0])
        self.block = block
        self.faults: list[Fault] | None = None if block is None else []

    @property
    def place(self) -> int:
        """Place of the first batch."""
        return place_of(self.number, self.start)

    @property
    def end_place(self) -> int:
        """The end of the last batch."""
        return place_of(self.number, self.end)

    @property
    def size(self) -> int:
        """Size of the waiting batches in bytes."""
        return self.end - self.start if self.block is None else int(self.block.rows.chunk.capacity)


class MetadataWalk:
    """Walks over a metadata log, or a snapshot.

    Parameters
    ----------
    segments : list of Segment
        Segments of one partition, in order; or one snapshot.
    read : Pass
        Bounds of offsets, and the size of chunks. Records of batches next to the bounds may be included. Faults are
        those of transactions, and read faults.
    bounds : tuple of int
        Only faults of transactions at offsets in [start, end) are reported.
    start_offset : int or None
        Start offset, at which no transaction is open: the end of a snapshot.
    observe : callable
        Called with a log file and consecutive batches of it.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        read: Pass,
        bounds: tuple[int, int],
        start_offset: int | None,
        observe: Observer,
    ) -> None:
        self._faults = read.faults
        self._options = read.options
        self._advance = read.advance
        self._relevant = {segment.path for segment in relevant(list(segments), read.options)}
        self._waiting: deque[_Waiting] = deque()
        self._is_at_end = False
        self._reached = 0  # the place of the last ones that begin before the end of the bounds
        self.decisions = MetadataDecisions(
            segments, read.faults, strict=False, start_offset=start_offset, bounds=bounds, observe=observe
        )

    def blocks(self) -> Iterator[Decided]:
        """Return the records in log order, each as soon as its visibility is decided."""
        for number, segment in enumerate(self.decisions.segments):
            if self.decisions.is_before_start(number):
                continue
            if self._is_behind_bounds(segment) and not self._waiting:
                return
            missing: list[Fault] = []
            with segment_file(segment, missing, strict=False) as file:
                yield from self._segment(number, segment, file)
            self._note(missing)
        self.decisions.keep(self.decisions.finish(is_at_end=self._is_at_end))
        yield from self._decided()

    def _is_behind_bounds(self, segment: Segment) -> bool:
        is_wanted = segment.path in self._relevant
        return not is_wanted and (segment.base_offset or 0) >= self._options.end_offset

    def _segment(self, number: int, segment: Segment, file: ReadableFile) -> Iterator[Decided]:
        start_offset = self.decisions.start_offset
        position = 0 if start_offset is None else seek(segment, file, ReadOptions(start_offset=start_offset))[0]
        begin, end = seek(segment, file, self._options) if segment.path in self._relevant else (NO_BOUND, NO_BOUND)
        if position < begin and not self._is_behind_bounds(segment):
            position = self._look(number, file, position, begin, is_wanted=False)
        while position < min(end, file.size):
            if self._waits_too_long:
                position = self._look(number, file, position, end, is_wanted=True)
            else:
                position = yield from self._decode(number, segment, file, position, end)
            yield from self._decided()
        while self._waiting and position < file.size:
            position = self._look(number, file, position, NO_BOUND, is_wanted=False)
            yield from self._decided()
        self._is_at_end = position >= file.size

    @property
    def _waits_too_long(self) -> bool:
        return sum(one.size for one in self._waiting) > MOST_WAITING

    def _look(self, number: int, file: ReadableFile, position: int, end: int, *, is_wanted: bool) -> int:
        """Read markers up to a position, or until the first waiting batch is decided; return the position reached."""
        waits = bool(self._waiting)
        for block in scan_markers(file, [], start=position, end=end):
            self.decisions.keep(self.decisions.add(number, file, block))
            if is_wanted:
                self._waiting.append(_Waiting(number, position, block, None))
            position = block.position
            if waits and self._waiting[0].end_place <= self.decisions.undecided:
                return position
        return end

    def _decode(
        self, number: int, segment: Segment, file: ReadableFile, position: int, end: int
    ) -> Generator[Decided, None, int]:
        """Decode up to a position, or until too much is waiting; return the position reached."""
        reader = ValueReader(file, position, end, self._options)
        damage_of_block: list[Fault] = []
        damage: list[Fault] = []  # the last of it
        for block in reader.blocks(damage_of_block):
            self._waiting.append(_Waiting(number, position, block.markers, block))
            position = block.markers.position
            self.decisions.keep(self.decisions.add(number, file, block.markers))
            self._note(self._within_bounds(segment, file, damage_of_block))
            damage = damage_of_block[-1:] or damage
            damage_of_block.clear()
            yield from self._decided()
            if self._waits_too_long:
                for one in self._waiting:
                    one.block = None
                return position
        self._note(self._within_bounds(segment, file, damage_of_block))
        at_end = end_fault(segment, reader.decoder, damage_of_block or damage, file, self._options)
        self._note([] if at_end is None else [at_end])
        return end

    def _decided(self) -> Iterator[Decided]:
        """Return the batches that are decided."""
        undecided = self.decisions.undecided
        if not self._waiting or self._waiting[0].end_place > undecided:
            return
        if self._waiting[0].base_offset < self._options.end_offset:
            self._reached = self._waiting[0].place
        self.decisions.forget(self._reached)
        view = self.decisions.view()
        while self._waiting and self._waiting[0].end_place <= undecided:
            one = self._waiting.popleft()
            segment = self.decisions.segments[one.number]
            self._faults += one.faults or []
            if one.block is None:
                yield from self._again(segment, one, view)
            else:
                yield Decided(segment, one.block, view)
            self._advance(one.end - one.start)

    def _again(self, segment: Segment, one: _Waiting, view: MetadataView) -> Iterator[Decided]:
        of_reader: list[Fault] = []
        missing: list[Fault] = []
        with segment_file(segment, missing, strict=False) as file:
            for block in ValueReader(file, one.start, one.end, self._options).blocks(of_reader):
                yield Decided(segment, block, view)
            if one.faults is None:
                self._faults += self._within_bounds(segment, file, of_reader)
        self._faults += missing

    def _note(self, faults: list[Fault]) -> None:
        """Add read faults, after faults of the transactions of waiting batches."""
        noted = self._waiting[-1].faults if self._waiting else self._faults
        noted = self._faults if noted is None else noted
        noted += faults

    def _within_bounds(self, segment: Segment, file: ReadableFile, of_reader: list[Fault]) -> list[Fault]:
        """Return the read faults of batches within the bounds, or of the rest of the file."""
        return [located(segment, fault) for fault in of_reader if not self._is_beside_bounds(file, fault)]

    def _is_beside_bounds(self, file: ReadableFile, fault: Fault) -> bool:
        start, end = self._options.start_offset, self._options.end_offset
        if fault.base_offset is None or start <= fault.base_offset < end:
            return False
        header = header_at(file, fault.position or 0)
        is_alone = len(header) > 0 and (fault.size_in_bytes or 0) <= int(ends(header)[0] - header["position"][0])
        return is_alone and (fault.base_offset >= end or int(last_offsets(header)[0]) < start)
