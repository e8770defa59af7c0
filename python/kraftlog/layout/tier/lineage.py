"""The segments of a remote tier that a broker reads, by leader epochs, as in ``RemoteLogMetadataCache``."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from kraftlog.layout.tier.stored_segment import Epochs, StoredSegment

NO_END = 2**63 - 1


class Taken(NamedTuple):
    """Offsets start to end of the log, inclusive, and the segment that they are read from."""

    segment: StoredSegment
    start: int
    end: int


class SegmentChoice:
    """The segments of each leader epoch, by their first offset in it.

    Parameters
    ----------
    segments : iterable of StoredSegment
        Complete segments, in the order in which they were copied: one replaces earlier ones with the same offsets.
    """

    def __init__(self, segments: Iterable[StoredSegment]) -> None:
        self._starts: dict[int, list[int]] = {}
        self._segments: dict[int, list[StoredSegment]] = {}
        self._highest: dict[int, int] = {}
        for segment in segments:
            for epoch, start in segment.epochs:
                self._take(segment, epoch, start, segment.end_of(epoch))

    def _take(self, segment: StoredSegment, epoch: int, start: int, end: int) -> None:
        starts, segments = self._starts.setdefault(epoch, []), self._segments.setdefault(epoch, [])
        highest = self._highest.get(epoch, -1)
        while starts and starts[-1] >= start and highest <= end:
            del starts[-1], segments[-1]
        at = bisect_left(starts, start)
        if at < len(starts) and starts[at] == start:
            segments[at] = segment
        else:
            starts.insert(at, start)
            segments.insert(at, segment)
        self._highest[epoch] = max(highest, end)

    def at(self, epoch: int, offset: int) -> StoredSegment | None:
        """Return the segment with an offset of a leader epoch; None without one."""
        at = bisect_right(self._starts.get(epoch, []), offset) - 1
        if at < 0 or self._segments[epoch][at].end_of(epoch) < offset:
            return None
        return self._segments[epoch][at]

    def next_start(self, epoch: int, offset: int) -> int | None:
        """Return the first offset after another at which a segment begins in a leader epoch."""
        starts = self._starts.get(epoch, [])
        at = bisect_right(starts, offset)
        return starts[at] if at < len(starts) else None


def log_of(choice: SegmentChoice, lineage: Epochs, end: int = NO_END) -> list[Taken]:
    """Return the segment for each offset range of the whole log, in order, without offsets that no segment has.

    Parameters
    ----------
    choice : SegmentChoice
    lineage : tuple of (epoch, first offset)
        Leader epochs of the log.
    end : int
        Offset before which to stop.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kraftlog.layout.tier.lineage import SegmentChoice, log_of
    >>> from kraftlog.layout.tier.stored_segment import StoredSegment
    >>> def stored(name, base, end, *epochs):
    ...     return StoredSegment("orders", 0, "", name, base, end, epochs, -1, 0, Path(), "", {})
    >>> first, second = stored("a", 0, 100, (0, 0)), stored("b", 50, 200, (0, 50), (1, 120))
    >>> [(taken.segment.segment_id, taken.start, taken.end)
    ...  for taken in log_of(SegmentChoice([first, second]), ((0, 0), (1, 120)))]
    [('a', 0, 100), ('b', 101, 200)]
    """
    taken: list[Taken] = []
    for (epoch, first), (_, behind) in pairwise((*lineage, (-1, NO_END))):
        for one in _within(choice, epoch, first, min(behind, end)):
            last = taken[-1] if taken else None
            if last is not None and last.segment is one.segment and last.end + 1 == one.start:
                taken[-1] = last._replace(end=one.end)
            else:
                taken.append(one)
    return taken


def _within(choice: SegmentChoice, epoch: int, first: int, behind: int) -> Iterator[Taken]:
    """Return the ranges of one leader epoch, for offsets from ``first`` to before ``behind``."""
    offset: int | None = first
    while offset is not None and offset < behind:
        segment = choice.at(epoch, offset)
        if segment is None:
            offset = choice.next_start(epoch, offset)
            continue
        end = min(segment.end_of(epoch), behind - 1)
        yield Taken(segment, offset, end)
        offset = end + 1


def newest_epochs(segments: Iterable[StoredSegment]) -> list[StoredSegment]:
    """Return segments, the one with the newest leader epochs first: the log with these is the valid one."""
    return sorted(segments, key=lambda segment: (segment.epochs[-1][0], segment.end_offset), reverse=True)
