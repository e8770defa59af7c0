"""Division of a segment into byte ranges that start at batch boundaries.

A reader of one range must find the same batches as a reader of the whole file, even in a damaged file. Ranges are
therefore cut at positions of a walk over the headers, which is the walk of all readers (``native/c/batch/step.h``). In
remote files, and in the files of a log of many segments, it would take too long: they are cut at entries of ``.index``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

from kraftlog._native.scanner import CHECK_LENGTH, Scanner
from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.codec.transaction_view import TransactionView
from kraftlog.disk.in_order import SEGMENTS_AT_ONCE, in_order
from kraftlog.disk.local_file import LocalFile
from kraftlog.disk.remote_path import RemotePath
from kraftlog.layout.segment import Segment
from kraftlog.read.remote_cuts import stretches
from kraftlog.read.seek import bounds_within, cut_at_entries, seek


@dataclass(frozen=True)
class Range:
    """Batches of a segment that start at bytes [start, end).

    Attributes
    ----------
    is_first : bool
        Whether it is the first range of its segment.
    transactions : TransactionView or None
        The known transactions of its records.
    undecided : callable or None
        Set if they are unknown, and no transaction is open at the start of the segment: the reader follows the file. At
        a transaction without an end, this returns the ranges of the rest, from that byte on.
    """

    segment: Segment
    start: int
    end: int
    is_first: bool = True
    transactions: TransactionView | None = None
    undecided: Callable[[int], Iterator[Range]] | None = None


class Walk:
    """The position of the walk over a segment whose ranges are read one after another.

    Index files, which divide remote segments, can name a batch that the walk does not reach, because it is after a
    damaged length. A range is read from the end of the previous range.

    Examples
    --------
    >>> import kraftlog
    >>> from kraftlog.read.ranges import Range, Walk
    >>> segment = kraftlog.open("tests/golden/codecs/log/codec-none-0").found.segments[0]
    >>> walk = Walk()
    >>> walk.reached(walk.onward(Range(segment, 0, 8192)), 9000)
    >>> walk.onward(Range(segment, 8192, segment.size, is_first=False)).start
    9000
    """

    def __init__(self) -> None:
        self._segment: Segment | None = None
        self._position = 0

    def onward(self, part: Range) -> Range | None:
        """Return the part of the next range to read; None if the walk does not reach it."""
        if part.is_first or self._segment is None or self._segment.path != part.segment.path:
            return part
        if part.start <= self._position < min(part.end, part.segment.size):
            return part if part.start == self._position else replace(part, start=self._position)
        return None

    def reached(self, part: Range, position: int) -> None:
        """Record the start of the next batch after a range."""
        self._segment, self._position = part.segment, position


def relevant(segments: list[Segment], options: ReadOptions) -> Iterator[Segment]:
    """Return the segments that can contain offsets within the bounds, by their file names."""
    for segment, following in zip_longest(segments, segments[1:]):
        base = segment.base_offset
        if base is not None and not segment.state and base >= options.end_offset:
            continue
        next_base = _next_base_offset(segment, following)
        start_offset = options.from_log_start(segment.log_start_offset).start_offset
        # what is missing at the end of a piece of a healed segment may reach beyond the piece that follows
        is_before = segment.end_offset is None or segment.end_offset <= start_offset
        if is_before and next_base is not None and base is not None and base < next_base <= start_offset:
            continue
        yield segment


def _next_base_offset(segment: Segment, following: Segment | None) -> int | None:
    """Return where a live segment ends by the name of the next one; None if it is unknown."""
    if following is None or segment.state or following.state:
        return None
    same = (following.topic, following.partition, following.folder) == (
        segment.topic,
        segment.partition,
        segment.folder,
    )
    return following.base_offset if same else None


def _bounded(segments: list[Segment], options: ReadOptions) -> list[tuple[Segment, ReadOptions]]:
    """Return the relevant segments, and for each the options by which it is cut.

    Where the file names tell that all offsets of a segment are within the bounds, these have none, so that it need not
    be opened. A reader applies the bounds in any case.
    """
    wanted = list(relevant(segments, options))
    whole = replace(options, start_offset=-NO_BOUND, end_offset=NO_BOUND, include_deleted=True)
    return [
        (segment, whole if _is_within(segment, following, options) else options)
        for segment, following in zip_longest(wanted, wanted[1:])
    ]


def _is_within(segment: Segment, following: Segment | None, options: ReadOptions) -> bool:
    base, next_base = segment.base_offset, _next_base_offset(segment, following)
    if base is None or segment.state or base < options.from_log_start(segment.log_start_offset).start_offset:
        return False
    # a segment that follows and is relevant begins before the end of the bounds
    return options.end_offset == NO_BOUND or (next_base is not None and base < next_base)


def plan(
    segments: list[Segment], options: ReadOptions, range_bytes: int | None, *, at_entries: bool = False
) -> Iterator[Range]:
    """Return the ranges to read, in order.

    Parameters
    ----------
    segments : list of Segment
    options : ReadOptions
    range_bytes : int or None
        None for one range per segment.
    at_entries : bool
        Whether local segments are cut at entries of their ``.index`` as well, if they have one.
    """
    yield from _plan(_bounded(segments, options), range_bytes, at_entries)


def _plan(bounded: list[tuple[Segment, ReadOptions]], range_bytes: int | None, at_entries: bool) -> Iterator[Range]:
    for is_remote, group in groupby(bounded, lambda one: isinstance(one[0].path, RemotePath)):
        if is_remote:
            for segment, positions in stretches(list(group), range_bytes):
                yield from (Range(segment, start, end, start == positions[0][0]) for start, end in positions)
        else:
            for segment, options in group:
                yield from _plan_local(segment, options, range_bytes, at_entries)


def plan_at_once(
    segments: list[Segment], options: ReadOptions, range_bytes: int | None, *, at_entries: bool = False
) -> Iterator[Range]:
    """Return the result of ``plan`` for callers that read afterwards: segments are divided in parallel."""
    wanted = _bounded(segments, options)
    looked_into = [one for one in wanted if not _is_taken_whole(*one, range_bytes)]
    if len(looked_into) < 2 or any(isinstance(segment.path, RemotePath) for segment, _ in wanted):
        yield from _plan(wanted, range_bytes, at_entries)  # remote ones have threads of their own there
        return
    for ranges in in_order(lambda one: list(_plan_local(*one, range_bytes, at_entries)), wanted, SEGMENTS_AT_ONCE):
        yield from ranges


def _is_taken_whole(segment: Segment, options: ReadOptions, range_bytes: int | None) -> bool:
    options = options.from_log_start(segment.log_start_offset)
    bounded = options.bounds_offsets or options.bounds_timestamps
    return not bounded and (range_bytes is None or segment.size <= range_bytes)


def _plan_local(segment: Segment, options: ReadOptions, range_bytes: int | None, at_entries: bool) -> Iterator[Range]:
    bounds = bounds_within(segment, options)
    if bounds is None:
        return
    options = bounds
    if _is_taken_whole(segment, options, range_bytes):
        yield Range(segment, 0, NO_BOUND)
        return
    try:
        file = LocalFile(segment.local_path, segment.size)
        try:
            ranges = list(_cut(segment, file, options, range_bytes, at_entries))
        finally:
            file.close()
    except OSError:
        ranges = [Range(segment, 0, NO_BOUND)]  # reading it reports why it cannot be read
    yield from ranges


def _cut(
    segment: Segment, file: LocalFile, options: ReadOptions, range_bytes: int | None, at_entries: bool
) -> Iterator[Range]:
    """Divide the bytes within the bounds into ranges of about ``range_bytes``."""
    start, end = seek(segment, file, options)
    size = file.size
    begin = start
    if range_bytes is not None and min(end, size) - start > range_bytes:
        stretches_of_index = cut_at_entries(segment, file, (start, end), range_bytes) if at_entries else None
        if stretches_of_index is not None:
            yield from (Range(segment, *each, is_first=each[0] == start) for each in stretches_of_index)
            return
        walk = Scanner(file, start, end, CHECK_LENGTH)
        while (boundary := walk.skip(begin + range_bytes)) is not None:
            yield Range(segment, begin, boundary, begin == start)
            begin = boundary
    yield Range(segment, begin, end, begin == start)
