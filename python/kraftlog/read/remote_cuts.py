"""Division of remote segments into byte ranges, by their index files; only headers of log files are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraftlog.codec.options import NO_BOUND, ReadOptions
from kraftlog.disk.disk import disk
from kraftlog.disk.in_order import SEGMENTS_AT_ONCE, in_order
from kraftlog.disk.remote_path import RemotePath
from kraftlog.layout.segment import Segment
from kraftlog.read.seek import Stretch, bounds_within, cut_at_entries, seek


def stretches(
    segments: Sequence[tuple[Segment, ReadOptions]], range_bytes: int | None
) -> Iterator[tuple[Segment, list[Stretch]]]:
    """Return the ranges of remote segments to read, in order; several are planned in parallel.

    Parameters
    ----------
    segments : sequence of Segment and ReadOptions
        Each with its own bounds.
    range_bytes : int, optional
        A segment is cut at batches in its ``.index`` that are at least this number of bytes after the previous cut.
        Without an index file it is not cut.
    """

    def one(bounded_segment: tuple[Segment, ReadOptions]) -> list[Stretch]:
        segment, options = bounded_segment
        bounds = bounds_within(segment, options)
        if bounds is None:
            return []
        options = bounds
        bounded = options.bounds_offsets or options.bounds_timestamps
        if not bounded and (range_bytes is None or segment.size <= range_bytes):
            return [(0, NO_BOUND)]
        assert isinstance(segment.path, RemotePath)
        try:
            file = disk().open(segment.path, segment.size)
            start, end = seek(segment, file, options)
            if range_bytes is None or min(end, file.size) - start <= range_bytes:
                return [(start, end)]
            return cut_at_entries(segment, file, (start, end), range_bytes) or [(start, end)]
        except OSError:
            return [(0, NO_BOUND)]  # the reader of this range reports the fault

    found = in_order(one, segments, SEGMENTS_AT_ONCE)
    yield from ((segment, ranges) for (segment, _), ranges in zip(segments, found, strict=True))
